package approvals_test

import (
	"bytes"
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"drawbridge/approvals"
	"drawbridge/internal/store"
	"drawbridge/policy"
	"drawbridge/runner"
)

// faulty is a way to a store that can be cut, loses hints, or is looked at before each commit.
type faulty struct {
	store.DB
	away   atomic.Bool
	deaf   bool
	before func(b store.Batch) error
}

func (f *faulty) Read(ctx context.Context, keys ...string) (time.Time, []store.Doc, error) {
	if f.away.Load() {
		return time.Time{}, nil, store.ErrUnavailable
	}
	return f.DB.Read(ctx, keys...)
}

func (f *faulty) Range(ctx context.Context, index string, min, max int64, limit int) ([]store.Item, error) {
	if f.away.Load() {
		return nil, store.ErrUnavailable
	}
	return f.DB.Range(ctx, index, min, max, limit)
}

func (f *faulty) Commit(ctx context.Context, b store.Batch) error {
	if f.before != nil {
		if err := f.before(b); err != nil {
			return err
		}
	}
	if f.away.Load() {
		return store.ErrUnavailable
	}
	return f.DB.Commit(ctx, b)
}

func (f *faulty) Listen(ctx context.Context, topics ...string) (<-chan store.Message, error) {
	if f.away.Load() {
		return nil, store.ErrUnavailable
	}
	if f.deaf {
		topics = []string{"nobody:speaks:here"}
	}
	return f.DB.Listen(ctx, topics...)
}

func writes(b store.Batch, what string) bool {
	for _, v := range b.Put {
		if bytes.Contains(v, []byte(what)) {
			return true
		}
	}
	return false
}

// slow is the pace of a real installation, for bubbles.
func slow(db store.DB) approvals.Config { return approvals.Config{DB: db} }

func sweeping(t testing.TB, s *approvals.Service) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := s.RunSweep(ctx); err != nil {
			t.Error(err)
		}
	}()
	t.Cleanup(func() { cancel(); <-done })
}

func TestADecisionArrivesAlsoWhenItsHintIsLost(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open func() store.DB) {
		h, _ := host(t, fast(&faulty{DB: open(), deaf: true}), "i1")
		g := gateway(t, fast(open()))
		var all []*asked
		for range 10 {
			all = append(all, ask(t.Context(), h, turn(under(policy.ApprovalRequired, policy.Default)), command("make")))
		}
		for _, r := range card(t, g, 10) {
			decide(t, g, tap(r, bob, runner.ActionAllow))
		}
		for _, a := range all {
			if got := a.wait(t); !got.Allows() {
				t.Errorf("the answer is %+v", got)
			}
		}
	})
}

func TestADecisionWakesTheWaiterByItsHint(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := openBolt(t)
		c := slow(db)
		c.Reread, c.Beat, c.DeadAfter = time.Hour, time.Hour, 3*time.Hour
		h, _ := host(t, c, "i1")
		g := gateway(t, c)
		synctest.Wait()
		start := time.Now()
		a := ask(t.Context(), h, turn(under(policy.ApprovalRequired, policy.Default)), command("make"))
		decide(t, g, tap(card(t, g, 1)[0], ada, runner.ActionAllow))
		if got := a.wait(t); !got.Allows() {
			t.Errorf("the answer is %+v", got)
		}
		if d := time.Since(start); d > time.Second {
			t.Errorf("it took %s, so the waiter was not woken", d)
		}
	})
}

func TestSilenceIsADenial(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h, _ := host(t, slow(openBolt(t)), "i1")
		start := time.Now()
		got, err := h.Ask(t.Context(), turn(under(policy.ApprovalRequired, policy.Default)), command("make"))
		if err != nil || got.Decision != runner.Denied || got.Source != runner.SourceTimeout {
			t.Errorf("the answer is %+v, %v", got, err)
		}
		if d := time.Since(start); d < 10*time.Minute || d > 10*time.Minute+time.Second {
			t.Errorf("it took %s, want 10 minutes", d)
		}
		if rs := card(t, h, 0); len(rs) != 0 {
			t.Errorf("still open: %v", rs)
		}
	})
}

func TestAPlanMayWaitForSevenDays(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := slow(openBolt(t))
		c.Beat, c.DeadAfter, c.Reread = time.Hour, 3*time.Hour, time.Hour
		h, _ := host(t, c, "i1")
		start := time.Now()
		got, err := h.Ask(t.Context(), turn(under(policy.Auto, policy.Plan)), runner.Question{Kind: runner.KindPlan, Plan: "1. Do it"})
		if err != nil || got.Source != runner.SourceTimeout {
			t.Errorf("the answer is %+v, %v", got, err)
		}
		if d := time.Since(start); d < 7*24*time.Hour || d > 7*24*time.Hour+time.Minute {
			t.Errorf("it took %s, want 7 days", d)
		}
	})
}

// TestADecisionBeforeClosingWasInTime lets a gateway read just before the deadline and commit after the host has found
// that it has come, and before it has closed.
func TestADecisionBeforeClosingWasInTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := openBolt(t)
		closing, decided := make(chan struct{}), make(chan struct{})
		hdb := &faulty{DB: db, before: func(b store.Batch) error {
			if writes(b, `"state":"closing"`) {
				close(closing)
				<-decided
			}
			return nil
		}}
		gdb := &faulty{DB: db, before: func(store.Batch) error { <-closing; return nil }}
		h, _ := host(t, slow(hdb), "i1")
		g := gateway(t, slow(gdb))
		a := ask(t.Context(), h, turn(under(policy.ApprovalRequired, policy.Default)), command("make"))
		r := card(t, g, 1)[0]
		time.Sleep(time.Until(r.Deadline) - time.Second)
		o := decide(t, g, tap(r, ada, runner.ActionAllow)) // returns after the deadline
		close(decided)
		if !o.Won {
			t.Fatalf("the tap came to %+v", o)
		}
		<-a.done
		if !a.answer.Allows() || a.err != nil {
			t.Errorf("the answer is %+v, %v", a.answer, a.err)
		}
		if w := stands(t, g, r.ID).Word; w != approvals.StandsAllowed {
			t.Errorf("it stands as %q", w)
		}
	})
}

func TestAStoreThatIsAwayAtTheAskIsADenial(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := &faulty{DB: openBolt(t)}
		h, _ := host(t, slow(db), "i1")
		synctest.Wait()
		db.away.Store(true)
		for _, q := range []runner.Question{command("make"), {Kind: runner.KindTool, Tool: "x", Categories: []policy.Category{policy.Write}}} {
			for _, m := range policy.Modes() {
				got, err := h.Ask(t.Context(), turn(under(m, policy.Default)), q)
				if err != nil || got.Decision != runner.Denied || got.Source != runner.SourceShutdown {
					t.Errorf("%s in %s: the answer is %+v, %v", q.Kind, m, got, err)
				}
			}
		}
	})
}

func TestAStoreThatComesBackDeliversTheDecision(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := &faulty{DB: openBolt(t)}
		h, _ := host(t, slow(db), "i1")
		g := gateway(t, slow(db))
		sweeping(t, g)
		a := ask(t.Context(), h, turn(under(policy.ApprovalRequired, policy.Default)), command("make"))
		r := card(t, g, 1)[0]
		db.away.Store(true)
		time.Sleep(5 * time.Minute)
		db.away.Store(false)
		time.Sleep(10 * time.Second)
		if o := decide(t, g, tap(r, ada, runner.ActionAllow)); !o.Won {
			t.Fatalf("the tap came to %+v", o)
		}
		<-a.done
		if !a.answer.Allows() {
			t.Errorf("the answer is %+v", a.answer)
		}
	})
}

func TestAStoreThatStaysAwayIsADenialAtTheDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := &faulty{DB: openBolt(t)}
		h, _ := host(t, slow(db), "i1")
		g := gateway(t, slow(db.DB))
		start := time.Now()
		a := ask(t.Context(), h, turn(under(policy.ApprovalRequired, policy.Default)), command("make"))
		r := card(t, g, 1)[0]
		time.Sleep(time.Minute)
		db.away.Store(true)
		<-a.done
		if a.answer.Decision != runner.Denied || a.answer.Source != runner.SourceTimeout {
			t.Errorf("the answer is %+v", a.answer)
		}
		if d := time.Since(start); d < 10*time.Minute || d > 11*time.Minute {
			t.Errorf("it took %s, want 10 minutes", d)
		}
		db.away.Store(false)
		time.Sleep(5 * time.Second)
		if w := stands(t, g, r.ID).Word; w != approvals.StandsExpired {
			t.Errorf("it stands as %q, so it was not closed when the store came back", w)
		}
	})
}

// TestADecisionThatCanNotBeConfirmedIsADenial cuts the store between the decision and its confirmation, once before the
// commit and once after it, so that only its reply is lost.
func TestADecisionThatCanNotBeConfirmedIsADenial(t *testing.T) {
	t.Parallel()
	for name, commits := range map[string]bool{"not committed": false, "reply lost": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				inner := openBolt(t)
				db := &faulty{DB: inner}
				db.before = func(b store.Batch) error {
					if writes(b, `"state":"handed"`) {
						if commits && !db.away.Load() {
							if err := inner.Commit(context.Background(), b); err != nil {
								t.Error(err)
							}
						}
						db.away.Store(true)
					}
					return nil
				}
				h, _ := host(t, slow(db), "i1")
				g := gateway(t, slow(inner))
				a := ask(t.Context(), h, turn(under(policy.ApprovalRequired, policy.Default)), command("make"))
				r := card(t, g, 1)[0]
				if o := decide(t, g, tap(r, ada, runner.ActionAllow)); !o.Won {
					t.Fatalf("the tap came to %+v", o)
				}
				<-a.done
				if a.answer.Decision != runner.Denied {
					t.Errorf("the answer is %+v", a.answer)
				}
				db.away.Store(false)
				time.Sleep(10 * time.Second)
				if w := stands(t, g, r.ID).Word; w != approvals.StandsGone {
					t.Errorf("it stands as %q, though nothing ran", w)
				}
			})
		})
	}
}
