//go:build runtimes

package claude_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"sync"
	"testing"

	"drawbridge/internal/modeltest"
	"drawbridge/runner"
	"drawbridge/runner/claude"
)

// byHand is the program as a person starts it in a terminal, with a home of its own.
func byHand(t *testing.T, s *modeltest.Server, home, folder string, arguments ...string) *exec.Cmd {
	t.Helper()
	c := exec.CommandContext(t.Context(), installed(t), arguments...)
	c.Dir = folder
	c.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + home, "ANTHROPIC_API_KEY=" + key,
		"ANTHROPIC_BASE_URL=" + strings.TrimSuffix(s.URL(), "/v1"), "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1",
		"HTTPS_PROXY=http://127.0.0.1:9", "NO_PROXY=127.0.0.1",
	}
	return c
}

// TestASessionFromATerminal begins a session by hand, continues it through the driver, and that one by hand again.
func TestASessionFromATerminal(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	home, folder := filepath.Join(base, "home"), filepath.Join(base, "a proj_ect ü😀 "+strings.Repeat("long", 50))
	for _, dir := range []string{home, folder} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	hold, held := make(chan struct{}), make(chan struct{})
	var once sync.Once
	s := serve(t, modeltest.Config{Script: func(ctx context.Context, r modeltest.Request) modeltest.Reply {
		said := 0
		for _, m := range r.Messages {
			if m.Role == "assistant" {
				said++
			}
		}
		if said == 1 && strings.Contains(prompted(r.Messages), "hold") {
			once.Do(func() { close(held) })
			select {
			case <-hold:
			case <-ctx.Done():
			}
		}
		return modeltest.Reply{Text: "Answer " + strings.Repeat("I", said+1)}
	}})
	if out, err := byHand(t, s, home, folder, "-p", "begin the work").CombinedOutput(); err != nil {
		t.Fatalf("by hand: %v\n%s", err, out)
	}
	theirs := filepath.Join(home, ".claude")
	r := live(t, s, claude.Config{Login: theirs})
	list := func() runner.SessionInfo {
		t.Helper()
		all, err := r.Sessions(t.Context(), folder, 10)
		if err != nil || len(all) != 1 {
			t.Fatalf("sessions %+v, error %v", all, err)
		}
		return all[0]
	}
	one := list()
	if one.Title != "begin the work" || one.Busy || len(one.Last) != 2 || one.Last[1].Text != "Answer I" || !one.Last[1].Agent {
		t.Errorf("session %+v", one)
	}

	// While a terminal has it, that is seen.
	busy := byHand(t, s, home, folder, "-p", "--continue", "hold on")
	if err := busy.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- busy.Wait() }()
	select {
	case <-held:
	case err := <-ended:
		t.Fatalf("by hand: ended before it was held: %v", err)
	}
	if now := list(); now.Busy != (goruntime.GOOS == "linux") {
		t.Errorf("while a terminal has it: %+v", now)
	}
	close(hold)
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	file := func(configuration string) string {
		t.Helper()
		found, err := filepath.Glob(filepath.Join(configuration, "projects", "*", one.Token+".jsonl"))
		if err != nil || len(found) != 1 {
			t.Fatalf("files %v, error %v", found, err)
		}
		return found[0]
	}
	before, err := os.ReadFile(file(theirs))
	if err != nil {
		t.Fatal(err)
	}

	o := resume(t, r, folder, one.Token, asking, no)
	res, err := o.Turn(t.Context(), runner.Input{Text: "go on"})
	if err != nil || res.Outcome != runner.Completed {
		t.Fatalf("result %+v, error %v", res, err)
	}
	if now := list(); now.Busy || now.Token != one.Token || now.Last[len(now.Last)-1].Text != "Answer III" {
		t.Errorf("while the driver has it: %+v", now)
	}
	if err := o.Close(); err != nil {
		t.Fatal(err)
	}
	after, err := os.ReadFile(file(theirs))
	if err != nil || string(after) != string(before) {
		t.Errorf("the person's file was changed; error %v", err)
	}
	file(filepath.Join(r.Data(), "config"))

	// The command that is copied continues ours.
	c := byHand(t, s, home, base)
	c.Path, c.Args = "/bin/sh", []string{"sh", "-c", list().Command + ` -p "and on"`}
	out, err := c.CombinedOutput()
	if err != nil || strings.TrimSpace(string(out)) != "Answer IIII" {
		t.Errorf("the command: %v\n%s", err, out)
	}
	if now := list(); now.Last[len(now.Last)-1].Text != "Answer IIII" {
		t.Errorf("after the command: %+v", now)
	}
}
