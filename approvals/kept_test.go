package approvals_test

import (
	"context"
	"encoding/json"
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

// call is a command as an agent asks for it, by a call that can be recognised.
func call(line string) runner.Question {
	q := command(line)
	q.Item = "toolu_1"
	return q
}

// kept is an approval that a host has kept over its stop.
type kept struct {
	t      *testing.T
	db     store.DB
	config approvals.Config
	gate   *approvals.Service
	policy *allowing
	id     approvals.ID
	turns  atomic.Int64 // that decisions of kept approvals would start
}

// keepOver asks, and stops the host while the question waits.
func keepOver(t *testing.T, q runner.Question) *kept {
	t.Helper()
	k := &kept{t: t, db: openBolt(t), policy: under(policy.ApprovalRequired, policy.Default)}
	k.config = slow(k.db)
	k.config.Decided = func(_ *store.Txn, r approvals.Record, d approvals.Decision) error {
		if r.Kept && d.Source == runner.SourceUser {
			k.turns.Add(1)
		}
		return nil
	}
	k.gate = gateway(t, k.config)
	h, stop := host(t, k.config, "i1")
	a := ask(t.Context(), h, turn(k.policy), q)
	r := card(t, k.gate, 1)[0]
	k.id = r.ID
	if h.Keep("s1", "another") || h.Keep("s2", q.Item) {
		t.Error("a question is kept that nobody asks")
	}
	if !h.Keep("s1", q.Item) {
		t.Fatal("the question is not known")
	}
	if got := a.wait(t); got.Decision != runner.Deferred || got.Allows() {
		t.Fatalf("the answer is %+v", got)
	}
	err := store.Update(t.Context(), k.db, func(tx *store.Txn) error { return h.EndKeptIn(tx, "t1", q.Item) })
	if err != nil {
		t.Fatal(err)
	}
	stop()
	return k
}

func (k *kept) record() approvals.Record {
	k.t.Helper()
	r, _, err := k.gate.Get(k.t.Context(), k.id)
	if err != nil {
		k.t.Fatal(err)
	}
	return r
}

func (k *kept) sweep() {
	k.t.Helper()
	if err := k.gate.Sweep(k.t.Context()); err != nil {
		k.t.Fatal(err)
	}
}

func (k *kept) tap(action string) {
	k.t.Helper()
	if o := decide(k.t, k.gate, tap(k.record(), ada, action)); !o.Won {
		k.t.Fatalf("the tap came to %+v", o)
	}
}

// again starts the host again and lets the agent ask for the call.
func (k *kept) again(q runner.Question) (*approvals.Service, *asked, context.CancelFunc) {
	k.t.Helper()
	h, _ := host(k.t, k.config, "i2")
	ctx, cancel := context.WithCancel(k.t.Context())
	run := turn(k.policy)
	run.ID, run.Turn = "t2", "t2"
	return h, ask(ctx, h, run, q), cancel
}

// TestAKeptCallIsDecidedWhileItsHostIsAway: and whoever resumes the session is told, once.
func TestAKeptCallIsDecidedWhileItsHostIsAway(t *testing.T) {
	t.Parallel()
	for action, want := range map[string]runner.Decision{runner.ActionAllow: runner.Allowed, runner.ActionDeny: runner.Denied} {
		synctest.Test(t, func(t *testing.T) {
			k := keepOver(t, call("make"))
			r := k.record()
			if !r.Kept || !r.Deferred() || r.Deadline.Sub(r.Created) < 24*time.Hour || r.Deadline.Sub(r.Created) > 25*time.Hour {
				t.Errorf("it is kept as %+v", r)
			}
			time.Sleep(time.Hour)
			k.sweep()
			if w := stands(t, k.gate, k.id).Word; w != approvals.StandsOpen {
				t.Fatalf("an hour after its host it stands as %q", w)
			}
			k.tap(action)
			if o := decide(t, k.gate, tap(r, bob, runner.ActionAllow)); o.Won || o.Decision == nil || o.Decision.By != ada.ID {
				t.Errorf("the second tap came to %+v", o)
			}
			if n := k.turns.Load(); n != 1 {
				t.Errorf("the decision starts %d turns", n)
			}
			if w := stands(t, k.gate, k.id).Word; action == runner.ActionAllow && w != approvals.StandsHandingOver {
				t.Errorf("before it is taken up it stands as %q", w)
			}
			k.sweep()
			h, a, _ := k.again(call("make"))
			if got := a.wait(t); got.Decision != want || got.Source != runner.SourceUser || got.By != ada.Name {
				t.Errorf("%s: the agent is told %+v", action, got)
			}
			w := map[string]approvals.Word{runner.ActionAllow: approvals.StandsAllowed, runner.ActionDeny: approvals.StandsDenied}[action]
			if got := stands(t, k.gate, k.id).Word; got != w {
				t.Errorf("%s: it stands as %q", action, got)
			}
			// Once: the same call again is another question.
			ctx, cancel := context.WithCancel(t.Context())
			b := ask(ctx, h, turn(k.policy), call("make"))
			if next := card(t, k.gate, 1)[0]; next.ID == k.id {
				t.Error("the decision serves twice")
			}
			cancel()
			b.wait(t)
		})
	}
}

// TestAKeptCallIsTakenUp in a world that is another one by then.
func TestAKeptCallIsTakenUp(t *testing.T) {
	push := call("git push")
	push.Categories = []policy.Category{policy.Publish}
	file := "one"
	edit := runner.Question{
		Kind: runner.KindFileChange, Item: "toolu_1", Folder: "/srv/p1", Files: []runner.FileChange{{Path: "a.go", Op: runner.FileEdit, Diff: "-a\n+b"}},
		Categories: []policy.Category{policy.Delete}, Check: func() (string, error) { return file, nil },
	}
	other := call("make all")
	elsewhere := call("make")
	elsewhere.Item = "toolu_2"
	allow := func(k *kept) { k.tap(runner.ActionAllow) }
	for name, c := range map[string]struct {
		q, then runner.Question
		between func(k *kept)
		asked   bool // again, with a card of its own
		want    runner.Decision
		source  runner.Source
		stands  approvals.Word // of the kept one
	}{
		"allowed":            {call("make"), call("make"), allow, false, runner.Allowed, runner.SourceUser, approvals.StandsAllowed},
		"a lower mode":       {call("make"), call("make"), func(k *kept) { allow(k); k.policy.set(policy.ApprovalRequired, policy.Default) }, false, runner.Allowed, runner.SourceUser, approvals.StandsAllowed},
		"plan":               {call("make"), call("make"), func(k *kept) { allow(k); k.policy.set(policy.FullAccess, policy.Plan) }, false, runner.Denied, runner.SourceRule, approvals.StandsDenied},
		"plan, undecided":    {call("make"), call("make"), func(k *kept) { k.policy.set(policy.FullAccess, policy.Plan) }, false, runner.Denied, runner.SourceRule, approvals.StandsDenied},
		"human-only":         {push, push, allow, false, runner.Allowed, runner.SourceUser, approvals.StandsAllowed},
		"human-only, denied": {push, push, func(k *kept) { k.tap(runner.ActionDeny); k.policy.set(policy.FullAccess, policy.Default) }, false, runner.Denied, runner.SourceUser, approvals.StandsDenied},
		"another command":    {call("make"), other, allow, true, "", "", approvals.StandsChanged},
		"another call":       {call("make"), elsewhere, allow, true, "", "", approvals.StandsHandingOver},
		"the same file":      {edit, edit, allow, false, runner.Allowed, runner.SourceUser, approvals.StandsAllowed},
		"a changed file":     {edit, edit, func(k *kept) { allow(k); file = "two" }, true, "", "", approvals.StandsChanged},
		"silence": {call("make"), call("make"), func(k *kept) {
			time.Sleep(25 * time.Hour)
			k.sweep()
		}, false, runner.Denied, runner.SourceTimeout, approvals.StandsExpired},
		"silence that nobody swept": {
			call("make"), call("make"), func(*kept) { time.Sleep(25 * time.Hour) }, false, runner.Denied, runner.SourceTimeout, approvals.StandsExpired,
		},
		"allowed, and taken up too late": {call("make"), call("make"), func(k *kept) {
			allow(k)
			time.Sleep(25 * time.Hour)
			k.sweep()
		}, true, "", "", approvals.StandsGone},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				file = "one"
				k := keepOver(t, c.q)
				c.between(k)
				_, a, cancel := k.again(c.then)
				if c.asked {
					rs := card(t, k.gate, 1)
					if rs[0].ID == k.id || rs[0].Kept {
						t.Error("it is asked on the old card")
					}
					cancel()
				}
				got := a.wait(t)
				if !c.asked && (got.Decision != c.want || got.Source != c.source) || c.asked && got.Allows() {
					t.Errorf("the agent is told %+v", got)
				}
				if w := stands(t, k.gate, k.id).Word; w != c.stands {
					t.Errorf("the kept one stands as %q, want %q", w, c.stands)
				}
			})
		})
	}
}

// TestAKeptCallThatIsNotDecidedIsWaitedForAgain, on the same card, with the usual time.
func TestAKeptCallThatIsNotDecidedIsWaitedForAgain(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(k *kept, stop context.CancelFunc) approvals.Word{
		"allowed": func(k *kept, _ context.CancelFunc) approvals.Word {
			k.tap(runner.ActionAllow)
			return approvals.StandsAllowed
		},
		"taken back": func(_ *kept, stop context.CancelFunc) approvals.Word {
			stop()
			return approvals.StandsWithdrawn
		},
		"silence": func(*kept, context.CancelFunc) approvals.Word { time.Sleep(time.Hour); return approvals.StandsExpired },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				k := keepOver(t, call("make"))
				time.Sleep(time.Hour)
				_, a, cancel := k.again(call("make"))
				synctest.Wait()
				r := k.record()
				if r.Kept || r.Deferred() || time.Until(r.Deadline) > 10*time.Minute {
					t.Errorf("it is waited for as %+v", r)
				}
				want := end(k, cancel)
				if got := a.wait(t); got.Allows() != (want == approvals.StandsAllowed) {
					t.Errorf("the agent is told %+v", got)
				}
				if w := stands(t, k.gate, k.id).Word; w != want || k.turns.Load() != 0 {
					t.Errorf("it stands as %q, and %d turns follow", w, k.turns.Load())
				}
			})
		})
	}
}

// TestAKeptCallThatNothingTakesUp: its card says that nothing ran, and no tap counts any more.
func TestAKeptCallThatNothingTakesUp(t *testing.T) {
	t.Parallel()
	for _, allowed := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			k := keepOver(t, call("make"))
			if allowed {
				k.tap(runner.ActionAllow)
			}
			h, _ := host(t, k.config, "i2")
			if err := store.Update(t.Context(), k.db, func(tx *store.Txn) error { return h.LeaveKeptIn(tx, k.id) }); err != nil {
				t.Fatal(err)
			}
			st := stands(t, k.gate, k.id)
			if st.Word != approvals.StandsGone || allowed != (st.Decision != nil) {
				t.Errorf("it stands as %+v", st)
			}
			if o := decide(t, k.gate, tap(k.record(), bob, runner.ActionAllow)); o.Won {
				t.Errorf("a tap came to %+v", o)
			}
		})
	}
}

// TestAKeptCallWhoseTurnIsTakenBack does not run, although it was allowed: the same call is asked again.
func TestAKeptCallWhoseTurnIsTakenBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k := keepOver(t, call("make"))
		k.tap(runner.ActionAllow)
		for range 2 {
			if err := store.Update(t.Context(), k.db, func(tx *store.Txn) error { return k.gate.ForgoIn(tx, k.id) }); err != nil {
				t.Fatal(err)
			}
		}
		if st := stands(t, k.gate, k.id); st.Word != approvals.StandsGone {
			t.Errorf("it stands as %+v", st)
		}
		_, a, cancel := k.again(call("make"))
		if next := card(t, k.gate, 1)[0]; next.ID == k.id {
			t.Error("the decision that was taken back is asked for again under its own name")
		}
		cancel()
		if got := a.wait(t); got.Allows() {
			t.Errorf("the agent is told %+v", got)
		}
	})
}

// TestWhatTheAgentDidNotKeepIsClosed with the turn, whatever the host had hoped.
func TestWhatTheAgentDidNotKeepIsClosed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := openBolt(t)
		g := gateway(t, slow(db))
		h, _ := host(t, slow(db), "i1")
		a := ask(t.Context(), h, turn(under(policy.ApprovalRequired, policy.Default)), call("make"))
		r := card(t, g, 1)[0]
		h.Keep("s1", "toolu_1")
		a.wait(t)
		if err := store.Update(t.Context(), db, func(tx *store.Txn) error { return h.EndKeptIn(tx, "t1", "toolu_9") }); err != nil {
			t.Fatal(err)
		}
		if w := stands(t, g, r.ID).Word; w != approvals.StandsGone {
			t.Errorf("it stands as %q", w)
		}
	})
}

// TestWhatIsNeverKept: what no call stands for, what background work asks, and questions and plans.
func TestWhatIsNeverKept(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := openBolt(t)
		g := gateway(t, slow(db))
		h, _ := host(t, slow(db), "i1")
		background := call("make")
		background.Background = true
		for _, q := range []runner.Question{
			command("make"), background,
			{Kind: runner.KindPlan, Item: "toolu_1", Plan: "1. go"},
			{Kind: runner.KindQuestion, Item: "toolu_1", Queries: []runner.Query{{ID: "a", Text: "Which?"}}},
		} {
			ctx, cancel := context.WithCancelCause(t.Context())
			a := ask(ctx, h, turn(under(policy.ApprovalRequired, policy.Default)), q)
			r := card(t, g, 1)[0]
			if h.Keep("s1", q.Item) {
				t.Errorf("%s is kept", q.Kind)
			}
			cancel(approvals.ErrGone)
			a.wait(t)
			if w := stands(t, g, r.ID).Word; w != approvals.StandsGone {
				t.Errorf("%s stands as %q", q.Kind, w)
			}
		}
	})
}

// TestADecisionJustBeforeAKeepIsFollowed: the gateway took the host for the one that waits, and starts no turn.
func TestADecisionJustBeforeAKeepIsFollowed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		bdb := openBolt(t)
		var g *approvals.Service
		hdb := &faulty{DB: bdb, before: func(b store.Batch) error {
			if writes(b, `"kept":true`) {
				rs, err := g.Pending(context.Background(), "")
				if err == nil && len(rs) == 1 {
					decide(t, g, tap(rs[0], ada, runner.ActionAllow))
				}
			}
			return nil
		}}
		g = gateway(t, slow(bdb))
		h, _ := host(t, slow(hdb), "i1")
		a := ask(t.Context(), h, turn(under(policy.ApprovalRequired, policy.Default)), call("make"))
		r := card(t, g, 1)[0]
		h.Keep("s1", "toolu_1")
		if got := a.wait(t); !got.Allows() {
			t.Errorf("the agent is told %+v", got)
		}
		if w := stands(t, g, r.ID).Word; w != approvals.StandsAllowed {
			t.Errorf("it stands as %q", w)
		}
	})
}

// TestTwoHostsTakeAKeptCallUpOnce: an incarnation that was replaced meanwhile is told nothing.
func TestTwoHostsTakeAKeptCallUpOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k := keepOver(t, call("make"))
		k.tap(runner.ActionAllow)
		old, _ := host(t, k.config, "i2")
		synctest.Wait()
		_, a, _ := k.again2("i3", call("make"))
		if got := a.wait(t); !got.Allows() {
			t.Errorf("the living one is told %+v", got)
		}
		b := ask(t.Context(), old, turn(k.policy), call("make"))
		if got := b.wait(t); got.Allows() {
			t.Errorf("the replaced one is told %+v", got)
		}
	})
}

func (k *kept) again2(incarnation string, q runner.Question) (*approvals.Service, *asked, context.CancelFunc) {
	h, _ := host(k.t, k.config, incarnation)
	ctx, cancel := context.WithCancel(k.t.Context())
	return h, ask(ctx, h, turn(k.policy), q), cancel
}

// TestWhoMayDecideAKeptCall is who may now, and not who might when it was asked.
func TestWhoMayDecideAKeptCall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k := keepOver(t, call("make"))
		removed := ada
		removed.Role = approvals.Viewer
		for _, p := range []approvals.Person{removed, eve} {
			if o := decide(t, k.gate, tap(k.record(), p, runner.ActionAllow)); o.Won || o.Refused != approvals.RefusedForbidden {
				t.Errorf("the tap came to %+v", o)
			}
		}
		if w := stands(t, k.gate, k.id).Word; w != approvals.StandsOpen || k.turns.Load() != 0 {
			t.Errorf("it stands as %q, and %d turns follow", w, k.turns.Load())
		}
	})
}

// TestARecordFromBeforeKeepingIsNoKeptOne: an older host's open record is lost with it, and its plan stays a plan.
func TestARecordFromBeforeKeepingIsNoKeptOne(t *testing.T) {
	t.Parallel()
	old := []byte(`{"v":1,"id":"box.A","incarnation":"nobody","chat":"` + chat + `","question":{"kind":"plan","plan":"1. go"},"digest":"d","state":"open"}`)
	for name, c := range map[string]struct {
		record []byte
		want   approvals.Word
	}{
		"a plan":    {old, approvals.StandsAllowed},
		"a command": {[]byte(strings.Replace(string(old), "nobody", "i1", 1)), approvals.StandsHandingOver},
	} {
		var r approvals.Record
		if err := json.Unmarshal(c.record, &r); err != nil {
			t.Fatal(err)
		}
		d := approvals.Decision{ID: r.ID, Decision: runner.Allowed, Source: runner.SourceUser}
		if w := approvals.Standing(r, &d).Word; w != c.want || r.Kept {
			t.Errorf("%s stands as %q", name, w)
		}
	}
}
