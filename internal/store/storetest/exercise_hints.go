package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"drawbridge/internal/store"
)

// patience is how long a test waits for what must come; it only ends a test that fails.
const patience = 20 * time.Second

func listen(t *testing.T, ctx context.Context, db store.DB, topics ...string) <-chan store.Message {
	t.Helper()
	ch, err := db.Listen(ctx, topics...)
	if err != nil {
		t.Fatalf("listen: %v", err)
	}
	return ch
}

func publish(t *testing.T, db store.DB, topic, body string) {
	t.Helper()
	if err := db.Publish(t.Context(), topic, []byte(body)); err != nil {
		t.Fatalf("publish: %v", err)
	}
}

func receive(t *testing.T, ch <-chan store.Message) store.Message {
	t.Helper()
	select {
	case m, ok := <-ch:
		if !ok {
			t.Fatal("the channel was closed")
		}
		return m
	case <-time.After(patience):
		t.Fatal("no message came")
	}
	return store.Message{}
}

func wantMessage(t *testing.T, ch <-chan store.Message, topic, body string) {
	t.Helper()
	if m := receive(t, ch); m.Topic != topic || string(m.Body) != body {
		t.Errorf("got %q on %q, want %q on %q", m.Body, m.Topic, body, topic)
	}
}

// wantClosed reads what is left until the channel is closed.
func wantClosed(t *testing.T, ch <-chan store.Message) {
	t.Helper()
	timeout := time.After(patience)
	for {
		select {
		case _, ok := <-ch:
			if !ok {
				return
			}
		case <-timeout:
			t.Fatal("the channel was not closed")
		}
	}
}

func testPublish(t *testing.T, db store.DB) {
	one := listen(t, t.Context(), db, "a")
	both := listen(t, t.Context(), db, "a", "b\x00\xff", "a")
	publish(t, db, "nobody", "x")
	publish(t, db, "a", "1")
	publish(t, db, "b\x00\xff", "\x00\r\n\xff")
	publish(t, db, "a", "")
	wantMessage(t, one, "a", "1")
	wantMessage(t, one, "a", "")
	wantMessage(t, both, "a", "1")
	wantMessage(t, both, "b\x00\xff", "\x00\r\n\xff")
	wantMessage(t, both, "a", "")
}

func testPublishAfterCommit(t *testing.T, db store.DB) {
	ch := listen(t, t.Context(), db, "a")
	wantConflict(t, db.Commit(t.Context(), store.Batch{
		Guard: map[string]store.Rev{"k": "other"}, Put: put("k", "x"),
		Publish: []store.Message{{Topic: "a", Body: []byte("lost the race")}},
	}))
	var all sync.WaitGroup
	all.Go(func() {
		for i := range 50 {
			b := store.Batch{
				Rev: store.Rev(fmt.Sprintf("rev %d", i)), Put: put(fmt.Sprintf("k%d", i), "x"),
				Publish: []store.Message{{Topic: "a", Body: fmt.Appendf(nil, "k%d", i)}, {Topic: "b"}},
			}
			if err := db.Commit(t.Context(), b); err != nil {
				t.Errorf("commit: %v", err)
			}
			if err := db.Commit(t.Context(), b); err != nil { // a retry, which says nothing again
				t.Errorf("commit: %v", err)
			}
		}
	})
	for i := range 50 {
		m := receive(t, ch)
		if want := fmt.Sprintf("k%d", i); string(m.Body) != want {
			t.Fatalf("got %q, want %q", m.Body, want)
		}
		if d := mustRead(t, db, string(m.Body))[0]; d.Rev == "" {
			t.Fatalf("%s was told before it was committed", m.Body)
		}
	}
	all.Wait()
}

// testSlowListener has one that does not read. It costs nobody anything, and when it reads again it finds the beginning,
// an empty message in place of what was lost, and then what comes.
func testSlowListener(t *testing.T, db store.DB) {
	slow := listen(t, t.Context(), db, "a")
	fast := listen(t, t.Context(), db, "a")
	const many = 1000
	for i := range many {
		publish(t, db, "a", fmt.Sprint(i))
		wantMessage(t, fast, "a", fmt.Sprint(i))
	}
	seen := 0
	for {
		m := receive(t, slow)
		if m.Topic == "" {
			break
		}
		if string(m.Body) != fmt.Sprint(seen) {
			t.Fatalf("got %q, want %d", m.Body, seen)
		}
		seen++
	}
	if seen == 0 || seen == many {
		t.Errorf("the slow listener saw %d of %d before it was told of a loss", seen, many)
	}
	publish(t, db, "a", "after")
	wantMessage(t, slow, "a", "after")
	wantMessage(t, fast, "a", "after")
}

func testListenersLeave(t *testing.T, db store.DB) {
	stays := listen(t, t.Context(), db, "a", "b")
	for range 20 {
		ctx, cancel := context.WithCancel(t.Context())
		leaves := listen(t, ctx, db, "a", "only here")
		publish(t, db, "only here", "1")
		wantMessage(t, leaves, "only here", "1")
		cancel()
		wantClosed(t, leaves)
	}
	publish(t, db, "a", "2")
	wantMessage(t, stays, "a", "2")

	ctx, cancel := context.WithCancel(t.Context())
	none := listen(t, ctx, db)
	cancel()
	wantClosed(t, none)
}

// testListenConfirmed leaves and takes up one topic again and again: what is published after Listen has returned must come,
// whatever is still under way of earlier listeners.
func testListenConfirmed(t *testing.T, db store.DB) {
	var all sync.WaitGroup
	for w := range 4 {
		all.Go(func() {
			for i := range 40 {
				ctx, cancel := context.WithCancel(t.Context())
				ch, err := db.Listen(ctx, "shared")
				if err != nil {
					t.Errorf("listen: %v", err)
					cancel()
					return
				}
				mine := fmt.Sprintf("%d/%d", w, i)
				if err := db.Publish(ctx, "shared", []byte(mine)); err != nil {
					t.Errorf("publish: %v", err)
				}
				timeout := time.After(patience)
				for found := false; !found; {
					select {
					case m := <-ch:
						// The empty one says that hints were lost among those of the others: whoever waits reads again then.
						found = string(m.Body) == mine || m.Topic == ""
					case <-timeout:
						t.Errorf("%s was not heard", mine)
						found = true
					}
				}
				cancel()
			}
		})
	}
	all.Wait()
}

func testEndedContext(t *testing.T, db store.DB) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, readErr := db.Read(ctx, "a")
	_, rangeErr := db.Range(ctx, "i", 0, 9, 0)
	_, listenErr := db.Listen(ctx, "a")
	for name, err := range map[string]error{
		"read": readErr, "range": rangeErr, "listen": listenErr,
		"commit":  db.Commit(ctx, store.Batch{Put: put("a", "1")}),
		"publish": db.Publish(ctx, "a", nil),
		"update":  store.Update(ctx, db, func(tx *store.Txn) error { return store.Put(tx, "a", 1) }),
	} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v, want context.Canceled", name, err)
		}
	}
	if d := mustRead(t, db, "a")[0]; d.Rev != "" {
		t.Error("a commit with an ended context was applied")
	}
}

func testClose(t *testing.T, db store.DB) {
	ch := listen(t, t.Context(), db, "a")
	none := listen(t, t.Context(), db)
	var busy sync.WaitGroup
	started := make(chan struct{})
	busy.Go(func() {
		for i := 0; ; i++ {
			err := db.Commit(t.Context(), store.Batch{Put: put("a", "1"), Publish: []store.Message{{Topic: "a"}}})
			if i == 0 {
				close(started)
			}
			if err != nil {
				if !errors.Is(err, store.ErrClosed) && !errors.Is(err, store.ErrUnavailable) {
					t.Errorf("a commit while closing: %v", err)
				}
				return
			}
		}
	})
	<-started
	for range 2 {
		if err := db.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}
	busy.Wait()
	wantClosed(t, ch)
	wantClosed(t, none)
	_, _, readErr := db.Read(t.Context(), "a")
	_, _, timeErr := db.Read(t.Context())
	_, rangeErr := db.Range(t.Context(), "i", 0, 9, 0)
	_, listenErr := db.Listen(t.Context(), "a")
	for name, err := range map[string]error{
		"read": readErr, "time": timeErr, "range": rangeErr, "listen": listenErr,
		"commit":  db.Commit(t.Context(), store.Batch{Put: put("a", "1")}),
		"publish": db.Publish(t.Context(), "a", nil),
	} {
		if !errors.Is(err, store.ErrClosed) {
			t.Errorf("%s: %v, want ErrClosed", name, err)
		}
	}
}
