package storetest

import (
	"errors"
	"sync"
	"testing"

	"drawbridge/internal/store"
)

func increment(t *store.Txn, key string) error {
	n, _, err := store.Get[int](t, key)
	if err != nil {
		return err
	}
	return store.Put(t, key, n+1)
}

func read[T any](t *testing.T, db store.DB, key string) (v T, ok bool) {
	t.Helper()
	err := store.Update(t.Context(), db, func(tx *store.Txn) (err error) {
		v, ok, err = store.Get[T](tx, key)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return v, ok
}

func testUpdateContention(t *testing.T, db store.DB) {
	const writers, each = 6, 15
	var all sync.WaitGroup
	for range writers {
		all.Go(func() {
			for range each {
				err := store.Update(t.Context(), db, func(tx *store.Txn) error {
					return errors.Join(increment(tx, "a"), increment(tx, "b"))
				})
				if err != nil {
					t.Errorf("update: %v", err)
				}
			}
		})
	}
	all.Wait()
	for _, key := range []string{"a", "b"} {
		if n, _ := read[int](t, db, key); n != writers*each {
			t.Errorf("%s counts %d, want %d", key, n, writers*each)
		}
	}
}

func testUpdateRepeats(t *testing.T, db store.DB) {
	calls := 0
	err := store.Update(t.Context(), db, func(tx *store.Txn) error {
		calls++
		n, ok, err := store.Get[int](tx, "a")
		if err != nil {
			return err
		}
		if calls == 1 {
			if ok {
				t.Error("it is there already")
			}
			mustCommit(t, db, store.Batch{Put: put("a", "41")})
		}
		return store.Put(tx, "a", n+1)
	})
	if n, _ := read[int](t, db, "a"); err != nil || calls != 2 || n != 42 {
		t.Errorf("after %d calls: %d, %v", calls, n, err)
	}
	stop := errors.New("stop")
	err = store.Update(t.Context(), db, func(tx *store.Txn) error {
		return errors.Join(store.Put(tx, "a", 0), stop)
	})
	if n, _ := read[int](t, db, "a"); !errors.Is(err, stop) || n != 42 {
		t.Errorf("an update that failed with %v left %d", err, n)
	}
}

func testLastWord(t *testing.T, db store.DB) {
	update := func(fn func(tx *store.Txn) error) {
		t.Helper()
		if err := store.Update(t.Context(), db, fn); err != nil {
			t.Fatal(err)
		}
	}
	update(func(tx *store.Txn) error {
		tx.Delete("a")
		tx.PutBytes("a", []byte("1"))
		tx.PutBytes("b", []byte("1"))
		tx.Delete("b")
		tx.Add("i", "moved", 1)
		tx.Add("i", "moved", 2)
		tx.Drop("i", "kept")
		tx.Add("i", "kept", 1)
		tx.Add("i", "dropped", 1)
		tx.Drop("i", "dropped")
		return nil
	})
	if docs := mustRead(t, db, "a", "b"); string(docs[0].Value) != "1" || docs[1].Rev != "" {
		t.Errorf("read %+v", docs)
	}
	wantRange(t, db, "i", 0, 9, 0, "kept=1", "moved=2")

	// What a Txn sees of itself, and that a deletion before the first read is guarded by what was stored.
	update(func(tx *store.Txn) error {
		tx.Delete("a")
		if _, ok, err := store.Get[int](tx, "a"); ok || err != nil {
			t.Errorf("deleted and still there, %v", err)
		}
		if err := store.Put(tx, "a", 7); err != nil {
			return err
		}
		if n, ok, err := store.Get[int](tx, "a"); n != 7 || !ok || err != nil {
			t.Errorf("put 7, got %d, %v, %v", n, ok, err)
		}
		tx.PutBytes("nothing", nil)
		return nil
	})
	if docs := mustRead(t, db, "a", "nothing"); string(docs[0].Value) != "7" || docs[1].Rev == "" {
		t.Errorf("read %+v", docs)
	}
}

func testPeek(t *testing.T, db store.DB) {
	mustCommit(t, db, store.Batch{Put: map[string][]byte{"theirs": []byte("1"), "mine": []byte("1")}})
	calls := 0
	err := store.Update(t.Context(), db, func(tx *store.Txn) error {
		calls++
		theirs, ok, err := store.Peek[int](tx, "theirs")
		if err != nil || !ok {
			t.Errorf("peek: %v, %v", ok, err)
		}
		if calls == 1 {
			mustCommit(t, db, store.Batch{Put: put("theirs", "2")})
		}
		return store.Put(tx, "mine", theirs+10)
	})
	if n, _ := read[int](t, db, "mine"); err != nil || calls != 1 || n != 11 {
		t.Errorf("after %d calls: %d, %v", calls, n, err)
	}

	// A Get after the Peek guards what the Peek has seen.
	calls = 0
	err = store.Update(t.Context(), db, func(tx *store.Txn) error {
		calls++
		if _, _, err := store.Peek[int](tx, "theirs"); err != nil {
			return err
		}
		if calls == 1 {
			mustCommit(t, db, store.Batch{Put: put("theirs", "3")})
		}
		return increment(tx, "theirs")
	})
	if n, _ := read[int](t, db, "theirs"); err != nil || calls != 2 || n != 4 {
		t.Errorf("after %d calls: %d, %v", calls, n, err)
	}
}
