package redis_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	"drawbridge/internal/store"
	"drawbridge/internal/store/storetest"
)

// TestKilledServerLosesNothing kills redis-server (appendfsync always) under writers at random moments and starts it
// again. Every acknowledged commit is there, no batch is torn, and each writer's Updates, repeated by the writer until they
// succeed, act exactly once.
func TestKilledServerLosesNothing(t *testing.T) {
	t.Parallel()
	const writers, rounds = 3, 8
	server := storetest.StartRedis(t, storetest.RedisOptions{SyncAlways: true})
	db := server.Open(t, "db:{1}:")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	acked := make([]int, writers)
	unknown := make([]int, writers)
	progress := make(chan struct{}) // one for each acknowledgement
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for n := 1; ctx.Err() == nil; n++ {
				for {
					err := addEntry(t.Context(), db, w, n)
					if err == nil {
						break
					}
					if !errors.Is(err, store.ErrUnavailable) {
						t.Errorf("update: %v", err)
						return
					}
					unknown[w]++
					<-time.After(5 * time.Millisecond) // leaves the processor to the server that starts
				}
				acked[w] = n
				select {
				case progress <- struct{}{}:
				case <-ctx.Done():
				}
			}
		})
	}
	for range rounds {
		for range 1 + rand.IntN(60) {
			<-progress
		}
		server.Restart()
	}
	<-progress
	cancel()
	all.Wait()
	total := 0
	for w := range writers {
		total += acked[w]
	}
	t.Logf("%d commits were acknowledged, %v calls were not answered", total, unknown)
	items, err := db.Range(t.Context(), "entries", math.MinInt64, math.MaxInt64, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, docs, err := db.Read(t.Context(), "count")
	if err != nil {
		t.Fatal(err)
	}
	if count, _ := strconv.Atoi(string(docs[0].Value)); len(items) != total || count != total {
		t.Errorf("%d entries and a count of %s after %d commits", len(items), docs[0].Value, total)
	}
	for w := range writers {
		for n := 1; n <= acked[w]; n++ {
			_, docs, err := db.Read(t.Context(), entry(w, n, "left"), entry(w, n, "right"))
			if err != nil {
				t.Fatal(err)
			}
			if docs[0].Rev == "" || docs[0].Rev != docs[1].Rev {
				t.Errorf("writer %d: batch %d is %+v", w, n, docs)
			}
		}
	}
}

func entry(w, n int, which string) string { return fmt.Sprintf("entry/%d/%d/%s", w, n, which) }

// addEntry is written as every Update must be whose outcome may be unknown: called again, it finds what it did.
func addEntry(ctx context.Context, db store.DB, w, n int) error {
	return store.Update(ctx, db, func(tx *store.Txn) error {
		if _, done, err := store.Get[int](tx, entry(w, n, "left")); done || err != nil {
			return err
		}
		count, _, err := store.Get[int](tx, "count")
		if err != nil {
			return err
		}
		tx.Add("entries", fmt.Sprintf("%d/%d", w, n), int64(n))
		return errors.Join(store.Put(tx, "count", count+1), store.Put(tx, entry(w, n, "left"), n), store.Put(tx, entry(w, n, "right"), n))
	})
}

// TestUpdateAcrossARestartActsOnce needs no help of its caller: the server is killed after it has committed and before it
// could answer, comes back, and the one Update succeeds and has acted once.
func TestUpdateAcrossARestartActsOnce(t *testing.T) {
	t.Parallel()
	server := storetest.StartRedis(t, storetest.RedisOptions{SyncAlways: true})
	direct := server.Open(t, "db:{1}:")
	db := &loseAnswer{DB: direct, lose: server.Kill, restart: server.Restart}
	attempts := 0
	err := store.Update(t.Context(), db, func(tx *store.Txn) error {
		attempts++
		n, _, err := store.Get[int](tx, "n")
		if err != nil {
			return err
		}
		return store.Put(tx, "n", n+1)
	})
	_, docs, readErr := direct.Read(t.Context(), "n")
	if err := errors.Join(err, readErr); err != nil {
		t.Fatal(err)
	}
	if string(docs[0].Value) != "1" || attempts != 1 || db.commits != 3 {
		t.Errorf("after %d attempts and %d commits the counter is %s", attempts, db.commits, docs[0].Value)
	}
}

// loseAnswer loses the answer to the first commit, together with the server, and starts it again before the third.
type loseAnswer struct {
	store.DB
	lose, restart func()
	commits       int
}

func (l *loseAnswer) Commit(ctx context.Context, b store.Batch) error {
	l.commits++
	switch l.commits {
	case 1:
		if err := l.DB.Commit(ctx, b); err != nil {
			return err
		}
		l.lose()
		return fmt.Errorf("the answer was lost: %w", store.ErrUnavailable)
	case 3:
		l.restart()
	}
	return l.DB.Commit(ctx, b)
}
