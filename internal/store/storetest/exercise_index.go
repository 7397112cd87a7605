package storetest

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"drawbridge/internal/store"
)

// wantRange compares a range with "member=score" each.
func wantRange(t *testing.T, db store.DB, index string, min, max int64, limit int, want ...string) {
	t.Helper()
	items, err := db.Range(t.Context(), index, min, max, limit)
	if err != nil {
		t.Fatalf("range: %v", err)
	}
	var got []string
	for _, i := range items {
		if i.Index != index {
			t.Errorf("an item of %q says it is of %q", index, i.Index)
		}
		got = append(got, fmt.Sprintf("%s=%d", i.Member, i.Score))
	}
	if !slices.Equal(got, want) {
		t.Errorf("range of %s from %d to %d, limit %d: got %q, want %q", index, min, max, limit, got, want)
	}
}

func testRange(t *testing.T, db store.DB) {
	const top, low = store.MaxScore, -store.MaxScore
	const micros = 1_893_456_000_123_456 // a time in 2030: every microsecond counts
	mustCommit(t, db, store.Batch{Add: []store.Item{
		{Index: "i", Member: "b", Score: 5},
		{Index: "i", Member: "a", Score: 5},
		{Index: "i", Member: "B", Score: 5},
		{Index: "i", Member: "ab", Score: 5},
		{Index: "i", Member: "minus", Score: -7},
		{Index: "i", Member: "zero", Score: 0},
		{Index: "i", Member: "t", Score: micros},
		{Index: "i", Member: "t+1", Score: micros + 1},
		{Index: "i", Member: "top", Score: top},
		{Index: "i", Member: "top-1", Score: top - 1},
		{Index: "i", Member: "low", Score: low},
	}})
	all := []string{
		"low=-9007199254740992", "minus=-7", "zero=0", "B=5", "a=5", "ab=5", "b=5", "t=1893456000123456", "t+1=1893456000123457",
		"top-1=9007199254740991", "top=9007199254740992",
	}
	for _, c := range []struct {
		min, max int64
		limit    int
		want     []string
	}{
		{math.MinInt64, math.MaxInt64, 0, all},
		{math.MinInt64, math.MaxInt64, -1, all},
		{math.MinInt64, math.MaxInt64, 100, all},
		{low, top, 0, all},
		{low - 1, top + 1, 0, all},
		{math.MinInt64, math.MaxInt64, 5, all[:5]},
		{math.MinInt64, math.MaxInt64, 1, all[:1]},
		{low + 1, 5, 0, all[1:7]},
		{5, 5, 2, all[3:5]},
		{6, micros, 0, all[7:8]},
		{micros + 1, top - 1, 0, all[8:10]},
		{-7, -1, 0, all[1:2]},
		{1, 4, 0, nil},
		{5, 4, 0, nil},
		{top + 1, math.MaxInt64, 0, nil},
		{math.MinInt64, low - 1, 0, nil},
	} {
		wantRange(t, db, "i", c.min, c.max, c.limit, c.want...)
	}
	wantRange(t, db, "nothing", math.MinInt64, math.MaxInt64, 0)
}

func testMembersMove(t *testing.T, db store.DB) {
	add := func(member string, score int64) {
		mustCommit(t, db, store.Batch{Add: []store.Item{{Index: "i", Member: member, Score: score}}})
	}
	add("a", 1)
	add("b", 2)
	add("a", 3)
	wantRange(t, db, "i", 0, 9, 0, "b=2", "a=3")
	add("a", 3)
	add("b", -2)
	wantRange(t, db, "i", -9, 9, 0, "b=-2", "a=3")
	mustCommit(t, db, store.Batch{Drop: []store.Item{{Index: "i", Member: "a", Score: 99}, {Index: "i", Member: "never there"}}})
	wantRange(t, db, "i", -9, 9, 0, "b=-2")
	mustCommit(t, db, store.Batch{Drop: []store.Item{{Index: "i", Member: "b"}}})
	wantRange(t, db, "i", -9, 9, 0)
	add("a", 1)
	wantRange(t, db, "i", -9, 9, 0, "a=1")
}

// testIndexesApart has names that run into each other when they are simply joined.
func testIndexesApart(t *testing.T, db store.DB) {
	mustCommit(t, db, store.Batch{Add: []store.Item{
		{Index: "a", Member: "bc", Score: 1},
		{Index: "ab", Member: "c", Score: 1},
		{Index: "abc", Member: "\x00", Score: 1},
		{Index: "a\x00", Member: "c", Score: 1},
	}})
	mustCommit(t, db, store.Batch{Drop: []store.Item{{Index: "ab", Member: "c"}, {Index: "a", Member: "c"}}})
	wantRange(t, db, "a", -9, 9, 0, "bc=1")
	wantRange(t, db, "ab", -9, 9, 0)
	wantRange(t, db, "abc", -9, 9, 0, "\x00=1")
	wantRange(t, db, "a\x00", -9, 9, 0, "c=1")
}
