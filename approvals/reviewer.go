package approvals

import (
	"context"
	"errors"

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
	Reason   string          // for the agent; never logged
}

var (
	errNoReviewer = errors.New("approvals: no reviewer")
	errNonsense   = errors.New("approvals: the reviewer's verdict is neither allowed nor denied")
)

// review returns the reviewer's verdict, or an error for anything that is none.
func (s *Service) review(ctx context.Context, a *asking) (ReviewVerdict, error) {
	if s.c.Reviewer == nil {
		return ReviewVerdict{}, errNoReviewer
	}
	ctx, cancel := context.WithTimeout(ctx, s.c.ReviewTime)
	defer cancel()
	v, err := s.c.Reviewer.Review(ctx, ReviewRequest{Run: a.run, Question: a.q, Categories: a.categories, Policy: a.policy})
	switch {
	case err != nil:
		return ReviewVerdict{}, err
	case ctx.Err() != nil:
		return ReviewVerdict{}, context.Cause(ctx)
	case v.Decision != runner.Allowed && v.Decision != runner.Denied:
		return ReviewVerdict{}, errNonsense
	}
	return v, nil
}
