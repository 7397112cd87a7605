// Package codex runs OpenAI's Codex over its app-server protocol.
//
// One app-server process serves all sessions of a Runtime; it starts with the first and ends with the last. It gets a
// home and a CODEX_HOME of its own, with the user's login linked in and nothing else of the user's: no configuration, no
// rules, no hooks, no MCP servers. Threads always begin read-only, so that no project is marked as trusted; the policy
// goes in full with every turn, and a turn whose policy is not echoed, or echoed looser, is not started. Every request
// of codex is answered by the session's Gate, as an action outside of any sandbox, and never with an answer that codex
// would remember.
//
// It guarantees that what codex asks is never allowed without the Gate, that what it does not understand is refused, and
// that closing a session or interrupting a turn ends its commands and sub-agents. What codex does without asking is held
// by codex's own sandbox and by nothing of ours; Probe names where that is looser than the table.
package codex

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"drawbridge/policy"
	"drawbridge/runner"
)

// Config is what a Runtime is made of. Program, Data and Logger are required.
type Config struct {
	// Name is the runtime's; "codex" when empty.
	Name string
	// Program is the codex command: a path, or a name to be found in PATH. Where it is npm's wrapper, the program behind it
	// is used.
	Program string
	// Data is a folder for this runtime alone, absolute: codex's home, its sessions and its logs. It must not be below a
	// folder for temporary files, which agents may write.
	Data string
	// Login is the user's auth.json, absolute, which is linked and never copied. Empty for none: a key in Environment is the
	// login then.
	Login string
	// Environment is added to codex's environment: a key, a proxy.
	Environment map[string]string
	// Lookup reads our own environment; os.LookupEnv when nil. See process.Environment for what is looked up.
	Lookup func(string) (string, bool)
	// Model and Effort are codex's own defaults when empty.
	Model, Effort string
	// Reviewer lets codex's own reviewer decide in the mode auto what codex would ask, human-only actions too, as long as no
	// MCP server is configured. See reviewedCells.
	Reviewer bool
	// Provider is where the model is. OpenAI when nil.
	Provider *Provider
	// Servers are the MCP servers that agents get, by name. Each of their tools is asked.
	Servers map[string]Server
	// Tools says what tools of MCP servers do, by "server/tool" or "server/*"; see policy.ClassifyTool.
	Tools map[string]policy.Category
	// Readable are more folders that commands in the sandbox can read: programs that are not in the system's folders.
	Readable []string
	// Hidden are files and folders that the agent must not see in any mode, absolute: keys, our own data. They are hidden by
	// an outer sandbox where one works; Probe says when none does.
	Hidden []string
	Logger *slog.Logger
	// Pace is for tests: how long codex has for what it does by itself. The zero value is right.
	Pace Pace
}

// Provider is a model provider that speaks OpenAI's Responses API.
type Provider struct {
	Name string // as codex shows it
	URL  string // base, such as "https://example.com/v1"
	Key  string // the name in Environment of its key; empty for none
}

// Server is an MCP server: a program that codex starts, or an address that speaks streamable HTTP.
type Server struct {
	Command     string
	Arguments   []string
	Environment map[string]string
	URL         string            // in place of Command
	Headers     map[string]string // sent with every request to URL
}

// Pace are the times that codex has.
type Pace struct {
	Start time.Duration // until it has introduced itself; 20 seconds when 0
	Call  time.Duration // for an answer; 30 seconds when 0
	Echo  time.Duration // until it says what a thread is held to; 10 seconds when 0
	Stop  time.Duration // to end an interrupted turn; 10 seconds when 0
	// Settle is how long the end of a command may come behind the end of its turn; 3 seconds when 0.
	Settle time.Duration
}

// Runtime is Codex on this host.
type Runtime struct {
	config Config
	start  func(ctx context.Context, args []string) (*child, error)

	lock    chan struct{} // held while the server is started; a mutex that a context can give up on
	mu      sync.Mutex
	current *server
	users   int
}

// New makes a Runtime. It looks for nothing yet: a codex that is missing is Probe's to tell.
func New(c Config) (*Runtime, error) {
	c.Name = cmp.Or(c.Name, "codex")
	switch {
	case c.Program == "" || c.Logger == nil:
		return nil, errors.New("codex: new: a program and a logger are required")
	case !filepath.IsAbs(c.Data):
		return nil, fmt.Errorf("codex: new: the data folder %q is not absolute", c.Data)
	case c.Login != "" && !filepath.IsAbs(c.Login):
		return nil, fmt.Errorf("codex: new: the login %q is not absolute", c.Login)
	}
	for _, p := range c.Hidden {
		if !filepath.IsAbs(p) {
			return nil, fmt.Errorf("codex: new: %q is to be hidden and is not absolute", p)
		}
		for _, own := range []string{c.Data, c.Login} {
			if rel, err := filepath.Rel(p, own); own != "" && err == nil && filepath.IsLocal(rel) {
				return nil, fmt.Errorf("codex: new: %q is to be hidden and holds %q, which codex needs", p, own)
			}
		}
	}
	if c.Lookup == nil {
		c.Lookup = os.LookupEnv
	}
	c.Pace.Start = cmp.Or(c.Pace.Start, 20*time.Second)
	c.Pace.Call = cmp.Or(c.Pace.Call, 30*time.Second)
	c.Pace.Echo = cmp.Or(c.Pace.Echo, 10*time.Second)
	c.Pace.Stop = cmp.Or(c.Pace.Stop, 10*time.Second)
	c.Pace.Settle = cmp.Or(c.Pace.Settle, 3*time.Second)
	r := &Runtime{config: c, lock: make(chan struct{}, 1)}
	r.start = r.spawn
	return r, nil
}

// Name is the runtime's name.
func (r *Runtime) Name() string { return r.config.Name }

// Open begins or resumes a session; see runner.Runtime.
func (r *Runtime) Open(ctx context.Context, o runner.Options) (runner.Session, error) {
	if !filepath.IsAbs(o.Folder) || o.Gate == nil || o.Sink == nil {
		return nil, errors.New("codex: open: an absolute folder, a gate and a sink are required")
	}
	folder, err := filepath.EvalSymlinks(o.Folder)
	if err != nil {
		return nil, fmt.Errorf("codex: open: %w", err) // codex would take a folder that is not there
	}
	if info, err := os.Stat(folder); err != nil || !info.IsDir() {
		return nil, fmt.Errorf("codex: open: %s is not a folder", o.Folder)
	}
	if o.Resume != "" && !threadID(o.Resume) {
		return nil, fmt.Errorf("codex: open: %w", runner.ErrNoSession)
	}
	o.Folder = folder
	s := newSession(r, o)
	if err := s.attach(ctx); err != nil {
		s.end()
		return nil, fmt.Errorf("codex: open: %w", err)
	}
	return s, nil
}

// threadID reports whether s has the form of a thread's id.
func threadID(s string) bool {
	if len(s) != 36 {
		return false
	}
	for i, c := range s {
		hex := c >= '0' && c <= '9' || c >= 'a' && c <= 'f'
		if dash := i == 8 || i == 13 || i == 18 || i == 23; dash != (c == '-') || !dash && !hex {
			return false
		}
	}
	return true
}

// acquire returns the running app-server, started if there is none. Whoever gets it calls release.
func (r *Runtime) acquire(ctx context.Context) (*server, error) {
	select {
	case r.lock <- struct{}{}:
		defer func() { <-r.lock }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	r.mu.Lock()
	if r.current != nil && r.current.alive() {
		r.users++
		defer r.mu.Unlock()
		return r.current, nil
	}
	old := r.current
	r.current = nil
	r.mu.Unlock()
	if old != nil {
		old.stop() // it has ended; this sees it off
	}

	s, err := r.serve(ctx)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.current, r.users = s, 1
	return s, nil
}

// release gives a server back. The last one to do so ends it, and waits until nothing of it runs.
func (r *Runtime) release(s *server) {
	r.mu.Lock()
	last := false
	if r.current == s {
		r.users--
		if last = r.users == 0; last {
			r.current = nil
		}
	}
	r.mu.Unlock()
	if last {
		s.stop()
	}
}
