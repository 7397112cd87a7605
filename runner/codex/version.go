package codex

import (
	"errors"
	"fmt"
	"strings"

	"drawbridge/runner"
)

// oldest is the oldest version that this driver was tried on. Older ones echo less and are refused; of a newer one nothing
// is believed but what it echoes.
func oldest() runner.Version {
	v, _ := runner.Oldest("codex") // a test of the table holds it to that
	return v
}

var errVersion = errors.New("codex: its version can't be read")

// versionIn finds the version in what codex says of itself: "codex-cli 0.171.0", "drawbridge/0.171.0 (Debian …)".
func versionIn(s string) (runner.Version, error) {
	for word := range strings.FieldsFuncSeq(s, func(r rune) bool { return r == ' ' || r == '/' || r == '\n' }) {
		if v, err := runner.ParseVersion(strings.TrimPrefix(word, "v")); err == nil {
			return v, nil
		}
	}
	return runner.Version{}, errVersion
}

// tooOldError says that codex is older than what was tried.
type tooOldError struct{ found runner.Version }

func (e *tooOldError) Error() string {
	return fmt.Sprintf("Codex %s is too old: %s or newer is needed", e.found, oldest())
}
