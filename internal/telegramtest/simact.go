package telegramtest

import (
	"encoding/base64"
	"encoding/json"
	"math"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"
)

const defaultTapWait = 15 // seconds

const (
	otherBot int64 = 987654321
	// anonymousAdmin is the account that Telegram shows in the place of an anonymous administrator.
	anonymousAdmin int64 = 1087968824
)

type simUpload struct {
	Name   string `json:"name"`
	Base64 string `json:"base64"`
}

// simSend lets a person write.
func (s *Server) simSend(r *http.Request) (any, error) {
	var in struct {
		Chat     int64           `json:"chat"`
		From     int64           `json:"from"`
		Text     string          `json:"text"`
		Entities []Entity        `json:"entities"`
		Topic    int64           `json:"topic"`
		ReplyTo  int64           `json:"reply_to"`
		Photo    *simUpload      `json:"photo"`
		Document *simUpload      `json:"document"`
		Voice    *simUpload      `json:"voice"`
		Album    string          `json:"album"`
		Forward  json.RawMessage `json:"forward"`
		// ViaBot is the name of another bot through which the person writes.
		ViaBot string `json:"via_bot"`
		// Anonymous hides an administrator behind the group.
		Anonymous bool `json:"anonymous"`
	}
	if err := body(r, &in); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c, p, err := s.here(in.Chat, in.From)
	if err != nil {
		return nil, err
	}
	m := &message{chat: c, sender: p.user(), topic: in.Topic, text: in.Text}
	if err := s.personText(m, in.Entities); err != nil {
		return nil, err
	}
	if err := s.personPlace(m, in.ReplyTo); err != nil {
		return nil, err
	}
	if m.forward, err = s.origin(in.Forward); err != nil {
		return nil, err
	}
	if in.ViaBot != "" {
		m.viaBot = &User{ID: otherBot, IsBot: true, FirstName: in.ViaBot, Username: in.ViaBot}
	}
	if in.Anonymous {
		if c.kind == Private {
			return nil, refuse(http.StatusConflict, "nobody is anonymous in a private chat")
		}
		m.sender, m.asChat = &User{ID: anonymousAdmin, IsBot: true, FirstName: "Group", Username: "GroupAnonymousBot"}, c
	}
	for _, one := range []struct {
		kind string
		up   *simUpload
	}{{"photo", in.Photo}, {"document", in.Document}, {"voice", in.Voice}} {
		if one.up == nil {
			continue
		}
		if m.media != nil {
			return nil, refuse(http.StatusBadRequest, "only one of photo, document and voice can be sent")
		}
		data, err := base64.StdEncoding.DecodeString(one.up.Base64)
		if err != nil || len(data) == 0 {
			return nil, refuse(http.StatusBadRequest, "base64 of %s is empty or wrong", one.kind)
		}
		m.media = &media{kind: one.kind, file: s.store(one.kind, one.up.Name, "", data)}
	}
	limit := MaxText
	if m.media != nil {
		limit = MaxCaption
	}
	switch n := utf8.RuneCountInString(m.text); {
	case n == 0 && m.media == nil:
		return nil, refuse(http.StatusBadRequest, "the text is empty")
	case n > limit:
		return nil, refuse(http.StatusBadRequest, "the text has %d characters, a message has at most %d", n, limit)
	}
	if in.Album != "" {
		m.album = c.mediaGroup(in.Album)
	}
	if c.kind == Private {
		c.bot, p.blocked = Member, false
	}
	s.add(m)
	s.tell("message", m)
	return map[string]int64{"message_id": m.id}, nil
}

// personText cleans what a person wrote and marks the bot commands in it, as Telegram does.
func (s *Server) personText(m *message, entities []Entity) error {
	text, clean, err := formatted(m.text, entities)
	if err != nil {
		return refuse(http.StatusBadRequest, "%s", err)
	}
	m.text, m.entities = text, slices.Concat(clean, commandsIn(text))
	sortEntities(m.entities)
	return nil
}

var commandPattern = regexp.MustCompile(`(?:^|[^\w/@<>])(/[A-Za-z0-9_]{1,64}(?:@[A-Za-z0-9_]{3,32})?)(?:$|[^\w/@])`)

// commandsIn finds bot commands.
func commandsIn(text string) []Entity {
	var out []Entity
	for begin := 0; begin < len(text); {
		at := commandPattern.FindStringSubmatchIndex(text[begin:])
		if at == nil {
			break
		}
		from, to := begin+at[2], begin+at[3]
		out = append(out, Entity{Type: "bot_command", Offset: units(text[:from]), Length: units(text[from:to])})
		begin = to
	}
	return out
}

// units is the length of a text in UTF-16 code units.
func units(s string) int { return len(utf16.Encode([]rune(s))) }

// personPlace checks where a person writes: the topic and the message that is answered.
func (s *Server) personPlace(m *message, replyTo int64) error {
	if replyTo != 0 {
		m.replyTo = m.chat.message(replyTo)
		if m.replyTo == nil {
			return refuse(http.StatusNotFound, "there is no message %d to reply to", replyTo)
		}
		if m.topic == 0 {
			m.topic = m.replyTo.topic
		}
		if m.topic != m.replyTo.topic {
			return refuse(http.StatusConflict, "message %d is in another topic", replyTo)
		}
	}
	if m.topic == 0 {
		return nil
	}
	switch t := m.chat.topic(m.topic); {
	case t == nil:
		return refuse(http.StatusNotFound, "there is no topic %d in chat %d", m.topic, m.chat.id)
	case t.closed:
		return refuse(http.StatusConflict, "topic %d is closed", m.topic)
	default:
		return nil
	}
}

// origin reads "forward": true, a person's id, or the name of somebody who hides their account.
func (s *Server) origin(raw json.RawMessage) (*Origin, error) {
	var v any
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &v); err != nil {
			return nil, refuse(http.StatusBadRequest, "forward is no JSON")
		}
	}
	date := s.clock().Unix()
	switch v := v.(type) {
	case nil:
		return nil, nil
	case bool:
		if !v {
			return nil, nil
		}
		return &Origin{Type: "hidden_user", Date: date, SenderUserName: "Somebody"}, nil
	case string:
		return &Origin{Type: "hidden_user", Date: date, SenderUserName: v}, nil
	case float64:
		if p := s.person(int64(v)); p != nil {
			return &Origin{Type: "user", Date: date, SenderUser: p.user()}, nil
		}
		return nil, refuse(http.StatusNotFound, "there is no person %v to forward from", v)
	default:
		return nil, refuse(http.StatusBadRequest, "forward is true, a person's id or a name")
	}
}

// mediaGroup is the media_group_id behind the name that whoever controls the server gave to an album.
func (c *chat) mediaGroup(album string) string {
	if c.albums == nil {
		c.albums = map[string]string{}
	}
	if c.albums[album] == "" {
		c.albums[album] = strconv.FormatInt(randomID(), 10)
	}
	return c.albums[album]
}

// tell sends a person's message to the bot, if the bot sees it.
func (s *Server) tell(kind string, m *message) {
	if s.sees(m) {
		s.push(kind, m.view())
	}
}

// sees reports whether the bot gets a message: it is in the chat, and in groups its privacy lets the message through.
func (s *Server) sees(m *message) bool {
	c := m.chat
	switch {
	case c.kind == Private:
		return !c.owner.blocked
	case c.bot == Left || c.bot == Kicked:
		return false
	case !s.bot.Privacy || c.bot == Administrator || m.service != nil:
		return true
	default:
		return strings.HasPrefix(m.text, "/") || (m.replyTo != nil && m.replyTo.sender.ID == s.bot.ID) ||
			strings.Contains(strings.ToLower(m.text), "@"+strings.ToLower(s.bot.Username))
	}
}

// simTap lets a person press a button and waits for the bot's answer to it.
func (s *Server) simTap(r *http.Request) (any, error) {
	var in struct {
		Chat      int64           `json:"chat"`
		From      int64           `json:"from"`
		MessageID int64           `json:"message_id"`
		Button    json.RawMessage `json:"button"`
		Wait      *float64        `json:"wait"`
	}
	if err := body(r, &in); err != nil {
		return nil, err
	}
	wait := float64(defaultTapWait)
	if in.Wait != nil {
		wait = math.Min(math.Max(0, *in.Wait), 600)
	}
	q, err := s.press(in.Chat, in.From, in.MessageID, in.Button)
	if err != nil {
		return nil, err
	}
	var out struct {
		Answered bool   `json:"answered"`
		Text     string `json:"text"`
		Alert    bool   `json:"alert"`
		QueryID  string `json:"query_id"`
	}
	s.await(r.Context(), time.Duration(wait*float64(time.Second)), func() bool {
		out.Answered, out.Text, out.Alert, out.QueryID = q.answered, q.text, q.alert, q.id
		return q.answered
	})
	return out, nil
}

func (s *Server) press(chatID, from, messageID int64, which json.RawMessage) (*query, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, p, err := s.here(chatID, from)
	if err != nil {
		return nil, err
	}
	m := c.message(messageID)
	if m == nil {
		return nil, refuse(http.StatusNotFound, "there is no message %d in chat %d", messageID, chatID)
	}
	b, err := m.button(which)
	if err != nil {
		return nil, err
	}
	switch {
	case b.Disabled != nil:
		return nil, refuse(http.StatusConflict, "the button %q is disabled", b.Text)
	case b.CallbackData == "":
		return nil, refuse(http.StatusConflict, "the button %q sends nothing to the bot", b.Text)
	}
	return s.tap(p, m, b), nil
}

// button finds a button by its label or by [row, column], counted from 0.
func (m *message) button(which json.RawMessage) (button, error) {
	var label string
	var at []int
	var rows [][]button
	if m.keyboard != nil {
		rows = m.keyboard.Rows
	}
	switch {
	case json.Unmarshal(which, &label) == nil:
		for _, row := range rows {
			for _, b := range row {
				if b.Text == label {
					return b, nil
				}
			}
		}
		return button{}, refuse(http.StatusNotFound, "message %d has no button %q", m.id, label)
	case json.Unmarshal(which, &at) == nil && len(at) == 2:
		if at[0] < 0 || at[0] >= len(rows) || at[1] < 0 || at[1] >= len(rows[at[0]]) {
			return button{}, refuse(http.StatusNotFound, "message %d has no button at row %d, column %d", m.id, at[0], at[1])
		}
		return rows[at[0]][at[1]], nil
	default:
		return button{}, refuse(http.StatusBadRequest, "button is a label or [row, column]")
	}
}

// simFault orders something to go wrong, or takes all orders back.
func (s *Server) simFault(r *http.Request) (any, error) {
	var in struct {
		fault

		Clear bool `json:"clear"`
	}
	if err := body(r, &in); err != nil {
		return nil, err
	}
	f := in.fault
	if why := f.valid(); why != "" && !in.Clear {
		return nil, refuse(http.StatusBadRequest, "%s", why)
	}
	if f.Times == 0 {
		f.Times = 1
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if in.Clear {
		s.faults = nil
	} else {
		s.faults = append(s.faults, &f)
	}
	return map[string]int{"faults": len(s.faults)}, nil
}

// simClock moves the server's clock forward.
func (s *Server) simClock(r *http.Request) (any, error) {
	var in struct {
		AdvanceMS int64 `json:"advance_ms"`
	}
	if err := body(r, &in); err != nil {
		return nil, err
	}
	if in.AdvanceMS < 0 {
		return nil, refuse(http.StatusBadRequest, "advance_ms is negative: the clock goes forward only")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.advance += time.Duration(in.AdvanceMS) * time.Millisecond
	s.touch()
	return map[string]float64{"time": seconds(s.clock())}, nil
}
