package claude

import (
	"context"
	"fmt"
	"time"

	"drawbridge/runner"
)

// The program keeps a call over the end of its process where the hook answers "defer": the turn ends, and the first process
// of the resumed session runs the hook for the same call again, by itself, as soon as it has the hook; see the flag --await-initialize.
// Of calls that wait side by side it keeps the last one.

var _ runner.Deferrer = (*session)(nil)

// deferred is the call that the program says that it has kept.
type deferred struct {
	ID string `json:"id"`
}

// terminalDeferred is how the program says that a turn has ended because a call was deferred.
const terminalDeferred = "tool_deferred"

// takenUp stands among what a turn waits for where it has sent no prompt: any result of the program ends it.
const takenUp = "taken up"

// takeUpTime is how long a resumed program may take to run the hook for the call that it has kept. It takes 100 ms.
const takeUpTime = 20 * time.Second

// Defer names the last call of the main conversation whose hook waits for the gate, and takes back all other questions.
func (s *session) Defer() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.conn
	if s.closed || c == nil || c.current() == nil || c.current().interrupted {
		return ""
	}
	c.deferring = true
	last := ""
	for id, k := range c.calls {
		if k.hooked > 0 && k.agent == "" && (last == "" || k.hooked > c.calls[last].hooked) {
			last = id
		}
	}
	for id, k := range c.calls {
		if id == last {
			continue
		}
		for _, cancel := range k.withdraw {
			cancel()
		}
		k.withdraw = nil
	}
	return last
}

// await lets the hook wait for the turn that it belongs to: a resumed program runs it before it was told anything.
func (c *conn) await(ctx context.Context) {
	c.refired.Do(func() { close(c.asking) })
	select {
	case <-c.turned:
	case <-ctx.Done():
	case <-c.gone:
	case <-c.session.life.Done():
	}
}

// TakeUp waits for the call that the program has kept, and for the end of its turn.
func (s *session) TakeUp(ctx context.Context, in runner.Input) (runner.Result, error) {
	return s.during(ctx, func(ctx context.Context) (runner.Result, error) {
		c, err := s.connect(ctx)
		if err != nil {
			return runner.Result{}, err
		}
		if err := c.choose(ctx, in); err != nil {
			return runner.Result{}, err
		}
		if err := c.align(ctx); err != nil {
			return runner.Result{}, err
		}
		lost := runner.Result{Outcome: runner.Broken, Reason: "The agent does not ask for this any more, so nothing ran."}
		select {
		case <-c.turned:
			return lost, nil // another turn came first, and has taken it up
		default:
		}
		timer := time.NewTimer(takeUpTime)
		defer timer.Stop()
		select {
		case <-c.asking:
		case <-timer.C:
			return lost, nil
		case <-ctx.Done():
			return runner.Result{Outcome: runner.Interrupted}, nil
		case <-c.gone:
			return runner.Result{}, c.crashed(c.cause)
		}
		return c.follow(ctx, c.newTurn(in.Turn, takenUp), nil)
	})
}

// during does f as a turn of the session.
func (s *session) during(ctx context.Context, f func(context.Context) (runner.Result, error)) (runner.Result, error) {
	if !s.turning.TryLock() {
		return runner.Result{}, errTurning
	}
	defer s.turning.Unlock()
	if s.life.Err() != nil {
		return runner.Result{}, fmt.Errorf("claude: turn: %w", runner.ErrClosed)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.life, cancel)()

	res, err := f(ctx)
	switch {
	case err != nil && s.life.Err() != nil:
		return runner.Result{}, fmt.Errorf("claude: turn: %w", runner.ErrClosed)
	case err != nil:
		return runner.Result{}, fmt.Errorf("claude: turn: %w", err)
	}
	return res, nil
}
