// Package bolt is the embedded engine of the store: one bbolt file for one process.
//
// It guarantees what package store asks for, and besides: every Commit that returned nil was fsynced, so that it survives
// a kill of the process and, on a disk that honours fsync, a loss of power; commits that wait for the same fsync share
// it and yet stay atomic each; and the store's time never goes backwards, also not across a restart.
//
// It does not serve a second process: the file is locked. It must not lie on a network file system, where such locks and
// mmap are not to be relied upon. No goroutine of its own runs between two calls, so it can be used in a synctest bubble.
package bolt

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"drawbridge/internal/store"
)

// ErrLocked says that another process has the file open.
var ErrLocked = errors.New("another process has it open")

// version of the file's layout; a file with a higher one is refused.
const version = 1

// lockWait is how long Open waits for a process that is just ending.
const lockWait = 500 * time.Millisecond

// The buckets. docs: key -> revision and value. scores: index, score, member -> nothing, in the order of Range.
// members: index, member -> score, to find where a member stands. meta: v and time.
var (
	bucketDocs    = []byte("docs")
	bucketScores  = []byte("scores")
	bucketMembers = []byte("members")
	bucketMeta    = []byte("meta")

	keyVersion = []byte("v")
	keyTime    = []byte("time")
)

// Options of Open. The zero value is for production.
type Options struct {
	// Now is the clock behind the store's time; time.Now if nil.
	Now func() time.Time
}

// DB is an open file. It implements store.DB.
type DB struct {
	path  string
	bolt  *bbolt.DB
	clock clock
	hub   store.Hub

	queueMu sync.Mutex
	queue   []*request
	writer  sync.Mutex // held by the one Commit that writes for all in the queue
}

var _ store.DB = (*DB)(nil)

// Open opens the file at path, or creates it with mode 0600 (and missing folders with 0700), and locks it. It returns
// ErrLocked when another process keeps the lock for more than half a second.
func Open(path string, o Options) (*DB, error) {
	fail := func(err error) (*DB, error) { return nil, fmt.Errorf("bolt: open %s: %w", path, err) }
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fail(err)
	}
	b, err := bbolt.Open(path, 0o600, &bbolt.Options{Timeout: lockWait, FreelistType: bbolt.FreelistMapType})
	if errors.Is(err, bolterrors.ErrTimeout) {
		return fail(ErrLocked)
	} else if err != nil {
		return fail(err)
	}
	db := &DB{path: path, bolt: b, clock: clock{wall: o.Now}}
	if db.clock.wall == nil {
		db.clock.wall = time.Now
	}
	if err := errors.Join(os.Chmod(path, 0o600), syncDir(dir), b.Update(db.prepare)); err != nil {
		return fail(errors.Join(err, b.Close()))
	}
	return db, nil
}

// syncDir makes the entry of a file that was just created survive a loss of power; bbolt syncs only the file.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func (db *DB) prepare(tx *bbolt.Tx) error {
	for _, name := range [][]byte{bucketDocs, bucketScores, bucketMembers, bucketMeta} {
		if _, err := tx.CreateBucketIfNotExists(name); err != nil {
			return err
		}
	}
	meta := tx.Bucket(bucketMeta)
	if v := meta.Get(keyVersion); len(v) == 8 && binary.BigEndian.Uint64(v) > version {
		return fmt.Errorf("its layout has version %d, this program knows %d", binary.BigEndian.Uint64(v), version)
	}
	if v := meta.Get(keyTime); len(v) == 8 {
		db.clock.last = time.UnixMicro(int64(binary.BigEndian.Uint64(v)))
	}
	return meta.Put(keyVersion, binary.BigEndian.AppendUint64(nil, version))
}

// Read returns the documents and the store's time in one read transaction.
func (db *DB) Read(ctx context.Context, keys ...string) (time.Time, []store.Doc, error) {
	docs := make([]store.Doc, len(keys))
	var now time.Time
	err := db.view(ctx, func(tx *bbolt.Tx) error {
		now = db.clock.now()
		bucket := tx.Bucket(bucketDocs)
		for i, k := range keys {
			var err error
			if docs[i], err = decodeDoc(bucket.Get([]byte(k))); err != nil {
				return fmt.Errorf("%q: %w", k, err)
			}
		}
		return nil
	})
	if err != nil {
		return time.Time{}, nil, fmt.Errorf("bolt: read: %w", err)
	}
	return now, docs, nil
}

// Range walks the index in one read transaction.
func (db *DB) Range(ctx context.Context, index string, min, max int64, limit int) ([]store.Item, error) {
	var items []store.Item
	err := db.view(ctx, func(tx *bbolt.Tx) error {
		items = scan(tx.Bucket(bucketScores), index, min, max, limit)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("bolt: range %s: %w", index, err)
	}
	return items, nil
}

func (db *DB) view(ctx context.Context, fn func(*bbolt.Tx) error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return translate(db.bolt.View(fn))
}

// Publish hands the hint to the listeners of this process.
func (db *DB) Publish(ctx context.Context, topic string, body []byte) error {
	if ctx.Err() != nil {
		return fmt.Errorf("bolt: publish: %w", context.Cause(ctx))
	}
	m := store.Message{Topic: topic, Body: body}
	b := store.Batch{Publish: []store.Message{m}}
	err := b.Check()
	if err == nil {
		err = db.hub.Deliver(m)
	}
	if err != nil {
		return fmt.Errorf("bolt: publish: %w", err)
	}
	return nil
}

// Listen implements store.DB. In one process no connection can be lost; an empty Message comes only after an overflow.
func (db *DB) Listen(ctx context.Context, topics ...string) (<-chan store.Message, error) {
	if ctx.Err() != nil {
		return nil, fmt.Errorf("bolt: listen: %w", context.Cause(ctx))
	}
	ch, err := db.hub.Join(ctx, topics, nil)
	if err != nil {
		return nil, fmt.Errorf("bolt: listen: %w", err)
	}
	return ch, nil
}

// Close waits for running calls, closes the channels of all listeners and releases the lock. It may be called again.
func (db *DB) Close() error {
	db.hub.Close()
	db.writer.Lock()
	defer db.writer.Unlock()
	if err := db.bolt.Close(); err != nil {
		return fmt.Errorf("bolt: close %s: %w", db.path, err)
	}
	return nil
}

func translate(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, bolterrors.ErrDatabaseNotOpen):
		return store.ErrClosed
	default:
		return fmt.Errorf("%w: %w", store.ErrUnavailable, err)
	}
}
