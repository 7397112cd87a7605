package approvals_test

import (
	"context"
	"math"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"drawbridge/approvals"
	"drawbridge/internal/store/bolt"
	"drawbridge/policy"
	"drawbridge/runner"
)

// TestOldApprovalsAreForgotten: a record, its decision and both audit lines go when their time is over, and with them
// everything that pointed there.
func TestOldApprovalsAreForgotten(t *testing.T) {
	t.Parallel()
	var later atomic.Int64
	db, err := bolt.Open(filepath.Join(t.TempDir(), "test.db"), bolt.Options{
		Now: func() time.Time { return time.Now().Add(time.Duration(later.Load())) },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	h, stop := host(t, fast(db), "i1")
	g := gateway(t, fast(db))
	a := ask(t.Context(), h, turn(under(policy.ApprovalRequired, policy.Default)), command("make docs"))
	r := card(t, g, 1)[0]
	decide(t, g, tap(r, ada, runner.ActionAllow))
	if !a.wait(t).Allows() {
		t.Fatal("it was not allowed")
	}
	stop()

	left := func() (names []string) {
		t.Helper()
		for _, index := range []string{
			approvals.ResolvedIndex("box"), approvals.DecisionsIndex, approvals.AuditIndex, approvals.HostAuditIndex("box"),
		} {
			items, err := db.Range(context.WithoutCancel(t.Context()), index, math.MinInt64, math.MaxInt64, 0)
			if err != nil {
				t.Fatal(err)
			}
			for range items {
				names = append(names, index)
			}
		}
		_, docs, err := db.Read(context.WithoutCancel(t.Context()), approvals.AskKey(r.ID), approvals.DecisionKey(r.ID))
		if err != nil {
			t.Fatal(err)
		}
		for i, d := range docs {
			if d.Rev != "" {
				names = append(names, []string{"ask", "decision"}[i])
			}
		}
		return names
	}
	if names := left(); len(names) < 5 {
		t.Fatalf("before there are only %v", names)
	}
	later.Store(int64(100 * 24 * time.Hour))
	host(t, fast(db), "i2")
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	defer cancel()
	var sweeping sync.WaitGroup
	defer sweeping.Wait()
	sweeping.Go(func() {
		if err := g.RunSweep(ctx); err != nil {
			t.Error(err)
		}
	})
	for end := time.Now().Add(60 * time.Second); len(left()) > 0 && time.Now().Before(end); {
		<-time.After(5 * time.Millisecond)
	}
	cancel()
	if names := left(); len(names) > 0 {
		t.Errorf("after 100 days there are %v", names)
	}
}
