package claude

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"time"

	"drawbridge/internal/process"
	"drawbridge/policy"
	"drawbridge/runner"
)

// probeTimeout bounds Probe: people wait for it. The program's answers take a second on an idle machine.
const probeTimeout = 8 * time.Second

// Probe asks the program for its version and its login, and starts it once to see that it lets the hook decide. Nothing
// of it reaches the network.
func (r *Runtime) Probe(ctx context.Context) (runner.Capability, error) {
	limited, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	c := runner.Capability{State: runner.Failed}
	v, problem := r.version(limited)
	if problem == "" {
		c.Version = v.String()
		problem = r.login(limited)
	}
	var ready initialized
	if problem == "" {
		ready, problem = r.look(limited)
	}
	if ctx.Err() != nil {
		return runner.Capability{}, fmt.Errorf("claude: probe: %w", context.Cause(ctx))
	}
	if c.Problem = problem; problem != "" {
		return c, nil
	}
	c.State, c.Plan, c.Questions, c.Steer = runner.Ready, true, true, true
	c.Why = map[string]string{
		"rewind":           "Taking back a part of the conversation is not supported for this runtime.",
		runner.WhyParallel: "Claude Code carries out one action after another, and asks for one at a time; only its sub-agents ask beside it.",
		runner.WhySandbox:  "Claude Code's commands run without a sandbox.",
	}
	c.Looser = looser()
	if len(r.config.MCP) == 0 {
		c.Why[runner.WhyMCP] = "No external MCP server is configured."
		c.Why[string(policy.Payment)] = "Only tools of external MCP servers are known to pay, and none is configured."
		c.Why[string(policy.Unknown)] = "Only tools of external MCP servers are unknown, and none is configured."
	}
	if runtime.GOOS != "linux" {
		c.Why[runner.WhyDaemons] = "On this system, what a command detaches from its process group goes on by itself."
	}
	c.Modes = map[policy.Mode]policy.Mode{}
	for _, m := range policy.Modes() {
		c.Modes[m] = m
	}
	if r.config.Reviewer {
		why := r.reviewable()
		if why == "" && !ready.reviews(r.config.Model) {
			why = "the model does not support it"
		}
		if why != "" {
			c.Why[string(policy.Auto)] = "Claude's own reviewer is not used: " + why + ". What it would decide is asked instead."
		}
	}
	return c, nil
}

// looser are the cells in which the program does what the table would not let it.
func looser() []runner.Difference {
	return []runner.Difference{{
		Category: policy.Protected, Plan: true,
		What: "While it plans, Claude Code writes its plan to a file in its own folder unasked; nothing of the workspace changes by that.",
	}}
}

// version is what the program says of itself.
func (r *Runtime) version(ctx context.Context) (runner.Version, string) {
	out, code, err := r.run(ctx, "--version")
	if err != nil {
		return runner.Version{}, sentence(explainStart(r.config.Program, err))
	}
	v, err := parseVersion(out)
	switch {
	case ctx.Err() != nil:
		return runner.Version{}, "Claude Code does not answer."
	case err != nil || code != 0:
		return runner.Version{}, "Claude Code does not say its version, so it is not used. Install it again: npm install -g @anthropic-ai/claude-code"
	case v.Before(oldest()):
		return runner.Version{}, tooOld(v)
	}
	return v, ""
}

// login says what is wrong with the login, as far as the program knows without asking the endpoint.
func (r *Runtime) login(ctx context.Context) string {
	out, _, err := r.run(ctx, "auth", "status")
	var status struct {
		LoggedIn *bool `json:"loggedIn"`
	}
	switch {
	case err != nil:
		return sentence(explainStart(r.config.Program, err))
	case ctx.Err() != nil:
		return "Claude Code does not answer."
	case json.Unmarshal([]byte(out), &status) != nil || status.LoggedIn == nil:
		return "" // it does not say; the first turn will
	case !*status.LoggedIn:
		return notLoggedIn
	}
	return ""
}

// look starts a session and ends it without a turn.
func (r *Runtime) look(ctx context.Context) (initialized, string) {
	if err := r.prepare(); err != nil {
		return initialized{}, sentence(err)
	}
	s := &session{runtime: r, options: runner.Options{Folder: r.home(), Policy: strict}, logger: r.config.Logger, token: newID(), attached: map[string]bool{}}
	s.life, s.end = context.WithCancel(context.WithoutCancel(ctx))
	c, err := s.connect(ctx)
	if err != nil {
		s.end()
		return initialized{}, sentence(err)
	}
	defer func() { _ = s.Close() }() // nothing can be wrong that was not seen
	return c.ready, ""
}

// strict is the policy of a session that has no turns.
func strict() runner.Policy {
	return runner.Policy{Mode: policy.ApprovalRequired, Interaction: policy.Default}
}

// run runs the program to its end, for what it says.
func (r *Runtime) run(ctx context.Context, args ...string) (out string, code int, err error) {
	if err := r.prepare(); err != nil {
		return "", 0, err
	}
	captured := process.NewCapture(64 << 10)
	exit, err := process.Run(ctx, process.Command{
		Args: append([]string{r.config.Program}, args...), Dir: r.home(), Env: r.environment(r.home(), r.temporary()), Output: captured,
	})
	if err != nil {
		return "", 0, err
	}
	return captured.String(), exit.Code, nil
}

// sentence is an error for people.
func sentence(err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return "Claude Code does not answer."
	}
	s := strings.TrimPrefix(err.Error(), "claude: ")
	if s == "" {
		return "Claude Code cannot be used."
	}
	return strings.ToUpper(s[:1]) + s[1:] + "."
}
