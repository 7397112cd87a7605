package bridge

import (
	"context"
	"testing"

	"drawbridge/policy"
	"drawbridge/runner"
	"drawbridge/runner/runnertest"
)

// lingering is a runtime whose sessions work on behind their turns, and may not be tightened meanwhile.
type lingering struct {
	runner.Runtime
	applied bool
	told    chan runner.Policy
	closed  chan struct{}
}

func (l *lingering) Open(ctx context.Context, o runner.Options) (runner.Session, error) {
	s, err := l.Runtime.Open(ctx, o)
	return &lingeringSession{s, l}, err
}

type lingeringSession struct {
	runner.Session
	of *lingering
}

func (s *lingeringSession) SetPolicy(_ context.Context, p runner.Policy) (bool, error) {
	s.of.told <- p
	return s.of.applied, nil
}

func (s *lingeringSession) Close() error {
	select {
	case s.of.closed <- struct{}{}:
	default:
	}
	return s.Session.Close()
}

// TestBackgroundWorkThatCannotBeTightenedEnds: lowering takes effect for what goes on between turns, if need be by closing
// the session. A looser mode, or one that the program takes, closes nothing.
func TestBackgroundWorkThatCannotBeTightenedEnds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		applied, closed bool
		to              policy.Mode
	}{
		"not taken": {false, true, policy.ApprovalRequired},
		"taken":     {true, false, policy.ApprovalRequired},
		"looser":    {false, false, policy.FullAccess},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t)
			r := &lingering{Runtime: runnertest.New("script", nil), applied: c.applied, told: make(chan runner.Policy, 8), closed: make(chan struct{}, 1)}
			h.host("laptop", func(cfg *HostConfig) { cfg.Runtimes = []runner.Runtime{r} })
			h.mode("7", policy.AutoAcceptEdits)
			h.prompt("7", "u:1", "say hello")
			if res := h.shown.ended(t, "t.u:1"); res.Outcome != runner.Completed {
				t.Fatalf("the turn ended as %+v", res)
			}
			h.mode("7", c.to)
			if c.to != policy.FullAccess {
				if p := <-r.told; p.Mode != c.to {
					t.Errorf("told %v", p)
				}
			}
			if c.closed {
				<-r.closed
			}
			h.prompt("7", "u:2", "say again") // in a new session, where the old one is closed
			if res := h.shown.ended(t, "t.u:2"); res.Outcome != runner.Completed {
				t.Errorf("the next turn ended as %+v", res)
			}
			select {
			case <-r.closed:
				t.Error("a session was closed")
			default:
			}
		})
	}
}
