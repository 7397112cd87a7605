package e2e_test

import (
	"bytes"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience is how long anything may take before a test gives up. No test passes because of it.
const patience = 90 * time.Second

// program is one process of Drawbridge. It ends with the test at the latest. Its log is printed if the test fails, and
// an Error line in it fails the test.
type program struct {
	t      *testing.T
	name   string
	pid    int
	exited chan struct{} // closed once it has ended and was waited for
	code   int           // valid then; -1 if a signal ended it
	out    output        // standard output
	log    output        // standard error
}

// start starts the program with an environment that is this and nothing else.
func start(t *testing.T, name string, env []string, args ...string) *program {
	t.Helper()
	p := &program{t: t, name: name, exited: make(chan struct{})}
	cmd := exec.Command(binary, args...)
	cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = env, t.TempDir(), &p.out, &p.log
	cmd.SysProcAttr = diesWithParent()
	started := make(chan error)
	go func() { // waited for by exited
		// The death signal comes when the thread that started the child ends, so this thread must stay.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(p.exited)
		err := cmd.Start()
		if err == nil {
			p.pid = cmd.Process.Pid
		}
		started <- err
		if err == nil {
			_ = cmd.Wait() // its exit code says it all
			p.code = cmd.ProcessState.ExitCode()
		}
	}()
	if err := <-started; err != nil {
		t.Fatalf("start %s: %v", name, err)
	}
	t.Cleanup(func() {
		p.kill()
		for line := range strings.Lines(p.log.String()) {
			if strings.Contains(line, "level=ERROR") || strings.Contains(line, "panic") || strings.Contains(line, "DATA RACE") {
				t.Errorf("%s logged an error: %s", name, strings.TrimSpace(line))
			}
		}
		if t.Failed() {
			t.Logf("log of %s:\n%s", name, p.log.String())
		}
	})
	return p
}

// kill is kill -9. Killing a process that has ended does nothing.
func (p *program) kill() {
	select {
	case <-p.exited:
		return
	default:
	}
	_ = syscall.Kill(p.pid, syscall.SIGKILL) // not waited for yet, so the id is still its own
	<-p.exited
}

// stop asks the process to end, as an init system does, and demands that it does so cleanly.
func (p *program) stop() {
	p.t.Helper()
	_ = syscall.Kill(p.pid, syscall.SIGTERM) // as above
	if code := p.wait(); code != 0 {
		p.t.Errorf("%s ended with %d after SIGTERM, want 0", p.name, code)
	}
}

// wait returns the exit code once the process has ended.
func (p *program) wait() int {
	p.t.Helper()
	select {
	case <-p.exited:
	case <-time.After(patience):
		p.t.Fatalf("%s does not end", p.name)
	}
	return p.code
}

// output keeps what a process writes and lets a test wait for it.
type output struct {
	mu      sync.Mutex
	text    bytes.Buffer
	changed chan struct{}
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.changed != nil {
		close(o.changed)
		o.changed = nil
	}
	return o.text.Write(b)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// logs waits for a line of the log that contains text.
func (p *program) logs(text string) {
	p.t.Helper()
	p.log.line(p, text)
}

// line returns the first line that contains text, waiting for it for as long as the process lives.
func (o *output) line(p *program, text string) string {
	p.t.Helper()
	timeout := time.After(patience)
	for {
		o.mu.Lock()
		for line := range strings.Lines(o.text.String()) {
			if strings.Contains(line, text) && strings.HasSuffix(line, "\n") {
				o.mu.Unlock()
				return strings.TrimSpace(line)
			}
		}
		if o.changed == nil {
			o.changed = make(chan struct{})
		}
		changed := o.changed
		o.mu.Unlock()
		select {
		case <-changed:
		case <-p.exited:
			p.t.Fatalf("%s ended without a line with %q", p.name, text)
		case <-timeout:
			p.t.Fatalf("no line with %q came from %s; there is:\n%s", text, p.name, o.String())
		}
	}
}
