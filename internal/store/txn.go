package store

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"time"
)

// maxAttempts bounds how often Update tries again after a conflict. Conflicts on one document come from a handful of
// processes; fifty in a row mean a bug, and an error is better than a busy loop.
const maxAttempts = 50

// repeatWaits are the pauses before a commit that was not answered is sent again. Together they are long enough for a
// redis-server that restarts at once, and short enough for a caller that has something to report.
var repeatWaits = [...]time.Duration{20 * time.Millisecond, 100 * time.Millisecond, 400 * time.Millisecond, 1500 * time.Millisecond}

// NewRev returns a fresh revision.
func NewRev() Rev { return Rev(rand.Text()) }

// Txn is one attempt of an Update: what was read (and is guarded), and what shall change. It is used by one goroutine.
type Txn struct {
	ctx     context.Context
	db      DB
	now     time.Time
	docs    map[string]Doc // as they were read
	guard   map[string]Rev
	changed map[string][]byte // nil: deleted
	items   map[place]standing
	publish []Message
}

// place is a member of an index, and standing what becomes of it.
type place struct{ index, member string }

type standing struct {
	score   int64
	dropped bool
}

// Update reads, decides and commits in one atomic step: it calls fn, commits what fn has put into the Txn, guarded by
// everything that fn has read with Get, and calls fn again on a fresh Txn when somebody else was faster. fn must have no effect
// but through the Txn, since it may run several times. An error from fn ends the Update and nothing is committed. If fn
// changes nothing, nothing is sent, and what it has read is not checked either.
//
// When the engine does not answer the commit, Update repeats it with the same revision for about two seconds, and then
// returns ErrUnavailable: the caller does not know the outcome and must read. It also returns ErrUnavailable when such a
// repeat meets a conflict, since the first one may have happened and somebody may have built upon it.
func Update(ctx context.Context, db DB, fn func(*Txn) error) error {
	for attempt := range maxAttempts {
		t := &Txn{
			ctx: ctx, db: db,
			docs: map[string]Doc{}, guard: map[string]Rev{}, changed: map[string][]byte{}, items: map[place]standing{},
		}
		if err := fn(t); err != nil {
			return err
		}
		err := t.commit()
		if !errors.Is(err, ErrConflict) {
			return err
		}
		if attempt > 2 { // jitter, so that many writers of one document do not march in step
			if err := pause(ctx, jitter(attempt)); err != nil {
				return err
			}
		}
	}
	return fmt.Errorf("store: update: gave up after %d attempts: %w", maxAttempts, ErrConflict)
}

func jitter(attempt int) time.Duration {
	n, err := rand.Int(rand.Reader, big.NewInt(int64(attempt)*int64(time.Millisecond)))
	if err != nil { // crypto/rand.Reader never fails since Go 1.24
		return time.Millisecond
	}
	return time.Duration(n.Int64())
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return fmt.Errorf("store: update: %w", context.Cause(ctx))
	case <-time.After(d):
		return nil
	}
}

func (t *Txn) commit() error {
	if len(t.changed) == 0 && len(t.items) == 0 && len(t.publish) == 0 {
		return nil
	}
	b := t.batch()
	err := t.db.Commit(t.ctx, b)
	for _, wait := range repeatWaits {
		if !errors.Is(err, ErrUnavailable) || pause(t.ctx, wait) != nil {
			return err
		}
		err = t.db.Commit(t.ctx, b)
		if errors.Is(err, ErrConflict) {
			// Not wrapped: to Update, and to its caller, this is no longer a plain conflict.
			return fmt.Errorf("store: update: %w: %s after a commit that was not answered", ErrUnavailable, err)
		}
	}
	return err
}

// batch is sorted, so that the same Txn always makes the same Batch.
func (t *Txn) batch() Batch {
	b := Batch{Rev: NewRev(), Guard: t.guard, Put: map[string][]byte{}, Publish: t.publish}
	for k, v := range t.changed {
		if v == nil {
			b.Del = append(b.Del, k)
		} else {
			b.Put[k] = v
		}
	}
	for p, s := range t.items {
		if s.dropped {
			b.Drop = append(b.Drop, Item{Index: p.index, Member: p.member})
		} else {
			b.Add = append(b.Add, Item{Index: p.index, Member: p.member, Score: s.score})
		}
	}
	byPlace := func(a, b Item) int { return cmp.Or(cmp.Compare(a.Index, b.Index), cmp.Compare(a.Member, b.Member)) }
	slices.Sort(b.Del)
	slices.SortFunc(b.Add, byPlace)
	slices.SortFunc(b.Drop, byPlace)
	return b
}

// Now is the store's time at the latest read of this attempt. It asks the store if nothing was read yet.
func (t *Txn) Now() (time.Time, error) {
	if t.now.IsZero() {
		now, _, err := t.db.Read(t.ctx)
		if err != nil {
			return time.Time{}, err
		}
		t.now = now
	}
	return t.now, nil
}

// Context is the context of the Update.
func (t *Txn) Context() context.Context { return t.ctx }

// Load reads several documents in one round trip and guards them; later Gets of these keys cost nothing.
func (t *Txn) Load(keys ...string) error { return t.load(true, keys) }

// Preload is Load without the guards: later Peeks of these keys cost nothing.
func (t *Txn) Preload(keys ...string) error { return t.load(false, keys) }

func (t *Txn) load(guard bool, keys []string) error {
	var missing []string
	for _, k := range keys {
		if _, ok := t.docs[k]; !ok {
			missing = append(missing, k)
		}
	}
	if len(missing) > 0 {
		now, docs, err := t.db.Read(t.ctx, missing...)
		if err != nil {
			return err
		}
		t.now = now
		for i, k := range missing {
			t.docs[k] = docs[i]
		}
	}
	if guard {
		for _, k := range keys {
			t.guard[k] = t.docs[k].Rev
		}
	}
	return nil
}

// Get reads and guards a document and decodes it; ErrDamaged if that is not possible. It sees what this Txn has put.
func Get[T any](t *Txn, key string) (v T, ok bool, err error) { return get[T](t, key, true) }

// Peek is Get without the guard: for documents that somebody else writes and this process may not (see the package's
// callers: a host peeks at what gateways write). The value may be stale by the time of the commit.
func Peek[T any](t *Txn, key string) (v T, ok bool, err error) { return get[T](t, key, false) }

func get[T any](t *Txn, key string, guard bool) (v T, ok bool, err error) {
	if err = t.load(guard, []string{key}); err != nil {
		return v, false, err
	}
	value, changed := t.changed[key]
	if !changed && t.docs[key].Rev != "" {
		value = t.docs[key].Value
	}
	if value == nil { // absent, or deleted in this Txn
		return v, false, nil
	}
	if err = json.Unmarshal(value, &v); err != nil {
		var none T // not what could be read of it
		return none, false, fmt.Errorf("%w: %s: %w", ErrDamaged, key, err)
	}
	return v, true, nil
}

// Put stores v as JSON under key. It does not guard: Get first what the new value depends on. Of several Puts and
// Deletes of a key in one Txn the last one counts.
func Put[T any](t *Txn, key string, v T) error {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("store: encode %s: %w", key, err)
	}
	t.changed[key] = b
	return nil
}

// PutBytes stores raw bytes under key. nil is stored as no bytes: the document exists.
func (t *Txn) PutBytes(key string, b []byte) { t.changed[key] = append([]byte{}, b...) }

// Delete removes the document under key, with the index entries left as they are. It does not guard.
func (t *Txn) Delete(key string) { t.changed[key] = nil }

// Add puts member into an index, or moves it there. Of several Adds and Drops of a member in one Txn the last one counts.
func (t *Txn) Add(index, member string, score int64) {
	t.items[place{index, member}] = standing{score: score}
}

// Drop removes member from an index.
func (t *Txn) Drop(index, member string) {
	t.items[place{index, member}] = standing{dropped: true}
}

// Publish sends a hint once the commit has happened.
func (t *Txn) Publish(topic string, body []byte) {
	t.publish = append(t.publish, Message{Topic: topic, Body: bytes.Clone(body)})
}

// Range is the engine's Range; what it returns is not guarded, and it does not see what this Txn changes.
func (t *Txn) Range(index string, min, max int64, limit int) ([]Item, error) {
	return t.db.Range(t.ctx, index, min, max, limit)
}
