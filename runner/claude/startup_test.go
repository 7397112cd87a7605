package claude_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"drawbridge/runner"
	"drawbridge/runner/claude"
)

// TestNothingOfTheAgentsSpeaksForLaterSessions plants, as an agent that was allowed to could, what the program and its
// shells read: before a session begins, and between the question about a command and its answer.
func TestNothingOfTheAgentsSpeaksForLaterSessions(t *testing.T) {
	t.Parallel()
	const call = `{"dir":"in","frame":{"type":"control_request","request_id":"request-hook","request":{"subtype":"hook_callback","callback_id":"drawbridge-gate","tool_use_id":"c","input":{"hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"true"},"tool_use_id":"c"}}}}
{"dir":"answers","size":1}
{"dir":"in","frame":{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":""}]}}}
`
	data := t.TempDir()
	r, _ := faked(t, ready("default")+turned(uuid, call), claude.Config{Data: data})
	plant := func(names ...string) {
		for _, name := range names {
			file := filepath.Join(data, name)
			if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte("planted"), 0o600)); err != nil {
				t.Error(err)
			}
		}
	}
	left := func(when string, names ...string) {
		for _, name := range names {
			if _, err := os.Lstat(filepath.Join(data, name)); err == nil {
				t.Errorf("%s, %s is there", when, name)
			}
		}
	}
	all := []string{
		"home/.bashrc", "home/.profile", "home/.gitconfig", "config/settings.json", "config/CLAUDE.md", "config/agents/a.md", "config/skills/s/SKILL.md",
		"config/hooks/h.sh", "config/plugins/p.json", "config/commands/c.md",
	}
	plant(append(all, "config/projects/kept.jsonl", "home/.cache/kept")...)
	o := begin(t, r, folder(t), asking, func(q runner.Question) runner.Answer {
		left("once the session has begun", all...)
		plant("home/.bashrc")
		return yes(q)
	})
	o.turn("go", runner.Completed)
	left("once a command was allowed", "home/.bashrc")
	for _, kept := range []string{"config/projects/kept.jsonl", "home/.cache/kept"} {
		if _, err := os.Stat(filepath.Join(data, kept)); err != nil {
			t.Error(err)
		}
	}
	if len(o.questions) != 1 {
		t.Errorf("asked %+v", o.questions)
	}
}
