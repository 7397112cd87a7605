package runnertest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"drawbridge/policy"
	"drawbridge/runner"
)

// able is a scripted runtime that can also be steered, crash and be reviewed, and may do each of it wrongly.
type able struct {
	losesInput   bool // takes input and does nothing with it
	keepsAsking  bool // leaves questions open when it crashes
	mumbles      bool // says nothing of a crash
	goesOn       bool // carries out what is allowed after a crash
	forgets      bool // begins again when it is resumed
	tellsNothing bool // of its reviewer
	letsThrough  bool // what its reviewer denied
	hiddenSource bool // calls its reviewer ours

	mu      sync.Mutex
	steered []runner.Input
	running bool
	crash   chan struct{}
}

var errCrash = errors.New("the script's program ended by itself")

// runtime makes it, with a reviewer that comes to a state.
func (a *able) runtime(data, review string) runner.Runtime {
	r := &faulty{Runtime: New("able", func(ctx context.Context, s *Scripted, in runner.Input) (runner.Result, error) {
		return a.turn(ctx, s, in, review)
	})}
	r.Data = data
	r.Capability.Steer = true
	for _, name := range []string{"steer", runner.WhyCrash, runner.WhyFrames, runner.WhyReview} {
		delete(r.Capability.Why, name)
	}
	r.session = func(_ runner.Options, s runner.Session) runner.Session { return steerable{s, a} }
	if a.forgets {
		r.open = func(o runner.Options) runner.Options { o.Resume = ""; return o }
	}
	return r
}

func (a *able) turn(ctx context.Context, s *Scripted, in runner.Input, review string) (runner.Result, error) {
	asking, cancel := context.WithCancel(ctx)
	defer cancel()
	crash := make(chan struct{})
	a.mu.Lock()
	a.running, a.crash = true, crash
	a.mu.Unlock()
	own := s
	if !a.keepsAsking {
		own = &Scripted{session: s.session, context: asking, turn: s.turn}
	}
	done := make(chan struct{})
	var res runner.Result
	var err error
	go func() {
		defer close(done)
		res, err = a.follow(own, in, review)
	}()
	select {
	case <-done:
		return res, err
	case <-crash:
	}
	cancel()
	<-done
	if a.goesOn {
		_ = os.WriteFile(filepath.Join(s.Folder(), "ran"), nil, 0o600)
	}
	if a.mumbles {
		return runner.Result{Outcome: runner.Broken, Reason: "EOF"}, nil
	}
	return runner.Result{}, errCrash
}

// follow does the prompt, and then whatever came while it did.
func (a *able) follow(s *Scripted, in runner.Input, review string) (runner.Result, error) {
	for {
		res := runner.Result{Outcome: runner.Completed}
		var err error
		if review != "" {
			a.review(s, review, strings.TrimPrefix(in.Text, "run "))
		} else {
			res, err = Follow(s.context, s, in)
		}
		a.mu.Lock()
		if err != nil || len(a.steered) == 0 || s.context.Err() != nil {
			a.running = false
			a.mu.Unlock()
			return res, err
		}
		in, a.steered = a.steered[0], a.steered[1:]
		a.mu.Unlock()
	}
}

// review has the reviewer decide a command, and a person if it does not approve.
func (a *able) review(s *Scripted, state, command string) {
	tell := func(state string) {
		source := "able"
		if a.hiddenSource {
			source = runner.ReviewerOurs
		}
		if !a.tellsNothing {
			s.Emit(runner.Event{Kind: runner.ReviewChanged, Review: &runner.Review{State: state, Source: source}})
		}
	}
	tell(runner.ReviewRequested)
	tell(state)
	if state == runner.ReviewApproved || a.letsThrough {
		if err := os.WriteFile(filepath.Join(s.Folder(), strings.TrimPrefix(command, "touch ")), nil, 0o600); err != nil {
			s.Say(err.Error())
		}
		return
	}
	s.Run(command)
}

// steerable takes input while a turn runs.
type steerable struct {
	runner.Session
	able *able
}

func (s steerable) Steer(_ context.Context, in runner.Input) (bool, error) {
	s.able.mu.Lock()
	defer s.able.mu.Unlock()
	if !s.able.running {
		return false, nil
	}
	if !s.able.losesInput {
		s.able.steered = append(s.able.steered, in)
	}
	return true, nil
}

// harness tries all that an able runtime can.
func (a *able) harness(patience time.Duration) Harness[*subject] {
	h := Harness[*subject]{
		Parallel: true, MCP: true, Background: true, Patience: patience,
		New: func(_ *subject, data string) runner.Runtime { return a.runtime(data, "") },
		Crash: func(*subject, string) {
			a.mu.Lock()
			defer a.mu.Unlock()
			close(a.crash)
		},
		Noisy: func(s *subject, data string, wrap func(program, argument string) string) runner.Runtime {
			if _, err := os.Stat(wrap("/bin/true", "--serve")); err != nil {
				s.Errorf("the wrapped program: %v", err)
			}
			return a.runtime(data, "")
		},
	}
	for _, state := range []string{runner.ReviewRequested, runner.ReviewApproved, runner.ReviewDenied, runner.ReviewUnavailable} {
		h.Reviews = append(h.Reviews, Review[*subject]{
			State: state, Frame: "script", New: func(_ *subject, data string) runner.Runtime { return a.runtime(data, state) },
		})
	}
	h.Reviews = append(h.Reviews, Review[*subject]{State: runner.ReviewTimeout, Impossible: "A script has time."})
	return h
}

func TestRuntimesThatCanDoMoreAreTried(t *testing.T) {
	t.Parallel()
	const (
		steers  = "a steered turn takes the input"
		crashes = "a crash of the agent is told and the session resumes"
		noise   = "noise of the program is skipped"
		reviews = "the runtime's own reviewer is told of"
	)
	for name, c := range map[string]struct {
		row  string
		able *able
		fine bool
	}{
		"steers":                      {steers, &able{}, true},
		"loses what it is told":       {steers, &able{losesInput: true}, false},
		"crashes":                     {crashes, &able{}, true},
		"mumbles when it crashes":     {crashes, &able{mumbles: true}, false},
		"asks on behind its crash":    {crashes, &able{keepsAsking: true}, false},
		"goes on behind its crash":    {crashes, &able{goesOn: true}, false},
		"forgets when it crashes":     {crashes, &able{forgets: true}, false},
		"is noisy":                    {noise, &able{}, true},
		"is reviewed":                 {reviews, &able{}, true},
		"does not tell of reviews":    {reviews, &able{tellsNothing: true}, false},
		"overrules its reviewer":      {reviews, &able{letsThrough: true}, false},
		"passes its reviewer as ours": {reviews, &able{hiddenSource: true}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			patience := time.Minute
			if !c.fine {
				patience = time.Second
			}
			s := &subject{real: t, row: c.row}
			Exercise(s, c.able.harness(patience))
			if found := s.found(); s.runs != 1 || (len(found) == 0) != c.fine {
				t.Errorf("%q was tried %d times and complains of %q", c.row, s.runs, found)
			}
		})
	}
}

func TestADifferenceIsNamedOrComplainedOf(t *testing.T) {
	t.Parallel()
	const row = "each mode and interaction is kept"
	// In one cell, files are written without a question.
	unasked := func(r *faulty) {
		r.gate = func(o runner.Options, g runner.Gate) runner.Gate {
			return runner.GateFunc(func(ctx context.Context, q runner.Question) (runner.Answer, error) {
				p := o.Policy()
				if p.Mode == policy.ApprovalRequired && p.Interaction == policy.Default && q.Kind == runner.KindFileChange && !q.Has(policy.Protected) {
					return yes, nil
				}
				return g.Ask(ctx, q)
			})
		}
	}
	if found := examined(t, row, time.Minute, unasked); len(found) != 1 || !strings.Contains(found[0], "no difference is named") {
		t.Errorf("unnamed, it complains of %q", found)
	}
	if found := examined(t, row, time.Minute, func(r *faulty) {
		unasked(r)
		r.Capability.Looser = []runner.Difference{{Category: policy.Write, Modes: []policy.Mode{policy.ApprovalRequired}, What: "It writes."}}
	}); len(found) != 0 {
		t.Errorf("named, it complains of %q", found)
	}
	part := runner.Difference{Category: policy.Write, Modes: policy.Modes(), Plan: true, Part: true, What: "It writes one kind of files."}
	if found := examined(t, row, time.Minute, func(r *faulty) {
		unasked(r)
		r.Capability.Looser = []runner.Difference{part}
	}); len(found) != 1 || !strings.Contains(found[0], "no difference is named") {
		t.Errorf("named in part, it complains of %q", found)
	}
	if found := examined(t, row, time.Minute, func(r *faulty) { r.Capability.Looser = []runner.Difference{part} }); len(found) != 0 {
		t.Errorf("where a part of what is not tried is named, it complains of %q", found)
	}
}
