package codex

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"drawbridge/policy"
	"drawbridge/runner"
)

// hooked is what codex gives a hook, as it was seen.
func hooked(folder, tool, command string) []byte {
	b, err := json.Marshal(map[string]any{
		"session_id": "01a231b7-494b-77b0-b538-810c97779960", "turn_id": "01a231b7-c0f0-7df3-8549-017c9a7b700e", "transcript_path": "/h/x.jsonl",
		"cwd": folder, "hook_event_name": "PermissionRequest", "model": "gpt-5.5", "permission_mode": "default", "tool_name": tool,
		"tool_input": map[string]any{"command": command, "description": "May I?"},
	})
	if err != nil {
		panic(err)
	}
	return b
}

func TestAHooksRequestIsShownWhole(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	h, err := ParseHook(hooked(folder, "Bash", "git push"), "/home/ada")
	if err != nil {
		t.Fatal(err)
	}
	if q := h.Question; q.Kind != runner.KindCommand || q.Command != "git push" || q.Title != "May I?" || q.Folder != folder || !q.Has(policy.Publish) {
		t.Errorf("a command is asked as %+v", q)
	}
	h, err = ParseHook(hooked(folder, "mcp__shop__buy", "tea"), "/home/ada")
	if err != nil {
		t.Fatal(err)
	}
	if q := h.Question; q.Kind != runner.KindTool || !strings.Contains(string(q.Arguments), "tea") || !q.Has(policy.Unknown) {
		t.Errorf("a tool is asked as %+v", q)
	}
	patch := "*** Begin Patch\n*** Add File: new.txt\n+hello\n*** Update File: a.txt\n*** Move to: b.txt\n@@\n-one\n+two\n*** Delete File: /etc/x\n*** End Patch"
	h, err = ParseHook(hooked(folder, "apply_patch", patch), "/home/ada")
	if err != nil {
		t.Fatal(err)
	}
	q := h.Question
	want := []runner.FileChange{
		{Path: "new.txt", Op: runner.FileCreate, Diff: "+hello\n", Added: 1},
		{Path: "a.txt → b.txt", Op: runner.FileMove, Diff: "@@\n-one\n+two\n", Added: 1, Removed: 1},
		{Path: "/etc/x", Op: runner.FileDelete},
	}
	if len(q.Files) != len(want) || !q.Has(policy.Protected) {
		t.Fatalf("a patch is asked as %+v", q)
	}
	for i, f := range q.Files {
		if f != want[i] {
			t.Errorf("file %d is %+v, want %+v", i, f, want[i])
		}
	}
	before, err := q.Check()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "a.txt"), []byte("one\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if after, err := q.Check(); err != nil || after == before {
		t.Errorf("a file that changed is not seen to have (%v)", err)
	}
	for _, odd := range []string{"*** Begin Patch\n+x\n*** End Patch", "*** Begin Patch\n*** End Patch", "*** Add File: x\n+y\nz"} {
		h, err := ParseHook(hooked(folder, "apply_patch", odd), "/home/ada")
		if err != nil || h.Question.Kind != runner.KindTool || len(h.Question.Arguments) == 0 {
			t.Errorf("%q is asked as %+v (%v)", odd, h.Question, err)
		}
	}
}

func TestWhatAHookDoesNotUnderstandIsForTheTerminal(t *testing.T) {
	t.Parallel()
	for name, raw := range map[string]string{
		"nothing":       ``,
		"no JSON":       `{"hook_event_name":`,
		"another kind":  `[]`,
		"another event": strings.Replace(string(hooked("/w", "Bash", "ls")), "PermissionRequest", "PreToolUse", 1),
		"no session":    strings.Replace(string(hooked("/w", "Bash", "ls")), "01a231b7-494b-77b0-b538-810c97779960", "../x", 1),
		"no folder":     string(hooked("w", "Bash", "ls")),
		"no tool":       string(hooked("/w", "", "ls")),
	} {
		if h, err := ParseHook([]byte(raw), "/home/ada"); err == nil {
			t.Errorf("%s became %+v", name, h.Question)
		}
	}
}

func TestAHookAnswersOnlyForAPerson(t *testing.T) {
	t.Parallel()
	for name, one := range map[string]struct {
		answer runner.Answer
		want   string
	}{
		"yes":            {runner.Answer{Decision: runner.Allowed, Source: runner.SourceUser}, `{"hookSpecificOutput":{"decision":{"behavior":"allow"},"hookEventName":"PermissionRequest"}}`},
		"no":             {runner.Answer{Decision: runner.Denied, Source: runner.SourceUser, Reason: "no"}, `{"hookSpecificOutput":{"decision":{"behavior":"deny","message":"The user refused this. Reason: no"},"hookEventName":"PermissionRequest"}}`},
		"nobody in time": {runner.Answer{Decision: runner.Denied, Source: runner.SourceTimeout}, ``},
		"a rule's yes":   {runner.Answer{Decision: runner.Allowed, Source: runner.SourceRule}, ``},
		"the zero value": {runner.Answer{}, ``},
	} {
		if got := string(Hooked{}.Answer(one.answer)); got != one.want {
			t.Errorf("%s: the hook prints\n%s\nwant\n%s", name, got, one.want)
		}
	}
}

func FuzzParseHook(f *testing.F) {
	f.Add(hooked("/w", "Bash", "ls"))
	f.Add(hooked("/w", "apply_patch", "*** Begin Patch\n*** Add File: a\n+x\n*** End Patch"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		h, err := ParseHook(raw, "/home/ada")
		if err == nil && (h.Session == "" || !filepath.IsAbs(h.Folder) || len(h.Question.Categories) == 0) {
			t.Errorf("%q became %+v", raw, h)
		}
	})
}
