package approvals

import (
	"context"
	"errors"
	"fmt"
	"time"

	"drawbridge/policy"
	"drawbridge/runner"
)

// asking is one question on its way through those who may answer it. It is used by one goroutine.
type asking struct {
	run        Run
	q          runner.Question
	categories []policy.Category
	policy     runner.Policy // as it was read last
	background bool
	grant      *Grant         // what could be granted
	review     *runner.Review // what the reviewer said who did not allow it
	files      string         // what q.Check said when the question was published
	digest     string
}

// Ask answers a question for run. It goes, in this order, through plan, what is human-only, the grants, the table, the
// reviewer and a person, and returns when one of them has decided; with a person that may take until the deadline. When
// ctx ends the question is withdrawn.
//
// Every doubt is a denial: a policy that can't be read, a store that is away, a limit that is reached, a decision that
// can't be confirmed. The Answer then says why, in words for the agent. The error is always nil.
func (s *Service) Ask(ctx context.Context, run Run, q runner.Question) (runner.Answer, error) {
	a, problem := prepare(run, q)
	if problem != "" {
		return s.settle(ctx, a, refusal(runner.SourceRuntime, problem)), nil
	}
	if answer, ok := s.takeUp(ctx, a); ok {
		return answer, nil
	}
	for range askedAgain {
		if answer, ok := s.consult(ctx, a); ok {
			return s.settle(ctx, a, answer), nil
		}
		if run.Alone {
			return s.settle(ctx, a, refusal(runner.SourceRule, "Nobody is asked about this: only what needs no answer can be done here.")), nil
		}
		if answer, ok := s.person(ctx, a); ok {
			return answer, nil
		}
	}
	return s.settle(ctx, a, refusal(runner.SourceRuntime, "The files kept changing while this was being asked.")), nil
}

func refusal(source runner.Source, reason string) runner.Answer {
	return runner.Answer{Decision: runner.Denied, Source: source, Reason: reason}
}

func withdrawal() runner.Answer {
	return runner.Answer{Decision: runner.Withdrawn, Source: runner.SourceRuntime}
}

// consult asks all that can answer without a person. It reports false if a person has to.
func (s *Service) consult(ctx context.Context, a *asking) (runner.Answer, bool) {
	a.review = nil
	verdict, err := a.verdict(ctx)
	if err != nil {
		s.log.WarnContext(ctx, "the policy of a chat could not be read", "chat", a.run.Chat, "err", err)
		return refusal(runner.SourceShutdown, "The chat's mode could not be read."), true
	}
	if verdict == policy.Deny {
		return refusal(runner.SourceRule, "In plan nothing may be changed."), true
	}
	if policy.HumanOnly(a.categories...) {
		return runner.Answer{}, false
	}
	// What the table allows needs no grant: the outcome is the same, and it saves a read of the store.
	if verdict == policy.Allow {
		return runner.Answer{Decision: runner.Allowed, Source: runner.SourceRule}, true
	}
	if a.run.Alone { // a grant was given to work that somebody is told of
		return runner.Answer{}, false
	}
	switch granted, err := s.granted(ctx, a); {
	case err != nil:
		s.log.WarnContext(ctx, "the grants of a chat could not be read", "chat", a.run.Chat, "err", err)
		return refusal(runner.SourceShutdown, "The chat's grants could not be read."), true
	case granted:
		return runner.Answer{Decision: runner.Allowed, Source: runner.SourceGrant}, true
	}
	if verdict == policy.Review {
		return s.reviewed(ctx, a)
	}
	return runner.Answer{}, false
}

// settle writes the audit line of an answer that no record stands for. An allowance that can't be audited is none.
func (s *Service) settle(ctx context.Context, a *asking, answer runner.Answer) runner.Answer {
	if ctx.Err() != nil {
		answer = withdrawal()
	}
	if answer.Allows() && answer.Source == runner.SourceRule && a.plainRead() {
		return answer
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
	defer cancel()
	if err := s.auditAnswer(ctx, a, answer); err != nil {
		s.log.WarnContext(ctx, "an answer could not be audited", "chat", a.run.Chat, "err", err)
		if answer.Allows() {
			return refusal(runner.SourceShutdown, "The store is away.")
		}
	}
	return answer
}

// verdict reads the policy afresh and says what the table makes of it.
func (a *asking) verdict(ctx context.Context) (policy.Verdict, error) {
	if a.run.Policy == nil {
		return "", fmt.Errorf("approvals: ask: run %q brings no policy", a.run.ID)
	}
	p, err := a.run.Policy(ctx)
	if err != nil {
		return "", err
	}
	if !p.Mode.Valid() {
		p.Mode = policy.ApprovalRequired
	}
	if p.Interaction != policy.Default {
		p.Interaction = policy.Plan
	}
	a.policy = p
	return policy.Decide(p.Mode, p.Interaction, a.categories...), nil
}

func (a *asking) plainRead() bool {
	for _, c := range a.categories {
		if c != policy.Read {
			return false
		}
	}
	return true
}

// person publishes the question and waits for what a person says. It reports false if the question has to be asked again
// because its files have changed.
func (s *Service) person(ctx context.Context, a *asking) (runner.Answer, bool) {
	if a.q.Check != nil {
		var err error
		if a.files, err = a.q.Check(); err != nil {
			return s.settle(ctx, a, refusal(runner.SourceRuntime, "The files could not be read: "+err.Error())), true
		}
	}
	a.digest = digest(a.q, a.files)
	leave, problem := s.enter(a)
	if problem != "" {
		return s.settle(ctx, a, refusal(runner.SourceRuntime, problem)), true
	}
	defer leave()
	r, wake, err := s.publish(ctx, a)
	if wake != nil {
		defer s.forget(r.ID)
	}
	switch {
	case err != nil && ctx.Err() != nil:
		s.leave(ctx, r.ID, Withdrawn)
		return withdrawal(), true
	case errors.Is(err, errFenced):
		return refusal(runner.SourceShutdown, "The host has started again."), true
	case err != nil:
		s.log.WarnContext(ctx, "an approval could not be published", "approval", r.ID, "err", err)
		s.leave(ctx, r.ID, Lost) // the commit may have happened
		return refusal(runner.SourceShutdown, "The store is away."), true
	}
	return s.wait(ctx, a, r, wake)
}

// wait waits for what a person says about a record that this host has published, or taken up.
func (s *Service) wait(ctx context.Context, a *asking, r Record, wake <-chan struct{}) (runner.Answer, bool) {
	d, state := s.await(ctx, r, wake)
	if state == Open && d == nil {
		if s.keep(ctx, a, r.ID) {
			return runner.Answer{Decision: runner.Deferred, Source: runner.SourceShutdown}, true
		}
		d, state = s.await(ctx, r, wake)
	}
	if state == Closing {
		d, state = s.expire(ctx, r.ID)
	}
	if d == nil {
		return s.undecided(ctx, r.ID, state), true
	}
	return s.take(ctx, a, r, *d)
}

// undecided ends an approval that nobody has decided.
func (s *Service) undecided(ctx context.Context, id ID, state State) runner.Answer {
	s.leave(ctx, id, state)
	switch state {
	case Withdrawn:
		return withdrawal()
	case Expired:
		return refusal(runner.SourceTimeout, "")
	case Open, Closing, Handed, Lost, Changed:
	}
	return refusal(runner.SourceShutdown, "The host has started again.")
}

// take follows a decision: it checks that what was decided is what would be carried out, commits what the runtime will be
// told, and only then returns it.
func (s *Service) take(ctx context.Context, a *asking, r Record, d Decision) (runner.Answer, bool) {
	answer := d.answer()
	own := func(source runner.Source, reason string) {
		answer = refusal(source, reason)
		at := d.At
		d = Decision{V: Version, ID: r.ID, Decision: runner.Denied, Source: source, Digest: r.Digest, At: at}
	}
	switch {
	case ctx.Err() != nil:
		return s.undecided(ctx, r.ID, Withdrawn), true
	case d.Source == runner.SourceTimeout:
		return s.undecided(ctx, r.ID, Expired), true
	case d.Source == runner.SourceShutdown || !d.Gone.IsZero():
		s.leave(ctx, r.ID, Lost)
		return refusal(runner.SourceShutdown, "This host was taken for dead."), true
	case d.ID != r.ID || d.Digest != r.Digest:
		s.log.ErrorContext(ctx, "a decision was made for something else", "approval", r.ID)
		own(runner.SourceRuntime, "The decision was made for something else.")
	case answer.Allows() && a.q.Kind == runner.KindProposal:
		answer.Made = r.ID.Made() // in the commit of the decision: nothing is left to be carried out
	case answer.Allows():
		if a.q.Check != nil {
			if files, err := a.q.Check(); err != nil || files != a.files {
				s.leave(ctx, r.ID, Changed)
				return runner.Answer{}, false
			}
		}
		// The mode may have been lowered meanwhile: the decision was a person's and stands. Plan is stronger than that.
		if verdict, err := a.verdict(ctx); err != nil {
			own(runner.SourceShutdown, "The chat's mode could not be read.")
		} else if verdict == policy.Deny {
			own(runner.SourceRule, "In plan nothing may be changed.")
		}
	}
	if err := s.hand(ctx, r.ID, d); err != nil {
		s.log.WarnContext(ctx, "a decision could not be handed over", "approval", r.ID, "err", err)
		s.postpone(r.ID, Lost)
		if answer.Made != "" {
			return answer, true // it is made all the same
		}
		return refusal(runner.SourceShutdown, "The decision could not be confirmed."), true
	}
	return answer, true
}

// answer is what the runtime is told of d.
func (d Decision) answer() runner.Answer {
	a := runner.Answer{Decision: d.Decision, Action: d.Action, Reason: d.Reason, Answers: d.Answers, Source: d.Source, By: d.Name}
	if a.Decision != runner.Allowed {
		a.Decision = runner.Denied
	}
	return a
}

// deadline is how long a person has for a question of kind that run asks.
func (s *Service) deadline(run Run, kind runner.QuestionKind) time.Duration {
	most := s.c.Deadline
	if kind == runner.KindPlan {
		most = s.c.PlanDeadline
	}
	if run.Within > 0 {
		return min(run.Within, most)
	}
	return most
}

// timed gives a record that is asked at now its deadline, and the chat that is asked.
func (s *Service) timed(r Record, run Run, now time.Time) Record {
	usual := s.deadline(run, r.Question.Kind)
	r.Created, r.Deadline = now, now.Add(usual)
	if run.Wait != nil {
		until, silent := run.Wait(now, usual)
		r.Silent = silent
		if last := now.Add(s.c.PlanDeadline); until.After(last) {
			until = last
		}
		if r.Question.Kind != runner.KindPlan && until.After(now) {
			r.Deadline = until
		}
	}
	if run.Card != "" {
		r.Chat = run.Card
	}
	return r
}
