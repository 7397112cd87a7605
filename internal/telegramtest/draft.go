package telegramtest

import (
	"slices"
	"time"
	"unicode/utf8"
)

// draftLife is how long a draft stands without being renewed.
const draftLife = 30 * time.Second

// draft is the preview of a message that is still being written.
type draft struct {
	id       int64
	topic    int64
	text     string
	entities []Entity
	canStop  bool
	keep     bool
	at       time.Time
}

// sendMessageDraft shows or renews a draft. An empty text shows "Thinking…".
func (c *call) sendMessageDraft() (any, error) {
	text, entities, err := c.formattedText("text", "entities")
	if err != nil {
		return nil, err
	}
	if utf8.RuneCountInString(text) > MaxText {
		return nil, badRequest("message is too long")
	}
	to, err := c.writable()
	if err != nil {
		return nil, err
	}
	if to.kind != Private {
		return nil, badRequest("TEXTDRAFT_PEER_INVALID")
	}
	topic, err := c.topic(to)
	if err != nil {
		return nil, err
	}
	id := c.params.int("draft_id")
	if id == 0 {
		return nil, badRequest("draft_id must be non-zero")
	}
	if err := c.spend(to, true); err != nil {
		return nil, err
	}
	to.drafts = slices.DeleteFunc(to.drafts, func(d *draft) bool { return d.topic == topic })
	to.drafts = append(to.drafts, &draft{
		id: id, topic: topic, text: text, entities: entities, at: c.now,
		canStop: c.params.bool("can_stop"), keep: c.params.bool("keep_on_stop"),
	})
	c.s.note(event{Type: "draft", Chat: to.id, Topic: topic})
	return true, nil
}

// liveDrafts are the drafts that still stand.
func (s *Server) liveDrafts(c *chat) []*draft {
	now := s.clock()
	c.drafts = slices.DeleteFunc(c.drafts, func(d *draft) bool { return now.Sub(d.at) >= draftLife })
	return c.drafts
}

// endDrafts removes the drafts of a chat or topic.
func (s *Server) endDrafts(c *chat, topic int64) {
	before := len(c.drafts)
	c.drafts = slices.DeleteFunc(c.drafts, func(d *draft) bool { return d.topic == topic })
	if len(c.drafts) != before {
		s.note(event{Type: "draft", Chat: c.id, Topic: topic})
	}
}
