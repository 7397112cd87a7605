package claude_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"drawbridge/policy"
	"drawbridge/runner"
	"drawbridge/runner/claude"
)

var update = flag.Bool("update", false, "rewrite golden files; with -tags runtimes, also the transcripts")

// scenario is a conversation that was recorded with the real program and is played without it.
type scenario struct {
	name    string
	policy  runner.Policy
	prompts []string
	answer  func(q runner.Question) runner.Answer
	// stop interrupts the last turn once this file stands in the workspace, or a question is open.
	stop string
	// wait is for a turn that the program begins by itself.
	wait bool
}

// scenarios are all there are; the scripts of the model are in record_test.go.
func scenarios() []scenario {
	planning := runner.Policy{Mode: policy.AutoAcceptEdits, Interaction: policy.Plan}
	return []scenario{
		{name: "text", policy: asking, prompts: []string{"say hello", "/compact is said, not done"}, answer: no},
		{name: "allowed", policy: asking, prompts: []string{"go"}, answer: yes},
		{name: "refused", policy: asking, prompts: []string{"go"}, answer: no},
		{name: "edits", policy: asking, prompts: []string{"go"}, answer: yes},
		{name: "question", policy: asking, prompts: []string{"go"}, answer: func(q runner.Question) runner.Answer {
			a := yes(q)
			a.Answers = map[string][]string{}
			for _, one := range q.Queries {
				a.Answers[one.ID] = []string{one.Options[1].Label}
			}
			return a
		}},
		{name: "plan", policy: planning, prompts: []string{"go"}, answer: yes},
		{name: "planned-refused", policy: planning, prompts: []string{"go"}, answer: no},
		{name: "interrupted", policy: asking, prompts: []string{"go"}, answer: yes, stop: "begun"},
		{name: "withdrawn", policy: asking, prompts: []string{"go"}, answer: nil, stop: "asked"},
		{name: "background", policy: asking, prompts: []string{"go"}, answer: yes, wait: true},
		{name: "sub-agent", policy: asking, prompts: []string{"go"}, answer: yes},
		{name: "unauthorised", policy: asking, prompts: []string{"go"}, answer: no},
		{name: "overloaded", policy: asking, prompts: []string{"go"}, answer: no},
	}
}

var asking = runner.Policy{Mode: policy.ApprovalRequired, Interaction: policy.Default}

// open is an open session, with all that it told and asked.
type open struct {
	runner.Session
	t      *testing.T
	folder string
	data   string
	answer func(q runner.Question) runner.Answer // nil waits for the withdrawal
	opened chan struct{}                         // gets something with each question

	mu        sync.Mutex
	policy    runner.Policy
	events    []runner.Event
	questions []runner.Question
	lines     [3][]string // the story, as golden files have it: what was told, what was asked, how turns ended
	changed   chan struct{}
}

// yes is a person who allows everything.
func yes(runner.Question) runner.Answer {
	return runner.Answer{Decision: runner.Allowed, Action: runner.ActionAllow, Source: runner.SourceUser}
}

// no is one who allows nothing.
func no(runner.Question) runner.Answer {
	return runner.Answer{Decision: runner.Denied, Action: runner.ActionDeny, Source: runner.SourceUser}
}

// begin opens a session whose gate is the table, and behind it the person.
func begin(t *testing.T, r *claude.Runtime, folder string, p runner.Policy, answer func(runner.Question) runner.Answer) *open {
	t.Helper()
	return resume(t, r, folder, "", p, answer)
}

func resume(t *testing.T, r *claude.Runtime, folder, token string, p runner.Policy, answer func(runner.Question) runner.Answer) *open {
	t.Helper()
	o := &open{t: t, folder: folder, data: r.Data(), policy: p, answer: answer, opened: make(chan struct{}, 100), changed: make(chan struct{}, 1)}
	var err error
	o.Session, err = r.Open(t.Context(), runner.Options{
		Folder: folder, Resume: token, Gate: runner.GateFunc(o.ask), Sink: o.sink, Policy: o.allowed,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := o.Close(); err != nil {
			t.Error(err)
		}
	})
	return o
}

func (o *open) sink(e runner.Event) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.events = append(o.events, e)
	if e.Kind == runner.ContentDelta {
		return // how a text is cut is of no interest
	}
	if e.Background != nil {
		b := *e.Background
		b.Started = time.Time{}
		e.Background = &b
	}
	o.tell(0, e)
	select {
	case o.changed <- struct{}{}:
	default:
	}
}

// tell adds to the story. mu is held.
func (o *open) tell(part int, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		o.t.Error(err)
	}
	o.lines[part] = append(o.lines[part], string(b))
}

func (o *open) allowed() runner.Policy {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.policy
}

func (o *open) ask(ctx context.Context, q runner.Question) (runner.Answer, error) {
	p := o.allowed()
	switch policy.Decide(p.Mode, p.Interaction, q.Categories...) {
	case policy.Allow:
		return runner.Answer{Decision: runner.Allowed, Source: runner.SourceRule}, nil
	case policy.Deny:
		return runner.Answer{Decision: runner.Denied, Source: runner.SourceRule}, nil
	case policy.Ask, policy.Review:
	}
	o.mu.Lock()
	o.questions = append(o.questions, q)
	o.tell(1, q)
	o.mu.Unlock()
	o.opened <- struct{}{}
	if o.answer == nil {
		<-ctx.Done()
		return runner.Answer{}, context.Cause(ctx)
	}
	return o.answer(q), nil
}

// turn runs a prompt that has to end so, and returns its result.
func (o *open) turn(text string, want runner.Outcome) runner.Result {
	o.t.Helper()
	ctx, cancel := context.WithTimeout(o.t.Context(), time.Minute)
	defer cancel()
	res, err := o.Turn(ctx, runner.Input{Turn: "turn", Text: text})
	if err != nil || res.Outcome != want {
		o.t.Fatalf("the turn ended as %q (%s), error %v; want %q\n%s", res.Outcome, res.Reason, err, want, o.story())
	}
	return res
}

// story is all that was told and asked. What differs from one run to the next is replaced.
func (o *open) story() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	text := ""
	for i, heading := range []string{"told", "asked", "ended"} {
		text += heading + ":\n" + strings.Join(append(slices.Clone(o.lines[i]), ""), "\n")
	}
	replace := []string{o.folder, "/FOLDER", o.data, "/DATA"}
	if token := o.ResumeToken(); token != "" {
		replace = append(replace, token, recordedSession)
	}
	return strings.NewReplacer(replace...).Replace(text)
}

// await waits until something was told for which ok holds.
func (o *open) await(what string, ok func(runner.Event) bool) {
	o.t.Helper()
	timeout := time.After(time.Minute)
	for {
		o.mu.Lock()
		found := slices.ContainsFunc(o.events, ok)
		o.mu.Unlock()
		if found {
			return
		}
		select {
		case <-o.changed:
		case <-timeout:
			o.t.Fatalf("%s was not told\n%s", what, o.story())
		}
	}
}

// gone is closed when the present process has ended.
func (o *open) gone() <-chan struct{} { return claude.Gone(o.Session) }

func (o *open) exists(name string) bool {
	_, err := os.Lstat(filepath.Join(o.folder, name))
	return err == nil
}

// folder is a workspace without a link in its path.
func folder(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// run plays the scenario in a session and adds the results to its story.
func (s scenario) run(o *open) {
	o.t.Helper()
	for i, text := range s.prompts {
		ctx, cancel := context.WithTimeout(o.t.Context(), time.Minute)
		if s.stop != "" && i == len(s.prompts)-1 {
			go func() {
				defer cancel()
				s.awaitStop(o)
			}()
		}
		res, err := o.Turn(ctx, runner.Input{Turn: fmt.Sprintf("turn%d", i+1), Text: text})
		cancel()
		if err != nil {
			o.t.Fatalf("turn: %v\n%s", err, o.story())
		}
		o.mu.Lock()
		o.tell(2, res)
		o.mu.Unlock()
	}
	if s.wait {
		o.await("a turn that begins by itself, unless the background ended in the turn before it", func(e runner.Event) bool {
			return e.Kind == runner.UsageUpdated && e.Turn == "" || e.Kind == runner.BackgroundEvent && e.Background.Ended && e.Turn != ""
		})
	}
}

// awaitStop waits for the moment of the interrupt.
func (s scenario) awaitStop(o *open) {
	if s.stop == "asked" {
		<-o.opened
		return
	}
	for !o.exists(s.stop) && o.t.Context().Err() == nil {
		time.Sleep(5 * time.Millisecond) //nolint:forbidigo // another process; nothing tells
	}
}

// golden compares a text with a file of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs; with -update it becomes:\n%s", file, got)
	}
}

// faked makes a runtime of the fake with a transcript, in a file of its own.
func faked(t *testing.T, transcript string, c claude.Config) (r *claude.Runtime, file string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(t.TempDir(), "transcript")
	if err := os.WriteFile(file, []byte(transcript), 0o600); err != nil {
		t.Fatal(err)
	}
	c.Name, c.Program, c.Logger = "claude", self, slog.New(strict{t})
	if c.Data == "" {
		c.Data = t.TempDir()
	}
	if c.Set == nil {
		c.Set = map[string]string{}
	}
	c.Set[fakeVariable] = file
	if r, err = claude.New(c); err != nil {
		t.Fatal(err)
	}
	return r, file
}
