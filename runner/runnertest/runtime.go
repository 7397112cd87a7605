// Package runnertest tries runtimes on the contract of package runner, and holds a scripted runtime for those who need
// one to drive.
//
// Exercise is the conformance suite that every runtime passes. Runtime is an agent without a model: it does what a
// function, or the lines of the prompt, say, in a real folder and with real commands. It keeps the contract as strictly
// as a real runtime, so that what works with it works with them.
//
// The package does not import testing, so that the program itself can offer the scripted runtime in its demonstration.
package runnertest

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"time"

	"drawbridge/internal/process"
	"drawbridge/policy"
	"drawbridge/runner"
)

// TurnFunc is what a scripted agent does in a turn. When ctx ends it returns soon; whatever it then returns, the turn
// counts as interrupted.
type TurnFunc func(ctx context.Context, s *Scripted, in runner.Input) (runner.Result, error)

// Runtime is a scripted runner.Runtime. Its fields are set before its first use.
type Runtime struct {
	// Data is the folder that keeps sessions, so that they resume after a restart of the process; empty keeps them in
	// memory, as long as the Runtime.
	Data string
	// Capability is what Probe returns; New sets one that can do everything the scripted runtime can.
	Capability runner.Capability
	// Pace is the time between two deltas of a text.
	Pace time.Duration

	name string
	turn TurnFunc

	mu   sync.Mutex
	kept map[string]record
}

// record is what is kept of a session.
type record struct {
	V     int `json:"v"`
	Turns int `json:"turns"`
}

const recordVersion = 1

// New makes a scripted runtime; a nil turn is Follow.
func New(name string, turn TurnFunc) *Runtime {
	if turn == nil {
		turn = Follow
	}
	modes := make(map[policy.Mode]policy.Mode)
	for _, m := range policy.Modes() {
		modes[m] = m
	}
	return &Runtime{
		name: name,
		turn: turn,
		kept: make(map[string]record),
		Capability: runner.Capability{
			State: runner.Ready, Version: "script", Modes: modes, Plan: true, Questions: true,
			Why: map[string]string{
				"steer": "A script takes no input into a running turn.", "rewind": "A script keeps no history.",
				"fetch":           "A script has no tool that fetches.",
				runner.WhyDaemons: "A command of a script is not supervised beyond its process group.",
				runner.WhyReview:  "A script has no reviewer.", runner.WhySandbox: "A script has no sandbox.",
				runner.WhyAgents: "A script has no sub-agents.",
				runner.WhyCrash:  "A script is a part of Drawbridge.", runner.WhyFrames: "A script is a part of Drawbridge.",
			},
		},
	}
}

// Name is the name given to New.
func (r *Runtime) Name() string { return r.name }

// Probe returns Capability.
func (r *Runtime) Probe(ctx context.Context) (runner.Capability, error) {
	return r.Capability, ctx.Err()
}

// Open begins or resumes a session.
func (r *Runtime) Open(ctx context.Context, o runner.Options) (runner.Session, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("runnertest: open: %w", err)
	}
	s := &session{runtime: r, options: o, token: o.Resume}
	s.context, s.cancel = context.WithCancel(context.WithoutCancel(ctx))
	if o.Resume == "" {
		return s, nil
	}
	rec, err := r.load(o.Resume)
	if err != nil {
		s.cancel()
		return nil, fmt.Errorf("runnertest: open: resume: %w", err)
	}
	s.turns = rec.Turns
	return s, nil
}

// ours is what rand.Text makes; a token of another form must not become a path.
var ours = regexp.MustCompile(`^[A-Z2-7]{26,64}$`)

// load reads a session's record; an unknown token, whatever it looks like, is runner.ErrNoSession.
func (r *Runtime) load(token string) (record, error) {
	if r.Data == "" {
		r.mu.Lock()
		defer r.mu.Unlock()
		rec, ok := r.kept[token]
		if !ok {
			return record{}, runner.ErrNoSession
		}
		return rec, nil
	}
	if !ours.MatchString(token) {
		return record{}, runner.ErrNoSession
	}
	b, err := os.ReadFile(r.file(token))
	if errors.Is(err, fs.ErrNotExist) {
		return record{}, runner.ErrNoSession
	} else if err != nil {
		return record{}, err
	}
	var rec record
	if err := json.Unmarshal(b, &rec); err != nil || rec.V != recordVersion {
		return record{}, fmt.Errorf("%w: its record cannot be read", runner.ErrNoSession)
	}
	return rec, nil
}

func (r *Runtime) save(token string, rec record) error {
	rec.V = recordVersion
	if r.Data == "" {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.kept[token] = rec
		return nil
	}
	if err := os.MkdirAll(r.Data, 0o700); err != nil {
		return err
	}
	b, err := json.Marshal(rec)
	if err != nil {
		return err
	}
	part := r.file(token) + ".part"
	if err := os.WriteFile(part, b, 0o600); err != nil {
		return err
	}
	return os.Rename(part, r.file(token))
}

func (r *Runtime) file(token string) string { return filepath.Join(r.Data, token+".json") }

// session is one conversation with a script.
type session struct {
	runtime *Runtime
	options runner.Options
	context context.Context //nolint:containedctx // it is the session's life, which no single call bounds
	cancel  context.CancelFunc

	turning sync.Mutex // held during a turn

	mu     sync.Mutex // guards what is below, and is held while the sink is called
	closed bool
	token  string
	turns  int
	work   []work
}

// work outlives its turn.
type work struct {
	process *process.Process
	told    runner.Background
}

// works takes up work and tells that it began.
func (s *session) works(w work) {
	s.mu.Lock()
	s.work = append(s.work, w)
	s.mu.Unlock()
	s.emit(runner.Event{Kind: runner.BackgroundEvent, Background: &w.told})
}

// Turn runs the script for one prompt.
func (s *session) Turn(ctx context.Context, in runner.Input) (runner.Result, error) {
	if !s.turning.TryLock() {
		return runner.Result{}, errors.New("runnertest: turn: another turn is running")
	}
	defer s.turning.Unlock()
	if s.context.Err() != nil {
		return runner.Result{}, fmt.Errorf("runnertest: turn: %w", runner.ErrClosed)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.context, cancel)()

	if err := s.begin(); err != nil {
		return runner.Result{}, fmt.Errorf("runnertest: turn: %w", err)
	}
	res, err := s.runtime.turn(ctx, &Scripted{session: s, context: ctx, turn: in.Turn}, in)
	if ctx.Err() != nil {
		res.Outcome, err = runner.Interrupted, nil
	}
	if err != nil {
		return runner.Result{}, fmt.Errorf("runnertest: turn: %w", err)
	}
	if res.Outcome == "" {
		res.Outcome = runner.Completed
	}
	return res, nil
}

// begin counts the turn and, with the first one, gives the session its token.
func (s *session) begin() error {
	s.mu.Lock()
	fresh := s.token == ""
	if fresh {
		s.token = rand.Text()
	}
	s.turns++
	token, rec := s.token, record{Turns: s.turns}
	s.mu.Unlock()
	if err := s.runtime.save(token, rec); err != nil {
		return err
	}
	if fresh {
		s.emit(runner.Event{Kind: runner.SessionStarted, Text: token})
	}
	return nil
}

// emit hands an event to the sink, in order, unless the session is closed.
func (s *session) emit(e runner.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed && s.options.Sink != nil {
		s.options.Sink(e)
	}
}

// Close interrupts a running turn, waits until it has ended, and ends what works in the background.
func (s *session) Close() error {
	s.cancel()
	s.turning.Lock()
	defer s.turning.Unlock()
	s.mu.Lock()
	left := s.work
	s.work = nil
	s.mu.Unlock()
	for _, w := range left {
		w.process.Stop()
		w.told.Ended = true
		s.emit(runner.Event{Kind: runner.BackgroundEvent, Background: &w.told})
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return nil
}

// ResumeToken is empty before the first turn.
func (s *session) ResumeToken() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.token
}
