package telegramtest_test

import (
	"strings"
	"testing"
	"time"

	"drawbridge/internal/telegramtest"
)

const (
	ada    = telegramtest.AdaID
	grace  = telegramtest.GraceID
	group  = telegramtest.GroupID
	forum  = telegramtest.ForumID
	absent = 999_999
)

// Every refusal of a method, in Telegram's words. Ada has written to the bot; message 3 is the bot's with a button,
// message 4 is the bot's document.
func TestRefusalsInTelegramsWords(t *testing.T) {
	t.Parallel()
	w := started(t)
	hers := w.say(ada, ada, "a text of Ada's")
	w.drain()
	card := w.send(fields{"chat_id": ada, "text": "card", "reply_markup": keyboard(tapRow("Allow"))})
	doc := decode[message](t, w.ok("sendDocument", fields{"chat_id": ada, "caption": "c", "document": upload{"a.txt", []byte("x")}}).Result)
	gone := w.send(fields{"chat_id": ada, "text": "gone"})
	w.ok("deleteMessage", fields{"chat_id": ada, "message_id": gone.MessageID})
	groups := w.say(group, grace, "in the group")
	long := strings.Repeat("я", 4097)
	button := func(b fields) fields { return keyboard([]fields{b}) }

	for _, c := range []struct {
		name   string
		method string
		args   fields
		words  string
	}{
		{"no text", "sendMessage", fields{"chat_id": ada}, "message text is empty"},
		{"blank text", "sendMessage", fields{"chat_id": ada, "text": " \n\t \n"}, "message text is empty"},
		{"text before chat", "sendMessage", fields{"chat_id": 0}, "message text is empty"},
		{"long text", "sendMessage", fields{"chat_id": ada, "text": long}, "message is too long"},
		{"no UTF-8", "sendMessage", fields{"chat_id": ada, "text": "\xff"}, "strings must be encoded in UTF-8"},
		{"no chat", "sendMessage", fields{"text": "x"}, "chat_id is empty"},
		{"unknown chat", "sendMessage", fields{"chat_id": absent, "text": "x"}, "chat not found"},
		{"unknown name", "sendMessage", fields{"chat_id": "@nobody", "text": "x"}, "chat not found"},
		{"no number", "sendMessage", fields{"chat_id": "Ada", "text": "x"}, "chat not found"},
		{"unknown parse mode", "sendMessage", fields{"chat_id": ada, "text": "x", "parse_mode": "BBCode"}, "unsupported parse_mode"},
		{"parse mode", "sendMessage", fields{"chat_id": ada, "text": "*x", "parse_mode": "MarkdownV2"}, "can't parse entities: parse_mode is not simulated"},
		{"unknown reply", "sendMessage", fields{"chat_id": ada, "text": "x", "reply_parameters": fields{"message_id": absent}}, "message to be replied not found"},
		{"reply to deleted", "sendMessage", fields{"chat_id": ada, "text": "x", "reply_parameters": fields{"message_id": gone.MessageID}}, "message to be replied not found"},
		{"wrong quote", "sendMessage", fields{"chat_id": ada, "text": "x", "reply_parameters": fields{"message_id": hers, "quote": "Bob"}}, "QUOTE_TEXT_INVALID"},
		{"thread in private", "sendMessage", fields{"chat_id": ada, "text": "x", "message_thread_id": 5}, "message thread not found"},
		{"unknown topic", "sendMessage", fields{"chat_id": forum, "text": "x", "message_thread_id": absent}, "message thread not found"},
		{"General by id", "sendMessage", fields{"chat_id": forum, "text": "x", "message_thread_id": 1}, "message thread not found"},

		{"long data", "sendMessage", fields{"chat_id": ada, "text": "x", "reply_markup": button(fields{"text": "b", "callback_data": strings.Repeat("x", 65)})}, "BUTTON_DATA_INVALID"},
		{"long data in bytes", "sendMessage", fields{"chat_id": ada, "text": "x", "reply_markup": button(fields{"text": "b", "callback_data": strings.Repeat("я", 33)})}, "BUTTON_DATA_INVALID"},
		{"no action", "sendMessage", fields{"chat_id": ada, "text": "x", "reply_markup": button(fields{"text": "b"})}, "can't parse inline keyboard button: Text buttons are unallowed in the inline keyboard"},
		{"empty data", "sendMessage", fields{"chat_id": ada, "text": "x", "reply_markup": button(fields{"text": "b", "callback_data": ""})}, "can't parse inline keyboard button: Text buttons are unallowed in the inline keyboard"},
		{"no label", "sendMessage", fields{"chat_id": ada, "text": "x", "reply_markup": button(fields{"callback_data": "d"})}, `can't parse inline keyboard button: Can't find field "text"`},
		{"wrong link", "sendMessage", fields{"chat_id": ada, "text": "x", "reply_markup": button(fields{"text": "b", "url": "not-a-url"})}, "inline keyboard button URL 'not-a-url' is invalid: Wrong HTTP URL"},
		{"ftp", "sendMessage", fields{"chat_id": ada, "text": "x", "reply_markup": button(fields{"text": "b", "url": "ftp://example.com"})}, "inline keyboard button URL 'ftp://example.com' is invalid: Unsupported URL protocol"},
		{"wrong style", "sendMessage", fields{"chat_id": ada, "text": "x", "reply_markup": button(fields{"text": "b", "callback_data": "d", "style": "pink"})}, "can't parse inline keyboard button: invalid button style specified"},
		{"two actions", "sendMessage", fields{"chat_id": ada, "text": "x", "reply_markup": button(fields{"text": "b", "callback_data": "d", "copy_text": fields{"text": "c"}})}, "can't parse inline keyboard button: exactly one of the optional fields must be used"},
		{"empty copy text", "sendMessage", fields{"chat_id": ada, "text": "x", "reply_markup": button(fields{"text": "b", "copy_text": fields{"text": ""}})}, "BUTTON_COPY_TEXT_INVALID"},
		{"many buttons", "sendMessage", fields{"chat_id": ada, "text": "x", "reply_markup": keyboard(tapRow(strings.Split(strings.Repeat("b", 101), "")...))}, "reply markup is too long"},
		{"markup no JSON", "sendMessage", fields{"chat_id": ada, "text": "x", "reply_markup": "{"}, "can't parse reply keyboard markup JSON object"},
		{"markup no object", "sendMessage", fields{"chat_id": ada, "text": "x", "reply_markup": "[]"}, "object expected as reply markup"},

		{"same again", "editMessageText", fields{"chat_id": ada, "message_id": card.MessageID, "text": " card\n", "reply_markup": keyboard(tapRow("Allow"))}, notModified},
		{"same keyboard", "editMessageReplyMarkup", fields{"chat_id": ada, "message_id": card.MessageID, "reply_markup": keyboard(tapRow("Allow"))}, notModified},
		{"edit unknown", "editMessageText", fields{"chat_id": ada, "message_id": absent, "text": "x"}, "message to edit not found"},
		{"edit deleted", "editMessageText", fields{"chat_id": ada, "message_id": gone.MessageID, "text": "x"}, "message to edit not found"},
		{"edit without id", "editMessageText", fields{"chat_id": ada, "text": "x"}, "message identifier is not specified"},
		{"edit Ada's", "editMessageText", fields{"chat_id": ada, "message_id": hers, "text": "x"}, "message can't be edited"},
		{"edit to nothing", "editMessageText", fields{"chat_id": ada, "message_id": card.MessageID, "text": ""}, "message text is empty"},
		{"edit to too much", "editMessageText", fields{"chat_id": ada, "message_id": card.MessageID, "text": long}, "message is too long"},
		{"edit text of a file", "editMessageText", fields{"chat_id": ada, "message_id": doc.MessageID, "text": "x"}, "there is no text in the message to edit"},
		{"edit caption of a text", "editMessageCaption", fields{"chat_id": ada, "message_id": card.MessageID, "caption": "x"}, "there is no caption in the message to edit"},
		{"long caption", "editMessageCaption", fields{"chat_id": ada, "message_id": doc.MessageID, "caption": long[:2*1025]}, "message caption is too long"},
		{"edit to a reply keyboard", "editMessageText", fields{"chat_id": ada, "message_id": card.MessageID, "text": "x", "reply_markup": fields{"force_reply": true}}, "inline keyboard expected"},

		{"delete unknown", "deleteMessage", fields{"chat_id": ada, "message_id": absent}, "message to delete not found"},
		{"delete Grace's", "deleteMessage", fields{"chat_id": group, "message_id": groups}, "message can't be deleted"},
		{"delete none", "deleteMessages", fields{"chat_id": ada}, "message identifiers are not specified"},

		{"draft in a group", "sendMessageDraft", fields{"chat_id": group, "draft_id": 1, "text": "x"}, "TEXTDRAFT_PEER_INVALID"},
		{"draft in a topic", "sendMessageDraft", fields{"chat_id": forum, "draft_id": 1, "text": "x"}, "TEXTDRAFT_PEER_INVALID"},
		{"draft without id", "sendMessageDraft", fields{"chat_id": ada, "draft_id": 0, "text": "x"}, "draft_id must be non-zero"},
		{"long draft", "sendMessageDraft", fields{"chat_id": ada, "draft_id": 1, "text": long}, "message is too long"},

		{"unknown action", "sendChatAction", fields{"chat_id": ada, "action": "thinking"}, "wrong parameter action in request"},
		{"no document", "sendDocument", fields{"chat_id": ada}, "there is no document in the request"},
		{"empty document", "sendDocument", fields{"chat_id": ada, "document": upload{"a", nil}}, "file must be non-empty"},
		{"unknown file", "sendDocument", fields{"chat_id": ada, "document": "AgACnone"}, "wrong file identifier/HTTP URL specified"},
		{"no photo", "sendPhoto", fields{"chat_id": ada, "photo": upload{"a.png", []byte("text")}}, "IMAGE_PROCESS_FAILED"},
		{"get unknown file", "getFile", fields{"file_id": "AgACnone"}, "invalid file_id"},

		{"command in capitals", "setMyCommands", fields{"commands": []fields{{"command": "Stop", "description": "x"}}}, "BOT_COMMAND_INVALID"},
		{"command without words", "setMyCommands", fields{"commands": []fields{{"command": "stop", "description": ""}}}, "BOT_COMMAND_DESCRIPTION_INVALID"},
		{"many commands", "setMyCommands", fields{"commands": make([]fields, 101)}, "BOT_COMMANDS_TOO_MUCH"},
		{"unknown scope", "setMyCommands", fields{"commands": []fields{}, "scope": fields{"type": "planet"}}, "can't parse BotCommandScope: Unsupported type specified"},

		{"topic in a group", "createForumTopic", fields{"chat_id": group, "name": "x"}, "the chat is not a forum"},
		{"topic in private", "createForumTopic", fields{"chat_id": ada, "name": "x"}, "the chat is not a forum"},
		{"nameless topic", "createForumTopic", fields{"chat_id": forum, "name": ""}, "TOPIC_TITLE_EMPTY"},
		{"topic colour", "createForumTopic", fields{"chat_id": forum, "name": "x", "icon_color": 7}, "TOPIC_ICON_COLOR_INVALID"},
		{"close unknown topic", "closeForumTopic", fields{"chat_id": forum, "message_thread_id": absent}, "message thread not found"},
		{"administrators of one", "getChatAdministrators", fields{"chat_id": ada}, "there are no administrators in the private chat"},
		{"member nobody", "getChatMember", fields{"chat_id": group}, "invalid user_id specified"},
		{"member unknown", "getChatMember", fields{"chat_id": group, "user_id": absent}, "PARTICIPANT_ID_INVALID"},
		{"pin unknown", "pinChatMessage", fields{"chat_id": ada, "message_id": absent}, "message to pin not found"},
		{"pin without right", "pinChatMessage", fields{"chat_id": group, "message_id": groups}, "not enough rights to manage pinned messages in the chat"},
		{"unpin nothing", "unpinChatMessage", fields{"chat_id": ada}, "message to unpin not found"},
		{"react to unknown", "setMessageReaction", fields{"chat_id": ada, "message_id": absent}, "message to react not found"},
		{"unknown reaction", "setMessageReaction", fields{"chat_id": ada, "message_id": hers, "reaction": []fields{{"type": "emoji", "emoji": "🦖"}}}, "REACTION_INVALID"},
		{"forward unknown", "forwardMessage", fields{"chat_id": ada, "from_chat_id": ada, "message_id": absent}, "message to forward not found"},
		{"copy unknown", "copyMessage", fields{"chat_id": ada, "from_chat_id": ada, "message_id": absent}, "message to copy not found"},

		{"plain webhook", "setWebhook", fields{"url": "http://example.com/"}, "bad webhook: An HTTPS URL must be provided for webhook"},
		{"webhook port", "setWebhook", fields{"url": "https://example.com:9000/"}, "bad webhook: Webhook can be set up only on ports 80, 88, 443 or 8443"},
		{"webhook secret", "setWebhook", fields{"url": "https://example.com/", "secret_token": "a b"}, "secret token contains unallowed characters"},
		{"webhook long secret", "setWebhook", fields{"url": "https://example.com/", "secret_token": strings.Repeat("a", 257)}, "secret token is too long"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := *w
			w.t, w.ctx = t, t.Context()
			w.refused(400, "Bad Request: "+c.words, c.method, c.args)
		})
	}
}

const notModified = "message is not modified: specified new message content and reply markup are exactly the same as a current content and reply markup of the message"

// Lengths are code points: what is 4096 of them passes, however many bytes or UTF-16 units it has.
func TestLengthIsInCodePoints(t *testing.T) {
	t.Parallel()
	w := started(t)
	w.send(fields{"chat_id": ada, "text": strings.Repeat("🙂", 4096)})
	w.refused(400, "Bad Request: message is too long", "sendMessage", fields{"chat_id": ada, "text": strings.Repeat("🙂", 4097)})
	w.send(fields{"chat_id": ada, "text": strings.Repeat("x", 4096) + "   \n"})
	w.ok("sendMessage", fields{"chat_id": ada, "text": "x", "reply_markup": keyboard([]fields{{"text": "b", "callback_data": strings.Repeat("x", 64)}})})
}

func TestWhoCannotBeWrittenTo(t *testing.T) {
	t.Parallel()
	w := newWorld(t, telegramtest.Config{
		People: []telegramtest.Person{
			{ID: ada, Name: "Ada"},
			{ID: grace, Name: "Grace"},
			{ID: 7, Name: "Nobody"},
		},
		Chats: []telegramtest.Chat{
			{ID: group, Type: telegramtest.Group, Title: "G", Members: []int64{ada, grace}},
			{ID: forum, Type: telegramtest.Supergroup, Title: "S", Members: []int64{ada}},
		},
		Rates: telegramtest.Rates{Off: true},
	})
	to := func(chat int64) fields { return fields{"chat_id": chat, "text": "x"} }
	w.refused(400, "Bad Request: chat not found", "sendMessage", to(7))
	w.refused(400, "Bad Request: chat not found", "getChat", to(7))
	w.ok("getChat", to(ada))
	w.refused(403, "Forbidden: bot can't initiate conversation with a user", "sendMessage", to(ada))
	w.say(ada, ada, "hi")
	w.send(to(ada))
	w.post("blocks", fields{"from": ada, "blocked": true})
	w.refused(403, "Forbidden: bot was blocked by the user", "sendMessage", to(ada))
	w.refused(403, "Forbidden: bot was blocked by the user", "sendChatAction", fields{"chat_id": ada, "action": "typing"})
	w.say(ada, ada, "back again")
	w.send(to(ada))

	bot := decode[struct{ ID int64 }](t, w.get("bot")).ID
	w.send(to(group))
	w.post("members", fields{"chat": group, "member": bot, "action": "remove"})
	w.refused(403, "Forbidden: bot was kicked from the group chat", "sendMessage", to(group))
	w.post("members", fields{"chat": group, "member": bot, "action": "add"})
	w.send(to(group))
	w.ok("leaveChat", fields{"chat_id": forum})
	w.refused(403, "Forbidden: bot is not a member of the supergroup chat", "sendMessage", to(forum))
}

func TestMigrationNamesTheNewChat(t *testing.T) {
	t.Parallel()
	w := started(t)
	next := decode[struct{ Chat int64 }](t, w.post("migrations", fields{"chat": group})).Chat
	a := w.refused(400, "Bad Request: group chat was upgraded to a supergroup chat", "sendMessage", fields{"chat_id": group, "text": "x"})
	if a.Parameters.MigrateToChatID != next || next == 0 {
		t.Errorf("migrate_to_chat_id %d, want %d", a.Parameters.MigrateToChatID, next)
	}
	if got := w.send(fields{"chat_id": next, "text": "x"}); got.Chat.Type != "supergroup" {
		t.Errorf("the new chat is a %s", got.Chat.Type)
	}
	var told []string
	for _, u := range w.drain() {
		m := decode[map[string]any](t, u.Raw["message"])
		for _, k := range []string{"migrate_to_chat_id", "migrate_from_chat_id"} {
			if m[k] != nil {
				told = append(told, k)
			}
		}
	}
	if strings.Join(told, " ") != "migrate_to_chat_id migrate_from_chat_id" {
		t.Errorf("service messages: %v", told)
	}
}

func TestOldMessagesCannotBeDeleted(t *testing.T) {
	t.Parallel()
	w := started(t)
	m := w.send(fields{"chat_id": ada, "text": "x"})
	w.advance(48*time.Hour - time.Minute)
	other := w.send(fields{"chat_id": ada, "text": "y"})
	w.advance(time.Minute)
	w.refused(400, "Bad Request: message can't be deleted for everyone", "deleteMessage", fields{"chat_id": ada, "message_id": m.MessageID})
	w.ok("deleteMessage", fields{"chat_id": ada, "message_id": other.MessageID})
	w.ok("editMessageText", fields{"chat_id": ada, "message_id": m.MessageID, "text": "edited all the same"})
}
