package codex

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// version is a SemVer version.
type version struct {
	major, minor, patch int
	pre                 string
}

// oldest is the oldest version that was tried. Older ones echo less and are refused; of a newer one nothing is believed
// but what it echoes.
func oldest() version { return version{major: 0, minor: 171} }

var (
	errVersion     = errors.New("codex: its version can't be read")
	versionPattern = regexp.MustCompile(`(?:^|[ /v])(\d{1,6})\.(\d{1,6})\.(\d{1,6})(-[0-9A-Za-z.-]+)?(?:\+[0-9A-Za-z.-]+)?(?:\s|$)`)
)

// versionIn finds the version in what codex says of itself: "codex-cli 0.171.0", "drawbridge/0.171.0 (Debian …)".
func versionIn(s string) (version, error) {
	m := versionPattern.FindStringSubmatch(s)
	if m == nil {
		return version{}, errVersion
	}
	var n [3]int
	for i := range n {
		n[i], _ = strconv.Atoi(m[i+1]) // the pattern lets only digits through, and few
	}
	return version{n[0], n[1], n[2], strings.TrimPrefix(m[4], "-")}, nil
}

func (v version) String() string {
	s := fmt.Sprintf("%d.%d.%d", v.major, v.minor, v.patch)
	if v.pre != "" {
		s += "-" + v.pre
	}
	return s
}

// less orders versions as SemVer does.
func (v version) less(w version) bool {
	if c := cmp.Or(cmp.Compare(v.major, w.major), cmp.Compare(v.minor, w.minor), cmp.Compare(v.patch, w.patch)); c != 0 {
		return c < 0
	}
	switch {
	case v.pre == w.pre, v.pre == "":
		return false
	case w.pre == "":
		return true
	}
	a, b := strings.Split(v.pre, "."), strings.Split(w.pre, ".")
	for i := range min(len(a), len(b)) {
		if c := compareIdentifiers(a[i], b[i]); c != 0 {
			return c < 0
		}
	}
	return len(a) < len(b)
}

// compareIdentifiers orders two parts of a pre-release: numbers by value and before words, words by their letters.
func compareIdentifiers(a, b string) int {
	n, errA := strconv.Atoi(a)
	m, errB := strconv.Atoi(b)
	switch {
	case errA == nil && errB == nil:
		return cmp.Compare(n, m)
	case errA == nil:
		return -1
	case errB == nil:
		return 1
	}
	return strings.Compare(a, b)
}

// tooOldError says that codex is older than what was tried.
type tooOldError struct{ found version }

func (e *tooOldError) Error() string {
	return fmt.Sprintf("Codex %s is too old: %s or newer is needed", e.found, oldest())
}
