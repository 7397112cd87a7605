package bolt

import (
	"context"
	"encoding/binary"
	"fmt"

	"go.etcd.io/bbolt"

	"drawbridge/internal/store"
)

// request is a batch that waits to be written, and, guarded by DB.writer, its outcome.
type request struct {
	batch   store.Batch
	outcome outcome
	err     error
}

type outcome int

const (
	waiting  outcome = iota
	failed           // request.err says how
	conflict         // a guard did not hold
	again            // a document has the batch's revision already: a retry, and nothing was written
	applied
)

// Commit applies b and returns when it is on the disk. Whoever gets the writer's lock writes everything that queued up
// meanwhile in one transaction, so that concurrent commits share an fsync; each batch is still checked against what the
// ones before it have written.
func (db *DB) Commit(ctx context.Context, b store.Batch) error {
	if ctx.Err() != nil {
		return fmt.Errorf("bolt: commit: %w", context.Cause(ctx))
	}
	if err := b.Check(); err != nil {
		return fmt.Errorf("bolt: commit: %w", err)
	}
	if b.Rev == "" {
		b.Rev = store.NewRev()
	}
	r := &request{batch: b}
	db.queueMu.Lock()
	db.queue = append(db.queue, r)
	db.queueMu.Unlock()

	db.writer.Lock()
	defer db.writer.Unlock()
	if r.outcome == waiting {
		db.queueMu.Lock()
		group := db.queue
		db.queue = nil
		db.queueMu.Unlock()
		db.write(group)
	}
	switch r.outcome {
	case failed:
		return fmt.Errorf("bolt: commit: %w", r.err)
	case conflict:
		return store.ErrConflict
	default:
		return nil
	}
}

// write is called with the writer's lock. Guards never roll the transaction back, they only leave their batch out; an
// error of bbolt fails the whole group, of which nothing is then on the disk.
func (db *DB) write(group []*request) {
	if err := translate(db.run(group)); err != nil {
		for _, r := range group {
			r.outcome, r.err = failed, err
		}
		return
	}
	for _, r := range group {
		if r.outcome != applied {
			continue
		}
		for _, m := range r.batch.Publish {
			_ = db.hub.Deliver(m) // a closed hub has nobody to tell
		}
	}
}

func (db *DB) run(group []*request) error {
	tx, err := db.bolt.Begin(true)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // after Commit it does nothing
	changed := false
	for _, r := range group {
		if r.outcome, err = apply(tx, &r.batch); err != nil {
			return err
		}
		changed = changed || r.outcome == applied && r.batch.Writes()
	}
	if !changed {
		return nil
	}
	now := binary.BigEndian.AppendUint64(nil, uint64(db.clock.now().UnixMicro()))
	if err := tx.Bucket(bucketMeta).Put(keyTime, now); err != nil {
		return err
	}
	return tx.Commit()
}

// apply writes one batch into the transaction, unless a guard fails or the batch was applied before.
func apply(tx *bbolt.Tx, b *store.Batch) (outcome, error) {
	docs, scores, members := tx.Bucket(bucketDocs), tx.Bucket(bucketScores), tx.Bucket(bucketMembers)
	for k := range b.Put {
		d, err := decodeDoc(docs.Get([]byte(k)))
		if err != nil {
			return failed, err
		}
		if d.Rev == b.Rev {
			return again, nil
		}
	}
	for k, rev := range b.Guard {
		d, err := decodeDoc(docs.Get([]byte(k)))
		if err != nil {
			return failed, err
		}
		if d.Rev != rev {
			return conflict, nil
		}
	}
	for _, k := range b.Del {
		if err := docs.Delete([]byte(k)); err != nil {
			return failed, err
		}
	}
	for k, v := range b.Put {
		if err := docs.Put([]byte(k), encodeDoc(b.Rev, v)); err != nil {
			return failed, err
		}
	}
	for _, i := range b.Drop {
		if err := drop(scores, members, i.Index, i.Member); err != nil {
			return failed, err
		}
	}
	for _, i := range b.Add {
		if err := drop(scores, members, i.Index, i.Member); err != nil {
			return failed, err
		}
		if err := add(scores, members, i); err != nil {
			return failed, err
		}
	}
	return applied, nil
}
