package store_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"drawbridge/internal/store"
)

// scripted answers commits from a list and keeps the batches. Reading finds the same document under every key.
type scripted struct {
	store.DB // what is not scripted must not be called
	doc      store.Doc
	answers  []error
	batches  []store.Batch
	reads    [][]string
}

func (s *scripted) Read(_ context.Context, keys ...string) (time.Time, []store.Doc, error) {
	s.reads = append(s.reads, keys)
	docs := make([]store.Doc, len(keys))
	for i := range docs {
		docs[i] = s.doc
	}
	return time.Now(), docs, nil
}

func (s *scripted) Commit(_ context.Context, b store.Batch) error {
	s.batches = append(s.batches, b)
	if len(s.answers) == 0 {
		return nil
	}
	err := s.answers[0]
	s.answers = s.answers[1:]
	return err
}

func TestLastWordOnAKeyOrMemberCounts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		do   func(tx *store.Txn)
		want store.Batch
	}{
		"put after delete": {
			func(tx *store.Txn) { tx.Delete("k"); tx.PutBytes("k", []byte("1")) },
			store.Batch{Put: map[string][]byte{"k": []byte("1")}},
		},
		"delete after put": {
			func(tx *store.Txn) { tx.PutBytes("k", []byte("1")); tx.Delete("k"); tx.Delete("k") },
			store.Batch{Del: []string{"k"}},
		},
		"two puts": {
			func(tx *store.Txn) { tx.PutBytes("k", []byte("1")); tx.PutBytes("k", []byte("2")) },
			store.Batch{Put: map[string][]byte{"k": []byte("2")}},
		},
		"put of nothing": {
			func(tx *store.Txn) { tx.PutBytes("k", nil) },
			store.Batch{Put: map[string][]byte{"k": {}}},
		},
		"add after drop": {
			func(tx *store.Txn) { tx.Drop("i", "m"); tx.Add("i", "m", 1) },
			store.Batch{Add: []store.Item{{Index: "i", Member: "m", Score: 1}}},
		},
		"drop after add": {
			func(tx *store.Txn) { tx.Add("i", "m", 1); tx.Drop("i", "m") },
			store.Batch{Drop: []store.Item{{Index: "i", Member: "m"}}},
		},
		"two adds, and others stay": {
			func(tx *store.Txn) {
				tx.Add("i", "m", 1)
				tx.Add("i", "n", 1)
				tx.Add("j", "m", 3)
				tx.Add("i", "m", 2)
			},
			store.Batch{Add: []store.Item{{Index: "i", Member: "m", Score: 2}, {Index: "i", Member: "n", Score: 1}, {Index: "j", Member: "m", Score: 3}}},
		},
		"hints keep their order": {
			func(tx *store.Txn) { tx.Publish("b", []byte("1")); tx.Publish("a", nil); tx.Publish("b", []byte("1")) },
			store.Batch{Publish: []store.Message{{Topic: "b", Body: []byte("1")}, {Topic: "a"}, {Topic: "b", Body: []byte("1")}}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := &scripted{}
			if err := store.Update(t.Context(), db, func(tx *store.Txn) error { c.do(tx); return nil }); err != nil {
				t.Fatal(err)
			}
			if len(db.batches) != 1 {
				t.Fatalf("%d commits", len(db.batches))
			}
			got := db.batches[0]
			if got.Rev == "" {
				t.Error("the batch has no revision")
			}
			got.Rev = ""
			c.want.Guard = map[string]store.Rev{}
			if c.want.Put == nil {
				c.want.Put = map[string][]byte{}
			}
			if !reflect.DeepEqual(got, c.want) {
				t.Errorf("got %+v\nwant %+v", got, c.want)
			}
		})
	}
}

func TestGetGuardsAndPeekDoesNot(t *testing.T) {
	t.Parallel()
	db := &scripted{doc: store.Doc{Rev: "r", Value: []byte("1")}}
	err := store.Update(t.Context(), db, func(tx *store.Txn) error {
		tx.Delete("deleted before it was read")
		_, _, e1 := store.Get[int](tx, "got")
		_, _, e2 := store.Peek[int](tx, "peeked")
		_, _, e3 := store.Peek[int](tx, "both")
		_, _, e4 := store.Get[int](tx, "both")
		_, ok, e5 := store.Get[int](tx, "deleted before it was read")
		if ok {
			t.Error("a deleted document was found")
		}
		return errors.Join(e1, e2, e3, e4, e5, tx.Load("loaded", "got"))
	})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]store.Rev{"got": "r", "both": "r", "loaded": "r", "deleted before it was read": "r"}
	if got := db.batches[0].Guard; !reflect.DeepEqual(got, want) {
		t.Errorf("guards %v, want %v", got, want)
	}
	wantReads := [][]string{{"got"}, {"peeked"}, {"both"}, {"deleted before it was read"}, {"loaded"}}
	if !reflect.DeepEqual(db.reads, wantReads) {
		t.Errorf("reads %q, want %q", db.reads, wantReads)
	}
}

func TestUpdateWithoutChangeSendsNothing(t *testing.T) {
	t.Parallel()
	db := &scripted{}
	err := store.Update(t.Context(), db, func(tx *store.Txn) error {
		_, _, err := store.Get[int](tx, "k")
		return err
	})
	if err != nil || len(db.batches) != 0 {
		t.Errorf("%v, %d commits", err, len(db.batches))
	}
}

func TestUpdateReportsWhatCanNotBeDecoded(t *testing.T) {
	t.Parallel()
	db := &scripted{doc: store.Doc{Rev: "r", Value: []byte("{")}}
	err := store.Update(t.Context(), db, func(tx *store.Txn) error {
		_, _, err := store.Get[int](tx, "the key")
		return err
	})
	if want := "store: damaged document: the key: unexpected end of JSON input"; !errors.Is(err, store.ErrDamaged) || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// TestUpdateAfterNoAnswer runs in a bubble because of the pauses between repeats.
func TestUpdateAfterNoAnswer(t *testing.T) {
	t.Parallel()
	unanswered := fmt.Errorf("engine: %w", store.ErrUnavailable)
	five := []error{unanswered, unanswered, unanswered, unanswered, unanswered}
	for name, c := range map[string]struct {
		answers  []error
		want     error // by errors.Is
		commits  int
		attempts int
	}{
		"answered at the third time": {[]error{unanswered, unanswered, nil}, nil, 3, 1},
		"conflict, then no answer":   {[]error{store.ErrConflict, unanswered, nil}, nil, 3, 2},
		"never":                      {five, store.ErrUnavailable, 5, 1},
		// The first commit may have happened and somebody may have built upon it: deciding again would act twice.
		"conflict at the repeat": {[]error{unanswered, store.ErrConflict}, store.ErrUnavailable, 2, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				db := &scripted{answers: c.answers}
				attempts := 0
				err := store.Update(t.Context(), db, func(tx *store.Txn) error {
					attempts++
					return store.Put(tx, "k", 1)
				})
				if !errors.Is(err, c.want) || errors.Is(err, store.ErrConflict) {
					t.Errorf("got %v, want %v", err, c.want)
				}
				if len(db.batches) != c.commits || attempts != c.attempts {
					t.Errorf("%d commits and %d attempts, want %d and %d", len(db.batches), attempts, c.commits, c.attempts)
				}
				revs := map[store.Rev]bool{}
				for _, b := range db.batches {
					revs[b.Rev] = true
				}
				if len(revs) != c.attempts {
					t.Errorf("%d revisions for %d attempts", len(revs), c.attempts)
				}
			})
		})
	}
}

func TestUpdateGivesUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := &scripted{}
		for range 1000 {
			db.answers = append(db.answers, store.ErrConflict)
		}
		err := store.Update(t.Context(), db, func(tx *store.Txn) error { return store.Put(tx, "k", 1) })
		if !errors.Is(err, store.ErrConflict) || len(db.batches) != 50 {
			t.Errorf("after %d commits: %v", len(db.batches), err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		err = store.Update(ctx, db, func(tx *store.Txn) error { <-time.After(time.Millisecond); return store.Put(tx, "k", 1) })
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("with an ended context: %v", err)
		}
	})
}
