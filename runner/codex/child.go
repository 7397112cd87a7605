package codex

import (
	"fmt"
	"io"
	"sync"
	"time"

	"drawbridge/internal/process"
)

// grace is how long codex has to end after its input was closed. It takes 30 ms.
const grace = 3 * time.Second

// child is a running app-server.
type child struct {
	in   io.WriteCloser
	out  io.ReadCloser
	log  io.ReadCloser // standard error
	stop func()        // ends it and all that it started, and waits; its input is closed already
}

// startChild starts a program with pipes, under a supervisor: whatever it starts ends with it.
func startChild(args []string, dir string, env []string) (*child, error) {
	p, err := process.StartSupervised(process.Command{Args: args, Dir: dir, Env: env})
	if err != nil {
		return nil, fmt.Errorf("codex: start: %w", err)
	}
	var once sync.Once
	return &child{in: p.Stdin, out: p.Stdout, log: p.Stderr, stop: func() {
		once.Do(func() {
			t := time.NewTimer(grace)
			defer t.Stop()
			select {
			case <-p.Done():
			case <-t.C:
				p.Stop()
			}
		})
		p.Wait()
		_ = p.Stderr.Close() // read to its end by now
	}}, nil
}
