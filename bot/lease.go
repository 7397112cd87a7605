package bot

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"drawbridge/internal/store"
)

var (
	// ErrLeaseLost is the cause with which a term's context ends when the term can't be trusted any more: somebody else
	// holds the lease, or the store did not confirm it in time.
	ErrLeaseLost = errors.New("bot: lease lost")
	// ErrFenced says that a commit was refused because its term is over.
	ErrFenced = errors.New("bot: the term is over")
)

// Lease makes one of several gateways the one that acts. Its document holds the owner, the end of the term by the store's
// clock, and a fence that grows with each term.
//
// At most one owner trusts itself at a time, as long as the owners' clocks run at about the same speed: an owner stops
// acting a quarter of TTL before the moment at which the store lets another begin, counted from before it last asked.
// What must hold even if a process was frozen in between is guarded by CheckFence, inside the commit.
//
//	          asked          trusted until           lapsed: another may begin
//	owner ────┼──────────────┼───────────────────────┼────────
//	          │<─ 3/4 TTL ──>│<─ 1/4 TTL + answer ──>│
type Lease struct {
	DB     store.DB
	Name   string        // of what is leased
	Owner  string        // unique for each process that may be alive at a time; whoever has the name of a dead one need not wait for its end
	TTL    time.Duration // 4 s if 0
	Renew  time.Duration // 1 s if 0; also how often others look whether it lapsed
	Logger *slog.Logger

	seen  leaseDoc  // somebody else's term as it stood when it was last looked at
	since time.Time // by this process's own clock, when it was first seen so
}

type leaseDoc struct {
	V     int       `json:"v"`
	Owner string    `json:"owner,omitempty"` // empty: given back
	Fence int64     `json:"fence"`
	Until time.Time `json:"until,omitzero"`
}

func leaseKey(name string) string { return "g:lease:" + name }

func (l *Lease) ttl() time.Duration   { return cmp.Or(l.TTL, 4*time.Second) }
func (l *Lease) renew() time.Duration { return cmp.Or(l.Renew, time.Second) }
func (l *Lease) trust() time.Duration { return l.ttl() - l.ttl()/4 }

// CheckFence makes the commit of t fail with ErrFenced unless the term with this fence is still the latest one.
func CheckFence(t *store.Txn, name string, fence int64) error {
	d, _, err := store.Get[leaseDoc](t, leaseKey(name))
	if err != nil {
		return err
	}
	if d.Fence != fence {
		return ErrFenced
	}
	return nil
}

// Run waits until the lease is free, takes it and calls act, whose context ends when ctx does, or with the cause
// ErrLeaseLost when the term can't be trusted any more. After a lost term, or when act returns
// ErrFenced, it waits for the next one. When act returns by
// itself, or because ctx ended, the lease is given back, so that another owner takes over at once, and Run returns what act returned. While act
// returns from an ended ctx, the lease is still renewed.
func (l *Lease) Run(ctx context.Context, act func(ctx context.Context, fence int64) error) error {
	hints, err := l.DB.Listen(ctx, leaseKey(l.Name))
	if err != nil {
		return fmt.Errorf("bot: lease %s: %w", l.Name, err)
	}
	away := false
	for ctx.Err() == nil {
		asked := time.Now()
		fence, won, err := l.acquire(ctx)
		switch {
		case err != nil && ctx.Err() == nil:
			if !away {
				l.Logger.Warn("lease can't be asked for", "lease", l.Name, "err", err)
			}
			away = true
		case won:
			away = false
			l.Logger.Info("lease taken", "lease", l.Name, "fence", fence)
			if lost, err := l.term(ctx, fence, asked, act); !lost {
				return err
			}
			l.Logger.Warn("lease lost", "lease", l.Name, "fence", fence)
		default:
			away = false
		}
		l.wait(ctx, &hints)
	}
	return nil
}

// wait ends at a hint, or within one renewal.
func (l *Lease) wait(ctx context.Context, hints *<-chan store.Message) {
	t := time.NewTimer(jitter(l.renew()))
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	case _, open := <-*hints:
		if !open {
			*hints = nil
		}
	}
}

// acquire is the only way into a term.
func (l *Lease) acquire(ctx context.Context) (fence int64, won bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, l.trust())
	defer cancel()
	var standing leaseDoc
	err = store.Update(ctx, l.DB, func(t *store.Txn) error {
		won = false
		d, _, err := store.Get[leaseDoc](t, leaseKey(l.Name))
		standing = d
		damaged := errors.Is(err, store.ErrDamaged)
		if err != nil && !damaged {
			return err
		}
		now, err := t.Now()
		if err != nil {
			return err
		}
		if damaged { // higher than any term there was, since a term is no shorter than a microsecond
			d.Fence = store.Micros(now)
		}
		// An owner that asks again has lost its term: with a fence of its own, the new one can't be taken for the old.
		if d.Owner != "" && d.Owner != l.Owner && d.Until.After(now) && !l.silent(d) {
			return nil
		}
		won, fence = true, d.Fence+1
		return store.Put(t, leaseKey(l.Name), leaseDoc{V: Version, Owner: l.Owner, Fence: fence, Until: now.Add(l.ttl())})
	})
	if err == nil && !won && !standing.same(l.seen) {
		l.seen, l.since = standing, time.Now()
	}
	return fence, won && err == nil, err
}

// silent reports whether d has stood unchanged for so long, by this process's own clock, that its owner cannot trust itself
// any more. It matters where the store's clock has stepped back: by that clock the term would end much later.
func (l *Lease) silent(d leaseDoc) bool {
	return d.same(l.seen) && time.Since(l.since) > l.ttl()+l.renew()
}

func (d leaseDoc) same(o leaseDoc) bool {
	return d.Owner == o.Owner && d.Fence == o.Fence && d.Until.Equal(o.Until)
}

// extend prolongs the term; false means that it is over for good.
func (l *Lease) extend(ctx context.Context, fence int64, by time.Duration) (mine bool, err error) {
	err = store.Update(ctx, l.DB, func(t *store.Txn) error {
		d, _, err := store.Get[leaseDoc](t, leaseKey(l.Name))
		if err != nil {
			return err
		}
		now, err := t.Now()
		if err != nil {
			return err
		}
		if mine = d.Fence == fence && d.Owner == l.Owner; !mine {
			return nil
		}
		d.Until = now.Add(by)
		if by == 0 {
			d.Owner = ""
			t.Publish(leaseKey(l.Name), nil)
		}
		return store.Put(t, leaseKey(l.Name), d)
	})
	return mine, err
}

// term runs act under the lease. lost tells that the term ended before act did.
func (l *Lease) term(ctx context.Context, fence int64, asked time.Time, act func(context.Context, int64) error) (lost bool, err error) {
	// The term outlives ctx while act stops: what it still does, it does under the lease.
	hold, drop := context.WithCancelCause(context.WithoutCancel(ctx))
	defer drop(nil)
	acting, end := context.WithCancelCause(ctx)
	defer end(nil)
	stop := context.AfterFunc(hold, func() { end(context.Cause(hold)) })
	defer stop()

	expiry := time.AfterFunc(time.Until(asked.Add(l.trust())), func() { drop(ErrLeaseLost) })
	defer expiry.Stop()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for sleep(hold, l.renew()) {
			asked := time.Now()
			try, cancel := context.WithTimeout(hold, l.trust())
			mine, err := l.extend(try, fence, l.ttl())
			cancel()
			switch {
			case err != nil:
				// The timer knows how long there is still hope.
			case !mine:
				drop(ErrLeaseLost)
			case !expiry.Reset(time.Until(asked.Add(l.trust()))):
				// The timer had fired or is firing: others may have begun.
				drop(ErrLeaseLost)
			}
		}
	}()
	err = act(acting, fence)
	// A refused fence may be seen before the next renewal is.
	lost = errors.Is(context.Cause(hold), ErrLeaseLost) || errors.Is(err, ErrFenced)
	drop(context.Canceled)
	<-done
	if lost {
		return true, nil
	}
	back, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.renew())
	defer cancel()
	if _, rerr := l.extend(back, fence, 0); rerr != nil {
		l.Logger.Warn("lease not given back, it lapses by itself", "lease", l.Name, "err", rerr)
	}
	return false, err
}
