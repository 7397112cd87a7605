package runnertest_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"drawbridge/runner"
	"drawbridge/runner/runnertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// told collects what a session tells.
type told struct {
	mu     sync.Mutex
	events []runner.Event
}

func (l *told) sink(e runner.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, e)
}

// messages are the completed messages.
func (l *told) messages() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var s []string
	for _, e := range l.events {
		if e.Kind == runner.ItemCompleted && e.Item.Kind == runner.ItemMessage {
			s = append(s, e.Item.Text)
		}
	}
	return s
}

func open(t *testing.T, r *runnertest.Runtime, o runner.Options) runner.Session {
	t.Helper()
	s, err := r.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestFollowDoesWhatTheLinesSay(t *testing.T) {
	t.Parallel()
	allow := runner.GateFunc(func(_ context.Context, q runner.Question) (runner.Answer, error) {
		a := runner.Answer{Decision: runner.Allowed, Source: runner.SourceUser, Action: runner.ActionAllow}
		if q.Kind == runner.KindQuestion {
			a.Answers = map[string][]string{q.Queries[0].ID: {q.Queries[0].Options[1].Label}}
		}
		return a, nil
	})
	dir, log := t.TempDir(), &told{}
	s := open(t, runnertest.New("script", nil), runner.Options{Folder: dir, Gate: allow, Sink: log.sink})
	res, err := s.Turn(t.Context(), runner.Input{Turn: "t1", Text: "say hello\nwrite sub/a.txt some words\n" +
		"run cat sub/a.txt > b.txt; exit 3\nask Which?|this|that\nlong 5\nturns\nanything else\ntogether true || true\nfail on purpose\nsay unreached"})
	if err != nil || res.Outcome != runner.Broken || res.Reason != "on purpose" {
		t.Fatalf("result %+v, error %v", res, err)
	}
	if got, want := strings.Join(log.messages(), "\n"), "hello\nThe answer: that\nAll w\nThis is turn 1.\nanything else"; got != want {
		t.Errorf("said %q, want %q", got, want)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "b.txt")); err != nil || string(b) != "some words\n" {
		t.Errorf("b.txt holds %q, %v", b, err)
	}
	if _, err := s.Turn(t.Context(), runner.Input{Turn: "t2", Text: "crash now"}); err == nil {
		t.Error("crash: no error")
	}
}

func TestSessionsResumeFromDataAlone(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	script := func() *runnertest.Runtime {
		r := runnertest.New("script", nil)
		r.Data = data
		return r
	}
	s := open(t, script(), runner.Options{Folder: t.TempDir()})
	if _, err := s.Turn(t.Context(), runner.Input{Turn: "t1", Text: "say x"}); err != nil {
		t.Fatal(err)
	}
	log := &told{}
	again := open(t, script(), runner.Options{Folder: t.TempDir(), Resume: s.ResumeToken(), Sink: log.sink})
	if _, err := again.Turn(t.Context(), runner.Input{Turn: "t2", Text: "turns"}); err != nil {
		t.Fatal(err)
	}
	if got := log.messages(); len(got) != 1 || got[0] != "This is turn 2." {
		t.Errorf("said %q", got)
	}
	for _, token := range []string{"unknown", "../" + s.ResumeToken(), "/etc/passwd", "a/b"} {
		if _, err := script().Open(t.Context(), runner.Options{Resume: token}); !errors.Is(err, runner.ErrNoSession) {
			t.Errorf("resume %q: error %v, want ErrNoSession", token, err)
		}
	}
}

func TestOneTurnAtATime(t *testing.T) {
	t.Parallel()
	entered, leave := make(chan struct{}), make(chan struct{})
	r := runnertest.New("script", func(context.Context, *runnertest.Scripted, runner.Input) (runner.Result, error) {
		close(entered)
		<-leave
		return runner.Result{}, nil
	})
	s := open(t, r, runner.Options{Folder: t.TempDir()})
	first := make(chan error, 1)
	go func() { _, err := s.Turn(t.Context(), runner.Input{Turn: "t1"}); first <- err }()
	<-entered
	if _, err := s.Turn(t.Context(), runner.Input{Turn: "t2"}); err == nil {
		t.Error("a second turn ran at the same time")
	}
	close(leave)
	if err := <-first; err != nil {
		t.Error(err)
	}
}
