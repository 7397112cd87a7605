//go:build runtimes

package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"drawbridge/internal/modeltest"
)

// agents is the folder with the real programs; see test/runtimes/install.
func agents(t *testing.T) string {
	t.Helper()
	bin := os.Getenv("DRAWBRIDGE_TEST_RUNTIMES")
	if bin == "" {
		t.Fatal("DRAWBRIDGE_TEST_RUNTIMES is not set; make test-runtimes sets it")
	}
	return bin
}

// persistent is a folder that is not one for temporary files, below which Codex refuses to keep its data.
func persistent(t *testing.T) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp(cache, "drawbridge-e2e-") //nolint:usetesting // see above
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// What a killed program leaves goes with its supervisor, a moment later.
		soon(t, "no processes are left", func() bool { return len(under(dir)) == 0 })
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// TestDemoWithARealAgent: the demonstration with Codex and with Claude Code, whose model is scripted, and who change a real
// file and really run the tests once they are allowed to.
func TestDemoWithARealAgent(t *testing.T) {
	for _, agent := range []string{"codex", "claude"} {
		t.Run(agent, func(t *testing.T) {
			dir := persistent(t)
			p := start(t, "demo", []string{"PATH=" + agents(t) + ":" + os.Getenv("PATH"), "HOME=" + dir, "TMPDIR=" + t.TempDir(), goCache(t)},
				"demo", "--runtime", agent, "--headless", "--listen", "127.0.0.1:0", "--folder", dir)
			url, _ := strings.CutPrefix(p.out.line(p, ""), "ready ")
			w := &world{sim: sim{t: t, url: url}, dir: dir, project: filepath.Join(dir, "shop")}
			me := w.private(ada)
			prompt := me.say("Fix the failing test")
			edit := me.card(prompt, "Change this file?")
			me.tap(edit.ID, "Allow")
			tests := me.card(edit.ID, "go test ./...")
			me.tap(tests.ID, "Allow")
			me.hears(tests.ID, "All tests pass")
			after, err := os.ReadFile(w.path("price/price.go"))
			if err != nil || !strings.Contains(string(after), "return cents - cents*percent/100") {
				t.Errorf("the file was not changed (%v):\n%s", err, after)
			}
			me.ends(prompt, "Done in")
			p.stop()
		})
	}
}

// realHands are the tool calls by which each agent runs a command that a person is asked about.
func realHands(agent string) modeltest.Hands {
	if agent == "codex" {
		return modeltest.Hands{Run: func(command string) modeltest.Call {
			return modeltest.CallOf("exec_command", map[string]any{
				"cmd": command, "login": false, "sandbox_permissions": "require_escalated", "justification": "May I?", "yield_time_ms": 30_000,
			})
		}}
	}
	return modeltest.Hands{Run: func(command string) modeltest.Call {
		return modeltest.CallOf("Bash", map[string]any{"command": command, "description": "run it"})
	}}
}

// TestHostKilledWhileARealAgentsCommandRuns: kill -9 of the host leaves nothing of an agent after two seconds, also of a
// command that made itself a daemon.
func TestHostKilledWhileARealAgentsCommandRuns(t *testing.T) {
	for _, agent := range []string{"codex", "claude"} {
		t.Run(agent, func(t *testing.T) {
			w := withAgent(t, agent, on{})
			p := w.start("serve")
			me := w.private(ada)
			mark := fmt.Sprintf("drawbridge-daemon-%d", os.Getpid())
			prompt := me.say("run (setsid sh -c 'trap \"\" TERM HUP; : " + mark + "; while :; do date +%N > beat; sleep 0.05; done' >/dev/null 2>&1 &); while ! test -s beat; do sleep 0.05; done; echo up > up; sleep 300")
			me.tap(me.card(prompt, "setsid").ID, "Allow")
			w.comes("up", "up\n")
			if len(commands(mark)) == 0 {
				t.Fatal("the daemon does not run")
			}
			p.kill()
			killed := time.Now()
			soon(t, "nothing of the agent runs", func() bool { return len(commands(mark)) == 0 && len(under(w.dir)) == 0 })
			t.Logf("%s was gone %s after its host", agent, time.Since(killed).Round(10*time.Millisecond))
		})
	}
}

// commands are the processes whose command line holds a mark.
func commands(mark string) (pids []string) {
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return nil
	}
	for _, path := range all {
		if b, err := os.ReadFile(path); err == nil && strings.Contains(string(b), mark) {
			pids = append(pids, filepath.Base(filepath.Dir(path)))
		}
	}
	return pids
}
