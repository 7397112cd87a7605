package native

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"

	"drawbridge/internal/chatapi"
	"drawbridge/runner"
)

// session is one conversation.
type session struct {
	runtime *Runtime
	options runner.Options
	root    *os.Root
	logger  *slog.Logger
	life    context.Context //nolint:containedctx // the session's, which no single call bounds
	end     context.CancelFunc

	turning sync.Mutex // held during a turn; guards scale

	// scale is how many tokens the endpoint counts for one of estimate's; 0 before the first answer.
	scale float64

	mu           sync.Mutex // guards what is below, and is held while the sink is called
	closed       bool
	conversation *conversation
}

// Turn runs the loop for one prompt.
func (s *session) Turn(ctx context.Context, in runner.Input) (runner.Result, error) {
	if !s.turning.TryLock() {
		return runner.Result{}, errors.New("native: turn: another turn is running")
	}
	defer s.turning.Unlock()
	if s.life.Err() != nil {
		return runner.Result{}, fmt.Errorf("native: turn: %w", runner.ErrClosed)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.life, cancel)()

	c, err := s.begin(in)
	if err != nil {
		return runner.Result{}, fmt.Errorf("native: turn: %w", err)
	}
	t := &turn{session: s, conversation: c, id: in.Turn, model: cmp.Or(in.Model, s.runtime.config.Model)}
	res, err := t.run(ctx)
	if err != nil {
		return runner.Result{}, fmt.Errorf("native: turn: %w", err)
	}
	return res, nil
}

// begin keeps the prompt, and makes the conversation with the first one.
func (s *session) begin(in runner.Input) (*conversation, error) {
	s.mu.Lock()
	c := s.conversation
	s.mu.Unlock()
	fresh := c == nil
	if fresh {
		var err error
		if c, err = begin(s.runtime.sessions(), s.options.Folder); err != nil {
			return nil, err
		}
		s.mu.Lock()
		s.conversation = c
		s.mu.Unlock()
	}
	text := in.Text
	var paths []string
	if len(in.Files) > 0 {
		var b strings.Builder
		b.WriteString("\n\nAttached files, which read_file can read:")
		for _, f := range in.Files {
			fmt.Fprintf(&b, "\n- %s: %s", f.Name, f.Path)
			paths = append(paths, f.Path)
		}
		text += b.String()
	}
	if err := errors.Join(c.attach(paths), c.add(chatapi.Message{Role: chatapi.User, Content: text})); err != nil {
		return nil, err
	}
	if fresh {
		s.emit(runner.Event{Kind: runner.SessionStarted, Turn: in.Turn, Text: c.token})
	}
	return c, nil
}

// emit hands an event to the sink, in order, unless the session is closed.
func (s *session) emit(e runner.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed && s.options.Sink != nil {
		s.options.Sink(e)
	}
}

// policy is what the chat allows at this moment; the zero value, the strictest, when nobody tells.
func (s *session) policy() runner.Policy {
	if s.options.Policy == nil {
		return runner.Policy{}
	}
	return s.options.Policy()
}

// Close interrupts a running turn, waits until it has ended and lets go of the files.
func (s *session) Close() error {
	s.end()
	s.turning.Lock()
	defer s.turning.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	err := s.root.Close()
	if s.conversation != nil {
		err = errors.Join(err, s.conversation.done())
	}
	if err != nil {
		return fmt.Errorf("native: close: %w", err)
	}
	return nil
}

// ResumeToken is empty before the first turn.
func (s *session) ResumeToken() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conversation == nil {
		return ""
	}
	return s.conversation.token
}
