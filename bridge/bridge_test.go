package bridge

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"drawbridge/approvals"
	"drawbridge/internal/store"
	"drawbridge/internal/store/storetest"
	"drawbridge/policy"
	"drawbridge/runner"
	"drawbridge/runner/runnertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const beat = 20 * time.Millisecond

// house is a gateway and a host in one process, over one store.
type house struct {
	t       *testing.T
	db      store.DB
	folder  string
	chats   *Chats
	gateway *approvals.Service
	shown   *shown
	stop    []func()
}

// shown keeps what a messenger would show.
type shown struct {
	mu      sync.Mutex
	entries []Entry
	live    []Live
	changed chan struct{}
	decided []approvals.Decision
}

func (s *shown) Project(t *store.Txn, e Entry) error {
	// A real projection writes into the store; here the entry is kept once its commit has happened, which a repeated call
	// of one entry would break: Seq tells them apart.
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, old := range s.entries {
		if old.Seq == e.Seq && e.Seq != 0 {
			s.entries[i] = e
			return nil
		}
	}
	s.entries = append(s.entries, e)
	s.touch()
	return nil
}

func (s *shown) Live(l Live) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.live = append(s.live, l)
	s.touch()
}

func (s *shown) touch() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// until waits until f finds what it looks for among the entries.
func (s *shown) until(t *testing.T, what string, f func([]Entry) bool) []Entry {
	t.Helper()
	deadline := time.After(60 * time.Second)
	for {
		s.mu.Lock()
		es, ch := append([]Entry(nil), s.entries...), s.changed
		s.mu.Unlock()
		if f(es) {
			return es
		}
		select {
		case <-ch:
		case <-deadline:
			t.Fatalf("%s: did not happen; seen %d entries: %v", what, len(es), kinds(es))
		}
	}
}

func kinds(es []Entry) []string {
	var out []string
	for _, e := range es {
		out = append(out, e.Chat+" "+string(e.Event.Kind)+" "+e.Turn)
	}
	return out
}

func (s *shown) ended(t *testing.T, turn string) runner.Result {
	t.Helper()
	var r runner.Result
	s.until(t, "end of "+turn, func(es []Entry) bool {
		for _, e := range es {
			if e.Event.Kind == runner.TurnEnded && e.Turn == turn {
				r = *e.Event.Result
				return true
			}
		}
		return false
	})
	return r
}

// asked waits for the n-th approval.
func (s *shown) asked(t *testing.T, n int) approvals.ID {
	t.Helper()
	var id approvals.ID
	s.until(t, "approval", func(es []Entry) bool {
		k := 0
		for _, e := range es {
			if e.Event.Kind == runner.RequestOpened {
				if k++; k == n {
					id = approvals.ID(e.Event.Request.ID)
					return true
				}
			}
		}
		return false
	})
	return id
}

func said(es []Entry, turn string) string {
	var b strings.Builder
	for _, e := range es {
		if e.Turn == turn && e.Event.Kind == runner.ContentDelta && e.Event.Item.Kind == runner.ItemMessage {
			b.WriteString(e.Event.Item.Text)
		}
	}
	return b.String()
}

func newHouse(t *testing.T) *house {
	t.Helper()
	return newHouseLogging(t, storetest.Logger(t))
}

// newHouseLogging is newHouse for what is an error and is logged as one.
func newHouseLogging(t *testing.T, logger *slog.Logger) *house {
	t.Helper()
	db := storetest.OpenBolt(t)
	h := &house{t: t, db: db, folder: t.TempDir(), shown: &shown{changed: make(chan struct{})}}
	h.gateway = approvals.New(approvals.Config{
		DB: db, Logger: logger, Beat: beat, DeadAfter: 15 * beat, Reread: 5 * beat, SweepEvery: beat,
		Decided: func(_ *store.Txn, _ approvals.Record, d approvals.Decision) error {
			h.shown.mu.Lock()
			defer h.shown.mu.Unlock()
			h.shown.decided = append(h.shown.decided, d)
			return nil
		},
	})
	h.chats = NewChats(ChatsConfig{DB: db, Logger: logger, Approvals: h.gateway, DefaultProject: "demo", DefaultRuntime: "script"})
	f := NewFollower(FollowerConfig{DB: db, Chats: h.chats, Approvals: h.gateway, Projection: h.shown, Reread: 5 * beat, Logger: logger})
	h.start(f.Run)
	h.start(h.gateway.RunSweep)
	t.Cleanup(h.down)
	return h
}

// start runs long-lived things until the returned function, or the end of the test.
func (h *house) start(runs ...func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for _, run := range runs {
		wg.Go(func() {
			if err := run(ctx); err != nil && ctx.Err() == nil {
				h.t.Errorf("ended with %v", err)
			}
		})
	}
	stop = sync.OnceFunc(func() { cancel(); wg.Wait() })
	h.stop = append(h.stop, stop)
	return stop
}

func (h *house) down() {
	for _, stop := range slices.Backward(h.stop) {
		stop()
	}
}

type hostOption func(*HostConfig)

// host starts a host and waits until it has said hello.
func (h *house) host(name string, options ...hostOption) (stop func()) {
	h.t.Helper()
	stop, _ = h.hostWithCrash(name, options...)
	return stop
}

// hostWithCrash also returns a function that makes the host silent at once, without letting it write anything more, as
// kill -9 would.
func (h *house) hostWithCrash(name string, options ...hostOption) (stop, crash func()) {
	h.t.Helper()
	db := &mortal{DB: h.db}
	log := NewLog(db, name)
	incarnation := string(store.NewRev())
	logger := storetest.Logger(h.t)
	svc := approvals.New(approvals.Config{
		DB: db, Host: name, Incarnation: incarnation, Logger: logger, Beat: beat, DeadAfter: 15 * beat, Reread: 5 * beat,
		Opened: log.Opened, Resolved: log.Resolved,
	})
	script := runnertest.New("script", nil)
	script.Data = filepath.Join(h.folder, "..", "script-"+name)
	if err := os.MkdirAll(script.Data, 0o700); err != nil {
		h.t.Fatal(err)
	}
	c := HostConfig{
		DB: db, Name: name, Incarnation: incarnation, Projects: []Project{{Name: "demo", Folder: h.folder}},
		Runtimes: []runner.Runtime{script}, Approvals: svc, Log: log, Data: h.t.TempDir(), Reread: 5 * beat, LivePace: beat, Logger: logger,
	}
	for _, o := range options {
		o(&c)
	}
	stop = h.start(svc.Run, NewHost(c).Run)
	deadline := time.Now().Add(60 * time.Second)
	for {
		alive, err := h.gateway.HostAlive(h.t.Context(), name)
		if err != nil {
			h.t.Fatal(err)
		}
		if alive && h.has(name) {
			return stop, func() { db.die(); stop() }
		}
		if time.Now().After(deadline) {
			h.t.Fatal("the host does not come up")
		}
		<-time.After(beat)
	}
}

func (h *house) has(host string) (ok bool) {
	h.update(func(t *store.Txn) error {
		hello, known, err := h.chats.Hello(t, host)
		ok = known && len(hello.Projects) > 0
		return err
	})
	return ok
}

func (h *house) update(f func(t *store.Txn) error) {
	h.t.Helper()
	if err := store.Update(h.t.Context(), h.db, f); err != nil {
		h.t.Fatal(err)
	}
}

func (h *house) prompt(chat, id, text string) (p Placement) {
	h.t.Helper()
	h.update(func(t *store.Txn) (err error) {
		now, err := t.Now()
		if err != nil {
			return err
		}
		p, err = h.chats.Prompt(t, chat, Prompt{ID: id, Text: text, By: "1", Name: "Ada", At: now})
		return err
	})
	return p
}

func (h *house) mode(chat string, m policy.Mode) {
	h.t.Helper()
	h.update(func(t *store.Txn) error { _, err := h.chats.SetMode(t, chat, m); return err })
}

func (h *house) tap(chat string, id approvals.ID, action string) approvals.Outcome {
	h.t.Helper()
	o, err := h.gateway.Decide(h.t.Context(), approvals.Tap{
		ID: id, Chat: chat, Person: approvals.Person{ID: 1, Name: "Ada", Role: approvals.Owner}, Action: action, Token: string(store.NewRev()),
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return o
}

func (h *house) timeline(host, chat string) (es []Entry) {
	h.t.Helper()
	h.update(func(t *store.Txn) (err error) {
		es, err = TimelineIn(t, host, chat, 0, maxScore, 0)
		return err
	})
	return es
}

func (h *house) chat(id string) Chat {
	h.t.Helper()
	c, err := h.chats.Read(h.t.Context(), id)
	if err != nil {
		h.t.Fatal(err)
	}
	return c
}

func silent() *slog.Logger { return slog.New(slog.DiscardHandler) }

// mortal is a store that answers nothing once its process is dead.
type mortal struct {
	store.DB
	mu   sync.Mutex
	dead bool
}

func (m *mortal) die() { m.mu.Lock(); m.dead = true; m.mu.Unlock() }

func (m *mortal) gone() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.dead {
		return store.ErrClosed
	}
	return nil
}

func (m *mortal) Read(ctx context.Context, keys ...string) (time.Time, []store.Doc, error) {
	if err := m.gone(); err != nil {
		return time.Time{}, nil, err
	}
	return m.DB.Read(ctx, keys...)
}

func (m *mortal) Range(ctx context.Context, index string, lo, hi int64, limit int) ([]store.Item, error) {
	if err := m.gone(); err != nil {
		return nil, err
	}
	return m.DB.Range(ctx, index, lo, hi, limit)
}

func (m *mortal) Commit(ctx context.Context, b store.Batch) error {
	if err := m.gone(); err != nil {
		return err
	}
	return m.DB.Commit(ctx, b)
}
