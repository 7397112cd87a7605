package runnertest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"drawbridge/policy"
	"drawbridge/runner"
)

// subject is a test whose failures are what is wanted. It runs one behaviour only.
type subject struct {
	real *testing.T
	row  string
	runs int
	// within says that the row is running.
	within bool

	mu       sync.Mutex
	failures []string
	cleanups []func()
}

func (s *subject) Helper() {}
func (s *subject) Errorf(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failures = append(s.failures, fmt.Sprintf(format, args...))
}

func (s *subject) Fatalf(format string, args ...any) {
	s.Errorf(format, args...)
	runtime.Goexit()
}
func (s *subject) TempDir() string          { return s.real.TempDir() }
func (s *subject) Context() context.Context { return s.real.Context() }
func (s *subject) Setenv(string, string)    {}
func (s *subject) Parallel()                {}

func (s *subject) Cleanup(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cleanups = append(s.cleanups, f)
}

func (s *subject) Run(name string, f func(*subject)) bool {
	protected := func(f func()) {
		done := make(chan struct{})
		go func() {
			defer close(done)
			f()
		}()
		<-done
	}
	if s.within { // a part of the row
		protected(func() { f(s) })
		return len(s.found()) == 0
	}
	if name != s.row {
		return true
	}
	s.runs++
	s.within = true
	defer func() { s.within = false }()
	protected(func() { f(s) })
	for _, c := range slices.Backward(s.cleanups) {
		protected(c)
	}
	return len(s.found()) == 0
}

// found are the failures so far.
func (s *subject) found() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.failures)
}

// faulty is a scripted runtime of which something is broken.
type faulty struct {
	*Runtime
	gate    func(o runner.Options, g runner.Gate) runner.Gate
	sink    func(runner.Sink) runner.Sink
	session func(o runner.Options, s runner.Session) runner.Session
	open    func(o runner.Options) runner.Options
}

func (f *faulty) Open(ctx context.Context, o runner.Options) (runner.Session, error) {
	if f.open != nil {
		o = f.open(o)
	}
	inner := o
	if f.gate != nil {
		inner.Gate = f.gate(o, o.Gate)
	}
	if f.sink != nil {
		inner.Sink = f.sink(o.Sink)
	}
	s, err := f.Runtime.Open(ctx, inner)
	if err == nil && f.session != nil {
		s = f.session(o, s)
	}
	return s, err
}

// answering is a gate made of a function that has the one behind it.
func answering(f func(ctx context.Context, o runner.Options, g runner.Gate, q runner.Question) (runner.Answer, error)) func(*faulty) {
	return func(r *faulty) {
		r.gate = func(o runner.Options, g runner.Gate) runner.Gate {
			return runner.GateFunc(func(ctx context.Context, q runner.Question) (runner.Answer, error) { return f(ctx, o, g, q) })
		}
	}
}

// telling is a sink that may change, hold back or drop what is told.
func telling(f func(e runner.Event, told runner.Sink)) func(*faulty) {
	return func(r *faulty) {
		r.sink = func(told runner.Sink) runner.Sink { return func(e runner.Event) { f(e, told) } }
	}
}

var yes = runner.Answer{Decision: runner.Allowed, Source: runner.SourceUser}

// turning is a session whose turns are changed.
type turning struct {
	runner.Session
	turn  func(ctx context.Context, in runner.Input) (runner.Result, error)
	close func() error
}

func (t turning) Turn(ctx context.Context, in runner.Input) (runner.Result, error) {
	return t.turn(ctx, in)
}

func (t turning) Close() error {
	if t.close != nil {
		return t.close()
	}
	return t.Session.Close()
}

// leaking runs a command beside the runtime, in a group that nobody ends.
func leaking(t *testing.T) func(ctx context.Context, o runner.Options, g runner.Gate, q runner.Question) (runner.Answer, error) {
	return func(ctx context.Context, _ runner.Options, g runner.Gate, q runner.Question) (runner.Answer, error) {
		if strings.Contains(q.Command, "sleep 600") {
			cmd := exec.Command("sh", "-c", q.Command)
			cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
			if err := cmd.Start(); err != nil {
				t.Error(err)
			}
			t.Cleanup(func() {
				_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
				_ = cmd.Wait()
			})
		}
		return g.Ask(ctx, q)
	}
}

func TestBrokenRuntimesAreCaught(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		row  string
		harm func(*faulty)
	}{
		"runs before it asks": {"a refused command is not run and the turn goes on", answering(
			func(ctx context.Context, _ runner.Options, g runner.Gate, q runner.Question) (runner.Answer, error) {
				cmd := exec.Command("sh", "-c", q.Command)
				cmd.Dir = q.Folder
				_ = cmd.Run()
				return g.Ask(ctx, q)
			},
		)},
		"ignores a denial of a command": {"a refused command is not run and the turn goes on", answering(
			func(ctx context.Context, _ runner.Options, g runner.Gate, q runner.Question) (runner.Answer, error) {
				_, _ = g.Ask(ctx, q)
				return yes, nil
			},
		)},
		"ignores a denial of a change": {"a refused file change changes nothing", answering(
			func(ctx context.Context, _ runner.Options, g runner.Gate, q runner.Question) (runner.Answer, error) {
				_, _ = g.Ask(ctx, q)
				return yes, nil
			},
		)},
		"does not say why it may not": {"a refused command is not run and the turn goes on", answering(
			func(ctx context.Context, _ runner.Options, g runner.Gate, q runner.Question) (runner.Answer, error) {
				a, err := g.Ask(ctx, q)
				a.Reason = ""
				return a, err
			},
		)},
		"takes every denial for a person's": {"an answer that nobody gave in time is told", answering(
			func(ctx context.Context, _ runner.Options, g runner.Gate, q runner.Question) (runner.Answer, error) {
				a, err := g.Ask(ctx, q)
				a.Source = runner.SourceUser
				return a, err
			},
		)},
		"goes on when the gate fails": {"a gate that fails means no", answering(
			func(ctx context.Context, _ runner.Options, g runner.Gate, q runner.Question) (runner.Answer, error) {
				a, _ := g.Ask(ctx, q)
				return a, nil
			},
		)},
		"remembers an allowance": {"nothing is remembered of an answer", remembering()},
		"does not ask for changes of files": {"each mode and interaction is kept", answering(
			func(ctx context.Context, _ runner.Options, g runner.Gate, q runner.Question) (runner.Answer, error) {
				if q.Kind == runner.KindFileChange {
					return yes, nil
				}
				return g.Ask(ctx, q)
			},
		)},
		"takes a tool at its word": {"a tool of an MCP server is asked", answering(
			func(ctx context.Context, _ runner.Options, g runner.Gate, q runner.Question) (runner.Answer, error) {
				if q.Kind == runner.KindTool {
					return yes, nil
				}
				return g.Ask(ctx, q)
			},
		)},
		"calls everything a read": {"each mode and interaction is kept", answering(
			func(ctx context.Context, _ runner.Options, g runner.Gate, q runner.Question) (runner.Answer, error) {
				q.Categories = []policy.Category{policy.Read}
				return g.Ask(ctx, q)
			},
		)},
		"asks for what the table allows": {"each mode and interaction is kept", answering(
			func(ctx context.Context, _ runner.Options, g runner.Gate, q runner.Question) (runner.Answer, error) {
				q.Categories = append(q.Categories, policy.Unknown)
				return g.Ask(ctx, q)
			},
		)},
		"takes the policy once a turn": {"lowering takes effect at the next question", forgetful()},
		"keeps a question open behind its turn": {"a question is withdrawn with its turn", answering(
			func(ctx context.Context, _ runner.Options, g runner.Gate, q runner.Question) (runner.Answer, error) {
				ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 3*time.Second)
				defer cancel()
				return g.Ask(ctx, q)
			},
		)},
		"asks one question after another": {"several questions are open at the same time", serial()},
		"hands over our environment": {"a command sees nothing of our environment", answering(
			func(_ context.Context, _ runner.Options, _ runner.Gate, q runner.Question) (runner.Answer, error) {
				cmd := exec.Command("sh", "-c", q.Command)
				cmd.Dir, cmd.Env = q.Folder, append(os.Environ(), "REDIS_URL="+leak)
				_ = cmd.Run()
				return runner.Answer{}, nil
			},
		)},
		"leaves a process to a stop":      {"stopping ends a running command", answering(leaking(t))},
		"leaves a process to Close":       {"closing ends all of it", answering(leaking(t))},
		"leaves background work to Close": {"background work outlives its turn and ends with Close", answering(leaking(t))},
		"tells after Close": {"nothing is told after Close", func(r *faulty) {
			r.session = func(o runner.Options, s runner.Session) runner.Session {
				return turning{Session: s, turn: s.Turn, close: func() error {
					err := s.Close()
					late := time.AfterFunc(50*time.Millisecond, func() { o.Sink(runner.Event{Kind: runner.Notice, Text: "late"}) })
					t.Cleanup(func() { late.Stop() })
					return err
				}}
			}
		}},
		"mixes up the text":      {"a long text arrives whole", swapping()},
		"loses a part of a text": {"a long text arrives whole", losing(func(n int, _ time.Duration) bool { return n == 7 })},
		"loses what a slow sink does not take": {"a slow sink loses nothing", losing(func(_ int, took time.Duration) bool {
			return took >= time.Millisecond
		})},
		"does not tell that an item began": {"items come in order and belong to the turn", telling(func(e runner.Event, told runner.Sink) {
			if e.Kind != runner.ItemStarted {
				told(e)
			}
		})},
		"tells of turns, which is the bridge's": {"items come in order and belong to the turn", telling(func(e runner.Event, told runner.Sink) {
			told(e)
			if e.Kind == runner.ItemStarted {
				told(runner.Event{Kind: runner.TurnStarted, Turn: e.Turn})
			}
		})},
		"gives items to the first turn": {"turns follow one another", telling(func(e runner.Event, told runner.Sink) {
			if e.Turn == "turn3" {
				e.Turn = "turn1"
			}
			told(e)
		})},
		"keeps all of the output": {"huge output is bounded", telling(func(e runner.Event, told runner.Sink) {
			if e.Kind == runner.ItemCompleted && e.Item.Kind == runner.ItemCommand {
				i := *e.Item
				i.Output = strings.Repeat("x", 1<<20) + "end\n"
				e.Item = &i
			}
			told(e)
		})},
		"streams nothing": {"a text is streamed and completed", telling(func(e runner.Event, told runner.Sink) {
			if e.Kind != runner.ContentDelta {
				told(e)
			}
		})},
		"begins again in place of resuming": {"a session resumes after a restart", func(r *faulty) {
			r.open = func(o runner.Options) runner.Options { o.Resume = ""; return o }
		}},
		"takes any token": {"an unknown token is no session", func(r *faulty) {
			r.open = func(o runner.Options) runner.Options { o.Resume = ""; return o }
		}},
		"takes two turns at a time": {"one turn at a time", func(r *faulty) {
			r.session = func(_ runner.Options, s runner.Session) runner.Session {
				return turning{Session: s, turn: func(ctx context.Context, in runner.Input) (runner.Result, error) {
					res, err := s.Turn(ctx, in)
					if err != nil && !errors.Is(err, runner.ErrClosed) {
						return runner.Result{Outcome: runner.Completed}, nil
					}
					return res, err
				}}
			}
		}},
		"shows a part of a change": {"a file change is shown whole", answering(
			func(ctx context.Context, _ runner.Options, g runner.Gate, q runner.Question) (runner.Answer, error) {
				if len(q.Files) == 1 {
					f := q.Files[0]
					f.Diff, _, _ = strings.Cut(f.Diff, "\n+")
					q.Files = []runner.FileChange{f}
				}
				return g.Ask(ctx, q)
			},
		)},
		"shows another command": {"an allowed command is run in the folder", answering(
			func(ctx context.Context, _ runner.Options, g runner.Gate, q runner.Question) (runner.Answer, error) {
				q.Command, _, _ = strings.Cut(q.Command, ";")
				return g.Ask(ctx, q)
			},
		)},
		"answers for the person": {"questions reach a person", answering(
			func(ctx context.Context, _ runner.Options, g runner.Gate, q runner.Question) (runner.Answer, error) {
				a, err := g.Ask(ctx, q)
				if len(q.Queries) == 1 {
					a.Answers = map[string][]string{q.Queries[0].ID: {q.Queries[0].Options[0].Label}}
				}
				return a, err
			},
		)},
		"makes a mode looser": {"probe tells the truth", func(r *faulty) {
			r.Capability.Modes[policy.Auto] = policy.FullAccess
		}},
		"makes a mode stricter without a word": {"probe tells the truth", func(r *faulty) {
			r.Capability.Modes[policy.Auto] = policy.ApprovalRequired
		}},
		"cannot plan and does not say why": {"probe tells the truth", func(r *faulty) { r.Capability.Plan = false }},
		"says that it can be steered":      {"a steered turn takes the input", func(r *faulty) { r.Capability.Steer = true }},
		"does not say that nothing can crash": {"a crash of the agent is told and the session resumes", func(r *faulty) {
			delete(r.Capability.Why, runner.WhyCrash)
		}},
		"does not say that it has no reviewer": {"the runtime's own reviewer is told of", func(r *faulty) {
			delete(r.Capability.Why, runner.WhyReview)
		}},
		"says that it has no tools": {"a tool of an MCP server is asked", func(r *faulty) {
			r.Capability.Why[runner.WhyMCP] = "It has none."
		}},
		"does not say that it cannot fetch": {"each mode and interaction is kept", func(r *faulty) {
			delete(r.Capability.Why, "fetch")
		}},
		"names a looser cell that is none": {"each mode and interaction is kept", func(r *faulty) {
			r.Capability.Looser = []runner.Difference{{Category: policy.Write, Modes: []policy.Mode{policy.Auto}, What: "It writes."}}
		}},
	}
	whole := map[string]bool{}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if failures := examined(t, c.row, 500*time.Millisecond, c.harm); len(failures) == 0 {
				t.Errorf("%q found nothing", c.row)
			}
		})
		whole[c.row] = true
	}
	for row := range whole {
		t.Run("whole: "+row, func(t *testing.T) {
			t.Parallel()
			if failures := examined(t, row, time.Minute, func(*faulty) {}); len(failures) > 0 {
				t.Errorf("%q complains of a runtime that is whole: %q", row, failures)
			}
		})
	}
}

// examined tries one behaviour on a scripted runtime that was harmed, and returns the complaints.
func examined(t *testing.T, row string, patience time.Duration, harm func(*faulty)) []string {
	t.Helper()
	s := &subject{real: t, row: row}
	Exercise(s, Harness[*subject]{
		Parallel: true, MCP: true, Background: true, Multiple: true, Secrets: true, Books: []string{"*.json"}, Patience: patience,
		New: func(_ *subject, data string) runner.Runtime {
			r := &faulty{Runtime: New("script", nil)}
			r.Data = data
			harm(r)
			return r
		},
	})
	if s.runs != 1 {
		t.Fatalf("%q was tried %d times", row, s.runs)
	}
	return s.found()
}

// remembering asks once for each command.
func remembering() func(*faulty) {
	var mu sync.Mutex
	known := map[string]bool{}
	return answering(func(ctx context.Context, _ runner.Options, g runner.Gate, q runner.Question) (runner.Answer, error) {
		mu.Lock()
		old := known[q.Command]
		mu.Unlock()
		if old {
			return yes, nil
		}
		a, err := g.Ask(ctx, q)
		mu.Lock()
		known[q.Command] = a.Allows()
		mu.Unlock()
		return a, err
	})
}

// forgetful answers by what held when the turn began.
func forgetful() func(*faulty) {
	return func(r *faulty) {
		var mu sync.Mutex
		var held runner.Policy
		r.session = func(o runner.Options, s runner.Session) runner.Session {
			return turning{Session: s, turn: func(ctx context.Context, in runner.Input) (runner.Result, error) {
				mu.Lock()
				held = o.Policy()
				mu.Unlock()
				return s.Turn(ctx, in)
			}}
		}
		r.gate = func(_ runner.Options, g runner.Gate) runner.Gate {
			return runner.GateFunc(func(ctx context.Context, q runner.Question) (runner.Answer, error) {
				a, err := g.Ask(ctx, q)
				mu.Lock()
				defer mu.Unlock()
				if policy.Decide(held.Mode, held.Interaction, q.Categories...) == policy.Allow {
					return yes, nil
				}
				return a, err
			})
		}
	}
}

// serial lets nobody be asked while somebody is.
func serial() func(*faulty) {
	var one sync.Mutex
	return answering(func(ctx context.Context, _ runner.Options, g runner.Gate, q runner.Question) (runner.Answer, error) {
		one.Lock()
		defer one.Unlock()
		return g.Ask(ctx, q)
	})
}

// swapping tells two parts of a text in the wrong order.
func swapping() func(*faulty) {
	return func(r *faulty) {
		r.sink = func(told runner.Sink) runner.Sink {
			var held []runner.Event
			n := 0
			return func(e runner.Event) {
				if e.Kind == runner.ContentDelta {
					if n++; n == 3 {
						held = []runner.Event{e}
						return
					}
				}
				told(e)
				for _, h := range held {
					told(h)
				}
				held = nil
			}
		}
	}
}

// losing drops parts of a text.
func losing(drop func(n int, took time.Duration) bool) func(*faulty) {
	return func(r *faulty) {
		r.sink = func(told runner.Sink) runner.Sink {
			n, took := 0, time.Duration(0)
			return func(e runner.Event) {
				if e.Kind == runner.ContentDelta {
					if n++; drop(n, took) {
						took = 0
						return
					}
				}
				before := time.Now()
				told(e)
				took = time.Since(before)
			}
		}
	}
}
