package task

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"drawbridge/approvals"
	"drawbridge/internal/store"
	"drawbridge/policy"
	"drawbridge/runner"
)

// modelSteps is how many steps TestNeverPastTheMode takes, in histories that each have a number: a history that fails is the
// same when it is run again.
var (
	modelSteps = flag.Int("model.steps", 4000, "steps of the model of tasks")
	modelSeed  = flag.Uint64("model.seed", 1, "which histories the model of tasks runs")
)

// TestNeverPastTheMode runs random histories of two gateways and two hosts: changes of the chat's mode, schedules, tasks, what
// agents ask, taps, people who lose their rights, kills at any call of the store, and restarts. Whatever an agent is allowed
// must be something that the table allows under the stricter of the task's mode and the chat's at that moment, or that a
// person has allowed.
func TestNeverPastTheMode(t *testing.T) { //nolint:tparallel // one history after the other, until there are enough steps
	t.Parallel()
	var steps, allowed, tapped, refused, n int
	for ; steps < *modelSteps && !t.Failed(); n++ {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newModel(t, rand.New(rand.NewPCG(uint64(n), *modelSeed)))
				defer m.end()
				for range 60 + m.r.IntN(60) {
					steps++
					m.step()
					synctest.Wait()
				}
				m.mu.Lock()
				defer m.mu.Unlock()
				allowed, tapped, refused = allowed+m.allowed, tapped+m.tapped, refused+m.refused
			})
		})
	}
	t.Logf("%d steps in %d histories: %d actions were allowed by the table, %d by a person, %d refused", steps, n, allowed, tapped, refused)
	if steps > 1000 && (allowed < steps/200 || tapped < steps/1000 || refused < steps/200) {
		t.Error("the model shows little")
	}
}

type model struct {
	*world

	r      *rand.Rand
	dbs    map[string]*mortal
	modes  map[string]policy.Mode // that tasks and schedules were made under, or deliberately given
	yes    map[string]bool        // titles of questions that a person allowed
	asks   int
	named  atomic.Int64
	chatIn policy.Mode

	allowed, tapped, refused int // guarded by world.mu
}

func newModel(t *testing.T, r *rand.Rand) *model {
	m := &model{world: newWorld(t), r: r, dbs: map[string]*mortal{}, modes: map[string]policy.Mode{}, yes: map[string]bool{}}
	m.grow = func(who string) store.DB {
		m.dbs[who] = &mortal{DB: m.db, left: 1 << 30}
		return m.dbs[who]
	}
	m.host("h1")
	m.host("h2")
	m.gateway(0)
	m.gateway(1)
	synctest.Wait()
	time.Sleep(time.Second)
	m.chatIn = policy.AutoAcceptEdits
	m.settle("h1", m.chatIn)
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

func one[T any](r *rand.Rand, of []T) T { return of[r.IntN(len(of))] }

func (m *model) draw(names ...string) string { return one(m.r, names) }

func (m *model) aMode() policy.Mode { return one(m.r, policy.Modes()) }

// step does one thing that can happen.
func (m *model) step() {
	switch m.draw("mode", "interaction", "schedule", "task", "task", "ask", "ask", "ask", "ask", "ask", "ask", "tap", "tap", "tap", "end", "end", "wait", "wait", "wait", "kill", "fault", "right", "deal", "deal") {
	case "mode":
		m.chatIn = m.aMode()
		m.mode(m.chatIn)
	case "interaction":
		k := m.keeper()
		i := one(m.r, []policy.Interaction{policy.Default, policy.Default, policy.Plan})
		m.update(func(t *store.Txn) error { return k.chats.SetInteraction(t, home, i) })
	case "schedule":
		m.make(true)
	case "task":
		m.make(false)
	case "ask":
		m.act()
	case "tap":
		m.tap()
	case "end":
		if t, ok := m.some(); ok {
			r := completed()
			switch m.draw("completed", "completed", "failed", "next") {
			case "failed":
				r.Outcome = runner.Broken
			case "next":
				r.Next = &runner.Input{Text: "go on"}
			}
			select {
			case t.end <- r:
			default:
			}
		}
	case "wait":
		time.Sleep(one(m.r, []time.Duration{time.Second, time.Minute, 3 * time.Minute, 12 * time.Minute}))
	case "kill":
		m.restart(m.draw("gateway 0", "gateway 1", "host h1", "host h2"))
	case "fault":
		db := m.dbs[m.draw("gateway 0", "gateway 1", "host h1", "host h2")]
		after := m.r.IntN(2) == 0
		left := m.r.IntN(41)
		db.mu.Lock()
		db.left, db.after = left, after
		db.mu.Unlock()
	case "right":
		may := m.draw("yes", "yes", "no") == "yes"
		m.mu.Lock()
		m.may = may
		m.mu.Unlock()
	case "deal":
		m.deal()
	}
	for _, who := range slices.Sorted(maps.Keys(m.dbs)) { // what has died is started again some steps later
		if m.dbs[who].dies() && m.r.IntN(4) == 0 {
			m.restart(who)
		}
	}
}

func (m *model) restart(who string) {
	db := m.dbs[who]
	db.mu.Lock()
	db.dead = true
	db.mu.Unlock()
	if name, ok := strings.CutPrefix(who, "host "); ok {
		m.hosts[name].stop()
		m.host(name)
		return
	}
	i := int(who[len(who)-1] - '0')
	m.gateways[i].stop()
	m.gateway(i)
}

func (m *model) make(schedule bool) {
	k := m.keeper()
	id := fmt.Sprintf("w%d", m.named.Add(1))
	w := Work{
		Steps: []string{"one", "two"}[:1+m.r.IntN(2)], Mode: m.chatIn.AtMost(m.aMode()), By: ada, InChat: m.draw("lane", "lane", "chat") == "chat",
		Execution: Execution(m.draw("", "auto", "review")), Careful: m.r.IntN(2) == 0,
		Host: m.draw("h1", "h2"), Project: project, Runtime: "script",
	}
	m.modes[id] = w.Mode
	m.update(func(t *store.Txn) (err error) {
		if schedule {
			now, err := t.Now()
			if err != nil {
				return err
			}
			_, err = k.tasks.AddSchedule(t, home, NewSchedule{ID: id, Work: w, Spec: Spec{Every: 10 * time.Minute, From: now}})
			return err
		}
		_, err = k.tasks.Add(t, home, NewTask{ID: id, Work: w})
		return err
	})
}

func (m *model) some() (*turn, bool) {
	all := m.running()
	if len(all) == 0 {
		return nil, false
	}
	return all[m.r.IntN(len(all))], true
}

// act lets an agent ask for something, and holds what it is told against what may be.
func (m *model) act() {
	t, ok := m.some()
	if !ok {
		return
	}
	c := one(m.r, []policy.Category{policy.Read, policy.Write, policy.Write, policy.Delete, policy.Terminal, policy.Network, policy.Publish, policy.ReadOutside})
	m.asks++
	what := fmt.Sprintf("q%d", m.asks)
	id, _ := OfTurn(t.id)
	made, known := m.modes[strings.Split(id, "-")[0]]
	if !known {
		m.t.Errorf("a turn of nothing that was made: %s", t.id)
	}
	t.ask(what, []policy.Category{c}, func(a runner.Answer) {
		m.mu.Lock()
		defer m.mu.Unlock()
		switch {
		case !a.Allows():
			m.refused++
		case a.Source == runner.SourceUser:
			m.tapped++
			if !m.yes[what] {
				m.t.Errorf("%s of %s was allowed by a person, and nobody has", what, t.id)
			}
		default:
			m.allowed++
			chat, err := m.keeper().chats.Read(context.Background(), home)
			if err != nil {
				m.t.Error(err)
			}
			if v := policy.Decide(made.AtMost(chat.Mode), chat.Interaction, c); v != policy.Allow {
				m.t.Errorf("%s was allowed %s: made under %s, the chat in %s, %s, the table says %s", t.id, c, made, chat.Mode, chat.Interaction, v)
			}
		}
	})
}

func (m *model) tap() {
	k := m.keeper()
	all, err := k.approvals.Pending(context.Background(), "")
	if err != nil {
		m.t.Fatal(err)
	}
	if len(all) == 0 {
		return
	}
	slices.SortFunc(all, func(a, b approvals.Record) int { return strings.Compare(a.Question.Title, b.Question.Title) })
	r := all[m.r.IntN(len(all))]
	action := m.draw(runner.ActionAllow, runner.ActionAllow, runner.ActionDeny)
	if action == runner.ActionAllow {
		m.mu.Lock()
		m.yes[r.Question.Title] = true
		m.mu.Unlock()
	}
	_, err = k.approvals.Decide(context.Background(), approvals.Tap{
		ID: r.ID, Chat: r.Chat, Person: approvals.Person{ID: 11, Name: "Ada", Role: approvals.Owner}, Action: action, Token: string(store.NewRev()),
	})
	if err != nil {
		m.t.Log(err) // its host is dead, say
	}
}

// deal lets a person do something with a task or a schedule.
func (m *model) deal() {
	k := m.keeper()
	all := m.tasks()
	slices.SortFunc(all, func(a, b Task) int { return strings.Compare(a.ID, b.ID) })
	if len(all) == 0 {
		return
	}
	id := all[m.r.IntN(len(all))].ID
	do := m.draw("approve", "reject", "rerun", "attended", "cancel", "resume", "lower")
	to := m.chatIn.AtMost(m.aMode())
	m.update(func(t *store.Txn) (err error) {
		switch do {
		case "approve":
			_, _, err = k.tasks.Approve(t, id, "Ada")
		case "reject":
			_, _, err = k.tasks.Reject(t, id, "not so", "Ada")
		case "rerun", "attended":
			_, _, err = k.tasks.Rerun(t, id, do == "attended", "Ada")
		case "cancel":
			_, _, err = k.tasks.Cancel(t, id, "Ada")
		case "resume":
			var list []Schedule
			if list, err = k.tasks.Schedules(t, home); err != nil {
				return err
			}
			for _, sch := range list {
				if _, _, err := k.tasks.Resume(t, sch.ID); err != nil {
					return err
				}
			}
		case "lower":
			if made, ok := m.modes[id]; ok {
				to = to.AtMost(made)
				_, err = k.tasks.SetMode(t, id, to)
			}
		}
		return err
	})
	if _, ok := m.modes[id]; ok && do == "lower" {
		m.modes[id] = to
	}
}
