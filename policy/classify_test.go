package policy

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// workspace makes a project with links that lead to a secret and out of it.
func workspace(t testing.TB) Workspace {
	t.Helper()
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	root, home := filepath.Join(top, "project"), filepath.Join(top, "home")
	for _, dir := range []string{"src", "config", ".git/hooks", ".github/workflows"} {
		must(t, os.MkdirAll(filepath.Join(root, dir), 0o700))
	}
	must(t, os.MkdirAll(filepath.Join(home, ".ssh"), 0o700))
	for _, file := range []string{"main.go", "a.txt", "b.txt", ".env", ".git/config"} {
		must(t, os.WriteFile(filepath.Join(root, file), []byte("x\n"), 0o600))
	}
	must(t, os.Symlink(".env", filepath.Join(root, "link-env")))
	must(t, os.Symlink("/etc", filepath.Join(root, "link-out")))
	must(t, os.Symlink(".git", filepath.Join(root, "link-git")))
	must(t, os.Symlink("loop-b", filepath.Join(root, "loop-a")))
	must(t, os.Symlink("loop-a", filepath.Join(root, "loop-b")))
	must(t, os.Symlink("/nowhere/at/all", filepath.Join(root, "link-dangling")))
	must(t, os.Symlink("../..", filepath.Join(root, "src", "link-up")))
	return Workspace{Root: root, Home: home}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

type expectation struct {
	where, what string
	want        []Category
}

// expectations reads a table: categories, a bar, and what they are of.
func expectations(t *testing.T, file string) []expectation {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", file))
	must(t, err)
	var out []expectation
	for line := range strings.Lines(string(b)) {
		line = strings.TrimSuffix(line, "\n")
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		left, right, ok := strings.Cut(line, " | ")
		if !ok {
			t.Fatalf("%s: %q is no expectation", file, line)
		}
		e := expectation{where: file, what: strings.ReplaceAll(right, "⏎", "\n")}
		for c := range strings.FieldsSeq(left) {
			e.want = append(e.want, Category(c))
		}
		slices.Sort(e.want)
		out = append(out, e)
	}
	return out
}

func TestClassifySeesWhatACommandCanDo(t *testing.T) {
	t.Parallel()
	in := workspace(t)
	n := 0
	for _, file := range []string{"ordinary.txt", "slips-wrapped.txt", "slips-hidden.txt", "slips-paths.txt"} {
		for _, e := range expectations(t, file) {
			n++
			if got := Classify(e.what, in); !slices.Equal(got, e.want) {
				t.Errorf("%s: %s\n got %v\nwant %v", e.where, e.what, got, e.want)
			}
		}
	}
	if n < 250 {
		t.Errorf("only %d expectations were read", n)
	}
}
