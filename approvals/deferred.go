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

// settleEvery is how often a host closes its deferred approvals that were decided: nobody waits for that.
const settleEvery = time.Minute

// nobody is the incarnation of an approval for which no process waits.
const nobody = "nobody"

// Deferred reports whether nobody waits for the approval: its turn has ended, and what is decided is carried out by a
// turn of its own. It needs no beat and outlives its host; only its deadline ends it.
func (r Record) Deferred() bool { return r.Incarnation == nobody }

// ErrMalformed says that a question cannot be asked, however often it is tried.
var ErrMalformed = errors.New("approvals: malformed question")

// PostIn publishes an approval for which nobody waits, as part of the caller's transaction, and returns its id. p is the
// policy in force. The question goes to a person whatever the table says; q.Check is not called. A question that cannot
// be asked is ErrMalformed.
func (s *Service) PostIn(t *store.Txn, run Run, p runner.Policy, q runner.Question) (ID, error) {
	if s.c.Host == "" {
		return "", errNoHost
	}
	a, problem := prepare(run, q)
	if problem != "" {
		return "", fmt.Errorf("approvals: post a %s of %s: %w: %s", q.Kind, run.Chat, ErrMalformed, problem)
	}
	now, err := t.Now()
	if err != nil {
		return "", err
	}
	r := Record{
		V: Version, ID: NewID(s.c.Host), Incarnation: nobody, Chat: run.Chat, Project: run.Project, Session: run.Session, Run: run.ID, Turn: run.Turn,
		Runtime: run.Runtime, Prompted: run.Prompted, Background: run.Background, Question: a.q, Mode: p.Mode, Interaction: p.Interaction,
		Digest: digest(a.q, ""), State: Open,
	}
	r = s.timed(r, run, now)
	if err := store.Put(t, AskKey(r.ID), r); err != nil {
		return "", err
	}
	t.Add(OpenIndex(s.c.Host), string(r.ID), store.Micros(r.Deadline))
	if s.c.Opened != nil {
		return r.ID, s.c.Opened(t, r)
	}
	return r.ID, nil
}

// settleDeferred closes the deferred approvals of this host that were decided.
func (s *Service) settleDeferred(ctx context.Context) error {
	asks, err := s.db.Range(ctx, OpenIndex(s.c.Host), math.MinInt64, math.MaxInt64, 0)
	if err != nil {
		return err
	}
	for _, i := range asks {
		id := ID(i.Member)
		err := store.Update(ctx, s.db, func(t *store.Txn) error {
			r, ok, err := store.Get[Record](t, AskKey(id))
			if err != nil || !ok || !r.Deferred() || r.State != Open {
				return err
			}
			d, err := peekDecision(t, id)
			if err != nil || d == nil {
				return err
			}
			if r.Kept {
				return s.forgetKept(t, r, *d)
			}
			if d.Source == runner.SourceTimeout {
				return s.moveIn(t, r, Expired, nil)
			}
			return s.moveIn(t, r, Handed, d)
		})
		if err != nil && !errors.Is(err, store.ErrDamaged) {
			return fmt.Errorf("approvals: settle %s: %w", id, err)
		}
	}
	return nil
}
