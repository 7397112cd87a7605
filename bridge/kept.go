package bridge

import (
	"context"
	"errors"
	"time"

	"drawbridge/approvals"
	"drawbridge/internal/store"
	"drawbridge/policy"
	"drawbridge/runner"
)

var (
	errKept = errors.New("Drawbridge was stopped; what the agent asked for is kept") //nolint:staticcheck // a name
	// errLeft and errTaken are why a turn that was to take a kept call up has nothing to do.
	errLeft  = errors.New("the session in which this was asked is not the chat's any more, so nothing ran")
	errTaken = errors.New("another turn has taken this up already")
)

// keepTime is how long agents may take to end the turns whose open question they keep. It takes 20 ms.
const keepTime = 5 * time.Second

// KeptPrompt is the prompt by which a kept call goes on once it was decided, whatever was decided. id names the approval,
// so that one decision starts one turn, and the mode is bound to the one under which it was asked.
func KeptPrompt(r approvals.Record) Prompt {
	return Prompt{
		ID: "k:" + string(r.ID), Text: "Go on with what was kept.", Kept: r.ID, Limit: r.Mode, Plan: r.Interaction == policy.Plan,
	}
}

// keep is the beginning of the second phase of a stop: of each turn that waits for a person, the question is kept if its
// agent can keep it, and the turn ends. It returns when they have, or when they take too long.
func (h *Host) keep() {
	h.mu.Lock()
	h.stopping = true
	var open []*hostSession
	for _, s := range h.sessions {
		if _, ok := s.session.(runner.Deferrer); ok && s.turn != nil && s.turn.keeps() {
			open = append(open, s)
		}
	}
	h.mu.Unlock()
	var wait []*hostTurn
	for _, s := range open {
		item := s.session.(runner.Deferrer).Defer() //nolint:forcetypeassert // looked at above
		h.mu.Lock()
		t := s.turn
		h.mu.Unlock()
		if t == nil {
			continue
		}
		if item != "" && h.cfg.Approvals.Keep(s.id, item) {
			wait = append(wait, t)
		} else {
			t.cancel(errHostStops)
		}
	}
	late := time.After(keepTime)
	for _, t := range wait {
		select {
		case <-t.done:
		case <-late:
			return
		}
	}
}

// keeps reports whether a person sits in front of the turn: what a task asks is not kept, it is tried again by its task.
func (t *hostTurn) keeps() bool { return t.order.Prompt.Work == nil && t.order.Of == "" }

// asking is the context of a question. Where it ends because the host stops, the question was not taken back: its card
// says that the agent is gone.
func (h *Host) asking(ctx context.Context) (context.Context, context.CancelFunc) {
	asked, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	release := context.AfterFunc(ctx, func() {
		h.mu.Lock()
		stopping := h.stopping
		h.mu.Unlock()
		if stopping {
			cancel(approvals.ErrGone)
			return
		}
		cancel(context.Cause(ctx))
	})
	return asked, func() { release(); cancel(nil) }
}

// takeUp carries out a turn that goes on with a kept call.
func (t *hostTurn) takeUp(ctx context.Context, s *hostSession, in runner.Input) (runner.Result, error) {
	r, _, err := t.h.cfg.Approvals.Get(ctx, t.order.Prompt.Kept)
	if err != nil {
		return runner.Result{Outcome: runner.Broken, Reason: "the store could not be read"}, nil //nolint:nilerr // told
	}
	d, ok := s.session.(runner.Deferrer)
	switch {
	case !r.Kept || r.State != approvals.Open:
		return runner.Result{Outcome: runner.Interrupted, Reason: errTaken.Error()}, nil
	case !ok || r.Session != s.id:
		return runner.Result{Outcome: runner.Broken, Reason: errLeft.Error()}, nil
	}
	return d.TakeUp(ctx, in)
}

// endKeptIn closes, in the commit that ends the turn, what nobody will take up: what the agent did not keep although the
// host asked for it, and the call that this turn was to take up and has not.
func (t *hostTurn) endKeptIn(tx *store.Txn, r runner.Result) error {
	if err := t.h.cfg.Approvals.EndKeptIn(tx, t.order.Turn, r.Deferred); err != nil {
		return err
	}
	if t.order.Prompt.Kept == "" || t.order.Prompt.Kept.Host() != t.h.cfg.Name {
		return nil
	}
	if r.Deferred != "" {
		return nil // it was taken up, and is kept again
	}
	return t.h.cfg.Approvals.LeaveKeptIn(tx, t.order.Prompt.Kept)
}
