package approvals

import (
	"context"
	"errors"
	"fmt"
	"time"

	"drawbridge/internal/store"
	"drawbridge/policy"
	"drawbridge/runner"
)

// A host that has to stop keeps an approval whose call the agent's program can keep as well: the record is given to nobody
// (Kept), and whatever turn resumes the session first takes it up again. See docs/approvals.md.

// ask is what asks: a call of a session.
type ask struct{ session, item string }

// held is an approval that was kept, and the call that it is about.
type held struct {
	id   ID
	item string
}

// keepable reports whether a question may be kept: it belongs to a call that can be recognised, and a person waits for it.
func (a *asking) keepable() bool {
	if a.q.Item == "" || a.run.Session == "" || a.background || a.q.Terminal != "" {
		return false
	}
	switch a.q.Kind {
	case runner.KindCommand, runner.KindFileChange, runner.KindTool:
		return true
	case runner.KindPlan, runner.KindQuestion, runner.KindProposal:
	}
	return false
}

// Keep asks the waiter of a session's open question about item to keep it, because the host has to stop, and reports
// whether there is one. Its Ask then returns Deferred, unless a decision comes first or the store does not answer.
func (s *Service) Keep(session, item string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	id, ok := s.asks[ask{session, item}]
	if ok {
		s.keeping[id] = true
		signal(s.waiters[id])
	}
	return ok
}

func (s *Service) keepAsked(id ID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.keeping[id]
}

// EndKeptIn closes, in the commit that ends the turn of run, what was kept of it but item: that is the call that the
// agent's program has kept; empty for none.
func (s *Service) EndKeptIn(t *store.Txn, run, item string) error {
	s.mu.Lock()
	keeps := s.keeps[run]
	s.mu.Unlock()
	for _, k := range keeps {
		if k.item == item {
			continue
		}
		if err := s.LeaveKeptIn(t, k.id); err != nil {
			return err
		}
	}
	return nil
}

// LeaveKeptIn closes a kept approval that nothing has taken up, and that nothing will: its card says so.
func (s *Service) LeaveKeptIn(t *store.Txn, id ID) error {
	r, ok, err := store.Get[Record](t, AskKey(id))
	if err != nil || !ok || !r.Kept || r.State != Open {
		return err
	}
	return s.moveIn(t, r, Lost, nil)
}

// ForgoIn says, on a gateway, that a kept call that a person has allowed is not carried out: the turn that was to take it up
// was taken back. A call that was taken up already is left alone.
func (s *Service) ForgoIn(t *store.Txn, id ID) error {
	r, ok, err := store.Get[Record](t, AskKey(id))
	if err != nil || !ok || !r.Kept || r.State != Open {
		return err
	}
	d, err := peekDecision(t, id)
	if err != nil || d == nil || d.Decision != runner.Allowed || !d.Gone.IsZero() {
		return err
	}
	now, err := t.Now()
	if err != nil {
		return err
	}
	return s.markGone(t, r, *d, now)
}

// knowKept notes what an earlier run of this host has kept.
func (s *Service) knowKept(r Record) {
	if !r.Kept {
		return
	}
	s.mu.Lock()
	s.kept[r.ID] = ask{r.Session, r.Question.Item}
	s.mu.Unlock()
}

// rehome is the only way in which a record comes to be waited for by somebody else: by nobody, or by this run of the host.
func (s *Service) rehome(t *store.Txn, r Record, kept bool, until time.Time) (Record, error) {
	r.Kept, r.Incarnation, r.Deadline = kept, s.c.Incarnation, until
	if kept {
		r.Incarnation = nobody
	}
	t.Add(OpenIndex(s.c.Host), string(r.ID), store.Micros(until))
	return r, store.Put(t, AskKey(r.ID), r)
}

// keep gives a record to nobody. It reports false if it is to be waited for as before: a decision was made, or the store
// does not answer. A decision that comes after the commit starts a turn.
func (s *Service) keep(ctx context.Context, a *asking, id ID) bool {
	ctx, cancel := context.WithTimeout(ctx, closeTime)
	defer cancel()
	err := store.Update(ctx, s.db, func(t *store.Txn) error {
		r, ok, err := store.Get[Record](t, AskKey(id))
		if err != nil {
			return err
		}
		if !ok || r.State != Open || r.Incarnation != s.c.Incarnation {
			return errState
		}
		now, err := t.Now()
		if err != nil {
			return err
		}
		if r, err = s.rehome(t, r, true, now.Add(s.c.KeptDeadline)); err != nil || s.c.Opened == nil {
			return err
		}
		return s.c.Opened(t, r)
	})
	s.mu.Lock()
	delete(s.keeping, id) // once
	if err == nil {
		s.keeps[a.run.ID] = append(s.keeps[a.run.ID], held{id, a.q.Item})
	}
	s.mu.Unlock()
	if err != nil {
		s.log.WarnContext(ctx, "an approval could not be kept", "approval", id, "err", err)
		return false
	}
	// Whoever decided before that commit took this host for the one that waits.
	d, _, err := s.decision(ctx, id)
	return err != nil || d == nil
}

// takeUp answers a call that was kept by what has become of its approval. It reports false if the call is to be asked like
// any other: none was kept, or it was about something else, or its time is over.
func (s *Service) takeUp(ctx context.Context, a *asking) (runner.Answer, bool) {
	if !a.keepable() || s.c.Host == "" {
		return runner.Answer{}, false
	}
	if err := s.recover(ctx); err != nil { // only then it is known what was kept
		s.log.WarnContext(ctx, "what was kept could not be read", "chat", a.run.Chat, "err", err)
		return s.settle(ctx, a, refusal(runner.SourceShutdown, "The store is away.")), true
	}
	id, ok := s.takeKept(ask{a.run.Session, a.q.Item})
	if !ok {
		return runner.Answer{}, false
	}
	if a.q.Check != nil {
		var err error
		if a.files, err = a.q.Check(); err != nil {
			return s.settle(ctx, a, refusal(runner.SourceRuntime, "The files could not be read: "+err.Error())), true
		}
	}
	a.digest = digest(a.q, a.files)
	verdict, err := a.verdict(ctx)
	if err != nil {
		s.log.WarnContext(ctx, "the policy of a chat could not be read", "chat", a.run.Chat, "err", err)
		s.postpone(id, Lost)
		return s.settle(ctx, a, refusal(runner.SourceShutdown, "The chat's mode could not be read.")), true
	}
	leave, problem := s.enter(a)
	if problem != "" {
		s.postpone(id, Lost)
		return s.settle(ctx, a, refusal(runner.SourceRuntime, problem)), true
	}
	defer leave()
	wake := s.expect(id, a)
	defer s.forget(id)
	r, d, err := s.adopt(ctx, a, id)
	switch {
	case errors.Is(err, errState):
		return runner.Answer{}, false
	case err != nil:
		s.log.WarnContext(ctx, "a kept approval could not be taken up", "approval", id, "err", err)
		s.postpone(id, Lost) // the commit may have happened
		return refusal(runner.SourceShutdown, "The store is away."), true
	case d == nil && verdict == policy.Deny:
		own := Decision{V: Version, ID: id, Decision: runner.Denied, Source: runner.SourceRule, Digest: r.Digest, At: r.Created}
		if err := s.hand(ctx, id, own); err != nil {
			s.postpone(id, Lost)
		}
		return refusal(runner.SourceRule, "In plan nothing may be changed."), true
	}
	return s.wait(ctx, a, r, wake)
}

// takeKept returns the kept approval of a call, once: whoever gets it is the only one in this process who tries.
func (s *Service) takeKept(of ask) (ID, bool) {
	if of.item == "" {
		return "", false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, k := range s.kept {
		if k == of {
			delete(s.kept, id)
			return id, true
		}
	}
	return "", false
}

// adopt makes a kept approval this host's own again; of all who try, one wins. It returns the decision that it has found.
// errState says that there is nothing to take up: the card says why, and the call is asked anew.
func (s *Service) adopt(ctx context.Context, a *asking, id ID) (r Record, d *Decision, err error) {
	stale := false
	err = store.Update(ctx, s.db, func(t *store.Txn) error {
		var ok bool
		if r, ok, err = store.Get[Record](t, AskKey(id)); err != nil {
			return err
		}
		if d, err = peekDecision(t, id); err != nil {
			return err
		}
		beat, _, err := store.Peek[Beat](t, BeatKey(s.c.Host))
		if err != nil {
			return err
		}
		now, err := t.Now()
		if err != nil {
			return err
		}
		stale = false
		switch {
		case beat.Incarnation != s.c.Incarnation:
			return errFenced
		case !ok || !r.Kept || r.State != Open || r.Chat != a.run.Chat:
			return errState
		case r.Digest != a.digest:
			stale = true
			return s.moveIn(t, r, Changed, nil)
		case d != nil && d.Decision == runner.Allowed && (!d.Gone.IsZero() || !now.Before(r.Deadline)):
			stale = true
			return s.moveIn(t, r, Lost, nil)
		}
		until := r.Deadline
		if usual := now.Add(s.deadline(a.run, r.Question.Kind)); usual.Before(until) {
			until = usual // an agent waits for it again
		}
		if r, err = s.rehome(t, r, false, until); err != nil || d != nil || s.c.Opened == nil {
			return err
		}
		return s.c.Opened(t, r)
	})
	if err == nil && stale {
		err = errState
	}
	if err != nil {
		err = fmt.Errorf("approvals: take up %s: %w", id, err)
	}
	return r, d, err
}

// forgetKept closes a kept approval that was decided and that no session has taken up for so long that none will.
func (s *Service) forgetKept(t *store.Txn, r Record, d Decision) error {
	now, err := t.Now()
	if err != nil || d.Gone.IsZero() && now.Before(r.Deadline.Add(keep)) {
		return err
	}
	return s.moveIn(t, r, Lost, nil)
}
