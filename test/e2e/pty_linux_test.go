//go:build runtimes

package e2e_test

import (
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// screen is a program in a pseudo-terminal, as a person starts it by hand.
type screen struct {
	t      *testing.T
	master *os.File
	cmd    *exec.Cmd
	exited chan struct{}

	mu   sync.Mutex
	text strings.Builder
	from int // where the test looks from
}

// openScreen starts a program in a terminal of its own. It ends with the test.
func openScreen(t *testing.T, dir string, env []string, args ...string) *screen {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	fd := int(master.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 50, Col: 120}); err != nil {
		t.Fatal(err)
	}
	slave, err := os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	s := &screen{t: t, master: master, exited: make(chan struct{})}
	s.cmd = exec.Command(args[0], args[1:]...)
	s.cmd.Dir, s.cmd.Env, s.cmd.Stdin, s.cmd.Stdout, s.cmd.Stderr = dir, env, slave, slave, slave
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = slave.Close() // the program has it
	var reading sync.WaitGroup
	reading.Go(s.read)
	go func() { defer close(s.exited); _ = s.cmd.Wait() }() // waited for below
	t.Cleanup(func() {
		_ = s.cmd.Process.Signal(syscall.SIGHUP) // what a terminal does that is closed
		select {
		case <-s.exited:
		case <-time.After(patience):
			_ = s.cmd.Process.Kill()
			<-s.exited
		}
		_ = master.Close() // ends the reading
		reading.Wait()
		if t.Failed() {
			t.Logf("the terminal shows:\n%s", s.text.String())
		}
	})
	return s
}

// queries are what programs ask a terminal, and what one answers.
var queries = map[string]string{"\x1b[c": "\x1b[?62;22c", "\x1b[6n": "\x1b[1;1R"}

var escapes = regexp.MustCompile("\x1b\\][^\x07\x1b]*(\x07|\x1b\\\\)|\x1b[P_^][^\x1b]*\x1b\\\\|\x1b\\[[0-9;?<>=!$ ]*[a-zA-Z@~`]|\x1b[()][0-9A-B]|\x1b.|[\\s\x00-\x1f]")

func (s *screen) read() {
	b := make([]byte, 1<<16)
	for {
		n, err := s.master.Read(b)
		for query, answer := range queries {
			if strings.Contains(string(b[:n]), query) {
				_, _ = s.master.WriteString(answer) // the program may be gone
			}
		}
		s.mu.Lock()
		s.text.Write(b[:n])
		s.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// shows waits until the terminal has written a text since the last key was pressed. Blanks do not count: programs move the
// cursor in their place.
func (s *screen) shows(text string) {
	s.t.Helper()
	soon(s.t, "the terminal shows "+strconv.Quote(text), func() bool { return s.has(text) })
}

// has reports whether shows would return.
func (s *screen) has(text string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Contains(escapes.ReplaceAllString(s.text.String()[s.from:], ""), escapes.ReplaceAllString(text, ""))
}

// insists presses keys, every second, until done: for a moment a dialog takes none, lest one that comes up suddenly is
// answered by mistake.
func (s *screen) insists(keys string, done func() bool) {
	s.t.Helper()
	next := time.Time{}
	soon(s.t, "the terminal takes "+strconv.Quote(keys), func() bool {
		if done() {
			return true
		}
		if now := time.Now(); now.After(next) {
			s.presses(keys)
			next = now.Add(time.Second)
		}
		return false
	})
}

// presses types keys.
func (s *screen) presses(keys string) {
	s.t.Helper()
	s.mu.Lock()
	s.from = s.text.Len()
	s.mu.Unlock()
	if _, err := s.master.WriteString(keys); err != nil {
		s.t.Fatal(err)
	}
}

// types writes a line and sends it once it stands there: what comes in one piece would be taken for a paste.
func (s *screen) types(line string) {
	s.t.Helper()
	s.presses(" " + line) // the first key after Escape may be taken for a part of it
	s.shows(line[1:])
	s.presses("\r")
}
