package bot

import (
	"context"
	"time"

	"drawbridge/internal/store"
)

const (
	outageLook = time.Second            // how often the store is looked at
	outageWait = 200 * time.Millisecond // how often while it is away: what ran then is told before its end is
	outageLong = 3 * time.Second        // from when on an outage is worth a word
)

// outage is when an outage was last told, under outageKey: of several gateways that saw it, one tells.
type outage struct {
	V  int       `json:"v"`
	At time.Time `json:"at"`
}

const outageKey = "g:outage"

// RunOutages tells the chats in which something runs or waits, once, that the store was away, when it is back. It watches
// for as long as the process lives, since a gateway that cannot reach the store is not the one that acts. An outage that
// ends with the process is not told.
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
			tick.Reset(outageWait)
		case err == nil && !since.IsZero():
			took := time.Since(since)
			since = time.Time{}
			tick.Reset(outageLook)
			if took >= outageLong {
				b.tellOutage(ctx, took)
			}
		}
	}
}

func (b *Bot) tellOutage(ctx context.Context, took time.Duration) {
	mine, err := b.claimOutage(ctx, took)
	if err != nil {
		b.cfg.Logger.Warn("cannot tell about an outage", "err", err)
		return
	}
	if !mine {
		return
	}
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
			if err != nil {
				return err
			}
			now, err := t.Now()
			// A turn may have ended between the return of the store and this.
			if err != nil || c.Active == nil && len(c.Queue) == 0 && !c.Ended.After(now.Add(-took)) {
				return err
			}
			return b.say(t, chat, 0, textOutage+elapsed(took)+textOutageOver)
		})
		if err != nil {
			b.cfg.Logger.Warn("cannot tell about an outage", "chat", id, "err", err)
		}
	}
}

// claimOutage reports whether this gateway is the one to tell of an outage of that length, which has just ended.
func (b *Bot) claimOutage(ctx context.Context, took time.Duration) (mine bool, err error) {
	err = store.Update(ctx, b.cfg.DB, func(t *store.Txn) error {
		mine = false
		now, err := t.Now()
		if err != nil {
			return err
		}
		last, ok, err := store.Get[outage](t, outageKey)
		if err != nil || ok && now.Sub(last.At) < took {
			return err // another gateway has told it
		}
		mine = true
		return store.Put(t, outageKey, outage{V: Version, At: now})
	})
	return mine, err
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
