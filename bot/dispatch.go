package bot

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"drawbridge/internal/store"

	"github.com/go-telegram/bot/models"
)

const (
	// handleTimeout bounds one call of a handler with its commit, prepareTimeout is added for what it fetches before.
	handleTimeout  = 30 * time.Second
	prepareTimeout = 3 * time.Minute
	retryMost      = 30 * time.Second
	// mergeMost bounds how many updates become one delivery.
	mergeMost = 32
	readBatch = 64
)

// inboxEntry is one waiting update in memory.
type inboxEntry struct {
	id     string
	update *models.Update // nil if it can't be decoded
	err    error          // why
	chat   ChatRef
	person int64
	lane   Lane
	seen   time.Time // by this process
	after  time.Time // not to be tried before
	tries  int       // failed
	token  string    // of the delivery that it leads
	ready  any       // what Prepare returned for the batch that it led
	size   int       // of that batch
}

type laneKey struct {
	chat ChatRef
	lane Lane
}

// chatLine is what waits in one lane of one chat.
type chatLine struct {
	queue []*inboxEntry
	busy  bool
}

// dispatcher is the state of one Run. One goroutine owns it.
type dispatcher struct {
	inbox *Inbox
	lines map[laneKey]*chatLine
	known map[string]struct{}
	last  int64 // the highest score that was read
	free  map[Lane]int
	done  chan outcome
	work  sync.WaitGroup
}

// outcome is what a worker reports.
type outcome struct {
	key   laneKey
	batch []*inboxEntry
	err   error
}

// Run hands waiting updates to the handler until ctx ends; then it lets running handlers finish (30 s at most) and
// returns nil. What still waits stays in the store for the next Run.
func (i *Inbox) Run(ctx context.Context) error {
	hints, err := i.cfg.DB.Listen(ctx, inboxIndex)
	if err != nil {
		return fmt.Errorf("bot: inbox: %w", err)
	}
	d := &dispatcher{
		inbox: i, lines: map[laneKey]*chatLine{}, known: map[string]struct{}{}, last: math.MinInt64,
		free: map[Lane]int{LaneControl: i.cfg.ControlWorkers, LaneOrdinary: i.cfg.Workers},
		done: make(chan outcome, i.cfg.ControlWorkers+i.cfg.Workers),
	}
	defer d.work.Wait()
	d.work.Go(func() {
		for sleep(ctx, pruneEvery) {
			if err := i.Prune(ctx); err != nil && ctx.Err() == nil {
				i.cfg.Logger.Warn("old updates not pruned", "err", err)
			}
		}
	})
	d.loop(ctx, hints)
	return nil
}

func (d *dispatcher) loop(ctx context.Context, hints <-chan store.Message) {
	cfg := &d.inbox.cfg
	full := time.NewTimer(0)
	defer full.Stop()
	wake := time.NewTimer(time.Hour)
	defer wake.Stop()
	failing := false
	scan := func(from int64) {
		err := d.scan(ctx, from)
		if err != nil && ctx.Err() == nil && !failing {
			cfg.Logger.Warn("inbox can't be read", "err", err)
		}
		failing = err != nil
	}
	for {
		select {
		case <-ctx.Done():
			return
		case _, open := <-hints:
			if !open {
				hints = nil
				continue
			}
			scan(d.last)
		case <-full.C:
			scan(math.MinInt64)
			full.Reset(cfg.Reread)
		case o := <-d.done:
			d.settle(o)
		case <-wake.C:
		}
		wake.Reset(d.start(ctx))
	}
}

// scan reads what waits from a score on. Arrivals never get a score below an older one's, so a hint needs only the tail.
func (d *dispatcher) scan(ctx context.Context, from int64) error {
	db := d.inbox.cfg.DB
	items, err := db.Range(ctx, inboxIndex, from, store.MaxScore, 0)
	if err != nil {
		return err
	}
	var fresh []store.Item
	for _, item := range items {
		if _, known := d.known[item.Member]; !known {
			fresh = append(fresh, item)
		}
	}
	for len(fresh) > 0 {
		batch := fresh[:min(readBatch, len(fresh))]
		fresh = fresh[len(batch):]
		var keys []string
		for _, item := range batch {
			keys = append(keys, updateKey(item.Member))
		}
		_, docs, err := db.Read(ctx, keys...)
		if err != nil {
			return err
		}
		for n, item := range batch {
			d.add(item, docs[n])
			d.last = max(d.last, item.Score)
		}
	}
	return nil
}

func (d *dispatcher) add(item store.Item, doc store.Doc) {
	e := &inboxEntry{id: item.Member, lane: LaneOrdinary, seen: time.Now(), token: rand.Text()}
	raw, waits, err := waitingRaw(doc)
	switch {
	case err != nil:
		e.err = err
	case !waits:
		return
	default:
		if e.update, e.err = decodeUpdate(raw); e.err != nil {
			e.chat, e.person = salvage(raw)
			break
		}
		e.chat, e.person = Origin(e.update)
		e.lane = d.inbox.cfg.Lane(e.update)
	}
	key := laneKey{e.chat, e.lane}
	l := d.lines[key]
	if l == nil {
		l = &chatLine{}
		d.lines[key] = l
	}
	l.queue = append(l.queue, e)
	d.known[e.id] = struct{}{}
}

// start gives work to free workers and returns how long nothing else will be due.
func (d *dispatcher) start(ctx context.Context) time.Duration {
	now := time.Now()
	next := time.Hour
	for key, l := range d.lines {
		if l.busy || d.free[key.lane] == 0 {
			continue // its end wakes the loop
		}
		batch, wait := d.pick(key.lane, l, now)
		if len(batch) == 0 {
			next = min(next, wait)
			continue
		}
		l.busy = true
		d.free[key.lane]--
		d.work.Go(func() {
			// A handler that began is let finish: its commit is guarded, and half of Prepare helps nobody.
			run, cancel := context.WithTimeout(context.WithoutCancel(ctx), handleTimeout+prepareTimeout)
			defer cancel()
			d.done <- outcome{key, batch, d.deliver(run, key, batch)}
		})
	}
	return next
}

// pick chooses what is handed over next, or says how long to wait for it. The queue is not empty.
func (d *dispatcher) pick(lane Lane, l *chatLine, now time.Time) (batch []*inboxEntry, wait time.Duration) {
	if lane == LaneControl {
		wait = time.Hour
		for _, e := range l.queue {
			if !e.after.After(now) {
				return []*inboxEntry{e}, 0
			}
			wait = min(wait, e.after.Sub(now))
		}
		return nil, wait
	}
	head := l.queue[0]
	if head.after.After(now) {
		return nil, head.after.Sub(now)
	}
	batch = []*inboxEntry{head}
	if head.update == nil || !openEnded(head.update) {
		return batch, 0
	}
	last, whole := head, false
	for _, e := range l.queue[1:] {
		// In a group, what others write in between does not cut a paste.
		if e.person != head.person || e.chat != head.chat {
			continue
		}
		if e.update == nil || len(batch) == mergeMost || !continues(last.update, e.update) {
			whole = true
			break
		}
		batch, last = append(batch, e), e
	}
	// What was tried before is not made larger by waiting again.
	if due := last.seen.Add(d.inbox.cfg.Merge); !whole && head.tries == 0 && openEnded(last.update) && due.After(now) {
		return nil, due.Sub(now)
	}
	return batch, 0
}

// deliver handles a batch, or sets it aside when there is no hope left.
func (d *dispatcher) deliver(ctx context.Context, key laneKey, batch []*inboxEntry) error {
	i, head := d.inbox, batch[0]
	ids := make([]string, len(batch))
	d0 := &Delivery{Chat: key.chat, Person: head.person, Lane: key.lane}
	if head.size == len(batch) {
		d0.Prepared = head.ready
	}
	for n, e := range batch {
		ids[n] = e.id
		d0.Updates = append(d0.Updates, e.update)
	}
	if head.err != nil && (head.update == nil || head.tries >= i.cfg.Tries) {
		return i.setAside(ctx, ids, Aside{Chat: head.chat, Person: head.person, Err: head.err})
	}
	if err := i.handle(ctx, d0, ids, head.token); err != nil {
		head.ready, head.size = d0.Prepared, len(batch)
		return err
	}
	i.effects(ctx, d0, head.id)
	return nil
}

// settle takes a worker's report.
func (d *dispatcher) settle(o outcome) {
	d.free[o.key.lane]++
	l, head := d.lines[o.key], o.batch[0]
	l.busy = false
	switch {
	case o.err == nil:
		d.forget(o.key, o.batch)
	case errors.Is(o.err, errStale):
		// Somebody else handled a part; the next scan finds what is left.
		d.forget(o.key, o.batch)
		d.last = math.MinInt64
	case errors.Is(o.err, store.ErrUnavailable), errors.Is(o.err, store.ErrClosed), head.update == nil:
		head.after = time.Now().Add(d.inbox.cfg.Retry)
	default:
		head.tries++
		head.err = o.err
		head.after = time.Now().Add(backoff(head.tries, d.inbox.cfg.Retry, retryMost))
		if head.tries >= d.inbox.cfg.Tries {
			head.after = time.Time{}
		}
		d.inbox.cfg.Logger.Debug("update not handled yet", "update", head.id, "chat", o.key.chat.Key(), "try", head.tries, "err", o.err)
	}
}

func (d *dispatcher) forget(key laneKey, batch []*inboxEntry) {
	l := d.lines[key]
	gone := map[*inboxEntry]bool{}
	for _, e := range batch {
		gone[e] = true
		delete(d.known, e.id)
	}
	var rest []*inboxEntry
	for _, e := range l.queue {
		if !gone[e] {
			rest = append(rest, e)
		}
	}
	if l.queue = rest; len(rest) == 0 {
		delete(d.lines, key)
	}
}
