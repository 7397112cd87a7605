package approvals

import (
	"drawbridge/internal/store"
	"drawbridge/runner"
)

// RefuseIn denies, on a gateway and without anybody being asked, an approval that is open: what it is about was found to be
// impossible. reason is a sentence for the agent. It reports false, and decides nothing, where there is nothing to decide
// any more.
func (s *Service) RefuseIn(t *store.Txn, id ID, reason string) (bool, error) {
	if id.Host() == "" {
		return false, nil
	}
	if err := t.Load(AskKey(id), DecisionKey(id)); err != nil {
		return false, err
	}
	r, ok, err := store.Get[Record](t, AskKey(id))
	if err != nil || !ok {
		return false, err
	}
	if _, decided, err := store.Get[Decision](t, DecisionKey(id)); err != nil || decided {
		return false, err
	}
	now, why, err := s.decidable(t, r)
	if err != nil || why != "" {
		return false, err
	}
	return true, s.putDecision(t, r, Decision{
		V: Version, ID: r.ID, Decision: runner.Denied, Source: runner.SourceRuntime, Reason: reason, Digest: r.Digest, At: now,
	}, "")
}

// made has a proposal made that d allows. What can't be made is denied instead.
func (s *Service) made(t *store.Txn, r Record, d Decision) (Decision, error) {
	if r.Question.Kind != runner.KindProposal || d.Decision != runner.Allowed {
		return d, nil
	}
	problem := "Nothing makes tasks here."
	if s.c.Make != nil {
		var err error
		if problem, err = s.c.Make(t, r, d); err != nil {
			return d, err
		}
	}
	if problem != "" {
		d.Decision, d.Source, d.Action, d.Reason = runner.Denied, runner.SourceRuntime, "", problem
		d.By, d.Name = 0, ""
	}
	return d, nil
}
