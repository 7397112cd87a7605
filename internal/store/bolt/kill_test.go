package bolt_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"drawbridge/internal/store"
	"drawbridge/internal/store/bolt"
)

// writerEnv names the file that this program writes to in place of running tests.
const writerEnv = "DRAWBRIDGE_TEST_BOLT_WRITER"

// writers is how many goroutines of the child commit at once, so that groups of commits are cut as well.
const writers = 3

func TestMain(m *testing.M) {
	if path := os.Getenv(writerEnv); path != "" {
		fmt.Fprintln(os.Stderr, write(path))
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

// write commits until it is killed, and prints writer and number of every commit that was acknowledged.
func write(path string) error {
	db, err := bolt.Open(path, bolt.Options{})
	if err != nil {
		return err
	}
	go func() { // a parent that died closes the pipe
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(1)
	}()
	failed := make(chan error, writers)
	for w := range writers {
		go func() {
			for {
				n := 0
				err := store.Update(context.Background(), db, func(tx *store.Txn) (err error) {
					if n, _, err = store.Get[int](tx, last(w)); err != nil {
						return err
					}
					n++
					for _, half := range []string{"left", "right"} {
						tx.PutBytes(entry(w, n, half), bytes.Repeat([]byte{byte(n)}, 3000))
					}
					tx.Add("entries", fmt.Sprintf("%d/%d", w, n), int64(n))
					return store.Put(tx, last(w), n)
				})
				if err == nil {
					_, err = fmt.Printf("%d %d\n", w, n)
				}
				if err != nil {
					failed <- err
					return
				}
			}
		}()
	}
	return <-failed
}

func last(w int) string                   { return fmt.Sprintf("last/%d", w) }
func entry(w, n int, which string) string { return fmt.Sprintf("entry/%d/%d/%s", w, n, which) }

// TestKilledWriterLosesNothing kills a process with SIGKILL at random moments, again and again on one file. Whatever it had
// been told was committed is there, and no batch is there in part.
func TestKilledWriterLosesNothing(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "store.db")
	acked := make([]int, writers)
	total := 0
	for round := range 25 {
		total += runWriter(t, path, acked, 1+rand.IntN(60))
		db, err := bolt.Open(path, bolt.Options{})
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		checkEntries(t, db, acked)
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		if t.Failed() {
			t.Fatalf("in round %d", round)
		}
	}
	t.Logf("%d commits were acknowledged", total)
}

// runWriter kills the child after that many acknowledgements, notes the last ones of each writer, and returns how many
// came in all.
func runWriter(t *testing.T, path string, acked []int, after int) int {
	t.Helper()
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), writerEnv+"="+path)
	var complaints bytes.Buffer
	child.Stderr = &complaints
	stdin, inErr := child.StdinPipe()
	stdout, outErr := child.StdoutPipe()
	if err := errors.Join(inErr, outErr, child.Start()); err != nil {
		t.Fatal(err)
	}
	count := 0
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		var w, n int
		if _, err := fmt.Sscanf(lines.Text(), "%d %d", &w, &n); err != nil {
			t.Errorf("the child says %q", lines.Text())
			continue
		}
		acked[w] = n
		if count++; count == after {
			if err := child.Process.Kill(); err != nil {
				t.Error(err)
			}
		}
	}
	_ = stdin.Close()
	_ = child.Wait() // that it was killed
	if count < after {
		t.Fatalf("the child ended by itself after %d commits: %s", count, complaints.String())
	}
	return count
}

func checkEntries(t *testing.T, db store.DB, acked []int) {
	t.Helper()
	items, err := db.Range(t.Context(), "entries", math.MinInt64, math.MaxInt64, 0)
	if err != nil {
		t.Fatal(err)
	}
	indexed := map[string]bool{}
	for _, i := range items {
		indexed[i.Member] = true
	}
	found := 0
	for w, known := range acked {
		stored := 0
		err := store.Update(t.Context(), db, func(tx *store.Txn) (err error) {
			stored, _, err = store.Get[int](tx, last(w))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		// The one commit that was under way may have happened without the word getting out.
		if stored < known || stored > known+1 {
			t.Errorf("writer %d: %d was acknowledged, %d is stored", w, known, stored)
		}
		acked[w] = stored
		var keys []string
		for n := 1; n <= stored; n++ {
			keys = append(keys, entry(w, n, "left"), entry(w, n, "right"))
		}
		// Of what was never committed nothing may be there.
		keys = append(keys, entry(w, stored+1, "left"), entry(w, stored+1, "right"))
		_, docs, err := db.Read(t.Context(), keys...)
		if err != nil {
			t.Fatal(err)
		}
		for n := 1; n <= stored; n++ {
			want := bytes.Repeat([]byte{byte(n)}, 3000)
			left, right := docs[2*n-2], docs[2*n-1]
			if !bytes.Equal(left.Value, want) || !bytes.Equal(right.Value, want) || left.Rev != right.Rev || !indexed[fmt.Sprintf("%d/%d", w, n)] {
				t.Errorf("writer %d: batch %d is torn", w, n)
			}
			found++
		}
		if docs[2*stored].Rev != "" || docs[2*stored+1].Rev != "" {
			t.Errorf("writer %d: batch %d is there in part", w, stored+1)
		}
	}
	if found != len(items) {
		t.Errorf("%d entries in the index, %d documents", len(items), found)
	}
}
