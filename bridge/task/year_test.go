package task

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"drawbridge/bridge"
	"drawbridge/internal/store"
	"drawbridge/policy"
)

// mortal is the store as one process sees it. The process dies at one of its calls, before or after that had its effect, and
// then every call fails.
type mortal struct {
	store.DB
	mu    sync.Mutex
	left  int  // calls until it dies
	after bool // the call at which it dies has its effect
	dead  bool
}

// call reports whether a call has its effect, and how it ends.
func (m *mortal) call() (does bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.dead {
		return false, store.ErrClosed
	}
	if m.left--; m.left >= 0 {
		return true, nil
	}
	m.dead = true
	return m.after, store.ErrClosed
}

func (m *mortal) dies() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.dead
}

func (m *mortal) Read(ctx context.Context, keys ...string) (time.Time, []store.Doc, error) {
	if _, err := m.call(); err != nil {
		return time.Time{}, nil, err
	}
	return m.DB.Read(ctx, keys...)
}

func (m *mortal) Range(ctx context.Context, index string, lo, hi int64, limit int) ([]store.Item, error) {
	if _, err := m.call(); err != nil {
		return nil, err
	}
	return m.DB.Range(ctx, index, lo, hi, limit)
}

func (m *mortal) Commit(ctx context.Context, b store.Batch) error {
	does, err := m.call()
	if does {
		return errors.Join(m.DB.Commit(ctx, b), err)
	}
	return err
}

// omitted is what a test keeps of an Omitted event, in the commit of which it is part.
type omitted struct {
	Schedule string
	Omission
}

// TestAYearOfSchedules lets a year pass for three gateways that die at random calls of the store, are away for days at
// times, and see the clock step forwards and back. Each planned time is fired exactly once or part of exactly one report.
func TestAYearOfSchedules(t *testing.T) {
	t.Parallel()
	for seed := range uint64(1) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { yearOfSchedules(t, rand.New(rand.NewPCG(seed, 5))) })
		})
	}
}

func yearOfSchedules(t *testing.T, r *rand.Rand) {
	w := newWorld(t)
	defer w.down()
	w.host("h1")
	synctest.Wait()
	time.Sleep(time.Second)
	w.settle("h1", policy.ApprovalRequired)
	w.hosts["h1"].stop() // what is begun stays as it is: only the firing counts here
	k := w.keeper()
	w.update(func(tx *store.Txn) error { return k.chats.SetInteraction(tx, home, policy.Plan) }) // nothing waits for the folder
	clock := w.clock()
	start := time.Now()
	for zone, lines := range map[string][]string{
		"Europe/Berlin": {"30 2 * * *", "0 9 * * 1-5", "15 4,16 * * *"}, "America/New_York": {"30 1 * * *", "30 2 * * 0"}, "Australia/Lord_Howe": {"0 */12 * * *"}, "UTC": {"0 0 1 * *"},
	} {
		for i, line := range lines {
			spec, err := ParseCron(line, zone, start)
			if err != nil {
				t.Fatal(err)
			}
			w.plan(NewSchedule{Spec: spec, Zone: zone, Missed: []Missed{Late, Skip}[i%2]})
		}
	}
	w.plan(NewSchedule{Spec: Spec{Every: 17 * time.Hour, From: start}})
	w.plan(NewSchedule{Spec: Spec{Every: 45 * time.Minute, From: start, Until: start.Add(10 * 24 * time.Hour)}, Missed: Skip})
	w.plan(NewSchedule{Spec: Spec{At: start.Add(100 * 24 * time.Hour)}})
	gateways := make([]*Service, 3)
	stores := make([]*mortal, 3)
	kills := 0
	for time.Since(start) < 366*24*time.Hour {
		switch n := r.IntN(1000); {
		case n < 4:
			time.Sleep(time.Duration(r.IntN(5*24)) * time.Hour) //nolint:forbidigo // in a bubble; all of them are away
		case n < 10:
			clock.step(time.Duration(r.IntN(240)-120) * time.Minute)
		default:
			time.Sleep(time.Duration(1+r.IntN(600)) * time.Minute) //nolint:forbidigo // in a bubble
		}
		var all sync.WaitGroup
		for i := range gateways {
			if stores[i] == nil || stores[i].dies() {
				stores[i] = &mortal{DB: w.db, left: r.IntN(60), after: r.IntN(2) == 0}
				gateways[i] = w.fires(stores[i])
				kills++
			}
			if r.IntN(4) > 0 {
				all.Go(func() { _ = gateways[i].Step(context.Background()) }) // it may die
			}
		}
		all.Wait()
		if r.IntN(4) > 0 {
			w.endAll()
		}
	}
	w.everyTimeOnce(start, kills)
}

// stepping is a clock that may be set.
type stepping struct {
	mu  sync.Mutex
	off time.Duration
}

func (c *stepping) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.off)
}

func (c *stepping) step(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.off += d
}

// clock gives the store a clock that may be set.
func (w *world) clock() *stepping {
	c := &stepping{}
	w.db.SetClock(c.now)
	return c
}

func (w *world) plan(n NewSchedule) {
	k := w.keeper()
	n.Work = Work{Steps: []string{"do it"}, By: ada}
	w.update(func(t *store.Txn) error { _, err := k.tasks.AddSchedule(t, home, n); return err })
}

// fires is a gateway that is told when to look.
func (w *world) fires(db store.DB) *Service {
	chats := bridge.NewChats(bridge.ChatsConfig{DB: db, Logger: slog.New(slog.DiscardHandler), Approvals: w.keeper().approvals, DefaultRuntime: "script"})
	return New(Config{DB: db, Chats: chats, PerHost: 1 << 20, Notify: func(t *store.Txn, e Event) error {
		if e.Kind != Omitted {
			return nil
		}
		key := "test:omitted:" + e.Schedule.ID + ":" + strconv.FormatInt(e.Omission.From.Unix(), 10)
		if _, twice, err := store.Get[omitted](t, key); err != nil || twice {
			return errors.Join(err, errors.New("reported twice"))
		}
		t.Add("test:omitted", key, e.Omission.From.Unix())
		return store.Put(t, key, omitted{e.Schedule.ID, *e.Omission})
	}})
}

// endAll ends what goes on, so that nothing overlaps.
func (w *world) endAll() {
	k := w.keeper()
	w.update(func(t *store.Txn) error {
		for _, index := range []string{pendingIndex, runningIndex} {
			items, err := t.Range(index, 0, maxScore, 0)
			if err != nil {
				return err
			}
			for _, it := range items {
				if _, _, err := k.tasks.Cancel(t, it.Member, "Ada"); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// everyTimeOnce holds what was fired and what was reported against what was planned.
func (w *world) everyTimeOnce(start time.Time, kills int) {
	ctx := context.Background()
	seen := map[string]map[int64]int{} // by schedule and planned time
	k := w.keeper()
	fired := w.tasks()
	for _, task := range fired {
		if seen[task.Schedule] == nil {
			seen[task.Schedule] = map[int64]int{}
		}
		seen[task.Schedule][task.Planned.Unix()]++
	}
	items, err := w.db.Range(ctx, "test:omitted", 0, maxScore, 0)
	if err != nil {
		w.t.Fatal(err)
	}
	reported := 0
	w.update(func(t *store.Txn) error {
		for _, it := range items {
			o, _, err := store.Get[omitted](t, it.Member)
			if err != nil {
				return err
			}
			sch, err := k.tasks.Schedule(t, o.Schedule)
			if err != nil {
				return err
			}
			loc, err := Zone(sch.Zone)
			if err != nil {
				return err
			}
			n, at := 0, o.From.Add(-time.Second)
			for {
				next, more := sch.Spec.Next(loc, at)
				if !more || next.After(o.To) {
					break
				}
				if seen[sch.ID] == nil {
					seen[sch.ID] = map[int64]int{}
				}
				seen[sch.ID][next.Unix()]++
				n, at = n+1, next
			}
			if n != o.Count {
				w.t.Errorf("%s: %d times are reported from %s to %s, which are %d", sch.ID, o.Count, o.From, o.To, n)
			}
			reported += n
		}
		return nil
	})
	var schedules []Schedule
	w.update(func(t *store.Txn) (err error) { schedules, err = k.tasks.Schedules(t, home); return err })
	planned := 0
	for _, sch := range schedules {
		loc, err := Zone(sch.Zone)
		if err != nil {
			w.t.Fatal(err)
		}
		at := start
		for {
			next, more := sch.Spec.Next(loc, at)
			if !more || !sch.Next.IsZero() && !next.Before(sch.Next) {
				break
			}
			planned++
			if n := seen[sch.ID][next.Unix()]; n != 1 {
				w.t.Errorf("%s %+v: %s is accounted for %d times", sch.ID, sch.Spec, next, n)
			}
			delete(seen[sch.ID], next.Unix())
			at = next
		}
		for at := range seen[sch.ID] {
			w.t.Errorf("%s: %s was never planned", sch.ID, time.Unix(at, 0).UTC())
		}
	}
	w.t.Logf("%d planned times: %d fired, %d reported; %d gateways died", planned, len(fired), reported, kills-3)
	if len(fired) < planned/4 || reported == 0 {
		w.t.Errorf("of %d planned times %d were fired and %d reported: the test shows little", planned, len(fired), reported)
	}
}
