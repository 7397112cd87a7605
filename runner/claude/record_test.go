//go:build runtimes

package claude_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"drawbridge/internal/jsonl"
	"drawbridge/internal/modeltest"
	"drawbridge/runner/claude"
)

// scripts are the model's, by the name of the scenario.
func scripts() map[string]modeltest.Script {
	write := modeltest.CallOf("Write", args{"file_path": "new.txt", "content": "words\n"})
	plan := modeltest.CallOf("ExitPlanMode", args{"plan": "# A plan\n\n1. Do it"})
	agent := modeltest.CallOf("Agent", args{"description": "a part", "prompt": "sub", "subagent_type": "general-purpose"})
	main, sub := calls(agent), calls(bash("touch below"))
	failing := func(f modeltest.Fault, times int) modeltest.Script {
		n := 0
		return func(context.Context, modeltest.Request) modeltest.Reply {
			if n++; n > times {
				return modeltest.Reply{Text: "at last"}
			}
			return modeltest.Reply{Fault: f}
		}
	}
	return map[string]modeltest.Script{
		"text": func(_ context.Context, r modeltest.Request) modeltest.Reply {
			return modeltest.Reply{Reasoning: "hm", Text: prompted(r.Messages)}
		},
		"allowed": calls(bash("echo out; echo err >&2"), bash("echo out; exit 3"), write, modeltest.CallOf("Read", args{"file_path": "new.txt"})),
		"refused": calls(bash("touch done"), write, modeltest.CallOf("WebFetch", args{"url": "http://127.0.0.1:9/x", "prompt": "read"})),
		"edits": calls(write, modeltest.CallOf("Edit", args{"file_path": "new.txt", "old_string": "words", "new_string": "other\nwords"}),
			modeltest.CallOf("Edit", args{"file_path": "new.txt", "old_string": "none", "new_string": "x"})),
		"question": calls(modeltest.CallOf("AskUserQuestion", args{"questions": []any{args{
			"question": "Which one?", "header": "Which", "multiSelect": false,
			"options": []any{args{"label": "left", "description": "the left one"}, args{"label": "right", "description": "the right one"}},
		}}})),
		"plan":            calls(plan, write),
		"planned-refused": calls(write, bash("touch done"), plan),
		"interrupted":     calls(bash("touch begun; tail -f /dev/null")),
		"withdrawn":       calls(bash("touch done")),
		"background": calls(modeltest.CallOf("Bash", args{
			"command": "touch behind; sleep 0.2", "description": "run it", "run_in_background": true,
		})),
		"sub-agent": func(ctx context.Context, r modeltest.Request) modeltest.Reply {
			if prompted(r.Messages) == "sub" {
				return sub(ctx, r)
			}
			return main(ctx, r)
		},
		"unauthorised": failing(modeltest.Fault{Status: http.StatusUnauthorized, Code: "authentication_error"}, 1000),
		"overloaded":   failing(modeltest.Fault{Status: 529, Code: "overloaded_error"}, 2),
	}
}

// TestScenariosOnTheRealProgram plays every scenario on the real program. With -update it records them anew.
func TestScenariosOnTheRealProgram(t *testing.T) {
	t.Parallel()
	for _, s := range scenarios() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			var frames bytes.Buffer
			rec := jsonl.NewRecorder(&frames)
			data := t.TempDir()
			r := live(t, serve(t, modeltest.Config{Script: scripts()[s.name], Piece: 40}), claude.Config{Record: rec, Data: data})
			o := begin(t, r, folder(t), s.policy, s.answer)
			s.run(o)
			token := o.ResumeToken()
			if err := o.Close(); err != nil {
				t.Error(err)
			}
			if *update {
				clean := cleaned(t, frames.String(), strings.NewReplacer(o.folder, "/FOLDER", token, recordedSession, data, "/DATA"))
				if err := os.WriteFile(filepath.Join("testdata", s.name+".jsonl"), []byte(clean), 0o600); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// cleaned is a recording as a transcript: without times, and of what the program says of itself only what is used.
func cleaned(t *testing.T, recording string, r *strings.Replacer) string {
	t.Helper()
	var b strings.Builder
	for text := range strings.Lines(r.Replace(recording)) {
		var l line
		var frame map[string]any
		if err := json.Unmarshal([]byte(text), &l); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(l.Frame, &frame); err != nil {
			t.Fatal(err)
		}
		if response, ok := frame["response"].(map[string]any); ok {
			if ready, ok := response["response"].(map[string]any); ok && ready["commands"] != nil {
				only(ready, "claude_code_version", "current_permission_mode", "hooks_applied", "hook_on_failure_supported", "account")
			}
		}
		if frame["subtype"] == "init" {
			only(frame, "type", "subtype", "session_id", "cwd", "tools", "mcp_servers", "model", "permissionMode", "claude_code_version")
		}
		if frame["type"] == "control_request" && l.Dir == "out" {
			if request, ok := frame["request"].(map[string]any); ok {
				only(request, "subtype")
			}
		}
		for _, name := range []string{"timestamp", "ttft_ms", "duration_ms", "duration_api_ms", "subagent_stats", "fast_mode_state", "request_id0"} {
			delete(frame, name)
		}
		out, err := json.Marshal(frame)
		if err != nil {
			t.Fatal(err)
		}
		l.Frame = out
		out, err = json.Marshal(l)
		if err != nil {
			t.Fatal(err)
		}
		b.Write(append(out, '\n'))
	}
	return b.String()
}

// only removes all but some members.
func only(m map[string]any, names ...string) {
	for name := range m {
		if !slices.Contains(names, name) {
			delete(m, name)
		}
	}
}
