package e2e_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"drawbridge/internal/telegramtest"
)

const (
	ada     = telegramtest.AdaID     // the owner
	grace   = telegramtest.GraceID   // an operator
	linus   = telegramtest.LinusID   // a viewer
	mallory = telegramtest.MalloryID // a stranger
	group   = telegramtest.GroupID
	forum   = telegramtest.ForumID
)

// sim is the side of the simulated Telegram on which its people are. It speaks HTTP, as any program outside would.
type sim struct {
	t   *testing.T
	url string
}

type message struct {
	ID       int64                 `json:"message_id"`
	From     int64                 `json:"from"`
	Topic    int64                 `json:"topic"`
	Text     string                `json:"text"`
	Entities []telegramtest.Entity `json:"entities"`
	Buttons  [][]button            `json:"buttons"`
	Document *document             `json:"document"`
	Edits    int                   `json:"edits"`
	Silent   bool                  `json:"silent"`
	ReplyTo  int64                 `json:"reply_to"`
	Deleted  bool                  `json:"deleted"`
}

type button struct {
	Text     string `json:"text"`
	Style    string `json:"style"`
	Disabled bool   `json:"disabled"`
	Data     string `json:"callback_data"`
}

type document struct {
	Name   string `json:"name"`
	Size   int    `json:"size"`
	FileID string `json:"file_id"`
}

// tapped is what a person sees after a tap.
type tapped struct {
	Answered bool   `json:"answered"`
	Text     string `json:"text"`
	Alert    bool   `json:"alert"`
}

type call struct {
	Seq         int             `json:"seq"`
	Method      string          `json:"method"`
	Parameters  map[string]any  `json:"parameters"`
	Time        float64         `json:"time"`
	OK          bool            `json:"ok"`
	Result      json.RawMessage `json:"result"`
	ErrorCode   int             `json:"error_code"`
	Description string          `json:"description"`
}

func (m message) has(label string) bool {
	for _, row := range m.Buttons {
		for _, b := range row {
			if b.Text == label {
				return true
			}
		}
	}
	return false
}

// labels are the texts of the buttons, row by row.
func (m message) labels() []string {
	var out []string
	for _, row := range m.Buttons {
		for _, b := range row {
			out = append(out, b.Text)
		}
	}
	return out
}

// get reads from /sim.
func (s sim) get(path string, v any) {
	s.t.Helper()
	if status := s.try(http.MethodGet, path, nil, v); status != http.StatusOK {
		s.t.Fatalf("GET %s: status %d", path, status)
	}
}

// post acts on /sim and demands that it is possible.
func (s sim) post(path string, body, v any) {
	s.t.Helper()
	if status := s.try(http.MethodPost, path, body, v); status != http.StatusOK {
		s.t.Fatalf("POST %s %v: status %d", path, body, status)
	}
}

// try makes one request; what is refused has its text in v if v is a *string.
func (s sim) try(method, path string, body, v any) int {
	s.t.Helper()
	b, err := json.Marshal(body)
	if err != nil {
		s.t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, bytes.NewReader(b))
	if err != nil {
		s.t.Fatal(err)
	}
	if method == http.MethodPost {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatalf("%s %s: %v", method, path, err)
	}
	defer resp.Body.Close() //nolint:errcheck // read to its end
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatalf("%s %s: %v", method, path, err)
	}
	if raw, ok := v.(*string); ok {
		*raw = string(text)
	} else if v != nil && resp.StatusCode == http.StatusOK {
		if err := json.Unmarshal(text, v); err != nil {
			s.t.Fatalf("%s %s: %v in %s", method, path, err, text)
		}
	}
	return resp.StatusCode
}

// calls are the bot's calls of a method, those that failed too.
func (s sim) calls(method string) []call {
	s.t.Helper()
	var out []call
	s.get("/sim/calls?method="+url.QueryEscape(method), &out)
	return out
}

// fault makes calls go wrong; see docs/sim.md.
func (s sim) fault(f map[string]any) {
	s.t.Helper()
	s.post("/sim/faults", f, nil)
}

// eventually returns when ok does, looking again whenever something happens in the simulated Telegram, and now and then.
func (s sim) eventually(what string, ok func() bool) {
	s.t.Helper()
	var seen struct {
		Seq int64 `json:"seq"`
	}
	for end := time.Now().Add(patience); ; {
		after := seen.Seq
		s.get(fmt.Sprintf("/sim/wait?after=%d&timeout=0", after), &seen)
		if ok() {
			return
		}
		if time.Now().After(end) {
			s.t.Fatalf("did not come to pass: %s", what)
		}
		s.get(fmt.Sprintf("/sim/wait?after=%d&timeout=1", seen.Seq), nil)
	}
}

// seat is a person in a chat.
type seat struct {
	sim
	chat, topic, person int64
}

// in is a person in another chat, or another person in this one.
func (s sim) in(chat, person int64) seat { return seat{sim: s, chat: chat, person: person} }

// private is a person's private chat with the bot.
func (s sim) private(person int64) seat { return s.in(person, person) }

// say writes to the bot; more are further fields of POST /sim/messages.
func (s seat) say(text string, more ...map[string]any) int64 {
	s.t.Helper()
	body := map[string]any{"chat": s.chat, "from": s.person, "text": text}
	if s.topic != 0 {
		body["topic"] = s.topic
	}
	for _, m := range more {
		maps.Copy(body, m)
	}
	var sent message
	s.post("/sim/messages", body, &sent)
	return sent.ID
}

// tap taps a button, by its label or its place, and returns what the person sees.
func (s seat) tap(message int64, label any) tapped {
	s.t.Helper()
	var seen tapped
	s.post("/sim/taps", map[string]any{"chat": s.chat, "from": s.person, "message_id": message, "button": label, "wait": patience.Seconds()}, &seen)
	if !seen.Answered {
		s.t.Fatalf("a tap on %v was not answered", label)
	}
	return seen
}

// messages are those that stand in the chat, oldest first.
func (s seat) messages() []message {
	s.t.Helper()
	q := url.Values{}
	if s.topic != 0 {
		q.Set("topic", strconv.FormatInt(s.topic, 10))
	}
	var all, out []message
	s.get(fmt.Sprintf("/sim/chats/%d/messages?%s", s.chat, q.Encode()), &all)
	for _, m := range all {
		if !m.Deleted {
			out = append(out, m)
		}
	}
	return out
}

// message is one of them, as it stands.
func (s seat) message(id int64) message {
	s.t.Helper()
	for _, m := range s.messages() {
		if m.ID == id {
			return m
		}
	}
	return message{}
}

// bots are the bot's messages after one.
func (s seat) bots(after int64) []message {
	s.t.Helper()
	var out []message
	for _, m := range s.messages() {
		if m.ID > after && m.From != s.person && (m.From < 1000 || m.From > 2000) {
			out = append(out, m)
		}
	}
	return out
}

// expect waits for a message of the bot after the given one that fits, and returns it.
func (s seat) expect(after int64, what string, fits func(message) bool) message {
	s.t.Helper()
	var found message
	s.eventually(what, func() bool {
		for _, m := range s.bots(after) {
			if fits(m) {
				found = m
				return true
			}
		}
		return false
	})
	return found
}

// hears waits for a message of the bot that contains text.
func (s seat) hears(after int64, text string) message {
	s.t.Helper()
	return s.expect(after, "the bot says "+strconv.Quote(text), func(m message) bool { return strings.Contains(m.Text, text) })
}

// card waits for an open card that contains text.
func (s seat) card(after int64, text string) message {
	s.t.Helper()
	return s.expect(after, "a card with "+strconv.Quote(text), func(m message) bool {
		return m.has("Deny") && strings.Contains(m.Text, text)
	})
}

// turns waits until a message says text, such as a card that was decided.
func (s seat) turns(id int64, text string) message {
	s.t.Helper()
	return s.expect(id-1, fmt.Sprintf("message %d says %q", id, text), func(m message) bool {
		return m.ID == id && strings.Contains(m.Text, text)
	})
}

// decided waits until a card says how it was decided and has no buttons. A gateway that was killed between sending a card
// and noting so may send it once more; then one of the two says so, and the one that was tapped has no buttons either.
func (s seat) decided(card message, outcome string) {
	s.t.Helper()
	s.expect(card.ID-1, fmt.Sprintf("the card %d says %q", card.ID, outcome), func(m message) bool {
		return strings.HasPrefix(m.Text, outcome+"\n") && len(m.Buttons) == 0 && len(s.message(card.ID).Buttons) == 0
	})
}

// ends waits for the end of the turn that a prompt began.
func (s seat) ends(prompt int64, text string) message {
	s.t.Helper()
	return s.expect(prompt, "a turn that ended: "+text, func(m message) bool {
		return m.ReplyTo == prompt && strings.HasPrefix(m.Text, text)
	})
}

func (s seat) transcript() string {
	s.t.Helper()
	return transcript(s.messages())
}

func transcript(messages []message) string {
	var b strings.Builder
	for _, m := range messages {
		fmt.Fprintf(&b, "%d from %d (reply to %d, %d edits): %q %q\n", m.ID, m.From, m.ReplyTo, m.Edits, m.Text, m.labels())
	}
	return b.String()
}
