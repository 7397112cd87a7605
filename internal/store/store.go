// Package store is the seam between Drawbridge's rules and the engine that keeps its data: versioned documents,
// ordered indexes and one atomic compare-and-commit, as in etcd's transactions.
//
// All rules live above this seam, in Go, written once. Two engines stand behind it (redis and bolt) and pass one suite
// (storetest). What the seam guarantees on both:
//
//   - A Commit happens whole or not at all, and only if every guarded document still has the revision that was read.
//   - Revisions are random, chosen by who commits, and never come back; a retry of a Commit whose first reply was lost
//     finds its own revision and succeeds.
//   - The time that Read returns is the store's own clock, in whole microseconds. Nothing expires by itself: a deadline
//     is data.
//   - A published message is a hint. It may be lost, doubled or late, so whoever waits for one reads again as well. Who
//     is known to have lost hints gets an empty Message.
//
// What it does not guarantee: index reads are not guarded (the documents they lead to are), and there is no order
// between a message and a later Read other than that the commit came first. Only bolt promises that time never steps
// back; a redis-server whose clock is set back, or a failover, can let it.
//
// Names (keys, indexes, members, topics) are 1 to MaxName bytes of any kind. One name is a document's key or an index's,
// never both: bolt would keep them apart, Redis refuses such a Batch.
package store

import (
	"context"
	"errors"
	"time"
)

var (
	// ErrConflict says that a guarded document had another revision: somebody else was faster. Read again and decide anew.
	ErrConflict = errors.New("store: conflict")
	// ErrDamaged says that a stored document can't be decoded, so that reading it again is of no use.
	ErrDamaged = errors.New("store: damaged document")
	// ErrClosed says that the store was closed by its owner.
	ErrClosed = errors.New("store: closed")
	// ErrUnavailable says that the engine could not be reached or did not answer. A Commit that ends so may or may not
	// have happened; repeating the same Batch is safe.
	ErrUnavailable = errors.New("store: unavailable")
)

// Rev is the revision of a document; empty for a document that does not exist.
type Rev string

// Doc is a document as it was read. An absent one has an empty Rev and a nil Value; the Value of one that exists is never
// nil. The Value belongs to the caller.
type Doc struct {
	Value []byte
	Rev   Rev
}

// Item is a member of an ordered index. A member stands at most once in an index; adding it again moves it.
type Item struct {
	Index, Member string
	// Score orders the index. It lies within ±MaxScore (Redis keeps doubles), which is enough for microseconds since 1970
	// until the year 2255.
	Score int64
}

// Message is a hint on a topic. One without a topic says that hints may have been lost: read again. Its listeners share
// the Body and must not change it.
type Message struct {
	Topic string
	Body  []byte
}

// Batch is one atomic change. The guards are checked first, then everything else is applied, Del before Put and Drop
// before Add; afterwards the messages are published. A key may stand in Guard and in Put or Del at the same time.
type Batch struct {
	// Rev is the revision that every document of Put gets. Empty means that Commit chooses one, and then a caller that
	// sees ErrUnavailable has nothing to recognise its own commit by.
	Rev     Rev
	Guard   map[string]Rev
	Put     map[string][]byte
	Del     []string
	Add     []Item
	Drop    []Item // Score is not looked at
	Publish []Message
}

// DB is the engine. It is safe for concurrent use. Its two implementations are in redis and bolt.
type DB interface {
	// Read returns the documents in the order of the keys, all as of one moment, and the store's time at that moment.
	Read(ctx context.Context, keys ...string) (time.Time, []Doc, error)
	// Range returns members of an index with min <= score <= max, lowest score first (ties by member, bytewise), at most
	// limit of them (limit <= 0: all).
	Range(ctx context.Context, index string, min, max int64, limit int) ([]Item, error)
	// Commit applies b, or returns ErrConflict and changes nothing. A batch of whose Put any document already has b.Rev was
	// applied before and succeeds without another effect; one without Put, or whose documents were all written again
	// since, can't be recognised.
	Commit(ctx context.Context, b Batch) error
	// Publish sends a hint to all listeners of the topic, in this process and (Redis) in others.
	Publish(ctx context.Context, topic string, body []byte) error
	// Listen returns the hints on topics until ctx ends; then the channel is closed. A listener that does not read loses
	// hints rather than blocking anyone, and then finds one empty Message after those it did not lose. When Listen returns
	// without error, hints published afterwards are seen. After a lost connection an empty Message is delivered too, so
	// that whoever waits reads again.
	Listen(ctx context.Context, topics ...string) (<-chan Message, error)
	// Close releases the engine and closes the channels of Listen. Calls after it return ErrClosed.
	Close() error
}

// Micros is the usual score of a time: microseconds since 1970.
func Micros(t time.Time) int64 { return t.UnixMicro() }
