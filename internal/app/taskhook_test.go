package app

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"drawbridge/bridge"
	"drawbridge/bridge/task"
	"drawbridge/policy"
	"drawbridge/runner"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// commands returns what runs commands, where they work, and what is logged.
func commands(t *testing.T) (c taskCommands, home string, log *bytes.Buffer) {
	t.Helper()
	home = filepath.Join(t.TempDir(), "hooks")
	log = &bytes.Buffer{}
	return taskCommands{home: home, logger: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))}, home, log
}

func shell(line string, args ...string) task.Hook {
	return task.Hook{Event: task.PipelineCompleted, Command: append([]string{"sh", "-c", line, "sh"}, args...)}
}

// finished is a task whose agent has said and tried things.
func finished() task.Task {
	at := time.Date(2026, 5, 4, 10, 0, 0, 0, time.UTC)
	return task.Task{
		ID: "t1", Chat: "-100123/5", State: task.InReview,
		Work: task.Work{Title: "Mend it", Steps: []string{"mend"}, Host: "box", Project: "shop", Runtime: "native", Mode: policy.AutoAcceptEdits},
		Run: &task.Run{
			N: 2, Execution: task.Review, Started: at, Ended: at.Add(time.Minute), Usage: runner.Usage{Input: 10, Output: 5},
			Done: bridge.Summary{
				Asked: 2, Allowed: 1, Refused: 1, Commands: 3, Changed: 1, Said: "Done; \"see\" a.go\x1b[0m",
				Changes:  []runner.FileChange{{Path: "a.go", Added: 3, Removed: 1}},
				Refusals: []bridge.Refusal{{Kind: runner.KindCommand, What: "rm -rf /", Source: runner.SourceUser, By: "Ada"}},
			},
		},
	}
}

func read(t *testing.T, path ...string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestACommandOnATaskSeesNoSecrets: its environment is made for it, from nothing.
func TestACommandOnATaskSeesNoSecrets(t *testing.T) {
	for name, secret := range map[string]string{
		"DRAWBRIDGE_TOKEN": "1:token-secret", "REDIS_URL": "redis://:secret@h", "DRAWBRIDGE_MODEL_KEY": "model-secret", "ALERT_SECRET": "alert-secret", "LANG": "C.UTF-8",
	} {
		t.Setenv(name, secret)
	}
	c, home, _ := commands(t)
	h := shell(`env > env; cat > note`)
	h.Env = map[string]string{"TELL_KEY": "given", "DRAWBRIDGE_TASK": "forged"}
	if err := c.call(t.Context(), h, finished()); err != nil {
		t.Fatal(err)
	}
	env := read(t, home, "env")
	if strings.Contains(env, "secret") || strings.Contains(env, "forged") {
		t.Errorf("the command saw\n%s", env)
	}
	want := []string{
		"HOME=" + home, "TELL_KEY=given", "LANG=C.UTF-8", "TERM=dumb", "DRAWBRIDGE_EVENT=pipeline_completed", "DRAWBRIDGE_TASK=t1", "DRAWBRIDGE_STATE=review",
		"DRAWBRIDGE_PROJECT=shop", "DRAWBRIDGE_CHAT=-100123/5",
	}
	for _, line := range want {
		if !slices.Contains(strings.Split(env, "\n"), line) {
			t.Errorf("%s is missing in\n%s", line, env)
		}
	}
	known := []string{"PATH", "LC_ALL", "LC_CTYPE", "TZ", "USER", "LOGNAME", "SHELL", "PWD", "OLDPWD", "SHLVL", "_"} // the last four are the shell's
	for line := range strings.Lines(env) {
		name, _, _ := strings.Cut(line, "=")
		if !slices.Contains(known, name) && !slices.ContainsFunc(want, func(w string) bool { return strings.HasPrefix(w, name+"=") }) {
			t.Errorf("the command also saw %s", line)
		}
	}
}

// TestWhatACommandReadsOfItsTask is the JSON on its standard input.
func TestWhatACommandReadsOfItsTask(t *testing.T) {
	t.Parallel()
	for name, k := range map[string]task.Task{"note": finished(), "note-before": {ID: "t2", State: task.Pending, Work: task.Work{Title: "Later", Mode: policy.Auto}}} {
		c, home, _ := commands(t)
		if err := c.call(t.Context(), shell("cat > note"), k); err != nil {
			t.Fatal(err)
		}
		var got bytes.Buffer
		if err := json.Indent(&got, []byte(read(t, home, "note")), "", "  "); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join("testdata", name+".golden")
		if *update {
			if err := os.WriteFile(path, got.Bytes(), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if want := read(t, path); got.String() != want {
			t.Errorf("%s is\n%s\nwant\n%s", name, got.String(), want)
		}
	}
}

// TestACommandOnATaskIsNoShellLine: its arguments reach it as they are, and it works where it is told to.
func TestACommandOnATaskIsNoShellLine(t *testing.T) {
	t.Parallel()
	c, home, _ := commands(t)
	args := []string{"a; touch made", "$(touch made)", "`touch made`", "*", "", "a b", "\"'", "> made"}
	h := shell(`printf '%s\n' "$@" > args; pwd > pwd`, args...)
	h.Folder = t.TempDir()
	if err := c.call(t.Context(), h, finished()); err != nil {
		t.Fatal(err)
	}
	if got, want := read(t, h.Folder, "args"), strings.Join(args, "\n")+"\n"; got != want {
		t.Errorf("it was given %q, want %q", got, want)
	}
	for _, folder := range []string{h.Folder, home} {
		if _, err := os.Stat(filepath.Join(folder, "made")); err == nil {
			t.Error("an argument was carried out")
		}
	}
	folder, err := filepath.EvalSymlinks(h.Folder)
	if got := strings.TrimSpace(read(t, h.Folder, "pwd")); err != nil || got != folder {
		t.Errorf("it worked in %s, want %s", got, folder)
	}
}

// TestHowACommandEnds: what people read of it holds nothing that it said.
func TestHowACommandEnds(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		h    task.Hook
		want string // empty for no error
	}{
		"well":            {shell("echo said-something"), ""},
		"reads nothing":   {shell("exec true"), ""},
		"badly":           {shell("echo said-something; exit 3"), "it ended with exit code 3"},
		"by a signal":     {shell("kill -9 $$"), "it ended with exit code 137"},
		"was not there":   {task.Hook{Command: []string{"no-such-program-here"}}, "no-such-program-here"},
		"is no folder":    {func() task.Hook { h := shell("true"); h.Folder = "/no/such/folder"; return h }(), "/no/such/folder"},
		"says very much":  {shell("yes said-something | head -c 3000000; echo the-end; exit 4"), "it ended with exit code 4"},
		"says no text":    {shell(`printf '\377\376'; exit 5`), "it ended with exit code 5"},
		"is asked nobody": {shell("cat > /dev/null; read x"), "it ended with exit code 1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, _, log := commands(t)
			err := c.call(t.Context(), tt.h, finished())
			if (err == nil) != (tt.want == "") || err != nil && (!strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "said-something")) {
				t.Errorf("it ended with %v, want %q", err, tt.want)
			}
			for line := range strings.Lines(log.String()) {
				if !strings.Contains(line, "level=DEBUG") || len(line) > 3*hookOutput {
					t.Errorf("logged %q", line)
				}
			}
			if name == "says very much" && !strings.Contains(log.String(), "the-end") {
				t.Error("the end of what it said is lost")
			}
		})
	}
}

// TestALimitEndsACommand, also one that does not want to.
func TestALimitEndsACommand(t *testing.T) {
	t.Parallel()
	c, home, _ := commands(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	h := shell(`trap '' TERM; echo began > began; while :; do sleep 0.1; done`)
	ended := make(chan error, 1)
	go func() { ended <- c.call(ctx, h, finished()) }()
	for deadline := time.Now().Add(time.Minute); ; {
		if _, err := os.Stat(filepath.Join(home, "began")); err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("it did not begin")
		}
		time.Sleep(5 * time.Millisecond) //nolint:forbidigo // polls for what another process does
	}
	cancel(context.DeadlineExceeded)
	select {
	case err := <-ended:
		if err == nil || !strings.Contains(err.Error(), "it was ended") {
			t.Errorf("it ended with %v", err)
		}
	case <-time.After(time.Minute):
		t.Fatal("it goes on")
	}
}
