package bridge

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"drawbridge/approvals"
	"drawbridge/internal/store"
	"drawbridge/internal/store/storetest"
	"drawbridge/policy"
	"drawbridge/runner"
	"drawbridge/runner/runnertest"
)

// oracle is a reviewer that says what it was given, in turn, and notes what it was asked.
type oracle struct {
	mu    sync.Mutex
	says  []approvals.ReviewVerdict
	asked []approvals.ReviewRequest
}

func (o *oracle) Review(_ context.Context, r approvals.ReviewRequest) (approvals.ReviewVerdict, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.asked = append(o.asked, r)
	if len(o.says) == 0 {
		return approvals.ReviewVerdict{}, errors.New("it has nothing more to say")
	}
	v := o.says[0]
	o.says = o.says[1:]
	return v, nil
}

// withReviewer gives the host a reviewer.
func withReviewer(t *testing.T, r approvals.Reviewer) hostOption {
	return func(c *HostConfig) {
		c.Reviewer = "small-1"
		c.Approvals = approvals.New(approvals.Config{
			DB: c.DB, Host: c.Name, Incarnation: c.Incarnation, Logger: storetest.Logger(t), Beat: beat, DeadAfter: 15 * beat, Reread: 5 * beat,
			Opened: c.Log.Opened, Resolved: c.Log.Resolved, Reviewed: c.Log.Reviewed, ReviewCost: c.Log.ReviewCost, Reviewer: r,
		})
	}
}

// TestAReviewStandsInTheTimelineAndCounts follows three commands in auto: one that the reviewer allows, one that it refuses
// and one for which it fails. Each step stands where it happened, the model learns of the prompt, and what it took is part of
// what the turn took.
func TestAReviewStandsInTheTimelineAndCounts(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	o := &oracle{says: []approvals.ReviewVerdict{
		{Decision: runner.Allowed, Reason: "It was asked for.", Usage: runner.Usage{Input: 700, Cached: 500, Output: 30}},
		{Decision: runner.Denied, Reason: "It was not.", Usage: runner.Usage{Input: 800, Output: 40}},
	}}
	h.host("laptop", withReviewer(t, o), withTurn(func(_ context.Context, s *runnertest.Scripted, _ runner.Input) (runner.Result, error) {
		ask := func(command string) {
			q := runner.Question{Kind: runner.KindCommand, Title: command, Command: command, Folder: s.Folder(), Categories: []policy.Category{policy.Terminal}}
			s.Say("before " + command + ";")
			a := s.Ask(q)
			s.Say(" " + string(a.Decision) + " by " + string(a.Source) + ";")
		}
		ask("one")
		s.Emit(runner.Event{Kind: runner.UsageUpdated, Usage: &runner.Usage{Input: 1000, Output: 100, Context: 900, Window: 5000}})
		ask("two")
		ask("three")
		return runner.Result{Outcome: runner.Completed, Usage: runner.Usage{Input: 1200, Cached: 10, Output: 120, Context: 950, Window: 5000}}, nil
	}))
	h.mode("7", policy.Auto)
	h.prompt("7", "u:1", "Please try three things.")
	h.tap("7", h.shown.asked(t, 1), runner.ActionDeny)
	h.tap("7", h.shown.asked(t, 2), runner.ActionDeny)
	r := h.shown.ended(t, "t.u:1")
	if want := (runner.Usage{Input: 2700, Cached: 510, Output: 190, Context: 950, Window: 5000}); r.Usage != want {
		t.Errorf("the turn took %+v, want %+v", r.Usage, want)
	}
	es := h.timeline("laptop", "7")
	var story strings.Builder
	var last runner.Usage
	for _, e := range es {
		switch ev := e.Event; ev.Kind { //nolint:exhaustive // the others do not matter here
		case runner.ContentDelta:
			story.WriteString(ev.Item.Text)
		case runner.RequestOpened:
			story.WriteString("[card]")
		case runner.ReviewChanged:
			if ev.Review.Source != runner.ReviewerOurs || e.Turn != "t.u:1" || e.Session == "" {
				t.Errorf("a review stands in the timeline as %+v of %+v", ev.Review, e)
			}
			story.WriteString("[" + ev.Review.Title + " " + ev.Review.State + "]")
		case runner.UsageUpdated:
			if ev.Usage.Input < last.Input || ev.Usage.Output < last.Output {
				t.Errorf("the turn took %+v, and then %+v", last, *ev.Usage)
			}
			last = *ev.Usage
		}
	}
	want := "before one;[one requested][one approved] allowed by reviewer;before two;[two requested][two denied][card] " +
		"denied by user;before three;[three requested][three unavailable][card] denied by user;"
	if got := story.String(); got != want {
		t.Errorf("the timeline tells\n%s\nwant\n%s", got, want)
	}
	if want := (runner.Usage{Input: 2500, Cached: 500, Output: 170, Context: 900, Window: 5000}); last != want {
		t.Errorf("at last the turn took %+v, want %+v", last, want)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.asked) != 3 || o.asked[0].Run.Request != "Please try three things." {
		t.Errorf("the reviewer was asked %+v", o.asked)
	}
	h.update(func(t *store.Txn) error {
		hello, _, err := h.chats.Hello(t, "laptop")
		if hello.Reviewer != "small-1" {
			h.t.Errorf("the host says of its reviewer %q", hello.Reviewer)
		}
		return err
	})
}
