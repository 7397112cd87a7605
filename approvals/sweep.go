package approvals

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"drawbridge/internal/store"
	"drawbridge/runner"
)

// sweptAsk is what a gateway remembers of an open approval between two sweeps, so that it need not read it each time.
type sweptAsk struct {
	incarnation string
	kept        bool // it is read each time, since a host may take it up
	done        bool // nothing is left for a gateway to do
}

type openAsk struct {
	id       ID
	deadline int64
}

// RunSweep sweeps until ctx ends. Any number of gateways may do so at once.
func (s *Service) RunSweep(ctx context.Context) error {
	ticker := time.NewTicker(s.c.SweepEvery)
	defer ticker.Stop()
	var pruned time.Time
	failing := false
	for {
		err := s.Sweep(ctx)
		if err == nil && time.Since(pruned) >= pruneEvery {
			pruned = time.Now()
			err = s.pruneGateway(ctx)
		}
		if err != nil && !failing && ctx.Err() == nil {
			s.log.WarnContext(ctx, "approvals can't be swept", "err", err)
		}
		failing = err != nil
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// Sweep makes the decision of every approval that is overdue or whose asker is gone: a denial. It can be repeated and run
// by any gateway. It takes nobody for dead unless this process has itself seen the store answer, without a gap, for
// DeadAfter, which takes repeated sweeps.
func (s *Service) Sweep(ctx context.Context) error {
	s.sweeping.Lock()
	defer s.sweeping.Unlock()
	if err := s.sweep(ctx); err != nil {
		return fmt.Errorf("approvals: sweep: %w", err)
	}
	return nil
}

func (s *Service) sweep(ctx context.Context) error {
	hosts, err := s.hosts(ctx)
	if err != nil {
		return err
	}
	// A read even where there is no host: it is by its answers that the store is seen.
	if _, _, err := s.db.Read(ctx); err != nil {
		return err
	}
	var failed error
	for _, host := range hosts {
		if err := s.sweepHost(ctx, host); err != nil {
			failed = errors.Join(failed, err)
		}
	}
	return errors.Join(failed, s.forgetSecrets(ctx))
}

// forgetSecrets removes secret answers that the host has taken, or never will.
func (s *Service) forgetSecrets(ctx context.Context) error {
	items, err := s.db.Range(ctx, SecretsIndex, math.MinInt64, math.MaxInt64, 0)
	if err != nil {
		return err
	}
	for _, i := range items {
		id := ID(i.Member)
		err := store.Update(ctx, s.db, func(t *store.Txn) error {
			r, ok, err := store.Get[Record](t, AskKey(id))
			if err != nil {
				return err
			}
			d, decided, err := store.Get[Decision](t, DecisionKey(id))
			if err != nil || (ok && d.Gone.IsZero() && (r.State == Open || r.State == Closing)) {
				return err
			}
			t.Drop(SecretsIndex, i.Member)
			if !decided {
				return nil
			}
			if d, _ = d.withoutSecrets(r.Question); !ok {
				d.Answers = nil // which of them are secret is not known any more
			}
			return store.Put(t, DecisionKey(id), d)
		})
		if err != nil {
			return fmt.Errorf("secrets of %s: %w", id, err)
		}
	}
	return nil
}

func (s *Service) sweepHost(ctx context.Context, host string) error {
	asks, err := s.openAsks(ctx, host)
	if err != nil {
		return err
	}
	before, known := s.swept[host], make(map[ID]*sweptAsk, len(asks))
	s.swept[host] = known
	if len(asks) == 0 {
		return nil
	}
	var beat Beat
	var now time.Time
	err = s.read(ctx, func(t *store.Txn) (err error) {
		if beat, _, err = store.Peek[Beat](t, BeatKey(host)); err != nil {
			return err
		}
		now, err = t.Now()
		return err
	})
	if err != nil {
		return err
	}
	var failed error
	for _, ask := range asks {
		a := before[ask.id]
		if a == nil || a.kept {
			r, _, err := s.Get(ctx, ask.id)
			if err != nil && !errors.Is(err, store.ErrDamaged) {
				failed = errors.Join(failed, err)
				continue
			}
			if err != nil {
				s.log.WarnContext(ctx, "a stored approval is damaged and left out", "approval", ask.id, "err", err)
			}
			a = &sweptAsk{incarnation: r.Incarnation, kept: r.Kept, done: r.ID == ""}
		}
		known[ask.id] = a
		if a.done || (ask.deadline > store.Micros(now) && s.present(beat, now, a.incarnation) == alive) {
			continue
		}
		if a.done, err = s.sweepAsk(ctx, ask.id); err != nil {
			failed = errors.Join(failed, err)
		}
	}
	return failed
}

// sweepAsk looks again within one Txn, decides, and reports whether nothing is left to do for a gateway.
func (s *Service) sweepAsk(ctx context.Context, id ID) (done bool, err error) {
	err = store.Update(ctx, s.db, func(t *store.Txn) error {
		if err := t.Load(AskKey(id), DecisionKey(id)); err != nil {
			return err
		}
		r, ok, err := store.Get[Record](t, AskKey(id))
		if err != nil {
			return err
		}
		if done = !ok || (r.State != Open && r.State != Closing); done {
			return nil
		}
		d, decided, err := store.Get[Decision](t, DecisionKey(id))
		if err != nil {
			return err
		}
		beat, _, err := store.Peek[Beat](t, BeatKey(id.Host()))
		if err != nil {
			return err
		}
		now, err := t.Now()
		if err != nil {
			return err
		}
		gone := s.present(beat, now, r.Incarnation) != alive
		if r.Kept && decided && !now.Before(r.Deadline) {
			gone = true // what was not taken up in time is not run any more
		}
		switch {
		case decided && d.Decision == runner.Allowed && gone && d.Gone.IsZero():
			done = true
			return s.markGone(t, r, d, now)
		case decided:
			done = d.Decision != runner.Allowed || !d.Gone.IsZero()
			return nil
		case gone:
			done = true
			return s.putDecision(t, r, closing(r, runner.SourceShutdown, now), "")
		case !now.Before(r.Deadline):
			done = true
			return s.putDecision(t, r, closing(r, runner.SourceTimeout, now), "")
		}
		return nil
	})
	if err != nil {
		return false, fmt.Errorf("%s: %w", id, err)
	}
	return done, nil
}

func closing(r Record, source runner.Source, now time.Time) Decision {
	return Decision{V: Version, ID: r.ID, Decision: runner.Denied, Source: source, Digest: r.Digest, At: now}
}

// markGone adds to an allowing decision that the host died before it took it. A host that was only slow and reads this
// takes it as a denial; one that has already confirmed makes this commit fail.
func (s *Service) markGone(t *store.Txn, r Record, d Decision, now time.Time) error {
	d.Gone = now
	if err := store.Put(t, DecisionKey(r.ID), d); err != nil {
		return err
	}
	t.Publish(DecidedTopic(r.ID.Host()), []byte(r.ID))
	if s.c.Decided != nil {
		return s.c.Decided(t, r, d)
	}
	return nil
}

func (s *Service) hosts(ctx context.Context) ([]string, error) {
	items, err := s.db.Range(ctx, HostsIndex, math.MinInt64, math.MaxInt64, 0)
	if err != nil {
		return nil, err
	}
	hosts := make([]string, 0, len(items))
	for _, i := range items {
		hosts = append(hosts, i.Member)
	}
	return hosts, nil
}

// openAsks leaves out what a host may not have put there: the id of another host's approval.
func (s *Service) openAsks(ctx context.Context, host string) ([]openAsk, error) {
	items, err := s.db.Range(ctx, OpenIndex(host), math.MinInt64, math.MaxInt64, 0)
	if err != nil {
		return nil, err
	}
	asks := make([]openAsk, 0, len(items))
	for _, i := range items {
		if id := ID(i.Member); id.Host() == host {
			asks = append(asks, openAsk{id: id, deadline: i.Score})
		}
	}
	return asks, nil
}

// pruneGateway forgets old decisions and audit lines. A decision outlives its record, which the host forgets; one whose
// record is still open is kept.
func (s *Service) pruneGateway(ctx context.Context) error {
	now, _, err := s.db.Read(ctx)
	if err != nil {
		return err
	}
	for {
		old, err := s.db.Range(ctx, DecisionsIndex, math.MinInt64, store.Micros(now.Add(-keep-24*time.Hour)), pruneMost)
		if err != nil {
			return err
		}
		if len(old) == 0 {
			break
		}
		for _, i := range old {
			if err := s.forgetDecision(ctx, ID(i.Member), now); err != nil {
				return err
			}
		}
	}
	return s.pruneAudit(ctx, AuditIndex, now)
}

func (s *Service) forgetDecision(ctx context.Context, id ID, now time.Time) error {
	return store.Update(ctx, s.db, func(t *store.Txn) error {
		r, ok, err := store.Get[Record](t, AskKey(id))
		if err != nil && !errors.Is(err, store.ErrDamaged) {
			return err
		}
		if ok && (r.State == Open || r.State == Closing) {
			t.Add(DecisionsIndex, string(id), store.Micros(now))
			return nil
		}
		t.Delete(DecisionKey(id))
		t.Drop(DecisionsIndex, string(id))
		return nil
	})
}
