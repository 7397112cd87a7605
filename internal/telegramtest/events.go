package telegramtest

// maxEvents is how many events are remembered.
const maxEvents = 10_000

// event tells whoever watches through /sim that something changed, and where; what it is now has to be fetched.
type event struct {
	Seq       int64  `json:"seq"`
	Type      string `json:"type"` // message, edit, delete, draft, action, answer, topic, member, reaction
	Chat      int64  `json:"chat,omitempty"`
	Topic     int64  `json:"topic,omitempty"`
	MessageID int64  `json:"message_id,omitempty"`
	Text      string `json:"text,omitempty"` // of an action or answer
}

type events struct {
	seq int64
	all []event
}

// note adds an event and wakes who waits for it. The caller holds mu.
func (s *Server) note(e event) {
	s.events.seq++
	e.Seq = s.events.seq
	if len(s.events.all) >= maxEvents {
		s.events.all = append([]event(nil), s.events.all[maxEvents/4:]...)
	}
	s.events.all = append(s.events.all, e)
	s.touch()
}

// since are the events after a number. The caller holds mu.
func (e *events) since(seq int64) []event {
	first := len(e.all)
	for first > 0 && e.all[first-1].Seq > seq {
		first--
	}
	return append([]event{}, e.all[first:]...)
}
