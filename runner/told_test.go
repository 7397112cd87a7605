package runner_test

import (
	"testing"

	"drawbridge/policy"
	"drawbridge/runner"
)

func TestPeopleAreToldWhatTheyCanUse(t *testing.T) {
	t.Parallel()
	for why, want := range map[string]bool{
		"steer": true, "rewind": true, string(policy.Auto): true, runner.WhySandbox: true, runner.WhyReview: true, "outer_sandbox": true,
		runner.WhyCrash: false, runner.WhyFrames: false, string(policy.Payment): false, string(policy.Unknown): false,
	} {
		if got := runner.Told(why); got != want {
			t.Errorf("%s is told: %v", why, got)
		}
	}
}
