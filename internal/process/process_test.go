package process_test

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"drawbridge/internal/process"
)

// hostEnv makes the test binary a host that runs one program and does not end.
const hostEnv = "PROCESS_TEST_HOST"

// supervisingEnv makes the test binary a host that runs one program under a supervisor and does not end.
const supervisingEnv = "PROCESS_TEST_SUPERVISING"

func superviseForEver(order string) {
	var c process.Command
	text, err := hex.DecodeString(order)
	if err != nil {
		panic(err)
	}
	if err := json.Unmarshal(text, &c); err != nil {
		panic(err)
	}
	if err := process.SetUndumpable(); err != nil { // as the program does
		panic(err)
	}
	s, err := process.StartSupervised(c)
	if err != nil {
		panic(err)
	}
	if err := os.WriteFile(filepath.Join(c.Dir, "containment"), fmt.Append(nil, s.Containment()), 0o600); err != nil {
		panic(err)
	}
	panic(s.Wait())
}

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == process.SuperviseCommand {
		syscall.Exit(process.Supervise(os.Args[2:])) // os.Exit waits for a second under the race detector
	}
	if order := os.Getenv(supervisingEnv); order != "" {
		superviseForEver(order)
	}
	if dir := os.Getenv(hostEnv); dir != "" {
		_, err := process.Run(context.Background(), process.Command{
			Args: []string{"/bin/sh", "-c", "echo $$ > pids; exec sleep 600"}, Dir: dir, Env: []string{"PATH=/usr/bin:/bin"},
		})
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

func environment(t *testing.T) []string {
	t.Helper()
	return process.Environment(process.Spec{Home: t.TempDir(), Lookup: os.LookupEnv})
}

func shell(t *testing.T, line string, out *process.Capture) process.Command {
	t.Helper()
	return process.Command{Args: []string{"sh", "-c", line}, Dir: t.TempDir(), Env: environment(t), Output: out}
}

func TestRunTellsOutputAndStatus(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		line, output string
		code         int
	}{
		{"echo out; echo err >&2; exit 3", "out\nerr\n", 3},
		{"true", "", 0},
		{"kill -9 $$", "", 137},
		{"cat", "", 0}, // standard input is closed
	} {
		out := process.NewCapture(1000)
		e, err := process.Run(t.Context(), shell(t, c.line, out))
		if err != nil || e.Code != c.code || e.Stopped || out.String() != c.output {
			t.Errorf("%q: exit %+v, error %v, output %q; want code %d, output %q", c.line, e, err, out, c.code, c.output)
		}
	}
}

func TestRunErrsWhenNothingWasRun(t *testing.T) {
	t.Parallel()
	for _, c := range []process.Command{
		{Dir: t.TempDir()},
		{Args: []string{"no-such-program"}, Dir: t.TempDir(), Env: environment(t)},
		{Args: []string{"sh"}, Dir: "/no/such/folder", Env: environment(t)},
	} {
		if e, err := process.Run(t.Context(), c); err == nil {
			t.Errorf("%v: exit %+v without an error", c.Args, e)
		}
	}
}

// alive reports whether a process exists and is no zombie.
func alive(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return syscall.Kill(pid, 0) == nil
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(rest, "Z")
}

// awaitPids waits until the file holds n process ids.
func awaitPids(t *testing.T, file string, n int) []int {
	t.Helper()
	deadline := time.Now().Add(60 * time.Second)
	for {
		b, _ := os.ReadFile(file)
		if f := strings.Fields(string(b)); len(f) == n && strings.HasSuffix(string(b), "\n") {
			var pids []int
			for _, s := range f {
				pid, err := strconv.Atoi(s)
				if err != nil {
					t.Fatal(err)
				}
				pids = append(pids, pid)
			}
			return pids
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s holds %q after 10 s, want %d process ids", file, b, n)
		}
		time.Sleep(5 * time.Millisecond) //nolint:forbidigo // another process; nothing tells
	}
}

// awaitGone waits until no process of the list lives: a killed process that is not our child is reaped by somebody else.
func awaitGone(t *testing.T, pids []int) {
	t.Helper()
	deadline := time.Now().Add(60 * time.Second)
	for _, pid := range pids {
		for alive(pid) {
			if time.Now().After(deadline) {
				t.Fatalf("process %d still lives", pid)
			}
			time.Sleep(5 * time.Millisecond) //nolint:forbidigo // another process; nothing tells
		}
	}
}

func TestStopEndsTheWholeGroup(t *testing.T) {
	t.Parallel()
	for name, line := range map[string]string{
		"willing":   `sleep 600 & echo $$ $! > pids; wait`,
		"unwilling": `trap '' TERM; (trap '' TERM; sleep 600; sleep 600) & echo $$ $! > pids; while :; do sleep 600; done`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := shell(t, line, nil)
			c.Output = nil
			c.Grace = 100 * time.Millisecond
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			ended := make(chan process.Exit, 1)
			go func() {
				e, err := process.Run(ctx, c)
				if err != nil {
					t.Error(err)
				}
				ended <- e
			}()
			pids := awaitPids(t, filepath.Join(c.Dir, "pids"), 2)
			cancel()
			if e := <-ended; !e.Stopped {
				t.Errorf("exit %+v, want it stopped", e)
			}
			awaitGone(t, pids)
		})
	}
}

func TestWhatAProgramLeavesInItsGroupEndsWithIt(t *testing.T) {
	t.Parallel()
	out := process.NewCapture(1000)
	c := shell(t, `sleep 600 & echo $! > pids; echo done`, out)
	e, err := process.Run(t.Context(), c)
	if err != nil || e.Code != 0 || out.String() != "done\n" {
		t.Fatalf("exit %+v, error %v, output %q", e, err, out)
	}
	awaitGone(t, awaitPids(t, filepath.Join(c.Dir, "pids"), 1))
}

func TestSomebodyOutsideTheGroupDoesNotHoldUsUp(t *testing.T) {
	t.Parallel()
	c := shell(t, `setsid sh -c 'echo $$ > pids; exec sleep 600' & while ! test -s pids; do :; done; echo done`, nil)
	out := process.NewCapture(1000)
	c.Output = out
	e, err := process.Run(t.Context(), c)
	if err != nil || e.Code != 0 || out.String() != "done\n" {
		t.Fatalf("exit %+v, error %v, output %q", e, err, out)
	}
	for _, pid := range awaitPids(t, filepath.Join(c.Dir, "pids"), 1) {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Error(err)
		}
	}
}

func TestAProgramHasNoTerminalAndASessionOfItsOwn(t *testing.T) {
	t.Parallel()
	out := process.NewCapture(1000)
	c := shell(t, `if (: < /dev/tty) 2>/dev/null; then echo a terminal; fi; echo $$ > pids; sleep 600`, out)
	p, err := process.Start(c)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Stop()
	awaitPids(t, filepath.Join(c.Dir, "pids"), 1)
	if sid, err := unix.Getsid(p.Pid()); err != nil || sid != p.Pid() {
		t.Errorf("the program %d is in session %d (%v)", p.Pid(), sid, err)
	}
	p.Stop()
	if out.Total() != 0 {
		t.Errorf("output %q", out)
	}
}

func TestHugeOutputIsBounded(t *testing.T) {
	t.Parallel()
	out := process.NewCapture(10_000)
	e, err := process.Run(t.Context(), shell(t, `echo first; yes é | head -c 20000000; echo last`, out))
	if err != nil || e.Code != 0 {
		t.Fatalf("exit %+v, error %v", e, err)
	}
	s := out.String()
	if len(s) > 10_100 || !strings.HasPrefix(s, "first\n") || !strings.HasSuffix(s, "last\n") ||
		out.Total() != 20_000_011 || strings.Contains(s, "\ufffd") {
		t.Errorf("%d bytes kept of %d, from %.20q to %q", len(s), out.Total(), s, s[max(0, len(s)-20):])
	}
}
