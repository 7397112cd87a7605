package bot

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"drawbridge/formatting"
	"drawbridge/policy"
	"drawbridge/runner"
)

// measured is what the conformance suite has seen of a runtime.
type measured struct {
	Lines []struct {
		Category policy.Category                                                 `json:"category"`
		Seen     map[policy.Interaction]map[policy.Mode]struct{ Outcome string } `json:"seen"`
	} `json:"lines"`
	Unreached []struct {
		Category policy.Category `json:"category"`
		Why      string          `json:"why"`
	} `json:"unreached"`
	Looser   []runner.Difference `json:"looser"`
	Stricter []runner.Difference `json:"stricter"`
}

// measuredOf reads what the suite keeps, and makes of it the runtime as its host tells of it.
func measuredOf(t *testing.T, name string) (measured, agent) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "runner", name, "testdata", "table.json"))
	if err != nil {
		t.Fatal(err)
	}
	var s measured
	if err := json.Unmarshal(b, &s); err != nil {
		t.Fatal(err)
	}
	a := agent{name: name, Capability: runner.Capability{
		State: runner.Ready, Looser: s.Looser, Stricter: s.Stricter, Why: map[string]string{}, Modes: map[policy.Mode]policy.Mode{},
	}}
	for _, u := range s.Unreached {
		a.Why[string(u.Category)] = u.Why
	}
	for _, m := range policy.Modes() {
		a.Modes[m] = m
	}
	return s, a
}

// loosest is what became of the deed of a category that got furthest.
func (s measured) loosest(m policy.Mode, c policy.Category) (outcome string, tried bool) {
	order := []string{"ran", "reviewed", "asked", "refused"}
	best := len(order) - 1
	for _, l := range s.Lines {
		if l.Category != c {
			continue
		}
		tried = true
		best = min(best, slices.Index(order, l.Seen[policy.Default][m].Outcome))
	}
	return order[best], tried
}

// TestTheWordsOfAModeAreWhatTheSuiteSaw: for each runtime and mode, what the words say is done unasked was seen to be done
// unasked, what they say a reviewer decides was seen to reach one, and what was seen to be done unasked although the mode
// would not have it so is named.
func TestTheWordsOfAModeAreWhatTheSuiteSaw(t *testing.T) {
	t.Parallel()
	looked := 0
	for _, name := range []string{"native", "codex", "claude"} {
		s, a := measuredOf(t, name)
		for _, m := range policy.Modes() {
			unasked, judged, asked := a.cells(m)
			var named formatting.Builder
			a.notHeld(&named, m)
			for _, w := range workable() {
				outcome, tried := s.loosest(m, w.category)
				if !tried {
					if slices.Contains(unasked, w.does) || slices.Contains(judged, w.is) || slices.Contains(asked, w.is) {
						t.Errorf("%s, %s: nothing was seen of %s, and it is told of", name, m, w.category)
					}
					continue
				}
				looked++
				says := "refused"
				switch {
				case slices.Contains(unasked, w.does):
					says = "ran"
				case slices.Contains(judged, w.is):
					says = "reviewed"
				case slices.Contains(asked, w.is):
					says = "asked"
				}
				loose := slices.ContainsFunc(a.Looser, func(d runner.Difference) bool {
					return d.Covers(m, policy.Default, w.category) && strings.Contains(named.Message().Text, formatting.Inline(d.What, 300))
				})
				if says != outcome && !(outcome == "ran" && loose) {
					t.Errorf("%s, %s, %s: the words say %s, and %s was seen", name, m, w.category, says, outcome)
				}
			}
		}
	}
	if looked < 100 {
		t.Errorf("only %d cells were looked at", looked)
	}
}

// TestTheWordsOfAMode keeps what people read, for each runtime with and without a reviewer.
func TestTheWordsOfAMode(t *testing.T) {
	t.Parallel()
	var all strings.Builder
	write := func(a agent, title string) {
		all.WriteString("== " + title + "\n")
		for _, m := range policy.Modes() {
			all.WriteString(string(m) + " – " + a.means(m) + "\n")
		}
		all.WriteString(a.fullMeans() + "\n")
		var b formatting.Builder
		a.notHeld(&b)
		all.WriteString(strings.TrimSpace(b.Message().Text) + "\n\n")
	}
	write(agent{}, "not known")
	for _, name := range []string{"native", "codex", "claude"} {
		_, a := measuredOf(t, name)
		write(a, name)
		a.reviewer = "small-1"
		write(a, name+", with a reviewer")
	}
	_, a := measuredOf(t, "claude")
	a.Reviewer = "Claude's own reviewer"
	write(a, "claude, with its own reviewer")
	a.reviewer = "small-1"
	write(a, "claude, with its own reviewer and ours")
	_, a = measuredOf(t, "codex")
	a.Reviewer = "Codex's own reviewer"
	for _, c := range []policy.Category{policy.Credential, policy.Payment, policy.System, policy.Publish} {
		a.Looser = append(a.Looser, runner.Difference{
			Category: c, Modes: []policy.Mode{policy.Auto}, To: policy.Review, What: "Codex's own reviewer decides about it in a person's place.",
		})
	}
	write(a, "codex, with its own reviewer")
	a.Modes[policy.FullAccess] = policy.Auto
	a.Why["full-access"] = "an administrator has ruled it out"
	write(a, "codex, without full-access")
	golden(t, "means", all.String())
}
