package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"drawbridge/internal/store"
)

// Open returns an engine with nothing in it, which the test closes if it is not closed by then.
type Open func(t testing.TB) store.DB

// Exercise is the suite that every engine passes. Each of its tests opens a store of its own.
func Exercise(t *testing.T, open Open) {
	for name, test := range map[string]func(t *testing.T, db store.DB){
		"Guards":                  testGuards,
		"GuardAlone":              testGuardAlone,
		"ConflictChangesNothing":  testConflictChangesNothing,
		"RetryRecognisesItself":   testRetry,
		"OneWinner":               testOneWinner,
		"BatchesAreNeverTorn":     testNeverTorn,
		"BytesOfAnyKind":          testBytes,
		"ManyKeys":                testManyKeys,
		"TheSameKeyTwice":         testSameKey,
		"InvalidBatches":          testInvalid,
		"Time":                    testTime,
		"RangeOrderAndBounds":     testRange,
		"MembersMove":             testMembersMove,
		"IndexesAreApart":         testIndexesApart,
		"UpdateUnderContention":   testUpdateContention,
		"UpdateRepeatsOnConflict": testUpdateRepeats,
		"LastWordCounts":          testLastWord,
		"PeekDoesNotGuard":        testPeek,
		"PublishAndListen":        testPublish,
		"PublishOnlyAfterCommit":  testPublishAfterCommit,
		"SlowListener":            testSlowListener,
		"ListenersLeave":          testListenersLeave,
		"ListenIsConfirmed":       testListenConfirmed,
		"EndedContext":            testEndedContext,
		"Close":                   testClose,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open(t))
		})
	}
}

func mustCommit(t *testing.T, db store.DB, b store.Batch) {
	t.Helper()
	if err := db.Commit(t.Context(), b); err != nil {
		t.Fatalf("commit: %v", err)
	}
}

func mustRead(t *testing.T, db store.DB, keys ...string) []store.Doc {
	t.Helper()
	_, docs, err := db.Read(t.Context(), keys...)
	if err != nil {
		t.Fatalf("read: %v", err)
	}
	if len(docs) != len(keys) {
		t.Fatalf("read %d documents for %d keys", len(docs), len(keys))
	}
	return docs
}

func wantConflict(t *testing.T, err error) {
	t.Helper()
	if !errors.Is(err, store.ErrConflict) {
		t.Fatalf("got %v, want a conflict", err)
	}
}

func put(key, value string) map[string][]byte { return map[string][]byte{key: []byte(value)} }

func testGuards(t *testing.T, db store.DB) {
	absent := store.Batch{Guard: map[string]store.Rev{"a": ""}, Put: put("a", "1")}
	mustCommit(t, db, absent)
	wantConflict(t, db.Commit(t.Context(), absent))

	first := mustRead(t, db, "a")[0]
	if string(first.Value) != "1" || first.Rev == "" {
		t.Fatalf("read %+v", first)
	}
	next := store.Batch{Rev: "second", Guard: map[string]store.Rev{"a": first.Rev}, Put: put("a", "2")}
	mustCommit(t, db, next)
	if d := mustRead(t, db, "a")[0]; string(d.Value) != "2" || d.Rev != "second" {
		t.Errorf("read %+v", d)
	}
	wantConflict(t, db.Commit(t.Context(), store.Batch{Guard: map[string]store.Rev{"a": first.Rev}, Put: put("a", "3")}))
	wantConflict(t, db.Commit(t.Context(), store.Batch{Guard: map[string]store.Rev{"b": "second"}, Put: put("b", "3")}))

	mustCommit(t, db, store.Batch{Guard: map[string]store.Rev{"a": "second"}, Del: []string{"a"}})
	if d := mustRead(t, db, "a")[0]; d.Rev != "" || d.Value != nil {
		t.Errorf("a deleted document reads %+v", d)
	}
	mustCommit(t, db, absent)
	if d := mustRead(t, db, "a")[0]; d.Rev == first.Rev || d.Rev == "second" {
		t.Errorf("revision %q came back", d.Rev)
	}
	mustCommit(t, db, store.Batch{Del: []string{"never there"}})
}

func testGuardAlone(t *testing.T, db store.DB) {
	mustCommit(t, db, store.Batch{Rev: "r", Put: put("a", "1")})
	mustCommit(t, db, store.Batch{Guard: map[string]store.Rev{"a": "r", "b": ""}})
	wantConflict(t, db.Commit(t.Context(), store.Batch{Guard: map[string]store.Rev{"a": "r", "b": "r"}}))
	mustCommit(t, db, store.Batch{})
}

func testConflictChangesNothing(t *testing.T, db store.DB) {
	mustCommit(t, db, store.Batch{
		Put: map[string][]byte{"a": []byte("1"), "b": []byte("1")},
		Add: []store.Item{{Index: "i", Member: "old", Score: 1}},
	})
	before := mustRead(t, db, "a", "b", "c")
	wantConflict(t, db.Commit(t.Context(), store.Batch{
		Guard: map[string]store.Rev{"b": "", "a": before[0].Rev},
		Put:   map[string][]byte{"a": []byte("2"), "c": []byte("2")},
		Del:   []string{"b"},
		Add:   []store.Item{{Index: "i", Member: "new", Score: 1}},
		Drop:  []store.Item{{Index: "i", Member: "old"}},
	}))
	after := mustRead(t, db, "a", "b", "c")
	for i := range before {
		if before[i].Rev != after[i].Rev || !bytes.Equal(before[i].Value, after[i].Value) {
			t.Errorf("document %d became %+v", i, after[i])
		}
	}
	wantRange(t, db, "i", math.MinInt64, math.MaxInt64, 0, "old=1")
}

func testRetry(t *testing.T, db store.DB) {
	b := store.Batch{
		Rev: "mine", Guard: map[string]store.Rev{"a": "", "b": ""},
		Put: map[string][]byte{"a": []byte("1"), "b": []byte("1")},
		Add: []store.Item{{Index: "i", Member: "m", Score: 1}},
	}
	mustCommit(t, db, b)
	mustCommit(t, db, b)

	// Somebody built upon it: the retry must not undo that.
	mustCommit(t, db, store.Batch{
		Rev: "theirs", Guard: map[string]store.Rev{"a": "mine"}, Put: put("a", "2"),
		Drop: []store.Item{{Index: "i", Member: "m"}},
	})
	mustCommit(t, db, b)
	if docs := mustRead(t, db, "a", "b"); string(docs[0].Value) != "2" || docs[1].Rev != "mine" {
		t.Errorf("after the retry: %+v", docs)
	}
	wantRange(t, db, "i", math.MinInt64, math.MaxInt64, 0)

	// Without its revision it is a batch like any other, and its guard fails.
	b.Rev = ""
	wantConflict(t, db.Commit(t.Context(), b))
}

func testOneWinner(t *testing.T, db store.DB) {
	for round := range 30 {
		key := fmt.Sprintf("key %d", round)
		var mu sync.Mutex
		var winners []string
		var all sync.WaitGroup
		for i := range 8 {
			all.Go(func() {
				me := fmt.Sprint(i)
				err := db.Commit(t.Context(), store.Batch{Guard: map[string]store.Rev{key: ""}, Put: put(key, me)})
				if err == nil {
					mu.Lock()
					winners = append(winners, me)
					mu.Unlock()
				} else if !errors.Is(err, store.ErrConflict) {
					t.Errorf("commit: %v", err)
				}
			})
		}
		all.Wait()
		if len(winners) != 1 || string(mustRead(t, db, key)[0].Value) != winners[0] {
			t.Fatalf("winners %q, stored %q", winners, mustRead(t, db, key)[0].Value)
		}
	}
}

// testNeverTorn lets writers set two documents and a score to one value each, while readers look for a difference.
func testNeverTorn(t *testing.T, db store.DB) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var readers, writers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			for ctx.Err() == nil {
				_, docs, err := db.Read(t.Context(), "a", "b")
				if err != nil {
					t.Errorf("read: %v", err)
					return
				}
				if !bytes.Equal(docs[0].Value, docs[1].Value) || docs[0].Rev != docs[1].Rev {
					t.Errorf("torn: %q and %q", docs[0].Value, docs[1].Value)
					return
				}
			}
		})
	}
	for w := range 4 {
		writers.Go(func() {
			for i := range 50 {
				v := []byte(fmt.Sprintf("%d/%d", w, i))
				b := store.Batch{
					Put: map[string][]byte{"a": v, "b": v},
					Add: []store.Item{{Index: "i", Member: fmt.Sprint(w), Score: int64(i)}},
				}
				if err := db.Commit(t.Context(), b); err != nil {
					t.Errorf("commit: %v", err)
				}
			}
		})
	}
	writers.Wait()
	cancel()
	readers.Wait()
	wantRange(t, db, "i", 0, 100, 0, "0=49", "1=49", "2=49", "3=49")
}

func testBytes(t *testing.T, db store.DB) {
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	values := map[string][]byte{
		"empty":                        {},
		"all bytes":                    all,
		string(all):                    []byte("all bytes as a key"),
		"\x00":                         []byte("zero"),
		"\xff\xfe":                     []byte("not UTF-8"),
		"big":                          bytes.Repeat([]byte("0123456789abcdef"), 1<<16), // 1 MiB
		strings.Repeat("k", 8<<10):     []byte("the longest key"),
		"{tag} of a key":               []byte("braces"),
		"g:chat:-100123:7":             []byte(`{"v":1}`),
		"\r\n$3\r\nfoo*1":              []byte("a Redis frame"),
		"trailing zero in a value":     []byte("a\x00"),
		"number of ending\x00\x00\x01": []byte("-0012345678901234567890"),
	}
	mustCommit(t, db, store.Batch{Rev: store.Rev(all), Put: values})
	for k, want := range values {
		d := mustRead(t, db, k)[0]
		if !bytes.Equal(d.Value, want) || d.Value == nil || d.Rev != store.Rev(all) {
			t.Errorf("%.20q: %d bytes, revision %.20q; want %d bytes", k, len(d.Value), d.Rev, len(want))
		}
	}
	mustCommit(t, db, store.Batch{Put: map[string][]byte{"nil": nil}})
	if d := mustRead(t, db, "nil")[0]; d.Rev == "" || d.Value == nil || len(d.Value) != 0 {
		t.Errorf("nil was stored as %+v", d)
	}
	mustCommit(t, db, store.Batch{
		Guard: map[string]store.Rev{string(all): store.Rev(all)},
		Del:   []string{string(all)},
		Add:   []store.Item{{Index: "i" + string(all), Member: string(all), Score: 1}, {Index: "i" + string(all), Member: "\x00", Score: 1}},
	})
	if d := mustRead(t, db, string(all))[0]; d.Rev != "" {
		t.Errorf("not deleted: %+v", d)
	}
	items, err := db.Range(t.Context(), "i"+string(all), 1, 1, 0)
	if err != nil || len(items) != 2 || items[0].Member != "\x00" || items[1].Member != string(all) || items[1].Index != "i"+string(all) {
		t.Errorf("range: %+v, %v", items, err)
	}
}

func testManyKeys(t *testing.T, db store.DB) {
	b := store.Batch{Put: map[string][]byte{}, Guard: map[string]store.Rev{}}
	var keys []string
	for i := range 5000 {
		k := fmt.Sprintf("doc/%05d", i)
		keys = append(keys, k)
		b.Put[k] = []byte(k)
		b.Guard[k] = ""
		b.Add = append(b.Add, store.Item{Index: "many", Member: k, Score: int64(-i)})
	}
	mustCommit(t, db, b)
	for i, d := range mustRead(t, db, keys...) {
		if string(d.Value) != keys[i] {
			t.Fatalf("%s holds %q", keys[i], d.Value)
		}
	}
	items, err := db.Range(t.Context(), "many", math.MinInt64, math.MaxInt64, 0)
	if err != nil || len(items) != len(keys) {
		t.Fatalf("range: %d items, %v", len(items), err)
	}
	if !slices.IsSortedFunc(items, func(a, b store.Item) int { return int(a.Score - b.Score) }) {
		t.Error("the items are not in order")
	}
}

func testSameKey(t *testing.T, db store.DB) {
	mustCommit(t, db, store.Batch{Rev: "r", Put: put("a", "1")})
	if docs := mustRead(t, db, "a", "b", "a"); docs[0].Rev != "r" || docs[1].Rev != "" || docs[2].Rev != "r" {
		t.Errorf("read %+v", docs)
	}
	mustCommit(t, db, store.Batch{Put: put("a", "2"), Del: []string{"a"}})
	if d := mustRead(t, db, "a")[0]; string(d.Value) != "2" {
		t.Errorf("Put does not win over Del: %+v", d)
	}
	m := store.Item{Index: "i", Member: "m"}
	mustCommit(t, db, store.Batch{Add: []store.Item{{Index: "i", Member: "m", Score: 1}, {Index: "i", Member: "m", Score: 2}}, Drop: []store.Item{m}})
	wantRange(t, db, "i", 0, 9, 0, "m=2")
}

func testInvalid(t *testing.T, db store.DB) {
	long := strings.Repeat("x", store.MaxName+1)
	for name, b := range map[string]store.Batch{
		"empty key":     {Put: put("", "v")},
		"long key":      {Put: put(long, "v")},
		"long guard":    {Guard: map[string]store.Rev{long: ""}},
		"empty delete":  {Del: []string{""}},
		"empty index":   {Add: []store.Item{{Member: "m"}}},
		"empty member":  {Add: []store.Item{{Index: "i"}}},
		"long member":   {Drop: []store.Item{{Index: "i", Member: long}}},
		"large score":   {Add: []store.Item{{Index: "i", Member: "m", Score: store.MaxScore + 1}}},
		"small score":   {Add: []store.Item{{Index: "i", Member: "m", Score: -store.MaxScore - 1}}},
		"empty topic":   {Publish: []store.Message{{}}},
		"long revision": {Rev: store.Rev(long), Put: put("a", "v")},
	} {
		if b.Put == nil {
			b.Put = put("other", "v")
		}
		if err := db.Commit(t.Context(), b); !errors.Is(err, store.ErrInvalid) {
			t.Errorf("%s: %v, want ErrInvalid", name, err)
		}
	}
	if d := mustRead(t, db, "other")[0]; d.Rev != "" {
		t.Error("an invalid batch was applied in part")
	}
	if err := db.Publish(t.Context(), "", nil); !errors.Is(err, store.ErrInvalid) {
		t.Errorf("publish without a topic: %v", err)
	}
}

func testTime(t *testing.T, db store.DB) {
	first, docs, err := db.Read(t.Context())
	if err != nil || len(docs) != 0 {
		t.Fatalf("reading nothing: %v, %v", docs, err)
	}
	if d := time.Since(first); d > time.Minute || d < -time.Minute {
		t.Errorf("the store's time is off by %v", d)
	}
	if !first.Equal(first.Truncate(time.Microsecond)) {
		t.Errorf("%v has more than microseconds", first)
	}
	for range 100 {
		next, _, err := db.Read(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		if next.Before(first) {
			t.Fatalf("the time went from %v to %v", first, next)
		}
		first = next
	}
}
