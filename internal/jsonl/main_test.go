package jsonl_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"drawbridge/internal/jsonl"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// journal fails the test on an Error line unless it is tolerated, and keeps the messages.
type journal struct {
	t        *testing.T
	tolerate bool
	mu       sync.Mutex
	lines    []string
}

func (j *journal) Enabled(context.Context, slog.Level) bool { return true }
func (j *journal) WithAttrs([]slog.Attr) slog.Handler       { return j }
func (j *journal) WithGroup(string) slog.Handler            { return j }
func (j *journal) Handle(_ context.Context, r slog.Record) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, r.Message)
	if r.Level >= slog.LevelError && !j.tolerate {
		j.t.Errorf("logged an error: %s", r.Message)
	}
	return nil
}

func (j *journal) count(message string) (n int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, l := range j.lines {
		if l == message {
			n++
		}
	}
	return n
}

// program is the far side of a conversation.
type program struct {
	t   *testing.T
	in  *bufio.Reader  // what we wrote
	inp io.Closer      // its end
	out *io.PipeWriter // what we read
}

// next reads one frame of ours.
func (p *program) next() string {
	line, err := p.in.ReadString('\n')
	if err != nil {
		p.t.Errorf("the program reads: %v", err)
	}
	return strings.TrimSuffix(line, "\n")
}

func (p *program) say(frames ...string) {
	for _, f := range frames {
		if _, err := io.WriteString(p.out, f+"\n"); err != nil {
			p.t.Errorf("the program writes: %v", err)
			return
		}
	}
}

// exit closes both ends, as the end of a process does.
func (p *program) exit() {
	_ = p.out.Close()
	_ = p.inp.Close()
}

func pipes(t *testing.T) (*program, jsonl.LinesConfig) {
	t.Helper()
	ourIn, theirOut := io.Pipe()
	theirIn, ourOut := io.Pipe()
	t.Cleanup(func() {
		_ = theirOut.Close()
		_ = theirIn.Close()
	})
	return &program{t: t, in: bufio.NewReader(theirIn), inp: theirIn, out: theirOut}, jsonl.LinesConfig{In: ourIn, Out: ourOut}
}

// conversation is a running peer and its program.
type conversation struct {
	*jsonl.Peer

	program *program
	journal *journal
	ended   chan error // what Run returned
}

// converse runs a peer until the test's end, in codex's dialect unless told otherwise.
func converse(t *testing.T, change func(*jsonl.PeerConfig, *jsonl.LinesConfig)) *conversation {
	t.Helper()
	program, lines := pipes(t)
	c := &conversation{program: program, journal: &journal{t: t}, ended: make(chan error, 1)}
	config := jsonl.PeerConfig{Dialect: jsonl.RPC{}, Logger: slog.New(c.journal)}
	if change != nil {
		change(&config, &lines)
	}
	config.Lines = jsonl.NewLines(lines)
	c.Peer = jsonl.NewPeer(config)
	var running sync.WaitGroup
	running.Go(func() { c.ended <- c.Run(t.Context()) })
	t.Cleanup(func() {
		c.Close()
		running.Wait()
	})
	return c
}

// async runs a call and gives its error.
func (c *conversation) async(ctx context.Context, method string, params, result any) <-chan error {
	done := make(chan error, 1)
	go func() { done <- c.Call(ctx, method, params, result) }()
	return done
}

// same compares two JSON texts by their meaning.
func same(a, b string) bool {
	var x, y any
	if json.Unmarshal([]byte(a), &x) != nil || json.Unmarshal([]byte(b), &y) != nil {
		return false
	}
	return fmt.Sprint(x) == fmt.Sprint(y)
}

func wantError(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("error %v, want %v", err, want)
	}
}
