package bot

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"drawbridge/internal/store"
	"drawbridge/internal/store/bolt"
)

// pass lets the time of a synctest bubble pass.
func pass(d time.Duration) { <-time.After(d) }

func bubbleStore(t *testing.T) store.DB {
	t.Helper()
	db, err := bolt.Open(t.TempDir()+"/db", bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func lease(t *testing.T, db store.DB, owner string) *Lease {
	return &Lease{DB: db, Name: "poll", Owner: owner, Logger: slog.New(&tape{t: t})}
}

// contender runs a lease and reports its terms.
type contender struct {
	acting atomic.Bool
	fence  atomic.Int64
	terms  atomic.Int64
	cause  error
	cancel context.CancelFunc
	done   chan error
}

func contend(t *testing.T, l *Lease) *contender {
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	c := &contender{cancel: cancel, done: make(chan error, 1)}
	go func() {
		c.done <- l.Run(ctx, func(ctx context.Context, fence int64) error {
			c.fence.Store(fence)
			c.terms.Add(1)
			c.acting.Store(true)
			<-ctx.Done()
			c.acting.Store(false)
			c.cause = context.Cause(ctx)
			return nil
		})
	}()
	return c
}

func (c *contender) stop(t *testing.T) {
	c.cancel()
	if err := <-c.done; err != nil {
		t.Error(err)
	}
}

func TestOneHoldsTheLeaseAndGivesItBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := bubbleStore(t)
		a := contend(t, lease(t, db, "a"))
		synctest.Wait()
		b := contend(t, lease(t, db, "b"))
		pass(time.Minute)
		if !a.acting.Load() || b.acting.Load() || a.terms.Load() != 1 {
			t.Fatalf("a acts: %t in term %d, b acts: %t", a.acting.Load(), a.terms.Load(), b.acting.Load())
		}
		a.stop(t)
		synctest.Wait() // at once, by the hint
		if !b.acting.Load() || b.fence.Load() <= a.fence.Load() {
			t.Errorf("b acts: %t, fences %d and %d", b.acting.Load(), a.fence.Load(), b.fence.Load())
		}
		b.stop(t)
	})
}

func TestHolderStopsBeforeAnotherMayStart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := bubbleStore(t)
		cut := &flaky{DB: db}
		a := contend(t, lease(t, cut, "a"))
		synctest.Wait()
		b := contend(t, lease(t, db, "b"))
		pass(10 * time.Second)
		cut.down.Store(true) // for a the store is away from here on
		var aStopped, bStarted time.Duration
		for since := time.Duration(0); since < 8*time.Second; since += 50 * time.Millisecond {
			if aStopped == 0 && !a.acting.Load() {
				aStopped = since
			}
			if bStarted == 0 && b.acting.Load() {
				bStarted = since
			}
			if a.acting.Load() && b.acting.Load() {
				t.Fatalf("both act %s after the cut", since)
			}
			pass(50 * time.Millisecond)
		}
		if aStopped == 0 || bStarted == 0 || bStarted > 5*time.Second || aStopped > 3100*time.Millisecond {
			t.Errorf("a stopped after %s, b started after %s", aStopped, bStarted)
		}
		if !errors.Is(a.cause, ErrLeaseLost) {
			t.Errorf("cause: %v", a.cause)
		}
		cut.down.Store(false)
		pass(5 * time.Second)
		if a.acting.Load() || !b.acting.Load() {
			t.Error("the old holder came back while the new one holds")
		}
		b.stop(t)
		pass(2 * time.Second)
		if !a.acting.Load() || a.terms.Load() != 2 {
			t.Error("the old holder did not take the free lease")
		}
		a.stop(t)
	})
}

func TestActErrorEndsRunAndFreesTheLease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := bubbleStore(t)
		err := lease(t, db, "a").Run(t.Context(), func(context.Context, int64) error { return errTest })
		if !errors.Is(err, errTest) {
			t.Error(err)
		}
		began := time.Now()
		b := contend(t, lease(t, db, "b"))
		synctest.Wait()
		if !b.acting.Load() || time.Since(began) > 0 {
			t.Error("not free at once")
		}
		b.stop(t)
	})
}

func TestFenceRefusesCommitsOfAnOldTerm(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := bubbleStore(t)
		a := lease(t, db, "a")
		old, won, err := a.acquire(t.Context())
		if err != nil || !won {
			t.Fatal(won, err)
		}
		pass(5 * time.Second)
		fresh, won, err := lease(t, db, "b").acquire(t.Context())
		if err != nil || !won {
			t.Fatal(won, err)
		}
		put := func(fence int64) error {
			return store.Update(t.Context(), db, func(t *store.Txn) error {
				if err := CheckFence(t, "poll", fence); err != nil {
					return err
				}
				return store.Put(t, "g:test:x", fence)
			})
		}
		if err := put(old); !errors.Is(err, ErrFenced) {
			t.Errorf("old term: %v", err)
		}
		if err := put(fresh); err != nil {
			t.Errorf("present term: %v", err)
		}
		if mine, err := a.extend(t.Context(), old, time.Minute); mine || err != nil {
			t.Errorf("the old owner prolonged: %t %v", mine, err)
		}
	})
}

// TestTermOfASteppedClockEnds: the store's clock went back by an hour and the holder died. Others must not wait for an hour,
// and not be faster than a living holder that renews.
func TestTermOfASteppedClockEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := bubbleStore(t)
		hold := func() {
			err := store.Update(t.Context(), db, func(tx *store.Txn) error {
				now, err := tx.Now()
				if err != nil {
					return err
				}
				return store.Put(tx, leaseKey("poll"), leaseDoc{V: Version, Owner: "dead", Fence: 7, Until: now.Add(time.Hour)})
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		hold()
		b := contend(t, lease(t, db, "b"))
		for range 6 { // it lives, and renews
			pass(time.Second)
			hold()
		}
		pass(4 * time.Second)
		if b.acting.Load() {
			t.Error("another began while the holder could still trust itself")
		}
		pass(3 * time.Second)
		if !b.acting.Load() || b.fence.Load() != 8 {
			t.Errorf("acting %v with fence %d, want a term after fence 7", b.acting.Load(), b.fence.Load())
		}
		b.stop(t)
	})
}
