// Package process starts, supervises and ends the programs that agents run.
//
// It guarantees that a program gets an environment made for it and nothing of ours (Environment), a session and process
// group of its own without a terminal, that ending it ends its whole group, that its output is bounded however much it
// writes, and that no zombie is left. On Linux a program dies with us, also when we are killed.
//
// What a program started under a supervisor (StartSupervised, RunSupervised) leaves its group for, on purpose or not, ends
// with it as well, and all of it ends when we are killed; see Containment for how surely. Without one, a grandchild that
// leaves the group (setsid, a daemon) outlives it, and when we are killed only the program itself is sure to die at once.
//
// It does not contain otherwise: a program can read and write what its user can.
package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"time"
)

// DefaultGrace is how long a group has to end after SIGTERM before it gets SIGKILL.
const DefaultGrace = 2 * time.Second

// drain is how long output is still read after the whole group was killed: only a process that left the group can hold
// the pipe open for longer, and it is not waited for.
const drain = 500 * time.Millisecond

// Command is a program to be run. Args and Dir are required.
type Command struct {
	Args []string // the program and its arguments; looked up in the PATH of Env
	Dir  string   // absolute
	// Env is the whole environment; nothing is inherited. Nil means an empty one.
	Env []string
	// Stdin is closed at once when nil.
	Stdin io.Reader
	// Output takes standard output and standard error together, in order. Nil discards.
	Output io.Writer
	// Grace is DefaultGrace when 0.
	Grace time.Duration
	// NoNamespace keeps a supervised program out of a namespace, for those that have to see processes which are not
	// theirs, or need sudo where we are not root. A program without a supervisor is in none.
	NoNamespace bool
}

// Exit is how a program ended.
type Exit struct {
	Code int // exit status; 128 plus the signal's number when a signal ended it, as a shell says it
	// Stopped says that it ended because the context did.
	Stopped bool
	// Survivors is how many processes a supervisor could not end: they run as somebody else (sudo). 0 without a supervisor,
	// where nobody looks.
	Survivors int
}

// Run runs a command until it ends and everything in its group is gone. When ctx ends, the group gets SIGTERM and, after
// the grace, SIGKILL; Run then returns Exit.Stopped and no error. An error means that the program was not run.
func Run(ctx context.Context, c Command) (Exit, error) {
	p, err := Start(c)
	if err != nil {
		return Exit{}, err
	}
	stopped := false
	select {
	case <-p.Done():
	case <-ctx.Done():
		stopped = true
		p.Stop()
	}
	e := p.Wait()
	e.Stopped = stopped
	return e, nil
}

// Process is a running program. It is safe for concurrent use. Somebody has to call Wait or Stop.
type Process struct {
	cmd   *exec.Cmd
	grace time.Duration
	done  chan struct{} // closed when the group is gone and the output is complete
	left  chan struct{} // closed when the program itself has exited
	exit  Exit          // valid once done is closed
	once  sync.Once
}

// Start starts a command and returns at once.
func Start(c Command) (*Process, error) {
	if len(c.Args) == 0 {
		return nil, errors.New("process: start: no program")
	}
	path, err := lookPath(c.Args[0], c.Dir, c.Env)
	if err != nil {
		return nil, fmt.Errorf("process: start %s: %w", c.Args[0], err)
	}
	cmd := &exec.Cmd{Path: path, Args: c.Args, Dir: c.Dir, Env: c.Env, Stdin: c.Stdin, SysProcAttr: attributes()}
	if cmd.Env == nil {
		cmd.Env = []string{} // nil would be our own environment
	}
	// A pipe of our own instead of exec's: its Wait would wait for every process that holds the pipe, and the group can
	// be killed only after the program has ended.
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("process: start %s: %w", c.Args[0], err)
	}
	cmd.Stdout, cmd.Stderr = w, w
	cmd.WaitDelay = drain

	p := &Process{cmd: cmd, grace: c.Grace, done: make(chan struct{}), left: make(chan struct{})}
	if p.grace <= 0 {
		p.grace = DefaultGrace
	}
	started := make(chan error, 1)
	go p.supervise(started, r, w, c.Output)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("process: start %s: %w", c.Args[0], err)
	}
	return p, nil
}

// supervise starts the program and sees it off. It keeps its thread, because the kernel sends the parent-death signal
// when the thread that started the child ends.
func (p *Process) supervise(started chan<- error, r, w *os.File, output io.Writer) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	err := p.cmd.Start()
	_ = w.Close() // the child has its own copy; ours would keep the pipe open
	if err != nil {
		_ = r.Close()
		started <- err
		return
	}
	if output == nil {
		output = io.Discard
	}
	copied := make(chan struct{})
	go func() {
		defer close(copied)
		if _, err := io.Copy(output, r); err != nil {
			// Whoever takes the output gave up; the program must not block on a full pipe.
			_, _ = io.Copy(io.Discard, r)
		}
	}()
	started <- nil

	if waitUnreaped(p.cmd.Process.Pid) {
		// Not reaped yet, so its id, which is the group's, cannot belong to anybody else.
		killGroup(p.cmd.Process.Pid)
		_ = p.cmd.Wait() // its error repeats the exit status
	} else {
		_ = p.cmd.Wait()
		killGroup(p.cmd.Process.Pid)
	}
	close(p.left)

	select {
	case <-copied:
	case <-time.After(drain):
	}
	_ = r.Close()
	<-copied
	p.exit = Exit{Code: exitCode(p.cmd.ProcessState)}
	close(p.done)
}

// Pid is the program's process id, which is also its group's.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Done is closed when the program has ended, its group is gone and its output was delivered.
func (p *Process) Done() <-chan struct{} { return p.done }

// Wait waits until Done.
func (p *Process) Wait() Exit {
	<-p.done
	return p.exit
}

// Stop ends the whole group, SIGTERM first, SIGKILL after the grace, and waits until Done. It may be called more than
// once.
func (p *Process) Stop() {
	p.once.Do(func() {
		select {
		case <-p.left:
			return
		default:
		}
		terminateGroup(p.cmd.Process)
		t := time.NewTimer(p.grace)
		defer t.Stop()
		select {
		case <-p.left:
		case <-t.C:
			// Ending the leader is enough: supervise then kills the group while its id is still ours.
			_ = p.cmd.Process.Kill()
		}
	})
	<-p.done
}
