package app

import (
	"context"
	"io"
)

// terminal is the demo's chat in a terminal: type to send, numbers to tap.
type terminal struct {
	api     string // address of the simulated Telegram
	project string
	in      io.Reader
	out     io.Writer
}

func runTerminal(ctx context.Context, t terminal) error {
	<-ctx.Done()
	return nil
}
