package claude

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// tested are the versions that this driver was tried on, oldest first. An older one is not used: whether it lets the
// hook block is not known. A newer one is, as long as it says of itself what has to be true (see initialized.check).
func tested() []string { return []string{"2.1.332"} }

// oldest is the first of them.
func oldest() version {
	v, err := parseVersion(tested()[0])
	if err != nil {
		panic(err) // the list above is wrong
	}
	return v
}

// version is a semantic version (semver.org) without its build.
type version struct {
	numbers [3]int
	pre     string
}

// semver takes a leading version; what follows a blank is the program's name.
var semver = regexp.MustCompile(`^(\d{1,9})\.(\d{1,9})\.(\d{1,9})(?:-([0-9A-Za-z.-]+))?(?:\+[0-9A-Za-z.-]+)?(?:\s|$)`)

func parseVersion(s string) (version, error) {
	m := semver.FindStringSubmatch(strings.TrimSpace(s))
	if m == nil {
		return version{}, fmt.Errorf("claude: %.60q is not a version", s)
	}
	v := version{pre: m[4]}
	for i := range v.numbers {
		v.numbers[i], _ = strconv.Atoi(m[i+1]) // at most nine digits
	}
	return v, nil
}

func (v version) String() string {
	s := fmt.Sprintf("%d.%d.%d", v.numbers[0], v.numbers[1], v.numbers[2])
	if v.pre != "" {
		s += "-" + v.pre
	}
	return s
}

// before reports whether v is older than w, by semver's order.
func (v version) before(w version) bool {
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
	for i := 0; i < len(x) && i < len(y); i++ {
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
