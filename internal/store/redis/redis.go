// Package redis is the distributed engine of the store: Redis 7 or newer (or Valkey), alone, behind Sentinel or as a
// Cluster.
//
// It guarantees what package store asks for by two fixed scripts: commit.lua checks and writes everything in one step,
// read.lua returns documents and the server's time as of one moment. A document is a hash with the fields r (revision)
// and v (value), an index a sorted set; both stand under their own name with the prefix in front, and so do the topics,
// so that ACLs can be written by patterns. All keys of a prefix share one hash tag and with it one node. Nothing has a
// TTL.
//
// What a Commit that returned nil survives is the server's business: with appendfsync always a loss of power, with
// everysec a kill of the server at once and a loss of power but for the last second. A failover to a replica can lose the latest
// commits, since replication is asynchronous. The time is the server's and can step back when that clock is set, or at
// a failover.
package redis

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"drawbridge/internal/store"
)

// ErrForbidden says that the server's ACL does not let this user do that. Nothing was changed.
var ErrForbidden = errors.New("forbidden by the server's ACL")

//go:embed commit.lua
var commitSource string

//go:embed read.lua
var readSource string

// Options of Open.
type Options struct {
	// Prefix is in front of every key and topic. It must hold a hash tag, for example "db:{123456}:", which keeps all keys on
	// one node of a Cluster.
	Prefix string
	// Logger gets warnings about the server's settings and lost connections; nil is silence.
	Logger *slog.Logger
	// Silence is how long the connection for hints may be silent before the server is asked for a sign of life; after
	// twice that it counts as lost. 5 seconds if zero.
	Silence time.Duration
}

// DB is a connection pool to one server. It implements store.DB.
type DB struct {
	client goredis.UniversalClient
	prefix string
	log    *slog.Logger
	hub    *store.Hub
	sub    *subscriber
	commit *goredis.Script
	read   *goredis.Script

	closeOnce sync.Once
	closeErr  error
}

var _ store.DB = (*DB)(nil)

// Open connects to the server at url (see parse for the forms), checks its version and settings, and returns an error of
// one line when they would lose data. It does not wait for a server that is not there: that is store.ErrUnavailable.
func Open(ctx context.Context, url string, o Options) (*DB, error) {
	if tag, _, ok := strings.Cut(afterBrace(o.Prefix), "}"); !ok || tag == "" {
		return nil, fmt.Errorf("redis: open: the prefix %q has no hash tag", o.Prefix)
	}
	client, err := connect(url)
	if err != nil {
		return nil, fmt.Errorf("redis: open: %w", err)
	}
	log := o.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	db := &DB{
		client: client, prefix: o.Prefix, log: log, hub: &store.Hub{},
		commit: goredis.NewScript(commitSource), read: goredis.NewScript(readSource),
	}
	db.sub = newSubscriber(client, o.Prefix, db.hub, log)
	db.sub.silence = cmp.Or(o.Silence, 5*time.Second)
	if err := check(ctx, client, log); err != nil {
		return nil, errors.Join(fmt.Errorf("redis: open: %w", err), db.Close())
	}
	return db, nil
}

func afterBrace(prefix string) string {
	_, after, _ := strings.Cut(prefix, "{")
	return after
}

// Read runs read.lua as EVALSHA_RO, which needs no more than the right to read the keys. A read that was not answered is
// sent once more, since the pool may have handed out a connection that had just died.
func (db *DB) Read(ctx context.Context, keys ...string) (time.Time, []store.Doc, error) {
	now, docs, err := db.readOnce(ctx, keys)
	if errors.Is(err, store.ErrUnavailable) && ctx.Err() == nil {
		now, docs, err = db.readOnce(ctx, keys)
	}
	if err != nil {
		return time.Time{}, nil, fmt.Errorf("redis: read: %w", err)
	}
	return now, docs, nil
}

func (db *DB) readOnce(ctx context.Context, keys []string) (time.Time, []store.Doc, error) {
	if len(keys) == 0 {
		now, err := db.time(ctx)
		return now, []store.Doc{}, err
	}
	full := make([]string, len(keys))
	for i, k := range keys {
		full[i] = db.prefix + k
	}
	reply, err := db.read.RunRO(ctx, db.client, full).StringSlice()
	if err != nil {
		return time.Time{}, nil, translate(ctx, err)
	}
	if len(reply) != 2+2*len(keys) {
		return time.Time{}, nil, fmt.Errorf("the script returned %d values for %d keys", len(reply), len(keys))
	}
	now, err := parseTime(reply[0], reply[1])
	if err != nil {
		return time.Time{}, nil, err
	}
	docs := make([]store.Doc, len(keys))
	for i := range keys {
		if rev := reply[2+2*i]; rev != "" {
			docs[i] = store.Doc{Rev: store.Rev(rev), Value: []byte(reply[3+2*i])}
		}
	}
	return now, docs, nil
}

// time asks the node that holds the keys: a Cluster would send a command without a key to any node, with another clock.
func (db *DB) time(ctx context.Context) (time.Time, error) {
	var node interface {
		Time(ctx context.Context) *goredis.TimeCmd
	} = db.client
	if c, ok := db.client.(*goredis.ClusterClient); ok {
		master, err := c.MasterForKey(ctx, db.prefix)
		if err != nil {
			return time.Time{}, translate(ctx, err)
		}
		node = master
	}
	now, err := node.Time(ctx).Result()
	return now, translate(ctx, err)
}

func parseTime(seconds, micros string) (time.Time, error) {
	s, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("the server's time: %w", err)
	}
	us, err := strconv.ParseInt(micros, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("the server's time: %w", err)
	}
	return time.Unix(s, us*int64(time.Microsecond)), nil
}

// Range is one ZRANGEBYSCORE.
func (db *DB) Range(ctx context.Context, index string, min, max int64, limit int) ([]store.Item, error) {
	by := &goredis.ZRangeBy{Min: bound(min), Max: bound(max), Count: int64(limit)}
	if limit <= 0 {
		by.Count = 0 // with an offset of 0 too, go-redis leaves LIMIT out
	}
	found, err := db.client.ZRangeByScoreWithScores(ctx, db.prefix+index, by).Result()
	if err != nil {
		return nil, fmt.Errorf("redis: range %s: %w", index, translate(ctx, err))
	}
	var items []store.Item
	for _, z := range found {
		member, ok := z.Member.(string)
		if !ok {
			return nil, fmt.Errorf("redis: range %s: a member is a %T", index, z.Member)
		}
		items = append(items, store.Item{Index: index, Member: member, Score: int64(z.Score)})
	}
	return items, nil
}

// bound keeps what is beyond a double's integers from being rounded into them. No member has an infinite score, so
// either infinity is right as a minimum and as a maximum.
func bound(score int64) string {
	switch {
	case score > store.MaxScore:
		return "+inf"
	case score < -store.MaxScore:
		return "-inf"
	}
	return strconv.FormatInt(score, 10)
}

// Commit runs commit.lua once. A hint that the ACL refuses is logged and does not undo the commit.
func (db *DB) Commit(ctx context.Context, b store.Batch) error {
	if ctx.Err() != nil { // so that it is certain that nothing was sent
		return fmt.Errorf("redis: commit: %w", context.Cause(ctx))
	}
	if err := b.Check(); err != nil {
		return fmt.Errorf("redis: commit: %w", err)
	}
	if b.Rev == "" {
		b.Rev = store.NewRev()
	}
	keys, args := db.encode(&b)
	reply, err := db.commit.Run(ctx, db.client, keys, args...).Slice()
	if err != nil {
		return fmt.Errorf("redis: commit: %w", translate(ctx, err))
	}
	if len(reply) == 0 {
		return errors.New("redis: commit: the script returned nothing")
	}
	switch reply[0] {
	case int64(0):
		return store.ErrConflict
	case int64(1):
		if len(reply) > 1 && reply[1] != "" {
			db.log.WarnContext(ctx, "a hint was refused by redis", "err", reply[1])
		}
	}
	return nil
}

// encode gives every key its position in KEYS, once, as EVAL and the ACL want them declared.
func (db *DB) encode(b *store.Batch) (keys []string, args []any) {
	positions := map[string]int{}
	at := func(name string) int {
		p, ok := positions[name]
		if !ok {
			keys = append(keys, db.prefix+name)
			p = len(keys)
			positions[name] = p
		}
		return p
	}
	args = append(args, string(b.Rev))
	for k, rev := range b.Guard {
		args = append(args, "guard", at(k), string(rev))
	}
	for _, k := range b.Del {
		args = append(args, "del", at(k))
	}
	for k, v := range b.Put {
		args = append(args, "put", at(k), v)
	}
	for _, i := range b.Drop {
		args = append(args, "drop", at(i.Index), i.Member)
	}
	for _, i := range b.Add {
		args = append(args, "add", at(i.Index), i.Score, i.Member)
	}
	for _, m := range b.Publish {
		args = append(args, "publish", db.prefix+m.Topic, m.Body)
	}
	return keys, args
}

// Publish is one PUBLISH.
func (db *DB) Publish(ctx context.Context, topic string, body []byte) error {
	b := store.Batch{Publish: []store.Message{{Topic: topic}}}
	if err := b.Check(); err != nil {
		return fmt.Errorf("redis: publish: %w", err)
	}
	if err := db.client.Publish(ctx, db.prefix+topic, body).Err(); err != nil {
		return fmt.Errorf("redis: publish: %w", translate(ctx, err))
	}
	return nil
}

// Listen implements store.DB. All listeners of a DB share one connection.
func (db *DB) Listen(ctx context.Context, topics ...string) (<-chan store.Message, error) {
	ch, err := db.sub.listen(ctx, topics)
	if err != nil {
		return nil, fmt.Errorf("redis: listen: %w", err)
	}
	return ch, nil
}

// Close ends all connections and closes the channels of all listeners. It may be called again.
func (db *DB) Close() error {
	db.closeOnce.Do(func() {
		db.sub.close()
		db.hub.Close()
		if err := db.client.Close(); err != nil {
			db.closeErr = fmt.Errorf("redis: close: %w", err)
		}
	})
	return db.closeErr
}

// translate sorts an error: closed, the caller's own, forbidden, a mistake, or, which is the rule, unavailable.
func translate(ctx context.Context, err error) error {
	var reply goredis.Error
	switch {
	case err == nil:
		return nil
	case errors.Is(err, goredis.ErrClosed):
		return store.ErrClosed
	case ctx.Err() != nil:
		// The command may have arrived all the same.
		return fmt.Errorf("%w: %w", store.ErrUnavailable, context.Cause(ctx))
	case !errors.As(err, &reply):
		return fmt.Errorf("%w: %w", store.ErrUnavailable, err)
	}
	for _, prefix := range []string{"NOPERM", "NOAUTH", "WRONGPASS"} {
		if goredis.HasErrorPrefix(err, prefix) {
			return fmt.Errorf("%w: %w", ErrForbidden, err)
		}
	}
	// What a server says that is starting, failing over, full or without its disk; it will be well again.
	for _, prefix := range []string{
		"LOADING", "READONLY", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "NOREPLICAS", "MISCONF", "OOM", "BUSY", "max number of clients",
	} {
		if goredis.HasErrorPrefix(err, prefix) {
			return fmt.Errorf("%w: %w", store.ErrUnavailable, err)
		}
	}
	return err
}
