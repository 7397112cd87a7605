package runner_test

import (
	"testing"

	"drawbridge/policy"
	"drawbridge/runner"
)

func TestADifferenceCoversItsCellsAndNoOther(t *testing.T) {
	t.Parallel()
	d := runner.Difference{Category: policy.Secret, Modes: []policy.Mode{policy.Auto}}
	planned := runner.Difference{Category: policy.Secret, Plan: true}
	part := runner.Difference{Category: policy.Secret, Modes: policy.Modes(), Plan: true, Part: true}
	for _, c := range []struct {
		d           runner.Difference
		mode        policy.Mode
		interaction policy.Interaction
		category    policy.Category
		want        bool
	}{
		{d, policy.Auto, policy.Default, policy.Secret, true},
		{d, policy.Auto, policy.Default, policy.Write, false},
		{d, policy.FullAccess, policy.Default, policy.Secret, false},
		{d, policy.Auto, policy.Plan, policy.Secret, false},
		{d, policy.Auto, "of no such kind", policy.Secret, false},
		{planned, policy.Auto, policy.Plan, policy.Secret, true},
		{planned, policy.Auto, "of no such kind", policy.Secret, true}, // which counts as plan
		{planned, policy.Auto, policy.Default, policy.Secret, false},
		{part, policy.Auto, policy.Default, policy.Secret, false},
		{part, policy.Auto, policy.Plan, policy.Secret, false},
	} {
		if got := c.d.Covers(c.mode, c.interaction, c.category); got != c.want {
			t.Errorf("%+v covers %s, %s, %s: %v", c.d, c.mode, c.interaction, c.category, got)
		}
	}
}
