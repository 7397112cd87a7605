package bot

import (
	"context"
	"log/slog"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"drawbridge/approvals"
	"drawbridge/bridge"
	"drawbridge/internal/store"
	"drawbridge/internal/store/storetest"
)

// TestAnOutageIsToldOnceWhenItIsOver, in the chats that waited for something, and a short one not at all.
func TestAnOutageIsToldOnceWhenItIsOver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := &flaky{DB: storetest.OpenBolt(t)}
		log := slog.New(&tape{t: t})
		svc := approvals.New(approvals.Config{DB: db, Logger: log})
		chats := bridge.NewChats(bridge.ChatsConfig{DB: db, Logger: log, Approvals: svc})
		b := New(Config{DB: db, Chats: chats, Approvals: svc, Outbox: NewOutbox(OutboxConfig{DB: db, Logger: log}), Logger: log})
		err := store.Update(t.Context(), db, func(t *store.Txn) error {
			for _, chat := range []bridge.Chat{{V: 1, ID: "1", Queue: []bridge.Prompt{{ID: "u:1", Text: "x"}}}, {V: 1, ID: "2"}} {
				t.Add("g:chats", chat.ID, 1)
				if err := store.Put(t, "g:chat:"+chat.ID, chat); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		told := func() (out []string) {
			t.Helper()
			items, err := db.Range(t.Context(), outboxIndex, math.MinInt64, store.MaxScore, 0)
			if err != nil {
				t.Fatal(err)
			}
			for _, it := range items {
				var c outChat
				_, docs, err := db.Read(t.Context(), outChatKey(it.Member))
				if err == nil {
					err = decodeDoc(docs[0], &c)
				}
				if err != nil {
					t.Fatal(err)
				}
				for _, q := range c.Queue {
					var d outDoc
					if _, docs, err = db.Read(t.Context(), outKey(q.ID)); err != nil || decodeDoc(docs[0], &d) != nil {
						t.Fatal(err)
					}
					out = append(out, it.Member+" "+d.Text)
				}
			}
			return out
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- b.RunOutages(ctx) }()
		away := func(d time.Duration) {
			<-time.After(530 * time.Millisecond)
			db.down.Store(true)
			<-time.After(d)
			db.down.Store(false)
			<-time.After(2 * outageLook)
			synctest.Wait()
		}
		if away(outageLook); len(told()) != 0 {
			t.Errorf("a moment was told: %q", told())
		}
		if away(90 * time.Second); len(told()) != 1 || !strings.HasPrefix(told()[0], "1 "+textOutage+"1 min") {
			t.Errorf("told was %q", told())
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
