package bridge

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"

	"drawbridge/approvals"
	"drawbridge/internal/store"
	"drawbridge/internal/store/storetest"
	"drawbridge/runner"
)

// picky is a projection that can't show some entries.
type picky struct {
	mu      sync.Mutex
	tries   map[int64]int
	shown   []string
	omitted []string
}

var errUnshowable = errors.New("bridge: test: cannot be shown")

func (p *picky) Project(t *store.Txn, e Entry) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tries[e.Seq]++
	switch {
	case strings.HasPrefix(e.Event.Text, "poison"):
		return errUnshowable
	case strings.HasPrefix(e.Event.Text, "panic"):
		panic("a fault")
	case strings.HasPrefix(e.Event.Text, "later") && p.tries[e.Seq] < 3:
		return errUnshowable
	}
	if !slices.Contains(p.shown, e.Event.Text) {
		p.shown = append(p.shown, e.Event.Text)
	}
	return store.Put(t, "g:test:"+e.Event.Text, 1)
}

func (p *picky) Live(Live) {}

func (p *picky) Omitted(_ *store.Txn, e Entry) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.omitted = append(p.omitted, e.Event.Text)
	return nil
}

// TestAnEntryThatCannotBeShownStopsNothing: it is tried again, then set aside with a line for a human; what comes before
// and after it is shown.
func TestAnEntryThatCannotBeShownStopsNothing(t *testing.T) {
	t.Parallel()
	db := storetest.OpenBolt(t)
	var tape lines
	gateway := approvals.New(approvals.Config{DB: db, Logger: slog.New(&tape), Beat: beat, DeadAfter: 1000 * beat})
	p := &picky{tries: map[int64]int{}}
	chats := NewChats(ChatsConfig{DB: db, Logger: slog.New(&tape), Approvals: gateway})
	f := NewFollower(FollowerConfig{DB: db, Chats: chats, Approvals: gateway, Projection: p, Reread: beat, Logger: slog.New(&tape)})

	texts := []string{"a", "b", "poison 1", "c", "panic 1", "later", "poison 2", "poison 3", "d"}
	var entries []Entry
	for _, text := range texts {
		entries = append(entries, Entry{Chat: "7", Event: runner.Event{Kind: runner.Notice, Text: text}})
	}
	if err := NewLog(db, "box").Append(t.Context(), entries...); err != nil {
		t.Fatal(err)
	}
	// One that is no entry at all.
	err := store.Update(t.Context(), db, func(tx *store.Txn) error {
		tx.PutBytes(entryKey("box", 2), []byte("{"))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var bad trouble
	for range 100 {
		n, err := f.step(t.Context(), "box", &bad)
		if err == nil && n == 0 {
			break
		}
	}
	if want := []string{"a", "c", "later", "d"}; !slices.Equal(p.shown, want) {
		t.Errorf("shown are %q, want %q", p.shown, want)
	}
	if want := []string{"poison 1", "panic 1", "poison 2", "poison 3"}; !slices.Equal(p.omitted, want) {
		t.Errorf("the chat was told of %q, want %q", p.omitted, want)
	}
	if n := tape.count("an entry of a log cannot be shown and is set aside"); n != 5 {
		t.Errorf("%d entries were reported, want 5", n)
	}
	for seq, n := range p.tries {
		if n > maxTries+batch {
			t.Errorf("entry %d was tried %d times", seq, n)
		}
	}
	// What was done is in the commits that moved past the entries.
	for _, text := range p.shown {
		if _, docs, err := db.Read(t.Context(), "g:test:"+text); err != nil || docs[0].Rev == "" {
			t.Errorf("%q left nothing (%v)", text, err)
		}
	}
}

// TestAStoreThatIsAwaySetsNothingAside, however long.
func TestAStoreThatIsAwaySetsNothingAside(t *testing.T) {
	t.Parallel()
	db := storetest.OpenBolt(t)
	var tape lines
	gateway := approvals.New(approvals.Config{DB: db, Logger: slog.New(&tape), Beat: beat, DeadAfter: 1000 * beat})
	chats := NewChats(ChatsConfig{DB: db, Logger: slog.New(&tape), Approvals: gateway})
	away := awayProjection{}
	f := NewFollower(FollowerConfig{DB: db, Chats: chats, Approvals: gateway, Projection: away, Reread: beat, Logger: slog.New(&tape)})
	if err := NewLog(db, "box").Append(t.Context(), Entry{Chat: "7", Event: runner.Event{Kind: runner.Notice}}); err != nil {
		t.Fatal(err)
	}
	var bad trouble
	for range 5 * maxTries {
		if n, err := f.step(t.Context(), "box", &bad); err == nil {
			t.Fatalf("%d entries were passed", n)
		}
	}
}

type awayProjection struct{}

func (awayProjection) Project(*store.Txn, Entry) error { return store.ErrUnavailable }
func (awayProjection) Live(Live)                       {}

// lines keeps the messages that were logged.
type lines struct {
	mu  sync.Mutex
	all []string
}

func (l *lines) Enabled(context.Context, slog.Level) bool { return true }
func (l *lines) WithAttrs([]slog.Attr) slog.Handler       { return l }
func (l *lines) WithGroup(string) slog.Handler            { return l }
func (l *lines) Handle(_ context.Context, r slog.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, r.Message)
	return nil
}

func (l *lines) count(message string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, m := range l.all {
		if m == message {
			n++
		}
	}
	return n
}
