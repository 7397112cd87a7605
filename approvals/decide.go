package approvals

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"drawbridge/internal/store"
	"drawbridge/policy"
	"drawbridge/runner"
)

// maxReason bounds a person's reason and answers in bytes; a Telegram message is never longer.
const maxReason = 16 << 10

// Tap is a person's wish to decide an approval.
type Tap struct {
	ID     ID
	Chat   string // where it was tapped; it must be the chat of the approval
	Person Person
	// Action is the id of the button. It may be empty for a question that is answered by Answers.
	Action string
	// Reason is the person's words for the agent.
	Reason  string
	Answers map[string][]string
	// Token names this tap, so that its second delivery recognises the decision as its own. Empty recognises nothing.
	Token string
	// Under is set when one tap allows several approvals because the mode was raised: each is decided only if this policy
	// allows it without asking, and what is human-only never is.
	Under *runner.Policy
}

// Refusal says why a tap decides nothing.
type Refusal string

// The refusals. None of them is given to somebody who was in time and allowed to.
const (
	RefusedUnknown    Refusal = "unknown"        // no such approval
	RefusedForbidden  Refusal = "forbidden"      // the person may not decide
	RefusedOwners     Refusal = "owners-only"    // only an owner may give this
	RefusedChat       Refusal = "wrong-chat"     // it belongs to another chat
	RefusedAction     Refusal = "no-such-action" // it has no such button
	RefusedAnswers    Refusal = "no-such-answer" // an answer is missing, or is none that was offered
	RefusedGone       Refusal = "gone"           // the agent is gone
	RefusedOverdue    Refusal = "overdue"        // the deadline has passed
	RefusedWithdrawn  Refusal = "withdrawn"      // the agent took it back
	RefusedChanged    Refusal = "changed"        // it was asked again under another id
	RefusedHumanOnly  Refusal = "human-only"     // it has to be decided by itself, not with others
	RefusedNotAllowed Refusal = "not-allowed"    // the policy of Under does not allow it
)

// Outcome is what a tap came to. Exactly one of these is so: it Won; somebody else's Decision stands; it was Refused.
// Record is set unless the approval is unknown or the chat is wrong.
type Outcome struct {
	Won      bool
	Record   Record
	Decision *Decision
	Refused  Refusal
}

// Decide makes the decision of an approval, or says why not. Of any number of callers in any number of processes exactly
// one wins; the others get the decision that stands. An error means that the outcome is not known; the same Tap with
// its Token can be repeated safely.
func (s *Service) Decide(ctx context.Context, tap Tap) (Outcome, error) {
	var o Outcome
	err := store.Update(ctx, s.db, func(t *store.Txn) (err error) {
		o, err = s.DecideIn(t, tap)
		return err
	})
	if err != nil {
		return Outcome{}, fmt.Errorf("approvals: decide %s: %w", tap.ID, err)
	}
	return o, nil
}

// DecideIn is Decide within a Txn of the caller. The Outcome holds only if that Txn is committed.
func (s *Service) DecideIn(t *store.Txn, tap Tap) (Outcome, error) {
	o, err := s.decideIn(t, tap)
	if err != nil && !errors.Is(err, store.ErrConflict) {
		s.witness.gap()
	}
	return o, err
}

func (s *Service) decideIn(t *store.Txn, tap Tap) (Outcome, error) {
	if tap.ID.Host() == "" {
		return Outcome{Refused: RefusedUnknown}, nil
	}
	if err := t.Load(AskKey(tap.ID), DecisionKey(tap.ID)); err != nil {
		return Outcome{}, err
	}
	r, ok, err := store.Get[Record](t, AskKey(tap.ID))
	if err != nil {
		return Outcome{}, err
	}
	switch {
	case !ok:
		return Outcome{Refused: RefusedUnknown}, nil
	case r.Chat != tap.Chat:
		return Outcome{Refused: RefusedChat}, nil
	case !tap.Person.Role.CanTap() || tap.Person.ID == 0:
		return Outcome{Refused: RefusedForbidden, Record: r}, nil
	}
	d, decided, err := store.Get[Decision](t, DecisionKey(tap.ID))
	if err != nil {
		return Outcome{}, err
	}
	if decided {
		return Outcome{Won: tap.Token != "" && d.Token == tap.Token, Record: r, Decision: &d}, nil
	}
	now, why, err := s.decidable(t, r)
	if err != nil || why != "" {
		return Outcome{Refused: why, Record: r}, err
	}
	action, why := choose(r, tap)
	if why != "" {
		return Outcome{Refused: why, Record: r}, nil
	}
	d = Decision{
		V: Version, ID: r.ID, Decision: runner.Denied, Action: action.ID, Source: runner.SourceUser, By: tap.Person.ID,
		Name: tap.Person.Name, Reason: strings.ToValidUTF8(tap.Reason, "\ufffd"), Answers: tap.Answers, Digest: r.Digest, At: now, Token: tap.Token,
	}
	if action.Allows {
		d.Decision = runner.Allowed
	}
	if d, err = s.made(t, r, d); err != nil {
		return Outcome{}, err
	}
	if action.Grant != "" {
		if err := giveIn(t, r, action.Grant, d); err != nil {
			return Outcome{}, err
		}
	}
	if err := s.putDecision(t, r, d, action.Grant); err != nil {
		return Outcome{}, err
	}
	return Outcome{Won: true, Record: r, Decision: &d}, nil
}

// decidable says whether r can still be decided by a person, and the store's time.
func (s *Service) decidable(t *store.Txn, r Record) (time.Time, Refusal, error) {
	beat, _, err := store.Peek[Beat](t, BeatKey(r.ID.Host()))
	if err != nil {
		return time.Time{}, "", err
	}
	now, err := t.Now()
	if err != nil {
		return time.Time{}, "", err
	}
	s.witness.saw(time.Now(), now)
	switch r.State {
	case Open:
	case Withdrawn:
		return now, RefusedWithdrawn, nil
	case Closing, Expired:
		return now, RefusedOverdue, nil
	case Changed:
		return now, RefusedChanged, nil
	case Handed, Lost:
		return now, RefusedGone, nil
	default:
		return now, RefusedGone, nil
	}
	switch {
	case !now.Before(r.Deadline):
		return now, RefusedOverdue, nil
	case s.present(beat, now, r.Incarnation) != alive:
		return now, RefusedGone, nil
	}
	return now, "", nil
}

// choose finds the action that is meant, or says why it can't be.
func choose(r Record, tap Tap) (runner.Action, Refusal) {
	if len(tap.Reason) > maxReason {
		return runner.Action{}, RefusedAnswers
	}
	if r.Question.Kind == runner.KindQuestion && (tap.Action == "" || len(tap.Answers) > 0) {
		if !answers(r.Question.Queries, tap.Answers) {
			return runner.Action{}, RefusedAnswers
		}
		if tap.Action == "" {
			return bulk(r, tap, runner.Action{Allows: true})
		}
	} else if len(tap.Answers) > 0 {
		return runner.Action{}, RefusedAnswers
	}
	all := r.Actions()
	i := slices.IndexFunc(all, func(a runner.Action) bool { return a.ID == tap.Action })
	switch {
	case i < 0 && r.Question.Kind == runner.KindQuestion && tap.Action == runner.ActionDeny:
		return runner.Action{ID: runner.ActionDeny}, "" // nobody has to answer
	case i < 0 || (all[i].Grant != "" && (r.Grant == nil || !all[i].Allows)):
		return runner.Action{}, RefusedAction
	case all[i].Grant == ScopeProject && !tap.Person.Role.IsOwner():
		return runner.Action{}, RefusedOwners
	case all[i].Grant != "" && all[i].Grant != ScopeProject && all[i].Grant != ScopeSession:
		return runner.Action{}, RefusedAction
	}
	return bulk(r, tap, all[i])
}

// bulk holds back what may not be allowed along with others.
func bulk(r Record, tap Tap, a runner.Action) (runner.Action, Refusal) {
	switch {
	case tap.Under == nil || !a.Allows:
		return a, ""
	case policy.HumanOnly(r.Question.Categories...) || r.Question.Kind == runner.KindPlan || r.Question.Kind == runner.KindQuestion:
		return a, RefusedHumanOnly
	case policy.Decide(tap.Under.Mode, tap.Under.Interaction, r.Question.Categories...) != policy.Allow:
		return a, RefusedNotAllowed
	}
	return a, ""
}

// answers reports whether given answers every query, with what it offers.
func answers(queries []runner.Query, given map[string][]string) bool {
	size := 0
	for _, q := range queries {
		texts := given[q.ID]
		if q.Form.Check(q, texts) != "" {
			return false
		}
		if _, there := given[q.ID]; there && len(texts) == 0 && q.Form != nil && q.Form.Optional {
			continue // left out
		}
		if len(texts) == 0 || (len(texts) > 1 && !q.Multiple) {
			return false
		}
		for _, text := range texts {
			size += len(text)
			offered := slices.ContainsFunc(q.Options, func(o runner.Option) bool { return o.Label == text })
			if text == "" || (!offered && !q.Free && len(q.Options) > 0) {
				return false
			}
		}
	}
	return len(given) == len(queries) && size <= maxReason
}

// putDecision is the only place where a decision is written first. The Txn guards the record and the absence of another.
func (s *Service) putDecision(t *store.Txn, r Record, d Decision, grant string) error {
	if err := store.Put(t, DecisionKey(r.ID), d); err != nil {
		return err
	}
	t.Add(DecisionsIndex, string(r.ID), store.Micros(d.At))
	if _, secret := d.withoutSecrets(r.Question); secret {
		t.Add(SecretsIndex, string(r.ID), store.Micros(d.At))
	}
	t.Publish(DecidedTopic(r.ID.Host()), []byte(r.ID))
	if err := s.auditDecision(t, r, d, grant); err != nil {
		return err
	}
	if s.c.Decided != nil {
		return s.c.Decided(t, r, d)
	}
	return nil
}

// Get returns an approval and its decision, nil if there is none. A Record without an ID means that it is not known.
func (s *Service) Get(ctx context.Context, id ID) (r Record, d *Decision, err error) {
	if id.Host() == "" {
		return r, nil, nil
	}
	err = s.read(ctx, func(t *store.Txn) error {
		if err := t.Load(AskKey(id), DecisionKey(id)); err != nil {
			return err
		}
		if r, _, err = store.Peek[Record](t, AskKey(id)); err != nil {
			return err
		}
		d, err = peekDecision(t, id)
		return err
	})
	if err != nil {
		return Record{}, nil, fmt.Errorf("approvals: get %s: %w", id, err)
	}
	return r, d, nil
}

// Pending returns what waits for a person in a chat, or in all chats if chat is empty, over all hosts, oldest first.
// Whether a person can still decide is found out by Decide.
func (s *Service) Pending(ctx context.Context, chat string) ([]Record, error) {
	fail := func(err error) ([]Record, error) { return nil, fmt.Errorf("approvals: pending in %q: %w", chat, err) }
	hosts, err := s.hosts(ctx)
	if err != nil {
		return fail(err)
	}
	var out []Record
	for _, host := range hosts {
		asks, err := s.openAsks(ctx, host)
		if err != nil {
			return fail(err)
		}
		for _, ask := range asks {
			r, d, err := s.Get(ctx, ask.id)
			if errors.Is(err, store.ErrDamaged) {
				s.log.WarnContext(ctx, "a stored approval is damaged and left out", "approval", ask.id, "err", err)
				continue
			}
			if err != nil {
				return fail(err)
			}
			if Standing(r, d).Word == StandsOpen && r.ID != "" && (chat == "" || r.Chat == chat) {
				out = append(out, r)
			}
		}
	}
	slices.SortFunc(out, func(a, b Record) int { return a.Created.Compare(b.Created) })
	return out, nil
}
