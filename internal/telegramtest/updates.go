package telegramtest

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"time"
)

const (
	updateLife    = 24 * time.Hour
	quiet         = 7 * 24 * time.Hour // after which update ids start anywhere
	maxPollLimit  = 100
	maxPollWait   = 50 * time.Second
	offsetInReach = 10 // how far beyond the next id an offset is believed
)

// queue holds the updates that the bot has not confirmed.
type queue struct {
	next    int64
	last    time.Time // when the last update came
	pending []update
	// allowed are the kinds of updates that the bot asked for; nil is the default set.
	allowed []string
	poll    *poll
}

type update struct {
	id   int64
	at   time.Time
	body json.RawMessage
}

// poll is a getUpdates call that waits.
type poll struct{ ended bool }

func newQueue() queue { return queue{next: randomUpdateID()} }

// randomUpdateID is where a sequence of update ids begins.
func randomUpdateID() int64 { return rand.Int64N(900_000_000) + 1000 }

// wants reports whether updates of a kind are kept for the bot. Three kinds come only to whom names them.
func (q *queue) wants(kind string) bool {
	if len(q.allowed) > 0 {
		return slices.Contains(q.allowed, kind)
	}
	switch kind {
	case "chat_member", "message_reaction", "message_reaction_count", "stopped_message_generation":
		return false
	default:
		return true
	}
}

// forget drops what nobody fetched for 24 hours.
func (q *queue) forget(now time.Time) {
	q.pending = slices.DeleteFunc(q.pending, func(u update) bool { return now.Sub(u.at) >= updateLife })
}

// confirm drops the updates before an offset; a negative one keeps only that many of the last. An offset far beyond
// what was handed out is that of an older sequence and confirms nothing.
func (q *queue) confirm(offset int64) {
	switch {
	case offset < 0:
		if n := int64(len(q.pending)); n > -offset {
			q.pending = slices.Delete(q.pending, 0, int(n+offset))
		}
	case offset > q.next+offsetInReach:
	default:
		q.pending = slices.DeleteFunc(q.pending, func(u update) bool { return u.id < offset })
	}
}

// push adds an update for the bot. The caller holds mu.
func (s *Server) push(kind string, payload any) {
	now := s.clock()
	q := &s.updates
	q.forget(now)
	if !q.wants(kind) {
		return
	}
	if !q.last.IsZero() && now.Sub(q.last) >= quiet {
		q.next = randomUpdateID()
	}
	body, err := json.Marshal(map[string]any{"update_id": q.next, kind: payload})
	if err != nil {
		s.log.Error("update can't be serialized", "kind", kind, "err", err)
		return
	}
	q.pending = append(q.pending, update{id: q.next, at: now, body: body})
	q.next++
	q.last = now
	s.touch()
}

// allow remembers which updates the bot wants. Without the parameter the former setting stays.
func (c *call) allow() error {
	var kinds []string
	given, err := c.params.object("allowed_updates", "allowed_updates", &kinds)
	if err != nil || !given {
		return err
	}
	c.s.updates.allowed = kinds
	return nil
}

// getUpdates takes and gives back the lock by itself, because it waits.
func (c *call) getUpdates() (any, error) {
	s, q := c.s, &c.s.updates
	own := &poll{}
	limit := int(c.params.int("limit"))
	if limit < 1 || limit > maxPollLimit {
		limit = maxPollLimit
	}
	timeout := min(time.Duration(max(0, c.params.int("timeout")))*time.Second, maxPollWait)
	if err := s.startPoll(c, own); err != nil {
		return nil, err
	}

	var out []json.RawMessage
	s.await(c.ctx, timeout, func() bool {
		q.forget(s.clock())
		out = []json.RawMessage{}
		for _, u := range q.pending[:min(limit, len(q.pending))] {
			out = append(out, u.body)
		}
		return own.ended || len(out) > 0
	})

	s.mu.Lock()
	defer s.mu.Unlock()
	if own.ended {
		if s.webhook.url != "" {
			return nil, conflict("terminated by setWebhook request")
		}
		return nil, conflict("terminated by other getUpdates request; make sure that only one bot instance is running")
	}
	q.poll = nil
	return out, nil
}

// startPoll confirms what the offset confirms and ends the poll that is under way, which loses to this one.
func (s *Server) startPoll(c *call, own *poll) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.webhook.url != "" {
		return conflict("can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first")
	}
	if err := c.allow(); err != nil {
		return err
	}
	s.endPoll()
	s.updates.poll = own
	s.updates.forget(s.clock())
	s.updates.confirm(c.params.int("offset"))
	return nil
}

func (s *Server) endPoll() {
	if s.updates.poll != nil {
		s.updates.poll.ended = true
		s.updates.poll = nil
		s.touch()
	}
}
