package process_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

func TestAProgramDiesWithItsHost(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	host := exec.CommandContext(t.Context(), os.Args[0])
	host.Env = append(os.Environ(), hostEnv+"="+dir)
	if err := host.Start(); err != nil {
		t.Fatal(err)
	}
	pids := awaitPids(t, filepath.Join(dir, "pids"), 1)
	if !alive(pids[0]) {
		t.Error("the program does not run")
	}
	if err := host.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = host.Wait() // it was killed
	awaitGone(t, pids)
}
