package telegramtest

import (
	"time"
	"unicode/utf8"
)

// deletable is how old a message may be that the bot deletes.
const deletable = 48 * time.Hour

const notModified = "message is not modified: specified new message content and reply markup are exactly the same " +
	"as a current content and reply markup of the message"

// own resolves chat_id and message_id to a message that the bot may edit.
func (c *call) own() (*message, error) {
	to, err := c.chat()
	if err != nil {
		return nil, err
	}
	if err := c.s.mayWrite(to); err != nil {
		return nil, err
	}
	id := c.params.int("message_id")
	if id == 0 {
		return nil, badRequest("message identifier is not specified")
	}
	m := to.message(id)
	switch {
	case m == nil:
		return nil, badRequest("message to edit not found")
	case m.sender.ID != c.s.bot.ID || m.service != nil || m.forward != nil:
		return nil, badRequest("message can't be edited")
	default:
		return m, nil
	}
}

// change edits a message. A keyboard that the call does not give is removed. What changes nothing is refused, and
// costs as much as an edit.
func (c *call) change(m *message, text string, entities []Entity) (any, error) {
	markup, err := c.params.replyMarkup(m.chat.kind)
	if err != nil {
		return nil, err
	}
	if markup.other != nil {
		return nil, badRequest("inline keyboard expected")
	}
	if err := c.spend(m.chat, false); err != nil {
		return nil, err
	}
	if m.same(text, entities, markup.inline) {
		return nil, badRequest(notModified)
	}
	m.text, m.entities, m.keyboard = text, entities, markup.inline
	c.s.edit(m)
	return m.view(), nil
}

func (c *call) editMessageText() (any, error) {
	text, entities, err := c.messageText()
	if err != nil {
		return nil, err
	}
	m, err := c.own()
	if err != nil {
		return nil, err
	}
	if m.media != nil {
		return nil, badRequest("there is no text in the message to edit")
	}
	return c.change(m, text, entities)
}

func (c *call) editMessageCaption() (any, error) {
	text, entities, err := c.caption()
	if err != nil {
		return nil, err
	}
	m, err := c.own()
	if err != nil {
		return nil, err
	}
	if m.media == nil {
		return nil, badRequest("there is no caption in the message to edit")
	}
	return c.change(m, text, entities)
}

func (c *call) caption() (string, []Entity, error) {
	text, entities, err := c.formattedText("caption", "caption_entities")
	if err == nil && utf8.RuneCountInString(text) > MaxCaption {
		err = badRequest("message caption is too long")
	}
	return text, entities, err
}

func (c *call) editMessageReplyMarkup() (any, error) {
	m, err := c.own()
	if err != nil {
		return nil, err
	}
	return c.change(m, m.text, m.entities)
}

func (c *call) deleteMessage() (any, error) {
	to, err := c.chat()
	if err != nil {
		return nil, err
	}
	if err := c.s.mayWrite(to); err != nil {
		return nil, err
	}
	m := to.message(c.params.int("message_id"))
	if m == nil {
		return nil, badRequest("message to delete not found")
	}
	if err := c.mayDelete(m); err != nil {
		return nil, err
	}
	c.s.remove(m)
	return true, nil
}

func (c *call) mayDelete(m *message) error {
	admin := m.chat.bot == Administrator
	switch {
	case m.sender.ID != c.s.bot.ID && m.chat.kind != Private && !admin:
		return badRequest("message can't be deleted")
	case c.now.Sub(m.date) >= deletable && !admin:
		return badRequest("message can't be deleted for everyone")
	default:
		return nil
	}
}

// deleteMessages skips what does not exist or can't be deleted, as Telegram does.
func (c *call) deleteMessages() (any, error) {
	var ids []int64
	given, err := c.params.object("message_ids", "message identifiers", &ids)
	if err != nil {
		return nil, err
	}
	if !given || len(ids) == 0 {
		return nil, badRequest("message identifiers are not specified")
	}
	if len(ids) > 100 {
		return nil, badRequest("too many message identifiers specified")
	}
	to, err := c.writable()
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		if m := to.message(id); m != nil && c.mayDelete(m) == nil {
			c.s.remove(m)
		}
	}
	return true, nil
}
