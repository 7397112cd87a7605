package process_test

import (
	"os"
	"path/filepath"
	"testing"

	"drawbridge/internal/process"
)

func TestGitGuardKeepsAProjectsProgramsFromRunning(t *testing.T) {
	t.Parallel()
	for _, guarded := range []bool{false, true} {
		dir := t.TempDir()
		env := environment(t)
		if guarded {
			env = append(env, process.GitGuard()...)
		}
		script := "#!/bin/sh\ntouch '" + filepath.Join(dir, "ran-")
		out := process.NewCapture(10_000)
		c := process.Command{Dir: dir, Env: env, Output: out, Args: []string{"sh", "-ec", `
git init -q repo; cd repo
git config core.fsmonitor ../monitor
git config user.email a@example.com; git config user.name a
cp ../hook .git/hooks/pre-commit
git status >/dev/null
git commit -q --allow-empty -m x`}}
		for _, name := range []string{"monitor", "hook"} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(script+name+"'\n"), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		if e, err := process.Run(t.Context(), c); err != nil || e.Code != 0 {
			t.Fatalf("exit %+v, error %v: %s", e, err, out)
		}
		for _, name := range []string{"monitor", "hook"} {
			if _, err := os.Stat(filepath.Join(dir, "ran-"+name)); (err == nil) == guarded {
				t.Errorf("guarded %v: %s ran: %v", guarded, name, err == nil)
			}
		}
	}
}
