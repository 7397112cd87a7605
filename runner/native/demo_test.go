package native_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"drawbridge/internal/modeltest"
	"drawbridge/runner"
	"drawbridge/runner/native"
)

// demo is a session of the demonstration's model on its project.
func demo(t *testing.T, dir string, answer func(runner.Question) runner.Answer) *session {
	t.Helper()
	if err := modeltest.Workspace(dir); err != nil {
		t.Fatal(err)
	}
	// A build cache that is warm; a fresh one costs half a minute.
	cache, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	srv := serve(t, modeltest.Config{Script: modeltest.Demo()})
	r := runtime(t, native.Config{BaseURL: srv.URL(), Env: map[string]string{
		"GOCACHE": strings.TrimSpace(string(cache)), "GOPROXY": "off", "GOTOOLCHAIN": "local",
	}})
	return open(t, r, runner.Options{Folder: dir}, answer)
}

// said is the last message.
func (s *session) said(t *testing.T) string {
	t.Helper()
	m := s.completed(runner.ItemMessage)
	if len(m) == 0 {
		t.Fatal("nothing was said")
	}
	return m[len(m)-1].Text
}

func TestDemoFixesTheFailingTest(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := demo(t, dir, nil)
	expect := func(prompt string, parts ...string) {
		t.Helper()
		s.turn(t, prompt, runner.Completed)
		for _, p := range parts {
			if said := s.said(t); !strings.Contains(said, p) {
				t.Errorf("%s: %q is missing in:\n%s", prompt, p, said)
			}
		}
	}
	expect("Run the tests", "**Tests fail:** `TestDiscount`", "Discount(250, 10) = 230, want 225")
	expect("Fix the failing test", "cents*percent/100", "**All tests pass**", "```go")
	if text := read(t, dir, "price/price.go"); !strings.Contains(text, "return cents - cents*percent/100\n") {
		t.Errorf("price.go holds %s", text)
	}
	expect("Fix the failing test", "nothing that I know how to fix", "**All tests pass**")
	expect("Add a function", "func Average", "It compiles")
	expect("Explain main.go", "- **Package:** `main`", "`example.com/shop/price`", "func main() {")
	expect("Explain price/price.go", "`Total`, `Discount`")
	expect("Explain nothing.go", "could not read `nothing.go`: nothing.go does not exist")
	expect("Good morning", "Fix the failing test")
}

func TestDemoTakesANoForAnAnswer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	refuse := runner.KindFileChange
	s := demo(t, dir, func(q runner.Question) runner.Answer {
		if q.Kind == refuse {
			return runner.Answer{Decision: runner.Denied, Source: runner.SourceUser, Reason: "not today"}
		}
		return runner.Answer{Decision: runner.Allowed, Source: runner.SourceRule}
	})
	for _, prompt := range []string{"Fix the failing test", "Add a function"} {
		s.turn(t, prompt, runner.Completed)
		if said := s.said(t); !strings.Contains(said, "You didn't allow me to") || !strings.Contains(said, "nothing was changed") ||
			!strings.Contains(said, "not today") {
			t.Errorf("%s: said %s", prompt, said)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "price", "average.go")); !os.IsNotExist(err) {
		t.Errorf("the refused file: %v", err)
	}
	refuse = runner.KindCommand
	s.turn(t, "Run the tests", runner.Completed)
	if said := s.said(t); !strings.Contains(said, "You didn't allow me to run the tests") {
		t.Errorf("said %s", said)
	}
	s.turn(t, "Fix the failing test", runner.Completed)
	if said := s.said(t); !strings.Contains(said, "you didn't allow me to run them") {
		t.Errorf("said %s", said)
	}
}
