package runner

import (
	"slices"

	"drawbridge/policy"
)

// Told reports whether a reason of Capability.Why is told to people. The others say why the suite has nothing to try with a
// runtime, which is no news to whoever works with it.
func Told(why string) bool {
	return !slices.Contains([]string{WhyCrash, WhyFrames, WhyParallel, WhySecrets, WhyAgents}, why) &&
		!slices.Contains(policy.Categories(), policy.Category(why))
}
