package claude

import (
	"encoding/json"
	"slices"
	"testing"

	"drawbridge/policy"
	"drawbridge/runner"
)

// TestToolsThatAreNotKnownAreUnknown also where their names are words for something harmless: a later version of the
// program may bring them, with paths in fields that nobody looks at.
func TestToolsThatAreNotKnownAreUnknown(t *testing.T) {
	t.Parallel()
	c := still(t)
	for _, name := range []string{
		"ReadManyFiles", "CodeSearch", "Think", "ApplyPatch", "CreateFile", "StrReplace", "Replace", "Todos", "read", "bash", "WRITE", "Download",
		"Skill", "SlashCommand", "LSP", "PowerShell", "TeamCreate", "Wri\u200bte", "Read ", "", "ReadMcpResource", "mcp__x__read", "mcp__read",
	} {
		got := c.classify(name, json.RawMessage(`{"path":"/etc/passwd","file_path":"/etc/passwd"}`))
		if !slices.Contains(got, policy.Unknown) {
			t.Errorf("%q counts as %v", name, got)
		}
		for _, m := range policy.Modes() {
			if v := policy.Decide(m, policy.Default, got...); v != policy.Ask && v != policy.Deny {
				t.Errorf("%q is %s in %s", name, v, m)
			}
		}
	}
}

// TestACommandThatIsNotAllOfItsCallIsShownWhole tries fields that may change what a command does.
func TestACommandThatIsNotAllOfItsCallIsShownWhole(t *testing.T) {
	t.Parallel()
	c := still(t)
	for input, whole := range map[string]bool{
		`{"command":"ls"}`: true,
		`{"command":"ls","description":"d","timeout":5,"run_in_background":true,"dangerouslyDisableSandbox":true}`: true,
		`{"command":"ls","Command":"rm -rf /"}`:            false,
		`{"command":"ls","env":{"LD_PRELOAD":"x"}}`:        false,
		`{"command":"ls","cwd":"/etc"}`:                    false,
		`{"command":"ls","shell":"python","COMMAND":"rm"}`: false,
	} {
		q, _ := c.question("Bash", json.RawMessage(input))
		if whole && (q.Kind != runner.KindCommand || q.Command != "ls" || slices.Contains(q.Categories, policy.Unknown)) {
			t.Errorf("%s is asked as %+v", input, q)
		}
		if !whole && (q.Kind != runner.KindTool || string(q.Arguments) != input || !slices.Contains(q.Categories, policy.Unknown)) {
			t.Errorf("%s is asked as %+v", input, q)
		}
	}
}
