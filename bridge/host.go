package bridge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"drawbridge/approvals"
	"drawbridge/internal/store"
	"drawbridge/policy"
	"drawbridge/runner"
)

// HostConfig is what a Host needs. Zero durations get their defaults.
type HostConfig struct {
	DB          store.DB
	Name        string
	Incarnation string // of this run of the process; see approvals.Config
	Projects    []Project
	Runtimes    []runner.Runtime
	Reviewer    string // the reviewer's model as people are told; empty if there is none
	Approvals   *approvals.Service
	Log         *Log
	// Data is this host's own folder: attachments are put there.
	Data string
	// Home is the home folder of the person who runs the host, for the classification of paths.
	Home        string
	SessionIdle time.Duration // an agent's process is closed after so long without a turn; default 15 min
	Reread      time.Duration // how often the store is read without a hint; default 2 s
	LivePace    time.Duration // the least time between two messages about a streaming turn; default 300 ms
	Grace       time.Duration // how long running turns may still take when the host is asked to stop; default none
	Keep        time.Duration // how long its log and turns are kept; default 30 days
	// Ready is called once, when what this host offers is known to gateways, which refuse prompts before; nil is fine.
	Ready  func()
	Logger *slog.Logger
}

// Host is the loop of a host: it takes the orders that gateways give, runs each in a session of its runtime, and writes
// what happens into its log. Run it once.
type Host struct {
	cfg HostConfig

	// persist is what is written with: it outlives a stop for as long as it takes to write down how the turns ended.
	persist context.Context //nolint:containedctx // the life of Run, for the turns that it waits for

	again chan struct{} // asks for another look at the orders

	mu       sync.Mutex
	turns    map[string]*hostTurn    // by turn, those that run here
	sessions map[string]*hostSession // by chat
	errands  map[string]bool         // that were begun
	past     map[string]bool         // turns that were run, and whose order is not taken away yet
	aside    map[string]store.Rev    // by turn, the revision of its order that can't be read
	stopping bool                    // questions that end now end because the host does
	sights   map[string]*sight       // by runtime, what it was seen to be able to do; the map itself never changes
	untold   bool                    // what goes on in the background has changed since it was told

	told map[string]jobs // by chat, what was told last of its background; only Run's goroutine uses it
}

// NewHost returns a host that does nothing until Run.
func NewHost(c HostConfig) *Host {
	c.SessionIdle = cmp.Or(c.SessionIdle, 15*time.Minute)
	c.Reread = cmp.Or(c.Reread, 2*time.Second)
	c.LivePace = cmp.Or(c.LivePace, 300*time.Millisecond)
	c.Keep = cmp.Or(c.Keep, 30*24*time.Hour)
	h := &Host{cfg: c, again: make(chan struct{}, 1), sights: sights(c.Runtimes), errands: map[string]bool{}, past: map[string]bool{}, aside: map[string]store.Rev{}, turns: map[string]*hostTurn{}, sessions: map[string]*hostSession{}}
	c.Log.flush, c.Log.cost = h.flushTurn, h.reviewCost
	return h
}

func (h *Host) reviewCost(turn string, u runner.Usage) {
	h.mu.Lock()
	t := h.turns[turn]
	h.mu.Unlock()
	if t != nil {
		t.rec.cost(u)
	}
}

func (h *Host) flushTurn(ctx context.Context, turn string) error {
	h.mu.Lock()
	t := h.turns[turn]
	h.mu.Unlock()
	if t == nil {
		return nil
	}
	return t.rec.flush(ctx)
}

// Run works until ctx ends; then it stops taking orders, lets running turns end within Grace, interrupts the rest, closes
// all sessions and returns. It returns early only with an error that makes the host useless.
func (h *Host) Run(ctx context.Context) error {
	var giveUp context.CancelFunc
	h.persist, giveUp = context.WithCancel(context.WithoutCancel(ctx))
	defer giveUp()
	if err := h.retry(ctx, "announce", h.publish); err != nil {
		return nil // only ctx ends the retries
	}
	if h.cfg.Ready != nil {
		h.cfg.Ready()
	}
	saying, hush := context.WithCancel(ctx)
	var offering sync.WaitGroup
	offering.Go(func() { h.keepOffering(saying) })
	defer offering.Wait()
	defer hush()
	if err := h.retry(ctx, "end the turns of an earlier run", h.bury); err != nil {
		return nil // only ctx ends the retries
	}
	if err := h.retry(ctx, "forget the background work of an earlier run", h.forgetJobs); err != nil {
		return nil // only ctx ends the retries
	}
	hints, err := h.cfg.DB.Listen(ctx, wakeTopic(h.cfg.Name))
	if err != nil {
		return fmt.Errorf("bridge: host %s: listen: %w", h.cfg.Name, err)
	}
	work, interrupt := context.WithCancelCause(context.WithoutCancel(ctx))
	defer interrupt(nil)
	var running sync.WaitGroup
	tick := time.NewTicker(h.cfg.Reread)
	defer tick.Stop()
	slow := time.NewTicker(time.Minute)
	defer slow.Stop()
	for ctx.Err() == nil {
		if err := h.look(work, &running); err != nil && ctx.Err() == nil {
			h.cfg.Logger.Warn("cannot read the orders; trying again", "err", err)
		}
		select {
		case <-ctx.Done():
		case <-hints:
		case <-h.again:
		case <-tick.C:
		case <-slow.C:
			if err := h.prune(ctx); err != nil && ctx.Err() == nil {
				h.cfg.Logger.Warn("housekeeping failed; trying again in a minute", "err", err)
			}
		}
	}
	h.finish(&running, interrupt, giveUp)
	return nil
}

// lastWords is how long the end of the turns may take to be written when the host stops. A store that is away for longer
// finds them buried by the next run.
const lastWords = 10 * time.Second

// finish is the second phase of a stop.
func (h *Host) finish(running *sync.WaitGroup, interrupt context.CancelCauseFunc, giveUp context.CancelFunc) {
	done := make(chan struct{})
	go func() { running.Wait(); close(done) }() // waited for below
	if h.cfg.Grace > 0 {
		select {
		case <-done:
		case <-time.After(h.cfg.Grace):
		}
	}
	h.keep()
	interrupt(errHostStops)
	late := time.AfterFunc(lastWords, giveUp)
	<-done
	late.Stop()
	h.mu.Lock()
	open := h.sessions
	h.sessions = map[string]*hostSession{}
	h.mu.Unlock()
	for chat, s := range open {
		if err := s.session.Close(); err != nil {
			h.cfg.Logger.Warn("closing a session failed", "chat", chat, "err", err)
		}
	}
	h.jobsChanged()
	if err := h.tellJobs(h.persist); err != nil {
		h.cfg.Logger.Debug("cannot say that the background work has ended; the next run does", "err", err)
	}
}

func (h *Host) retry(ctx context.Context, what string, f func(context.Context) error) error {
	for {
		err := f(ctx)
		if err == nil || ctx.Err() != nil {
			return context.Cause(ctx)
		}
		h.cfg.Logger.Warn("cannot start yet; trying again", "step", what, "err", err)
		select {
		case <-ctx.Done():
		case <-time.After(h.cfg.Reread):
		}
	}
}

// look starts what was ordered and not yet begun, and stops what was stopped.
func (h *Host) look(ctx context.Context, running *sync.WaitGroup) error {
	items, err := h.cfg.DB.Range(ctx, ordersIndex(h.cfg.Name), 0, maxScore, 0)
	if err != nil {
		return err
	}
	keys := make([]string, len(items))
	for i, it := range items {
		keys[i] = orderKey(h.cfg.Name, it.Member)
	}
	_, docs, err := h.cfg.DB.Read(ctx, keys...)
	if err != nil {
		return err
	}
	ordered := map[string]bool{}
	var orders []Order
	for i, d := range docs {
		if d.Rev == "" {
			continue
		}
		o, err := decode[Order](d.Value)
		if err != nil {
			h.setAside(items[i].Member, d.Rev, err)
			continue
		}
		if o.Stop {
			h.interrupt(o.Turn, errStopped)
		}
		ordered[o.Turn] = true
		orders = append(orders, o)
	}
	h.mu.Lock()
	var gone []string
	for id := range h.turns {
		if !ordered[id] {
			gone = append(gone, id)
		}
	}
	maps.DeleteFunc(h.past, func(id string, _ bool) bool { return !ordered[id] })
	h.mu.Unlock()
	for _, id := range gone {
		// A gateway has declared this host dead meanwhile and ended the turn; going on would be somebody else's turn too.
		h.interrupt(id, errDisowned)
	}
	h.tighten(ctx)
	err = errors.Join(h.runErrands(ctx, running), h.lowerIdle(ctx), h.closeIdle(ctx), h.tellJobs(ctx))
	for _, o := range orders {
		h.begin(ctx, running, o)
	}
	return err
}

// setAside reports an order that can't be read, once. It stays until somebody stops its turn, which writes it anew.
func (h *Host) setAside(turn string, rev store.Rev, err error) {
	h.mu.Lock()
	known := h.aside[turn] == rev
	h.aside[turn] = rev
	h.mu.Unlock()
	if !known {
		h.cfg.Logger.Error("an order cannot be read and is set aside; /stop in its chat ends the turn", "turn", turn, "err", err)
	}
}

// tighten tells the agents that hold a policy of their own when their chat's has become stricter. A turn that cannot take
// it is interrupted: lowering a mode never waits for the end of a turn. A looser policy waits for the next one.
func (h *Host) tighten(ctx context.Context) {
	h.mu.Lock()
	var setters []*hostSession
	for _, s := range h.sessions {
		if _, ok := s.session.(runner.PolicySetter); ok && s.turn != nil {
			setters = append(setters, s)
		}
	}
	h.mu.Unlock()
	for _, s := range setters {
		h.mu.Lock()
		t := s.turn
		h.mu.Unlock()
		if t == nil {
			continue
		}
		now, err := h.policy(ctx, t.order)
		if err != nil {
			continue // look interrupts what was taken away; a store that is away is asked again
		}
		h.mu.Lock()
		was := t.under
		t.under = now
		h.mu.Unlock()
		if was == (runner.Policy{}) || !stricter(was, now) {
			continue
		}
		applied, err := s.session.(runner.PolicySetter).SetPolicy(ctx, now) //nolint:forcetypeassert // looked at above
		if err != nil {
			h.cfg.Logger.Warn("an agent could not be told a stricter policy", "chat", s.chat, "err", err)
		}
		if !applied {
			t.cancel(errTightened)
		}
	}
}

func (h *Host) interrupt(turn string, why error) {
	h.mu.Lock()
	t := h.turns[turn]
	h.mu.Unlock()
	if t != nil {
		t.cancel(why)
	}
}

func (h *Host) begin(ctx context.Context, running *sync.WaitGroup, o Order) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, here := h.turns[o.Turn]; here || h.past[o.Turn] {
		return
	}
	for _, t := range h.turns {
		// The gateway counts a turn as ended that this host still has to stop (it took the host for dead): its successor
		// waits, so that there is never a second one in a chat or a folder.
		if t.order.Chat == o.Chat || t.order.Writer && o.Writer && t.order.Folder == o.Folder {
			return
		}
	}
	tctx, cancel := context.WithCancelCause(ctx)
	base := Entry{Chat: o.Chat, Turn: o.Turn, Session: o.Session}
	t := &hostTurn{h: h, order: o, cancel: cancel, done: make(chan struct{}), rec: newRecorder(h.cfg.Log, h.cfg.Logger.With("chat", o.Chat, "turn", o.Turn), base, time.Now())}
	h.turns[o.Turn] = t
	running.Go(func() {
		defer cancel(nil)
		past := t.run(tctx)
		close(t.done)
		h.mu.Lock()
		delete(h.turns, o.Turn)
		if past { // else it would be tried again without a pause for as long as no gateway takes the order away
			h.past[o.Turn] = true
		}
		h.mu.Unlock()
		select {
		case h.again <- struct{}{}: // somebody may have waited for it
		default:
		}
	})
}

// bury ends the turns that an earlier run of this host left running. They are not started again: their chat is told and
// may resume.
func (h *Host) bury(ctx context.Context) error {
	items, err := h.cfg.DB.Range(ctx, ordersIndex(h.cfg.Name), 0, maxScore, 0)
	if err != nil {
		return err
	}
	for _, it := range items {
		err := store.Update(ctx, h.cfg.DB, func(t *store.Txn) error {
			rec, ok, err := store.Get[Turn](t, turnKey(h.cfg.Name, it.Member))
			if errors.Is(err, store.ErrDamaged) {
				h.cfg.Logger.Error("a turn's record is damaged; the turn is ended", "turn", it.Member, "err", err)
				var o Order
				o, ok, err = store.Peek[Order](t, orderKey(h.cfg.Name, it.Member))
				rec = Turn{V: Version, ID: it.Member, Chat: o.Chat, State: TurnRunning}
				if errors.Is(err, store.ErrDamaged) {
					return nil // a stop ends it
				}
			}
			if err != nil || !ok || rec.State != TurnRunning || rec.Incarnation == h.cfg.Incarnation {
				return err
			}
			return h.endIn(t, rec, runner.Result{Outcome: runner.Interrupted, Reason: errHostDied.Error()}, nil)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// endIn is the only way in which a turn ends on its host.
func (h *Host) endIn(t *store.Txn, rec Turn, r runner.Result, sum *Summary) error {
	now, err := t.Now()
	if err != nil {
		return err
	}
	rec.State, rec.Ended, rec.Result = TurnEnded, now, &r
	if err := store.Put(t, turnKey(h.cfg.Name, rec.ID), rec); err != nil {
		return err
	}
	t.Add(forgetIndex(h.cfg.Name), turnKey(h.cfg.Name, rec.ID), store.Micros(now))
	return h.cfg.Log.AppendIn(t, Entry{
		Chat: rec.Chat, Turn: rec.ID, Event: runner.Event{Kind: runner.TurnEnded, Turn: rec.ID, Result: &r}, Summary: sum,
	})
}

// policy is what the chat allows at this moment, read from the store. A turn that its gateway has taken away is allowed
// nothing.
func (h *Host) policy(ctx context.Context, o Order) (runner.Policy, error) {
	docs, err := h.readPatiently(ctx, mirrorKey(h.cfg.Name, o.held()), orderKey(h.cfg.Name, o.Turn))
	if err != nil {
		return runner.Policy{}, fmt.Errorf("bridge: read the policy of %s: %w", o.Chat, err)
	}
	if docs[1].Rev == "" {
		return runner.Policy{}, fmt.Errorf("bridge: policy of %s: %w", o.Chat, errDisowned)
	}
	m, err := decode[Mirror](docs[0].Value)
	if err != nil {
		return runner.Policy{}, fmt.Errorf("bridge: read the policy of %s: %w", o.Chat, err)
	}
	stored, err := decode[Order](docs[1].Value)
	if err != nil {
		return runner.Policy{}, fmt.Errorf("bridge: read the order of %s: %w", o.Turn, err)
	}
	p := o.policy(m)
	p.Mode = p.Mode.AtMost(stored.policy(m).Mode) // it may have been bound since it was given
	return p, nil
}

// policy is what a turn is allowed where the chat to which it is held is as m says: it is the one function that yields
// the policy of any work, and it is called anew for each ask.
func (o Order) policy(m Mirror) runner.Policy {
	p := runner.Policy{Mode: m.Mode.AtMost(policy.FullAccess), Interaction: m.Interaction}
	if o.Prompt.Limit != "" || o.Prompt.Work != nil || o.Of != "" { // what has lost the mode it was made under has the strictest
		p.Mode = p.Mode.AtMost(o.Prompt.Limit)
	}
	// A turn that began in plan does not have the workspace, which another one may be writing in: it stays in plan.
	if p.Interaction != policy.Default || o.Prompt.Plan || !o.Writer {
		p.Interaction = policy.Plan
	}
	return p
}

// patience is how long an ask waits for a store that is away before it is denied: a restart should cost no turn.
const patience = 5 * time.Second

// readPatiently reads documents, trying again for a while where the store does not answer.
func (h *Host) readPatiently(ctx context.Context, keys ...string) ([]store.Doc, error) {
	for end := time.Now().Add(patience); ; {
		_, docs, err := h.cfg.DB.Read(ctx, keys...)
		if !errors.Is(err, store.ErrUnavailable) || time.Now().After(end) {
			return docs, err
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

func (h *Host) workspace(o Order) policy.Workspace {
	i := slices.IndexFunc(h.cfg.Projects, func(p Project) bool { return p.Name == o.Project })
	return policy.Workspace{Root: o.Folder, Home: h.cfg.Home, PublishIsOrdinary: i >= 0 && h.cfg.Projects[i].PublishIsOrdinary}
}

func (h *Host) runtime(name string) runner.Runtime {
	for _, r := range h.cfg.Runtimes {
		if r.Name() == name {
			return r
		}
	}
	return nil
}
