package bot

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"runtime/debug"
	"strconv"
	"sync/atomic"
	"time"

	"drawbridge/internal/store"

	"github.com/go-telegram/bot/models"
)

// The keys of the inbox. Only gateways write them.
const (
	inboxIndex  = "g:inbox"       // updates that wait, by arrival; also the topic of hints
	inboxOld    = "g:updates-old" // tombstones, by when they were made
	inboxIntake = "g:intake"
)

func updateKey(id string) string { return "g:update:" + id }

// The states of an update. Only waiting can be left.
const (
	updateWaiting = "waiting"
	updateDone    = "done"
	updateAside   = "aside"
)

// updateDoc is an update as it lies in the inbox, and afterwards the tombstone by which it is recognised when it comes
// again.
type updateDoc struct {
	V       int             `json:"v"`
	State   string          `json:"state"`
	Raw     json.RawMessage `json:"raw,omitempty"` // gone from what is done
	Arrived time.Time       `json:"arrived"`
	Left    time.Time       `json:"left,omitzero"`
	// Token names the delivery that took it out, so that a commit whose answer was lost recognises itself.
	Token  string `json:"token,omitempty"`
	Reason string `json:"reason,omitempty"` // of what is aside: one word
}

// intakeDoc orders arrivals: scores never go back, whatever the store's clock does.
type intakeDoc struct {
	V    int   `json:"v"`
	Last int64 `json:"last"`
}

// InboxConfig says how updates are handled. DB, Handler and Logger are required; zero fields take the values named.
type InboxConfig struct {
	DB      store.DB
	Handler Handler
	// Lane sorts an update; everything is ordinary if nil.
	Lane   func(*models.Update) Lane
	Logger *slog.Logger
	// Workers handle ordinary updates (8), ControlWorkers the control lane (4).
	Workers, ControlWorkers int
	// Merge is how long a near-limit message or a picture of an album waits for the next piece (1 s).
	Merge time.Duration
	// Tries is how often a failing handler is called before its update is set aside (6); Retry is the first pause, which
	// doubles up to 30 s (250 ms). While the store is away it does not count.
	Tries int
	Retry time.Duration
	// Reread is how often the index is read without a hint (2 s).
	Reread time.Duration
	// Keep is how long a handled update is remembered (48 h); Telegram repeats one for 24 h at most.
	Keep time.Duration
}

// Inbox keeps updates from their arrival until what they cause is committed. Any gateway may Accept; one Run at a time
// gives the order that Lane promises, while two at once still handle each update once. It is safe for concurrent use.
type Inbox struct {
	cfg InboxConfig

	accepted, repeated, handled, aside atomic.Int64
}

// InboxStats counts since the start of the process.
type InboxStats struct {
	Accepted int64 // committed
	Repeated int64 // seen before
	Handled  int64
	Aside    int64 // undecodable, or given up after their tries
}

// NewInbox returns an inbox. It reads nothing yet.
func NewInbox(cfg InboxConfig) *Inbox {
	cfg.Workers = cmp.Or(cfg.Workers, 8)
	cfg.ControlWorkers = cmp.Or(cfg.ControlWorkers, 4)
	cfg.Merge = cmp.Or(cfg.Merge, time.Second)
	cfg.Tries = cmp.Or(cfg.Tries, 6)
	cfg.Retry = cmp.Or(cfg.Retry, 250*time.Millisecond)
	cfg.Reread = cmp.Or(cfg.Reread, 2*time.Second)
	cfg.Keep = cmp.Or(cfg.Keep, 48*time.Hour)
	if cfg.Lane == nil {
		cfg.Lane = func(*models.Update) Lane { return LaneOrdinary }
	}
	return &Inbox{cfg: cfg}
}

// Stats counts what the inbox did.
func (i *Inbox) Stats() InboxStats {
	return InboxStats{
		Accepted: i.accepted.Load(), Repeated: i.repeated.Load(), Handled: i.handled.Load(), Aside: i.aside.Load(),
	}
}

// updateID is the id under which raw is stored, and its update_id if it has one. Without one it is named by its bytes, so
// that it, too, is stored once.
func updateID(raw []byte) (id string, number int64, ok bool) {
	var u struct {
		ID *int64 `json:"update_id"`
	}
	if json.Unmarshal(raw, &u) == nil && u.ID != nil {
		return strconv.FormatInt(*u.ID, 10), *u.ID, true
	}
	sum := sha256.Sum256(raw)
	return "x" + hex.EncodeToString(sum[:16]), 0, false
}

// Accept commits updates as they came, in their order, unless they were seen in the last 48 hours, and returns once they
// can't be lost any more. Ids are compared for equality only: after a week without updates Telegram starts anywhere.
// check, if not nil, may refuse the commit: it is where a poller's fence is looked at.
func (i *Inbox) Accept(ctx context.Context, check func(*store.Txn) error, raws ...json.RawMessage) error {
	if len(raws) == 0 {
		return nil
	}
	var accepted, repeated int64
	err := store.Update(ctx, i.cfg.DB, func(t *store.Txn) error {
		accepted, repeated = 0, 0
		if check != nil {
			if err := check(t); err != nil {
				return err
			}
		}
		keys := []string{inboxIntake}
		for _, raw := range raws {
			id, _, _ := updateID(raw)
			keys = append(keys, updateKey(id))
		}
		if err := t.Load(keys...); err != nil {
			return err
		}
		now, err := t.Now()
		if err != nil {
			return err
		}
		intake, _, err := store.Get[intakeDoc](t, inboxIntake)
		if err != nil && !errors.Is(err, store.ErrDamaged) { // without it the clock alone orders what arrives
			return err
		}
		for _, raw := range raws {
			id, _, _ := updateID(raw)
			if _, seen, err := store.Get[updateDoc](t, updateKey(id)); err != nil {
				return err
			} else if seen {
				repeated++
				continue
			}
			accepted++
			intake.Last = max(intake.Last+1, store.Micros(now))
			if err := store.Put(t, updateKey(id), updateDoc{V: Version, State: updateWaiting, Raw: raw, Arrived: now}); err != nil {
				return err
			}
			t.Add(inboxIndex, id, intake.Last)
		}
		if accepted == 0 {
			return nil
		}
		intake.V = Version
		t.Publish(inboxIndex, nil)
		return store.Put(t, inboxIntake, intake)
	})
	if err != nil {
		return fmt.Errorf("bot: accept updates: %w", err)
	}
	i.accepted.Add(accepted)
	i.repeated.Add(repeated)
	return nil
}

// errStale says that another gateway took an update of a delivery out of the inbox.
var errStale = errors.New("bot: update already left the inbox")

// leave is the only way out of waiting: it puts into t whatever cause says and makes tombstones of ids. It returns errStale and changes nothing if one of them does not wait any more; own tells that this same delivery was
// committed before without our learning of it.
func (i *Inbox) leave(ctx context.Context, ids []string, token, state, reason string, cause func(*store.Txn) error) (own bool, err error) {
	err = store.Update(ctx, i.cfg.DB, func(t *store.Txn) error {
		own = false
		var keys []string
		for _, id := range ids {
			keys = append(keys, updateKey(id))
		}
		if err := t.Load(keys...); err != nil {
			return err
		}
		docs := make([]updateDoc, len(ids))
		for n, key := range keys {
			d, ok, err := store.Get[updateDoc](t, key)
			if errors.Is(err, store.ErrDamaged) && state == updateAside {
				d, ok, err = updateDoc{V: Version, State: updateWaiting}, true, nil // what can't be read can still be given up
			}
			if err != nil {
				return err
			}
			if !ok || d.State != updateWaiting {
				own = ok && d.Token == token
				return errStale
			}
			docs[n] = d
		}
		if err := cause(t); err != nil {
			return err
		}
		now, err := t.Now()
		if err != nil {
			return err
		}
		for n, d := range docs {
			d.State, d.Left, d.Token, d.Reason = state, now, token, reason
			if state == updateDone {
				d.Raw = nil
			}
			if err := store.Put(t, keys[n], d); err != nil {
				return err
			}
			t.Drop(inboxIndex, ids[n])
			t.Add(inboxOld, ids[n], store.Micros(now))
		}
		return nil
	})
	return own, err
}

// handle runs the handler on d and commits what it causes, and returns errStale if others were faster.
func (i *Inbox) handle(ctx context.Context, d *Delivery, ids []string, token string) (err error) {
	defer i.rescue(ids[0], &err)
	if p, ok := i.cfg.Handler.(Preparer); ok && d.Prepared == nil {
		if d.Prepared, err = p.Prepare(ctx, d); err != nil {
			return err
		}
	}
	own, err := i.leave(ctx, ids, token, updateDone, "", func(t *store.Txn) error {
		d.after = nil
		return i.cfg.Handler.Handle(t, d)
	})
	if err != nil && (!own || !errors.Is(err, errStale)) {
		return err
	}
	i.handled.Add(int64(len(ids)))
	return nil
}

// effects runs what the handler wanted to happen after the commit.
func (i *Inbox) effects(ctx context.Context, d *Delivery, id string) {
	for _, f := range d.after {
		func() {
			var err error
			defer i.rescue(id, &err)
			f(ctx)
		}()
	}
}

// setAside gives updates up and says so.
func (i *Inbox) setAside(ctx context.Context, ids []string, a Aside) (err error) {
	defer i.rescue(ids[0], &err)
	reason := "handler"
	if errors.Is(a.Err, ErrUndecodable) {
		reason = "undecodable"
	}
	h, tell := i.cfg.Handler.(AsideHandler)
	token := rand.Text()
	put := func(told bool) error {
		_, err := i.leave(ctx, ids, token, updateAside, reason, func(t *store.Txn) error {
			if !told {
				return nil
			}
			for _, id := range ids {
				one := a
				one.Update = id
				if err := h.Aside(t, one); err != nil {
					return fmt.Errorf("%w: %w", errAsideHandler, err)
				}
			}
			return nil
		})
		return err
	}
	if err = put(tell); errors.Is(err, errAsideHandler) {
		i.cfg.Logger.Warn("chat not told of an update that was set aside", "update", ids[0], "err", err)
		err = put(false)
	}
	if err != nil {
		return err
	}
	i.aside.Add(int64(len(ids)))
	i.cfg.Logger.Warn("update set aside", "update", ids[0], "chat", a.Chat.Key(), "reason", reason, "err", a.Err)
	return nil
}

var errAsideHandler = errors.New("bot: aside handler")

// errPanic is what a handler's panic becomes: a bug in the handling of one update must not end the gateway.
var errPanic = errors.New("bot: handler panicked")

func (i *Inbox) rescue(id string, err *error) {
	if p := recover(); p != nil {
		i.cfg.Logger.Error("handler panicked", "update", id, "panic", fmt.Sprintf("%T", p), "stack", string(debug.Stack()))
		*err = errPanic
	}
}

// Prune forgets updates that left the inbox longer ago than Keep. Run calls it; it may be called from anywhere.
func (i *Inbox) Prune(ctx context.Context) error {
	for {
		n := 0
		err := store.Update(ctx, i.cfg.DB, func(t *store.Txn) error {
			now, err := t.Now()
			if err != nil {
				return err
			}
			old, err := t.Range(inboxOld, math.MinInt64, store.Micros(now.Add(-i.cfg.Keep)), pruneBatch)
			if err != nil {
				return err
			}
			n = len(old)
			for _, item := range old {
				t.Delete(updateKey(item.Member))
				t.Drop(inboxOld, item.Member)
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("bot: prune updates: %w", err)
		}
		if n < pruneBatch {
			return nil
		}
	}
}

const (
	pruneBatch = 200
	pruneEvery = 10 * time.Minute
)

// waitingRaw is the raw update of a stored document, if it still waits.
func waitingRaw(doc store.Doc) (raw []byte, waits bool, err error) {
	if doc.Rev == "" {
		return nil, false, nil
	}
	var d updateDoc
	if err := json.Unmarshal(doc.Value, &d); err != nil {
		return nil, false, fmt.Errorf("%w: stored: %T", ErrUndecodable, err)
	}
	return d.Raw, d.State == updateWaiting, nil
}
