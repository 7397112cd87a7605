package app

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestHookCommand: what is connected is said, taken out again, and never half done.
func TestHookCommand(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	run := func(want int, args ...string) string {
		t.Helper()
		var out bytes.Buffer
		env := []string{"HOME=" + dir, "DRAWBRIDGE_DATA_DIR=" + filepath.Join(dir, "data")}
		if code := Main(t.Context(), Process{Args: append([]string{"hook"}, args...), Env: env, In: strings.NewReader("{"), Out: &out, Err: &out}); code != want {
			t.Errorf("hook %q ended with %d, want %d:\n%s", args, code, want, out.String())
		}
		return out.String()
	}
	says := func(out string, parts ...string) {
		t.Helper()
		for _, p := range parts {
			if !strings.Contains(out, p) {
				t.Errorf("it does not say %q:\n%s", p, out)
			}
		}
	}
	claudes, codexes := filepath.Join(dir, ".claude", "settings.json"), filepath.Join(dir, ".codex", "hooks.json")
	says(run(2), "hook install claude|codex")
	says(run(2, "install", "vi"), "hook install claude|codex")
	says(run(1, "install", "claude", "--project", "--user"), "choose")
	says(run(1, "install", "codex", "--wait", "2h"), "--wait")
	says(run(0, "status"), "Claude Code: not connected", "Codex: not connected", "does not run here")
	says(run(0, "install", "claude"), "Claude Code is connected: "+claudes, "/desk")
	says(run(0, "install", "claude"), "connected already")
	says(run(0, "install", "codex", "--wait", "30s"), "Codex is connected: "+codexes, "/hooks")
	says(run(0, "status"), "Claude Code: connected by "+claudes, "Codex: connected by "+codexes)
	b, err := os.ReadFile(codexes)
	if err != nil {
		t.Fatal(err)
	}
	says(string(b), " hook run codex --data '"+filepath.Join(dir, "data")+"' --wait 30s", `"timeout": 45`)
	says(run(0, "uninstall", "claude"), "not connected any more")
	says(run(0, "uninstall", "claude"), "was not connected")
	says(run(0, "uninstall", "codex"), "not connected any more")
	if err := os.WriteFile(claudes, []byte("{ // mine\n}"), 0o600); err != nil {
		t.Fatal(err)
	}
	says(run(1, "install", "claude"), claudes, "left as it is")
	// What an agent runs says nothing and does not fail, whatever it is given.
	for _, args := range [][]string{{"run"}, {"run", "vi"}, {"run", "claude"}, {"run", "claude", "--nonsense"}, {"run", "codex", "--data", dir}} {
		if out := run(0, args...); out != "" {
			t.Errorf("hook %q says %q", args, out)
		}
	}
}
