package task

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"drawbridge/approvals"
	"drawbridge/bridge"
	"drawbridge/internal/store"
	"drawbridge/internal/store/storetest"
	"drawbridge/policy"
	"drawbridge/runner"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	home    = "-1001"
	project = "demo"
	ada     = "11"
)

// world is gateways and hosts in one process, over one store whose clock is the bubble's. What the agents do is told to them
// by the test. All of it runs in a synctest bubble.
type world struct {
	t        *testing.T
	db       *storetest.Memory
	folder   string
	gateways []*gateway
	hosts    map[string]*host

	mu     sync.Mutex
	turns  map[string]*turn // that run, by id
	may    bool
	grow   func(who string) store.DB // the store as a process sees it
	hooks  []Hook                    // of the gateways that are started after this is set
	call   func(ctx context.Context, h Hook, k Task) error
	notice func(t *store.Txn, e Event) // sees what people are told in its commit
}

type gateway struct {
	chats     *bridge.Chats
	approvals *approvals.Service
	tasks     *Service
	stop      func()
}

type host struct {
	name string
	stop func()
}

// turn is a turn of an agent that does what it is told.
type turn struct {
	id     string
	in     runner.Input
	host   string
	began  time.Time
	ctx    context.Context //nolint:containedctx // the turn's
	gate   runner.Gate
	policy func() runner.Policy
	sink   runner.Sink
	end    chan runner.Result
	asking sync.WaitGroup
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, db: storetest.NewMemory(nil), folder: t.TempDir(), hosts: map[string]*host{}, turns: map[string]*turn{}, may: true}
	w.grow = func(string) store.DB { return w.db }
	return w
}

// live runs things until stop is called, which waits for them.
func live(t *testing.T, runs ...func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	for _, run := range runs {
		all.Go(func() {
			if err := run(ctx); err != nil && ctx.Err() == nil && !errors.Is(err, store.ErrClosed) {
				t.Errorf("ended with %v", err)
			}
		})
	}
	return sync.OnceFunc(func() { cancel(); all.Wait() })
}

const pace = time.Minute

// toldKey counts what people were told; the events are under it and their numbers.
const toldKey = "g:test:told"

// gateway starts a gateway, or another one in the place of i.
func (w *world) gateway(i int) {
	db := w.grow(fmt.Sprint("gateway ", i))
	logger := slog.New(slog.DiscardHandler)
	g := &gateway{approvals: approvals.New(approvals.Config{DB: db, Beat: pace, DeadAfter: 10 * pace, Reread: pace, SweepEvery: pace, Deadline: 5 * time.Minute})}
	g.chats = bridge.NewChats(bridge.ChatsConfig{DB: db, Logger: logger, Approvals: g.approvals, DefaultRuntime: "script"})
	g.tasks = New(Config{
		DB: db, Chats: g.chats, Approvals: g.approvals, Pace: pace, Logger: logger, Hooks: w.hooks, Call: w.call,
		Notify: func(t *store.Txn, e Event) error {
			if w.notice != nil {
				w.notice(t, e)
				return nil
			}
			// Kept in the commit, because a commit that is tried again calls this again.
			n, _, err := store.Get[int](t, toldKey)
			if err != nil {
				return err
			}
			if err := store.Put(t, toldKey, n+1); err != nil {
				return err
			}
			return store.Put(t, fmt.Sprint(toldKey, ":", n), e)
		},
		May: func(*store.Txn, string, string) (bool, error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			return w.may, nil
		},
	})
	f := bridge.NewFollower(bridge.FollowerConfig{DB: db, Chats: g.chats, Approvals: g.approvals, Projection: g.tasks, Reread: pace, Logger: logger})
	g.stop = live(w.t, f.Run, g.approvals.RunSweep, g.tasks.Run, g.tasks.RunHooks)
	for len(w.gateways) <= i {
		w.gateways = append(w.gateways, nil)
	}
	w.gateways[i] = g
}

// host starts a host, or the next run of it.
func (w *world) host(name string) {
	db := w.grow("host " + name)
	log := bridge.NewLog(db, name)
	logger := slog.New(slog.DiscardHandler)
	incarnation := string(store.NewRev())
	svc := approvals.New(approvals.Config{
		DB: db, Host: name, Incarnation: incarnation, Logger: logger, Beat: pace, DeadAfter: 10 * pace, Reread: pace, Deadline: 5 * time.Minute,
		Opened: log.Opened, Resolved: log.Resolved,
	})
	h := bridge.NewHost(bridge.HostConfig{
		DB: db, Name: name, Incarnation: incarnation, Projects: []bridge.Project{{Name: project, Folder: w.folder}}, Runtimes: []runner.Runtime{&agent{w: w, host: name}},
		Approvals: svc, Log: log, Data: w.folder, Reread: pace, LivePace: pace, Logger: logger,
	})
	w.hosts[name] = &host{name: name, stop: live(w.t, svc.Run, h.Run)}
}

func (w *world) down() {
	for _, h := range w.hosts {
		h.stop()
	}
	for _, g := range w.gateways {
		g.stop()
	}
	if err := w.db.Close(); err != nil {
		w.t.Error(err)
	}
}

// update is a change by a person, at a gateway that lives.
func (w *world) update(f func(t *store.Txn) error) {
	w.t.Helper()
	if err := store.Update(context.Background(), w.db, f); err != nil {
		w.t.Fatal(err)
	}
}

// keeper is a gateway's rules over the store itself: for what the test looks up and what people do.
func (w *world) keeper() *gateway {
	g := &gateway{approvals: approvals.New(approvals.Config{DB: w.db})}
	g.chats = bridge.NewChats(bridge.ChatsConfig{DB: w.db, Logger: slog.New(slog.DiscardHandler), Approvals: g.approvals, DefaultRuntime: "script"})
	g.tasks = New(Config{DB: w.db, Chats: g.chats, Approvals: g.approvals})
	return g
}

// settle puts the chat in the project of a host, in a mode.
func (w *world) settle(host string, m policy.Mode) {
	k := w.keeper()
	w.update(func(t *store.Txn) error {
		name := project
		if len(w.hosts) > 1 {
			name += "@" + host
		}
		if _, err := k.chats.SetProject(t, home, name); err != nil {
			return err
		}
		_, err := k.chats.SetMode(t, home, m)
		return err
	})
}

func (w *world) mode(m policy.Mode) {
	k := w.keeper()
	w.update(func(t *store.Txn) error { _, err := k.chats.SetMode(t, home, m); return err })
}

func (w *world) tasks() (all []Task) {
	k := w.keeper()
	w.update(func(t *store.Txn) (err error) { all, err = k.tasks.Tasks(t, home, Filter{}); return err })
	return all
}

func (w *world) running() []*turn {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []*turn
	for _, t := range w.turns {
		out = append(out, t)
	}
	slices.SortFunc(out, func(a, b *turn) int { return strings.Compare(a.id, b.id) })
	return out
}

// agent is a runtime whose turns wait to be told what to do.
type agent struct {
	w    *world
	host string
}

func (*agent) Name() string { return "script" }

func (*agent) Probe(context.Context) (runner.Capability, error) {
	return runner.Capability{State: runner.Ready}, nil
}

func (a *agent) Open(_ context.Context, o runner.Options) (runner.Session, error) {
	return &session{agent: a, o: o}, nil
}

type session struct {
	agent *agent
	o     runner.Options
}

func (s *session) Close() error        { return nil }
func (s *session) ResumeToken() string { return "token" }

func (s *session) Turn(ctx context.Context, in runner.Input) (runner.Result, error) {
	w := s.agent.w
	t := &turn{id: in.Turn, in: in, host: s.agent.host, began: time.Now(), ctx: ctx, gate: s.o.Gate, policy: s.o.Policy, sink: s.o.Sink, end: make(chan runner.Result, 1)}
	id, ofTask := OfTurn(in.Turn)
	w.mu.Lock()
	for other := range w.turns {
		if of, ok := OfTurn(other); ok && ofTask && of == id {
			w.t.Errorf("%s and %s run at the same time", other, in.Turn)
		}
	}
	w.turns[in.Turn] = t
	w.mu.Unlock()
	defer func() {
		t.asking.Wait()
		w.mu.Lock()
		delete(w.turns, in.Turn)
		w.mu.Unlock()
	}()
	select {
	case <-ctx.Done():
		return runner.Result{Outcome: runner.Interrupted}, ctx.Err()
	case r := <-t.end:
		return r, nil
	}
}

// ask asks what the turn's gate says of a command with these categories, and hands the answer over.
func (t *turn) ask(what string, c []policy.Category, then func(runner.Answer)) {
	t.asking.Go(func() {
		a, err := t.gate.Ask(t.ctx, runner.Question{Kind: runner.KindTool, Tool: "act", Title: what, Arguments: []byte(`{}`), Categories: c})
		if err == nil {
			then(a)
		}
	})
}

func completed() runner.Result { return runner.Result{Outcome: runner.Completed} }
