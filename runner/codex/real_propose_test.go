//go:build runtimes

package codex_test

import (
	"context"
	"strings"
	"testing"

	"drawbridge/internal/modeltest"
	"drawbridge/policy"
	"drawbridge/runner"
)

const proposing = `propose {"title":"Later","steps":["Run the tests."],"when":"at 18:30"}`

// TestRealProposals: the tool is there in a thread that was resumed too, in every mode, also where codex's own reviewer
// decides what is to leave the sandbox; a person answers it.
func TestRealProposals(t *testing.T) {
	t.Parallel()
	folder, work := data(t), data(t)
	config := realConfig(t, folder, model(t, modeltest.Config{Script: modeltest.Follow(hands()), Piece: 500}))
	config.Reviewer = true
	made := func(context.Context, runner.Question) (runner.Answer, error) {
		return runner.Answer{Decision: runner.Allowed, Action: runner.ActionMake, Source: runner.SourceUser, Made: "p4711"}, nil
	}
	r := installed(t, config)
	c := open(t, r, opening{folder: work, policy: runner.Policy{Mode: policy.Auto, Interaction: policy.Default}, answer: made})
	c.turn(proposing)
	token := c.ResumeToken()
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	again := open(t, installed(t, config), opening{folder: work, resume: token, policy: runner.Policy{Mode: policy.FullAccess, Interaction: policy.Default}, answer: made})
	again.turn(proposing)
	for n, one := range []*chat{c, again} {
		_, questions := one.seen()
		if len(questions) != 1 || questions[0].Kind != runner.KindProposal || questions[0].Proposal.Time != "18:30" || !strings.Contains(one.said(), "p4711") {
			t.Errorf("session %d: asked %+v; it said %q", n+1, questions, one.said())
		}
		if reviews := one.kinds(runner.ReviewChanged); len(reviews) != 0 {
			t.Errorf("session %d: a reviewer was asked: %+v", n+1, reviews)
		}
	}
}

// TestRealProposalOfASubAgent: a sub-agent that has the tool is asked about as its parent is; one that has not can't use it.
func TestRealProposalOfASubAgent(t *testing.T) {
	t.Parallel()
	c := open(t, installed(t, realConfig(t, data(t), model(t, modeltest.Config{Script: spawning}))), opening{answer: no})
	c.turn("spawn "+proposing, "say spawned")
	c.until(func() bool {
		all := c.kinds(runner.BackgroundEvent)
		return len(all) == 2 && all[1].Background.Ended
	})
	_, questions := c.seen()
	for _, q := range questions { // codex 0.171 does not give it to sub-agents
		if q.Kind != runner.KindProposal || !policy.HumanOnly(q.Categories...) || q.Item == "" {
			t.Errorf("asked %+v", q)
		}
	}
}
