package approvals_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"drawbridge/approvals"
	"drawbridge/internal/store"
	"drawbridge/policy"
	"drawbridge/runner"
)

// TestNeverTwoDecisions runs random histories of one host and two gateways: asks, taps, sweeps, ended turns, networks that
// fail for one side, kills and restarts. After every step everything that was ever seen must still be true.
func TestNeverTwoDecisions(t *testing.T) {
	t.Parallel()
	n := 0
	rapid.Check(t, func(rt *rapid.T) {
		n++
		t.Run(fmt.Sprint(n), func(t *testing.T) { // a bubble of its own for each history
			synctest.Test(t, func(t *testing.T) {
				h := newHistory(t, rt)
				steps := map[string]func(){
					"ask": h.ask, "tap": h.tap, "tap again": h.tap, "end a turn": h.end, "wait": h.wait, "cut": h.cut,
					"plan": h.plan, "restart": h.restart, "sweep": h.sweep,
				}
				for range rapid.IntRange(3, 25).Draw(rt, "steps") {
					name := rapid.SampledFrom([]string{"ask", "ask", "tap", "tap", "tap again", "end a turn", "wait", "wait", "cut", "plan", "restart", "sweep"}).Draw(rt, "step")
					steps[name]()
					synctest.Wait()
					h.check()
				}
				h.finish()
			})
			if t.Failed() {
				rt.Fatalf("history %d has failed", n)
			}
		})
	})
}

type modelAsk struct {
	*asked
	end context.CancelFunc
}

type history struct {
	t        *testing.T
	rt       *rapid.T
	db       store.DB
	host     *approvals.Service
	hostDB   *faulty // of the present incarnation
	stop     func()
	starts   int
	policy   *allowing
	gateways []*approvals.Service
	gateDBs  []*faulty
	asks     []modelAsk
	ids      map[approvals.ID]string // and the command that each is about
	wins     map[approvals.ID]int
	decided  map[approvals.ID]approvals.Decision
	last     map[approvals.ID]approvals.Word
}

func newHistory(t *testing.T, rt *rapid.T) *history {
	h := &history{
		t: t, rt: rt, db: openBolt(t), policy: under(policy.ApprovalRequired, policy.Default), ids: map[approvals.ID]string{},
		wins: map[approvals.ID]int{}, decided: map[approvals.ID]approvals.Decision{}, last: map[approvals.ID]approvals.Word{},
	}
	for range 2 {
		db := &faulty{DB: h.db}
		g := gateway(t, approvals.Config{DB: db, Deadline: time.Minute})
		sweeping(t, g)
		h.gateways, h.gateDBs = append(h.gateways, g), append(h.gateDBs, db)
	}
	h.start()
	return h
}

func (h *history) start() {
	h.starts++
	h.hostDB = &faulty{DB: h.db}
	c := approvals.Config{DB: h.hostDB, Deadline: time.Minute}
	c.Opened = func(_ *store.Txn, r approvals.Record) error {
		h.ids[r.ID] = r.Question.Command // one goroutine at a time: the bubble waits after each step
		return nil
	}
	h.host, h.stop = host(h.t, c, fmt.Sprint("i", h.starts))
}

func (h *history) ask() {
	ctx, cancel := context.WithCancel(context.Background())
	h.asks = append(h.asks, modelAsk{ask(ctx, h.host, turn(h.policy), command(fmt.Sprint("make ", len(h.asks)))), cancel})
}

func (h *history) some() (approvals.ID, bool) {
	var ids []string
	for id := range h.ids {
		ids = append(ids, h.ids[id]+" "+string(id))
	}
	if len(ids) == 0 {
		return "", false
	}
	// Ids are random; drawing by command keeps a history the same when it is run again.
	want := fmt.Sprint("make ", rapid.IntRange(0, len(h.asks)-1).Draw(h.rt, "which"))
	for id, c := range h.ids {
		if c == want {
			return id, true
		}
	}
	return "", false
}

func (h *history) tap() {
	id, ok := h.some()
	if !ok {
		return
	}
	g := rapid.IntRange(0, 1).Draw(h.rt, "gateway")
	person := rapid.SampledFrom([]approvals.Person{ada, bob, eve}).Draw(h.rt, "person")
	action := rapid.SampledFrom([]string{runner.ActionAllow, runner.ActionDeny, runner.ActionAllowSession}).Draw(h.rt, "action")
	if action == runner.ActionAllowSession {
		h.policy.set(policy.FullAccess, policy.Default) // raising a mode answers nothing
		defer h.policy.set(policy.ApprovalRequired, policy.Default)
		action = runner.ActionDeny
	}
	o, err := h.gateways[g].Decide(context.Background(), approvals.Tap{ID: id, Chat: chat, Person: person, Action: action})
	if err == nil && o.Won {
		h.wins[id]++
		if person.Role == approvals.Viewer {
			h.t.Errorf("a viewer has decided %s", id)
		}
	}
}

func (h *history) end() {
	if len(h.asks) > 0 {
		h.asks[rapid.IntRange(0, len(h.asks)-1).Draw(h.rt, "turn")].end()
	}
}

func (h *history) wait() {
	seconds := rapid.SampledFrom([]int{1, 3, 7, 15, 70}).Draw(h.rt, "seconds")
	time.Sleep(time.Second * time.Duration(seconds))
}

func (h *history) cut() {
	db := rapid.SampledFrom([]*faulty{h.hostDB, h.gateDBs[0], h.gateDBs[1]}).Draw(h.rt, "side")
	db.away.Store(!db.away.Load())
}

func (h *history) plan() {
	to := rapid.SampledFrom([]policy.Interaction{policy.Default, policy.Plan}).Draw(h.rt, "interaction")
	h.policy.set(policy.ApprovalRequired, to)
}

// restart leaves the old incarnation cut off with its questions, or lets it end.
func (h *history) restart() {
	h.hostDB.away.Store(true)
	h.stop()
	h.start()
}

func (h *history) sweep() {
	_ = h.gateways[rapid.IntRange(0, 1).Draw(h.rt, "gateway")].Sweep(context.Background()) // its store may be away
}

// after says what may come after what.
var after = map[approvals.Word][]approvals.Word{
	approvals.StandsOpen: {
		approvals.StandsHandingOver, approvals.StandsAllowed, approvals.StandsDenied, approvals.StandsWithdrawn,
		approvals.StandsExpired, approvals.StandsGone, approvals.StandsChanged,
	},
	approvals.StandsHandingOver: {approvals.StandsAllowed, approvals.StandsDenied, approvals.StandsGone, approvals.StandsChanged},
	approvals.StandsExpired:     {approvals.StandsHandingOver, approvals.StandsAllowed, approvals.StandsGone}, // somebody was in time
	approvals.StandsAllowed:     {approvals.StandsGone},                                                       // the confirmation was not answered
	approvals.StandsGone:        {approvals.StandsAllowed},                                                    // it had only been slow
}

// check compares the store with what was seen before and with what the agents were told.
func (h *history) check() {
	reader := approvals.New(approvals.Config{DB: h.db})
	told := map[string]runner.Answer{}
	for i, a := range h.asks {
		select {
		case <-a.done:
			told[fmt.Sprint("make ", i)] = a.answer
		default:
		}
	}
	for id, cmd := range h.ids {
		r, d, err := reader.Get(context.Background(), id)
		if err != nil {
			h.t.Fatal(err)
		}
		if r.ID == "" {
			continue // its commit did not happen
		}
		if h.wins[id] > 1 {
			h.t.Errorf("%s was won %d times", id, h.wins[id])
		}
		if before, ok := h.decided[id]; ok && (d == nil || d.Decision != before.Decision || d.By != before.By || d.Source != before.Source || !d.At.Equal(before.At)) {
			h.t.Errorf("the decision of %s was %+v and is %+v", id, before, d)
		}
		if d != nil {
			h.decided[id] = *d
		} else if h.wins[id] > 0 {
			h.t.Errorf("%s was won, and there is no decision", id)
		}
		word := approvals.Standing(r, d).Word
		answer, answered := told[cmd]
		switch {
		case answered && answer.Allows() && (word != approvals.StandsAllowed || d == nil || d.Decision != runner.Allowed || d.Source != runner.SourceUser):
			h.t.Errorf("the agent was told %+v, %s stands as %s with %+v", answer, id, word, d)
		case answered && !answer.Allows() && word == approvals.StandsAllowed:
			h.t.Errorf("the agent was told %+v, %s stands as allowed", answer, id)
		case word == approvals.StandsAllowed && (d == nil || h.wins[id] != 1):
			h.t.Errorf("%s stands as allowed, won %d times, with %+v", id, h.wins[id], d)
		}
		if before := h.last[id]; before != "" && before != word && !slices.Contains(after[before], word) {
			h.t.Errorf("%s stood as %s and stands as %s", id, before, word)
		}
		h.last[id] = word
	}
}

// finish brings everything back; then nothing may be left open.
func (h *history) finish() {
	for _, db := range append(h.gateDBs, h.hostDB) {
		db.away.Store(false)
	}
	time.Sleep(3 * time.Minute)
	synctest.Wait()
	h.check()
	for i, a := range h.asks {
		select {
		case <-a.done:
		default:
			h.t.Errorf("question %d was never answered", i)
		}
		a.end()
		<-a.done
	}
	if open, err := h.db.Range(context.Background(), approvals.OpenIndex("box"), math.MinInt64, math.MaxInt64, 0); err != nil || len(open) != 0 {
		h.t.Errorf("left in the index are %v, %v", open, err)
	}
	for id, word := range h.last {
		if word == approvals.StandsOpen || word == approvals.StandsHandingOver {
			h.t.Errorf("%s still stands as %s", id, word)
		}
	}
}
