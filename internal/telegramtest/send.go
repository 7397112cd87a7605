package telegramtest

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxQuote is how much of a message can be quoted, in code points.
const maxQuote = 1024

func (c *call) getMe() (any, error) {
	return struct {
		User
		CanJoinGroups           bool `json:"can_join_groups"`
		CanReadAllGroupMessages bool `json:"can_read_all_group_messages"`
		SupportsInlineQueries   bool `json:"supports_inline_queries"`
		HasTopicsEnabled        bool `json:"has_topics_enabled"`
	}{*c.s.me(), true, !c.s.bot.Privacy, false, c.s.bot.Topics}, nil
}

// chat resolves chat_id to a chat that the bot can see.
func (c *call) chat() (*chat, error) {
	raw := strings.TrimSpace(c.params.values["chat_id"])
	if raw == "" {
		return nil, badRequest("chat_id is empty")
	}
	var found *chat
	if name, ok := strings.CutPrefix(raw, "@"); ok {
		for _, one := range c.s.chats {
			if one.kind != Private && name != "" && strings.EqualFold(one.username, name) {
				found = one
			}
		}
	} else if id, err := strconv.ParseInt(raw, 10, 64); err == nil {
		found = c.s.chat(id)
	}
	switch {
	case found == nil:
		return nil, badRequest("chat not found")
	case found.migratedTo != 0:
		return nil, &refusal{
			code: 400, description: "Bad Request: group chat was upgraded to a supergroup chat", migrateTo: found.migratedTo,
		}
	default:
		return found, nil
	}
}

// writable resolves chat_id to a chat into which the bot may write.
func (c *call) writable() (*chat, error) {
	to, err := c.chat()
	if err != nil {
		return nil, err
	}
	return to, c.s.mayWrite(to)
}

func (s *Server) mayWrite(to *chat) error {
	if to.kind == Private {
		switch {
		case to.owner.blocked:
			return forbidden("bot was blocked by the user")
		case to.bot == Member:
			return nil
		case s.meets(to.id):
			return forbidden("bot can't initiate conversation with a user")
		default:
			return badRequest("chat not found") // whom the bot never met does not exist for it
		}
	}
	kind := "group"
	if to.kind == Supergroup {
		kind = "supergroup"
	}
	switch to.bot {
	case Kicked:
		return forbidden("bot was kicked from the " + kind + " chat")
	case Left:
		return forbidden("bot is not a member of the " + kind + " chat")
	default:
		return nil
	}
}

// meets reports whether the bot shares a group with a person.
func (s *Server) meets(person int64) bool {
	for _, c := range s.chats {
		if c.kind != Private && c.bot != Left && c.bot != Kicked && c.has(person) {
			return true
		}
	}
	return false
}

// formattedText is the text, or the caption, of a call with its entities, cleaned and checked.
func (c *call) formattedText(field, entitiesField string) (string, []Entity, error) {
	text, err := c.params.text(field)
	if err != nil {
		return "", nil, err
	}
	if mode := strings.ToLower(c.params.values["parse_mode"]); mode != "" && mode != "none" {
		return c.s.parsed(text, mode)
	}
	entities, err := c.s.parseEntities(c.params.values[entitiesField])
	if err != nil {
		return "", nil, err
	}
	return formatted(text, entities)
}

// messageText is the text of a message, which can be neither empty nor too long.
func (c *call) messageText() (string, []Entity, error) {
	text, entities, err := c.formattedText("text", "entities")
	switch {
	case err != nil:
		return "", nil, err
	case text == "":
		return "", nil, badRequest("message text is empty")
	case utf8.RuneCountInString(text) > MaxText:
		return "", nil, badRequest("message is too long")
	}
	var preview map[string]any
	_, err = c.params.object("link_preview_options", "link preview options", &preview)
	return text, entities, err
}

// outgoing is a message of the bot with everything but its content.
func (c *call) outgoing() (*message, error) {
	to, err := c.writable()
	if err != nil {
		return nil, err
	}
	m := &message{chat: to, sender: c.s.me(), silent: c.params.bool("disable_notification")}
	if m.topic, err = c.topic(to); err != nil {
		return nil, err
	}
	if err := c.answerTo(m); err != nil {
		return nil, err
	}
	markup, err := c.params.replyMarkup(to.kind)
	if err != nil {
		return nil, err
	}
	m.keyboard, m.markup = markup.inline, markup.other
	return m, nil
}

// topic checks message_thread_id. General has no id that could be sent, although it is topic 1 elsewhere.
func (c *call) topic(to *chat) (int64, error) {
	id := c.params.int("message_thread_id")
	if id == 0 {
		return 0, nil
	}
	t := to.topic(id)
	if t == nil {
		return 0, badRequest("message thread not found")
	}
	if t.closed && to.bot != Administrator {
		return 0, badRequest("TOPIC_CLOSED")
	}
	return id, nil
}

// answerTo resolves reply_parameters.
func (c *call) answerTo(m *message) error {
	var r struct {
		MessageID int64  `json:"message_id"`
		ChatID    any    `json:"chat_id"`
		Anyway    bool   `json:"allow_sending_without_reply"`
		Quote     string `json:"quote"`
	}
	given, err := c.params.object("reply_parameters", "reply parameters", &r)
	if err != nil {
		return err
	}
	if !given {
		r.MessageID, r.Anyway = c.params.int("reply_to_message_id"), c.params.bool("allow_sending_without_reply")
		if r.MessageID == 0 {
			return nil
		}
	}
	to := m.chat.message(r.MessageID)
	if to != nil && m.topic == 0 {
		m.topic = to.topic // an answer stands where the question does
	}
	if to == nil || to.topic != m.topic {
		if r.Anyway {
			return nil
		}
		return badRequest("message to be replied not found")
	}
	if r.Quote != "" && (utf8.RuneCountInString(r.Quote) > maxQuote || !strings.Contains(to.text, r.Quote)) {
		return badRequest("QUOTE_TEXT_INVALID")
	}
	m.replyTo, m.quote = to, r.Quote
	return nil
}

// spend takes what a message costs by Telegram's rates.
func (c *call) spend(to *chat, draft bool) error {
	if wait := c.s.limits.take(to, draft, c.now); wait > 0 {
		return tooManyRequests(wait)
	}
	return nil
}

// post adds a message of the bot, which ends the draft that stood in its place.
func (c *call) post(m *message) (any, error) {
	if err := c.spend(m.chat, false); err != nil {
		return nil, err
	}
	c.s.endDrafts(m.chat, m.topic)
	return c.s.add(m).view(), nil
}

func (c *call) sendMessage() (any, error) {
	text, entities, err := c.messageText()
	if err != nil {
		return nil, err
	}
	m, err := c.outgoing()
	if err != nil {
		return nil, err
	}
	m.text, m.entities = text, entities
	return c.post(m)
}

func (c *call) sendChatAction() (any, error) {
	switch c.params.values["action"] {
	case "typing", "upload_photo", "record_video", "upload_video", "record_voice", "upload_voice", "upload_document",
		"choose_sticker", "find_location", "record_video_note", "upload_video_note":
	default:
		return nil, badRequest("wrong parameter action in request")
	}
	to, err := c.writable()
	if err != nil {
		return nil, err
	}
	topic, err := c.topic(to)
	if err != nil {
		return nil, err
	}
	c.s.note(event{Type: "action", Chat: to.id, Topic: topic, Text: c.params.values["action"]})
	return true, nil
}
