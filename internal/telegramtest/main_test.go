package telegramtest_test

import (
	"net/http"
	"testing"
	"time"

	"drawbridge/internal/telegramtest"
)

// The main way: a person writes, the bot answers with a card, the person taps, the bot answers and edits.
func TestMessageCardTapEdit(t *testing.T) {
	t.Parallel()
	w := newWorld(t, telegramtest.Config{})

	me := decode[struct {
		ID    int64 `json:"id"`
		IsBot bool  `json:"is_bot"`
	}](t, w.ok("getMe", nil).Result)
	if !me.IsBot || me.ID == 0 {
		t.Fatalf("getMe: %+v", me)
	}
	w.ok("setMyCommands", fields{"commands": []fields{{"command": "stop", "description": "Stop"}}})

	said := w.say(telegramtest.AdaID, telegramtest.AdaID, "/start now")
	got := w.drain()
	if len(got) != 1 || got[0].Message == nil || got[0].Message.MessageID != said || got[0].Message.Chat.Type != "private" {
		t.Fatalf("updates: %+v", got)
	}
	if e := got[0].Message.Entities; len(e) != 1 || e[0].Type != "bot_command" || e[0].Length != 6 {
		t.Errorf("entities of a command: %+v", e)
	}

	card := w.send(fields{
		"chat_id": telegramtest.AdaID, "text": "Run it?", "disable_notification": true,
		"reply_markup": keyboard(tapRow("Allow", "Deny")),
	})
	tapped := async(func() []byte {
		return w.post("taps", fields{
			"chat": telegramtest.AdaID, "from": telegramtest.AdaID, "message_id": card.MessageID, "button": "Allow",
		})
	})
	query := w.updates(fields{"timeout": 20})[0].CallbackQuery
	if query == nil || query.Data != "data-allow" || query.From.ID != telegramtest.AdaID || query.Message.MessageID != card.MessageID {
		t.Fatalf("callback query: %+v", query)
	}
	w.ok("answerCallbackQuery", fields{"callback_query_id": query.ID, "text": "Allowed", "show_alert": true})
	answer := decode[struct {
		Answered, Alert bool
		Text            string
	}](t, <-tapped)
	if !answer.Answered || answer.Text != "Allowed" || !answer.Alert {
		t.Errorf("tap: %+v", answer)
	}
	w.ok("editMessageText", fields{"chat_id": telegramtest.AdaID, "message_id": card.MessageID, "text": "Allowed by Ada"})

	shown := decode[[]map[string]any](t, w.get("chats/1001/messages"))
	if len(shown) != 2 {
		t.Fatalf("messages: %+v", shown)
	}
	last := shown[1]
	if last["text"] != "Allowed by Ada" || last["edits"] != 1.0 || last["silent"] != true || len(last["buttons"].([]any)) != 0 {
		t.Errorf("the card after the edit: %+v", last)
	}
	w.ok("deleteMessage", fields{"chat_id": telegramtest.AdaID, "message_id": card.MessageID})
	shown = decode[[]map[string]any](t, w.get("chats/1001/messages?after="+itoa(said)))
	if len(shown) != 1 || shown[0]["deleted"] != true {
		t.Errorf("the card after its deletion: %+v", shown)
	}

	var methods []string
	for _, c := range decode[[]struct{ Method string }](t, w.get("calls")) {
		methods = append(methods, c.Method)
	}
	if len(methods) != 9 || methods[0] != "getMe" || methods[8] != "deleteMessage" {
		t.Errorf("calls: %v", methods)
	}
}

func TestTapRefusals(t *testing.T) {
	t.Parallel()
	w := started(t)
	card := w.send(fields{"chat_id": telegramtest.AdaID, "text": "?", "reply_markup": keyboard(
		tapRow("Allow"), []fields{{"text": "Gone", "disabled": fields{}}, {"text": "Docs", "url": "https://example.com"}})})
	tap := func(from int64, button any) int {
		status, out := w.control(http.MethodPost, "taps", fields{
			"chat": telegramtest.AdaID, "from": from, "message_id": card.MessageID, "button": button, "wait": 0,
		})
		if status >= 400 && len(decode[map[string]string](t, out)["error"]) == 0 {
			t.Errorf("no error line in %s", out)
		}
		return status
	}
	for _, c := range []struct {
		name   string
		from   int64
		button any
		want   int
	}{
		{"by label", telegramtest.AdaID, "Allow", 200},
		{"by place", telegramtest.AdaID, []int{0, 0}, 200},
		{"unknown label", telegramtest.AdaID, "allow", 404},
		{"no such place", telegramtest.AdaID, []int{0, 1}, 404},
		{"disabled", telegramtest.AdaID, "Gone", 409},
		{"link", telegramtest.AdaID, []int{1, 1}, 409},
		{"no button", telegramtest.AdaID, fields{}, 400},
		{"not in the chat", telegramtest.GraceID, "Allow", 403},
	} {
		if got := tap(c.from, c.button); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

func TestQueryIsAnsweredOnceAndInTime(t *testing.T) {
	t.Parallel()
	const tooLate = "Bad Request: query is too old and response timeout expired or query ID is invalid"
	w := started(t)
	card := w.send(fields{"chat_id": telegramtest.AdaID, "text": "?", "reply_markup": keyboard(tapRow("Allow"))})
	tap := func() string {
		w.post("taps", fields{"chat": telegramtest.AdaID, "from": telegramtest.AdaID, "message_id": card.MessageID, "button": "Allow", "wait": 0})
		got := w.drain()
		return got[len(got)-1].CallbackQuery.ID
	}
	id := tap()
	w.ok("answerCallbackQuery", fields{"callback_query_id": id})
	w.refused(400, tooLate, "answerCallbackQuery", fields{"callback_query_id": id})
	w.refused(400, tooLate, "answerCallbackQuery", fields{"callback_query_id": "12345"})

	id = tap()
	w.advance(14 * time.Second)
	w.ok("answerCallbackQuery", fields{"callback_query_id": id})
	id = tap()
	w.advance(15 * time.Second)
	w.refused(400, tooLate, "answerCallbackQuery", fields{"callback_query_id": id})
}
