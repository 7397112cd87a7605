// Package jsonl speaks with a program over lines of JSON: what the drivers of codex, claude and acp have in common.
//
// It has two layers. Lines reads and writes frames, one JSON value a line. Peer holds the conversation on top: requests
// both ways, notifications, withdrawals, in the Dialect of the program.
//
// It guarantees that the program's output is always read, however slow whoever handles it is, up to a bound after which
// the conversation fails with ErrOverflow; that what the program sent is handled in the order in which it was sent; that
// every request of ours ends, with an answer or an error; that nothing waits for ever for a program that does not read;
// and that what cannot be understood is reported and skipped. Tail keeps the end of the standard error for messages.
//
// It does not start or end programs, does not look into params, and hides nothing from a Recorder: who sends secrets
// must not record.
package jsonl

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

const (
	// DefaultLimit is the size of the largest frame that is read, in bytes. Codex sends the output of a command in one
	// frame of up to a little over 1 MiB, and a thread's whole history in one answer of any size.
	DefaultLimit = 64 << 20
	// DefaultWriteTimeout is how long a program may take to read one frame.
	DefaultWriteTimeout = 30 * time.Second

	readBuffer = 64 << 10
	// headLimit bounds what a FrameError shows of a frame.
	headLimit = 200
)

// ErrStuck ends writing to a program that does not read for the write timeout. What it has read may end in the middle
// of a frame, so its input is closed.
var ErrStuck = errors.New("the program does not read its input")

// FrameError is a line that is not a frame. Reading goes on with the next one.
type FrameError struct {
	Reason string
	Size   int64 // bytes of the line
	// Head is its beginning, 200 bytes at the most. It is the program's text: not for a log that others read.
	Head string
}

func (e *FrameError) Error() string {
	return fmt.Sprintf("jsonl: a line of %d bytes is no frame: %s", e.Size, e.Reason)
}

// LinesConfig is what Lines are made of. In and Out are required.
type LinesConfig struct {
	// In is the program's standard output. Closing it must end a Read, which holds for pipes.
	In io.ReadCloser
	// Out is the program's standard input. Closing it must end a Write, which holds for pipes.
	Out io.WriteCloser
	// Limit is the size of the largest frame, in bytes. DefaultLimit when 0.
	Limit int
	// WriteTimeout is how long one frame may take to be written. DefaultWriteTimeout when 0.
	WriteTimeout time.Duration
	// Record takes all frames in both directions. Nil records nothing.
	Record *Recorder
}

// Lines are a program's input and output, a JSON value a line. One goroutine may read while any number write.
type Lines struct {
	config LinesConfig
	in     *bufio.Reader

	mu     sync.Mutex // held for the whole of a frame, so that frames do not mix
	broken error      // why nothing can be written any more
}

// NewLines makes Lines. Somebody has to Close them.
func NewLines(c LinesConfig) *Lines {
	c.Limit = cmp.Or(c.Limit, DefaultLimit)
	c.WriteTimeout = cmp.Or(c.WriteTimeout, DefaultWriteTimeout)
	return &Lines{config: c, in: bufio.NewReaderSize(c.In, readBuffer)}
}

// Read returns the next frame, which is valid JSON and the caller's to keep. A *FrameError is about one line: read on.
// Any other error is the end, io.EOF where the program closed its output. Empty lines are skipped, and a last line needs
// no end. The cost of a frame is linear in its size, and one over the limit is not kept in memory.
func (l *Lines) Read() (json.RawMessage, error) {
	line, err := l.next()
	if err == nil && !json.Valid(line) {
		return nil, &FrameError{Reason: "not JSON", Size: int64(len(line)), Head: string(line[:min(len(line), headLimit)])}
	}
	return line, err
}

// next is Read without a look at whether it is JSON, for who decodes it anyway: that look takes long for a large frame.
func (l *Lines) next() (json.RawMessage, error) {
	for {
		line, size, err := l.line()
		if size == 0 {
			return nil, err
		}
		if line == nil {
			l.config.Record.skipped(size)
			return nil, &FrameError{Reason: fmt.Sprintf("longer than %d bytes", l.config.Limit), Size: size}
		}
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		l.config.Record.frame("in", line)
		return line, nil
	}
}

// line returns a line and its size, without a line if that is over the limit, and with an error only if the size is 0.
func (l *Lines) line() (line []byte, size int64, err error) {
	line = []byte{}
	for {
		part, err := l.in.ReadSlice('\n')
		size += int64(len(part))
		// The line's end is not the frame's.
		if body := size - int64(len(part)) + int64(len(bytes.TrimRight(part, "\r\n"))); body > int64(l.config.Limit) {
			line = nil
		}
		if line != nil {
			line = append(line, part...)
		}
		switch {
		case err == nil:
			return line, size, nil
		case errors.Is(err, bufio.ErrBufferFull):
		case size > 0:
			return line, size, nil // the error comes again with the next read
		default:
			return nil, 0, err
		}
	}
}

// Write writes one frame, whatever encoding/json makes of it. Once a Write has failed for another reason than the
// frame, all do.
func (l *Lines) Write(frame any) error {
	b, err := encode(frame)
	if err != nil {
		return fmt.Errorf("jsonl: encode a frame: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.broken != nil {
		return l.broken
	}
	l.config.Record.frame("out", b)

	// Closing is the one thing that ends a write to anything, and half a frame spoils the stream in any case.
	closed := make(chan struct{})
	timer := time.AfterFunc(l.config.WriteTimeout, func() {
		defer close(closed)
		_ = l.config.Out.Close() // the write tells
	})
	_, err = l.config.Out.Write(b)
	if !timer.Stop() {
		<-closed
		err = ErrStuck
	}
	if err != nil {
		l.broken = fmt.Errorf("jsonl: write a frame of %d bytes: %w", len(b), err)
	}
	return l.broken
}

// brokenBy is why nothing can be written any more, or nil.
func (l *Lines) brokenBy() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.broken
}

// encode makes a frame with its line's end. Characters of HTML stay as they are: a recording shall be readable.
func encode(frame any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(frame); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// CloseWrite closes the program's input, which asks most programs to end, and still reads what they say. A Write that
// is under way ends.
func (l *Lines) CloseWrite() error {
	if err := l.config.Out.Close(); err != nil {
		return fmt.Errorf("jsonl: close the program's input: %w", err)
	}
	return nil
}

// Close closes the program's input, then its output. It may be called while others read and write, and more than once
// where the two pipes allow it.
func (l *Lines) Close() error {
	return errors.Join(l.CloseWrite(), l.config.In.Close())
}
