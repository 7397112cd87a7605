package telegramtest

import (
	"slices"
	"unicode/utf8"
)

// maxTopicName is the longest name of a topic, in code points.
const maxTopicName = 128

// topicColors are the colours that a topic's icon can have.
func topicColors() []int64 {
	return []int64{0x6FB9F0, 0xFFD67E, 0xCB86DB, 0x8EEE98, 0xFF93B2, 0xFB6F5F}
}

// hasTopics reports whether topics can be made in a chat: in forums, and in private chats of a bot that has them.
func (s *Server) hasTopics(c *chat) bool {
	return c.forum || (c.kind == Private && s.bot.Topics)
}

// openTopic makes a topic, whose id is that of the service message that tells of it.
func (s *Server) openTopic(c *chat, by *User, name string, color int, icon string) (*topic, *message) {
	made := &TopicCreated{Name: name, IconColor: color, IconCustomEmojiID: icon}
	m := &message{chat: c, sender: by, service: &service{text: "topic created: " + name, created: made}}
	s.add(m)
	m.topic = m.id
	t := &topic{id: m.id, name: name, color: color, icon: icon}
	c.topics = append(c.topics, t)
	s.note(event{Type: "topic", Chat: c.id, Topic: t.id, MessageID: m.id})
	return t, m
}

// forum resolves chat_id to a chat whose topics the bot may manage.
func (c *call) forum(what string) (*chat, error) {
	to, err := c.writable()
	switch {
	case err != nil:
		return nil, err
	case !c.s.hasTopics(to):
		return nil, badRequest("the chat is not a forum")
	case to.kind != Private && to.bot != Administrator:
		return nil, badRequest("not enough rights to %s", what)
	default:
		return to, nil
	}
}

// forumTopic resolves chat_id and message_thread_id.
func (c *call) forumTopic(what string) (*chat, *topic, error) {
	to, err := c.forum(what)
	if err != nil {
		return nil, nil, err
	}
	t := to.topic(c.params.int("message_thread_id"))
	if t == nil {
		return nil, nil, badRequest("message thread not found")
	}
	return to, t, nil
}

func (c *call) topicName() (string, error) {
	raw, err := c.params.text("name")
	if err != nil {
		return "", err
	}
	name, _, err := formatted(raw, nil)
	switch n := utf8.RuneCountInString(name); {
	case err != nil:
		return "", err
	case n == 0:
		return "", badRequest("TOPIC_TITLE_EMPTY")
	case n > maxTopicName:
		return "", badRequest("TOPIC_TITLE_TOO_LONG")
	default:
		return name, nil
	}
}

func (c *call) createForumTopic() (any, error) {
	to, err := c.forum("create a topic")
	if err != nil {
		return nil, err
	}
	name, err := c.topicName()
	if err != nil {
		return nil, err
	}
	color := topicColors()[0]
	if c.params.has("icon_color") {
		color = c.params.int("icon_color")
		if !slices.Contains(topicColors(), color) {
			return nil, badRequest("TOPIC_ICON_COLOR_INVALID")
		}
	}
	t, m := c.s.openTopic(to, c.s.me(), name, int(color), c.params.values["icon_custom_emoji_id"])
	made := *m.service.created
	made.MessageThreadID = t.id
	return made, nil
}

func (c *call) editForumTopic() (any, error) {
	to, t, err := c.forumTopic("edit the topic")
	if err != nil {
		return nil, err
	}
	name := t.name
	if c.params.values["name"] != "" {
		if name, err = c.topicName(); err != nil {
			return nil, err
		}
	}
	icon := t.icon
	if c.params.has("icon_custom_emoji_id") {
		icon = c.params.values["icon_custom_emoji_id"]
	}
	if name == t.name && icon == t.icon {
		return nil, badRequest("TOPIC_NOT_MODIFIED")
	}
	edited := &TopicEdited{}
	if name != t.name {
		edited.Name = name
	}
	t.name, t.icon = name, icon
	c.s.add(&message{
		chat: to, topic: t.id, sender: c.s.me(), service: &service{text: "topic renamed: " + name, edited: edited},
	})
	return true, nil
}

func (c *call) closeForumTopic() (any, error) {
	to, t, err := c.forumTopic("close the topic")
	if err != nil {
		return nil, err
	}
	if t.closed || to.kind == Private {
		return nil, badRequest("TOPIC_NOT_MODIFIED")
	}
	t.closed = true
	c.s.add(&message{
		chat: to, topic: t.id, sender: c.s.me(), service: &service{text: "topic closed", closed: &struct{}{}},
	})
	return true, nil
}

// deleteForumTopic deletes a topic and all that was written in it.
func (c *call) deleteForumTopic() (any, error) {
	to, t, err := c.forumTopic("delete the topic")
	if err != nil {
		return nil, err
	}
	for _, m := range to.messages {
		if m.topic == t.id && !m.deleted {
			c.s.remove(m)
		}
	}
	c.s.endDrafts(to, t.id)
	to.topics = slices.DeleteFunc(to.topics, func(one *topic) bool { return one == t })
	c.s.note(event{Type: "topic", Chat: to.id, Topic: t.id})
	return true, nil
}
