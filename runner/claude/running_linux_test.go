package claude_test

import (
	"bufio"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"drawbridge/runner/claude"
)

// TestASessionInUse has programs of the name run in the folder, which a person could have started.
func TestASessionInUse(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "claude")
	if err := os.Symlink(self, program); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		words     []string
		elsewhere bool
		driven    bool
		busy      [3]bool // theirs that was used last, theirs, ours
	}{
		"without a session": {words: []string{"--continue"}, busy: [3]bool{true, false, false}},
		"with a session":    {words: []string{"--resume", tokenOf(2)}, busy: [3]bool{false, true, false}},
		"with one of ours":  {words: []string{"--resume", tokenOf(3)}, busy: [3]bool{false, false, true}},
		"in another folder": {words: []string{"--continue"}, elsewhere: true},
		"by the driver":     {driven: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			here, login := folder(t), folder(t)
			transcript := filepath.Join(t.TempDir(), "transcript")
			if err := os.WriteFile(transcript, []byte(`{"dir":"in","frame":{"type":"keep_alive"}}`+"\n"+ready("default")), 0o600); err != nil {
				t.Fatal(err)
			}
			r, err := claude.New(claude.Config{
				Name: "claude", Program: program, Data: t.TempDir(), Login: login, Set: map[string]string{fakeVariable: transcript},
				Logger: slog.New(strict{t}),
			})
			if err != nil {
				t.Fatal(err)
			}
			for i, configuration := range []string{login, login, filepath.Join(r.Data(), "config")} {
				store(t, configuration, here, tokenOf(i+1), said("user", here, "x"), i)
			}
			at := here
			if c.elsewhere {
				at = login
			}
			if c.driven {
				resume(t, r, here, tokenOf(3), asking, no)
			} else {
				terminal(t, program, transcript, at, c.words)
			}
			all := sessions(t, r, here, 10)
			if len(all) != 3 {
				t.Fatalf("sessions %+v", all)
			}
			for i, s := range all {
				if s.Busy != c.busy[i] {
					t.Errorf("session %d: busy %v", i, s.Busy)
				}
			}
		})
	}
}

// terminal runs the fake until the test ends. It runs when this returns.
func terminal(t *testing.T, program, transcript, folder string, words []string) {
	t.Helper()
	p := exec.Command(program, words...)
	p.Dir, p.Env = folder, append(os.Environ(), fakeVariable+"="+transcript)
	in, err := p.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := p.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = p.Process.Kill()
		_ = p.Wait() // it was killed
	})
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
}
