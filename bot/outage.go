package bot

import (
	"context"
	"time"

	"drawbridge/internal/store"
)

const (
	outageLook = time.Second     // how often the store is looked at
	outageLong = 3 * time.Second // from when on an outage is worth a word
)

// RunOutages tells the chats in which something runs or waits, once, that the store was away, when it is back. An outage
// that ends with the process is not told.
func (b *Bot) RunOutages(ctx context.Context) error {
	var since time.Time // of the outage; zero while the store answers
	tick := time.NewTicker(outageLook)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		_, _, err := b.cfg.DB.Read(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && since.IsZero():
			since = time.Now()
		case err == nil && !since.IsZero():
			if took := time.Since(since); took >= outageLong {
				b.tellOutage(ctx, took)
			}
			since = time.Time{}
		}
	}
}

func (b *Bot) tellOutage(ctx context.Context, took time.Duration) {
	chats, err := b.cfg.Chats.All(ctx, 0)
	if err != nil {
		b.cfg.Logger.Warn("cannot tell about an outage", "err", err)
		return
	}
	for _, id := range chats {
		chat, err := ParseChat(id)
		if err != nil {
			continue
		}
		err = store.Update(ctx, b.cfg.DB, func(t *store.Txn) error {
			c, err := b.cfg.Chats.Get(t, id)
			if err != nil || c.Active == nil && len(c.Queue) == 0 {
				return err
			}
			return b.say(t, chat, 0, textOutage+elapsed(took)+textOutageOver)
		})
		if err != nil {
			b.cfg.Logger.Warn("cannot tell about an outage", "chat", id, "err", err)
		}
	}
}

// Prune forgets what old buttons meant, and turns whose end never came.
func (b *Bot) Prune(ctx context.Context) error {
	now, _, err := b.cfg.DB.Read(ctx)
	if err != nil {
		return err
	}
	old, err := b.cfg.DB.Range(ctx, meaningsIndex, 0, store.Micros(now.Add(-b.cfg.Keep)), 500)
	if err != nil || len(old) == 0 {
		return err
	}
	batch := store.Batch{Rev: store.NewRev()}
	for _, it := range old {
		batch.Del = append(batch.Del, it.Member)
		batch.Drop = append(batch.Drop, store.Item{Index: meaningsIndex, Member: it.Member})
	}
	return b.cfg.DB.Commit(ctx, batch)
}
