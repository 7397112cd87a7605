package codex_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"drawbridge/policy"
	"drawbridge/runner"
	"drawbridge/runner/codex"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// golden compares with a file of testdata.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, got, 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(want, got) {
		t.Errorf("%s differs; got:\n%s", file, got)
	}
}

// imitate makes a runtime whose codex is this test binary.
func imitate(t *testing.T, m imitation, change ...func(*codex.Config)) *codex.Runtime {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if m.Version == "" {
		m.Version = "codex-cli 0.171.0"
	}
	b, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	c := codex.Config{
		Program: self, Data: data(t), Logger: logger(t), Environment: map[string]string{replayVariable: string(b), "GORACE": "atexit_sleep_ms=0"},
		Pace: codex.Pace{Start: time.Minute, Call: time.Minute, Echo: 30 * time.Second, Stop: 30 * time.Second, Settle: 200 * time.Millisecond},
	}
	for _, f := range change {
		f(&c)
	}
	r, err := codex.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// chat is an open session with all that it told and asked.
type chat struct {
	runner.Session
	t      *testing.T
	answer func(context.Context, runner.Question) (runner.Answer, error)

	mu        sync.Mutex
	policy    runner.Policy
	events    []runner.Event
	questions []runner.Question
	heard     chan struct{} // closed, and made anew, with each event
}

func approvalRequired() runner.Policy {
	return runner.Policy{Mode: policy.ApprovalRequired, Interaction: policy.Default}
}

func yes(context.Context, runner.Question) (runner.Answer, error) {
	return runner.Answer{Decision: runner.Allowed, Action: runner.ActionAllow, Source: runner.SourceUser}, nil
}

func no(context.Context, runner.Question) (runner.Answer, error) {
	return runner.Answer{Decision: runner.Denied, Source: runner.SourceUser, Reason: "not today"}, nil
}

type opening struct {
	folder, resume string
	policy         runner.Policy
	answer         func(context.Context, runner.Question) (runner.Answer, error)
}

func open(t *testing.T, r *codex.Runtime, o opening) *chat {
	t.Helper()
	c := &chat{t: t, policy: o.policy, answer: o.answer, heard: make(chan struct{})}
	if c.policy == (runner.Policy{}) {
		c.policy = approvalRequired()
	}
	if c.answer == nil {
		c.answer = no
	}
	if o.folder == "" {
		o.folder = data(t)
	}
	s, err := r.Open(t.Context(), runner.Options{
		Folder: o.folder, Resume: o.resume, Gate: runner.GateFunc(c.ask), Sink: c.sink, Policy: c.now,
	})
	if err != nil {
		t.Fatal(err)
	}
	c.Session = s
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func (c *chat) now() runner.Policy {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.policy
}

func (c *chat) sink(e runner.Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.events = append(c.events, e)
	close(c.heard)
	c.heard = make(chan struct{})
}

// ask is the table, and behind it the person.
func (c *chat) ask(ctx context.Context, q runner.Question) (runner.Answer, error) {
	c.mu.Lock()
	c.questions = append(c.questions, q)
	p := c.policy
	c.mu.Unlock()
	switch policy.Decide(p.Mode, p.Interaction, q.Categories...) {
	case policy.Allow:
		return runner.Answer{Decision: runner.Allowed, Source: runner.SourceRule}, nil
	case policy.Deny:
		return runner.Answer{Decision: runner.Denied, Source: runner.SourceRule}, nil
	case policy.Ask, policy.Review:
	}
	return c.answer(ctx, q)
}

func (c *chat) seen() ([]runner.Event, []runner.Question) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]runner.Event(nil), c.events...), append([]runner.Question(nil), c.questions...)
}

func (c *chat) turn(lines ...string) runner.Result {
	c.t.Helper()
	r, err := c.Turn(c.t.Context(), runner.Input{Turn: "turn", Text: strings.Join(lines, "\n")})
	if err != nil {
		c.t.Fatal(err)
	}
	return r
}

// said is all that the agent said.
func (c *chat) said() string {
	var parts []string
	events, _ := c.seen()
	for _, e := range events {
		if e.Kind == runner.ItemCompleted && e.Item.Kind == runner.ItemMessage {
			parts = append(parts, e.Item.Text)
		}
	}
	return strings.Join(parts, "\n")
}

// notes are the texts of a kind of events.
func (c *chat) kinds(kind runner.EventKind) []runner.Event {
	var list []runner.Event
	events, _ := c.seen()
	for _, e := range events {
		if e.Kind == kind {
			list = append(list, e)
		}
	}
	return list
}

// await waits for an event of a kind.
func (c *chat) await(kind runner.EventKind) {
	c.t.Helper()
	c.until(func() bool { return len(c.kinds(kind)) > 0 })
}

// until waits for events.
func (c *chat) until(seen func() bool) {
	c.t.Helper()
	limit := time.NewTimer(time.Minute)
	defer limit.Stop()
	for {
		c.mu.Lock()
		heard := c.heard
		c.mu.Unlock()
		if seen() {
			return
		}
		select {
		case <-heard:
		case <-limit.C:
			c.t.Fatal("what is waited for was not told")
		}
	}
}

func contextOf(t *testing.T) (context.Context, context.CancelFunc) {
	t.Helper()
	return context.WithCancel(t.Context())
}
