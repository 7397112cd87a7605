// Package config turns the environment and an optional drawbridge.toml into one checked Config.
//
// It guarantees that a Config that Load returned is whole: every value is in its range, names point to things that
// exist in it, and what depends on something else has it. The environment is stronger than the file, the file stronger
// than the default, and each value remembers which of the three it came from. A mistake is one line that names the key,
// where it stands, the value (never that of a secret, nor of a key that is not known) and what is allowed; then there
// is no Config at all.
//
// It does not look at the world: folders of projects, servers and models may be missing or wrong. They are looked at
// when they are used, since they come and go while the program runs. The exception is where the file and the data
// folder lie: an agent that could write them could choose its own mode.
package config

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"drawbridge/policy"
)

// FileName is the name that the file has where no other is given.
const FileName = "drawbridge.toml"

// fileEnv names the file; it is no key, since a file cannot name itself.
const fileEnv = "DRAWBRIDGE_CONFIG"

// Config is everything that can be chosen from outside. It is made by Load and handed on by value; nobody changes what
// its slices hold.
type Config struct {
	// HostName names this machine among the hosts of one bot: 1–32 of a–z, 0–9 and the hyphen.
	HostName string
	// DataDir is the absolute folder of the embedded store and of what runtimes keep. It need not exist.
	DataDir string
	// RedisURL chooses Redis as the store; unset means the embedded one.
	RedisURL Secret
	// Namespace keeps bots apart that share one Redis; the gateway and the hosts of a bot have the same one.
	Namespace string
	Telegram  Telegram
	People    People
	// DefaultMode is the mode of a chat that has not chosen one.
	DefaultMode policy.Mode
	// Projects are in the order in which they were written; their names differ.
	Projects []Project
	// Runtimes are in the order in which they were written; their names differ.
	Runtimes []Runtime
	// DefaultRuntime names the runtime of chats and projects that have not chosen one. Empty only without runtimes.
	DefaultRuntime string
	// Servers are the MCP servers that agents get, in the order in which they were written; their names differ.
	Servers []Server
	// Tools is the owner's word on what tools of MCP servers do, by "server/tool" or "server/*". What it does not name is
	// unknown, and asked.
	Tools map[string]policy.Category
	// Reviewer is nil where nobody has chosen one; what is for a reviewer is then asked of a person.
	Reviewer *Reviewer
	// Hooks are the tasks that other programs start, in the order in which they were written; their names and secrets differ.
	Hooks []Hook
	// HooksListen is the address, host:port, at which deliveries for them are taken; empty without any.
	HooksListen string
	// On is what is done when something happens to a task, in the order in which it was written.
	On     []On
	Timing Timing
	Log    Log

	values   []Value
	warnings []string
}

// Telegram is the way to the Bot API.
type Telegram struct {
	// Token is the bot's; only a gateway needs it.
	Token Secret
	// APIURL is the server's address without a slash at its end; Telegram's own unless a local server is used.
	APIURL string
	// Webhook is how updates arrive; nil means that they are fetched.
	Webhook *Webhook
}

// Webhook is an address at which Telegram delivers updates.
type Webhook struct {
	// URL is what Telegram is told; https, or http on this machine.
	URL string
	// Listen is the address, host:port, that the gateway itself listens on, behind whatever ends TLS.
	Listen string
	// Secret comes with every delivery in a header; a delivery without it is refused. 1–256 of A–Z a–z 0–9 _ -.
	Secret Secret
}

// People are the Telegram users with a role, by id. An id has one role. With no owner the first one is paired at the
// console.
type People struct {
	Owners, Operators, Viewers []int64
}

// Project is a named workspace on this host.
type Project struct {
	// Name is unique: 1–32 letters, digits, dots, hyphens and underscores, not starting with a dot.
	Name string
	// Path is absolute and clean. It need not exist.
	Path string
	// Runtime is the runtime that chats of this project start with; empty means Config.DefaultRuntime.
	Runtime string
	// PublishIsOrdinary moves publishing out of human-only for this project.
	PublishIsOrdinary bool
	// Trusted says that what the project itself configures for its agents is used: see claude.Config.Trusts.
	Trusted bool
}

// The kinds of runtimes.
const (
	KindNative = "native" // an agent loop of ours over a chat-completions endpoint
	KindCodex  = "codex"  // OpenAI's Codex
	KindClaude = "claude" // Claude Code
)

func kinds() []string { return []string{KindNative, KindCodex, KindClaude} }

// Runtime is one way to run an agent.
type Runtime struct {
	// Name is unique: the kind, or the kind, a colon and a word of its own ("native:glm").
	Name string
	// Kind is KindNative, KindCodex or KindClaude.
	Kind string
	// Program is the agent's command, a name to be found in PATH or a path. Empty for KindNative.
	Program string
	// Login is what the agent was logged in with, to be linked: Codex's auth.json, Claude Code's folder. Empty for none.
	Login string
	// Reviewer lets the agent's own reviewer decide in mode auto: Claude Code's where its model supports that; Codex's also
	// what the table leaves to a person.
	Reviewer bool
	// BaseURL is the endpoint's address, with no slash at its end: for KindNative up to and without /chat/completions,
	// for others the agent's own where it is empty.
	BaseURL string
	// Model is what the endpoint calls the model; for others than KindNative the agent's own where it is empty.
	Model string
	// Key is sent as a bearer token; unset where the endpoint wants none.
	Key Secret
	// ContextWindow is the model's, in tokens; for KindNative.
	ContextWindow int
}

// Timing is how long things take, already divided by the pace.
type Timing struct {
	// Pace is how many times faster than in real life everything below goes; 1 outside tests.
	Pace float64
	// ApprovalDeadline is how long an approval waits for a person before silence denies it.
	ApprovalDeadline time.Duration
	// SessionIdle is how long an agent's process is kept without a turn.
	SessionIdle time.Duration
	// Beat is how often a host says that it lives, DeadAfter how long it may be silent, Sweep how often a gateway looks.
	Beat, DeadAfter, Sweep time.Duration
	// Lease is how long one gateway may speak to Telegram without renewing, Renew how often it renews.
	Lease, Renew time.Duration
	// Reread is how often whoever waits for a message looks for itself, because a message may be lost.
	Reread time.Duration
}

// Log is how the program logs.
type Log struct {
	// Level is the lowest that is written.
	Level slog.Level
	// Format is "text" or "json".
	Format string
}

// Load reads the file and env, which has the form of os.Environ, and checks everything. The file is the one named; if
// file is empty, the one that DRAWBRIDGE_CONFIG names; without that, drawbridge.toml in the working folder or else in
// the drawbridge folder of XDG_CONFIG_HOME (~/.config), if there is one. A file that was named must exist. An
// environment variable that is empty counts as not set.
//
// The error's text has one line for each mistake.
func Load(env []string, file string) (Config, error) {
	l := newLoader(env)
	path, named := l.locate(file)
	if path != "" {
		body, mode, err := readFile(path)
		switch {
		case err == nil:
			l.file = path
			l.private = mode.Perm()&0o077 == 0
			l.decode(body)
		case named || !errors.Is(err, fs.ErrNotExist):
			return Config{}, fmt.Errorf("config: %s: cannot be read: %w", path, err)
		}
	}
	return l.finish()
}

// Warnings returns what is allowed and yet probably not meant, one line each.
func (c Config) Warnings() []string { return slices.Clone(c.warnings) }

// locate returns the file to read and whether somebody named it.
func (l *loader) locate(file string) (path string, named bool) {
	if file != "" {
		return file, true
	}
	if v := l.env[fileEnv]; v != "" {
		return v, true
	}
	if _, err := os.Stat(FileName); err == nil {
		return FileName, false
	}
	dir := l.env["XDG_CONFIG_HOME"]
	if dir == "" && l.env["HOME"] != "" {
		dir = filepath.Join(l.env["HOME"], ".config")
	}
	if dir == "" {
		return "", false
	}
	return filepath.Join(dir, "drawbridge", FileName), false
}

// maxFile is far more than anybody writes by hand, and little enough to be read by mistake.
const maxFile = 1 << 20

func readFile(path string) (body []byte, mode fs.FileMode, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, 0, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxFile {
		return nil, 0, fmt.Errorf("not a file of at most %d bytes", maxFile)
	}
	body, err = os.ReadFile(path)
	return body, info.Mode(), err
}

// checkPlaces refuses a configuration file or a data folder that lies in a project: an agent that may write in its
// workspace could then choose its own mode.
func (l *loader) checkPlaces(c Config) {
	for _, p := range c.Projects {
		if l.file != "" && inside(l.file, p.Path) {
			l.mistake(mistakeError{Key: "project " + p.Name, Source: l.file, Allowed: "this file lies in the project's folder, where an agent could change it; keep it elsewhere"})
		}
		if c.DataDir != "" && inside(c.DataDir, p.Path) {
			l.mistake(mistakeError{Key: "data_dir", Source: l.sources["data_dir"], Value: c.DataDir, Allowed: "a folder outside of project " + p.Name + ", whose agent could change it"})
		}
	}
}

// inside reports whether path is dir or below it, as far as links can be followed today.
func inside(path, dir string) bool {
	rel, err := filepath.Rel(resolved(dir), resolved(path))
	return err == nil && rel != ".." && !strings.HasPrefix(rel, "../")
}

// resolved follows links of the longest part of path that exists.
func resolved(path string) string {
	abs, err := filepath.Abs(path)
	if err != nil {
		return path
	}
	rest := ""
	for dir := abs; ; dir = filepath.Dir(dir) {
		if r, err := filepath.EvalSymlinks(dir); err == nil {
			return filepath.Join(r, rest)
		}
		if dir == filepath.Dir(dir) {
			return abs
		}
		rest = filepath.Join(filepath.Base(dir), rest)
	}
}
