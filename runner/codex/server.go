package codex

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"drawbridge/internal/jsonl"
	"drawbridge/runner"
)

// server is one running app-server, shared by the sessions that are open.
type server struct {
	peer    *jsonl.Peer
	child   *child
	timeout time.Duration
	logger  *slog.Logger
	version runner.Version
	group   sync.WaitGroup
	over    chan struct{} // closed when codex has ended
	cause   error         // why it ended by itself; valid once over is closed
	once    jsonl.Once

	mu       sync.Mutex
	sessions map[string]*session // by thread, those of sub-agents too
}

// serve starts an app-server and introduces us.
func (r *Runtime) serve(ctx context.Context) (*server, error) {
	p, err := r.find()
	if err != nil {
		return nil, err
	}
	if err := r.prepare(); err != nil {
		return nil, err
	}
	c, err := r.start(ctx, append([]string{p.path}, r.arguments(p)...))
	if err != nil {
		return nil, err
	}
	s := &server{
		child: c, timeout: r.config.Pace.Call, logger: r.config.Logger, over: make(chan struct{}), sessions: map[string]*session{},
	}
	tail := jsonl.NewTail()
	lines := jsonl.NewLines(jsonl.LinesConfig{In: c.out, Out: c.in})
	s.peer = jsonl.NewPeer(jsonl.PeerConfig{
		Lines: lines, Dialect: jsonl.RPC{}, Request: s.request, Notification: s.notify, Timeout: r.config.Pace.Call, Tail: tail,
		Logger: r.config.Logger,
	})
	s.group.Go(func() { tail.Drain(c.log) })
	s.group.Go(func() {
		err := s.peer.Run(context.WithoutCancel(ctx))
		s.cause = err
		close(s.over)
		s.ended()
	})
	if err := s.introduce(ctx, r.config.Pace.Start); err != nil {
		s.stop()
		return nil, err
	}
	return s, nil
}

// unwanted are notifications that nothing is made of. A command's output is taken from its end: it can be tens of
// thousands of frames.
func unwanted() []string {
	return []string{
		"item/commandExecution/outputDelta", "thread/readState/changed", "account/rateLimits/updated", "turn/diff/updated",
		"item/fileChange/outputDelta", "item/fileChange/patchUpdated", "remoteControl/status/changed",
	}
}

func (s *server) introduce(ctx context.Context, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var got initialized
	err := s.peer.Call(ctx, "initialize", map[string]any{
		"clientInfo":   map[string]string{"name": "drawbridge", "title": "Drawbridge", "version": "1"},
		"capabilities": map[string]any{"experimentalApi": true, "requestAttestation": false, "optOutNotificationMethods": unwanted()},
	}, &got)
	if err != nil {
		return fmt.Errorf("codex: start: %w", explained(err))
	}
	if s.version, err = versionIn(got.UserAgent); err != nil {
		return fmt.Errorf("codex: start: %w", err)
	}
	if s.version.Before(oldest()) {
		return fmt.Errorf("codex: start: %w", &tooOldError{s.version})
	}
	if err := s.peer.Notify("initialized", nil); err != nil {
		return fmt.Errorf("codex: start: %w", err)
	}
	return nil
}

func (s *server) alive() bool {
	select {
	case <-s.over:
		return false
	default:
		return true
	}
}

// call sends a request and waits for the answer, at most as long as codex has for one.
func (s *server) call(ctx context.Context, method string, params, result any) error {
	if err := s.peer.Call(ctx, method, params, result); err != nil {
		return explained(err)
	}
	return nil
}

// stop ends codex: its input first, which a wrapper needs to let its program go. It returns when nothing of it runs.
func (s *server) stop() {
	_ = s.peer.CloseWrite() // it may have ended already
	s.child.stop()
	s.peer.Close()
	s.group.Wait()
}

// ended tells all sessions that codex has ended.
func (s *server) ended() {
	s.mu.Lock()
	all := map[*session]bool{}
	for _, one := range s.sessions {
		all[one] = true
	}
	s.sessions = map[string]*session{}
	s.mu.Unlock()
	for one := range all {
		one.lost(s)
	}
}

func (s *server) add(thread string, one *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sessions[thread] = one
}

func (s *server) remove(one *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for thread, of := range s.sessions {
		if of == one {
			delete(s.sessions, thread)
		}
	}
}

func (s *server) find(thread string) *session {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sessions[thread]
}

// of finds the session that a frame belongs to. A sub-agent's thread is not announced: its first turn names the root
// turn that it works for.
func (s *server) of(thread, rootTurn string) *session {
	if one := s.find(thread); one != nil || rootTurn == "" {
		return one
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.sessions {
		if one.runs(rootTurn) {
			s.sessions[thread] = one
			return one
		}
	}
	return nil
}

// notify is called for one notification after the other.
func (s *server) notify(_ context.Context, m jsonl.Message) {
	if m.Method == "serverRequest/resolved" {
		var f resolved
		if json.Unmarshal(m.Params, &f) == nil {
			s.peer.Withdraw(jsonl.ID(f.RequestID))
		}
		return
	}
	var r route
	if json.Unmarshal(m.Params, &r) != nil || r.ThreadID == "" {
		return // about codex itself: start-up warnings, its account
	}
	root := ""
	if m.Method == "turn/started" {
		var f turnFrame
		if json.Unmarshal(m.Params, &f) == nil {
			root = f.Turn.RootTurnID
		}
	}
	one := s.of(r.ThreadID, root)
	if one == nil {
		return
	}
	if known, err := one.hear(m.Method, r, m.Params); err != nil {
		s.logger.Warn("frame skipped", "method", m.Method, "err", err)
	} else if !known && s.once.First("notification "+m.Method) {
		s.logger.Debug("notification skipped", "method", m.Method)
	}
}

// request is called for each request of codex, at the same time. What is not known is refused.
func (s *server) request(ctx context.Context, m jsonl.Message) (any, error) {
	var r route
	if err := json.Unmarshal(m.Params, &r); err != nil {
		return nil, fmt.Errorf("codex: request %s: %w", m.Method, err)
	}
	one := s.find(r.ThreadID)
	if one == nil && r.ThreadID != "" {
		one = s.parent(ctx, r.ThreadID)
	}
	if one == nil {
		return nil, fmt.Errorf("codex: request %s of a thread that is none of ours", m.Method)
	}
	return one.asked(ctx, s, m, r)
}

// parent finds the session of a sub-agent that asks before anything else was heard of it.
func (s *server) parent(ctx context.Context, thread string) *session {
	for range 8 {
		var got struct {
			Thread struct {
				Parent string `json:"parentThreadId"`
			} `json:"thread"`
		}
		if err := s.peer.Call(ctx, "thread/read", map[string]any{"threadId": thread, "includeTurns": false}, &got); err != nil || got.Thread.Parent == "" {
			return nil
		}
		if one := s.find(got.Thread.Parent); one != nil {
			s.add(thread, one)
			return one
		}
		thread = got.Thread.Parent
	}
	return nil
}

// explained puts codex's last words in front, where it ended: they say more than that a pipe was closed.
func explained(err error) error {
	if closed, ok := errors.AsType[*jsonl.ClosedError](err); ok && closed.Stderr != "" {
		return &endedError{lastLine(closed.Stderr), err}
	}
	return err
}

// endedError says that codex ended, in its own words.
type endedError struct {
	words string
	err   error
}

func (e *endedError) Error() string { return "codex ended: " + e.words }
func (e *endedError) Unwrap() error { return e.err }
