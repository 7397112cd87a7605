package task

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"drawbridge/bridge"
	"drawbridge/internal/store"
	"drawbridge/policy"
	"drawbridge/runner"
)

// modelSteps is how many steps TestNeverPastTheMode takes. They are made of histories that each have a number: with the same
// seed a history takes the same steps.
var (
	modelSteps = flag.Int("model.steps", 4000, "steps of the model of tasks")
	modelSeed  = flag.Uint64("model.seed", 0, "which histories the model of tasks runs; 0 for others each time")
)

// historySteps is how long a history is.
const historySteps = 100

// TestNeverPastTheMode runs random histories of two gateways and two hosts: changes of the chat's mode and plan, schedules,
// delays, tasks, what agents ask, taps and grants, what people make of tasks, people who lose their rights, a group that
// moves, records of an older form and damaged ones, kills at any call of the store, and restarts. Whatever an agent is
// allowed must be something that the table allows under the stricter of the task's mode and the chat's at that moment, or
// that a person has allowed.
func TestNeverPastTheMode(t *testing.T) { //nolint:tparallel // what the histories have seen is looked at when all have ended
	t.Parallel()
	seed := cmp.Or(*modelSeed, rand.Uint64())
	sum := &tally{steps: map[string]int{}, seen: map[string]int{}}
	histories := (*modelSteps + historySteps - 1) / historySteps
	t.Run("histories", func(t *testing.T) {
		for first := range runtime.GOMAXPROCS(0) {
			t.Run(fmt.Sprint("from ", first), func(t *testing.T) {
				t.Parallel()
				for n := first; n < histories && !t.Failed(); n += runtime.GOMAXPROCS(0) {
					synctest.Test(t, func(t *testing.T) { history(t, rand.New(rand.NewPCG(uint64(n), seed)), sum) })
					if t.Failed() {
						t.Errorf("this was history %d; try -model.seed %d", n, seed)
					}
				}
			})
		}
	})
	all := 0
	for _, n := range sum.steps {
		all += n
	}
	t.Logf("seed %d: %d steps in %d histories\nsteps %v\nseen %v", seed, all, histories, sum.steps, sum.seen)
	if want := histories * historySteps; all != want {
		t.Errorf("%d steps were taken, not %d", all, want)
	}
	if all < 4000 {
		return
	}
	for what, least := range map[string]int{ // of 4000 steps
		"allowed by the table": 80, "allowed by a person": 20, "allowed by a grant": 2, "refused": 80,
		"in a firing": 5, "in the chat's session": 5, "in a run for follow-ups": 1, "in a follow-up": 1, "a retry": 1, "a follow-up made": 1,
	} {
		if n := sum.seen[what]; n < least*all/4000/2 {
			t.Errorf("the model shows little: %q was seen %d times", what, n)
		}
	}
}

// tally counts what was done and what came to pass, in all histories.
type tally struct {
	mu          sync.Mutex
	steps, seen map[string]int
}

func (s *tally) add(m *model) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for what, n := range m.did {
		s.steps[what] += n
	}
	for what, n := range m.seen {
		s.seen[what] += n
	}
}

func history(t *testing.T, r *rand.Rand, sum *tally) {
	m := newModel(t, r)
	defer m.end()
	for range historySteps {
		time.Sleep(time.Millisecond) //nolint:forbidigo // in a bubble; so that what happened before a step and what it does have times of their own
		synctest.Wait()
		m.step()
		synctest.Wait()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	sum.add(m)
}

type model struct {
	*world

	r     *rand.Rand
	k     *gateway // the rules, over a store that does not die
	dbs   map[string]*mortal
	home  string // the key under which the chat is kept
	names int
	asks  int
	did   map[string]int // steps, by what they did; only the test's own goroutine has it

	// Guarded by world.mu.
	past    map[string][]change // of the chat's mode, under "", and of the modes that schedules and tasks were given
	origins map[string]origin   // of tasks, as far as they are known
	yes     map[string]bool     // titles of questions that a person allowed
	granted map[string]bool     // what a person granted, see grant
	seen    map[string]int      // what came to pass
}

// change is a mode that was chosen at a moment.
type change struct {
	at   time.Time
	mode policy.Mode
}

func newModel(t *testing.T, r *rand.Rand) *model {
	m := &model{
		world: newWorld(t), r: r, dbs: map[string]*mortal{}, home: home, did: map[string]int{}, seen: map[string]int{},
		past: map[string][]change{}, origins: map[string]origin{}, yes: map[string]bool{}, granted: map[string]bool{},
	}
	m.grow = func(who string) store.DB {
		m.dbs[who] = &mortal{DB: m.db, left: 1 << 30}
		return m.dbs[who]
	}
	m.notice = m.told
	for _, e := range HookEvents() {
		switch r.IntN(4) {
		case 0:
			m.hooks = append(m.hooks, Hook{Event: e, Message: "{title}"})
		case 1:
			m.hooks = append(m.hooks, Hook{Event: e, Command: []string{"true"}})
		}
	}
	m.call = func(ctx context.Context, _ Hook, k Task) error {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Duration(len(k.ID)) * 3 * time.Second):
		}
		if len(k.ID)%5 == 0 {
			return errors.New("no")
		}
		return nil
	}
	m.k = m.keeper()
	m.host("h1")
	m.host("h2")
	m.gateway(0)
	m.gateway(1)
	synctest.Wait()
	time.Sleep(time.Second)
	m.settle("h1", policy.AutoAcceptEdits)
	m.chose("", policy.AutoAcceptEdits)
	return m
}

func (m *model) end() {
	for _, db := range m.dbs {
		db.mu.Lock()
		db.dead = true
		db.mu.Unlock()
	}
	m.down()
}

// chose notes that the chat (no id), a schedule or a task is held to a mode from now on.
func (m *model) chose(id string, mode policy.Mode) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.past[id] = append(m.past[id], change{time.Now(), mode})
}

// at is the mode that was in force at a moment, of several at the very same the loosest. m.mu is held.
func (m *model) at(id string, when time.Time) policy.Mode {
	var mode policy.Mode
	for i, c := range m.past[id] {
		switch {
		case i == 0, c.at.Before(when):
			mode = c.mode
		case c.at.Equal(when) && c.mode.Looser(mode):
			mode = c.mode
		}
	}
	return mode
}

// strictest is the strictest mode that was in force from a moment on. m.mu is held.
func (m *model) strictest(id string, from time.Time) policy.Mode {
	mode := m.at(id, from)
	for _, c := range m.past[id] {
		if c.at.After(from) {
			mode = mode.AtMost(c.mode)
		}
	}
	return mode
}

// origin is what a task came from.
type origin struct{ firing, followUp, inChat bool }

// origin looks at a task for the first time: one that no person has written down is held to what its schedule or its
// parent was held to when it came to be.
func (m *model) origin(task Task) origin {
	m.mu.Lock()
	defer m.mu.Unlock()
	if o, known := m.origins[task.ID]; known {
		return o
	}
	o := origin{firing: task.Schedule != "", followUp: task.Origin == OriginFollowUp, inChat: task.InChat}
	m.origins[task.ID] = o
	switch {
	case len(m.past[task.ID]) > 0: // it was added by a person
	case o.firing:
		m.past[task.ID] = []change{{task.Created, m.at(task.Schedule, task.Created)}}
	case task.Parent != "":
		m.past[task.ID] = []change{{task.Created, m.at(task.Parent, task.Created).AtMost(m.at("", task.Created))}}
	}
	return o
}

// told holds what people are told against what may be, in the commit in which it happens.
func (m *model) told(t *store.Txn, e Event) {
	switch e.Kind { //nolint:exhaustive // the others are not about a mode
	case Retried:
		m.origin(*e.Task)
		m.mu.Lock()
		made := m.at(e.Task.ID, time.Now())
		m.seen["a retry"]++
		m.mu.Unlock()
		chat, err := m.k.chats.Standing(t, e.Task.Chat)
		if err != nil || policy.Decide(made.AtMost(chat.Mode), chat.Interaction, policy.Write) != policy.Allow {
			m.t.Errorf("%s is tried again with writing allowed: made under %s, the chat in %s, %s (%v)", e.Task.ID, made, chat.Mode, chat.Interaction, err)
		}
		if e.Task.Run.Execution != Auto || e.Task.Run.Tried != 1 {
			m.t.Errorf("%s, in %s, is tried again %d times", e.Task.ID, e.Task.Run.Execution, e.Task.Run.Tried)
		}
	case FollowedUp:
		if e.Task.Origin != "" || len(e.Made) > MaxFollowUps {
			m.t.Errorf("%s, %q, has %d follow-ups", e.Task.ID, e.Task.Origin, len(e.Made))
		}
		m.mu.Lock()
		m.seen["a follow-up made"] += len(e.Made)
		m.mu.Unlock()
		for _, next := range e.Made {
			// A commit that is tried again calls this again; only what it was in the last try was made.
			m.mu.Lock()
			delete(m.origins, next.ID)
			delete(m.past, next.ID)
			m.mu.Unlock()
			m.origin(next)
			if next.Mode.Looser(e.Task.Mode) {
				m.t.Errorf("%s is made under %s, and follows what was made under %s", next.ID, next.Mode, e.Task.Mode)
			}
		}
	}
}

// act lets an agent ask for something, and holds what it is told against what may be.
func (m *model) act(t *turn) {
	c := one(m.r, []policy.Category{policy.Read, policy.Write, policy.Write, policy.Delete, policy.Terminal, policy.Network, policy.Publish, policy.ReadOutside})
	m.asks++
	what := fmt.Sprintf("q%d", m.asks)
	t.ask(what, []policy.Category{c}, func(a runner.Answer) { m.answered(t, what, c, a) })
}

func (m *model) answered(t *turn, what string, c policy.Category, a runner.Answer) {
	saw := func(what string) { m.mu.Lock(); m.seen[what]++; m.mu.Unlock() }
	if !a.Allows() {
		saw("refused")
		return
	}
	chat, err := m.k.chats.Read(context.Background(), m.home)
	if err != nil {
		m.t.Error(err)
	}
	mode := chat.Mode
	follows := strings.HasSuffix(t.id, ":follow-ups")
	if id, ofTask := OfTurn(t.id); ofTask {
		task, o := m.task(id)
		m.mu.Lock()
		made := m.strictest(id, t.began)
		if len(m.past[id]) == 0 {
			m.t.Errorf("a turn of nothing that was made: %s", t.id)
		}
		m.mu.Unlock()
		if follows || task.Careful && task.Run != nil && task.Run.Prompt == bridge.PromptOf(t.id) && !task.Run.Writing {
			made = policy.ApprovalRequired
		}
		mode = mode.AtMost(made)
		for what, is := range map[string]bool{
			"in a firing": o.firing, "in a follow-up": o.followUp, "in a run for follow-ups": follows, "in the chat's session": o.inChat, "in a lane": !o.inChat,
		} {
			if is {
				saw(what)
			}
		}
	}
	verdict := policy.Decide(mode, chat.Interaction, c)
	held := ""
	if a.Source == runner.SourceGrant {
		held = m.held(t)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	switch a.Source {
	case runner.SourceUser:
		m.seen["allowed by a person"]++
		if !m.yes[what] || follows {
			m.t.Errorf("%s of %s was allowed by a person, and nobody has", what, t.id)
		}
	case runner.SourceGrant:
		m.seen["allowed by a grant"]++
		if !m.granted[grant(held, t.host, c)] || policy.HumanOnly(c) || verdict == policy.Deny {
			m.t.Errorf("%s was allowed %s by a grant, and nobody has given one: the chat in %s, %s", t.id, c, chat.Mode, chat.Interaction)
		}
	default:
		m.seen["allowed by the table"]++
		if verdict != policy.Allow {
			m.t.Errorf("%s was allowed %s by %q: held to %s, the chat in %s, %s, the table says %s", t.id, c, a.Source, mode, chat.Mode, chat.Interaction, verdict)
		}
	}
}

// grant names what a person has granted: a category, in a chat, on a host.
func grant(chat, host string, c policy.Category) string { return chat + " " + host + " " + string(c) }

// held is the key of the chat to which a turn is held. After a move that may be the one that it had.
func (m *model) held(t *turn) string {
	var o bridge.Order
	_, docs, err := m.db.Read(context.Background(), "to:"+t.host+":turn:"+t.id)
	if err == nil && docs[0].Rev != "" {
		err = json.Unmarshal(docs[0].Value, &o)
	}
	if err != nil {
		m.t.Error(err)
	}
	return cmp.Or(o.Of, o.Chat)
}

// task is a task as it stands, and what it came from; a damaged one is empty.
func (m *model) task(id string) (Task, origin) {
	var task Task
	err := store.Update(context.Background(), m.db, func(t *store.Txn) (err error) { task, err = m.k.tasks.Task(t, id); return err })
	if err != nil {
		m.mu.Lock()
		defer m.mu.Unlock()
		return Task{}, m.origins[id]
	}
	return task, m.origin(task)
}

func one[T any](r *rand.Rand, of []T) T { return of[r.IntN(len(of))] }

func (m *model) draw(names ...string) string { return one(m.r, names) }

func (m *model) aMode() policy.Mode { return one(m.r, policy.Modes()) }

// chatIn is the mode of the chat.
func (m *model) chatIn() policy.Mode {
	chat, err := m.k.chats.Read(context.Background(), m.home)
	if err != nil {
		m.t.Fatal(err)
	}
	return chat.Mode
}
