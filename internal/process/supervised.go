//go:build unix

package process

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// SuperviseCommand is the hidden argument with which the running program is started again as a supervisor. Its main and
// the TestMain of a package that starts something supervised have to call Supervise when they see it:
//
//	if len(os.Args) > 1 && os.Args[1] == process.SuperviseCommand {
//		os.Exit(process.Supervise(os.Args[2:]))
//	}
const SuperviseCommand = "__supervise"

const (
	// startTimeout is how long a supervisor may take to start a program; it takes milliseconds.
	startTimeout = 15 * time.Second
	// killTimeout is how long a supervisor may take for the rest after the grace.
	killTimeout = 5 * time.Second
)

// Containment says what holds the processes that a supervised program starts.
type Containment struct {
	// Namespace says that it is a PID namespace: nothing in it outlives the supervisor, and nothing in it can end the
	// supervisor. Programs there see their own processes only.
	Namespace bool
	// Why says what stands in the way of a namespace where there is none. Then the supervisor collects orphans (on Linux)
	// and ends all it finds, but a program that ends the supervisor first escapes. Where not even that is possible (darwin),
	// only the program's process group is ended.
	Why string
}

// Supervised is a program under a supervisor: a process of its own that ends all that the program started, in whatever
// session or group, when the program ends, when Stop is called, and when we end, also by SIGKILL; then within 2 s.
// It is safe for concurrent use. Somebody has to call Wait or Stop.
type Supervised struct {
	// Stdin, Stdout and Stderr are pipes to the program, the caller's to read, write and close. A program that is not
	// read blocks. The outputs end when the last process that holds them does, which is no later than Done.
	Stdin          *os.File
	Stdout, Stderr *os.File

	cmd         *exec.Cmd
	control     *os.File // closing it is our end, for the supervisor
	status      *json.Decoder
	containment Containment
	grace       time.Duration
	done        chan struct{}
	exit        Exit // valid once done is closed
	once        sync.Once
}

// StartSupervised starts a program under a supervisor, with pipes: Command.Stdin and Output must be nil. It returns when
// the program runs, or why it does not.
func StartSupervised(c Command) (*Supervised, error) {
	if c.Stdin != nil || c.Output != nil {
		return nil, errors.New("process: start supervised: the standard streams are pipes")
	}
	var reading, writing []*os.File // the ends of each stream
	for range 3 {
		r, w, err := os.Pipe()
		if err != nil {
			closeAll(append(reading, writing...)...)
			return nil, fmt.Errorf("process: start supervised: %w", err)
		}
		reading, writing = append(reading, r), append(writing, w)
	}
	s, err := supervised(c, reading[0], writing[1], writing[2])
	closeAll(reading[0], writing[1], writing[2]) // the program has its own
	if err != nil {
		closeAll(writing[0], reading[1], reading[2])
		return nil, err
	}
	s.Stdin, s.Stdout, s.Stderr = writing[0], reading[1], reading[2]
	return s, nil
}

// RunSupervised is Run with the guarantees of a supervisor: what the command leaves behind ends with it, also what has
// left its group, and also when we are killed meanwhile. It waits for a Read of Stdin that is under way.
func RunSupervised(ctx context.Context, c Command) (Exit, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return Exit{}, fmt.Errorf("process: run supervised: %w", err)
	}
	in, feed, err := os.Pipe()
	if err != nil {
		closeAll(r, w)
		return Exit{}, fmt.Errorf("process: run supervised: %w", err)
	}
	s, err := supervised(c, in, w, w)
	closeAll(in, w)
	if err != nil {
		closeAll(r, feed)
		return Exit{}, err
	}
	var copying sync.WaitGroup
	copying.Go(func() {
		defer closeAll(feed)
		if c.Stdin != nil {
			_, _ = io.Copy(feed, c.Stdin) // a program need not read it all
		}
	})
	copying.Go(func() {
		defer closeAll(r)
		if c.Output != nil {
			if _, err := io.Copy(c.Output, r); err == nil {
				return
			}
		}
		// Nobody takes it (any more); the program must not block on a full pipe.
		_, _ = io.Copy(io.Discard, r)
	})
	stopped := false
	select {
	case <-s.Done():
	case <-ctx.Done():
		stopped = true
		s.Stop()
	}
	e := s.Wait()
	e.Stopped = stopped
	if !s.containment.Namespace || e.Survivors > 0 {
		// Something that could not be ended may hold the pipe; it is not waited for.
		_ = r.SetReadDeadline(time.Now().Add(drain))
	}
	_ = feed.SetWriteDeadline(time.Now())
	copying.Wait()
	return e, nil
}

// supervised starts a program with these streams.
func supervised(c Command, stdin, stdout, stderr *os.File) (_ *Supervised, err error) {
	if len(c.Args) == 0 {
		return nil, errors.New("process: start supervised: no program")
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("process: start %s: %w", c.Args[0], err)
		}
	}()
	if len(os.Args) > 1 && os.Args[1] == SuperviseCommand {
		// Without this a program that does not know the argument would start itself for ever.
		return nil, errors.New("this is a supervisor itself")
	}
	path, err := lookPath(c.Args[0], c.Dir, c.Env)
	if err != nil {
		return nil, err
	}
	self, err := executablePath()
	if err != nil {
		return nil, err
	}
	hear, control, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer closeAll(hear)
	status, tell, err := os.Pipe()
	if err != nil {
		closeAll(control)
		return nil, err
	}
	defer closeAll(tell)
	s := &Supervised{
		// The supervisor's environment is empty and its arguments say nothing: the program can read both.
		cmd: &exec.Cmd{
			Path: self, Args: []string{"drawbridge", SuperviseCommand}, Dir: "/", Env: []string{}, Stdin: stdin, Stdout: stdout,
			Stderr: stderr, ExtraFiles: []*os.File{hear, tell}, SysProcAttr: &syscall.SysProcAttr{Setsid: true},
		},
		control: control, status: json.NewDecoder(status), grace: c.Grace, done: make(chan struct{}),
	}
	if c.NoNamespace {
		s.cmd.Args = append(s.cmd.Args, plainWord)
	}
	if s.grace <= 0 {
		s.grace = DefaultGrace
	}
	if err := s.cmd.Start(); err != nil {
		closeAll(control, status)
		return nil, err
	}
	if err := s.handshake(newOrder(path, c, s.grace), status); err != nil {
		closeAll(control, status)
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait()
		return nil, err
	}
	go s.wait(status)
	return s, nil
}

// handshake tells the supervisor what to start and hears how that went.
func (s *Supervised) handshake(o order, status *os.File) error {
	deadline := time.Now().Add(startTimeout)
	if err := errors.Join(s.control.SetWriteDeadline(deadline), status.SetReadDeadline(deadline)); err != nil {
		return err
	}
	if err := json.NewEncoder(s.control).Encode(o); err != nil {
		return fmt.Errorf("instruct the supervisor: %w", err)
	}
	var r report
	if err := s.status.Decode(&r); err != nil {
		return fmt.Errorf("the supervisor said nothing: %w", err)
	}
	if r.Failed != "" {
		return errors.New(r.Failed)
	}
	s.containment = Containment{Namespace: r.Namespace, Why: r.Why}
	return errors.Join(s.control.SetWriteDeadline(time.Time{}), status.SetReadDeadline(time.Time{}))
}

// wait sees the supervisor off.
func (s *Supervised) wait(status *os.File) {
	var r report
	if err := s.status.Decode(&r); err != nil {
		// The supervisor was killed, and the kernel has killed the program.
		r.Code = 128 + int(syscall.SIGKILL)
	}
	_ = s.cmd.Wait() // its status says nothing
	closeAll(status, s.control)
	s.exit = Exit{Code: r.Code, Survivors: r.Survivors}
	close(s.done)
}

// Containment says what holds the program's processes.
func (s *Supervised) Containment() Containment { return s.containment }

// Pid is the supervisor's process id, which is its session's too. The program's own may be known in its namespace only.
func (s *Supervised) Pid() int { return s.cmd.Process.Pid }

// Done is closed when the program has ended and nothing that it started is left.
func (s *Supervised) Done() <-chan struct{} { return s.done }

// Wait waits until Done.
func (s *Supervised) Wait() Exit {
	<-s.done
	return s.exit
}

// Stop ends the program and all that it started, SIGTERM first, SIGKILL after the grace, and waits until Done. It may be
// called more than once.
func (s *Supervised) Stop() {
	s.once.Do(func() {
		_, _ = s.control.WriteString(stopOrder + "\n") // it fails when all is over
		t := time.NewTimer(s.grace + killTimeout)
		defer t.Stop()
		select {
		case <-s.done:
		case <-t.C:
			_ = s.cmd.Process.Kill()
		}
	})
	<-s.done
}

func closeAll(files ...*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}
