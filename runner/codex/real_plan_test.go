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

// TestRealPlanEndsItsTurn: a turn in plan that ends with a plan hands it over, whole; out of plan the same words are no plan.
func TestRealPlanEndsItsTurn(t *testing.T) {
	t.Parallel()
	const plan = "# Plan\n\n1. look\n2. **do** it"
	script := func(context.Context, modeltest.Request) modeltest.Reply {
		return modeltest.Reply{Text: "This is what I would do.\n<proposed_plan>\n" + plan + "\n</proposed_plan>\n"}
	}
	folder := data(t)
	r := installed(t, realConfig(t, data(t), model(t, modeltest.Config{Script: script})))
	for _, interaction := range []policy.Interaction{policy.Plan, policy.Default} {
		c := open(t, r, opening{folder: folder, policy: runner.Policy{Mode: policy.ApprovalRequired, Interaction: interaction}})
		got := c.turn("plan it")
		want := map[policy.Interaction]string{policy.Plan: plan, policy.Default: ""}[interaction]
		if strings.TrimSpace(got.Plan) != want {
			t.Errorf("in %s the turn ends with the plan %q, want %q", interaction, got.Plan, want)
		}
	}
}
