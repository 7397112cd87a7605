// Package claude drives Claude Code, the program, over its stream-json protocol: one process a session.
//
// It guarantees that every tool call of the program, its sub-agents' too, goes through the session's gate before
// anything of it happens: a PreToolUse hook without a matcher answers it and blocks the call if it fails, and the
// program's own permission question is the net under it. The program runs in its mode "default", or "plan" where the
// chat plans, or "auto" where its own reviewer is used; the modes that skip questions stand in bypass.go and are never
// sent. It reads no settings, hooks, rules, MCP servers or plug-ins of the user, nor of a project that the owner does not
// trust, has folders of its own, and an environment made for it. A tool that ran without having been asked for ends the session.
//
// It does not contain what a command does: Claude Code has no sandbox here, so a command is terminal. Managed settings
// of the machine (/etc/claude-code) are its administrator's and are read by the program.
//
// What is known of the program was measured on the versions in version.go.
package claude

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"drawbridge/internal/chatapi"
	"drawbridge/internal/jsonl"
	"drawbridge/internal/process"
	"drawbridge/policy"
	"drawbridge/runner"
)

// Config is what a Runtime is made from. Name, Data and Logger are required.
type Config struct {
	Name string // as people type it: "claude", "claude:work"
	// Program is the path of the program, or its name in PATH; "claude" when empty.
	Program string
	// Data is a folder of this runtime alone, absolute: the program's home, configuration and conversations.
	Data string
	// Login is the folder with the person's own login, such as ~/.claude. Its credentials file is used, through a link, so
	// that both go on when a token is refreshed, and its conversations can be listed and continued, see Sessions; nothing
	// else of it is. Empty means that Key, or Set, logs in.
	Login string
	// Key is an API key. The commands that the agent runs can read it in their environment.
	Key chatapi.Key
	// BaseURL is the endpoint's, without "/v1"; Anthropic's when empty.
	BaseURL string
	// Model is as the program takes it ("opus", a full name); its default when empty.
	Model string
	// Set is given to the program's environment beside what process.Environment makes, such as the names that choose
	// another provider. Commands see it too.
	Set map[string]string
	// MCP holds external MCP servers by name, as in the program's own configuration. None but these are loaded. With any,
	// the program's own reviewer is not used.
	MCP map[string]json.RawMessage
	// Tools says what tools do, see policy.ClassifyTool. Nil knows the program's own.
	Tools map[string]policy.Category
	// Trusts reports whether the owner trusts the project in a folder: its settings, but for its hooks, and the MCP servers
	// of its .mcp.json are loaded then, programs that its git configuration names may run, and the program's own reviewer
	// is not used. Nil trusts none.
	Trusts func(folder string) bool
	// Reviewer lets the program's own reviewer decide in mode auto what the table sends to a reviewer, as far as the
	// model supports it and no external MCP server can load. Otherwise the gate decides by what it has.
	Reviewer bool
	// Record takes every frame of every session; it holds secrets. Nil records nothing.
	Record *jsonl.Recorder
	Logger *slog.Logger
}

// Runtime runs sessions of Claude Code. It is safe for concurrent use.
type Runtime struct {
	config  Config
	making  sync.Mutex // held while the folders are made
	unknown jsonl.Once
	person  string // home folder of the person whose terminal asks; see ParseHook
	// interruptTime is the constant of this name; tests are in a hurry.
	interruptTime time.Duration
}

var _ runner.Runtime = (*Runtime)(nil)

// New makes a Runtime. The error says which field is wrong; what the program can do is for Probe to find out.
func New(c Config) (*Runtime, error) {
	switch {
	case c.Name == "" || c.Logger == nil:
		return nil, errors.New("claude: name and logger are required")
	case !filepath.IsAbs(c.Data):
		return nil, fmt.Errorf("claude: data folder %q is not absolute", c.Data)
	case c.Login != "" && !filepath.IsAbs(c.Login):
		return nil, fmt.Errorf("claude: login folder %q is not absolute", c.Login)
	}
	for name := range c.Set {
		if reserved(name) {
			return nil, fmt.Errorf("claude: %s cannot be set: it is Drawbridge's own", name)
		}
	}
	if _, taken := c.MCP[runner.ToolHost]; taken {
		return nil, fmt.Errorf("claude: no MCP server can be named %q: Drawbridge's own is", runner.ToolHost)
	}
	if c.Program == "" {
		c.Program = "claude"
	}
	return &Runtime{config: c, interruptTime: interruptTime}, nil
}

// Name is the configured name.
func (r *Runtime) Name() string { return r.config.Name }

// openTimeout bounds what opening takes beside the caller's context. The program starts within a second on an idle
// machine.
const openTimeout = 60 * time.Second

// Open begins a session, or resumes one. The program is started at once, so that what is wrong is told here.
func (r *Runtime) Open(ctx context.Context, o runner.Options) (runner.Session, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("claude: open: %w", err)
	}
	if info, err := os.Stat(o.Folder); err != nil || !info.IsDir() {
		return nil, fmt.Errorf("claude: open: workspace %s is not a folder that can be read", o.Folder)
	}
	if o.Resume != "" && !validID(o.Resume) {
		return nil, fmt.Errorf("claude: open: %w", runner.ErrNoSession)
	}
	if err := r.adopt(o.Folder, o.Resume); err != nil {
		return nil, fmt.Errorf("claude: open: %w", err)
	}
	s := &session{runtime: r, options: o, logger: r.config.Logger, token: o.Resume, started: o.Resume != "", paidKnown: o.Resume == "", attached: map[string]bool{}}
	s.life, s.end = context.WithCancel(context.WithoutCancel(ctx))
	limited, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	if _, err := s.connect(limited); err != nil {
		_ = s.Close() // nothing runs
		return nil, fmt.Errorf("claude: open: %w", err)
	}
	return s, nil
}

// The folders of the runtime. None of them is the user's.
func (r *Runtime) home() string { return cmp.Or(r.person, filepath.Join(r.config.Data, "home")) }

// configuration is the program's CLAUDE_CONFIG_DIR.
func (r *Runtime) configuration() string { return filepath.Join(r.config.Data, "config") }

func (r *Runtime) temporary() string { return filepath.Join(r.config.Data, "tmp") }

// credentials is the file in the configuration folder that holds a login (not on macOS, where the keychain does).
const credentials = ".credentials.json"

// planted are what the program would read in its configuration folder as the person's own: settings with hooks and rules,
// instructions, sub-agents, commands. Nobody but an agent can have put them into ours.
func planted() []string {
	return []string{
		"settings.json", "settings.local.json", "CLAUDE.md", "rules", "agents", "commands", "skills", "hooks", "plugins", "output-styles",
	}
}

// tidy takes away what an agent that was allowed to write there has left for sessions to come.
func (r *Runtime) tidy() error {
	for _, name := range planted() {
		if err := os.RemoveAll(filepath.Join(r.configuration(), name)); err != nil {
			return fmt.Errorf("claude: prepare: %w", err)
		}
	}
	return r.startup()
}

// startup takes what shells would read from our home; never from a person's.
func (r *Runtime) startup() error {
	if err := process.RemoveStartup(filepath.Join(r.config.Data, "home")); err != nil {
		return fmt.Errorf("claude: %w", err)
	}
	return nil
}

// prepare makes the folders and links the login.
func (r *Runtime) prepare() error {
	r.making.Lock()
	defer r.making.Unlock()
	for _, dir := range []string{r.home(), r.configuration(), r.temporary()} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("claude: prepare: %w", err)
		}
	}
	if err := r.tidy(); err != nil {
		return err
	}
	if r.config.Login == "" {
		return nil
	}
	link, target := filepath.Join(r.configuration(), credentials), filepath.Join(r.config.Login, credentials)
	if now, err := os.Readlink(link); err == nil && now == target {
		return nil
	}
	if err := os.Remove(link); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("claude: prepare: login: %w", err)
	}
	if err := os.Symlink(target, link); err != nil {
		return fmt.Errorf("claude: prepare: login: %w", err)
	}
	return nil
}
