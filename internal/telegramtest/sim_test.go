package telegramtest_test

import (
	"bufio"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestControlServesOnlyThisMachine(t *testing.T) {
	t.Parallel()
	w := started(t)
	say := fields{"chat": ada, "from": ada, "text": "x"}
	for _, c := range []struct {
		name    string
		in      any
		headers []string
		want    int
	}{
		{"plain", say, nil, 200},
		{"loopback origin", say, []string{"Origin", "http://localhost:3000"}, 200},
		{"loopback origin of IPv6", say, []string{"Origin", "http://[::1]:3000"}, 200},
		{"loopback name", say, []string{"Host", "localhost"}, 200},
		{"foreign origin", say, []string{"Origin", "https://example.com"}, 403},
		{"no origin", say, []string{"Origin", "null"}, 403},
		{"origin that looks like loopback", say, []string{"Origin", "http://127.0.0.1.example.com"}, 403},
		{"foreign host", say, []string{"Host", "example.com:8081"}, 403},
		{"host that looks like loopback", say, []string{"Host", "localhost.example.com"}, 403},
		{"form", say, []string{"Content-Type", "application/x-www-form-urlencoded"}, 415},
		{"text", say, []string{"Content-Type", "text/plain"}, 415},
		{"JSON with a charset", say, []string{"Content-Type", "application/json; charset=utf-8"}, 200},
		{"no object", 7, nil, 400},
	} {
		status, out := w.control(http.MethodPost, "messages", c.in, c.headers...)
		if status != c.want {
			t.Errorf("%s: %d %s, want %d", c.name, status, out, c.want)
		}
		if status != 200 && decode[map[string]string](t, out)["error"] == "" {
			t.Errorf("%s: no error line in %s", c.name, out)
		}
	}
	if status, out := w.control(http.MethodDelete, "messages", nil); status != 404 || decode[map[string]string](t, out)["error"] == "" {
		t.Errorf("an unknown request: %d %s", status, out)
	}
	if status, _ := w.control(http.MethodGet, "calls", nil, "Origin", "https://example.com"); status != 403 {
		t.Errorf("a foreign page may read: %d", status)
	}
	big := []byte(`{"text":"` + strings.Repeat("x", 33<<20) + `"}`)
	if status, _ := w.control(http.MethodPost, "messages", big); status != 413 {
		t.Errorf("a body of 33 MiB: %d", status)
	}
}

func TestWhatPeopleCannotDo(t *testing.T) {
	t.Parallel()
	w := started(t)
	hers := w.say(ada, ada, "hers")
	grp := w.say(group, grace, "Grace's")
	for _, c := range []struct {
		path string
		in   fields
		want int
	}{
		{"messages", fields{"chat": ada, "from": grace, "text": "x"}, 403},
		{"messages", fields{"chat": absent, "from": ada, "text": "x"}, 404},
		{"messages", fields{"chat": ada, "from": absent, "text": "x"}, 404},
		{"messages", fields{"chat": ada, "from": ada, "text": "  "}, 400},
		{"messages", fields{"chat": ada, "from": ada, "text": strings.Repeat("x", 4097)}, 400},
		{"messages", fields{"chat": ada, "from": ada, "text": "x", "reply_to": absent}, 404},
		{"messages", fields{"chat": forum, "from": ada, "text": "x", "topic": absent}, 404},
		{"messages", fields{"chat": ada, "from": ada, "photo": fields{"name": "a", "base64": "!"}}, 400},
		{"messages", fields{"chat": ada, "from": ada, "text": "x", "forward": absent}, 404},
		{"messages", fields{"chat": ada, "from": ada, "text": "x", "entities": []fields{{"type": "bold", "offset": 0, "length": 9}}}, 400},
		{"edits", fields{"chat": group, "from": ada, "message_id": grp, "text": "x"}, 403},
		{"edits", fields{"chat": ada, "from": ada, "message_id": absent, "text": "x"}, 404},
		{"edits", fields{"chat": ada, "from": ada, "message_id": hers, "text": ""}, 400},
		{"topics", fields{"chat": group, "name": "x"}, 409},
		{"topics", fields{"chat": forum, "name": ""}, 400},
		{"members", fields{"chat": ada, "member": grace, "action": "add"}, 404},
		{"members", fields{"chat": group, "member": grace, "action": "praise"}, 400},
		{"stop-drafts", fields{"chat": ada, "draft_id": 1}, 404},
		{"reactions", fields{"chat": ada, "from": ada, "message_id": hers, "emoji": "x"}, 400},
		{"blocks", fields{"from": absent, "blocked": true}, 404},
		{"migrations", fields{"chat": forum}, 404},
		{"clock", fields{"advance_ms": -1}, 400},
	} {
		if status, out := w.control(http.MethodPost, c.path, c.in); status != c.want {
			t.Errorf("%s %v: %d %s, want %d", c.path, c.in, status, out, c.want)
		}
	}
	for path, want := range map[string]int{"chats/7/messages": 404, "chats/x/messages": 400, "chats/1001/messages?after=x": 400, "files/x": 404, "nowhere": 404} {
		if status, _ := w.control(http.MethodGet, path, nil); status != want {
			t.Errorf("%s: %d, want %d", path, status, want)
		}
	}
}

func TestTheWorldOfTheDemo(t *testing.T) {
	t.Parallel()
	w := started(t)
	people := decode[[]struct {
		ID                   int64
		Name, Username, Role string
		LanguageCode         string `json:"language_code"`
	}](t, w.get("people"))
	var roles []string
	for _, p := range people {
		if p.ID == 0 || p.Name == "" || p.Username == "" || p.LanguageCode != "en" {
			t.Errorf("person %+v", p)
		}
		roles = append(roles, p.Role)
	}
	if strings.Join(roles, " ") != "owner operator viewer stranger" {
		t.Errorf("roles %v", roles)
	}
	var kinds []string
	for _, c := range decode[[]struct {
		Type, Title string
		Members     []int64
	}](t, w.get("chats")) {
		if c.Title == "" || len(c.Members) == 0 {
			t.Errorf("chat %+v", c)
		}
		kinds = append(kinds, c.Type)
	}
	if strings.Join(kinds, " ") != "private private private private group supergroup" {
		t.Errorf("chats %v", kinds)
	}
}

func TestWhatAPersonsMessageCarries(t *testing.T) {
	t.Parallel()
	w := started(t)
	card := w.send(fields{"chat_id": ada, "text": "card"})
	w.post("messages", fields{"chat": ada, "from": ada, "text": "a reply", "reply_to": card.MessageID})
	w.post("messages", fields{"chat": ada, "from": ada, "text": "/mode full-access", "forward": grace})
	w.post("messages", fields{"chat": ada, "from": ada, "text": "hidden", "forward": true})
	w.post("messages", fields{"chat": ada, "from": ada, "photo": fields{"name": "1.jpg", "base64": "eA=="}, "album": "trip"})
	w.post("messages", fields{"chat": ada, "from": ada, "photo": fields{"name": "2.jpg", "base64": "eA=="}, "album": "trip"})
	w.post("messages", fields{"chat": ada, "from": ada, "voice": fields{"name": "v.ogg", "base64": "eA=="}})
	w.post("messages", fields{"chat": group, "from": ada, "text": "/stop", "anonymous": true})
	w.post("messages", fields{"chat": ada, "from": ada, "text": "/stop", "via_bot": "gif"})
	w.say(ada, ada, "see /a_b@Drawbridge_demo_bot, not http://x/y or a/b. /c")
	got := w.drain()
	if r := got[0].Message.ReplyToMessage; r == nil || r.MessageID != card.MessageID || r.From.ID == ada {
		t.Errorf("reply: %+v", got[0].Message)
	}
	if o := string(got[1].Message.ForwardOrigin); !strings.Contains(o, `"type":"user"`) || !strings.Contains(o, `"first_name":"Grace"`) {
		t.Errorf("forward from Grace: %s", o)
	}
	if o := string(got[2].Message.ForwardOrigin); !strings.Contains(o, `"hidden_user"`) {
		t.Errorf("forward from somebody hidden: %s", o)
	}
	if a, b := got[3].Message, got[4].Message; a.MediaGroupID == "" || a.MediaGroupID != b.MediaGroupID || len(a.Photo) != 1 {
		t.Errorf("album: %+v, %+v", a, b)
	}
	if got[5].Message.Voice == nil {
		t.Errorf("voice: %+v", got[5].Message)
	}
	if m := got[6].Message; m.From.ID == ada || !strings.Contains(string(got[6].Raw["message"]), `"sender_chat":{"id":-4001`) {
		t.Errorf("anonymous: %s", got[6].Raw["message"])
	}
	if raw := string(got[7].Raw["message"]); !strings.Contains(raw, `"via_bot":{"id":987654321`) {
		t.Errorf("through a bot: %s", raw)
	}
	e := got[8].Message.Entities
	if len(e) != 2 || e[0].Offset != 4 || e[0].Length != 24 || e[1].Length != 2 {
		t.Errorf("commands: %+v", e)
	}
	shown := decode[[]struct {
		ReplyTo int64 `json:"reply_to"`
		From    int64
		Text    string
	}](t, w.get("chats/1001/messages?after="+itoa(card.MessageID)))
	if len(shown) != 8 || shown[0].ReplyTo != card.MessageID || shown[0].From != ada {
		t.Errorf("shown: %+v", shown)
	}
}

// A message id is unique in its chat only: supergroups count for themselves, the other chats of a bot together.
func TestMessageIDsAreNotUniqueAcrossChats(t *testing.T) {
	t.Parallel()
	w := started(t)
	a, b := w.say(ada, ada, "x"), w.say(group, ada, "x")
	if b != a+1 {
		t.Errorf("ids %d in private, then %d in a group", a, b)
	}
	same := false
	for range int(a) + 1 {
		same = same || w.say(forum, ada, "x") == a
	}
	if !same {
		t.Errorf("no message of a supergroup has the id %d", a)
	}
}

func TestEditedMessage(t *testing.T) {
	t.Parallel()
	w := started(t)
	id := w.say(ada, ada, "befor")
	w.drain()
	w.advance(time.Minute)
	w.post("edits", fields{"chat": ada, "from": ada, "message_id": id, "text": "before"})
	m := w.drain()[0].EditedMessage
	if m == nil || m.Text != "before" || m.MessageID != id || m.EditDate == 0 {
		t.Errorf("edited_message: %+v", m)
	}
}

func TestTopics(t *testing.T) {
	t.Parallel()
	w := started(t)
	hers := decode[struct{ Topic int64 }](t, w.post("topics", fields{"chat": forum, "name": "Hers", "from": ada})).Topic
	its := decode[struct {
		ID   int64 `json:"message_thread_id"`
		Name string
	}](t, w.ok("createForumTopic", fields{"chat_id": forum, "name": "Its"}).Result)
	w.drain()
	w.post("messages", fields{"chat": forum, "from": ada, "text": "in hers", "topic": hers})
	m := w.drain()[0].Message
	if m.MessageThreadID != hers || !m.IsTopicMessage || m.ReplyToMessage == nil || m.ReplyToMessage.MessageID != hers {
		t.Errorf("in a topic: %+v", m)
	}
	general := w.say(forum, ada, "in General")
	if m := w.drain()[0].Message; m.MessageThreadID != 0 || m.IsTopicMessage {
		t.Errorf("in General: %+v", m)
	}
	// A reply in General carries a thread id that is no topic.
	w.post("messages", fields{"chat": forum, "from": ada, "text": "a reply", "reply_to": general})
	if m := w.drain()[0].Message; m.MessageThreadID != general || m.IsTopicMessage {
		t.Errorf("a reply in General: %+v", m)
	}
	w.refused(400, "Bad Request: message thread not found", "sendMessage", fields{"chat_id": forum, "text": "x", "message_thread_id": general})

	sent := w.send(fields{"chat_id": forum, "text": "answer", "message_thread_id": its.ID})
	if sent.MessageThreadID != its.ID || !sent.IsTopicMessage {
		t.Errorf("sent into a topic: %+v", sent)
	}
	w.refused(400, "Bad Request: message to be replied not found", "sendMessage",
		fields{"chat_id": forum, "text": "x", "message_thread_id": its.ID, "reply_parameters": fields{"message_id": m.MessageID}})
	if r := w.send(fields{"chat_id": forum, "text": "x", "reply_parameters": fields{"message_id": m.MessageID}}); r.MessageThreadID != hers {
		t.Errorf("an answer stands in topic %d, want %d", r.MessageThreadID, hers)
	}
	only := decode[[]struct{ Text string }](t, w.get("chats/"+itoa(forum)+"/messages?topic="+itoa(its.ID)))
	if len(only) != 2 || only[1].Text != "answer" {
		t.Errorf("messages of one topic: %+v", only)
	}

	w.ok("editForumTopic", fields{"chat_id": forum, "message_thread_id": its.ID, "name": "Renamed"})
	w.refused(400, "Bad Request: TOPIC_NOT_MODIFIED", "editForumTopic", fields{"chat_id": forum, "message_thread_id": its.ID, "name": "Renamed"})
	w.ok("closeForumTopic", fields{"chat_id": forum, "message_thread_id": its.ID})
	if status, _ := w.control(http.MethodPost, "messages", fields{"chat": forum, "from": ada, "text": "x", "topic": its.ID}); status != 409 {
		t.Errorf("writing into a closed topic: %d", status)
	}
	w.ok("deleteForumTopic", fields{"chat_id": forum, "message_thread_id": its.ID})
	w.refused(400, "Bad Request: message thread not found", "sendMessage", fields{"chat_id": forum, "text": "x", "message_thread_id": its.ID})
}

func TestMembersComeAndGo(t *testing.T) {
	t.Parallel()
	w := started(t)
	w.updates(fields{"allowed_updates": []string{"message", "chat_member", "my_chat_member"}})
	w.post("members", fields{"chat": forum, "member": grace, "action": "remove"})
	status := decode[struct{ Status string }](t, w.ok("getChatMember", fields{"chat_id": forum, "user_id": grace}).Result).Status
	if status != "left" {
		t.Errorf("who left is %q", status)
	}
	w.post("members", fields{"chat": forum, "member": grace, "action": "add"})
	bot := decode[struct{ ID int64 }](t, w.get("bot")).ID
	w.post("members", fields{"chat": forum, "member": bot, "action": "demote"})
	var kinds []string
	for _, u := range w.drain() {
		for k, raw := range u.Raw {
			if k != "update_id" {
				kinds = append(kinds, k)
				if k == "my_chat_member" && !strings.Contains(string(raw), `"new_chat_member":{"user":{"id":`+itoa(bot)) {
					t.Errorf("my_chat_member: %s", raw)
				}
			}
		}
	}
	if strings.Join(kinds, " ") != "message chat_member message chat_member my_chat_member" {
		t.Errorf("updates: %v", kinds)
	}
	admins := decode[[]struct{ Status string }](t, w.ok("getChatAdministrators", fields{"chat_id": forum}).Result)
	if len(admins) != 1 || admins[0].Status != "creator" {
		t.Errorf("administrators: %+v", admins)
	}
}

func TestDrafts(t *testing.T) {
	t.Parallel()
	type draft struct {
		DraftID int64 `json:"draft_id"`
		Text    string
		CanStop bool `json:"can_stop"`
	}
	w := started(t)
	drafts := func() []draft { return decode[[]draft](t, w.get("chats/1001/drafts")) }
	show := func(text string, stop, keep bool) {
		w.ok("sendMessageDraft", fields{"chat_id": ada, "draft_id": 5, "text": text, "can_stop": stop, "keep_on_stop": keep})
	}
	show("", false, false)
	show("so far", true, false)
	if d := drafts(); len(d) != 1 || d[0].Text != "so far" || d[0].DraftID != 5 || !d[0].CanStop {
		t.Errorf("drafts: %+v", d)
	}
	w.send(fields{"chat_id": ada, "text": "final"})
	if d := drafts(); len(d) != 0 {
		t.Errorf("after the message: %+v", d)
	}
	show("x", false, false)
	if status, _ := w.control(http.MethodPost, "stop-drafts", fields{"chat": ada, "draft_id": 5}); status != 409 {
		t.Errorf("stopping what has no Stop button: %d", status)
	}
	w.advance(30 * time.Second)
	if d := drafts(); len(d) != 0 {
		t.Errorf("after 30 seconds: %+v", d)
	}

	show("x", true, false)
	w.post("stop-drafts", fields{"chat": ada, "draft_id": 5, "from": ada})
	if got := w.drain(); len(got) != 0 {
		t.Errorf("nobody asked for stopped_message_generation, and it came: %+v", got)
	}
	w.updates(fields{"allowed_updates": []string{"stopped_message_generation"}})
	show("x", true, true)
	w.post("stop-drafts", fields{"chat": ada, "draft_id": 5})
	if got := w.drain(); len(got) != 1 || got[0].Stopped == nil || got[0].Stopped.DraftID != 5 {
		t.Errorf("stopped: %+v", got)
	}
	if d := drafts(); len(d) != 1 || d[0].CanStop {
		t.Errorf("keep_on_stop: %+v", d)
	}
}

func TestReactionsForwardsAndPins(t *testing.T) {
	t.Parallel()
	w := started(t)
	hers := w.say(ada, ada, "hers")
	w.ok("setMessageReaction", fields{"chat_id": ada, "message_id": hers, "reaction": []fields{{"type": "emoji", "emoji": "👀"}}})
	w.ok("pinChatMessage", fields{"chat_id": ada, "message_id": hers})
	copied := decode[message](t, w.ok("copyMessage", fields{"chat_id": ada, "from_chat_id": ada, "message_id": hers}).Result)
	forwarded := decode[message](t, w.ok("forwardMessage", fields{"chat_id": group, "from_chat_id": ada, "message_id": hers}).Result)
	if forwarded.Text != "hers" || len(forwarded.ForwardOrigin) == 0 || copied.MessageID == 0 {
		t.Errorf("forwarded %+v, copied %+v", forwarded, copied)
	}
	w.refused(400, "Bad Request: message can't be edited", "editMessageText", fields{"chat_id": group, "message_id": forwarded.MessageID, "text": "x"})
	shown := decode[[]struct {
		ID        int64 `json:"message_id"`
		Pinned    bool
		Reactions map[string][]string
	}](t, w.get("chats/1001/messages?after="+itoa(hers-1)))
	if !shown[0].Pinned || len(shown[0].Reactions) != 1 {
		t.Errorf("shown: %+v", shown[0])
	}
	if chat := string(w.ok("getChat", fields{"chat_id": ada}).Result); !strings.Contains(chat, `"pinned_message":{"message_id":`+itoa(hers)) {
		t.Errorf("getChat: %s", chat)
	}
	w.ok("unpinChatMessage", fields{"chat_id": ada})
	w.ok("deleteMessages", fields{"chat_id": ada, "message_ids": []int64{hers, absent}})
}

func TestCommandsByScope(t *testing.T) {
	t.Parallel()
	w := started(t)
	stop := []fields{{"command": "stop", "description": "Stop"}}
	w.ok("setMyCommands", fields{"commands": stop, "scope": fields{"type": "chat", "chat_id": ada}, "language_code": "de"})
	get := func(args fields) string { return string(w.ok("getMyCommands", args).Result) }
	if got := get(nil); got != "[]" {
		t.Errorf("default scope: %s", got)
	}
	if got := get(fields{"scope": fields{"type": "chat", "chat_id": ada}, "language_code": "de"}); !strings.Contains(got, "stop") {
		t.Errorf("scope of a chat: %s", got)
	}
	w.ok("deleteMyCommands", fields{"scope": fields{"type": "chat", "chat_id": ada}, "language_code": "de"})
	if got := get(fields{"scope": fields{"type": "chat", "chat_id": ada}, "language_code": "de"}); got != "[]" {
		t.Errorf("after deletion: %s", got)
	}
}

func TestWatchers(t *testing.T) {
	t.Parallel()
	type event struct {
		Seq       int64
		Type      string
		Chat      int64
		MessageID int64 `json:"message_id"`
	}
	type seen struct {
		Seq    int64
		Events []event
	}
	w := started(t)
	before := decode[seen](t, w.get("wait?timeout=0")).Seq
	if again := decode[seen](t, w.get("wait?timeout=0&after="+itoa(before))); len(again.Events) != 0 || again.Seq != before {
		t.Errorf("nothing happened: %+v", again)
	}
	waited := async(func() []byte { return w.get("wait?after=" + itoa(before)) })

	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.url+"/sim/events?after="+itoa(before), nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := w.http.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()

	m := w.send(fields{"chat_id": ada, "text": "x"})
	got := decode[seen](t, <-waited)
	if len(got.Events) != 1 || got.Events[0].Type != "message" || got.Events[0].MessageID != m.MessageID || got.Seq != before+1 {
		t.Errorf("waited for %+v", got)
	}
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		raw, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		var e event
		if err := json.Unmarshal([]byte(raw), &e); err != nil || e.MessageID != m.MessageID || e.Chat != ada {
			t.Errorf("streamed %s, %v", raw, err)
		}
		return
	}
	t.Error("the stream ended")
}

func TestCallsShowParametersAndResults(t *testing.T) {
	t.Parallel()
	w := started(t)
	w.send(fields{"chat_id": ada, "text": "[1]", "link_preview_options": fields{"is_disabled": true}})
	w.refused(400, "Bad Request: chat not found", "sendMessage", fields{"chat_id": absent, "text": "x"})
	w.ok("sendDocument", fields{"chat_id": ada, "document": upload{"a.txt", []byte("abc")}})
	calls := decode[[]struct {
		Method      string
		Parameters  map[string]any
		Result      map[string]any
		Time        float64
		ErrorCode   int `json:"error_code"`
		Description string
	}](t, w.get("calls?after=2"))
	if len(calls) != 3 {
		t.Fatalf("calls: %+v", calls)
	}
	p := calls[0].Parameters
	if p["text"] != "[1]" || p["chat_id"] != float64(ada) || p["link_preview_options"].(map[string]any)["is_disabled"] != true {
		t.Errorf("parameters: %+v", p)
	}
	if calls[0].Result["text"] != "[1]" || calls[0].Time == 0 {
		t.Errorf("result: %+v", calls[0])
	}
	if calls[1].Result != nil || calls[1].ErrorCode != 400 || calls[1].Description != "Bad Request: chat not found" {
		t.Errorf("refused: %+v", calls[1])
	}
	if f, ok := calls[2].Parameters["document"].(map[string]any); !ok || f["file_name"] != "a.txt" || f["file_size"] != 3.0 {
		t.Errorf("file: %+v", calls[2].Parameters)
	}
}
