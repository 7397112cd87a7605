package claude

import (
	"io"

	"drawbridge/internal/process"
)

// program is the running program with its three pipes.
type program interface {
	Stdin() io.WriteCloser
	Stdout() io.ReadCloser
	Stderr() io.ReadCloser
	// Stop ends it and everything that it started, and returns when that is gone.
	Stop()
	// Done is closed when it has ended.
	Done() <-chan struct{}
	// Exit is how it ended, once Done is closed.
	Exit() process.Exit
}
