package approvals_test

import (
	"context"
	"errors"
	"flag"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"drawbridge/approvals"
	"drawbridge/internal/store"
	"drawbridge/internal/store/bolt"
	"drawbridge/policy"
	"drawbridge/runner"
)

// TestMain runs fewer random histories than rapid would by itself, because each writes to a real file for minutes of its
// own time; -rapid.checks asks for more.
func TestMain(m *testing.M) {
	flag.Parse()
	asked := false
	flag.Visit(func(f *flag.Flag) { asked = asked || f.Name == "rapid.checks" })
	if !asked {
		if err := flag.Set("rapid.checks", "25"); err != nil {
			panic(err)
		}
	}
	goleak.VerifyTestMain(m)
}

const chat = "-1001:7"

var (
	ada = approvals.Person{ID: 11, Name: "Ada", Role: approvals.Owner}
	bob = approvals.Person{ID: 12, Name: "Bob", Role: approvals.Operator}
	eve = approvals.Person{ID: 13, Name: "Eve", Role: approvals.Viewer}
)

// strictLog fails the test on a line of level Error.
type strictLog struct {
	t testing.TB
	slog.Handler
}

func (h strictLog) Handle(_ context.Context, r slog.Record) error {
	if r.Level >= slog.LevelError {
		h.t.Errorf("logged as an error: %s", r.Message)
	}
	return nil
}

func (h strictLog) Enabled(context.Context, slog.Level) bool { return true }
func (h strictLog) WithAttrs([]slog.Attr) slog.Handler       { return h }
func (h strictLog) WithGroup(string) slog.Handler            { return h }

func quiet(t testing.TB) *slog.Logger { return slog.New(strictLog{t, slog.DiscardHandler}) }

func openBolt(t testing.TB) store.DB {
	t.Helper()
	db, err := bolt.Open(filepath.Join(t.TempDir(), "test.db"), bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

// fast is a pace for tests that wait for the real clock. Only DeadAfter is nearly the real one, so that a machine under
// load takes nobody for dead.
func fast(db store.DB) approvals.Config {
	return approvals.Config{
		DB: db, Beat: 20 * time.Millisecond, DeadAfter: 5 * time.Second, Reread: 20 * time.Millisecond,
		SweepEvery: 20 * time.Millisecond,
	}
}

func gateway(t testing.TB, c approvals.Config) *approvals.Service {
	c.Host, c.Incarnation, c.Logger = "", "", quiet(t)
	return approvals.New(c)
}

// host runs a host until the test ends or stop is called.
func host(t testing.TB, c approvals.Config, incarnation string) (s *approvals.Service, stop func()) {
	t.Helper()
	c.Host, c.Incarnation, c.Logger = "box", incarnation, quiet(t)
	s = approvals.New(c)
	ctx, cancel := context.WithCancel(context.Background())
	var g sync.WaitGroup
	g.Go(func() {
		if err := s.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	stop = func() { cancel(); g.Wait() }
	t.Cleanup(stop)
	return s, stop
}

// allowing is a policy that can be changed while something asks.
type allowing struct {
	mu  sync.Mutex
	p   runner.Policy
	err error
}

func (a *allowing) set(m policy.Mode, i policy.Interaction) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.p, a.err = runner.Policy{Mode: m, Interaction: i}, nil
}

func (a *allowing) read(context.Context) (runner.Policy, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.p, a.err
}

func under(m policy.Mode, i policy.Interaction) *allowing {
	return &allowing{p: runner.Policy{Mode: m, Interaction: i}}
}

func turn(p *allowing) approvals.Run {
	return approvals.Run{
		ID: "t1", Chat: chat, Project: "p1", Session: "s1", Turn: "t1", Runtime: "native", Prompted: "11",
		Workspace: policy.Workspace{Root: "/srv/p1", Home: "/home/u"}, Policy: p.read,
	}
}

func command(line string) runner.Question {
	return runner.Question{Kind: runner.KindCommand, Title: "Run", Command: line, Folder: "/srv/p1", Categories: []policy.Category{policy.Terminal}}
}

// asked is a question on its way.
type asked struct {
	answer runner.Answer
	err    error
	done   chan struct{}
}

func ask(ctx context.Context, s *approvals.Service, run approvals.Run, q runner.Question) *asked {
	a := &asked{done: make(chan struct{})}
	go func() {
		defer close(a.done)
		a.answer, a.err = s.Ask(ctx, run, q)
	}()
	return a
}

func (a *asked) wait(t testing.TB) runner.Answer {
	t.Helper()
	select {
	case <-a.done:
	case <-time.After(60 * time.Second):
		t.Fatal("the question was not answered within 30 s")
	}
	if a.err != nil {
		t.Fatal(a.err)
	}
	return a.answer
}

// card waits until exactly n approvals wait for a person, and returns them, oldest first.
func card(t testing.TB, s *approvals.Service, n int) []approvals.Record {
	t.Helper()
	for end := time.Now().Add(60 * time.Second); time.Now().Before(end); time.Sleep(2 * time.Millisecond) { //nolint:forbidigo // it polls what another process may write
		rs, err := s.Pending(t.Context(), "")
		if err != nil && !errors.Is(err, store.ErrUnavailable) {
			t.Fatal(err)
		}
		if len(rs) == n {
			return rs
		}
	}
	t.Fatalf("there are not %d open approvals after 20 s", n)
	return nil
}

func tap(r approvals.Record, p approvals.Person, action string) approvals.Tap {
	return approvals.Tap{ID: r.ID, Chat: r.Chat, Person: p, Action: action}
}

func decide(t testing.TB, s *approvals.Service, tap approvals.Tap) approvals.Outcome {
	t.Helper()
	o, err := s.Decide(context.WithoutCancel(t.Context()), tap)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func stands(t testing.TB, s *approvals.Service, id approvals.ID) approvals.Stand {
	t.Helper()
	r, d, err := s.Get(context.WithoutCancel(t.Context()), id)
	if err != nil {
		t.Fatal(err)
	}
	return approvals.Standing(r, d)
}
