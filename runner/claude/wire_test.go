package claude_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"drawbridge/policy"
	"drawbridge/runner"
	"drawbridge/runner/claude"
)

// ready is the program's answer to initialize, in a mode.
func ready(mode string) string {
	return fmt.Sprintf(`{"dir":"out","frame":{"type":"control_request","request_id":"r1","request":{"subtype":"initialize"}}}
{"dir":"in","frame":{"type":"control_response","response":{"subtype":"success","request_id":"r1","response":{"claude_code_version":"2.1.332","current_permission_mode":%q,"hooks_applied":true,"hook_on_failure_supported":true,"models":[{"value":"default","resolvedModel":"claude-opus-5-5","supportsAutoMode":true},{"value":"old","supportsAutoMode":false}]}}}}
`, mode)
}

// moded is a change of the program's mode, as it is asked for.
func moded(id, mode string) string {
	return fmt.Sprintf(`{"dir":"out","frame":{"type":"control_request","request_id":%q,"request":{"subtype":"set_permission_mode"}}}
{"dir":"in","frame":{"type":"control_response","response":{"subtype":"success","request_id":%q,"response":{"mode":%q}}}}
`, id, id, mode)
}

// mcpStatus is the program's word on its MCP servers.
func mcpStatus(id, servers string) string {
	return fmt.Sprintf(`{"dir":"out","frame":{"type":"control_request","request_id":%q,"request":{"subtype":"mcp_status"}}}
{"dir":"in","frame":{"type":"control_response","response":{"subtype":"success","request_id":%q,"response":{"mcpServers":%s}}}}
`, id, id, servers)
}

// turned is a turn in which nothing happens but the frames between.
func turned(uuid, between string) string {
	return prompted0(uuid) + between + ended0(uuid)
}

func prompted0(uuid string) string {
	return fmt.Sprintf(`{"dir":"out","frame":{"type":"user","uuid":%q}}
{"dir":"in","frame":{"type":"system","subtype":"session_state_changed","state":"running"}}
{"dir":"in","frame":{"type":"system","subtype":"init","session_id":%q,"mcp_servers":[]}}
`, uuid, recordedSession)
}

func ended0(uuid string) string {
	return fmt.Sprintf(`{"dir":"in","frame":{"type":"result","subtype":"success","is_error":false,"result":"x","terminal_reason":"completed","user_message_uuid":%q}}
{"dir":"in","frame":{"type":"command_lifecycle","command_uuid":%q,"state":"completed"}}
{"dir":"in","frame":{"type":"system","subtype":"session_state_changed","state":"idle"}}
`, uuid, uuid)
}

// sent is what the fake was started with and told: its options, and the requests that say what holds.
func sent(t *testing.T, o *open, file string) string {
	t.Helper()
	replace := []string{o.folder, "/FOLDER", o.data, "/DATA"}
	if token := o.ResumeToken(); token != "" {
		replace = append(replace, token, recordedSession)
	}
	var b strings.Builder
	for _, name := range []string{argumentsFile, receivedFile} {
		text, err := os.ReadFile(file + name)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			var h struct {
				Type    string         `json:"type"`
				Request map[string]any `json:"request"`
			}
			if name == receivedFile {
				if err := json.Unmarshal([]byte(line), &h); err != nil {
					t.Fatal(err)
				}
				if h.Type != "control_request" {
					continue
				}
				request, err := json.Marshal(h.Request)
				if err != nil {
					t.Fatal(err)
				}
				line = string(request) + "\n"
			}
			b.WriteString(strings.NewReplacer(replace...).Replace(line))
		}
	}
	return b.String()
}

// TestTheOptionsOnTheWire keeps, for each mode and interaction, with and without the program's own reviewer, what holds
// the program: at the start, when resumed, and when started again after a crash.
func TestTheOptionsOnTheWire(t *testing.T) {
	t.Parallel()
	const crash = `{"dir":"exit","exit":1,"says":"gone"}
`
	for _, reviewer := range []bool{false, true} {
		for _, m := range policy.Modes() {
			for _, i := range []policy.Interaction{policy.Default, policy.Plan} {
				name := fmt.Sprintf("%s-%s-reviewer-%v", m, i, reviewer)
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					start, set := "default", ""
					if i == policy.Plan {
						start = "plan"
					}
					if reviewer && m == policy.Auto && i == policy.Default {
						set = mcpStatus("request-status", "[]") + moded("request-mode", "auto")
					}
					one := ready(start) + set + turned("00000000-0000-4000-8000-00000000000a", "") + crash
					r, file := faked(t, one+"{\"dir\":\"process\"}\n"+one, claude.Config{Reviewer: reviewer})
					o := begin(t, r, folder(t), runner.Policy{Mode: m, Interaction: i}, no)
					o.turn("go", runner.Completed)
					<-o.gone()
					o.turn("again", runner.Completed) // in another process
					text := "fresh, and after a crash:\n" + sent(t, o, file)
					golden(t, "wire-"+name+".golden", text)

					r, file = faked(t, one, claude.Config{Reviewer: reviewer})
					again := resume(t, r, o.folder, o.ResumeToken(), runner.Policy{Mode: m, Interaction: i}, no)
					again.turn("go", runner.Completed)
					if resumed := sent(t, again, file); !strings.Contains(text, resumed) && resumed != resumedPart(text) {
						t.Errorf("resumed, the program gets\n%snot what it gets after a crash:\n%s", resumed, resumedPart(text))
					}
				})
			}
		}
	}
}

// resumedPart is what a second process of a golden file got.
func resumedPart(text string) string {
	lines := strings.SplitAfter(strings.TrimPrefix(text, "fresh, and after a crash:\n"), "\n")
	n := (len(lines) - 1) / 2 // two processes: two lines of arguments, and as many requests of each
	return lines[1] + strings.Join(lines[n+1:], "")
}

// TestNothingLoosensOnTheWire looks through all golden files for the words by which the program skips its questions.
func TestNothingLoosensOnTheWire(t *testing.T) {
	t.Parallel()
	found := 0
	entries, err := os.ReadDir("testdata")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), "wire-") {
			continue
		}
		found++
		b, err := os.ReadFile("testdata/" + e.Name())
		if err != nil {
			t.Fatal(err)
		}
		for _, word := range append(claude.BypassWords(), "dontAsk", "addRules", "addDirectories", "--allow", "--add-dir", "--tools") {
			if strings.Contains(string(b), word) {
				t.Errorf("%s has %q", e.Name(), word)
			}
		}
		for _, word := range []string{`"onFailure":"block"`, `"timeout":604800`, "--strict-mcp-config", `"--setting-sources",""`, "--permission-prompt-tool"} {
			if strings.Count(string(b), word) != 2 {
				t.Errorf("%s does not have %q for each process", e.Name(), word)
			}
		}
		if strings.Contains(string(b), `"auto"`) && !strings.HasPrefix(e.Name(), "wire-auto-default-reviewer-true") {
			t.Errorf("%s has the program's mode auto", e.Name())
		}
	}
	if found != 16 {
		t.Errorf("%d files, want 16", found)
	}
}
