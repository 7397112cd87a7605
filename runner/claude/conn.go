package claude

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"drawbridge/internal/jsonl"
	"drawbridge/internal/process"
	"drawbridge/runner"
)

// conn is one process of the program and what is known of its state, which session.mu guards.
type conn struct {
	session *session
	program *process.Supervised
	kill    func() // ends the program at once
	peer    *jsonl.Peer
	life    context.Context //nolint:containedctx // the process's: questions of no turn live as long
	running sync.WaitGroup
	gone    chan struct{} // closed when the process has ended and everything about it was told
	stopped sync.Once

	ready   initialized
	mode    string // of the program, as it says
	state   string // idle, running, requires_action
	active  *turn
	turned  chan struct{} // closed with the first turn of this process
	turning sync.Once     // of that
	asking  chan struct{} // closed with the first hook
	refired sync.Once     // of that
	hooks   int           // that were asked of the gate
	// deferring: the host stops, and nothing new is asked.
	deferring bool
	greeted   bool   // the hook is in place
	failed    string // why the process ended before it was ready, as it says

	trusted bool                       // the project's own settings count
	servers map[string]json.RawMessage // external MCP servers
	hosts   bool                       // the program has our own server

	lane  lane
	calls map[string]*call // tool calls, by id
	tasks map[string]*task // background tasks that run, by id
	past  map[string]bool  // ids of those that have ended
	steps steps            // the checklist

	// model and effort are what the program was told to use; empty for its own. Only turns touch them, one at a time.
	model, effort string

	verdicts verdicts // of the program's own reviewer
	aligning string   // the mode that was asked for last
	rate     string   // how the limit of the account stood last
	cause    error    // why the process ended; valid once gone is closed
}

const (
	callTimeout = 15 * time.Second
	// settleTime is how long an idle process has to end by itself once its input is closed; it takes 40 ms.
	settleTime = time.Second
	// stopGrace is how long a busy one has after SIGTERM; it takes a second and a half.
	stopGrace = 4 * time.Second
)

// start runs a process and makes sure that the gate is before every call.
func (s *session) start(ctx context.Context, l launch) (*conn, error) {
	r := s.runtime
	if err := r.prepare(); err != nil {
		return nil, err
	}
	tmp, err := os.MkdirTemp(r.temporary(), "")
	if err != nil {
		return nil, fmt.Errorf("claude: %w", err)
	}
	servers := r.servers(s.options.Folder)
	l.trusted = r.trusts(s.options.Folder)
	if l.servers, err = serversFile(tmp, servers); err != nil {
		_ = os.RemoveAll(tmp) // nothing runs there
		return nil, err
	}
	args, err := r.arguments(l)
	if err != nil {
		_ = os.RemoveAll(tmp) // as above
		return nil, err
	}
	p, err := process.StartSupervised(process.Command{
		Args: append([]string{r.config.Program}, args...), Dir: s.options.Folder, Env: r.environment(s.options.Folder, tmp), Grace: stopGrace,
	})
	if err != nil {
		_ = os.RemoveAll(tmp) // nothing is in it
		return nil, fmt.Errorf("claude: %w", explainStart(r.config.Program, err))
	}
	tail := jsonl.NewTail()
	c := &conn{
		session: s, program: p, kill: p.Stop, gone: make(chan struct{}), mode: l.mode, aligning: l.mode, state: "idle",
		turned: make(chan struct{}), asking: make(chan struct{}),
		calls: map[string]*call{}, tasks: map[string]*task{}, past: map[string]bool{}, trusted: l.trusted, servers: servers,
		hosts: hosts(servers),
	}
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	c.life = life
	c.peer = jsonl.NewPeer(jsonl.PeerConfig{
		Lines:   jsonl.NewLines(jsonl.LinesConfig{In: p.Stdout, Out: p.Stdin, Record: r.config.Record}),
		Dialect: jsonl.Control{}, Request: c.asked, Notification: c.told, Timeout: callTimeout, Tail: tail, Logger: s.logger,
	})
	c.running.Go(func() { tail.Drain(p.Stderr) })
	c.running.Go(func() {
		err := c.peer.Run(life)
		end()
		p.Stop()
		_ = p.Stderr.Close()
		if err := os.RemoveAll(tmp); err != nil {
			s.logger.Warn("temporary folder not removed", "runtime", r.config.Name, "err", err)
		}
		c.over(err)
	})
	if err := c.greet(ctx, l); err != nil {
		c.stop()
		return nil, err
	}
	if l.servers != "" {
		// The program has read it. What the servers are given does not stay where commands could find it.
		if err := os.Remove(l.servers); err != nil {
			c.stop()
			return nil, fmt.Errorf("claude: MCP servers: %w", err)
		}
	}
	return c, nil
}

// greet puts the hook in place and compares what the program says of itself with what has to be true.
func (c *conn) greet(ctx context.Context, l launch) error {
	s := c.session
	instructions := ""
	if !c.trusted {
		instructions = memory(s.options.Folder) // a trusted project's are read by the program
	}
	err := c.peer.Call(ctx, "initialize", greeting(instructions, c.hosts), &c.ready)
	if err != nil {
		s.mu.Lock()
		failed := c.failed
		s.mu.Unlock()
		if strings.Contains(failed, "No conversation found") {
			return runner.ErrNoSession
		}
		return explainEnd(failed, err)
	}
	if err := c.ready.check(l.mode); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c.mode, c.greeted = c.ready.Mode, true
	return nil
}

// errUnheld says that the hook is not in place.
var errUnheld = errors.New("does not let Drawbridge decide each of its calls")

// check says what is wrong with a process that does not hold to the gate.
func (i initialized) check(mode string) error {
	v, err := parseVersion(i.Version)
	switch {
	case err != nil:
		return errors.New("claude: the program does not say its version, so it is not used")
	case v.Before(oldest()):
		return fmt.Errorf("claude: %s", tooOld(v))
	case i.HooksApplied == nil || !*i.HooksApplied || !i.OnFailure:
		return fmt.Errorf("claude: the program %w (a managed setting may switch hooks off), so it is not used", errUnheld)
	case i.Mode != mode:
		return fmt.Errorf("claude: the program started in mode %q, not in %q, so it is not used", i.Mode, mode)
	}
	return nil
}

// ended reports whether the process is over.
func (c *conn) ended() bool {
	select {
	case <-c.gone:
		return true
	case <-c.peer.Over():
		return true
	default:
		return false
	}
}

// over tells the end of the process: nothing of it runs any more.
func (c *conn) over(err error) {
	s := c.session
	s.mu.Lock()
	defer s.mu.Unlock()
	c.cause = err
	for _, t := range c.tasks {
		c.endTask(t)
	}
	c.endItems(nil)
	close(c.gone)
}

// stop ends the process and returns when it is gone and everything was told.
func (c *conn) stop() {
	c.stopped.Do(func() {
		_ = c.peer.CloseWrite() // it may have ended before
		c.session.mu.Lock()
		busy := c.state != "idle" || len(c.tasks) > 0
		c.session.mu.Unlock()
		if !busy {
			t := time.NewTimer(settleTime)
			defer t.Stop()
			select {
			case <-c.program.Done():
			case <-t.C:
			}
		}
		c.program.Stop()
		c.peer.Close()
	})
	c.running.Wait()
}

// asked answers a request of the program.
func (c *conn) asked(ctx context.Context, m jsonl.Message) (any, error) {
	switch m.Method {
	case "hook_callback":
		var h hookCall
		if err := json.Unmarshal(m.Params, &h); err != nil {
			return nil, fmt.Errorf("claude: hook: %w", err) // the program blocks the call
		}
		if h.Callback != gateHook || h.Input.Event != "PreToolUse" {
			return nil, jsonl.ErrMethod
		}
		return c.hook(ctx, h), nil
	case "can_use_tool":
		return c.permission(ctx, m.Params), nil
	case "elicitation":
		return c.elicit(ctx, string(m.ID), m.Params)
	case "mcp_message":
		return c.serve(m.Params)
	}
	return nil, jsonl.ErrMethod
}

// told handles a frame that wants no answer.
func (c *conn) told(_ context.Context, m jsonl.Message) {
	var f frame
	if err := json.Unmarshal(m.Params, &f); err != nil {
		if c.session.runtime.unknown.First("frame " + m.Method) {
			c.session.logger.Warn("frame skipped", "runtime", c.session.runtime.config.Name, "type", m.Method, "err", err)
		}
		return
	}
	c.session.mu.Lock()
	defer c.session.mu.Unlock()
	c.take(f)
}

// take handles a frame. mu is held.
func (c *conn) take(f frame) {
	s := c.session
	switch f.Type {
	case "stream_event":
		c.streamed(f)
	case "assistant":
		c.spoke(f)
	case "user":
		c.heard(f)
	case "result":
		c.resulted(f)
	case "command_lifecycle":
		if t := c.current(); t != nil && (f.State == "completed" || f.State == "cancelled") {
			delete(t.open, f.Command)
			c.settle()
		}
	case "conversation_reset":
		if validID(f.Conversation) {
			s.token = f.Conversation
		}
	case "rate_limit_event":
		c.limited(f)
	case "system":
		c.system(f)
	case "keep_alive", "tool_progress", "attachment":
	default:
		if s.runtime.unknown.First("type " + f.Type) {
			s.logger.Debug("unknown frame", "runtime", s.runtime.config.Name, "type", f.Type)
		}
	}
}

// system handles what the program says of itself. mu is held.
func (c *conn) system(f frame) {
	switch f.Subtype {
	case "init":
		c.begun(f)
	case "status":
		c.status(f)
	case "session_state_changed":
		c.state = f.State
		c.settle()
		if c.state == "idle" && c.current() == nil {
			c.endItems(nil) // of a turn that the program began by itself
		}
	case "api_retry":
		c.retried(f)
	case "informational":
		c.informed(f)
	case "permission_denied":
		c.refusedByProgram(f)
	case "compact_boundary":
		c.notice("The conversation was shortened: older parts of it are summed up.")
	case "task_started", "task_updated", "task_notification":
		c.tasked(f)
	}
}

// begun is the beginning of a turn of the program: the conversation exists from here on. mu is held.
func (c *conn) begun(f frame) {
	s := c.session
	if validID(f.Session) {
		s.token = f.Session
	}
	s.started = true
	if !s.told {
		s.told = true
		s.emit(runner.Event{Kind: runner.SessionStarted, Turn: c.turnID(), Text: s.token})
	}
	c.moded(f.PermissionMode)
	for _, m := range c.external(f.MCP) {
		if _, ours := c.servers[m.Name]; !ours {
			c.unreview("an MCP server that Drawbridge did not configure is loaded")
		}
	}
}

// status tells a change of the program's mode, and a compaction. mu is held.
func (c *conn) status(f frame) {
	var word string
	_ = json.Unmarshal(f.Status, &word) // null and none are no word
	if word == "compacting" {
		c.notice("The conversation is being shortened.")
	}
	c.moded(f.PermissionMode)
}

// notice tells people something. mu is held.
func (c *conn) notice(text string) {
	c.session.emit(runner.Event{Kind: runner.Notice, Turn: c.turnID(), Text: text})
}

// current is the turn that is running, or nil. mu is held.
func (c *conn) current() *turn {
	if c.active == nil || c.active.over {
		return nil
	}
	return c.active
}

// turnID is the turn that is running, or empty. mu is held.
func (c *conn) turnID() string {
	if t := c.current(); t != nil {
		return t.id
	}
	return ""
}
