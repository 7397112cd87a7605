package claude

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"sync"

	"drawbridge/runner"
)

// session is one conversation. It has one process at a time, and gets another when that ended by itself.
type session struct {
	runtime *Runtime
	options runner.Options
	logger  *slog.Logger
	life    context.Context //nolint:containedctx // the session's, which no single call bounds
	end     context.CancelFunc

	turning sync.Mutex // held during a turn, and by Close when it ends the process

	mu      sync.Mutex // guards what is below and all of conn's state, and is held while the sink is called
	closed  bool
	token   string // id of the conversation
	started bool   // the conversation exists in the program's files
	// paid is what the conversation has cost until now, in US dollars, as the program said last. Of one that is resumed it is
	// not known before the first turn has ended, so that turn has no cost.
	paid      float64
	paidKnown bool
	told      bool // session.started was told
	conn      *conn
	attached  map[string]bool // paths of files that people attached
	// unreviewed is why the program's own reviewer is not used any more; empty while it may be.
	unreviewed string
	lost       string // the reason of the last policy.changed
}

var (
	_ runner.Session = (*session)(nil)
	_ runner.Steerer = (*session)(nil)
)

var errTurning = errors.New("claude: turn: another turn is running")

// idPattern is that of the program's session ids.
var idPattern = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)

func validID(s string) bool { return idPattern.MatchString(s) }

// newID is a random UUID (RFC 9562, version 4).
func newID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand)
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	h := hex.EncodeToString(b[:])
	return strings.Join([]string{h[:8], h[8:12], h[12:16], h[16:20], h[20:]}, "-")
}

// emit hands an event to the sink, in order, unless the session is closed. mu is held.
func (s *session) emit(e runner.Event) {
	if !s.closed && s.options.Sink != nil {
		s.options.Sink(e)
	}
}

// allowed is what the chat allows at this moment; the zero value, the strictest, when nobody tells.
func (s *session) allowed() runner.Policy {
	if s.options.Policy == nil {
		return runner.Policy{}
	}
	return s.options.Policy()
}

// connect returns the running process, or starts one.
func (s *session) connect(ctx context.Context) (*conn, error) {
	s.mu.Lock()
	c := s.conn
	if !s.started && (c == nil || c.ended()) {
		s.token = newID() // one that was given to a process may be taken
	}
	l := launch{mode: s.nativeMode(s.allowed()), id: s.token, resume: s.started}
	s.mu.Unlock()
	if c != nil && !c.ended() {
		return c, nil
	}
	c, err := s.start(ctx, l)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conn = c
	return c, nil
}

// Turn sends a prompt and waits until the program is idle: until sub-agents that it began are done, too. Turns that the
// program begins by itself afterwards, since a command in the background ended, are none of this one.
func (s *session) Turn(ctx context.Context, in runner.Input) (runner.Result, error) {
	return s.during(ctx, func(ctx context.Context) (runner.Result, error) { return s.turn(ctx, in) })
}

func (s *session) turn(ctx context.Context, in runner.Input) (runner.Result, error) {
	select {
	case <-ctx.Done():
		return runner.Result{Outcome: runner.Interrupted}, nil
	default:
	}
	c, err := s.connect(ctx)
	if err != nil {
		return runner.Result{}, err
	}
	if err := c.choose(ctx, in); err != nil {
		return runner.Result{}, err
	}
	if err := c.align(ctx); err != nil {
		return runner.Result{}, err
	}
	return c.turn(ctx, in)
}

// Steer sends input into the running turn: the program takes it up with the next request to the model, or begins
// another turn with it at once after this one, which belongs to the same Turn.
func (s *session) Steer(_ context.Context, in runner.Input) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.conn == nil || s.conn.current() == nil || s.conn.current().interrupted {
		return false, nil
	}
	t := s.conn.current()
	p := s.conn.prompt(in)
	t.open[p.UUID] = true
	if err := s.conn.peer.Send(p); err != nil {
		delete(t.open, p.UUID)
		return false, fmt.Errorf("claude: steer: %w", err)
	}
	return true, nil
}

// Close interrupts a running turn and ends the process and what it started.
func (s *session) Close() error {
	s.end()
	s.turning.Lock()
	defer s.turning.Unlock()
	s.mu.Lock()
	c := s.conn
	s.mu.Unlock()
	if c != nil {
		c.stop()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return nil
}

// ResumeToken is empty before the first turn.
func (s *session) ResumeToken() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.started {
		return ""
	}
	return s.token
}
