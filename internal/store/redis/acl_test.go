package redis_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	goredis "github.com/redis/go-redis/v9"

	"drawbridge/internal/store"
	"drawbridge/internal/store/redis"
	"drawbridge/internal/store/storetest"
)

// hostACL is the user of host h1 as docs/store.md gives it.
var hostACL = []any{
	"acl", "setuser", "h1", "reset", "on", ">secret",
	"~db:{1}:from:h1:*", "%R~db:{1}:to:h1:*",
	"&db:{1}:from:h1:*", "&db:{1}:to:h1:*",
	"+eval", "+evalsha", "+eval_ro", "+evalsha_ro", "+script|load",
	"+hget", "+hset", "+del", "+zadd", "+zrem", "+zrange", "+zrangebyscore", "+time", "+publish", "+subscribe", "+unsubscribe",
}

func admin(t *testing.T, s *storetest.RedisServer, args ...any) {
	t.Helper()
	c := goredis.NewClient(&goredis.Options{Addr: s.Addr()})
	defer func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}()
	if err := c.Do(t.Context(), args...).Err(); err != nil {
		t.Fatalf("%v: %v", args, err)
	}
}

// TestHostIsHeldToItsOwn is the rule of keys that say who writes them: with this user a host does its own work and
// nothing else, whatever its program tries.
func TestHostIsHeldToItsOwn(t *testing.T) {
	t.Parallel()
	server := storetest.StartRedis(t, storetest.RedisOptions{})
	gateway := server.Open(t, "db:{1}:")
	admin(t, server, hostACL...)
	host, err := redis.Open(t.Context(), strings.Replace(server.URL(), "//", "//h1:secret@", 1), redis.Options{
		Prefix: "db:{1}:", Logger: storetest.Logger(t),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := host.Close(); err != nil {
			t.Error(err)
		}
	})
	err = gateway.Commit(t.Context(), store.Batch{Rev: "theirs", Put: map[string][]byte{
		"to:h1:chat": []byte(`"auto"`), "to:h2:chat": []byte(`"auto"`), "g:chat": []byte(`"auto"`),
	}})
	if err != nil {
		t.Fatal(err)
	}

	hints, err := host.Listen(t.Context(), "to:h1:hints")
	if err != nil {
		t.Fatal(err)
	}
	heard, err := gateway.Listen(t.Context(), "from:h1:hints")
	if err != nil {
		t.Fatal(err)
	}
	err = store.Update(t.Context(), host, func(tx *store.Txn) error {
		mode, ok, err := store.Peek[string](tx, "to:h1:chat")
		if !ok || mode != "auto" {
			t.Errorf("peeked at %q, %v", mode, ok)
		}
		if _, _, err := store.Get[int](tx, "from:h1:turn"); err != nil {
			return err
		}
		tx.Add("from:h1:turns", "turn", 1)
		tx.Drop("from:h1:turns", "other")
		tx.Delete("from:h1:old")
		tx.Publish("from:h1:hints", []byte("1"))
		return errors.Join(err, store.Put(tx, "from:h1:turn", 1))
	})
	if err != nil {
		t.Fatalf("its own work: %v", err)
	}
	if m := <-heard; string(m.Body) != "1" {
		t.Errorf("the gateway heard %+v", m)
	}
	if err := gateway.Publish(t.Context(), "to:h1:hints", []byte("2")); err != nil {
		t.Fatal(err)
	}
	if m := <-hints; string(m.Body) != "2" {
		t.Errorf("the host heard %+v", m)
	}
	if items, err := host.Range(t.Context(), "from:h1:turns", math.MinInt64, math.MaxInt64, 0); err != nil || len(items) != 1 {
		t.Errorf("its own index: %v, %v", items, err)
	}
	if _, _, err := host.Read(t.Context()); err != nil {
		t.Errorf("the time: %v", err)
	}

	write := func(b store.Batch) func() error { return func() error { return host.Commit(t.Context(), b) } }
	put := func(keys ...string) store.Batch {
		b := store.Batch{Put: map[string][]byte{}}
		for _, k := range keys {
			b.Put[k] = []byte("forged")
		}
		return b
	}
	for name, try := range map[string]func() error{
		"write what a gateway writes":    write(put("g:chat")),
		"write what it may only read":    write(put("to:h1:chat")),
		"write another host's":           write(put("from:h2:turn")),
		"smuggle one among its own":      write(put("from:h1:turn", "to:h1:chat")),
		"delete":                         write(store.Batch{Del: []string{"to:h1:chat"}}),
		"add to a gateway's index":       write(store.Batch{Add: []store.Item{{Index: "g:turns", Member: "m", Score: 1}}}),
		"guard what it may only read":    write(store.Batch{Guard: map[string]store.Rev{"to:h1:chat": "theirs"}, Put: put("from:h1:turn").Put}),
		"publish to another host":        func() error { return host.Publish(t.Context(), "to:h2:hints", nil) },
		"range over a gateway's index":   func() error { _, err := host.Range(t.Context(), "g:turns", 0, 9, 0); return err },
		"read another host's":            func() error { _, _, err := host.Read(t.Context(), "to:h2:chat"); return err },
		"read a gateway's, among others": func() error { _, _, err := host.Read(t.Context(), "to:h1:chat", "g:chat"); return err },
		"listen to another host":         func() error { _, err := host.Listen(t.Context(), "to:h2:hints"); return err },
	} {
		if err := try(); !errors.Is(err, redis.ErrForbidden) {
			t.Errorf("%s: %v, want ErrForbidden", name, err)
		}
	}
	_, docs, err := gateway.Read(t.Context(), "to:h1:chat", "to:h2:chat", "g:chat", "from:h1:turn", "from:h2:turn")
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{`"auto"`, `"auto"`, `"auto"`, "1", ""} {
		if string(docs[i].Value) != want {
			t.Errorf("document %d became %q", i, docs[i].Value)
		}
	}

	// The listener that was allowed has heard of the interruption at most, and still hears.
	if err := gateway.Publish(t.Context(), "to:h1:hints", []byte("3")); err != nil {
		t.Fatal(err)
	}
	hears(t, gateway, hints)
}

// hears publishes until the listener gets it: a refused SUBSCRIBE of another listener makes the shared connection start anew.
func hears(t *testing.T, gateway store.DB, hints <-chan store.Message) {
	t.Helper()
	for m := range hints {
		if string(m.Body) == "3" {
			return
		}
		if err := gateway.Publish(t.Context(), "to:h1:hints", []byte("3")); err != nil {
			t.Fatal(err)
		}
	}
	t.Error("the listener was closed")
}

// TestRefusedHintDoesNotTearABatch: a script is not rolled back, so a hint that the ACL refuses must not end it half-way.
func TestRefusedHintDoesNotTearABatch(t *testing.T) {
	t.Parallel()
	server := storetest.StartRedis(t, storetest.RedisOptions{})
	admin(t, server, hostACL...)
	host, err := redis.Open(t.Context(), strings.Replace(server.URL(), "//", "//h1:secret@", 1), redis.Options{Prefix: "db:{1}:"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := host.Close(); err != nil {
			t.Error(err)
		}
	}()
	err = host.Commit(t.Context(), store.Batch{
		Put:     map[string][]byte{"from:h1:a": []byte("1"), "from:h1:b": []byte("1")},
		Publish: []store.Message{{Topic: "to:h2:hints"}},
	})
	_, docs, readErr := host.Read(t.Context(), "from:h1:a", "from:h1:b")
	if err := errors.Join(err, readErr); err != nil {
		t.Fatal(err)
	}
	if docs[0].Rev == "" || docs[0].Rev != docs[1].Rev {
		t.Errorf("read %+v", docs)
	}
}

// TestMistakenNameChangesNothing: one name for a document and an index is a mistake that only Redis notices; it must
// notice before it has written anything.
func TestMistakenNameChangesNothing(t *testing.T) {
	t.Parallel()
	server := storetest.StartRedis(t, storetest.RedisOptions{})
	db := server.Open(t, "db:{1}:")
	ctx := context.WithoutCancel(t.Context())
	err := db.Commit(ctx, store.Batch{
		Put: map[string][]byte{"doc": []byte("1")}, Add: []store.Item{{Index: "index", Member: "m", Score: 1}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string]store.Batch{
		"put to an index":    {Put: map[string][]byte{"index": nil}},
		"delete an index":    {Del: []string{"index"}},
		"guard an index":     {Guard: map[string]store.Rev{"index": ""}},
		"add to a document":  {Add: []store.Item{{Index: "doc", Member: "m", Score: 1}}},
		"drop of a document": {Drop: []store.Item{{Index: "doc", Member: "m"}}},
	} {
		if b.Put == nil {
			b.Put = map[string][]byte{}
		}
		for _, k := range []string{"doc", "other 1", "other 2", "other 3", "other 4"} {
			b.Put[k] = []byte("2")
		}
		if err := db.Commit(ctx, b); err == nil || errors.Is(err, store.ErrUnavailable) {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, docs, err := db.Read(ctx, "doc", "other 1", "other 4")
	if err != nil || string(docs[0].Value) != "1" || docs[1].Rev != "" || docs[2].Rev != "" {
		t.Errorf("read %+v, %v", docs, err)
	}
	if items, err := db.Range(ctx, "index", 0, 9, 0); err != nil || len(items) != 1 {
		t.Errorf("range %v, %v", items, err)
	}
}
