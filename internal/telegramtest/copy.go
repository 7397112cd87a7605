package telegramtest

import (
	"encoding/json"
	"slices"
	"strconv"
)

// source resolves from_chat_id and message_id of a copy or forward.
func (c *call) source() (*message, error) {
	from := *c
	from.params.values = map[string]string{"chat_id": c.params.values["from_chat_id"]}
	if from.params.values["chat_id"] == "" {
		return nil, badRequest("chat_id is empty")
	}
	where, err := from.visible()
	if err != nil {
		return nil, err
	}
	return where.message(c.params.int("message_id")), nil
}

func (c *call) forwardMessage() (any, error) {
	m, err := c.outgoing()
	if err != nil {
		return nil, err
	}
	from, err := c.source()
	if err != nil {
		return nil, err
	}
	if from == nil || from.service != nil {
		return nil, badRequest("message to forward not found")
	}
	m.text, m.entities, m.media = from.text, from.entities, from.media
	m.forward = from.forward
	if m.forward == nil {
		m.forward = &Origin{Type: "user", Date: from.date.Unix(), SenderUser: from.sender}
	}
	return c.post(m)
}

func (c *call) copyMessage() (any, error) {
	m, err := c.outgoing()
	if err != nil {
		return nil, err
	}
	from, err := c.source()
	if err != nil {
		return nil, err
	}
	if from == nil || from.service != nil {
		return nil, badRequest("message to copy not found")
	}
	m.text, m.entities, m.media = from.text, from.entities, from.media
	if m.media != nil && c.params.has("caption") {
		if m.text, m.entities, err = c.caption(); err != nil {
			return nil, err
		}
	}
	if _, err := c.post(m); err != nil {
		return nil, err
	}
	return map[string]int64{"message_id": m.id}, nil
}

// reactionEmoji are those of the emoji that can stand as a reaction which are simulated.
func reactionEmoji() []string {
	return []string{"👍", "👎", "❤", "🔥", "🎉", "👏", "🤔", "👀", "🙏", "👌", "💯", "⚡", "🏆", "✍", "😁", "😱", "🤯", "😢", "🤝", "🫡", "🆒", "👨‍💻"}
}

type reaction struct {
	Type  string `json:"type"`
	Emoji string `json:"emoji,omitempty"`
}

// setMessageReaction replaces the bot's reaction, of which there can be one.
func (c *call) setMessageReaction() (any, error) {
	to, err := c.writable()
	if err != nil {
		return nil, err
	}
	m := to.message(c.params.int("message_id"))
	if m == nil {
		return nil, badRequest("message to react not found")
	}
	var list []reaction
	if _, err := c.params.object("reaction", "reaction types", &list); err != nil {
		return nil, err
	}
	if len(list) > 1 {
		return nil, badRequest("REACTIONS_TOO_MANY")
	}
	for _, r := range list {
		if r.Type != "emoji" || !slices.Contains(reactionEmoji(), r.Emoji) {
			return nil, badRequest("REACTION_INVALID")
		}
	}
	m.react(c.s.bot.ID, list)
	c.s.note(event{Type: "reaction", Chat: to.id, Topic: m.topic, MessageID: m.id})
	return true, nil
}

// react sets somebody's reactions to a message and returns those before.
func (m *message) react(who int64, list []reaction) []reaction {
	if m.reactions == nil {
		m.reactions = map[int64][]reaction{}
	}
	old := m.reactions[who]
	m.reactions[who] = list
	if len(list) == 0 {
		delete(m.reactions, who)
	}
	return append([]reaction{}, old...)
}

// shownReactions are the emoji by the id of whoever set them.
func (m *message) shownReactions() json.RawMessage {
	if len(m.reactions) == 0 {
		return nil
	}
	out := map[string][]string{}
	for who, list := range m.reactions {
		for _, r := range list {
			out[strconv.FormatInt(who, 10)] = append(out[strconv.FormatInt(who, 10)], r.Emoji)
		}
	}
	raw, err := json.Marshal(out)
	if err != nil {
		return nil
	}
	return raw
}
