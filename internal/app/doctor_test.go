package app

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"drawbridge/policy"
	"drawbridge/runner"
)

// TestDoctorSaysWhatIsMissing: each runtime and project by name, and an exit code that a script can see.
func TestDoctorSaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	project := filepath.Join(dir, "shop")
	if err := os.Mkdir(project, 0o700); err != nil {
		t.Fatal(err)
	}
	run := func(env ...string) (code int, out string) {
		var stdout, stderr bytes.Buffer
		all := append([]string{"HOME=" + dir, "PATH=" + filepath.Join(dir, "nothing"), "DRAWBRIDGE_DATA_DIR=" + filepath.Join(dir, "data")}, env...)
		code = Main(t.Context(), Process{Args: []string{"doctor"}, Env: all, In: strings.NewReader(""), Out: &stdout, Err: &stderr})
		return code, stdout.String() + stderr.String()
	}
	code, out := run("DRAWBRIDGE_PROJECTS=shop="+project+",gone="+filepath.Join(dir, "gone"), "DRAWBRIDGE_MODEL_URL=http://127.0.0.1:1/v1", "DRAWBRIDGE_MODEL=m")
	for _, want := range []string{"project shop: " + project, "project gone: " + filepath.Join(dir, "gone") + " is no folder", "runtime native: failed", "problem: "} {
		if !strings.Contains(out, want) {
			t.Errorf("the doctor does not say %q:\n%s", want, out)
		}
	}
	if code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
}

// TestDoctorSaysWhatIsTrustedAndServed: each MCP server with who gets it and what keeps it from being used, each project with
// what is used of its own configuration, and nothing of what servers are given.
func TestDoctorSaysWhatIsTrustedAndServed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"shop/.claude", "web", "mine"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"shop/.claude/settings.json", "shop/.mcp.json"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("{}"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var asked string
	served := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { asked = r.Method + r.Header.Get("Authorization") }))
	defer served.Close()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "drawbridge.toml")
	text := fmt.Sprintf(`
[[project]]
name = "shop"
path = %q
[[project]]
name = "mine"
path = %q
trusted = true
[[project]]
name = "also"
path = %q
trusted = true
[[project]]
name = "web"
path = %q
[[runtime]]
name = "claude"
program = "/nowhere/claude"
login = ""
[[runtime]]
name = "codex"
program = "/nowhere/codex"
login = ""
[[mcp]]
name = "bank"
command = %q
args = ["--stdio"]
env = { KEY = "hunter2" }
[[mcp]]
name = "gone"
command = "/nowhere/mcp"
[[mcp]]
name = "tracker"
url = %q
headers = { Authorization = "Bearer hunter2" }
runtimes = ["codex"]
[[mcp]]
name = "away"
url = "http://127.0.0.1:1/mcp"
[tools]
"bank/pay" = "payment"
`, filepath.Join(dir, "shop"), filepath.Join(dir, "mine"), filepath.Join(dir, "web"), filepath.Join(dir, "web"), self, served.URL)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	env := []string{"HOME=" + dir, "DRAWBRIDGE_DATA_DIR=" + filepath.Join(dir, "data"), "DRAWBRIDGE_CONFIG=" + file}
	code := Main(t.Context(), Process{Args: []string{"doctor"}, Env: env, In: strings.NewReader(""), Out: &stdout, Err: &stderr})
	out := stdout.String()
	for _, want := range []string{
		"trusted: no: its own settings and MCP servers are not used (there is .claude/settings.json and .mcp.json). If you would run whatever stands there, write trusted = true",
		"project mine: " + filepath.Join(dir, "mine") + "\n  trusted: yes: claude uses its own settings and MCP servers (there are none today)",
		"trusted: no: another project has this folder and is not trusted. Write trusted = true there as well",
		"mcp bank: " + self + " --stdio\n  used: yes, by claude, codex\n  bank/pay: payment\n",
		"mcp gone: /nowhere/mcp\n  used: no: /nowhere/mcp is no program that is found here. Install it, or write",
		"mcp tracker: " + served.URL + "\n  used: yes, by codex\n  tools: none is known, so each call is asked. Say under [tools]",
		"mcp away: http://127.0.0.1:1/mcp\n  used: no: nothing answers at its url. Start it, or write another url",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("the doctor does not say %q:\n%s", want, out)
		}
	}
	if code != 1 || strings.Contains(out+stderr.String(), "hunter2") || asked != "GET" {
		t.Errorf("exit code %d, asked %q:\n%s%s", code, asked, out, stderr.String())
	}
}

// TestDoctorSaysWhatAModeLacks: also of a mode that a runtime keeps, such as why a reviewer that was chosen is not used.
func TestDoctorSaysWhatAModeLacks(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	report(func(format string, args ...any) { fmt.Fprintf(&b, format, args...) }, "x", runner.Capability{
		State: runner.Ready, Plan: true, Questions: true, Steer: true, Rewind: true,
		Modes: map[policy.Mode]policy.Mode{policy.Auto: policy.Auto, policy.FullAccess: policy.Auto, policy.ApprovalRequired: policy.ApprovalRequired},
		Why:   map[string]string{"auto": "Its reviewer is not used.", "full-access": "It cannot.", "sandbox": "It has none.", runner.WhyCrash: "It can not."},
	})
	const want = "runtime x: ready\n  auto: Its reviewer is not used.\n  full-access works as auto: It cannot.\n  sandbox: It has none.\n"
	if got := b.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
