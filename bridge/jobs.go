package bridge

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"drawbridge/approvals"
	"drawbridge/internal/store"
	"drawbridge/runner"
)

const (
	// maxJobs is how many of a chat a host tells of, and how many of a session it keeps count of.
	maxJobs, maxJobsKept = 40, 1_000
	// maxJobTitle bounds what is kept of a title, in bytes.
	maxJobTitle = 400
)

// Job goes on in the background of a session: a command or a sub-agent that outlives its turn. It ends by itself, with a
// stop, or with the session.
type Job struct {
	ID      string    `json:"id"`
	Title   string    `json:"title"` // the agent's, such as the command
	Started time.Time `json:"started"`
	Chat    string    `json:"chat"` // whose session it is: the chat itself, or a lane of it
	Session string    `json:"session"`
	Runtime string    `json:"runtime"`
	// Host is where it runs; it stands in the key and is filled in by who reads.
	Host string `json:"-"`
}

// jobs are what goes on for a chat on one host, under jobsKey. Only that host writes it, and it begins with none: what an
// earlier run of it had started has ended with that.
type jobs struct {
	V    int   `json:"v"`
	Jobs []Job `json:"jobs"`
	More int   `json:"more,omitempty"` // that are left out
}

func jobsKey(host, chat string) string { return "from:" + host + ":jobs:" + chat }
func jobsIndex(host string) string     { return "from:" + host + ":jobs" }

// Jobs lists what goes on in the background for a chat, also in lanes of it, on any host, and says how many more there are.
func (s *Chats) Jobs(t *store.Txn, id string) (all []Job, more int, err error) {
	hosts, err := t.Range(approvals.HostsIndex, 0, maxScore, 0)
	if err != nil {
		return nil, 0, err
	}
	for _, h := range hosts {
		doc, _, err := store.Peek[jobs](t, jobsKey(h.Member, id))
		if errors.Is(err, store.ErrDamaged) {
			s.cfg.Logger.Error("the record of what goes on in the background is damaged; left out", "chat", id, "host", h.Member, "err", err)
			continue
		}
		if err != nil {
			return nil, 0, err
		}
		for _, j := range doc.Jobs {
			j.Host, j.Chat = h.Member, cmp.Or(j.Chat, id)
			all = append(all, j)
		}
		more += doc.More
	}
	slices.SortStableFunc(all, older)
	return all, more, nil
}

func older(a, b Job) int { return cmp.Or(a.Started.Compare(b.Started), strings.Compare(a.ID, b.ID)) }

// ownJobs counts those of the chat's own session.
func (s *Chats) ownJobs(t *store.Txn, id string) (n int, err error) {
	all, _, err := s.Jobs(t, id)
	for _, j := range all {
		if j.Chat == id {
			n++
		}
	}
	return n, err
}

// background keeps what a session tells of its background.
func (h *Host) background(s *hostSession, b *runner.Background) {
	if b == nil || b.ID == "" {
		return
	}
	h.mu.Lock()
	_, known := s.jobs[b.ID]
	switch {
	case b.Ended:
		delete(s.jobs, b.ID)
	case !known && len(s.jobs) >= maxJobsKept:
		h.mu.Unlock()
		return
	default:
		if s.jobs == nil {
			s.jobs = map[string]Job{}
		}
		s.jobs[b.ID] = Job{
			ID: b.ID, Title: front(b.Title, maxJobTitle), Started: b.Started.Round(0).UTC(), Chat: s.chat, Session: s.id, Runtime: s.runtime,
		}
	}
	h.mu.Unlock()
	h.jobsChanged()
}

// jobsChanged has the host tell its jobs anew.
func (h *Host) jobsChanged() {
	h.mu.Lock()
	h.untold = true
	h.mu.Unlock()
	select {
	case h.again <- struct{}{}:
	default:
	}
}

// busy reports whether something goes on in a session's background.
func (h *Host) busy(s *hostSession) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(s.jobs) > 0
}

// tellJobs writes what goes on in the background of the open sessions, chat by chat, where that has changed. It is called on
// one goroutine.
func (h *Host) tellJobs(ctx context.Context) error {
	h.mu.Lock()
	if !h.untold {
		h.mu.Unlock()
		return nil
	}
	h.untold = false
	now := map[string]jobs{}
	for _, s := range h.sessions {
		if len(s.jobs) > 0 && s.last != nil {
			of := s.last.order.held()
			now[of] = jobs{V: Version, Jobs: slices.AppendSeq(now[of].Jobs, maps.Values(s.jobs))}
		}
	}
	h.mu.Unlock()
	for chat, j := range now {
		slices.SortFunc(j.Jobs, older)
		if n := len(j.Jobs) - maxJobs; n > 0 {
			j.Jobs, j.More = j.Jobs[:maxJobs], n
		}
		now[chat] = j
	}
	err := store.Update(ctx, h.cfg.DB, func(t *store.Txn) error {
		at, err := t.Now()
		if err != nil {
			return err
		}
		for chat := range h.told {
			if _, left := now[chat]; !left {
				h.dropJobs(t, chat)
			}
		}
		for chat, j := range now {
			if was, ok := h.told[chat]; ok && was.More == j.More && slices.Equal(was.Jobs, j.Jobs) {
				continue
			}
			t.Add(jobsIndex(h.cfg.Name), chat, store.Micros(at))
			if err := store.Put(t, jobsKey(h.cfg.Name, chat), j); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		h.mu.Lock()
		h.untold = true // the next look tries again
		h.mu.Unlock()
		return err
	}
	h.told = now
	return nil
}

func (h *Host) dropJobs(t *store.Txn, chat string) {
	t.Delete(jobsKey(h.cfg.Name, chat))
	t.Drop(jobsIndex(h.cfg.Name), chat)
}

// forgetJobs takes back what an earlier run of this host has told: it has ended with it.
func (h *Host) forgetJobs(ctx context.Context) error {
	return store.Update(ctx, h.cfg.DB, func(t *store.Txn) error {
		items, err := t.Range(jobsIndex(h.cfg.Name), 0, maxScore, 0)
		for _, it := range items {
			h.dropJobs(t, it.Member)
		}
		return err
	})
}
