package runner

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Oldest is the oldest version of a program that its driver was tried on; false if the program is none of ours. An older
// one is not used: whether it asks before it acts is not known. A newer one is, as far as it says of itself what has to be
// true.
func Oldest(program string) (Version, bool) {
	v, err := ParseVersion(map[string]string{
		"codex":  "0.171.0",
		"claude": "2.1.332",
	}[program])
	return v, err == nil
}

// Version is a semantic version (semver.org) without its build. The zero value is none.
type Version struct {
	numbers [3]int
	pre     string
}

var versionForm = regexp.MustCompile(`^(\d{1,9})\.(\d{1,9})\.(\d{1,9})(?:-([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?(?:\+[0-9A-Za-z.-]+)?$`)

// ParseVersion reads a version that stands by itself.
func ParseVersion(s string) (Version, error) {
	m := versionForm.FindStringSubmatch(s)
	if m == nil {
		return Version{}, fmt.Errorf("runner: %.60q is not a version", s)
	}
	v := Version{pre: m[4]}
	for i := range v.numbers {
		v.numbers[i], _ = strconv.Atoi(m[i+1]) // at most nine digits
	}
	return v, nil
}

func (v Version) String() string {
	s := fmt.Sprintf("%d.%d.%d", v.numbers[0], v.numbers[1], v.numbers[2])
	if v.pre != "" {
		s += "-" + v.pre
	}
	return s
}

// Before reports whether v is older than w, by semver's order.
func (v Version) Before(w Version) bool {
	for i := range v.numbers {
		if v.numbers[i] != w.numbers[i] {
			return v.numbers[i] < w.numbers[i]
		}
	}
	switch {
	case v.pre == w.pre:
		return false
	case v.pre == "" || w.pre == "":
		return v.pre != ""
	}
	return olderPre(v.pre, w.pre)
}

// olderPre compares pre-releases: numbers by their value and before words, a shorter one before a longer one.
func olderPre(a, b string) bool {
	x, y := strings.Split(a, "."), strings.Split(b, ".")
	for i := range min(len(x), len(y)) {
		m, errM := strconv.Atoi(x[i])
		n, errN := strconv.Atoi(y[i])
		var order int
		switch {
		case errM == nil && errN == nil:
			order = cmp.Compare(m, n)
		case errM == nil:
			order = -1
		case errN == nil:
			order = 1
		default:
			order = cmp.Compare(x[i], y[i])
		}
		if order != 0 {
			return order < 0
		}
	}
	return len(x) < len(y)
}
