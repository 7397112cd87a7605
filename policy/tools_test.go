package policy_test

import (
	"slices"
	"testing"

	"drawbridge/policy"

	"pgregory.net/rapid"
)

func TestClassifyToolByNameAndByTheOwnersMap(t *testing.T) {
	t.Parallel()
	yes, no := new(true), new(false)
	owner := map[string]policy.Category{
		"docs/search":           policy.Fetch,
		"docs/*":                policy.Network,
		"mail__send":            policy.Publish,
		"read_file":             policy.Secret,
		"odd/*":                 "harmless",
		"mcp__db__*":            policy.Read,
		"db/*":                  policy.Write,
		"mcp__calendar__create": policy.Publish,
		"AskUserQuestion":       policy.Read,
	}
	table := []struct {
		name  string
		hints policy.Hints
		owner map[string]policy.Category
		want  []policy.Category
	}{
		{name: "Read", want: []policy.Category{policy.Read}},
		{name: "read_file", want: []policy.Category{policy.Read}},
		{name: "Grep", want: []policy.Category{policy.Read}},
		{name: "list-dir", want: []policy.Category{policy.Read}},
		{name: "Edit", want: []policy.Category{policy.Write}},
		{name: "apply_patch", want: []policy.Category{policy.Write}},
		{name: "Bash", want: []policy.Category{policy.Terminal}},
		{name: "run_shell_command", want: []policy.Category{policy.Terminal}},
		{name: "WebFetch", want: []policy.Category{policy.Fetch}},
		{name: "WebSearch", want: []policy.Category{policy.Network}},
		{name: "AskUserQuestion", want: []policy.Category{policy.Question}},
		{name: "", want: []policy.Category{policy.Unknown}},
		{name: "frobnicate", want: []policy.Category{policy.Unknown}},
		{name: "Reader", want: []policy.Category{policy.Unknown}},
		// What a foreign server calls its tools says nothing.
		{name: "evil/read_file", want: []policy.Category{policy.Unknown}},
		{name: "mcp__evil__read_file", want: []policy.Category{policy.Unknown}},
		{name: "evil__Read", want: []policy.Category{policy.Unknown}},
		{name: "evil.read", want: []policy.Category{policy.Unknown}},
		{name: "evil:read", want: []policy.Category{policy.Unknown}},
		{name: "mcp__read", want: []policy.Category{policy.Unknown}},
		{name: "/read", want: []policy.Category{policy.Unknown}},
		// The owner's map: the exact name, then the server.
		{name: "docs/search", owner: owner, want: []policy.Category{policy.Fetch}},
		{name: "docs/other", owner: owner, want: []policy.Category{policy.Network}},
		{name: "docs__other", owner: owner, want: []policy.Category{policy.Network}},
		{name: "mcp__docs__search", owner: owner, want: []policy.Category{policy.Fetch}},
		{name: "mail__send", owner: owner, want: []policy.Category{policy.Publish}},
		{name: "mail__other", owner: owner, want: []policy.Category{policy.Unknown}},
		{name: "mcp__calendar__create", owner: owner, want: []policy.Category{policy.Publish}},
		{name: "docsx/search", owner: owner, want: []policy.Category{policy.Unknown}},
		{name: "DOCS/search", owner: owner, want: []policy.Category{policy.Unknown}},
		{name: "read_file", owner: owner, want: []policy.Category{policy.Secret}},
		{name: "odd/x", owner: owner, want: []policy.Category{policy.Unknown}},
		// What is human-only by its name stays so, whatever the owner says.
		{name: "AskUserQuestion", owner: owner, want: []policy.Category{policy.Question, policy.Read}},
		{name: "mcp__x__AskUserQuestion", owner: owner, want: []policy.Category{policy.Unknown}},
		// Hints add, and never take away.
		{name: "frobnicate", hints: policy.Hints{ReadOnly: yes}, want: []policy.Category{policy.Unknown}},
		{name: "frobnicate", hints: policy.Hints{ReadOnly: yes, Destructive: no, OpenWorld: no}, want: []policy.Category{policy.Unknown}},
		{name: "Edit", hints: policy.Hints{ReadOnly: yes}, want: []policy.Category{policy.Write}},
		{name: "Read", hints: policy.Hints{ReadOnly: no}, want: []policy.Category{policy.Write}},
		{name: "Read", hints: policy.Hints{Destructive: yes}, want: []policy.Category{policy.Delete}},
		{name: "Read", hints: policy.Hints{OpenWorld: yes}, want: []policy.Category{policy.Network}},
		{name: "docs/search", owner: owner, hints: policy.Hints{Destructive: yes}, want: []policy.Category{policy.Delete, policy.Fetch}},
	}
	for _, e := range table {
		if got := policy.ClassifyTool(e.name, e.hints, e.owner); !slices.Equal(got, e.want) {
			t.Errorf("ClassifyTool(%q) = %v, want %v", e.name, got, e.want)
		}
	}
}

func TestHintsOnlyMakeStricter(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		hint := rapid.SampledFrom([]*bool{nil, new(true), new(false)})
		h := policy.Hints{ReadOnly: hint.Draw(t, "read only"), Destructive: hint.Draw(t, "destructive"), OpenWorld: hint.Draw(t, "open world")}
		name := rapid.SampledFrom([]string{"Read", "Edit", "Bash", "a/b", "x", "docs/y"}).Draw(t, "name")
		owner := map[string]policy.Category{"docs/*": rapid.SampledFrom(categories).Draw(t, "category")}
		bare, hinted := policy.ClassifyTool(name, policy.Hints{}, owner), policy.ClassifyTool(name, h, owner)
		for _, m := range policy.Modes() {
			for _, i := range []policy.Interaction{policy.Default, policy.Plan} {
				if strictness(policy.Decide(m, i, hinted...)) < strictness(policy.Decide(m, i, bare...)) {
					t.Fatalf("%s with hints is %v, without %v", name, hinted, bare)
				}
			}
		}
	})
}

// TestTheOwnersMapNeverTakesFromAPerson: whatever the owner says, a tool that is human-only by its name stays so.
func TestTheOwnersMapNeverTakesFromAPerson(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom([]string{"AskUserQuestion", "ask_user", "request_user_input", "elicit"}).Draw(t, "name")
		owner := map[string]policy.Category{name: rapid.SampledFrom(policy.Categories()).Draw(t, "category"), "*": policy.Read, "/*": policy.Read}
		if got := policy.ClassifyTool(name, policy.Hints{}, owner); !policy.HumanOnly(got...) {
			t.Fatalf("%s is %v", name, got)
		}
	})
}
