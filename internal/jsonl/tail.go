package jsonl

import (
	"bytes"
	"io"
	"regexp"
	"strings"
	"sync"
	"unicode"
)

const (
	// tailLines and tailBytes bound what a Tail keeps: enough for the reason of a failed start, little enough for a
	// message.
	tailLines = 20
	tailBytes = 8 << 10
)

// terminal are the escape sequences that programs write for a terminal: codex colours its log.
var terminal = regexp.MustCompile(`\x1b(?:\[[0-?]*[\x20-\x2f]*[\x40-\x7e]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[\x40-\x5a\\^_])`)

// Tail keeps the last lines of what a program writes to its standard error, for error messages: 20 lines and 8 KiB at
// the most. Use Drain, or give it as an io.Writer to who drains. It is safe for concurrent use.
type Tail struct {
	mu    sync.Mutex
	kept  []byte
	cut   bool // kept begins in the middle of a line
	ended chan struct{}
	once  sync.Once
}

// NewTail makes an empty Tail.
func NewTail() *Tail { return &Tail{ended: make(chan struct{})} }

// Write takes all of b and never fails.
func (t *Tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := len(b)
	if over := len(b) - tailBytes; over > 0 {
		b = b[over:]
		t.kept, t.cut = t.kept[:0], true
	}
	t.kept = append(t.kept, b...)
	// Cut rarely, so that a flood of short writes costs no copy each.
	if len(t.kept) > 2*tailBytes {
		t.kept = append(t.kept[:0], t.kept[len(t.kept)-tailBytes:]...)
		t.cut = true
	}
	return n, nil
}

// Drain reads until the program closes its standard error, so that it never blocks on it, and then says so to Drained.
// An error of the pipe is the end as well.
func (t *Tail) Drain(r io.Reader) {
	defer t.End()
	_, _ = io.Copy(t, r)
}

// End says that nothing more is written. Drain calls it; who only writes has to.
func (t *Tail) End() { t.once.Do(func() { close(t.ended) }) }

// Drained is closed once the standard error is complete.
func (t *Tail) Drained() <-chan struct{} { return t.ended }

// Lines are the last lines, oldest first, without empty ones, escape sequences and control characters.
func (t *Tail) Lines() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	kept, cut := t.kept, t.cut
	if len(kept) > tailBytes {
		kept, cut = kept[len(kept)-tailBytes:], true
	}
	if cut {
		if _, rest, found := bytes.Cut(kept, []byte("\n")); found {
			kept = rest
		}
	}
	var lines []string
	for line := range strings.Lines(string(kept)) {
		if line = plain(line); line != "" {
			lines = append(lines, line)
		}
	}
	return lines[max(0, len(lines)-tailLines):]
}

// String is the lines with line breaks between them; empty if there are none.
func (t *Tail) String() string { return strings.Join(t.Lines(), "\n") }

// plain makes a line fit for a message. What a program overwrites with a carriage return is not worth keeping.
func plain(line string) string {
	line = strings.ToValidUTF8(terminal.ReplaceAllString(line, ""), "\ufffd")
	line = strings.TrimRight(line, "\r\n")
	if i := strings.LastIndexByte(line, '\r'); i >= 0 {
		line = line[i+1:]
	}
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		switch {
		case r == '\t':
			return ' '
		case unicode.IsControl(r):
			return -1
		}
		return r
	}, line))
}
