package approvals_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"drawbridge/approvals"
	"drawbridge/internal/store"
	"drawbridge/policy"
	"drawbridge/runner"
)

// TestADeadAskersCardSaysSo cuts a host off, as a kill would, at the real pace: within ten seconds the gateway has closed
// the card, and the host, if it was only cut off, takes that for a no.
func TestADeadAskersCardSaysSo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := openBolt(t)
		hdb := &faulty{DB: db}
		h, _ := host(t, slow(hdb), "i1")
		var decided atomic.Int32
		c := slow(db)
		c.Decided = func(_ *store.Txn, _ approvals.Record, d approvals.Decision) error {
			if d.Source == runner.SourceShutdown && d.Decision == runner.Denied {
				decided.Add(1)
			}
			return nil
		}
		g := gateway(t, c)
		sweeping(t, g)
		time.Sleep(10 * time.Second)
		a := ask(t.Context(), h, turn(under(policy.ApprovalRequired, policy.Default)), command("make"))
		r := card(t, g, 1)[0]
		if living, err := g.HostAlive(t.Context(), "box"); err != nil || !living {
			t.Errorf("the host is alive: %v, %v", living, err)
		}
		hdb.away.Store(true)
		time.Sleep(10 * time.Second)
		if w := stands(t, g, r.ID).Word; w != approvals.StandsGone || decided.Load() != 1 {
			t.Errorf("after 10 s it stands as %q, Decided was called %d times", w, decided.Load())
		}
		if living, err := g.HostAlive(t.Context(), "box"); err != nil || living {
			t.Errorf("the host is dead: %v, %v", living, err)
		}
		if o := decide(t, g, tap(r, ada, runner.ActionAllow)); o.Won || o.Decision == nil || o.Decision.Source != runner.SourceShutdown {
			t.Errorf("a tap came to %+v", o)
		}
		hdb.away.Store(false)
		<-a.done
		if a.answer.Decision != runner.Denied || a.answer.Source != runner.SourceShutdown {
			t.Errorf("the answer is %+v", a.answer)
		}
	})
}

// TestADeadHostIsSweptOnBothStores is the same with a real clock, at a faster pace.
func TestADeadHostIsSweptOnBothStores(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open func() store.DB) {
		hdb := &faulty{DB: open()}
		h, _ := host(t, fast(hdb), "i1")
		c := fast(open())
		closed := make(chan approvals.Decision, 9)
		c.DeadAfter = 500 * time.Millisecond
		c.Decided = func(_ *store.Txn, _ approvals.Record, d approvals.Decision) error { closed <- d; return nil }
		g := gateway(t, c)
		a := ask(t.Context(), h, turn(under(policy.ApprovalRequired, policy.Default)), command("make"))
		r := card(t, g, 1)[0]
		hdb.away.Store(true)
		sweeping(t, g)
		if d := <-closed; d.Decision != runner.Denied || d.Source != runner.SourceShutdown || d.ID != r.ID {
			t.Errorf("the decision is %+v", d)
		}
		hdb.away.Store(false)
		if got := a.wait(t); got.Allows() || got.Source != runner.SourceShutdown {
			t.Errorf("the answer is %+v", got)
		}
	})
}

// TestATapOnADeadAskerIsRefused taps after the beat is too old and before any sweep has closed the card.
func TestATapOnADeadAskerIsRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := openBolt(t)
		hdb := &faulty{DB: db}
		h, _ := host(t, slow(hdb), "i1")
		g := gateway(t, slow(db))
		ctx, cancel := context.WithCancel(t.Context())
		a := ask(ctx, h, turn(under(policy.ApprovalRequired, policy.Default)), command("make"))
		r := card(t, g, 1)[0]
		hdb.away.Store(true)
		for range 10 { // it has to see the store for itself
			time.Sleep(time.Second)
			if _, err := g.HostAlive(t.Context(), "box"); err != nil {
				t.Fatal(err)
			}
		}
		if o := decide(t, g, tap(r, ada, runner.ActionAllow)); o.Won || o.Refused != approvals.RefusedGone {
			t.Errorf("a tap came to %+v", o)
		}
		cancel()
		<-a.done
	})
}

// TestNobodyIsDeclaredDeadByWhoHasNotSeenTheStore has the store away for everybody, and the gateway back first.
func TestNobodyIsDeclaredDeadByWhoHasNotSeenTheStore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := openBolt(t)
		hdb, gdb := &faulty{DB: db}, &faulty{DB: db}
		h, _ := host(t, slow(hdb), "i1")
		g := gateway(t, slow(gdb))
		sweeping(t, g)
		time.Sleep(20 * time.Second)
		a := ask(t.Context(), h, turn(under(policy.ApprovalRequired, policy.Default)), command("make"))
		r := card(t, g, 1)[0]
		hdb.away.Store(true)
		gdb.away.Store(true)
		time.Sleep(time.Minute)
		gdb.away.Store(false)
		time.Sleep(4 * time.Second)
		fresh := gateway(t, slow(db)) // and one that has just started
		if err := fresh.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		hdb.away.Store(false)
		time.Sleep(time.Minute)
		if w := stands(t, g, r.ID).Word; w != approvals.StandsOpen {
			t.Fatalf("a living card stands as %q", w)
		}
		if o := decide(t, g, tap(r, ada, runner.ActionAllow)); !o.Won {
			t.Errorf("the tap came to %+v", o)
		}
		<-a.done
		if !a.answer.Allows() {
			t.Errorf("the answer is %+v", a.answer)
		}
	})
}

// TestAllowedButTheAgentWasGone decides within the seconds in which a dead host still counts as alive.
func TestAllowedButTheAgentWasGone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := openBolt(t)
		hdb := &faulty{DB: db}
		h, _ := host(t, slow(hdb), "i1")
		var told []approvals.Decision
		c := slow(db)
		c.Decided = func(_ *store.Txn, _ approvals.Record, d approvals.Decision) error {
			told = append(told, d) // nobody else commits, so it runs once for each commit
			return nil
		}
		g := gateway(t, c)
		sweeping(t, g)
		time.Sleep(10 * time.Second)
		a := ask(t.Context(), h, turn(under(policy.ApprovalRequired, policy.Default)), command("make"))
		r := card(t, g, 1)[0]
		hdb.away.Store(true)
		if o := decide(t, g, tap(r, ada, runner.ActionAllow)); !o.Won {
			t.Fatalf("the tap came to %+v", o)
		}
		if w := stands(t, g, r.ID).Word; w != approvals.StandsHandingOver {
			t.Errorf("it stands as %q", w)
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if st := stands(t, g, r.ID); st.Word != approvals.StandsGone || st.Decision == nil || st.Decision.By != ada.ID {
			t.Errorf("it stands as %+v", st)
		}
		if len(told) != 2 || told[0].Gone != (time.Time{}) || told[1].Gone.IsZero() || told[1].By != ada.ID {
			t.Errorf("Decided was told %+v", told)
		}
		hdb.away.Store(false)
		<-a.done
		if a.answer.Allows() {
			t.Errorf("the card says that nothing ran, and the answer is %+v", a.answer)
		}
	})
}

func TestARestartedHostClosesWhatItLeftOpen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := openBolt(t)
		old := &faulty{DB: db}
		h1, stop := host(t, slow(old), "i1")
		g := gateway(t, slow(db))
		var all []*asked
		for range 3 {
			all = append(all, ask(t.Context(), h1, turn(under(policy.ApprovalRequired, policy.Default)), command("make")))
		}
		rs := card(t, g, 3)
		old.away.Store(true)
		decide(t, g, tap(rs[0], ada, runner.ActionAllow))
		decide(t, g, tap(rs[1], ada, runner.ActionDeny))
		stop()
		var resolved atomic.Int32
		c := slow(db)
		c.Resolved = func(_ *store.Txn, r approvals.Record) error {
			if r.State == approvals.Lost {
				resolved.Add(1)
			}
			return nil
		}
		h2, _ := host(t, c, "i2")
		again := ask(t.Context(), h2, turn(under(policy.ApprovalRequired, policy.Default)), command("make again"))
		time.Sleep(time.Second)
		r := card(t, g, 1)[0]
		if r.Question.Command != "make again" || resolved.Load() != 3 {
			t.Errorf("open is %q, and %d were closed before it", r.Question.Command, resolved.Load())
		}
		for i, want := range []approvals.Word{approvals.StandsGone, approvals.StandsDenied, approvals.StandsGone} {
			if w := stands(t, g, rs[i].ID).Word; w != want {
				t.Errorf("the one numbered %d stands as %q, want %q", i, w, want)
			}
		}
		if o := decide(t, g, tap(rs[2], ada, runner.ActionAllow)); o.Won || o.Refused != approvals.RefusedGone {
			t.Errorf("a tap came to %+v", o)
		}
		old.away.Store(false)
		for i, a := range all {
			<-a.done
			if a.answer.Allows() {
				t.Errorf("the one numbered %d was answered %+v by an incarnation that was replaced", i, a.answer)
			}
		}
		decide(t, g, tap(r, ada, runner.ActionAllow))
		if got := again.wait(t); !got.Allows() {
			t.Errorf("the answer is %+v", got)
		}
	})
}

// TestAReplacedIncarnationAsksNothing has both incarnations running: the older one can neither publish nor come back.
func TestAReplacedIncarnationAsksNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := openBolt(t)
		var published atomic.Int32
		c := slow(db)
		c.Opened = func(*store.Txn, approvals.Record) error { published.Add(1); return nil }
		h1, _ := host(t, c, "i1")
		g := gateway(t, slow(db))
		a := ask(t.Context(), h1, turn(under(policy.ApprovalRequired, policy.Default)), command("make"))
		r := card(t, g, 1)[0]
		h2, _ := host(t, slow(db), "i2")
		b := ask(t.Context(), h2, turn(under(policy.ApprovalRequired, policy.Default)), command("make 2"))
		replaced := time.Now()
		if <-a.done; time.Since(replaced) > 5*time.Second {
			t.Errorf("the older one learned of it after %s", time.Since(replaced))
		}
		if a.answer.Decision != runner.Denied || stands(t, g, r.ID).Word != approvals.StandsGone {
			t.Errorf("the answer is %+v, it stands as %+v", a.answer, stands(t, g, r.ID))
		}
		got, err := h1.Ask(t.Context(), turn(under(policy.ApprovalRequired, policy.Default)), command("make"))
		if err != nil || got.Decision != runner.Denied || published.Load() != 1 {
			t.Errorf("the answer is %+v, %v, and %d were published", got, err, published.Load())
		}
		decide(t, g, tap(card(t, g, 1)[0], ada, runner.ActionAllow))
		if <-b.done; !b.answer.Allows() {
			t.Errorf("the living one was answered %+v", b.answer)
		}
	})
}

// TestSweepIsIdempotent has three gateways sweep an overdue approval of a host that is gone.
func TestSweepIsIdempotent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := openBolt(t)
		hdb := &faulty{DB: db}
		h, _ := host(t, slow(hdb), "i1")
		var decided atomic.Int32
		c := slow(db)
		c.Decided = func(*store.Txn, approvals.Record, approvals.Decision) error { decided.Add(1); return nil }
		c.DeadAfter = time.Hour // so that only the deadline counts
		ctx, cancel := context.WithCancel(t.Context())
		a := ask(ctx, h, turn(under(policy.ApprovalRequired, policy.Default)), command("make"))
		r := card(t, h, 1)[0]
		hdb.away.Store(true)
		var all []*approvals.Service
		for range 3 {
			all = append(all, gateway(t, c))
		}
		fresh := gateway(t, c)
		for range 3 {
			for _, g := range all {
				if err := g.Sweep(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(4 * time.Minute)
		}
		if o := decide(t, fresh, tap(r, ada, runner.ActionAllow)); o.Won || o.Refused != approvals.RefusedOverdue {
			t.Errorf("a tap after the deadline came to %+v", o)
		}
		for _, g := range all {
			if err := g.Sweep(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if st := stands(t, all[0], r.ID); st.Word != approvals.StandsExpired || st.Decision == nil || decided.Load() != 1 {
			t.Errorf("it stands as %+v, Decided was called %d times", st, decided.Load())
		}
		cancel()
		<-a.done
	})
}

// TestAnotherIncarnationsBeatEndsACard has the host start again and not yet have closed anything.
func TestAnotherIncarnationsBeatEndsACard(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := openBolt(t)
		hdb := &faulty{DB: db}
		h, _ := host(t, slow(hdb), "i1")
		g := gateway(t, slow(db))
		ctx, cancel := context.WithCancel(t.Context())
		a := ask(ctx, h, turn(under(policy.ApprovalRequired, policy.Default)), command("make"))
		r := card(t, g, 1)[0]
		hdb.away.Store(true)
		err := store.Update(t.Context(), db, func(tx *store.Txn) error {
			now, err := tx.Now()
			tx.Add(approvals.OpenIndex("box"), string(approvals.NewID("other")), 0) // of no use to anybody
			return errors.Join(err, store.Put(tx, approvals.BeatKey("box"), approvals.Beat{V: 1, Incarnation: "i2", At: now}))
		})
		if err != nil {
			t.Fatal(err)
		}
		if o := decide(t, g, tap(r, ada, runner.ActionAllow)); o.Won || o.Refused != approvals.RefusedGone {
			t.Errorf("a tap came to %+v", o)
		}
		if err := g.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		if st := stands(t, g, r.ID); st.Word != approvals.StandsGone || st.Decision == nil {
			t.Errorf("it stands as %+v", st)
		}
		cancel()
		<-a.done
	})
}

// TestTheRecordsDeadlineCounts has the index say that an approval is overdue.
func TestTheRecordsDeadlineCounts(t *testing.T) {
	t.Parallel()
	db := openBolt(t)
	h, _ := host(t, fast(db), "i1")
	g := gateway(t, fast(db))
	a := ask(t.Context(), h, turn(under(policy.ApprovalRequired, policy.Default)), command("make"))
	r := card(t, g, 1)[0]
	err := store.Update(t.Context(), db, func(tx *store.Txn) error {
		tx.Add(approvals.OpenIndex("box"), string(r.ID), 1)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if o := decide(t, g, tap(r, ada, runner.ActionAllow)); !o.Won {
		t.Errorf("the tap came to %+v", o)
	}
	a.wait(t)
}

// TestADamagedRecordStopsNobody has one in the index of what was left open.
func TestADamagedRecordStopsNobody(t *testing.T) {
	t.Parallel()
	db := openBolt(t)
	id := approvals.NewID("box")
	err := store.Update(t.Context(), db, func(tx *store.Txn) error {
		tx.PutBytes(approvals.AskKey(id), []byte(`{"v":`))
		tx.Add(approvals.OpenIndex("box"), string(id), 1)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Update(t.Context(), db, func(tx *store.Txn) error { tx.Add(approvals.HostsIndex, "box", 1); return nil }); err != nil {
		t.Fatal(err)
	}
	g := gateway(t, fast(db))
	if rs, err := g.Pending(t.Context(), ""); err != nil || len(rs) != 0 {
		t.Errorf("pending are %v, %v", rs, err)
	}
	if err := g.Sweep(t.Context()); err != nil {
		t.Error(err)
	}
	c := fast(db)
	c.Host, c.Incarnation = "box", "i1" // its logger may hold an error: that is what is tried
	h := approvals.New(c)
	a := ask(t.Context(), h, turn(under(policy.ApprovalRequired, policy.Default)), command("make"))
	decide(t, g, tap(card(t, g, 1)[0], ada, runner.ActionAllow))
	if got := a.wait(t); !got.Allows() {
		t.Errorf("the answer is %+v", got)
	}
}
