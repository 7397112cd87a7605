package storetest_test

import (
	"fmt"
	"sync/atomic"
	"testing"

	"drawbridge/internal/store"
	"drawbridge/internal/store/storetest"
)

// engines runs a benchmark on bbolt (an fsync for each commit) and on a real redis-server with both ways to sync.
func engines(b *testing.B, run func(b *testing.B, db store.DB)) {
	b.Helper()
	b.Run("bolt", func(b *testing.B) { run(b, storetest.OpenBolt(b)) })
	for name, always := range map[string]bool{"redis-everysec": false, "redis-always": true} {
		b.Run(name, func(b *testing.B) {
			run(b, storetest.StartRedis(b, storetest.RedisOptions{SyncAlways: always}).Open(b, "db:{1}:"))
		})
	}
}

// BenchmarkCommit is one guarded change of a document with an index entry, as a decision is: alone, and eight at a time on
// documents of their own.
func BenchmarkCommit(b *testing.B) {
	engines(b, func(b *testing.B, db store.DB) {
		b.Helper()
		b.Run("alone", func(b *testing.B) {
			for b.Loop() {
				change(b, db, "doc")
			}
		})
		b.Run("eight", func(b *testing.B) {
			b.SetParallelism(4) // times two processors
			var n atomic.Int64
			b.RunParallel(func(pb *testing.PB) {
				key := fmt.Sprintf("doc%d", n.Add(1))
				for pb.Next() {
					change(b, db, key)
				}
			})
		})
	})
}

func change(b *testing.B, db store.DB, key string) {
	b.Helper()
	err := store.Update(b.Context(), db, func(tx *store.Txn) error {
		n, _, err := store.Get[int](tx, key)
		if err != nil {
			return err
		}
		tx.Add("index", key, int64(n))
		return store.Put(tx, key, n+1)
	})
	if err != nil {
		b.Error(err)
	}
}

// BenchmarkWake is the way of a decision to who waits for it: commit with a hint, the listener wakes and reads the document.
func BenchmarkWake(b *testing.B) {
	engines(b, func(b *testing.B, db store.DB) {
		b.Helper()
		ch, err := db.Listen(b.Context(), "topic")
		if err != nil {
			b.Fatal(err)
		}
		woken := make(chan error)
		go func() {
			for range ch {
				_, _, err := db.Read(b.Context(), "doc")
				woken <- err
			}
		}()
		batch := store.Batch{Put: map[string][]byte{"doc": []byte(`{"v":1}`)}, Publish: []store.Message{{Topic: "topic"}}}
		for b.Loop() {
			if err := db.Commit(b.Context(), batch); err != nil {
				b.Fatal(err)
			}
			if err := <-woken; err != nil {
				b.Fatal(err)
			}
		}
	})
}
