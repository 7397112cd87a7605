package native_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"drawbridge/internal/chatapi"
	"drawbridge/internal/modeltest"
	"drawbridge/runner"
	"drawbridge/runner/native"
)

// strict fails the test on an Error line.
type strict struct{ t *testing.T }

func (s strict) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelError }
func (s strict) Handle(_ context.Context, r slog.Record) error {
	s.t.Errorf("logged: %s", r.Message)
	return nil
}
func (s strict) WithAttrs([]slog.Attr) slog.Handler { return s }
func (s strict) WithGroup(string) slog.Handler      { return s }

// serve runs a model server until the test ends.
func serve(t *testing.T, c modeltest.Config) *modeltest.Server {
	t.Helper()
	s, err := modeltest.New(c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return s
}

// runtime makes a native runtime on a model server.
func runtime(t *testing.T, c native.Config) *native.Runtime {
	t.Helper()
	if c.Name == "" {
		c.Name = "native"
	}
	if c.Model == "" {
		c.Model = "scripted"
	}
	if c.Data == "" {
		c.Data = t.TempDir()
	}
	c.Logger = slog.New(strict{t})
	if c.API.Backoff == 0 {
		c.API = chatapi.Config{Backoff: time.Millisecond}
	}
	r, err := native.New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

// session is an open session of a test, with all that it told.
type session struct {
	runner.Session
	mu        sync.Mutex
	events    []runner.Event
	questions []runner.Question
}

// open begins a session whose gate answers with answer; nil allows everything.
func open(t *testing.T, r runner.Runtime, o runner.Options, answer func(runner.Question) runner.Answer) *session {
	t.Helper()
	s := &session{}
	o.Sink = func(e runner.Event) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.events = append(s.events, e)
	}
	if o.Gate == nil {
		o.Gate = runner.GateFunc(func(_ context.Context, q runner.Question) (runner.Answer, error) {
			s.mu.Lock()
			s.questions = append(s.questions, q)
			s.mu.Unlock()
			if answer == nil {
				return runner.Answer{Decision: runner.Allowed, Source: runner.SourceUser}, nil
			}
			return answer(q), nil
		})
	}
	var err error
	if s.Session, err = r.Open(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// turn runs a prompt that has to end with the outcome.
func (s *session) turn(t *testing.T, text string, want runner.Outcome) runner.Result {
	t.Helper()
	res, err := s.Turn(t.Context(), runner.Input{Turn: "t", Text: text})
	if err != nil {
		t.Fatal(err)
	}
	if res.Outcome != want {
		t.Fatalf("the turn ended as %s (%s), want %s", res.Outcome, res.Reason, want)
	}
	return res
}

// completed are the completed items of a kind.
func (s *session) completed(kind runner.ItemKind) []runner.Item {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []runner.Item
	for _, e := range s.events {
		if e.Kind == runner.ItemCompleted && e.Item.Kind == kind {
			list = append(list, *e.Item)
		}
	}
	return list
}

// results are the results of tools since the last prompt of a request.
func results(r modeltest.Request) []string {
	var list []string
	for _, m := range r.Messages {
		switch m.Role {
		case "user":
			list = nil
		case "tool":
			list = append(list, m.Content)
		}
	}
	return list
}

// calling is a script that makes the calls one answer at a time, and then says the last result.
func calling(calls ...modeltest.Call) modeltest.Script {
	return func(_ context.Context, r modeltest.Request) modeltest.Reply {
		done := results(r)
		if len(done) < len(calls) {
			return modeltest.Reply{Calls: []modeltest.Call{calls[len(done)]}}
		}
		return modeltest.Reply{Text: "Last result: " + done[len(done)-1]}
	}
}

type args map[string]any

// write puts a file into a folder.
func write(t *testing.T, dir, path, text string) {
	t.Helper()
	file := filepath.Join(dir, path)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, dir, path string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestToolsWorkOnRealFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "main.go", "package main\n\nfunc main() {\n\tprintln(\"helo\")\n}\n")
	srv := serve(t, modeltest.Config{Script: calling(
		modeltest.CallOf("list_dir", args{}),
		modeltest.CallOf("glob", args{"pattern": "**/*.go"}),
		modeltest.CallOf("grep", args{"pattern": `hel+o"`}),
		modeltest.CallOf("read_file", args{"path": "main.go", "offset": "4", "limit": 1}),
		modeltest.CallOf("edit", args{"path": "main.go", "old": "helo", "new": "hello"}),
		modeltest.CallOf("write_file", args{"path": "sub/new.txt", "content": "new\n"}),
		modeltest.CallOf("shell", args{"command": "cat sub/new.txt; pwd; exit 3"}),
	)})
	s := open(t, runtime(t, native.Config{BaseURL: srv.URL()}), runner.Options{Folder: dir}, nil)
	s.turn(t, "go", runner.Completed)

	requests := srv.Requests()
	got := results(requests[len(requests)-1])
	want := []string{
		"main.go\n", "main.go\n", "main.go:4:\tprintln(\"helo\")\n", "     4\t\tprintln(\"helo\")\n[The file goes on; read from offset 5.]\n",
		"Done: main.go now has 5 lines (+1, −1).", "Done: sub/new.txt now has 1 lines (+1, −0).",
		"new\n" + dir + "\n[Exit status 3.]",
	}
	if strings.Join(got, "\n--\n") != strings.Join(want, "\n--\n") {
		t.Errorf("results\n%q\nwant\n%q", got, want)
	}
	if text := read(t, dir, "main.go"); !strings.Contains(text, `println("hello")`) {
		t.Errorf("main.go holds %q", text)
	}
	if m := s.completed(runner.ItemMessage); len(m) != 1 || !strings.HasPrefix(m[0].Text, "Last result: new") {
		t.Errorf("messages %+v", m)
	}
	if len(s.questions) != 7 {
		t.Errorf("the gate was asked %d times for 7 calls", len(s.questions))
	}
	q := s.questions[4]
	if q.Kind != runner.KindFileChange || !strings.Contains(q.Files[0].Diff, "-\tprintln(\"helo\")\n+\tprintln(\"hello\")\n") {
		t.Errorf("the edit was asked as %+v", q)
	}
}
