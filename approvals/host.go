package approvals

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"sync"
	"time"

	"drawbridge/internal/store"
)

// errNoHost says that Run or Ask was called on a process that is only a gateway.
var errNoHost = errors.New("approvals: this process is no host")

// Run is the host's half: it closes what an earlier incarnation left open, says every Beat that the host lives, wakes
// waiters when a decision is announced, closes what could not be closed before, and forgets old records. It returns nil
// when ctx has ended. A store that is away is waited for. When another incarnation of the host has taken over, every
// open question of this one is denied.
func (s *Service) Run(ctx context.Context) error {
	if s.c.Host == "" || s.c.Incarnation == "" {
		return errNoHost
	}
	var g sync.WaitGroup
	defer g.Wait()
	g.Go(func() { s.listen(ctx) })
	ticker := time.NewTicker(s.c.Beat)
	defer ticker.Stop()
	var pruned, beaten, settled time.Time
	failing := false
	for {
		err := s.live(ctx)
		if err == nil && time.Since(beaten) > s.c.DeadAfter {
			s.wake("") // somebody may have taken this host for dead meanwhile
		}
		if err == nil {
			beaten = time.Now()
			err = s.closeLeft(ctx)
		}
		if err == nil && time.Since(pruned) >= pruneEvery {
			pruned = time.Now()
			err = s.pruneHost(ctx)
		}
		if err == nil && time.Since(settled) >= settleEvery {
			settled = time.Now()
			err = s.settleDeferred(ctx)
		}
		if errors.Is(err, errFenced) {
			s.fence()
		}
		if err != nil && !failing && ctx.Err() == nil {
			s.log.WarnContext(ctx, "the host can't say that it lives", "err", err)
		}
		failing = err != nil
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// live says that this host lives. The first time it takes over from an earlier incarnation.
func (s *Service) live(ctx context.Context) error {
	if err := s.recover(ctx); err != nil {
		return err
	}
	return s.beat(ctx, false)
}

// beat commits the host's beat. Only the take-over may replace another incarnation's: one that was replaced must not
// come back.
func (s *Service) beat(ctx context.Context, takeOver bool) error {
	err := store.Update(ctx, s.db, func(t *store.Txn) error {
		b, _, err := store.Get[Beat](t, BeatKey(s.c.Host))
		if err != nil {
			return err
		}
		if b.Incarnation != s.c.Incarnation && !takeOver {
			return errFenced
		}
		now, err := t.Now()
		if err != nil {
			return err
		}
		t.Add(HostsIndex, s.c.Host, store.Micros(now))
		return store.Put(t, BeatKey(s.c.Host), Beat{V: Version, Incarnation: s.c.Incarnation, At: now})
	})
	if err != nil {
		return fmt.Errorf("approvals: beat of %s: %w", s.c.Host, err)
	}
	return nil
}

// recover takes over from an earlier incarnation, once: it says that this one lives, so that nothing of the earlier one
// can be decided any more, and then closes what that has left open.
func (s *Service) recover(ctx context.Context) error {
	if s.c.Host == "" || s.c.Incarnation == "" {
		return errNoHost
	}
	s.recovery.Lock()
	defer s.recovery.Unlock()
	if s.ready {
		return nil
	}
	if err := s.beat(ctx, true); err != nil {
		return err
	}
	asks, err := s.db.Range(ctx, OpenIndex(s.c.Host), math.MinInt64, math.MaxInt64, 0)
	if err != nil {
		return fmt.Errorf("approvals: recover %s: %w", s.c.Host, err)
	}
	for _, i := range asks {
		if err := s.recoverAsk(ctx, ID(i.Member)); err != nil {
			return fmt.Errorf("approvals: recover %s: %w", i.Member, err)
		}
	}
	s.ready = true
	return nil
}

func (s *Service) recoverAsk(ctx context.Context, id ID) error {
	return store.Update(ctx, s.db, func(t *store.Txn) error {
		if err := t.Load(AskKey(id)); err != nil {
			return err
		}
		r, ok, err := store.Get[Record](t, AskKey(id))
		if err != nil {
			s.log.ErrorContext(ctx, "a stored approval is damaged and left out", "approval", id, "err", err)
		} else if ok && r.ID == id && (r.State == Open || r.State == Closing) {
			if r.Deferred() {
				s.knowKept(r)
				return nil // it outlives whoever asked
			}
			return s.moveIn(t, r, Lost, nil)
		}
		t.Drop(OpenIndex(s.c.Host), string(id))
		return nil
	})
}

// listen hands hints to the waiters until ctx ends.
func (s *Service) listen(ctx context.Context) {
	failing := false
	for ctx.Err() == nil {
		hints, err := s.db.Listen(ctx, DecidedTopic(s.c.Host))
		if err != nil && !failing && ctx.Err() == nil {
			s.log.WarnContext(ctx, "decisions can't be listened for", "err", err)
		}
		if failing = err != nil; !failing {
			s.wake("")
			for m := range hints {
				s.wake(ID(m.Body))
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(s.c.Beat):
		}
	}
}

// closeLeft closes what could not be closed when its agent left.
func (s *Service) closeLeft(ctx context.Context) error {
	s.mu.Lock()
	left := maps.Clone(s.left)
	s.mu.Unlock()
	for id, to := range left {
		if err := s.move(ctx, id, to, nil); err != nil && !errors.Is(err, errState) {
			return err
		}
		s.mu.Lock()
		delete(s.left, id)
		s.mu.Unlock()
	}
	return nil
}

func (s *Service) pruneHost(ctx context.Context) error {
	now, _, err := s.db.Read(ctx)
	if err != nil {
		return err
	}
	for {
		old, err := s.db.Range(ctx, ResolvedIndex(s.c.Host), math.MinInt64, store.Micros(now.Add(-keep)), pruneMost)
		if err != nil {
			return err
		}
		if len(old) == 0 {
			break
		}
		err = store.Update(ctx, s.db, func(t *store.Txn) error {
			for _, i := range old {
				t.Delete(AskKey(ID(i.Member)))
				t.Drop(ResolvedIndex(s.c.Host), i.Member)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return s.pruneAudit(ctx, HostAuditIndex(s.c.Host), now)
}
