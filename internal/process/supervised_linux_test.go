package process_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"drawbridge/internal/process"
)

// mark is a variable that all of a program's processes carry, wherever they go.
type mark string

func newMark() mark { return mark("PROCESS_TEST_MARK=" + rand.Text()) }

// bearers are the living processes that carry it. Their ids are the ones that they have outside of their namespace.
func (m mark) bearers() (pids []int) {
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, f := range files {
		if b, err := os.ReadFile(f); err == nil && bytes.Contains(b, []byte(m)) {
			pid, _ := strconv.Atoi(strings.Split(f, "/")[2])
			pids = append(pids, pid)
		}
	}
	return pids
}

// await waits until there are n.
func (m mark) await(t *testing.T, n int, limit time.Duration) {
	t.Helper()
	deadline := time.Now().Add(limit)
	for {
		pids := m.bearers()
		if len(pids) == n {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d processes after %s, want %d", len(pids), limit, n)
		}
		time.Sleep(5 * time.Millisecond) //nolint:forbidigo // other processes; nothing tells
	}
}

// supervised is a command whose processes carry a mark.
func supervised(t *testing.T, line string) (process.Command, mark) {
	t.Helper()
	m := newMark()
	c := shell(t, line, nil)
	c.Output = nil
	c.Env = append(c.Env, string(m))
	return c, m
}

// holds runs a test with each of the ways to hold a program.
func holds(t *testing.T, test func(t *testing.T, noNamespace bool)) {
	for name, noNamespace := range map[string]bool{"namespace": false, "subreaper": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, noNamespace)
		})
	}
}

// escapes leaves 5 processes that have left session and group in every usual way, and ends only when it is told to.
const escapes = `
setsid sleep 600 &
nohup sleep 600 >/dev/null 2>&1 &
(setsid sh -c '(trap "" TERM HUP; setsid sleep 600) & exit' &)
(setsid sh -c 'trap "" TERM HUP INT; while :; do sleep 600; done' &)
`

func TestNothingOutlivesAHostThatIsKilled(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		noNamespace bool
		uid         uint32
		want        string
	}{
		"namespace":      {want: "{true "},
		"subreaper":      {noNamespace: true, want: "{false not wanted"},
		"another user":   {uid: 65534, want: "{"}, // a user namespace, where the system permits any
		"user subreaper": {uid: 65534, noNamespace: true, want: "{false not wanted"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			command, mark := supervised(t, escapes+"trap '' TERM; while :; do sleep 600; done")
			host := exec.CommandContext(t.Context(), "/proc/self/exe")
			if os.Geteuid() == 0 && c.uid != 0 {
				host.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: c.uid, Gid: c.uid}}
				command.Dir = filepath.Join(os.TempDir(), "process-test-"+rand.Text()) //nolint:usetesting // another user cannot enter the test's own
				if err := os.Mkdir(command.Dir, 0o700); err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = os.RemoveAll(command.Dir) })
				if err := os.Chown(command.Dir, int(c.uid), int(c.uid)); err != nil {
					t.Fatal(err)
				}
			}
			command.NoNamespace = c.noNamespace
			order, err := json.Marshal(command)
			if err != nil {
				t.Fatal(err)
			}
			host.Env = []string{supervisingEnv + "=" + hex.EncodeToString(order), "PATH=/usr/bin:/bin"}
			host.Stderr = os.Stderr
			if err := host.Start(); err != nil {
				t.Fatal(err)
			}
			// The two shells that loop have a child each.
			mark.await(t, 7, 60*time.Second)
			if err := host.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = host.Wait() // it was killed
			mark.await(t, 0, 60*time.Second)
			got, err := os.ReadFile(filepath.Join(command.Dir, "containment"))
			if err != nil || !strings.HasPrefix(string(got), c.want) {
				t.Errorf("containment %q, error %v, want %s…", got, err, c.want)
			}
			t.Logf("contained: %s", got)
		})
	}
}

func TestNothingOutlivesTheProgramItself(t *testing.T) {
	t.Parallel()
	holds(t, func(t *testing.T, noNamespace bool) {
		c, mark := supervised(t, escapes+"echo done; exit 7")
		out := process.NewCapture(1000)
		c.Output, c.NoNamespace = out, noNamespace
		e, err := process.RunSupervised(t.Context(), c)
		if err != nil || e.Code != 7 || e.Stopped || e.Survivors != 0 || out.String() != "done\n" {
			t.Errorf("exit %+v, error %v, output %q", e, err, out)
		}
		if left := mark.bearers(); len(left) > 0 {
			t.Errorf("%v are left", left)
		}
	})
}

func TestStopEndsATreeThatDoesNotWantTo(t *testing.T) {
	t.Parallel()
	holds(t, func(t *testing.T, noNamespace bool) {
		// 50 shells, each the child of the one before, in three sessions, deaf to SIGTERM, with a sleep each.
		c, mark := supervised(t, `trap '' TERM HUP
if [ "${1:-50}" -gt 1 ]; then
  s=; [ $((${1:-50} % 20)) = 0 ] && s=setsid
  $s sh "$0" $((${1:-50} - 1)) &
fi
while :; do sleep 600; done`)
		script := filepath.Join(c.Dir, "tree")
		if err := os.WriteFile(script, []byte(c.Args[2]), 0o600); err != nil {
			t.Fatal(err)
		}
		c.Args, c.Grace, c.NoNamespace = []string{"sh", script}, 50*time.Millisecond, noNamespace
		s, err := process.StartSupervised(c)
		if err != nil {
			t.Fatal(err)
		}
		defer closePipes(s)
		mark.await(t, 100, 60*time.Second)
		s.Stop()
		if left := mark.bearers(); len(left) > 0 {
			t.Errorf("%v are left", left)
		}
		if e := s.Wait(); e.Code != 137 || e.Survivors != 0 {
			t.Errorf("exit %+v, want it killed", e)
		}
		s.Stop() // a second one is nothing
	})
}

func TestStopLetsAWillingProgramEndByItself(t *testing.T) {
	t.Parallel()
	holds(t, func(t *testing.T, noNamespace bool) {
		c, _ := supervised(t, `trap 'echo bye; exit 3' TERM; echo ready; while :; do sleep 0.01; done`)
		c.Grace, c.NoNamespace = time.Minute, noNamespace
		s, err := process.StartSupervised(c)
		if err != nil {
			t.Fatal(err)
		}
		defer closePipes(s)
		if b := make([]byte, 6); read(t, s.Stdout, b) != "ready\n" {
			t.Errorf("read %q", b)
		}
		s.Stop()
		rest, err := io.ReadAll(s.Stdout)
		if e := s.Wait(); e.Code != 3 || string(rest) != "bye\n" || err != nil {
			t.Errorf("exit %+v, output %q, error %v", e, rest, err)
		}
	})
}

func read(t *testing.T, r io.Reader, b []byte) string {
	t.Helper()
	if _, err := io.ReadFull(r, b); err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func closePipes(s *process.Supervised) {
	for _, f := range []*os.File{s.Stdin, s.Stdout, s.Stderr} {
		_ = f.Close()
	}
}

func TestASupervisedProgramHasItsStreamsAndNothingElse(t *testing.T) {
	t.Parallel()
	holds(t, func(t *testing.T, noNamespace bool) {
		c, mark := supervised(t, `
cat >&2
read pid rest < /proc/self/stat; test "$pid" = "$$" && echo own proc
ls /proc/self/fd | tr '\n' ' '; echo
tr '\0' ' ' < /proc/$PPID/cmdline; echo
(cat /proc/$PPID/environ || kill -0 $PPID) 2>/dev/null | wc -c
env | sort`)
		c.Env, c.NoNamespace = []string{"PATH=/usr/bin:/bin", string(mark)}, noNamespace
		s, err := process.StartSupervised(c)
		if err != nil {
			t.Fatal(err)
		}
		defer closePipes(s)
		if _, err := s.Stdin.WriteString("to standard error"); err != nil {
			t.Error(err)
		}
		_ = s.Stdin.Close()
		stderr, _ := io.ReadAll(s.Stderr)
		stdout, _ := io.ReadAll(s.Stdout)
		if e := s.Wait(); e.Code != 0 || string(stderr) != "to standard error" {
			t.Errorf("exit %+v, standard error %q", e, stderr)
		}
		word := " inner "
		if noNamespace {
			word = " plain "
		}
		want := fmt.Sprintf("own proc\n0 1 2 3 \ndrawbridge %s%s\n0\nPATH=/usr/bin:/bin\n%s\nPWD=%s\n", process.SuperviseCommand, word, mark, c.Dir)
		if got := string(stdout); got != want {
			t.Errorf("output\n%s\nwant\n%s", got, want)
		}
	})
}

func TestRunSupervisedTellsWhatRunTells(t *testing.T) {
	t.Parallel()
	holds(t, func(t *testing.T, noNamespace bool) {
		for _, c := range []struct {
			line, stdin, output string
			code                int
		}{
			{"echo out; echo err >&2; exit 3", "", "out\nerr\n", 3},
			{"true", "", "", 0},
			{"kill -9 $$", "", "", 137},
			{"kill -TERM $$; echo survived", "", "", 143}, // nothing is ignored, and it is not the first of its namespace
			{"kill -PIPE $$; echo survived", "", "", 141},
			{"cat", "", "", 0}, // standard input is closed
			{"head -c 3", strings.Repeat("abc", 1_000_000), "abc", 0},
			{"trap 'exit 9' USR1; kill -USR1 $$", "", "", 9},
			{"printf 'bytes: \\377'", "", "bytes: \xff", 0},
		} {
			command, _ := supervised(t, c.line)
			out := process.NewCapture(1000)
			command.Output, command.NoNamespace = out, noNamespace
			if c.stdin != "" {
				command.Stdin = strings.NewReader(c.stdin)
			}
			e, err := process.RunSupervised(t.Context(), command)
			if err != nil || e.Code != c.code || e.Stopped || out.String() != c.output {
				t.Errorf("%q: exit %+v, error %v, output %q; want code %d, output %q", c.line, e, err, out, c.code, c.output)
			}
		}
	})
}

func TestRunSupervisedEndsWithItsContext(t *testing.T) {
	t.Parallel()
	c, mark := supervised(t, escapes+"echo ready > ready; while :; do sleep 600; done")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan process.Exit, 1)
	go func() {
		e, err := process.RunSupervised(ctx, c)
		if err != nil {
			t.Error(err)
		}
		ended <- e
	}()
	mark.await(t, 7, 60*time.Second)
	cancel()
	if e := <-ended; !e.Stopped || e.Code != 143 {
		t.Errorf("exit %+v, want it stopped by SIGTERM", e)
	}
	if left := mark.bearers(); len(left) > 0 {
		t.Errorf("%v are left", left)
	}
}

func TestWhoeverReadsLateGetsAllTheOutput(t *testing.T) {
	t.Parallel()
	c, _ := supervised(t, `echo first; yes é | head -c 20000000; echo last`)
	out := process.NewCapture(10_000)
	c.Output = out
	e, err := process.RunSupervised(t.Context(), c)
	if s := out.String(); err != nil || e.Code != 0 || out.Total() != 20_000_011 || !strings.HasSuffix(s, "last\n") {
		t.Errorf("exit %+v, error %v, %d bytes", e, err, out.Total())
	}
}

func TestASupervisorThatIsKilledTakesItsNamespaceAlong(t *testing.T) {
	t.Parallel()
	c, mark := supervised(t, escapes+"while :; do sleep 600; done")
	s, err := process.StartSupervised(c)
	if err != nil {
		t.Fatal(err)
	}
	defer closePipes(s)
	mark.await(t, 7, 60*time.Second)
	if err := syscall.Kill(s.Pid(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if e := s.Wait(); e.Code != 137 {
		t.Errorf("exit %+v", e)
	}
	if s.Containment().Namespace {
		mark.await(t, 0, 60*time.Second)
	} else if os.Geteuid() == 0 {
		t.Errorf("no namespace for root: %s", s.Containment().Why)
	}
}

func TestStartSupervisedErrsWhenNothingWasStarted(t *testing.T) {
	t.Parallel()
	for _, c := range []process.Command{
		{Dir: t.TempDir()},
		{Args: []string{"no-such-program"}, Dir: t.TempDir(), Env: environment(t)},
		{Args: []string{"sh"}, Dir: "/no/such/folder", Env: environment(t)},
		{Args: []string{"sh"}, Dir: t.TempDir(), Env: environment(t), Output: io.Discard},
	} {
		if s, err := process.StartSupervised(c); err == nil {
			s.Stop()
			t.Errorf("%v was started", c.Args)
		}
	}
}

// Not parallel: others open files meanwhile.
func TestSupervisionLeavesNoDescriptorAndNoZombie(t *testing.T) { //nolint:paralleltest // counts what the process has
	once := func() {
		c, _ := supervised(t, "setsid sleep 600 & exit 1")
		if _, err := process.RunSupervised(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		c.Dir = "/no/such/folder"
		if _, err := process.StartSupervised(c); err == nil {
			t.Fatal("started nowhere")
		}
	}
	descriptors := func() int {
		entries, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(entries)
	}
	once() // opens what the process keeps, such as its poller
	before := descriptors()
	for range 5 {
		once()
	}
	if after := descriptors(); after != before {
		t.Errorf("%d descriptors before, %d after", before, after)
	}
	if pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); err != syscall.ECHILD {
		t.Errorf("a child is left: %d, %v", pid, err)
	}
}

// BenchmarkStart measures until the program runs, and what its end takes in addition.
func BenchmarkStart(b *testing.B) {
	c := process.Command{Args: []string{"/bin/cat"}, Dir: "/"}
	b.Run("alone", func(b *testing.B) {
		for b.Loop() {
			p, err := process.Start(c)
			if err != nil {
				b.Fatal(err)
			}
			p.Wait()
		}
	})
	for name, noNamespace := range map[string]bool{"namespace": false, "subreaper": true} {
		b.Run(name, func(b *testing.B) {
			c := c
			c.NoNamespace = noNamespace
			var start time.Duration
			for b.Loop() {
				began := time.Now()
				s, err := process.StartSupervised(c)
				if err != nil {
					b.Fatal(err)
				}
				start += time.Since(began)
				_ = s.Stdin.Close()
				s.Wait()
				closePipes(s)
			}
			b.ReportMetric(start.Seconds()*1000/float64(b.N), "start-ms/op")
		})
	}
}
