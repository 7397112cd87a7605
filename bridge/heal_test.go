package bridge

import (
	"log/slog"
	"slices"
	"testing"

	"drawbridge/approvals"
	"drawbridge/internal/store"
	"drawbridge/internal/store/storetest"
	"drawbridge/runner"
)

// TestADamagedCursorIsHealedOnce: the log is followed from its end on, the chats that had entries lately are told once, and
// what comes afterwards is shown.
func TestADamagedCursorIsHealedOnce(t *testing.T) {
	t.Parallel()
	db := storetest.OpenBolt(t)
	var tape lines
	gateway := approvals.New(approvals.Config{DB: db, Logger: slog.New(&tape), Beat: beat, DeadAfter: 1000 * beat})
	p := &picky{tries: map[int64]int{}}
	chats := NewChats(ChatsConfig{DB: db, Logger: slog.New(&tape), Approvals: gateway})
	f := NewFollower(FollowerConfig{DB: db, Chats: chats, Approvals: gateway, Projection: p, Reread: beat, Logger: slog.New(&tape)})
	log := NewLog(db, "box")
	say := func(chat, text string) {
		t.Helper()
		if err := log.Append(t.Context(), Entry{Chat: chat, Event: runner.Event{Kind: runner.Notice, Text: text}}); err != nil {
			t.Fatal(err)
		}
	}
	look := func() {
		t.Helper()
		for range 100 {
			var bad trouble
			n, err := f.step(t.Context(), "box", &bad)
			if err == nil && n == 0 {
				return
			}
			if err != nil {
				if healed, err := f.heal(t.Context(), "box"); err != nil || !healed {
					t.Fatal(healed, err)
				}
			}
		}
	}
	say("7", "a")
	look()
	say("7", "b")
	say("8", "c")
	err := store.Update(t.Context(), db, func(tx *store.Txn) error {
		tx.PutBytes(cursorKey("box"), []byte("{"))
		tx.PutBytes(entryKey("box", 2), []byte("{"))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	look()
	say("8", "d")
	look()
	if want := []string{"a", "d"}; !slices.Equal(p.shown, want) {
		t.Errorf("shown are %q, want %q", p.shown, want)
	}
	if len(p.omitted) != 2 { // both chats, in any order
		t.Errorf("told of %q", p.omitted)
	}
	if n := tape.count("up to where a host's log was shown can't be read; going on at its end"); n != 1 {
		t.Errorf("reported %d times", n)
	}
	if healed, err := f.heal(t.Context(), "box"); healed || err != nil {
		t.Errorf("a good cursor is healed: %v", err)
	}
}
