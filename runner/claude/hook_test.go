package claude

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"drawbridge/policy"
	"drawbridge/runner"
)

// hooked is what the program gives a hook, as it was seen.
func hooked(folder, tool, input string) []byte {
	b, err := json.Marshal(map[string]any{
		"session_id": "68c01727-aaf3-4bdf-bc84-1de2593fc1c8", "transcript_path": "/h/.claude/projects/-w/68c01727-aaf3-4bdf-bc84-1de2593fc1c8.jsonl",
		"cwd": folder, "prompt_id": "129c940d-8d5e-418a-833d-21f8e42d0b7d", "permission_mode": "default", "effort": map[string]string{"level": "medium"},
		"hook_event_name": "PermissionRequest", "tool_name": tool, "tool_input": json.RawMessage(input),
		"permission_suggestions": []map[string]any{{"type": "setMode", "mode": "acceptEdits", "destination": "session"}},
	})
	if err != nil {
		panic(err)
	}
	return b
}

func TestAHooksRequestIsShownWhole(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "a.txt"), []byte("one\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, one := range map[string]struct {
		tool, input string
		kind        runner.QuestionKind
		shows       []string
		category    policy.Category
	}{
		"a command":                 {"Bash", `{"command":"touch made.txt","description":"run it"}`, runner.KindCommand, []string{"touch made.txt"}, policy.Terminal},
		"a command with more to it": {"Bash", `{"command":"make","dangerouslyDisableSandbox":true}`, runner.KindTool, []string{"make", "dangerouslyDisableSandbox"}, policy.Terminal},
		"a publishing command":      {"Bash", `{"command":"git push"}`, runner.KindCommand, []string{"git push"}, policy.Publish},
		"a new file":                {"Write", `{"file_path":"` + folder + `/note.txt","content":"hello\n"}`, runner.KindFileChange, []string{"note.txt", "+hello"}, policy.Write},
		"a change":                  {"Edit", `{"file_path":"` + folder + `/a.txt","old_string":"one","new_string":"two"}`, runner.KindFileChange, []string{"-one", "+two"}, policy.Write},
		"a change that is not seen": {"Edit", `{"file_path":"` + folder + `/a.txt","old_string":"six","new_string":"two"}`, runner.KindTool, []string{"six", "two"}, policy.Write},
		"a tool of a server":        {"mcp__shop__buy", `{"item":"tea"}`, runner.KindTool, []string{"mcp__shop__buy", "tea"}, policy.Unknown},
		"a plan":                    {"ExitPlanMode", `{"plan":"# P\n1. do","planFilePath":"/p.md"}`, runner.KindPlan, []string{"1. do"}, policy.Question},
		"a question": {
			"AskUserQuestion", `{"questions":[{"question":"Which?","header":"H","multiSelect":false,"options":[{"label":"A","description":"first"},{"label":"B","description":"second"}]}]}`,
			runner.KindQuestion,
			[]string{"Which?", "first", "B"},
			policy.Question,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, err := ParseHook(hooked(folder, one.tool, one.input), "/home/ada")
			if err != nil {
				t.Fatal(err)
			}
			b, err := json.Marshal(h.Question)
			if err != nil {
				t.Fatal(err)
			}
			for _, text := range one.shows {
				if !bytes.Contains(b, []byte(text)) {
					t.Errorf("%s does not show %q", b, text)
				}
			}
			if h.Question.Kind != one.kind || !h.Question.Has(one.category) || h.Question.Folder != folder || h.Folder != folder {
				t.Errorf("it is asked as %s", b)
			}
		})
	}
}

func TestWhatAHookDoesNotUnderstandIsForTheTerminal(t *testing.T) {
	t.Parallel()
	for name, raw := range map[string]string{
		"nothing":        ``,
		"no JSON":        `{"hook_event_name":`,
		"another kind":   `[]`,
		"another event":  strings.Replace(string(hooked("/w", "Bash", `{"command":"ls"}`)), "PermissionRequest", "PreToolUse", 1),
		"no session":     strings.Replace(string(hooked("/w", "Bash", `{"command":"ls"}`)), "68c01727-aaf3-4bdf-bc84-1de2593fc1c8\",\"tool", "../../x\",\"tool", 1),
		"no folder":      string(hooked("w", "Bash", `{"command":"ls"}`)),
		"no tool":        string(hooked("/w", "", `{}`)),
		"an empty plan":  string(hooked("/w", "ExitPlanMode", `{}`)),
		"empty question": string(hooked("/w", "AskUserQuestion", `{"questions":[]}`)),
	} {
		if h, err := ParseHook([]byte(raw), "/home/ada"); err == nil {
			t.Errorf("%s became %+v", name, h.Question)
		}
	}
}

func TestAHookAnswersOnlyForAPerson(t *testing.T) {
	t.Parallel()
	yes := runner.Answer{Decision: runner.Allowed, Source: runner.SourceUser, By: "Ada"}
	no := runner.Answer{Decision: runner.Denied, Source: runner.SourceUser, Reason: "not now"}
	command := hooked("/w", "Bash", `{"command":"make"}`)
	plan := hooked("/w", "ExitPlanMode", `{"plan":"1. go","planFilePath":"/p.md"}`)
	question := hooked("/w", "AskUserQuestion", `{"questions":[{"question":"Which?","header":"H","multiSelect":true,"options":[{"label":"A"},{"label":"B"}]}]}`)
	for name, one := range map[string]struct {
		raw    []byte
		answer runner.Answer
		want   string
	}{
		"yes":              {command, yes, `{"hookSpecificOutput":{"decision":{"behavior":"allow"},"hookEventName":"PermissionRequest"}}`},
		"no":               {command, no, `{"hookSpecificOutput":{"decision":{"behavior":"deny","message":"The user refused this. Reason: not now"},"hookEventName":"PermissionRequest"}}`},
		"nobody in time":   {command, runner.Answer{Decision: runner.Denied, Source: runner.SourceTimeout}, ``},
		"withdrawn":        {command, runner.Answer{Decision: runner.Withdrawn, Source: runner.SourceUser}, ``},
		"a rule's yes":     {command, runner.Answer{Decision: runner.Allowed, Source: runner.SourceRule}, ``},
		"a grant's yes":    {command, runner.Answer{Decision: runner.Allowed, Source: runner.SourceGrant}, ``},
		"a reviewer's yes": {command, runner.Answer{Decision: runner.Allowed, Source: runner.SourceReviewer}, ``},
		"the zero value":   {command, runner.Answer{}, ``},
		"a plan never goes on in a looser mode": {
			plan, yes,
			`{"hookSpecificOutput":{"decision":{"behavior":"allow","updatedInput":{"plan":"1. go","planFilePath":"/p.md"},"updatedPermissions":[{"type":"setMode","mode":"default","destination":"session"}]},"hookEventName":"PermissionRequest"}}`,
		},
		"answers stand beside the questions": {
			question,
			runner.Answer{Decision: runner.Allowed, Source: runner.SourceUser, Answers: map[string][]string{"Which?": {"A", "B"}}},
			`{"hookSpecificOutput":{"decision":{"behavior":"allow","updatedInput":{"answers":{"Which?":"A, B"},"questions":[{"question":"Which?","header":"H","multiSelect":true,"options":[{"label":"A"},{"label":"B"}]}]}},"hookEventName":"PermissionRequest"}}`,
		},
	} {
		h, err := ParseHook(one.raw, "/home/ada")
		if err != nil {
			t.Fatal(err)
		}
		if got := string(h.Answer(one.answer)); got != one.want {
			t.Errorf("%s: the hook prints\n%s\nwant\n%s", name, got, one.want)
		}
	}
}

func FuzzParseHook(f *testing.F) {
	f.Add(hooked("/w", "Bash", `{"command":"ls"}`))
	f.Add(hooked("/w", "ExitPlanMode", `{"plan":"x"}`))
	f.Add([]byte(`{"hook_event_name":"PermissionRequest"}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		h, err := ParseHook(raw, "/home/ada")
		if err == nil && (h.Session == "" || !filepath.IsAbs(h.Folder) || len(h.Question.Categories) == 0) {
			t.Errorf("%q became %+v", raw, h)
		}
	})
}
