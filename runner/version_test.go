package runner

import "testing"

func TestVersionsAreOrdered(t *testing.T) {
	t.Parallel()
	order := []string{"0.9.9", "1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-alpha.beta", "1.0.0-beta", "1.0.0-beta.2", "1.0.0-beta.11", "1.0.0-rc.1", "1.0.0", "1.0.10", "2.0.0"}
	for i, a := range order {
		for j, b := range order {
			v, err := ParseVersion(a)
			w, err2 := ParseVersion(b + "+build.7")
			if err != nil || err2 != nil || v.Before(w) != (i < j) || v.String() != a {
				t.Errorf("%s before %s: %v (%v, %v)", a, b, v.Before(w), err, err2)
			}
		}
	}
	for _, bad := range []string{"", "latest", "1.2", "1.2.3.4", "v1.2.3", "1.2.3-", "1.2.3-a..b", "99999999999.1.1", "1.2.3rc", "1.2.3 (x)"} {
		if v, err := ParseVersion(bad); err == nil {
			t.Errorf("%q is the version %s", bad, v)
		}
	}
}

// TestEachProgramHasAnOldestVersion: what is not in the table has none, so nothing can be taken for new enough.
func TestEachProgramHasAnOldestVersion(t *testing.T) {
	t.Parallel()
	for program, want := range map[string]bool{"codex": true, "claude": true, "native": false, "": false} {
		if v, ok := Oldest(program); ok != want || ok && v.Before(Version{}) {
			t.Errorf("%q: %s, %v", program, v, ok)
		}
	}
}
