package telegramtest

import (
	"bytes"
	"encoding/json"
	"slices"
	"time"
)

// message is one message of a chat, a person's or the bot's. Deleted ones stay, marked.
type message struct {
	id       int64
	chat     *chat
	topic    int64 // of a forum topic; 0 is General, or a chat without topics
	sender   *User
	date     time.Time
	edited   time.Time
	edits    int
	text     string // the caption if there is media
	entities []Entity
	media    *media
	album    string
	keyboard *inlineKeyboard
	markup   json.RawMessage // a markup that is no inline keyboard
	replyTo  *message
	quote    string
	forward  *Origin
	viaBot   *User // the bot through which a person wrote
	asChat   *chat // the chat in whose name an administrator wrote
	silent   bool
	deleted  bool
	service  *service
	// reactions by the id of whoever set them
	reactions map[int64][]reaction
}

// media is a file that a message carries.
type media struct {
	kind string // document, photo or voice
	file *file
}

// service is what a message tells that nobody wrote.
type service struct {
	text     string // for /sim
	created  *TopicCreated
	edited   *TopicEdited
	closed   *struct{}
	joined   []*User
	left     *User
	pinned   *message
	migrated int64 // to this chat
	from     int64 // from this chat
}

// add puts a message at the end of its chat. The caller holds mu.
func (s *Server) add(m *message) *message {
	m.id = s.nextMessageID(m.chat)
	m.date = s.clock()
	m.chat.messages = append(m.chat.messages, m)
	s.note(event{Type: "message", Chat: m.chat.id, Topic: m.topic, MessageID: m.id})
	return m
}

// edit notes an edit that was made. The caller holds mu.
func (s *Server) edit(m *message) {
	m.edited = s.clock()
	m.edits++
	s.note(event{Type: "edit", Chat: m.chat.id, Topic: m.topic, MessageID: m.id})
}

// remove deletes a message for everybody. The caller holds mu.
func (s *Server) remove(m *message) {
	m.deleted = true
	s.note(event{Type: "delete", Chat: m.chat.id, Topic: m.topic, MessageID: m.id})
}

// thread is the message_thread_id of the message. In a supergroup a reply outside of topics carries the id of the
// message that began the thread, which is no topic.
func (m *message) thread() int64 {
	if m.topic != 0 {
		return m.topic
	}
	if m.chat.kind != Supergroup || m.replyTo == nil {
		return 0
	}
	root := m.replyTo
	for root.replyTo != nil {
		root = root.replyTo
	}
	return root.id
}

// view is the Message object. A message in a topic that answers nothing else counts as a reply to the message that
// opened the topic.
func (m *message) view() *MessageView {
	v := m.bare()
	root := m.replyTo
	if root == nil && m.topic != 0 && m.id != m.topic && m.chat.kind == Supergroup {
		root = m.chat.message(m.topic)
	}
	if root != nil && !root.deleted {
		v.ReplyToMessage = root.bare()
	}
	return v
}

// bare is the Message object without what it answers.
func (m *message) bare() *MessageView {
	v := &MessageView{
		MessageID: m.id, MessageThreadID: m.thread(), IsTopicMessage: m.topic != 0, From: m.sender, Date: m.date.Unix(),
		Chat: m.chat.view(), ForwardOrigin: m.forward, MediaGroupID: m.album, ReplyMarkup: m.keyboard,
		ViaBot: m.viaBot,
	}
	if m.asChat != nil {
		v.SenderChat = m.asChat.view()
	}
	if !m.edited.IsZero() {
		v.EditDate = m.edited.Unix()
	}
	if m.media == nil {
		v.Text, v.Entities = m.text, m.entities
	} else {
		v.Caption, v.CaptionEntities = m.text, m.entities
		f := m.media.file.view(m.media.kind)
		switch m.media.kind {
		case "photo":
			v.Photo = []FileView{f}
		case "voice":
			v.Voice = &f
		default:
			v.Document = &f
		}
	}
	if n := m.service; n != nil {
		v.ForumTopicCreated, v.ForumTopicEdited, v.ForumTopicClosed = n.created, n.edited, n.closed
		v.NewChatMembers, v.LeftChatMember = n.joined, n.left
		v.MigrateToChatID, v.MigrateFromChatID = n.migrated, n.from
		if n.pinned != nil {
			v.PinnedMessage = n.pinned.bare()
		}
	}
	return v
}

// same reports whether an edit to text, entities and keyboard would change nothing.
func (m *message) same(text string, entities []Entity, keyboard *inlineKeyboard) bool {
	return m.text == text && slices.EqualFunc(m.entities, entities, func(a, b Entity) bool {
		if (a.User == nil) != (b.User == nil) || (a.User != nil && a.User.ID != b.User.ID) {
			return false
		}
		a.User, b.User = nil, nil
		return a == b
	}) && m.keyboard.same(keyboard)
}

func (k *inlineKeyboard) same(other *inlineKeyboard) bool {
	a, errA := json.Marshal(k)
	b, errB := json.Marshal(other)
	return errA == nil && errB == nil && bytes.Equal(a, b)
}
