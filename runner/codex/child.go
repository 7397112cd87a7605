package codex

import (
	"fmt"
	"io"
	"os/exec"
	"sync"
	"time"
)

// grace is how long codex has to end after its input was closed. It takes 30 ms.
const grace = 3 * time.Second

// child is a running app-server, or what stands for one in a test.
type child struct {
	in   io.WriteCloser
	out  io.ReadCloser
	log  io.ReadCloser // standard error
	stop func()        // ends it and all that it started, and waits; its input is closed already
}

// startChild starts a program with pipes.
func startChild(args []string, dir string, env []string) (*child, error) {
	cmd := exec.Command(args[0], args[1:]...) //nolint:noctx // it outlives whoever starts it
	cmd.Dir, cmd.Env = dir, env
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("codex: start: %w", err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("codex: start: %w", err)
	}
	log, err := cmd.StderrPipe()
	if err != nil {
		return nil, fmt.Errorf("codex: start: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("codex: start: %w", err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = cmd.Process.Wait()
	}()
	var once sync.Once
	return &child{in: in, out: out, log: log, stop: func() {
		once.Do(func() {
			t := time.NewTimer(grace)
			defer t.Stop()
			select {
			case <-ended:
			case <-t.C:
				_ = cmd.Process.Kill()
			}
		})
		<-ended
	}}, nil
}
