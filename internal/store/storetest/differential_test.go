package storetest_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"drawbridge/internal/store"
	"drawbridge/internal/store/bolt"
	"drawbridge/internal/store/redis"
	"drawbridge/internal/store/storetest"
)

// TestBoltAndRedisAgree runs random operations on both engines and compares every result, and at the end everything
// that is stored. Few names and scores make them meet; revisions are chosen by the test, so that they are equal as well.
func TestBoltAndRedisAgree(t *testing.T) {
	t.Parallel()
	server := storetest.StartRedis(t, storetest.RedisOptions{})
	var prefixes atomic.Int64
	operations := 0
	rapid.Check(t, func(rt *rapid.T) {
		b, boltErr := bolt.Open(filepath.Join(t.TempDir(), "store.db"), bolt.Options{})
		r, redisErr := redis.Open(t.Context(), server.URL(), redis.Options{Prefix: fmt.Sprintf("db:{%d}:", prefixes.Add(1))})
		if err := errors.Join(boltErr, redisErr); err != nil {
			rt.Fatal(err)
		}
		defer func() {
			if err := errors.Join(b.Close(), r.Close()); err != nil {
				rt.Error(err)
			}
		}()
		p := &pair{t: rt, bolt: b, redis: r, revs: []store.Rev{""}}
		for range rapid.IntRange(30, 90).Draw(rt, "operations") {
			rapid.OneOf(
				rapid.Just(p.commit), rapid.Just(p.commit), rapid.Just(p.retry), rapid.Just(p.read), rapid.Just(p.scan), rapid.Just(p.update),
			).Draw(rt, "operation")()
			operations++
		}
		p.compareAll()
	})
	if operations < 3000 {
		t.Errorf("only %d operations were tried", operations)
	}
}

var (
	docNames    = []string{"a", "b", "a:b", "g:\x00", "to:h1:\xff", "{x}"}
	indexNames  = []string{"i", "ij", "from:h1:\x00", "i\xff"}
	memberNames = []string{"m", "mm", "M", "\x00", "\xff\xff", "jm"}
	scores      = []int64{math.MinInt64, -store.MaxScore - 1, -store.MaxScore, -1, 0, 1, 2, 1 << 52, store.MaxScore - 1, store.MaxScore, store.MaxScore + 1, math.MaxInt64}
)

// pair is one state, kept by both engines.
type pair struct {
	t           *rapid.T
	bolt, redis store.DB
	revs        []store.Rev // used so far
	last        store.Batch
}

func (p *pair) name(of []string, label string) string { return rapid.SampledFrom(of).Draw(p.t, label) }

func (p *pair) value() []byte {
	return rapid.OneOf(
		rapid.SliceOfN(rapid.Byte(), 0, 40),
		rapid.Custom(func(t *rapid.T) []byte { return fmt.Appendf(nil, "%d", rapid.IntRange(0, 9).Draw(t, "number")) }),
	).Draw(p.t, "value")
}

func (p *pair) commit() {
	b := store.Batch{Rev: store.Rev(fmt.Sprintf("r%d", len(p.revs))), Guard: map[string]store.Rev{}, Put: map[string][]byte{}}
	p.revs = append(p.revs, b.Rev)
	for range rapid.IntRange(0, 2).Draw(p.t, "guards") {
		k := p.name(docNames, "guarded")
		_, docs, err := p.bolt.Read(p.t.Context(), k)
		if err != nil {
			p.t.Fatal(err)
		}
		// Mostly the revision that stands there, else any that was ever used.
		b.Guard[k] = docs[0].Rev
		if rapid.IntRange(0, 3).Draw(p.t, "stale") == 0 {
			b.Guard[k] = rapid.SampledFrom(p.revs).Draw(p.t, "revision")
		}
	}
	for range rapid.IntRange(0, 3).Draw(p.t, "puts") {
		b.Put[p.name(docNames, "put")] = p.value()
	}
	for range rapid.IntRange(0, 2).Draw(p.t, "deletions") {
		b.Del = append(b.Del, p.name(docNames, "delete"))
	}
	for range rapid.IntRange(0, 4).Draw(p.t, "adds") {
		b.Add = append(b.Add, store.Item{
			Index: p.name(indexNames, "index"), Member: p.name(memberNames, "member"), Score: rapid.SampledFrom(scores[2:10]).Draw(p.t, "score"),
		})
	}
	for range rapid.IntRange(0, 2).Draw(p.t, "drops") {
		b.Drop = append(b.Drop, store.Item{Index: p.name(indexNames, "index"), Member: p.name(memberNames, "member")})
	}
	if rapid.IntRange(0, 40).Draw(p.t, "invalid") == 0 {
		b.Add = append(b.Add, store.Item{Index: "i", Member: "m", Score: rapid.SampledFrom([]int64{scores[0], scores[10]}).Draw(p.t, "score")})
	}
	p.send(b)
	p.last = b
}

func (p *pair) retry() { p.send(p.last) }

func (p *pair) send(b store.Batch) {
	p.same("commit", p.bolt.Commit(p.t.Context(), b), p.redis.Commit(p.t.Context(), b))
}

// same compares outcomes by the sentinels of the seam, which is all that callers may look at.
func (p *pair) same(what string, boltErr, redisErr error) {
	for _, sentinel := range []error{store.ErrConflict, store.ErrInvalid} {
		if errors.Is(boltErr, sentinel) != errors.Is(redisErr, sentinel) {
			p.t.Fatalf("%s: bolt says %v, redis says %v", what, boltErr, redisErr)
		}
		if errors.Is(boltErr, sentinel) {
			return
		}
	}
	if boltErr != nil || redisErr != nil {
		p.t.Fatalf("%s: bolt says %v, redis says %v", what, boltErr, redisErr)
	}
}

func (p *pair) read() {
	p.compareDocs(rapid.SliceOfN(rapid.SampledFrom(docNames), 0, 4).Draw(p.t, "keys")...)
}

func (p *pair) scan() {
	index := p.name(indexNames, "index")
	lo, hi := rapid.SampledFrom(scores).Draw(p.t, "min"), rapid.SampledFrom(scores).Draw(p.t, "max")
	p.compareRange(index, lo, hi, rapid.IntRange(-1, 4).Draw(p.t, "limit"))
}

// update runs one Txn on both, without a document, as the revision that Update chooses would differ.
func (p *pair) update() {
	key, index, member := p.name(docNames, "key"), p.name(indexNames, "index"), p.name(memberNames, "member")
	drop := rapid.Bool().Draw(p.t, "drop")
	run := func(db store.DB) (seen []byte) {
		err := store.Update(p.t.Context(), db, func(tx *store.Txn) error {
			if err := tx.Load(key); err != nil {
				return err
			}
			tx.Add(index, member, 1)
			if drop {
				tx.Drop(index, member)
			}
			items, err := tx.Range(index, 0, 5, 1)
			seen = fmt.Appendf(nil, "%v", items)
			return err
		})
		if err != nil {
			p.t.Fatalf("update: %v", err)
		}
		return seen
	}
	if b, r := run(p.bolt), run(p.redis); !bytes.Equal(b, r) {
		p.t.Fatalf("update: bolt saw %s, redis saw %s", b, r)
	}
}

func (p *pair) compareDocs(keys ...string) {
	_, b, err := p.bolt.Read(p.t.Context(), keys...)
	if err != nil {
		p.t.Fatal(err)
	}
	_, r, err := p.redis.Read(p.t.Context(), keys...)
	if err != nil {
		p.t.Fatal(err)
	}
	for i, k := range keys {
		if b[i].Rev != r[i].Rev || !bytes.Equal(b[i].Value, r[i].Value) || (b[i].Value == nil) != (r[i].Value == nil) {
			p.t.Fatalf("%q: bolt has %+v, redis has %+v", k, b[i], r[i])
		}
	}
}

func (p *pair) compareRange(index string, lo, hi int64, limit int) {
	b, err := p.bolt.Range(p.t.Context(), index, lo, hi, limit)
	if err != nil {
		p.t.Fatal(err)
	}
	r, err := p.redis.Range(p.t.Context(), index, lo, hi, limit)
	if err != nil {
		p.t.Fatal(err)
	}
	if !slices.Equal(b, r) {
		p.t.Fatalf("range of %q from %d to %d, limit %d: bolt has %v, redis has %v", index, lo, hi, limit, b, r)
	}
}

func (p *pair) compareAll() {
	p.compareDocs(docNames...)
	for _, i := range indexNames {
		p.compareRange(i, math.MinInt64, math.MaxInt64, 0)
	}
}
