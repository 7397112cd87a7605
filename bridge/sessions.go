package bridge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"drawbridge/internal/store"
	"drawbridge/runner"
)

// hostSession is an open session of a runtime. It serves one chat, one turn at a time.
type hostSession struct {
	id       string // ours
	chat     string
	runtime  string
	folder   string
	session  runner.Session
	closeSeq int
	turn     *hostTurn      // that uses it; nil while idle
	last     *hostTurn      // whose words name the chat when the agent acts between turns
	idle     time.Time      // since when
	jobs     map[string]Job // by the runtime's id, what goes on in the background; guarded by Host.mu
}

// session returns the open session for the turn's chat, opening or resuming it as needed, and marks it as used.
func (h *Host) session(ctx context.Context, t *hostTurn) (*hostSession, error) {
	o := t.order
	h.mu.Lock()
	s := h.sessions[o.Chat]
	if s != nil && s.id == o.Session && s.runtime == o.Runtime && s.folder == o.Folder {
		s.turn, s.last = t, t
		h.mu.Unlock()
		return s, nil
	}
	delete(h.sessions, o.Chat)
	h.mu.Unlock()
	if s != nil {
		h.shut(s)
	}
	s, err := h.open(ctx, t)
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.sessions[o.Chat] = s
	return s, nil
}

func (h *Host) open(ctx context.Context, t *hostTurn) (*hostSession, error) {
	o := t.order
	r := h.runtime(o.Runtime)
	if r == nil {
		return nil, fmt.Errorf("this host has no runtime %s", o.Runtime)
	}
	if err := h.inspect(ctx, o.Runtime); err != nil {
		return nil, fmt.Errorf("%s can't be used here: %w", o.Runtime, err)
	}
	_, docs, err := h.cfg.DB.Read(ctx, sessionKey(h.cfg.Name, o.Session), mirrorKey(h.cfg.Name, o.Chat))
	if err != nil {
		return nil, errors.New("the store could not be read")
	}
	var known SessionRecord
	if docs[0].Rev != "" {
		if known, err = decode[SessionRecord](docs[0].Value); err != nil {
			return nil, errors.New("the session's record could not be read")
		}
	}
	m, err := decode[Mirror](docs[1].Value)
	if err != nil {
		return nil, errors.New("the chat's mode could not be read")
	}
	s := &hostSession{id: o.Session, chat: o.Chat, runtime: o.Runtime, folder: o.Folder, closeSeq: m.CloseSeq, turn: t, last: t}
	opts := runner.Options{
		Folder: o.Folder, Resume: cmp.Or(known.Token, o.Resume), PublishIsOrdinary: h.workspace(o).PublishIsOrdinary,
		Sink: func(e runner.Event) { h.sink(s, e) },
		Gate: runner.GateFunc(func(ctx context.Context, q runner.Question) (runner.Answer, error) {
			turn, between := h.user(s)
			run := turn.asker()
			run.Background = run.Background || between || q.Background
			asked, release := h.asking(ctx)
			defer release()
			a, err := h.cfg.Approvals.Ask(asked, run, q)
			if !between {
				turn.rec.answered(q, a, err)
			}
			return a, err
		}),
		Policy: func() runner.Policy {
			turn, _ := h.user(s)
			p, err := h.policy(h.persist, turn.order) // the session outlives the turn that opened it
			if err != nil {
				return runner.Policy{} // counts as approval-required in plan: nothing is looser
			}
			return p
		},
	}
	s.session, err = r.Open(ctx, opts)
	if errors.Is(err, runner.ErrNoSession) {
		t.rec.take(runner.Event{Kind: runner.Notice, Text: "The earlier session is not known any more; a new one begins."})
		opts.Resume = ""
		s.session, err = r.Open(ctx, opts)
	}
	if err != nil {
		return nil, fmt.Errorf("%s did not start: %w", o.Runtime, err)
	}
	return s, nil
}

// user returns the turn that the session serves, or the last one that it served and true.
func (h *Host) user(s *hostSession) (t *hostTurn, between bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return s.last, s.turn == nil
}

func (h *Host) sink(s *hostSession, e runner.Event) {
	if e.Kind == runner.BackgroundEvent {
		h.background(s, e.Background)
	}
	t, between := h.user(s)
	if between {
		h.cfg.Logger.Debug("event outside of a turn", "chat", s.chat, "kind", string(e.Kind))
		return
	}
	t.rec.take(e)
}

func (h *Host) release(s *hostSession) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s.turn, s.idle = nil, time.Now()
}

// discard closes a session and forgets it here; its record stays, so that it can be resumed.
func (h *Host) discard(s *hostSession) {
	h.mu.Lock()
	if h.sessions[s.chat] == s {
		delete(h.sessions, s.chat)
	}
	h.mu.Unlock()
	h.shut(s)
}

func (h *Host) shut(s *hostSession) {
	if err := s.session.Close(); err != nil {
		h.cfg.Logger.Warn("closing a session failed", "chat", s.chat, "err", err)
	}
	h.jobsChanged()
}

// remember keeps the session's resume token.
func (h *Host) remember(ctx context.Context, s *hostSession) error {
	token := s.session.ResumeToken()
	if token == "" {
		return nil
	}
	return store.Update(ctx, h.cfg.DB, func(t *store.Txn) error {
		now, err := t.Now()
		if err != nil {
			return err
		}
		t.Add(forgetIndex(h.cfg.Name), sessionKey(h.cfg.Name, s.id), store.Micros(now))
		return store.Put(t, sessionKey(h.cfg.Name, s.id), SessionRecord{
			V: Version, ID: s.id, Chat: s.chat, Runtime: s.runtime, Folder: s.folder, Token: token, Used: now,
		})
	})
}

// closeIdle ends the sessions that nobody used for SessionIdle, unless something goes on in their background, and those whose
// chat asked for it. Turns begin on the same
// goroutine, so none of them can want a session that is being closed here.
func (h *Host) closeIdle(ctx context.Context) error {
	h.mu.Lock()
	busy := map[string]bool{}
	for _, t := range h.turns {
		busy[t.order.Chat] = true // it may be about to take the session
	}
	var idle []*hostSession
	for chat, s := range h.sessions {
		if s.turn == nil && !busy[chat] {
			idle = append(idle, s)
		}
	}
	h.mu.Unlock()
	if len(idle) == 0 {
		return nil
	}
	keys := make([]string, len(idle))
	for i, s := range idle {
		keys[i] = mirrorKey(h.cfg.Name, s.chat)
	}
	_, docs, err := h.cfg.DB.Read(ctx, keys...)
	if err != nil {
		return err
	}
	for i, s := range idle {
		m, err := decode[Mirror](docs[i].Value)
		asked := err == nil && m.CloseSeq != s.closeSeq
		h.mu.Lock()
		end := s.turn == nil && h.sessions[s.chat] == s && (asked || len(s.jobs) == 0 && time.Since(s.idle) >= h.cfg.SessionIdle)
		if end {
			delete(h.sessions, s.chat)
		}
		h.mu.Unlock()
		if end {
			h.shut(s)
		}
	}
	return nil
}
