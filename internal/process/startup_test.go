package process_test

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"drawbridge/internal/process"
)

// TestNoStartupFileSpeaksForACommand plants files that shells and git read in an agent's home, also as folders and links.
func TestNoStartupFileSpeaksForACommand(t *testing.T) {
	t.Parallel()
	home, elsewhere := t.TempDir(), filepath.Join(t.TempDir(), "kept")
	planted := filepath.Join(home, "planted")
	for name, text := range map[string]string{
		".profile": "touch " + planted, ".bash_profile": "touch " + planted, ".bashrc": "touch " + planted, ".zshenv": "touch " + planted,
		".config/git/config": "[alias]\n\tx = !touch " + planted, ".gitconfig": "[diff]\n\texternal = touch " + planted, "notes": "kept",
	} {
		file := filepath.Join(home, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(text+"\n"), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.WriteFile(elsewhere, nil, 0o600), os.Symlink(elsewhere, filepath.Join(home, ".zshrc"))); err != nil {
		t.Fatal(err)
	}
	if err := process.RemoveStartup(home); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"bash", "-lc", "true"}, {"bash", "-ic", "true"}, {"git", "x"}} {
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Env, cmd.Dir = process.Environment(process.Spec{Home: home, Lookup: os.LookupEnv}), home
		_ = cmd.Run() // git does not know x
	}
	if _, err := os.Stat(planted); !errors.Is(err, fs.ErrNotExist) {
		t.Error("a start-up file was read")
	}
	for _, kept := range []string{elsewhere, filepath.Join(home, "notes")} {
		if _, err := os.Stat(kept); err != nil {
			t.Error(err)
		}
	}
	if err := process.RemoveStartup(filepath.Join(home, "missing")); err != nil {
		t.Errorf("a home that is not there: %v", err)
	}
}
