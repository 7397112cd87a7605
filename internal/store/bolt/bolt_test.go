package bolt_test

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"drawbridge/internal/store"
	"drawbridge/internal/store/bolt"
)

func open(t *testing.T, path string, o bolt.Options) *bolt.DB {
	t.Helper()
	db, err := bolt.Open(path, o)
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

func TestFileIsPrivateAndLocked(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "data", "store.db")
	open(t, path, bolt.Options{})
	for p, want := range map[string]os.FileMode{path: 0o600, filepath.Dir(path): 0o700} {
		fi, err := os.Stat(p)
		if err != nil {
			t.Fatal(err)
		}
		if got := fi.Mode().Perm(); got != want {
			t.Errorf("%s has mode %o, want %o", p, got, want)
		}
	}
	if _, err := bolt.Open(path, bolt.Options{}); !errors.Is(err, bolt.ErrLocked) {
		t.Errorf("second Open: %v, want ErrLocked", err)
	} else if want := "bolt: open " + path + ": another process has it open"; err.Error() != want {
		t.Errorf("second Open: %q, want %q", err, want)
	}
}

func TestTimeNeverGoesBackwards(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	wall := time.Date(2030, 1, 1, 12, 0, 0, 123456789, time.UTC)
	set := func(d time.Duration) { mu.Lock(); wall = wall.Add(d); mu.Unlock() }
	o := bolt.Options{Now: func() time.Time { mu.Lock(); defer mu.Unlock(); return wall }}
	path := filepath.Join(t.TempDir(), "store.db")
	db := open(t, path, o)
	start := wall.Truncate(time.Microsecond)
	check := func(step string, want time.Duration) {
		t.Helper()
		now, _, err := db.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got := now.Sub(start); got != want {
			t.Errorf("%s: the store's time is at %v, want %v", step, got, want)
		}
	}
	check("start", 0)
	set(time.Second)
	check("a second on", time.Second)
	set(-time.Hour)
	check("the clock was set back", time.Second)
	set(2 * time.Second)
	check("it goes on from there", 3*time.Second)
	if err := db.Commit(t.Context(), store.Batch{Put: map[string][]byte{"a": nil}}); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	db = open(t, path, o)
	check("after a restart", 3*time.Second)
	set(time.Second)
	check("and on", 4*time.Second)
	set(2 * time.Hour)
	check("the clock is right again", time.Hour+4*time.Second)
}

// TestInBubble shows that long deadlines can be tested on the embedded engine in a synctest bubble: the store's time is
// the bubble's, and waiting for a hint blocks durably.
func TestInBubble(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "store.db")
	synctest.Test(t, func(t *testing.T) {
		db := open(t, path, bolt.Options{})
		ch, err := db.Listen(t.Context(), "topic")
		if err != nil {
			t.Fatal(err)
		}
		before, _, err := db.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			<-time.After(7 * 24 * time.Hour)
			b := store.Batch{Put: map[string][]byte{"a": []byte("1")}, Publish: []store.Message{{Topic: "topic"}}}
			if err := db.Commit(t.Context(), b); err != nil {
				t.Error(err)
			}
		}()
		<-ch
		after, docs, err := db.Read(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		if after.Sub(before) != 7*24*time.Hour || string(docs[0].Value) != "1" {
			t.Errorf("read %q after %v", docs[0].Value, after.Sub(before))
		}
	})
}
