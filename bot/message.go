package bot

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"drawbridge/formatting"

	"github.com/go-telegram/bot/models"
)

// Version is the version of the records of this package as they are written.
const Version = 1

// generalTopic is the thread id of a forum's General topic. Telegram refuses messages addressed to it by number: the
// forum itself is the address.
const generalTopic = 1

// ChatRef is a chat as Drawbridge means it: a Telegram chat, or one forum topic of it.
type ChatRef struct {
	ID    int64 `json:"id"`
	Topic int   `json:"topic,omitempty"` // 0: the chat itself, or General
}

// Key is the chat's name everywhere outside this package: "-100123", or "-100123/45" for a topic.
func (c ChatRef) Key() string {
	id := strconv.FormatInt(c.ID, 10)
	if c.Topic == 0 {
		return id
	}
	return id + "/" + strconv.Itoa(c.Topic)
}

// Private reports whether the chat is one with a single person, or a topic of it: Telegram gives those positive ids.
func (c ChatRef) Private() bool { return c.ID > 0 }

// ParseChat is the inverse of Key.
func ParseChat(key string) (ChatRef, error) {
	id, topic, in := strings.Cut(key, "/")
	var c ChatRef
	var err error
	if c.ID, err = strconv.ParseInt(id, 10, 64); err == nil && in {
		c.Topic, err = strconv.Atoi(topic)
	}
	if err != nil || c.Key() != key || c.ID == 0 {
		return ChatRef{}, fmt.Errorf("bot: chat key %q: want a chat id, or a chat id and a topic id as -100123/45", key)
	}
	return c, nil
}

// ChatOf is the chat that m was written in. The thread id counts only on a topic's message: replies in General and in
// plain groups carry one that is not a topic (tdlib/telegram-bot-api#447).
func ChatOf(m *models.Message) ChatRef {
	c := ChatRef{ID: m.Chat.ID}
	if m.IsTopicMessage && m.MessageThreadID != generalTopic {
		c.Topic = m.MessageThreadID
	}
	return c
}

// Origin is where u came from: its chat (zero if it has none) and the person who caused it (0 if unknown).
func Origin(u *models.Update) (chat ChatRef, person int64) {
	from := func(m *models.Message) (ChatRef, int64) {
		if m.From == nil {
			return ChatOf(m), 0
		}
		return ChatOf(m), m.From.ID
	}
	switch {
	case u.Message != nil:
		return from(u.Message)
	case u.EditedMessage != nil:
		return from(u.EditedMessage)
	case u.CallbackQuery != nil:
		q := u.CallbackQuery
		if m := q.Message.Message; m != nil {
			chat = ChatOf(m)
		} else if m := q.Message.InaccessibleMessage; m != nil {
			chat = ChatRef{ID: m.Chat.ID}
		}
		return chat, q.From.ID
	case u.MyChatMember != nil:
		return ChatRef{ID: u.MyChatMember.Chat.ID}, u.MyChatMember.From.ID
	case u.ChatMember != nil:
		return ChatRef{ID: u.ChatMember.Chat.ID}, u.ChatMember.From.ID
	case u.StoppedMessageGeneration != nil:
		s := u.StoppedMessageGeneration
		chat = ChatRef{ID: s.Chat.ID}
		if s.MessageThreadID != generalTopic {
			chat.Topic = s.MessageThreadID
		}
		return chat, s.Chat.ID // drafts exist in private chats only, whose id is the person's
	}
	return ChatRef{}, 0
}

// Kind is what an Outgoing does.
type Kind string

// The kinds of an Outgoing.
const (
	KindSend     Kind = "send"     // a text message
	KindEdit     Kind = "edit"     // another text and other buttons for a message
	KindButtons  Kind = "buttons"  // other buttons for a message, its text as it is
	KindDelete   Kind = "delete"   // the end of a message
	KindDocument Kind = "document" // a file, with Text as its caption
	KindDraft    Kind = "draft"    // a preview in a private chat; only for Live
)

// Outgoing is one thing to be done in a chat. It is stored until Telegram has taken it.
type Outgoing struct {
	V    int     `json:"v"`
	ID   string  `json:"id"` // given by Put if empty
	Chat ChatRef `json:"chat"`
	Kind Kind    `json:"kind"`
	// Slot names a message before Telegram has numbered it, in the caller's words and unique for ever: a send or
	// document with a slot gives the message its name, an edit, buttons or delete addresses it. Letters, digits and any
	// of ":._-/" are customary.
	Slot string `json:"slot,omitempty"`
	// MessageID addresses an existing message instead of Slot, for KindEdit, KindButtons and KindDelete.
	MessageID int `json:"message_id,omitempty"`
	// Upsert makes an edit a send when the slot's message was never sent or is gone; without it such an edit is dropped.
	Upsert bool `json:"upsert,omitempty"`
	// Final says that nothing follows for the slot: Live calls for it are ignored once this was delivered.
	Final    bool                `json:"final,omitempty"`
	Text     string              `json:"text,omitempty"` // within Telegram's limits; formatting splits
	Entities []formatting.Entity `json:"entities,omitempty"`
	// Buttons stand under the message in rows. An edit without buttons removes those that are there.
	Buttons [][]Button `json:"buttons,omitempty"`
	// ReplyTo and ReplyToSlot name the message that this one answers. If it is gone, the message stands alone.
	ReplyTo     int    `json:"reply_to,omitempty"`
	ReplyToSlot string `json:"reply_to_slot,omitempty"`
	// Silent delivers without a sound.
	Silent   bool      `json:"silent,omitempty"`
	Document *Document `json:"document,omitempty"`
	// Draft is the number of a KindDraft, not 0; CanStop shows Telegram's own Stop button beside it.
	Draft   int       `json:"draft,omitempty"`
	CanStop bool      `json:"can_stop,omitempty"`
	Created time.Time `json:"created,omitzero"` // by the store's clock, set by Put
}

// Button is one button of a message. Exactly one of Data, URL, Copy and Disabled says what it does.
type Button struct {
	Text string `json:"text"`
	Data string `json:"data,omitempty"` // comes back with the tap; at most 64 bytes
	// Style is "success", "danger", "primary" or empty.
	Style    string `json:"style,omitempty"`
	URL      string `json:"url,omitempty"`
	Copy     string `json:"copy,omitempty"` // what a tap puts on the clipboard; 1 to 256 characters
	Disabled bool   `json:"disabled,omitempty"`
}

// Document is a file to be sent. Exactly one of Bytes and Blob is set.
type Document struct {
	Name  string `json:"name"`
	Bytes []byte `json:"bytes,omitempty"` // for what is small, up to 256 KiB: it is stored in the entry
	// Blob names what OutboxConfig.Blob fetches at the time of sending.
	Blob string `json:"blob,omitempty"`
}

// check finds what no attempt can send, so that it is the caller's error and not the chat's.
func (m *Outgoing) check() error {
	bad := func(why string) error { return fmt.Errorf("bot: outgoing %s in %s: %s", m.Kind, m.Chat.Key(), why) }
	if m.Chat.ID == 0 {
		return bad("no chat")
	}
	switch m.Kind {
	case KindSend:
		if m.Text == "" {
			return bad("no text")
		}
	case KindEdit, KindButtons, KindDelete:
		if m.Slot == "" && m.MessageID == 0 {
			return bad("neither slot nor message id")
		}
		if m.Kind == KindEdit && m.Text == "" {
			return bad("no text")
		}
	case KindDocument:
		if m.Document == nil || m.Document.Name == "" || (len(m.Document.Bytes) > 0) == (m.Document.Blob != "") {
			return bad("want a document with a name and either bytes or a blob")
		}
	default:
		return bad("not a kind that can be stored")
	}
	for _, row := range m.Buttons {
		for _, b := range row {
			if len(b.Data) > 64 {
				return bad("button data of more than 64 bytes")
			}
		}
	}
	return nil
}

// digest names what a person would see, to tell whether an edit changes anything.
func (m *Outgoing) digest() [sha256.Size]byte {
	b, _ := json.Marshal(struct { //nolint:errchkjson // plain data
		T string              `json:"t"`
		E []formatting.Entity `json:"e"`
		B [][]Button          `json:"b"`
	}{m.Text, m.Entities, m.Buttons})
	return sha256.Sum256(b)
}

func keyboard(rows [][]Button) models.ReplyMarkup {
	if len(rows) == 0 {
		return nil
	}
	k := models.InlineKeyboardMarkup{}
	for _, row := range rows {
		var out []models.InlineKeyboardButton
		for _, b := range row {
			t := models.InlineKeyboardButton{Text: b.Text, Style: b.Style, URL: b.URL, CallbackData: b.Data}
			if b.Copy != "" {
				t.CopyText = &models.CopyTextButton{Text: b.Copy}
			}
			if b.Disabled {
				t.Disabled = &models.DisabledButton{}
			}
			out = append(out, t)
		}
		k.InlineKeyboard = append(k.InlineKeyboard, out)
	}
	return k
}

func entities(in []formatting.Entity) []models.MessageEntity {
	var out []models.MessageEntity
	for _, e := range in {
		out = append(out, models.MessageEntity{
			Type: models.MessageEntityType(e.Type), Offset: e.Offset, Length: e.Length, URL: e.URL, Language: e.Language,
			UnixTime: int(e.UnixTime), DateTimeFormat: e.DateTimeFormat,
		})
	}
	return out
}
