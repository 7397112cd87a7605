package native_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"drawbridge/internal/modeltest"
	"drawbridge/policy"
	"drawbridge/runner"
	"drawbridge/runner/native"
)

// demo is a session of the demonstration's model on its project. The gate is answer, or without one the person, who may be
// nil where everything is allowed.
func demo(t *testing.T, dir string, p *person, answer func(runner.Question) runner.Answer) *session {
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
	o := runner.Options{Folder: dir}
	if p != nil {
		o.Policy = p.now
		if answer == nil {
			o.Gate = p
		}
	}
	return open(t, r, o, answer)
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
	s := demo(t, dir, nil, nil)
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
	s := demo(t, dir, nil, func(q runner.Question) runner.Answer {
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

// The prompts that a decision about a plan leads to, as the bridge writes them.
const (
	approved  = "The plan is approved. Implement it:\n\n"
	unsettled = "The plan is not approved yet. Revise it, change nothing, and submit it again. What I want to be different:\n\n"
)

func TestDemoPlansRevisesAndImplements(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		prompt string
		title  string
		steps  int
		file   string
		holds  string
	}{
		"fix":      {"Plan how to fix the failing test", "# Fix the failing test\n", 3, "price/price.go", "cents*percent/100"},
		"in plan":  {"Fix the failing test", "# Fix the failing test\n", 3, "price/price.go", "cents*percent/100"},
		"anything": {"Plan something", "# Fix the failing test\n", 3, "price/price.go", "cents*percent/100"},
		"add":      {"Plan to add a function", "# Add a function\n", 3, "price/average.go", "func Average"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			p := &person{policy: runner.Policy{Mode: policy.FullAccess, Interaction: policy.Plan}}
			s := demo(t, dir, p, nil)
			before := tree(t, dir)
			first := s.turn(t, c.prompt, runner.Completed).Plan
			if !strings.HasPrefix(first, c.title) || !strings.Contains(first, c.holds) {
				t.Errorf("the plan is\n%s", first)
			}
			for _, words := range []string{"smaller, and\nadd nothing", "with fewer words"} {
				again := s.turn(t, unsettled+words, runner.Completed).Plan
				if !strings.HasPrefix(again, first+"\n\n## Revised\n") || strings.Count(again, "## Revised") != 1 || !strings.Contains(again, "> "+strings.ReplaceAll(words, "\n", "\n> ")) {
					t.Errorf("the revised plan is\n%s", again)
				}
			}
			if p.denied > 0 || tree(t, dir) != before {
				t.Errorf("planning was refused %d times, or changed something", p.denied)
			}

			p.mu.Lock()
			p.policy.Interaction = policy.Default
			p.mu.Unlock()
			if res := s.turn(t, approved+first, runner.Completed); res.Plan != "" {
				t.Errorf("implementing submitted a plan:\n%s", res.Plan)
			}
			if text := read(t, dir, c.file); !strings.Contains(text, c.holds) {
				t.Errorf("%s holds %s", c.file, text)
			}
			var shown [][]runner.Step
			for _, e := range s.events {
				if e.Kind == runner.PlanUpdated {
					shown = append(shown, e.Plan)
				}
			}
			if len(shown) != c.steps || !shown[0][0].Now || shown[c.steps-1][0].Now || !shown[c.steps-1][1].Done {
				t.Errorf("the checklist was shown as %+v", shown)
			}
		})
	}
}

func TestDemoSaysHowToPlan(t *testing.T) {
	t.Parallel()
	s := demo(t, t.TempDir(), &person{policy: runner.Policy{Mode: policy.FullAccess, Interaction: policy.Default}}, nil)
	if res := s.turn(t, "Plan the fix", runner.Completed); res.Plan != "" || !strings.Contains(s.said(t), "`/plan fix the failing test`") {
		t.Errorf("the plan is %q; said %s", res.Plan, s.said(t))
	}
	s.turn(t, unsettled+"x", runner.Completed)
	if said := s.said(t); !strings.Contains(said, "no plan") {
		t.Errorf("said %s", said)
	}
}

func TestDemoAsks(t *testing.T) {
	t.Parallel()
	var answer runner.Answer
	s := demo(t, t.TempDir(), &person{policy: runner.Policy{Mode: policy.FullAccess, Interaction: policy.Plan}}, func(q runner.Question) runner.Answer {
		if len(q.Queries) != 2 || len(q.Queries[0].Options) != 3 || q.Queries[0].Options[0].Description == "" || q.Queries[0].Multiple || !q.Queries[1].Multiple {
			t.Errorf("asked %+v", q.Queries)
		}
		return answer
	})
	answer = runner.Answer{Decision: runner.Allowed, Source: runner.SourceUser, Answers: map[string][]string{"rounding": {"Up"}, "checks": {"The tests", "The vet"}}}
	s.turn(t, "Ask me something", runner.Completed)
	if said := s.said(t); !strings.Contains(said, "Thank you") || !strings.Contains(said, "): Up\n") || !strings.Contains(said, "): The tests; The vet\n") {
		t.Errorf("said %s", said)
	}
	answer = runner.Answer{Decision: runner.Denied, Source: runner.SourceTimeout}
	s.turn(t, "Ask me something", runner.Completed)
	if said := s.said(t); !strings.Contains(said, "without an answer") || !strings.Contains(said, "Nobody answered in time.") {
		t.Errorf("said %s", said)
	}
}
