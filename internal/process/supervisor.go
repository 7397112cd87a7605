//go:build unix

package process

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"
)

// The descriptors that a supervisor is started with, beside the program's standard streams.
const (
	controlFD = 3 // orders; its end is the end of whoever started us
	statusFD  = 4 // reports
	readyFD   = 5 // from the inner supervisor to the outer one
)

const (
	// hostGrace is what the processes of a host that is gone have to end by themselves, so that all is over in 2 s.
	hostGrace = time.Second
	// sweepPause is the time between two looks at what is left after SIGKILL.
	sweepPause = 5 * time.Millisecond
	// sweepLimit is when a supervisor gives up on what it may not kill, such as a program that became another user.
	sweepLimit = 3 * time.Second

	stopOrder = "stop"
	// plainWord is the argument for a supervisor without a namespace.
	plainWord = "plain"
)

// order is the first line on the control pipe. Bytes, because paths and arguments need not be UTF-8.
type order struct {
	Path  []byte        `json:"path"`
	Args  [][]byte      `json:"args"`
	Dir   []byte        `json:"dir"`
	Env   [][]byte      `json:"env"`
	Grace time.Duration `json:"grace"`
}

func newOrder(path string, c Command, grace time.Duration) order {
	return order{Path: []byte(path), Args: bytesOf(c.Args), Dir: []byte(c.Dir), Env: bytesOf(c.Env), Grace: grace}
}

func bytesOf(s []string) [][]byte {
	b := make([][]byte, len(s))
	for i, v := range s {
		b[i] = []byte(v)
	}
	return b
}

func stringsOf(b [][]byte) []string {
	s := make([]string, len(b))
	for i, v := range b {
		s[i] = string(v)
	}
	return s
}

// report is a line on the status pipe: one when the program was started or could not be, one when all is over.
type report struct {
	Failed    string `json:"failed,omitempty"`
	Namespace bool   `json:"namespace,omitempty"`
	Why       string `json:"why,omitempty"`
	Code      int    `json:"code,omitempty"`
	Survivors int    `json:"survivors,omitempty"`
}

// Supervise is the whole life of a supervisor: what the program's main does when its first argument is SuperviseCommand.
// args are those after it. It returns the exit code, which says nothing: the report is on a pipe. It must be called on
// the main goroutine, before anything else was started.
func Supervise(args []string) int {
	// The kernel sends the parent-death signal when the thread that started the child ends.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	// Caught and not ignored, because what is ignored stays so in the program. Whoever ends a whole service by signals ends
	// us by ending the host.
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2)
	defer signal.Stop(signals)
	keepDescriptors()
	return contain(args)
}

// supervise starts the program and sees to it that nothing is left of it.
func supervise(namespace bool, why string) int {
	control := bufio.NewReader(os.NewFile(controlFD, "control"))
	status := os.NewFile(statusFD, "status")
	tell := func(r report) {
		if b, err := json.Marshal(r); err == nil {
			_, _ = status.Write(append(b, '\n')) // a host that is gone is seen on the other pipe
		}
	}
	var o order
	line, err := control.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &o)
	}
	if err != nil {
		return 1 // the host is gone already
	}
	pid, err := syscall.ForkExec(string(o.Path), stringsOf(o.Args), &syscall.ProcAttr{
		Dir: string(o.Dir), Env: stringsOf(o.Env), Files: []uintptr{0, 1, 2}, Sys: attributes(),
	})
	if err != nil {
		tell(report{Failed: err.Error()})
		return 1
	}
	letGo()
	tell(report{Namespace: namespace, Why: why})
	var r report
	r.Code, r.Survivors = see(pid, o.Grace, orders(control), reap())
	tell(r)
	return 0
}

// orders gives the host's orders and is closed at the host's end.
func orders(control *bufio.Reader) <-chan string {
	c := make(chan string)
	go func() { // ends with the process
		defer close(c)
		for {
			line, err := control.ReadString('\n')
			if err != nil {
				return
			}
			c <- line[:len(line)-1]
		}
	}()
	return c
}

type ended struct {
	pid    int
	status syscall.WaitStatus
}

// reap collects every child that ends, our own and the orphans that the kernel hands to us, and is closed when there is
// none left.
func reap() <-chan ended {
	c := make(chan ended)
	go func() { // ends with the last child
		defer close(c)
		for {
			var s syscall.WaitStatus
			pid, err := syscall.Wait4(-1, &s, 0, nil)
			switch {
			case err == syscall.EINTR:
			case err != nil:
				return
			case s.Exited() || s.Signaled():
				c <- ended{pid, s}
			}
		}
	}()
	return c
}

// see waits for the end, in whichever way it comes, and returns the program's exit code and how many processes of it
// could not be ended.
func see(pid int, grace time.Duration, orders <-chan string, reaped <-chan ended) (code, survivors int) {
	code = 128 + int(syscall.SIGKILL)
	var patience, sweep, limit <-chan time.Time
	kill := func() {
		signalAll(pid, syscall.SIGKILL)
		sweep = time.After(sweepPause)
		if limit == nil {
			limit = time.After(sweepLimit)
		}
	}
	terminate := func(grace time.Duration) {
		if limit == nil && patience == nil {
			signalAll(pid, syscall.SIGTERM)
			patience = time.After(grace)
		}
	}
	for {
		select {
		case e, more := <-reaped:
			if !more {
				return code, 0
			}
			if e.pid == pid {
				code = e.status.ExitStatus()
				if e.status.Signaled() {
					code = 128 + int(e.status.Signal())
				}
				kill() // what it leaves behind
			}
		case o, more := <-orders:
			switch {
			case !more:
				orders = nil
				patience = nil // the host's end may come in the middle of a longer grace
				terminate(hostGrace)
			case o == stopOrder:
				terminate(grace)
			}
		case <-patience:
			kill()
		case <-sweep:
			kill()
		case <-limit:
			return code, remaining(pid)
		}
	}
}

func describe(what string, err error) string { return fmt.Sprintf("%s: %v", what, err) }
