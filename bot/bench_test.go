package bot

import (
	"context"
	"log/slog"
	"path/filepath"
	"testing"

	"drawbridge/internal/store"
	"drawbridge/internal/store/bolt"
	"drawbridge/internal/store/storetest"

	"github.com/go-telegram/bot/models"
)

// BenchmarkTapToEffect is the way of a tap from its arrival to the commit of what it causes: two commits, a hint and two
// reads.
func BenchmarkTapToEffect(b *testing.B) {
	b.Run("bolt", func(b *testing.B) {
		db, err := bolt.Open(filepath.Join(b.TempDir(), "db"), bolt.Options{})
		if err != nil {
			b.Fatal(err)
		}
		defer func() { _ = db.Close() }()
		tapToEffect(b, db)
	})
	b.Run("redis", func(b *testing.B) {
		tapToEffect(b, storetest.StartRedis(b, storetest.RedisOptions{}).Open(b, "db:{bot}:"))
	})
}

func tapToEffect(b *testing.B, db store.DB) {
	done := make(chan struct{}, 1)
	i := NewInbox(InboxConfig{
		DB: db, Logger: slog.New(slog.DiscardHandler), Lane: func(*models.Update) Lane { return LaneControl },
		Handler: HandlerFunc(func(t *store.Txn, d *Delivery) error {
			d.After(func(context.Context) { done <- struct{}{} })
			return store.Put(t, "g:test:bench", d.Update().ID)
		}),
	})
	ctx, cancel := context.WithCancel(b.Context())
	ended := make(chan error, 1)
	go func() { ended <- i.Run(ctx) }()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			b.Error(err)
		}
	}()
	n := int64(0)
	for b.Loop() {
		n++
		if err := i.Accept(b.Context(), nil, rawTap(n, ada, ada, "x")); err != nil {
			b.Fatal(err)
		}
		<-done
	}
}

func BenchmarkDecodeUpdate(b *testing.B) {
	raw := rawMessage(1, ada, ada, "hello")
	for b.Loop() {
		if _, err := decodeUpdate(raw); err != nil {
			b.Fatal(err)
		}
	}
}
