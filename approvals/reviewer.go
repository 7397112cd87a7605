package approvals

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"drawbridge/internal/store"
	"drawbridge/policy"
	"drawbridge/runner"
)

// Reviewer is a model that decides in place of a person what the table leaves to review. It never sees what is
// human-only or what a grant or the table has decided. It must return when ctx ends; the verdict counts only if it is
// exactly allowed or denied and there is no error.
type Reviewer interface {
	Review(ctx context.Context, r ReviewRequest) (ReviewVerdict, error)
}

// ReviewRequest is what a Reviewer is asked.
type ReviewRequest struct {
	Run        Run
	Question   runner.Question
	Categories []policy.Category
	Policy     runner.Policy
}

// ReviewVerdict is what a Reviewer says.
type ReviewVerdict struct {
	Decision runner.Decision // Allowed or Denied; anything else is no verdict
	Reason   string          // for the agent and for people; never logged
	Usage    runner.Usage    // what the review took; it counts also beside an error
}

// ReviewError is why there is no verdict.
type ReviewError struct {
	Why string // a sentence for people, of words that are ours
	Err error  // the cause, for the log; may be nil
}

// Error says why, and the cause.
func (e *ReviewError) Error() string {
	if e.Err == nil {
		return "approvals: review: " + e.Why
	}
	return "approvals: review: " + e.Why + " " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *ReviewError) Unwrap() error { return e.Err }

var (
	errNoReviewer = &ReviewError{Why: "There is no reviewer."}
	errNonsense   = &ReviewError{Why: "The reviewer's answer could not be understood."}
	errSlowReview = &ReviewError{Why: "The reviewer did not answer in time."}
)

// reviewed asks the reviewer, and then the policy again, since a review takes long enough for a mode to change. What the
// reviewer does not allow, for whatever reason, is for a person; in the background, where nobody is, it is refused.
func (s *Service) reviewed(ctx context.Context, a *asking) (runner.Answer, bool) {
	v, err := s.review(ctx, a)
	if ctx.Err() != nil {
		return withdrawal(), true
	}
	if err == nil && v.Decision == runner.Allowed {
		if err = s.step(ctx, a, runner.Review{State: runner.ReviewApproved, Reason: v.Reason}); err == nil {
			return s.stillAllowed(ctx, a, v)
		}
	}
	end := runner.Review{State: runner.ReviewDenied, Reason: v.Reason, Asked: !a.background}
	if err != nil {
		s.log.InfoContext(ctx, "no verdict of a reviewer", "chat", a.run.Chat, "background", a.background, "err", err)
		end.State, end.Reason = runner.ReviewUnavailable, "The reviewer failed."
		if why, ok := errors.AsType[*ReviewError](err); ok {
			end.Reason = why.Why
		}
		if errors.Is(err, errSlowReview) {
			end.State = runner.ReviewTimeout
		}
	}
	if s.c.Reviewer != nil || a.background { // who has none is not told of it at every question
		if err := s.step(ctx, a, end); err != nil {
			s.log.WarnContext(ctx, "a review could not be recorded", "chat", a.run.Chat, "err", err)
		}
		a.review = &end
	}
	switch {
	case !a.background:
		return runner.Answer{}, false
	case err != nil:
		return refusal(runner.SourceReviewer, end.Reason+" Nobody sits in front of background work who could be asked instead."), true
	}
	return refusal(runner.SourceReviewer, v.Reason), true
}

// stillAllowed turns a reviewer's yes into an answer, if the table still leaves it to one.
func (s *Service) stillAllowed(ctx context.Context, a *asking, v ReviewVerdict) (runner.Answer, bool) {
	verdict, err := a.verdict(ctx)
	switch {
	case err != nil:
		return refusal(runner.SourceShutdown, "The chat's mode could not be read."), true
	case verdict == policy.Deny:
		return refusal(runner.SourceRule, "In plan nothing may be changed."), true
	case verdict == policy.Ask:
		return runner.Answer{}, false
	}
	return runner.Answer{Decision: runner.Allowed, Source: runner.SourceReviewer, Reason: v.Reason}, true
}

// review returns the reviewer's verdict, or an error for anything that is none. The time limit holds for all of it,
// waiting for a place included: a person is asked no later because many other questions came first.
func (s *Service) review(ctx context.Context, a *asking) (ReviewVerdict, error) {
	if s.c.Reviewer == nil {
		return ReviewVerdict{}, errNoReviewer
	}
	if err := s.step(ctx, a, runner.Review{State: runner.ReviewRequested}); err != nil {
		return ReviewVerdict{}, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, s.c.ReviewTime, errSlowReview)
	defer cancel()
	leave, err := s.reviews.enter(ctx, cmp.Or(a.run.Session, a.run.ID))
	if err != nil {
		return ReviewVerdict{}, err
	}
	defer leave()
	v, err := s.c.Reviewer.Review(ctx, ReviewRequest{Run: a.run, Question: a.q, Categories: a.categories, Policy: a.policy})
	if s.c.ReviewCost != nil && v.Usage != (runner.Usage{}) {
		s.c.ReviewCost(a.run, v.Usage)
	}
	switch {
	case ctx.Err() != nil:
		return ReviewVerdict{}, context.Cause(ctx)
	case err != nil:
		return ReviewVerdict{}, err
	case v.Decision != runner.Allowed && v.Decision != runner.Denied:
		return ReviewVerdict{}, errNonsense
	}
	return v, nil
}

// step commits what has become of a review.
func (s *Service) step(ctx context.Context, a *asking, r runner.Review) error {
	if s.c.Reviewed == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, closeTime)
	defer cancel()
	r.Source, r.Item, r.Title = runner.ReviewerOurs, a.q.Item, a.q.Title
	err := store.Update(ctx, s.db, func(t *store.Txn) error { return s.c.Reviewed(t, a.run, r) })
	if err != nil {
		return &ReviewError{Why: "The store is away.", Err: err}
	}
	return nil
}

// places bounds how many reviews of one session run at the same time.
type places struct {
	limit int

	mu  sync.Mutex
	all map[string]*place
}

type place struct {
	taken chan struct{} // one for each review that runs
	users int           // that run or wait; guarded by mu
}

// enter waits for a place of session. The error is the cause of ctx.
func (p *places) enter(ctx context.Context, session string) (leave func(), err error) {
	p.mu.Lock()
	one := p.all[session]
	if one == nil {
		one = &place{taken: make(chan struct{}, p.limit)}
		p.all[session] = one
	}
	one.users++
	p.mu.Unlock()
	gone := func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if one.users--; one.users == 0 {
			delete(p.all, session)
		}
	}
	select {
	case one.taken <- struct{}{}:
		return func() { <-one.taken; gone() }, nil
	case <-ctx.Done():
		gone()
		return nil, context.Cause(ctx)
	}
}

// reviewTime is the default of Config.ReviewTime: what a person who waits for an answer can bear.
const reviewTime = 20 * time.Second
