// Package storetest is for tests of the store and of what is built upon it: the suite that both engines pass (Exercise),
// a bbolt file (OpenBolt) and a real redis-server that a test can kill and restart (StartRedis).
//
// It guarantees that what it starts ends with the test. It talks to loopback only.
package storetest

import (
	"path/filepath"
	"testing"

	"drawbridge/internal/store"
	"drawbridge/internal/store/bolt"
)

// OpenBolt opens a fresh bbolt file that is closed and removed with the test. In a synctest bubble its time is the bubble's.
func OpenBolt(t testing.TB) store.DB {
	t.Helper()
	db, err := bolt.Open(filepath.Join(t.TempDir(), "store.db"), bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}
