package telegramtest

import (
	"encoding/json"
	"net/http"
	"slices"
	"time"
)

// What the control interface shows. Every field is part of the contract in docs/sim.md.

type simPerson struct {
	ID           int64  `json:"id"`
	Name         string `json:"name"`
	Username     string `json:"username"`
	Role         string `json:"role"`
	LanguageCode string `json:"language_code"`
	Blocked      bool   `json:"blocked"`
}

type simChat struct {
	ID      int64      `json:"id"`
	Type    string     `json:"type"`
	Title   string     `json:"title"`
	Members []int64    `json:"members"`
	Forum   bool       `json:"forum"`
	Topics  []simTopic `json:"topics"`
	Bot     string     `json:"bot"`
	MovedTo int64      `json:"migrated_to,omitempty"`
}

type simTopic struct {
	ID     int64  `json:"id"`
	Name   string `json:"name"`
	Closed bool   `json:"closed"`
}

type simMessage struct {
	MessageID int64         `json:"message_id"`
	From      int64         `json:"from"`
	Date      int64         `json:"date"`
	Topic     int64         `json:"topic"`
	Text      string        `json:"text"`
	Entities  []Entity      `json:"entities"`
	Buttons   [][]simButton `json:"buttons"`
	Document  *simFile      `json:"document,omitempty"`
	Photo     *simFile      `json:"photo,omitempty"`
	Voice     *simFile      `json:"voice,omitempty"`
	Album     string        `json:"album,omitempty"`
	Forward   *Origin       `json:"forward,omitempty"`
	Edits     int           `json:"edits"`
	EditedAt  int64         `json:"edited_at,omitempty"`
	Silent    bool          `json:"silent"`
	ReplyTo   int64         `json:"reply_to,omitempty"`
	Deleted   bool          `json:"deleted,omitempty"`
	Service   string        `json:"service,omitempty"`
	Pinned    bool          `json:"pinned,omitempty"`
	// Reactions are emoji by the id of whoever set them.
	Reactions json.RawMessage `json:"reactions,omitempty"`
}

type simButton struct {
	Text     string `json:"text"`
	Style    string `json:"style"`
	Disabled bool   `json:"disabled"`
	Data     string `json:"callback_data,omitempty"`
	URL      string `json:"url,omitempty"`
	Copy     string `json:"copy_text,omitempty"`
}

type simFile struct {
	Name     string `json:"name"`
	MimeType string `json:"mime_type"`
	Size     int    `json:"size"`
	FileID   string `json:"file_id"`
}

type simDraft struct {
	DraftID    int64    `json:"draft_id"`
	Topic      int64    `json:"topic"`
	Text       string   `json:"text"`
	Entities   []Entity `json:"entities"`
	CanStop    bool     `json:"can_stop"`
	KeepOnStop bool     `json:"keep_on_stop"`
	Date       int64    `json:"date"`
}

func (s *Server) simBot(*http.Request) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return map[string]any{
		"id": s.bot.ID, "name": s.bot.Name, "username": s.bot.Username, "commands": s.commands,
		"webhook": s.webhook.url != "", "polling": s.updates.poll != nil, "pending_updates": len(s.updates.pending),
		"time": seconds(s.clock()),
	}, nil
}

func (s *Server) simPeople(*http.Request) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := []simPerson{}
	for _, p := range s.people {
		out = append(out, simPerson{p.ID, p.Name, p.Username, p.Role, p.LanguageCode, p.blocked})
	}
	return out, nil
}

func (s *Server) simChats(*http.Request) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := []simChat{}
	for _, c := range s.chats {
		v := simChat{
			ID: c.id, Type: c.kind, Title: c.title, Members: append([]int64{}, c.members...), Forum: c.forum,
			Topics: []simTopic{}, Bot: c.bot, MovedTo: c.migratedTo,
		}
		for _, t := range c.topics {
			v.Topics = append(v.Topics, simTopic{t.id, t.name, t.closed})
		}
		out = append(out, v)
	}
	return out, nil
}

func (s *Server) simMessages(r *http.Request) (any, error) {
	after, err := number(r, "after")
	if err != nil {
		return nil, err
	}
	topic, err := number(r, "topic")
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := s.chatOf(r)
	if err != nil {
		return nil, err
	}
	out := []simMessage{}
	for _, m := range c.messages {
		if m.id > after && (r.URL.Query().Get("topic") == "" || m.topic == topic) {
			out = append(out, m.shown())
		}
	}
	return out, nil
}

// shown is the message as a person sees it.
func (m *message) shown() simMessage {
	v := simMessage{
		MessageID: m.id, From: m.sender.ID, Date: m.date.Unix(), Topic: m.topic, Text: m.text,
		Entities: append([]Entity{}, m.entities...), Buttons: [][]simButton{}, Album: m.album, Forward: m.forward,
		Edits: m.edits, Silent: m.silent, Deleted: m.deleted, Pinned: slices.Contains(m.chat.pinned, m.id),
		Reactions: m.shownReactions(),
	}
	if !m.edited.IsZero() {
		v.EditedAt = m.edited.Unix()
	}
	if m.replyTo != nil {
		v.ReplyTo = m.replyTo.id
	}
	if m.service != nil {
		v.Service = m.service.text
	}
	if m.keyboard != nil {
		for _, row := range m.keyboard.Rows {
			var buttons []simButton
			for _, b := range row {
				one := simButton{Text: b.Text, Style: b.Style, Disabled: b.Disabled != nil, Data: b.CallbackData, URL: b.URL}
				if b.CopyText != nil {
					one.Copy = b.CopyText.Text
				}
				buttons = append(buttons, one)
			}
			v.Buttons = append(v.Buttons, buttons)
		}
	}
	if m.media != nil {
		f := m.media.file
		shown := &simFile{f.name, f.mime, len(f.data), f.id}
		switch m.media.kind {
		case "photo":
			v.Photo = shown
		case "voice":
			v.Voice = shown
		default:
			v.Document = shown
		}
	}
	return v
}

func (s *Server) simDrafts(r *http.Request) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := s.chatOf(r)
	if err != nil {
		return nil, err
	}
	out := []simDraft{}
	for _, d := range s.liveDrafts(c) {
		out = append(out, simDraft{d.id, d.topic, d.text, append([]Entity{}, d.entities...), d.canStop, d.keep, d.at.Unix()})
	}
	return out, nil
}

func (s *Server) simCalls(r *http.Request) (any, error) {
	after, err := number(r, "after")
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	out := []record{}
	for _, c := range s.calls.all {
		if int64(c.Seq) > after && (r.URL.Query().Get("method") == "" || r.URL.Query().Get("method") == c.Method) {
			out = append(out, *c)
		}
	}
	return out, nil
}

// simWait answers as soon as there are events after a number.
func (s *Server) simWait(r *http.Request) (any, error) {
	after, err := number(r, "after")
	if err != nil {
		return nil, err
	}
	timeout, err := number(r, "timeout")
	if err != nil {
		return nil, err
	}
	if !r.URL.Query().Has("timeout") {
		timeout = 25
	}
	var seq int64
	var out []event
	s.await(r.Context(), time.Duration(min(max(timeout, 0), 60))*time.Second, func() bool {
		seq, out = s.events.seq, s.events.since(after)
		return len(out) > 0
	})
	return map[string]any{"seq": seq, "events": out}, nil
}
