package claude

import (
	"strings"

	"drawbridge/runner"
)

// oldest is the oldest version that this driver was tried on.
func oldest() runner.Version {
	v, _ := runner.Oldest("claude") // a test of the table holds it to that
	return v
}

// parseVersion reads what the program says of itself: a version, and behind a blank its name.
func parseVersion(s string) (runner.Version, error) {
	first, _, _ := strings.Cut(strings.TrimSpace(s), " ")
	return runner.ParseVersion(first)
}
