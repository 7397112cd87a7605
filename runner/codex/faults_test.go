package codex_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"drawbridge/policy"
	"drawbridge/runner"
	"drawbridge/runner/codex"
)

func TestCodexCrashesInATurn(t *testing.T) {
	t.Parallel()
	c := open(t, imitate(t, imitation{}), opening{})
	c.turn("say it")
	_, err := c.Turn(t.Context(), runner.Input{Turn: "turn", Text: "crash"})
	if err == nil || !strings.Contains(err.Error(), "out of luck") || !strings.Contains(err.Error(), "next prompt") {
		t.Errorf("the crash is told as %v", err)
	}
	if r := c.turn("say it"); r.Outcome != runner.Completed || c.ResumeToken() != imitatedThread {
		t.Errorf("the next turn ended as %+v, the token is %q", r, c.ResumeToken())
	}
}

// TestStrangeFrames takes lines that are no frames, notifications, items and requests that nobody knows, and approvals of
// kinds that are not understood. The imitation ends if one of its requests is not refused.
func TestStrangeFrames(t *testing.T) {
	t.Parallel()
	c := open(t, imitate(t, imitation{}), opening{answer: yes})
	if r := c.turn("strange"); r.Outcome != runner.Completed || c.said() != "hello" {
		t.Errorf("the turn ended as %+v, and said %q", r, c.said())
	}
	if _, questions := c.seen(); len(questions) != 0 {
		t.Errorf("what is not understood was asked: %+v", questions)
	}
}

// TestOddPatches takes patches of which it can't be shown what they would do: of pipes and devices, which must not be read,
// without a whole path, of unknown kinds, and over other files. The imitation ends if one is not refused.
func TestOddPatches(t *testing.T) {
	t.Parallel()
	folder := data(t)
	if err := errors.Join(
		syscall.Mkfifo(filepath.Join(folder, "pipe"), 0o600), os.WriteFile(filepath.Join(folder, "there"), []byte("a\n"), 0o600),
		os.WriteFile(filepath.Join(folder, "too"), []byte("b\n"), 0o600),
	); err != nil {
		t.Fatal(err)
	}
	for _, m := range policy.Modes() {
		c := open(t, imitate(t, imitation{}), opening{folder: folder, policy: runner.Policy{Mode: m, Interaction: policy.Default}, answer: yes})
		if r := c.turn("odd patches"); r.Outcome != runner.Completed {
			t.Errorf("%s: the turn ended as %+v", m, r)
		}
		if _, questions := c.seen(); len(questions) != 0 {
			t.Errorf("%s: what can't be shown was asked: %+v", m, questions)
		}
	}
}

// TestARefusedLoginIsToldAtOnce has codex try again and again what can't succeed.
func TestARefusedLoginIsToldAtOnce(t *testing.T) {
	t.Parallel()
	c := open(t, imitate(t, imitation{}), opening{})
	r := c.turn("refused login")
	if r.Outcome != runner.Broken || !strings.Contains(r.Reason, "codex login") || !strings.Contains(r.Reason, "Missing bearer") || strings.Contains(r.Reason, "127.0.0.1") {
		t.Errorf("the turn ended as %+v", r)
	}
	if n := len(c.kinds(runner.Notice)); n != 2 {
		t.Errorf("told of %d tries, want 2", n)
	}
	if r := c.turn("say it"); r.Outcome != runner.Completed {
		t.Errorf("the next turn ended as %+v", r)
	}
}

func TestHugeFrameIsBounded(t *testing.T) {
	t.Parallel()
	c := open(t, imitate(t, imitation{}), opening{})
	c.turn("huge")
	for _, e := range c.kinds(runner.ItemCompleted) {
		if len(e.Item.Output) > 32<<10 || e.Item.Kind == runner.ItemCommand && !strings.HasSuffix(e.Item.Output, "end") {
			t.Errorf("%d bytes of output are kept", len(e.Item.Output))
		}
	}
}

func TestCodexThatDoesNotStopIsEnded(t *testing.T) {
	t.Parallel()
	r := imitate(t, imitation{}, func(c *codex.Config) { c.Pace.Stop = 200 * time.Millisecond })
	c := open(t, r, opening{})
	ctx, cancel := contextOf(t)
	defer cancel()
	done := make(chan error, 1)
	go func() {
		res, err := c.Turn(ctx, runner.Input{Turn: "turn", Text: "deaf"})
		if err == nil && res.Outcome != runner.Interrupted {
			err = errors.New("the outcome is " + string(res.Outcome))
		}
		done <- err
	}()
	c.await(runner.SessionStarted)
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if res := c.turn("say it"); res.Outcome != runner.Completed {
		t.Errorf("the next turn ended as %+v", res)
	}
}

func TestATurnThatNobodyAskedForIsStopped(t *testing.T) {
	t.Parallel()
	record := filepath.Join(t.TempDir(), "record")
	c := open(t, imitate(t, imitation{Record: record}), opening{})
	c.turn("stray")
	c.await(runner.Notice)
	if !told(t, record, "turn/interrupt", "turnId", "stray") {
		t.Error("it was not interrupted")
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if !told(t, record, "thread/backgroundTerminals/clean", "threadId", imitatedThread) {
		t.Error("its commands were not ended")
	}
}

// TestTenSessionsShareOneCodex counts the starts, and sees that nothing is left running when the last one is closed: the
// data folder can then be used by another runtime.
func TestTenSessionsShareOneCodex(t *testing.T) {
	t.Parallel()
	starts := filepath.Join(t.TempDir(), "starts")
	r := imitate(t, imitation{Starts: starts})
	var all []*chat
	var opening10 sync.WaitGroup
	var mu sync.Mutex
	for range 10 {
		opening10.Go(func() {
			c := open(t, r, opening{})
			mu.Lock()
			defer mu.Unlock()
			all = append(all, c)
		})
	}
	opening10.Wait()
	for _, c := range all {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	if b, err := os.ReadFile(starts); err != nil || strings.Count(string(b), "started") != 1 {
		t.Errorf("codex was started as %q, %v", b, err)
	}
	open(t, r, opening{}).turn("say it")
	if b, err := os.ReadFile(starts); err != nil || strings.Count(string(b), "started") != 2 {
		t.Errorf("codex was started as %q, %v", b, err)
	}
}

func TestProbe(t *testing.T) {
	t.Parallel()
	causes := map[string]runner.Cause{
		"not installed": runner.CauseMissing, "not a program": runner.CauseMissing, "too old": runner.CauseOld, "old prerelease": runner.CauseOld,
		"unreadable": runner.CauseVersion, "logged out": runner.CauseLogin, "does not start": runner.CauseProbe,
	}
	for name, c := range map[string]struct {
		imitation imitation
		change    func(*codex.Config)
		state     runner.State
		version   string
		says      string // in Problem, or in Why
	}{
		"ready":          {imitation{}, nil, runner.Ready, "0.171.0", ""},
		"newer":          {imitation{Version: "codex-cli 1.2.0-alpha.3"}, nil, runner.Ready, "1.2.0-alpha.3", ""},
		"not installed":  {imitation{}, func(c *codex.Config) { c.Program = "no-such-codex" }, runner.Failed, "", "not installed"},
		"not a program":  {imitation{}, func(c *codex.Config) { c.Program = "/etc/passwd" }, runner.Failed, "", "not installed"},
		"too old":        {imitation{Version: "codex-cli 0.98.7"}, nil, runner.Failed, "0.98.7", "too old"},
		"old prerelease": {imitation{Version: "codex-cli 0.171.0-alpha.1"}, nil, runner.Failed, "0.171.0-alpha.1", "too old"},
		"unreadable":     {imitation{Version: "codex-cli yes"}, nil, runner.Failed, "", "version"},
		"logged out":     {imitation{LoggedOut: true}, nil, runner.Failed, "0.171.0", "codex login"},
		"does not start": {imitation{Dies: "Error: Model provider `nope` not found"}, nil, runner.Failed, "0.171.0", "Model provider `nope` not found"},
		"broken sandbox": {imitation{Sandbox: "broken"}, nil, runner.Ready, "0.171.0", "Creating new namespace failed"},
		"open sandbox":   {imitation{Sandbox: "open"}, nil, runner.Ready, "0.171.0", "does not keep a command from writing"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var changes []func(*codex.Config)
			if c.change != nil {
				changes = append(changes, c.change)
			}
			got, err := imitate(t, c.imitation, changes...).Probe(t.Context())
			if err != nil || got.State != c.state || got.Version != c.version || got.Sandbox != (c.state == runner.Ready && c.says == "") {
				t.Fatalf("%+v, %v", got, err)
			}
			if want := causes[name]; got.Cause != want {
				t.Errorf("the cause is %q, want %q", got.Cause, want)
			}
			words := got.Problem
			if c.state == runner.Ready {
				words = got.Why[runner.WhySandbox]
			}
			if !strings.Contains(words, c.says) || (words == "") != (c.says == "") {
				t.Errorf("it says %q, want %q in it", words, c.says)
			}
		})
	}
}

func TestProbeGivesUpWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if c, err := imitate(t, imitation{}).Probe(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("%+v, %v", c, err)
	}
}

// TestARemovedCauseRestoresTheAbility repairs what kept a probe from being ready.
func TestARemovedCauseRestoresTheAbility(t *testing.T) {
	t.Parallel()
	dir := data(t)
	link := filepath.Join(dir, "codex")
	r := imitate(t, imitation{}, func(c *codex.Config) { c.Program = link })
	if c, err := r.Probe(t.Context()); err != nil || c.State != runner.Failed {
		t.Fatalf("%+v, %v", c, err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(self, link); err != nil {
		t.Fatal(err)
	}
	if c, err := r.Probe(t.Context()); err != nil || c.State != runner.Ready {
		t.Fatalf("%+v, %v", c, err)
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]codex.Config{
		"no program":         {Data: "/data", Logger: logger(t)},
		"no logger":          {Program: "codex", Data: "/data"},
		"relative data":      {Program: "codex", Data: "data", Logger: logger(t)},
		"relative login":     {Program: "codex", Data: "/data", Login: "auth.json", Logger: logger(t)},
		"relative hidden":    {Program: "codex", Data: "/data", Hidden: []string{"keys"}, Logger: logger(t)},
		"its data is hidden": {Program: "codex", Data: "/data/codex", Hidden: []string{"/data"}, Logger: logger(t)},
		"its login is hidden": {
			Program: "codex", Data: "/data", Login: "/home/ada/.codex/auth.json", Hidden: []string{"/home/ada/.codex"},
			Logger: logger(t),
		},
	} {
		if _, err := codex.New(c); err == nil {
			t.Errorf("%s: it was made", name)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	r := imitate(t, imitation{})
	gate := runner.GateFunc(yes)
	file := filepath.Join(data(t), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for i, o := range []runner.Options{
		{Folder: "relative", Gate: gate, Sink: func(runner.Event) {}},
		{Folder: filepath.Join(data(t), "missing"), Gate: gate, Sink: func(runner.Event) {}},
		{Folder: file, Gate: gate, Sink: func(runner.Event) {}},
		{Folder: data(t), Sink: func(runner.Event) {}},
		{Folder: data(t), Gate: gate},
		{Folder: data(t), Gate: gate, Sink: func(runner.Event) {}, Resume: "../../x"},
	} {
		if s, err := r.Open(t.Context(), o); err == nil {
			_ = s.Close()
			t.Errorf("%s: it was opened", strconv.Itoa(i))
		}
	}
}
