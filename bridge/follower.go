package bridge

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"drawbridge/approvals"
	"drawbridge/internal/store"
	"drawbridge/runner"
)

// Projection is what a gateway shows of the hosts' logs.
type Projection interface {
	// Project joins the commit that moves the gateway past e: whatever it puts into t happens exactly once for e. It may
	// run several times before that, so it must have no other effect.
	Project(t *store.Txn, e Entry) error
	// Live is called with what streams. It may miss some, and must not block.
	Live(l Live)
}

// Omitter is a Projection that wants to know of entries that could not be shown, to say so in the chat. It joins the commit
// that moves the gateway past e.
type Omitter interface {
	Omitted(t *store.Txn, e Entry) error
}

// FollowerConfig is what a Follower needs. Zero durations get their defaults.
type FollowerConfig struct {
	DB         store.DB
	Chats      *Chats
	Approvals  *approvals.Service
	Projection Projection
	Reread     time.Duration // how often the store is read without a hint; default 2 s
	Logger     *slog.Logger
}

// Follower is the gateway's reader of the hosts' logs. It may run in one gateway or in several: an entry is handled once.
type Follower struct{ cfg FollowerConfig }

// NewFollower returns a follower that does nothing until Run.
func NewFollower(c FollowerConfig) *Follower {
	c.Reread = cmp.Or(c.Reread, 2*time.Second)
	return &Follower{cfg: c}
}

const (
	// batch is how many entries are handled in one commit at the most.
	batch = 16
	// maxTries is how often an entry is tried that cannot be handled although the store answers. Then it is set aside: one
	// that fails for ever must not keep a whole host silent.
	maxTries = 4
)

// trouble is what a follower remembers of the entry that it can't get past.
type trouble struct {
	seq   int64
	tries int
}

type cursor struct {
	V   int   `json:"v"`
	Seq int64 `json:"seq"`
}

// Run follows the logs of all hosts, also of those that appear later, until ctx ends.
func (f *Follower) Run(ctx context.Context) error {
	var followers sync.WaitGroup
	defer followers.Wait()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	known := map[string]bool{}
	tick := time.NewTicker(f.cfg.Reread)
	defer tick.Stop()
	for {
		hosts, err := f.cfg.DB.Range(ctx, approvals.HostsIndex, 0, maxScore, 0)
		if err != nil && ctx.Err() == nil {
			f.cfg.Logger.Warn("cannot list the hosts; trying again", "err", err)
		}
		for _, h := range hosts {
			if !known[h.Member] {
				known[h.Member] = true
				followers.Go(func() { f.follow(ctx, h.Member) })
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func (f *Follower) follow(ctx context.Context, host string) {
	logger := f.cfg.Logger.With("host", host)
	var hints <-chan store.Message
	var bad trouble
	tick := time.NewTicker(f.cfg.Reread)
	defer tick.Stop()
	for ctx.Err() == nil {
		if hints == nil {
			var err error
			if hints, err = f.cfg.DB.Listen(ctx, logTopic(host), liveTopic(host)); err != nil {
				logger.Warn("cannot listen to a host; reading at intervals", "err", err)
			}
		}
		for {
			n, err := f.step(ctx, host, &bad)
			if errors.Is(err, store.ErrDamaged) {
				if healed, cause := f.heal(ctx, host); cause != nil || healed {
					err = cause
				}
			}
			if err != nil && ctx.Err() == nil {
				logger.Warn("cannot follow a log; trying again", "err", err)
			}
			if n == 0 || err != nil {
				break
			}
		}
		if err := f.mourn(ctx, host); err != nil && ctx.Err() == nil {
			logger.Warn("cannot look after a host's turns; trying again", "err", err)
		}
		f.wait(ctx, hints, tick.C, liveTopic(host))
	}
}

// wait returns when the log may have grown. What streams is passed on in between.
func (f *Follower) wait(ctx context.Context, hints <-chan store.Message, tick <-chan time.Time, live string) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick:
			return
		case m, ok := <-hints:
			if !ok || m.Topic != live {
				return
			}
			if l, err := decode[Live](m.Body); err == nil {
				f.cfg.Projection.Live(l)
			}
		}
	}
}

// step handles the next entries of a host's log and says how many. After a failure it takes them one by one, until the
// one that fails is handled or set aside.
func (f *Follower) step(ctx context.Context, host string, bad *trouble) (n int64, err error) {
	var seq int64 // of the entry that is being handled
	most := int64(batch)
	if bad.tries > 0 {
		most = 1
	}
	err = store.Update(ctx, f.cfg.DB, func(t *store.Txn) error {
		n, seq = 0, 0
		cur, _, err := store.Get[cursor](t, cursorKey(host))
		if err != nil {
			return err
		}
		keys := []string{headKey(host)}
		for i := range most {
			keys = append(keys, entryKey(host, cur.Seq+i+1))
		}
		if err := t.Preload(keys...); err != nil {
			return err
		}
		end, _, err := store.Peek[head](t, headKey(host))
		if err != nil {
			return err
		}
		for n < most && cur.Seq+n < end.Seq {
			n++
			seq = cur.Seq + n
			e, ok, err := store.Peek[Entry](t, entryKey(host, seq))
			if err != nil {
				return err
			}
			if !ok {
				// No gateway was here for as long as the host keeps its log.
				f.cfg.Logger.Warn("an entry of a log was forgotten before it was read", "host", host, "seq", seq)
				continue
			}
			if err := f.handle(t, host, e); err != nil {
				return fmt.Errorf("bridge: handle entry %d of %s: %w", seq, host, err)
			}
		}
		if n == 0 {
			return nil
		}
		return store.Put(t, cursorKey(host), cursor{V: Version, Seq: cur.Seq + n})
	})
	switch {
	case err == nil:
		*bad = trouble{}
		return n, nil
	case seq == 0 || ctx.Err() != nil || passing(err):
		return n, err
	case bad.seq != seq:
		*bad = trouble{seq: seq}
	}
	if bad.tries++; bad.tries < maxTries {
		return n, err
	}
	f.cfg.Logger.Error("an entry of a log cannot be shown and is set aside", "host", host, "seq", seq, "err", err)
	if err := f.setAside(ctx, host, seq); err != nil {
		return 0, err
	}
	*bad = trouble{}
	return 1, nil
}

// passing reports whether an error says nothing about the entry that was being handled.
func passing(err error) bool {
	return errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrClosed) || errors.Is(err, store.ErrConflict)
}

// setAside moves past an entry that cannot be shown. What it means for its chat's queue still happens.
func (f *Follower) setAside(ctx context.Context, host string, seq int64) error {
	skip := func(told, applied bool) error {
		return store.Update(ctx, f.cfg.DB, func(t *store.Txn) error {
			cur, _, err := store.Get[cursor](t, cursorKey(host))
			if err != nil || cur.Seq >= seq {
				return err
			}
			e, ok, err := store.Peek[Entry](t, entryKey(host, seq))
			e.Host = host
			if err == nil && ok && applied {
				if _, err := f.settle(t, host, &e); err != nil {
					return err
				}
			}
			if o, can := f.cfg.Projection.(Omitter); err == nil && ok && told && can {
				if err := o.Omitted(t, e); err != nil {
					return err
				}
			}
			return store.Put(t, cursorKey(host), cursor{V: Version, Seq: seq})
		})
	}
	err := skip(true, true)
	if err != nil && !passing(err) {
		err = skip(false, true)
	}
	if err != nil && !passing(err) {
		err = skip(false, false)
	}
	return err
}

// handle is apply, with a panic as an error: a fault in showing one entry must not end the gateway.
func (f *Follower) handle(t *store.Txn, host string, e Entry) (err error) {
	defer func() {
		if p := recover(); p != nil {
			f.cfg.Logger.Error("showing an entry panicked", "host", host, "seq", e.Seq, "panic", fmt.Sprintf("%T", p), "stack", string(debug.Stack()))
			err = errPanicked
		}
	}()
	return f.apply(t, host, e)
}

var errPanicked = errors.New("bridge: showing an entry panicked")

func (f *Follower) apply(t *store.Txn, host string, e Entry) error {
	e.Host = host
	mine, err := f.settle(t, host, &e)
	if err != nil || !mine {
		return err // it was ended for this chat before, and shown then
	}
	return f.cfg.Projection.Project(t, e)
}

// settle does what an entry means for its chat's queue. It reports false for the end of a turn that is not the chat's.
// A turn that a chat's migration stopped ends under the chat's present key.
func (f *Follower) settle(t *store.Txn, host string, e *Entry) (mine bool, err error) {
	if e.Errand != nil {
		f.cfg.Chats.returned(t, host, *e.Errand)
		return true, nil
	}
	switch e.Event.Kind { //nolint:exhaustive // the others change no chat
	case runner.TurnStarted:
		return true, f.cfg.Chats.begun(t, e.Chat, e.Turn)
	case runner.TurnEnded:
		var r runner.Result
		if e.Event.Result != nil {
			r = *e.Event.Result
		}
		if e.Chat, err = present(t, e.Chat); err != nil {
			return false, err
		}
		return f.cfg.Chats.end(t, host, e.Chat, e.Turn, r)
	}
	return true, nil
}

// mourn ends the running turns of a host that is dead. Orders that it had not begun stay: it takes them when it is back.
func (f *Follower) mourn(ctx context.Context, host string) error {
	incarnation, dead, err := f.cfg.Approvals.HostDead(ctx, host)
	if err != nil || !dead {
		return err
	}
	items, err := f.cfg.DB.Range(ctx, ordersIndex(host), 0, maxScore, 0)
	if err != nil {
		return err
	}
	for _, it := range items {
		err := store.Update(ctx, f.cfg.DB, func(t *store.Txn) error {
			o, ok, err := store.Get[Order](t, orderKey(host, it.Member))
			if errors.Is(err, store.ErrDamaged) {
				return nil // a stop makes it one that can be read
			}
			if err != nil || !ok {
				return err
			}
			rec, begun, err := store.Get[Turn](t, turnKey(host, it.Member))
			if errors.Is(err, store.ErrDamaged) {
				begun, err = true, nil
			}
			if err != nil || (begun && rec.State == TurnEnded) || (!begun && !o.Stop) {
				return err
			}
			r := runner.Result{Outcome: runner.Interrupted, Reason: errHostDied.Error()}
			if o.Stop {
				r.Reason = errStopped.Error()
			}
			now, err := t.Now()
			if err != nil {
				return err
			}
			// Another run of the host than the one that is dead has begun this turn: that is a sign of life, as a beat is.
			if begun && rec.Incarnation != incarnation && now.Sub(rec.Started) < f.cfg.Approvals.DeadAfter() {
				return nil
			}
			if o.Chat, err = present(t, o.Chat); err != nil {
				return err
			}
			mine, err := f.cfg.Chats.end(t, host, o.Chat, o.Turn, r)
			if err != nil || !mine {
				return err
			}
			return f.cfg.Projection.Project(t, Entry{
				V: Version, At: now, Host: host, Chat: o.Chat, Turn: o.Turn, Session: o.Session,
				Event: runner.Event{Kind: runner.TurnEnded, Turn: o.Turn, Result: &r},
			})
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func publishLive(ctx context.Context, db store.DB, host string, l Live) error {
	b, err := json.Marshal(l)
	if err != nil {
		return err
	}
	return db.Publish(ctx, liveTopic(host), b)
}
