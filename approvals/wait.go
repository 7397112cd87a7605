package approvals

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"drawbridge/internal/store"
	"drawbridge/runner"
)

// errState says that a record has left the state in which it could be changed: this host is not its owner any more.
var errState = errors.New("approvals: the approval was closed")

// errFenced says that another incarnation of this host has taken over.
var errFenced = errors.New("approvals: the host has started again")

// enter takes a place among the open approvals of the run and the chat. They are counted in this process: each open
// approval of this incarnation has a waiter here.
func (s *Service) enter(a *asking) (leave func(), problem string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	run, chat := a.run.ID, a.run.Chat
	if s.perRun[run] >= s.c.MaxPerRun {
		return nil, fmt.Sprintf("This run has %d open approvals already, and more are not asked.", s.c.MaxPerRun)
	}
	if s.perChat[chat] >= s.c.MaxPerChat {
		return nil, fmt.Sprintf("This chat has %d open approvals already, and more are not asked.", s.c.MaxPerChat)
	}
	s.perRun[run]++
	s.perChat[chat]++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.perRun[run]--; s.perRun[run] == 0 {
			delete(s.perRun, run)
		}
		if s.perChat[chat]--; s.perChat[chat] == 0 {
			delete(s.perChat, chat)
		}
	}, ""
}

// publish commits the record. The waiter is there before it, so that no hint is missed; it is nil if nothing was tried.
func (s *Service) publish(ctx context.Context, a *asking) (Record, chan struct{}, error) {
	r := Record{
		V: Version, ID: NewID(s.c.Host), Incarnation: s.c.Incarnation, Chat: a.run.Chat, Project: a.run.Project,
		Session: a.run.Session, Run: a.run.ID, Turn: a.run.Turn, Runtime: a.run.Runtime, Prompted: a.run.Prompted,
		Background: a.background, Question: a.q, Mode: a.policy.Mode, Interaction: a.policy.Interaction,
		Grant: a.grant, Review: a.review, Digest: a.digest, State: Open,
	}
	if err := s.recover(ctx); err != nil {
		return r, nil, err
	}
	wake := s.expect(r.ID, a)
	err := store.Update(ctx, s.db, func(t *store.Txn) error {
		beat, _, err := store.Peek[Beat](t, BeatKey(s.c.Host))
		if err != nil {
			return err
		}
		if beat.Incarnation != s.c.Incarnation {
			return errFenced
		}
		now, err := t.Now()
		if err != nil {
			return err
		}
		r = s.timed(r, a.run, now)
		if err := store.Put(t, AskKey(r.ID), r); err != nil {
			return err
		}
		t.Add(OpenIndex(s.c.Host), string(r.ID), store.Micros(r.Deadline))
		if s.c.Opened != nil {
			return s.c.Opened(t, r)
		}
		return nil
	})
	if err != nil {
		err = fmt.Errorf("approvals: publish %s: %w", r.ID, err)
	}
	return r, wake, err
}

// expect makes the waiter of an approval known.
func (s *Service) expect(id ID, a *asking) chan struct{} {
	wake := make(chan struct{}, 1)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiters[id] = wake
	if a.keepable() {
		s.asks[ask{a.run.Session, a.q.Item}] = id
	}
	return wake
}

func (s *Service) forget(id ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.waiters, id)
	delete(s.keeping, id)
	maps.DeleteFunc(s.asks, func(_ ask, x ID) bool { return x == id })
}

// wake tells the waiter of id to read, or all of them if id is empty or unknown.
func (s *Service) wake(id ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ch, ok := s.waiters[id]; ok {
		signal(ch)
		return
	}
	if id == "" {
		for _, ch := range s.waiters {
			signal(ch)
		}
	}
}

func signal(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

// await waits for the decision. Without one it returns the state that comes next: Withdrawn when ctx has ended, Closing
// when the deadline has come, Lost when this host was replaced, and Open when it is to be kept. A store that is away is waited for; meanwhile the deadline comes by this process's clock.
func (s *Service) await(ctx context.Context, r Record, wake <-chan struct{}) (*Decision, State) {
	end := time.Now().Add(r.Deadline.Sub(r.Created))
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			if errors.Is(context.Cause(ctx), ErrGone) {
				return nil, Lost
			}
			return nil, Withdrawn
		case <-s.fenced:
			return nil, Lost
		case <-wake:
		case <-timer.C:
		}
		d, now, err := s.decision(ctx, r.ID)
		if err == nil {
			if d != nil {
				return d, Open
			}
			end = time.Now().Add(r.Deadline.Sub(now))
			if s.keepAsked(r.ID) {
				return nil, Open
			}
		}
		left := time.Until(end)
		if left <= 0 && ctx.Err() == nil {
			return nil, Closing
		}
		timer.Reset(max(0, min(left, s.c.Reread)))
	}
}

// decision reads the decision of id and the store's time; nil if there is none.
func (s *Service) decision(ctx context.Context, id ID) (d *Decision, now time.Time, err error) {
	ctx, cancel := context.WithTimeout(ctx, closeTime)
	defer cancel()
	err = s.read(ctx, func(t *store.Txn) error {
		d, err = peekDecision(t, id)
		if err != nil {
			return err
		}
		now, err = t.Now()
		return err
	})
	return d, now, err
}

func peekDecision(t *store.Txn, id ID) (*Decision, error) {
	d, ok, err := store.Peek[Decision](t, DecisionKey(id))
	if err != nil || !ok {
		return nil, err
	}
	return &d, nil
}

// expire ends the time for deciding and then looks whether somebody was in time. It returns that decision, or Expired, or
// Lost when the store did not answer.
func (s *Service) expire(ctx context.Context, id ID) (*Decision, State) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
	defer cancel()
	if err := s.move(ctx, id, Closing, nil); err != nil {
		s.log.WarnContext(ctx, "an overdue approval could not be closed", "approval", id, "err", err)
		return nil, Expired
	}
	d, _, err := s.decision(ctx, id)
	if err != nil {
		s.log.WarnContext(ctx, "the decision of an overdue approval could not be read", "approval", id, "err", err)
	}
	return d, Expired
}

// hand commits that the runtime is told d, and tries for a while if the store does not answer.
func (s *Service) hand(ctx context.Context, id ID, d Decision) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), handTime)
	defer cancel()
	for {
		err := s.move(ctx, id, Handed, &d)
		if err == nil || !errors.Is(err, store.ErrUnavailable) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(min(s.c.Reread, time.Second)):
		}
	}
}

// leave closes an approval for which nobody waits any more; what can't be closed at once is closed later by Run.
func (s *Service) leave(ctx context.Context, id ID, to State) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
	defer cancel()
	err := s.move(ctx, id, to, nil)
	if err == nil || errors.Is(err, errState) {
		return
	}
	s.log.WarnContext(ctx, "an approval could not be closed", "approval", id, "err", err)
	s.postpone(id, to)
}

func (s *Service) postpone(id ID, to State) {
	s.mu.Lock()
	s.left[id] = to
	s.mu.Unlock()
}

// move is the only way of a Record from one state to another. Moving to the state in which it stands is no change and no
// error. A record that does not exist was never published, and nothing is to be done about it.
func (s *Service) move(ctx context.Context, id ID, to State, d *Decision) error {
	err := store.Update(ctx, s.db, func(t *store.Txn) error {
		r, ok, err := store.Get[Record](t, AskKey(id))
		if err != nil || r.State == to {
			return err
		}
		if !ok {
			if to == Handed {
				return errState
			}
			return nil
		}
		return s.moveIn(t, r, to, d)
	})
	if err != nil {
		return fmt.Errorf("approvals: move %s to %s: %w", id, to, err)
	}
	return nil
}

func (s *Service) moveIn(t *store.Txn, r Record, to State, d *Decision) error {
	if !r.State.leadsTo(to) {
		return errState
	}
	now, err := t.Now()
	if err != nil {
		return err
	}
	r.State = to
	if to != Closing {
		r.Resolved = now
		if d != nil {
			told, _ := d.withoutSecrets(r.Question)
			r.Decision = &told
		}
		t.Drop(OpenIndex(s.c.Host), string(r.ID))
		t.Add(ResolvedIndex(s.c.Host), string(r.ID), store.Micros(now))
	}
	if err := store.Put(t, AskKey(r.ID), r); err != nil || to == Closing {
		return err
	}
	if err := s.auditResolved(t, r); err != nil {
		return err
	}
	if s.c.Resolved != nil {
		return s.c.Resolved(t, r)
	}
	return nil
}

// leadsTo holds the arrows between the states. Handed leads to Lost where the commit of Handed was not answered: the
// runtime was told no, and the record must not say otherwise.
func (st State) leadsTo(to State) bool {
	switch st {
	case Open:
		return to != Open
	case Closing:
		return to != Open && to != Closing
	case Handed:
		return to == Lost
	case Withdrawn, Expired, Lost, Changed:
	}
	return false
}

// source of a State that a host chooses by itself.
func (st State) source() (runner.Decision, runner.Source) {
	switch st {
	case Withdrawn:
		return runner.Withdrawn, runner.SourceRuntime
	case Expired:
		return runner.Denied, runner.SourceTimeout
	case Open, Closing, Handed, Lost, Changed:
	}
	return runner.Denied, runner.SourceShutdown
}
