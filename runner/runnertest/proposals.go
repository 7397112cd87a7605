package runnertest

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"drawbridge/policy"
	"drawbridge/runner"
)

// proposes has the agent propose a task in every mode and interaction: a person is asked each time, with all that would be
// made, and nobody else can answer; the agent is told what came of it. What is no proposal is asked of nobody, and the agent
// is told why.
func (e *exam) proposes() {
	c := e.capability()
	if c.Why[runner.WhyProposes] != "" {
		return
	}
	made := runner.Answer{Decision: runner.Allowed, Action: runner.ActionMake, Source: runner.SourceUser, By: "Ada", Made: "p4711"}
	var answer func(ctx context.Context, q runner.Question) (runner.Answer, error)
	l := e.open(func(ctx context.Context, q runner.Question) (runner.Answer, error) { return answer(ctx, q) })
	interactions := []policy.Interaction{policy.Default}
	if c.Plan {
		interactions = append(interactions, policy.Plan)
	}
	want := runner.Proposal{
		Title: "Look after the build", Steps: []string{"Run the tests.", "Say “done” \u202e backwards."}, When: runner.ProposedCron, Time: "0 9 * * 1-5",
		Mode: policy.AutoAcceptEdits,
	}
	line := e.proposeLine(map[string]any{"title": want.Title, "steps": want.Steps, "when": "cron 0 9 * * 1-5", "mode": "auto-accept-edits"})
	for _, i := range interactions {
		for _, m := range policy.Modes() {
			for _, one := range []struct {
				what   string
				answer func(context.Context, runner.Question) (runner.Answer, error)
				says   string
				status runner.ItemStatus
			}{
				{"made", func(context.Context, runner.Question) (runner.Answer, error) { return made, nil }, "p4711", runner.ItemDone},
				{"refused", refuse, refusal, runner.ItemRefused},
				{"unasked", func(context.Context, runner.Question) (runner.Answer, error) { return made, errNoGate }, "Not made", runner.ItemRefused},
			} {
				answer = one.answer
				l.set(runner.Policy{Mode: c.Modes[m], Interaction: i})
				l.turn(line, "say after it")
				_, questions := l.seen()
				if len(questions) != 1 || len(l.asked()) != 1 {
					e.Errorf("%s, %s, %s: %d questions, %d of them for a person", m, i, one.what, len(l.asked()), len(questions))
					continue
				}
				q := questions[0]
				if q.Kind != runner.KindProposal || q.Proposal == nil || !policy.HumanOnly(q.Categories...) || q.Item == "" || q.Turn == "" ||
					q.Proposal.Title != want.Title || !slices.Equal(q.Proposal.Steps, want.Steps) || q.Proposal.When != want.When ||
					q.Proposal.Time != want.Time || q.Proposal.Mode != want.Mode {
					e.Errorf("%s, %s: asked as %+v, %+v", m, i, q, q.Proposal)
				}
				if said := l.said(); !strings.Contains(said, one.says) || one.says != made.Made && strings.Contains(said, made.Made) || !strings.Contains(said, "after it") {
					e.Errorf("%s, %s, %s: the agent was not told, or did not go on; it said %q", m, i, one.what, said)
				}
				items := l.completed(runner.ItemToolCall)
				if len(items) != 1 || items[0].ID != q.Item || items[0].Status != one.status {
					e.Errorf("%s, %s, %s: the items are %+v", m, i, one.what, items)
				}
				l.ordered()
			}
		}
	}
	for what, bad := range map[string]map[string]any{
		"no steps":      {"title": "t", "steps": []string{}},
		"another field": {"title": "t", "steps": []string{"a"}, "approved": true},
		"no time":       {"title": "t", "steps": []string{"a"}, "when": "tomorrow"},
	} {
		l.set(runner.Policy{Mode: c.Modes[policy.FullAccess], Interaction: policy.Default})
		l.turn(e.proposeLine(bad), "say after it")
		if asked := l.asked(); len(asked) != 0 {
			e.Errorf("%s: asked as %+v", what, asked)
		}
		if said := l.said(); !strings.Contains(said, runner.ErrProposal.Error()) || !strings.Contains(said, "after it") {
			e.Errorf("%s: the agent was not told, or did not go on; it said %q", what, said)
		}
	}
}

func (e *exam) proposeLine(arguments map[string]any) string {
	e.Helper()
	b, err := json.Marshal(arguments)
	if err != nil {
		e.Fatalf("%v", err)
	}
	return "propose " + string(b)
}
