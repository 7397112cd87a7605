package codex

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"drawbridge/runner"
)

// session is a thread of codex, with its sub-agents.
type session struct {
	runtime *Runtime
	options runner.Options
	queue   *queue
	context context.Context //nolint:containedctx // the session's own: it ends with Close, and with it all that is asked
	cancel  context.CancelFunc
	once    sync.Once
	over    chan struct{} // closed when Close is done
	asks    sync.WaitGroup

	mu        sync.Mutex
	closed    bool
	server    *server // of which the session holds a use; may have ended
	thread    string
	persisted bool // the thread can be resumed
	model     string
	echo      echo
	tier      string        // the loaded thread's service tier, as codex says
	guards    guards        // what the profiles of the loaded thread name
	denies    bool          // the loaded thread was held to a profile that denies
	echoed    chan struct{} // closed, and made anew, when the echo changes
	turn      *turn
	turns     map[string]string // ours by codex's
	items     map[string]*item  // those that run, by thread and id
	changed   chan struct{}     // closed, and made anew, when an item ends
	attached  string            // a folder of copies of what was attached; empty while there are none
	// unreviewed is why codex's own reviewer is not used any more; empty while it may be.
	unreviewed string
	agents     map[string]*agent // sub-agents, by thread
	past       map[string]bool   // the threads of those that have ended their work
	strays     map[string]bool   // turns of codex that nobody asked for
	stopped    map[string]bool   // turns of codex that were interrupted: nothing may begin for them any more
}

// agent is a sub-agent.
type agent struct {
	title   string
	turn    string // codex's, while it works
	owner   string // our turn that it works for
	started time.Time
}

// turn is a turn that runs.
type turn struct {
	input runner.Input
	// missing are codex's placeholders that the workspace did not have at its start.
	missing []string
	id      string // codex's; empty until it is known
	sent    bool   // codex was told to begin it
	held    held
	// context ends when what was asked in the turn is withdrawn.
	context  context.Context //nolint:containedctx // as the session's
	cancel   context.CancelFunc
	agents   context.Context //nolint:containedctx // ends when what its sub-agents asked is withdrawn: when it is interrupted
	withdraw context.CancelFunc
	abort    func()         // interrupts the turn
	leaves   bool           // the chat has left plan with it
	ended    chan turnFrame // has room for one
	finished chan struct{}
	usage    runner.Usage
	last     *turnError // the last error that codex told
	loose    string     // a looser echo that came while it ran
	refused  int        // how often codex tried again although that does not help
	hopeless string     // why it was ended, where codex would have tried on
	asked    runner.Policy
	plan     string // with which it ends, while the chat plans
}

func newSession(r *Runtime, o runner.Options) *session {
	ctx, cancel := context.WithCancel(context.Background())
	return &session{
		runtime: r, options: o, queue: newQueue(o.Sink), context: ctx, cancel: cancel, over: make(chan struct{}),
		thread: o.Resume, persisted: o.Resume != "", echoed: make(chan struct{}), changed: make(chan struct{}),
		turns: map[string]string{}, items: map[string]*item{}, agents: map[string]*agent{}, past: map[string]bool{},
		strays: map[string]bool{}, stopped: map[string]bool{},
	}
}

// attach sees to it that a codex runs which has the thread loaded.
func (s *session) attach(ctx context.Context) error {
	s.mu.Lock()
	old := s.server
	s.mu.Unlock()
	if old != nil {
		if old.alive() {
			return nil
		}
		s.mu.Lock()
		s.server = nil
		s.mu.Unlock()
		s.runtime.release(old)
	}
	srv, err := s.runtime.acquire(ctx)
	if err != nil {
		return err
	}
	if err := s.load(ctx, srv); err != nil {
		s.runtime.release(srv)
		return err
	}
	return nil
}

// load begins or resumes the thread, with an editing profile for the workspace as it is.
func (s *session) load(ctx context.Context, srv *server) error {
	p, err := s.runtime.find()
	if err != nil {
		return err
	}
	s.mu.Lock()
	thread, persisted := s.thread, s.persisted
	s.mu.Unlock()
	found := guarded(s.options.Folder)
	params := openParams{
		Cwd: s.options.Folder, ApprovalPolicy: askEscalations, ApprovalsReviewer: reviewerUser, Sandbox: "read-only",
		Model: s.runtime.config.Model, Config: map[string]access{
			"permissions." + profilePlan: s.runtime.profile(profilePlan, p, found),
			"permissions." + profileEdit: s.runtime.profile(profileEdit, p, found),
		},
	}
	if len(s.runtime.config.Servers) > 0 {
		params.Config["mcp_servers"] = s.runtime.servers()
	}
	method := "thread/start"
	if persisted {
		method, params.ThreadID, params.ExcludeTurns = "thread/resume", thread, true
		params.ModelProvider = s.runtime.provider()
	} else {
		params.Tools = ownTools()
	}
	var got threadOpened
	err = srv.call(ctx, method, params, &got)
	if unknown(err) && persisted {
		found, cause := s.runtime.adoptWhole(thread, s.options.Folder)
		if cause != nil {
			return cause
		}
		if found {
			err = srv.call(ctx, method, params, &got)
		}
	}
	if err != nil {
		if unknown(err) && persisted {
			return fmt.Errorf("%w: %w", runner.ErrNoSession, err)
		}
		if strings.Contains(err.Error(), "active writer") {
			return fmt.Errorf("%w: %w", errElsewhere, err)
		}
		return err
	}
	if got.Thread.ID == "" || persisted && got.Thread.ID != thread {
		return errors.New("codex opened another thread than it was asked to")
	}
	s.mu.Lock()
	again := s.server == srv
	s.server, s.thread, s.echo, s.model, s.guards = srv, got.Thread.ID, got.echo(), cmp.Or(got.Model, s.model), found
	s.denies, s.tier = false, orEmpty(got.Tier)
	s.mu.Unlock()
	srv.add(got.Thread.ID, s)
	if persisted && !again {
		s.queue.emit(runner.Event{Kind: runner.SessionStarted, Text: thread})
	}
	return nil
}

// unknown reports whether codex says that it can't go on with a thread: it has none, or not its beginning, or may not take
// it to our model provider.
func unknown(err error) bool {
	return err != nil && slices.ContainsFunc([]string{
		"no rollout found", "missing source rollout", "uses model provider", "this thread's model provider",
	}, func(s string) bool {
		return strings.Contains(err.Error(), s)
	})
}

// refresh loads the thread again where it has to be for what it is to be held to: a thread keeps its profiles as they
// were when it was loaded, and what one of them denied. It reports false where work in the background stands in the way.
func (s *session) refresh(ctx context.Context, srv *server, to held) (bool, error) {
	s.mu.Lock()
	thread, persisted := s.thread, s.persisted
	stale := s.denies && !to.plan
	if to.profile == profileEdit || to.plan {
		stale = stale || !s.guards.equal(guarded(s.options.Folder))
	}
	busy := len(s.items) > 0 || len(s.agents) > 0
	s.mu.Unlock()
	switch {
	case !stale:
		return true, nil
	case busy:
		return false, nil
	case persisted:
		// A loaded thread ignores what it is resumed with.
		if err := srv.call(ctx, "thread/unsubscribe", threadOnly{thread}, nil); err != nil {
			return false, err
		}
	}
	return true, s.load(ctx, srv)
}

// ResumeToken is the thread's id, once codex keeps the thread: from its first turn on.
func (s *session) ResumeToken() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.persisted {
		return ""
	}
	return s.thread
}

// runs reports whether a turn of codex is one of the session's.
func (s *session) runs(turn string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.turns[turn]
	return ok
}

// lost is called when codex has ended by itself, or because it was stopped.
func (s *session) lost(srv *server) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.server != srv {
		return
	}
	s.closeItems(func(*item) bool { return s.turn == nil })
	for thread := range s.agents {
		s.endAgent(thread)
	}
}

// Close ends the session; see runner.Session.
func (s *session) Close() error {
	s.once.Do(s.end)
	<-s.over
	return nil
}

func (s *session) end() {
	defer close(s.over)
	s.mu.Lock()
	s.closed = true
	running := s.turn
	s.mu.Unlock()
	s.cancel() // interrupts the turn
	if running != nil {
		<-running.finished
	}
	s.mu.Lock()
	srv, thread := s.server, s.thread
	s.mu.Unlock()
	if srv != nil {
		ctx, cancel := context.WithTimeout(context.Background(), s.runtime.config.Pace.Stop)
		s.quiet(ctx, srv)
		_ = srv.call(ctx, "thread/unsubscribe", threadOnly{thread}, nil) // it may have ended
		cancel()
		srv.remove(s)
	}
	s.asks.Wait()
	s.mu.Lock()
	s.closeItems(func(*item) bool { return true })
	for thread := range s.agents {
		s.endAgent(thread)
	}
	s.mu.Unlock()
	s.queue.end()
	if s.attached != "" {
		_ = os.RemoveAll(s.attached) // what is left over is in a folder of ours
	}
	if srv != nil {
		s.runtime.release(srv)
	}
}

// quiet ends what outlives a turn: sub-agents that work, and commands in the background, theirs too, also of those that
// have ended their work. An interrupted turn leaves all of it behind.
func (s *session) quiet(ctx context.Context, srv *server) {
	s.mu.Lock()
	threads := append([]string{s.thread}, slices.Collect(maps.Keys(s.past))...)
	var running []threadTurn
	for thread, a := range s.agents {
		if !s.past[thread] {
			threads = append(threads, thread)
		}
		if a.turn != "" {
			running = append(running, threadTurn{thread, a.turn})
		}
	}
	s.mu.Unlock()
	for _, t := range running {
		s.expect(srv, srv.call(ctx, "turn/interrupt", t, nil), "turn/interrupt")
	}
	for _, thread := range threads {
		s.expect(srv, srv.call(ctx, "thread/backgroundTerminals/clean", threadOnly{thread}, nil), "thread/backgroundTerminals/clean")
	}
}

// expect logs a request that failed although codex runs. What has ended in between is not worth a line.
func (s *session) expect(srv *server, err error, method string) {
	if err != nil && srv.alive() && !strings.Contains(err.Error(), "no active turn") {
		s.runtime.config.Logger.Warn("codex refused a request", "method", method, "err", err)
	}
}

// Steer gives input to the running turn; see runner.Steerer. Codex takes it when the agent next comes up for air: a
// question that is open is answered first.
func (s *session) Steer(ctx context.Context, in runner.Input) (bool, error) {
	s.mu.Lock()
	t, srv, thread := s.turn, s.server, s.thread
	id := ""
	if t != nil {
		id = t.id
	}
	s.mu.Unlock()
	if id == "" || srv == nil {
		return false, nil
	}
	given, err := s.inputs(in)
	if err != nil {
		return false, fmt.Errorf("codex: steer: %w", err)
	}
	err = srv.call(ctx, "turn/steer", steerParams{ThreadID: thread, ExpectedTurnID: id, Input: given, ClientMessageID: in.Turn}, nil)
	if err != nil {
		if strings.Contains(err.Error(), "no active turn") || strings.Contains(err.Error(), "expected active turn") {
			return false, nil
		}
		return false, fmt.Errorf("codex: steer: %w", err)
	}
	return true, nil
}

// SetPolicy reports whether what runs is held to p from here on. The gate answers by the policy of the moment in any
// case; the sandbox of a turn that runs can't be changed, so that a turn which may write unasked has to be interrupted
// before it is held to a policy that does not let it. The next turn is held to the policy of its start anyway.
func (s *session) SetPolicy(_ context.Context, p runner.Policy) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false, fmt.Errorf("codex: set policy: %w", runner.ErrClosed)
	}
	if s.turn != nil {
		return s.turn.held.binds(p), nil
	}
	// Sub-agents and commands that outlive their turn keep its sandbox.
	for _, a := range s.agents {
		if a.turn != "" {
			return false, nil
		}
	}
	return len(s.items) == 0, nil
}
