package e2e_test

import (
	"context"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
)

// TestDemoFromAPipe: lines that come all at once wait for the buttons that they tap, and the end of the input for the
// end of the turn.
func TestDemoFromAPipe(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	cache, err := exec.CommandContext(t.Context(), "go", "env", "GOCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, "demo")
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "TMPDIR=" + dir, "GOCACHE=" + strings.TrimSpace(string(cache))}
	cmd.Stdin, cmd.SysProcAttr = strings.NewReader("Fix the failing test\n1\n5\n"), diesWithParent()
	runtime.LockOSThread() // the death signal comes when the thread that started the child ends
	defer runtime.UnlockOSThread()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("it ended with %v", err)
	}
	for _, want := range []string{"Change this file?", "→ Allowed by Ada", "go test ./...", "All tests pass"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("it does not show %q", want)
		}
	}
	if strings.Contains(string(out), "no button") || t.Failed() {
		t.Errorf("it shows:\n%s", out)
	}
}
