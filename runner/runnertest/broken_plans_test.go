package runnertest

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"drawbridge/runner"
)

// The rows about plans and questions.
const (
	rowPlanning   = "planning changes nothing"
	rowPlans      = "a plan ends its turn and is handed over once"
	rowDecided    = "a plan is rejected, revised and implemented"
	rowStopped    = "a plan of a stopped turn is none"
	rowAnswers    = "a person answers as the question allows"
	rowUnanswered = "a question that nobody answers does not hold up"
	rowOpen       = "an open question is withdrawn with its turn"
	rowSecret     = "a secret answer reaches the agent and nobody else"
)

// ending changes how turns end.
func ending(f func(runner.Result) runner.Result) func(*faulty) {
	return func(r *faulty) {
		r.session = func(_ runner.Options, s runner.Session) runner.Session {
			return turning{Session: s, turn: func(ctx context.Context, in runner.Input) (runner.Result, error) {
				res, err := s.Turn(ctx, in)
				return f(res), err
			}}
		}
	}
}

// message tells a message of the agent's.
func message(sink runner.Sink, turn, text string) {
	for _, kind := range []runner.EventKind{runner.ItemStarted, runner.ItemCompleted} {
		sink(runner.Event{Kind: kind, Turn: turn, Item: &runner.Item{ID: "more", Kind: runner.ItemMessage, Status: runner.ItemDone, Text: text}})
	}
}

func TestBrokenPlansAndQuestionsAreCaught(t *testing.T) {
	t.Parallel()
	var rejected atomic.Bool
	cases := map[string]struct {
		row  string
		harm func(*faulty)
	}{
		"runs commands while it plans": {rowPlanning, answering(
			func(ctx context.Context, _ runner.Options, g runner.Gate, q runner.Question) (runner.Answer, error) {
				if a, err := g.Ask(ctx, q); q.Kind != runner.KindCommand {
					return a, err
				}
				return yes, nil
			},
		)},
		"does nothing even where it may": {rowPlanning, answering(
			func(context.Context, runner.Options, runner.Gate, runner.Question) (runner.Answer, error) {
				return runner.Answer{}, nil
			},
		)},
		"hands a plan over twice": {rowPlans, ending(func(res runner.Result) runner.Result { res.Plan = firstPlan; return res })},
		"repeats the plan": {rowPlans, answering(
			func(ctx context.Context, o runner.Options, g runner.Gate, q runner.Question) (runner.Answer, error) {
				if q.Kind == runner.KindPlan {
					message(o.Sink, q.Turn, q.Plan)
				}
				return g.Ask(ctx, q)
			},
		)},
		"loses a part of the plan": {rowPlans, answering(
			func(ctx context.Context, _ runner.Options, g runner.Gate, q runner.Question) (runner.Answer, error) {
				q.Plan, _, _ = strings.Cut(q.Plan, "```")
				return g.Ask(ctx, q)
			},
		)},
		"takes an answer for a plan": {rowPlans, func(r *faulty) {
			r.session = func(_ runner.Options, s runner.Session) runner.Session {
				return turning{Session: s, turn: func(ctx context.Context, in runner.Input) (runner.Result, error) {
					res, err := s.Turn(ctx, in)
					if strings.Contains(in.Text, "only an answer") {
						res.Plan = "only an answer"
					}
					return res, err
				}}
			}
		}},
		"goes on after a no": {rowDecided, answering(
			func(ctx context.Context, _ runner.Options, g runner.Gate, q runner.Question) (runner.Answer, error) {
				a, err := g.Ask(ctx, q)
				if q.Kind == runner.KindPlan {
					rejected.Store(true)
				} else if rejected.Load() {
					return yes, nil
				}
				return a, err
			},
		)},
		"keeps planning when a plan is implemented": {rowDecided, answering(
			func(ctx context.Context, _ runner.Options, g runner.Gate, q runner.Question) (runner.Answer, error) {
				if a, err := g.Ask(ctx, q); q.Kind == runner.KindPlan {
					return a, err
				}
				return runner.Answer{}, nil
			},
		)},
		"hands over the plan of a stopped turn": {rowStopped, ending(func(res runner.Result) runner.Result {
			if res.Outcome == runner.Interrupted {
				res.Plan = firstPlan
			}
			return res
		})},
		"mixes up the answers": {rowAnswers, answering(
			func(ctx context.Context, _ runner.Options, g runner.Gate, q runner.Question) (runner.Answer, error) {
				a, err := g.Ask(ctx, q)
				ids := slices.Sorted(maps.Keys(a.Answers))
				if len(ids) == 2 {
					a.Answers = map[string][]string{ids[0]: {"red"}, ids[1]: {"red"}}
				}
				return a, err
			},
		)},
		"takes one option of several": {rowAnswers, answering(
			func(ctx context.Context, _ runner.Options, g runner.Gate, q runner.Question) (runner.Answer, error) {
				a, err := g.Ask(ctx, q)
				for id, words := range a.Answers {
					a.Answers[id] = words[:1]
				}
				return a, err
			},
		)},
		"asks less than the agent did": {rowAnswers, answering(
			func(ctx context.Context, _ runner.Options, g runner.Gate, q runner.Question) (runner.Answer, error) {
				q.Queries = q.Queries[:1]
				return g.Ask(ctx, q)
			},
		)},
		"takes nobody for a person": {rowUnanswered, answering(
			func(ctx context.Context, _ runner.Options, g runner.Gate, q runner.Question) (runner.Answer, error) {
				a, err := g.Ask(ctx, q)
				a.Source = runner.SourceUser
				return a, err
			},
		)},
		"waits for ever for an answer": {rowUnanswered, answering(
			func(ctx context.Context, _ runner.Options, g runner.Gate, q runner.Question) (runner.Answer, error) {
				a, err := g.Ask(ctx, q)
				if !a.Allows() {
					<-ctx.Done()
				}
				return a, err
			},
		)},
		"keeps a question open behind its turn": {rowOpen, answering(
			func(ctx context.Context, _ runner.Options, g runner.Gate, q runner.Question) (runner.Answer, error) {
				ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 3*time.Second)
				defer cancel()
				return g.Ask(ctx, q)
			},
		)},
		"tells the secret": {rowSecret, answering(
			func(ctx context.Context, o runner.Options, g runner.Gate, q runner.Question) (runner.Answer, error) {
				a, err := g.Ask(ctx, q)
				for _, words := range a.Answers {
					message(o.Sink, q.Turn, strings.Join(words, " "))
				}
				return a, err
			},
		)},
		"does not say that an answer is secret": {rowSecret, answering(
			func(ctx context.Context, _ runner.Options, g runner.Gate, q runner.Question) (runner.Answer, error) {
				q.Queries[0].Secret = false
				return g.Ask(ctx, q)
			},
		)},
		"says that it has no secrets": {rowSecret, func(r *faulty) { r.Capability.Why[runner.WhySecrets] = "It has none." }},
		"has sub-agents, and nobody tries them": {rowPlanning, func(r *faulty) {
			delete(r.Capability.Why, runner.WhyAgents)
		}},
	}
	whole := map[string]bool{}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if failures := examined(t, c.row, 500*time.Millisecond, c.harm); len(failures) == 0 {
				t.Errorf("%q found nothing", c.row)
			}
		})
		whole[c.row] = true
	}
	for row := range whole {
		t.Run("whole: "+row, func(t *testing.T) {
			t.Parallel()
			if failures := examined(t, row, time.Minute, func(*faulty) {}); len(failures) > 0 {
				t.Errorf("%q complains of a runtime that is whole: %q", row, failures)
			}
		})
	}
}
