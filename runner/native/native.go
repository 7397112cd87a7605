// Package native is a runtime without a program of somebody else's: an agent loop over any OpenAI-compatible
// chat-completions endpoint, with its own tools.
//
// It guarantees that each tool call that does anything goes through the session's gate before anything of it happens, that
// exactly what was shown is what is run or written, that file tools stay in the workspace (os.Root), that neither an
// interrupted turn nor a host that is killed leaves a process behind, and that the conversation is on disk before the model
// sees an answer to it, so that a session resumes after a kill at any moment and nothing of it is done twice.
//
// It does not contain what a command does: there is no sandbox here, so a shell command is terminal whatever it says.
package native

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"drawbridge/internal/chatapi"
	"drawbridge/policy"
	"drawbridge/runner"
)

// Config is what a Runtime is made from. Name, BaseURL, Model, Data and Logger are required.
type Config struct {
	Name    string // as people type it: "native", "native:glm"
	BaseURL string // of the endpoint, up to and without "/chat/completions"
	Key     chatapi.Key
	Model   string
	// Data is a folder of this runtime alone, absolute: conversations, and the home folder of commands.
	Data string
	// Window is the model's context window in tokens; 128,000 when 0. Compaction goes by it.
	Window int64
	// MaxSteps is how many answers of the model a turn takes at most; 200 when 0.
	MaxSteps int
	// ShellTimeout is how long a command may run when the model does not say; 2 minutes when 0.
	ShellTimeout time.Duration
	// Env is given to commands beside what process.Environment makes.
	Env map[string]string
	// SendReasoning sends the model's reasoning of the running turn back to it, which some models with tools require.
	SendReasoning bool
	// API tunes the client; its BaseURL and Key are set from here.
	API    chatapi.Config
	Logger *slog.Logger
}

const (
	defaultWindow       = 128_000
	defaultMaxSteps     = 200
	defaultShellTimeout = 2 * time.Minute
	// probeTimeout bounds Probe: people wait for it.
	probeTimeout = 3 * time.Second
)

// Runtime runs sessions with one model of one endpoint. It is safe for concurrent use.
type Runtime struct {
	config Config
	api    *chatapi.Client
	shell  string // the shell that commands are run with
}

var _ runner.Runtime = (*Runtime)(nil)

// New makes a Runtime. The error says which field is wrong; whether the endpoint answers is for Probe to find out.
func New(c Config) (*Runtime, error) {
	switch {
	case c.Name == "" || c.Model == "" || c.Logger == nil:
		return nil, errors.New("native: name, model and logger are required")
	case !filepath.IsAbs(c.Data):
		return nil, fmt.Errorf("native: data folder %q is not absolute", c.Data)
	}
	if c.Window <= 0 {
		c.Window = defaultWindow
	}
	if c.MaxSteps <= 0 {
		c.MaxSteps = defaultMaxSteps
	}
	if c.ShellTimeout <= 0 {
		c.ShellTimeout = defaultShellTimeout
	}
	api := c.API
	api.BaseURL, api.Key = c.BaseURL, c.Key
	client, err := chatapi.New(api)
	if err != nil {
		return nil, fmt.Errorf("native: %w", err)
	}
	r := &Runtime{config: c, api: client, shell: "sh"}
	if _, err := exec.LookPath("bash"); err == nil {
		r.shell = "bash" // models write for it
	}
	return r, nil
}

// Name is the configured name.
func (r *Runtime) Name() string { return r.config.Name }

// Close closes connections that no session uses.
func (r *Runtime) Close() { r.api.Close() }

// Probe asks the endpoint for its models, once, for three seconds at most. An endpoint without such a list is ready:
// what matters is that it answers and takes the key.
func (r *Runtime) Probe(ctx context.Context) (runner.Capability, error) {
	c := runner.Capability{
		State: runner.Ready, Modes: make(map[policy.Mode]policy.Mode), Plan: true, Questions: true,
		Why: map[string]string{
			"steer":  "This runtime takes a prompt only between turns.",
			"rewind": "This runtime's conversations cannot be taken back.",

			runner.WhyParallel:   "This runtime carries out one action after another, and asks for one at a time.",
			runner.WhyMCP:        "This runtime has the tools that it was built with, and loads no MCP servers.",
			runner.WhyBackground: "A command of this runtime ends with its turn.",
			runner.WhyAgents:     "This runtime has no sub-agents.",
			runner.WhyReview:     "This runtime has no reviewer of its own.",
			runner.WhySandbox:    "This runtime has no sandbox around commands, so that each of them counts as one that can do anything.",
			runner.WhyCrash:      "This runtime is a part of Drawbridge: there is no program beside it that could crash.",
			runner.WhyFrames:     "This runtime is a part of Drawbridge: there is no program beside it that talks to it.",

			string(policy.Fetch):   "This runtime has no tool that fetches; a command can.",
			string(policy.Payment): "This runtime has no tool that pays.",
			string(policy.Unknown): "This runtime has the tools that it was built with, and knows what each of them does.",
		},
		Stricter: []runner.Difference{{
			Category: policy.ReadOutside, Modes: policy.Modes(), Plan: true, To: policy.Deny,
			What: "Its tools read files in the workspace only, and those that a person attached; a command can read others.",
		}},
	}
	if runtime.GOOS != "linux" {
		c.Why[runner.WhyDaemons] = "On this system, what a command detaches from its process group goes on by itself."
	}
	for _, m := range policy.Modes() {
		c.Modes[m] = m
	}
	limited, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	ids, err := r.api.Models(limited)
	if ctx.Err() != nil {
		return runner.Capability{}, fmt.Errorf("native: probe: %w", context.Cause(ctx))
	}
	if e, ok := errors.AsType[*chatapi.Error](err); ok {
		switch e.Kind {
		case chatapi.Auth, chatapi.Quota, chatapi.Network, chatapi.Unavailable:
			c.State, c.Problem, c.Cause = runner.Failed, e.Advice(), runner.CauseProbe
			if e.Kind == chatapi.Auth {
				c.Cause = runner.CauseLogin
			}
		case chatapi.RateLimited, chatapi.NoModel, chatapi.TooLong, chatapi.Refused, chatapi.Cut, chatapi.BadResponse:
		}
	}
	c.Models = models(r.config.Model, ids)
	return c, nil
}

// models are the configured one and those that the endpoint lists, as far as there is room.
func models(configured string, ids []string) []runner.Model {
	list := []runner.Model{{ID: configured, Default: true}}
	slices.Sort(ids)
	for _, id := range slices.Compact(ids) {
		if id != "" && id != configured && len(id) <= maxModelName && len(list) < runner.MaxModels {
			list = append(list, runner.Model{ID: id})
		}
	}
	return list
}

// maxModelName bounds the names of models, as the configuration does.
const maxModelName = 200

// Open begins a session, or resumes one from its file.
func (r *Runtime) Open(ctx context.Context, o runner.Options) (runner.Session, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("native: open: %w", err)
	}
	root, err := os.OpenRoot(o.Folder)
	if err != nil {
		return nil, fmt.Errorf("native: open: workspace: %w", err)
	}
	s := &session{runtime: r, options: o, root: root, logger: r.config.Logger}
	if o.Resume != "" {
		if s.conversation, err = resume(r.sessions(), o.Resume); err != nil {
			_ = root.Close()
			return nil, fmt.Errorf("native: open: %w", err)
		}
	}
	s.life, s.end = context.WithCancel(context.WithoutCancel(ctx))
	return s, nil
}

func (r *Runtime) sessions() string { return filepath.Join(r.config.Data, "sessions") }

// home is the HOME of commands. It is not the user's, where credentials are.
func (r *Runtime) home() string { return filepath.Join(r.config.Data, "home") }
