package store

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"time"
)

// maxAttempts bounds how often Update tries again after a conflict. Conflicts on one document come from a handful of
// processes; fifty in a row mean a bug, and an error is better than a busy loop.
const maxAttempts = 50

// NewRev returns a fresh revision.
func NewRev() Rev { return Rev(rand.Text()) }

// Txn is one attempt of an Update: what was read (and is guarded), and what shall change. It is used by one goroutine.
type Txn struct {
	ctx   context.Context
	db    DB
	now   time.Time
	docs  map[string]Doc
	guard map[string]Rev
	batch Batch
}

// Update reads, decides and commits in one atomic step: it calls fn, commits what fn has put into the Txn, guarded by
// everything that fn has read with Get, and calls fn again on a fresh Txn when somebody else was faster. fn must have no effect
// but through the Txn, since it may run several times. An error from fn ends the Update and nothing is committed.
//
// When the engine does not answer the commit, Update repeats it with the same revision twice, and then returns
// ErrUnavailable: the caller does not know the outcome and must read.
func Update(ctx context.Context, db DB, fn func(*Txn) error) error {
	for attempt := range maxAttempts {
		t := &Txn{ctx: ctx, db: db, docs: map[string]Doc{}, guard: map[string]Rev{}, batch: Batch{Rev: NewRev(), Put: map[string][]byte{}}}
		if err := fn(t); err != nil {
			return err
		}
		err := t.commit()
		if !errors.Is(err, ErrConflict) {
			return err
		}
		if attempt > 2 { // jitter, so that many writers of one document do not march in step
			n, _ := rand.Int(rand.Reader, big.NewInt(int64(attempt)*int64(time.Millisecond)))
			select {
			case <-ctx.Done():
				return fmt.Errorf("store: update: %w", context.Cause(ctx))
			case <-time.After(time.Duration(n.Int64())):
			}
		}
	}
	return fmt.Errorf("store: update: gave up after %d attempts: %w", maxAttempts, ErrConflict)
}

func (t *Txn) commit() error {
	b := t.batch
	if len(b.Put) == 0 && len(b.Del) == 0 && len(b.Add) == 0 && len(b.Drop) == 0 && len(b.Publish) == 0 {
		return nil
	}
	b.Guard = t.guard
	var err error
	for range 3 {
		if err = t.db.Commit(t.ctx, b); !errors.Is(err, ErrUnavailable) || t.ctx.Err() != nil {
			return err
		}
	}
	return err
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
			if _, ok := t.guard[k]; !ok {
				t.guard[k] = t.docs[k].Rev
			}
		}
	}
	return nil
}

// Get reads and guards a document and decodes it. It sees what this Txn has put.
func Get[T any](t *Txn, key string) (v T, ok bool, err error) { return get[T](t, key, true) }

// Peek is Get without the guard: for documents that somebody else writes and this process may not (see the package's
// callers: a host peeks at what gateways write). The value may be stale by the time of the commit.
func Peek[T any](t *Txn, key string) (v T, ok bool, err error) { return get[T](t, key, false) }

func get[T any](t *Txn, key string, guard bool) (v T, ok bool, err error) {
	if err = t.load(guard, []string{key}); err != nil {
		return v, false, err
	}
	value := t.docs[key].Value
	if put, changed := t.batch.Put[key]; changed {
		value = put
	} else if t.docs[key].Rev == "" {
		return v, false, nil
	}
	if value == nil { // deleted in this Txn
		return v, false, nil
	}
	if err = json.Unmarshal(value, &v); err != nil {
		return v, false, fmt.Errorf("store: decode %s: %w", key, err)
	}
	return v, true, nil
}

// Put stores v as JSON under key. It does not guard: Get first what the new value depends on.
func Put[T any](t *Txn, key string, v T) error {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("store: encode %s: %w", key, err)
	}
	t.batch.Put[key] = b
	return nil
}

// PutBytes stores raw bytes under key.
func (t *Txn) PutBytes(key string, b []byte) { t.batch.Put[key] = b }

// Delete removes the document under key. Deleting and putting one key in the same Txn is a programmer's error: the last
// call wins.
func (t *Txn) Delete(key string) {
	delete(t.batch.Put, key)
	t.batch.Del = append(t.batch.Del, key)
	t.docs[key] = Doc{Rev: t.docs[key].Rev}
}

// Add puts member into an index, or moves it there.
func (t *Txn) Add(index, member string, score int64) {
	t.batch.Add = append(t.batch.Add, Item{Index: index, Member: member, Score: score})
}

// Drop removes member from an index.
func (t *Txn) Drop(index, member string) {
	t.batch.Drop = append(t.batch.Drop, Item{Index: index, Member: member})
}

// Publish sends a hint once the commit has happened.
func (t *Txn) Publish(topic string, body []byte) {
	t.batch.Publish = append(t.batch.Publish, Message{Topic: topic, Body: body})
}

// Range is the engine's Range; what it returns is not guarded.
func (t *Txn) Range(index string, min, max int64, limit int) ([]Item, error) {
	return t.db.Range(t.ctx, index, min, max, limit)
}
