package claude

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"runtime"
	"slices"
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
	if v != (runner.Version{}) {
		c.Version = v.String()
	}
	if problem == nil {
		problem = r.login(limited)
	}
	var ready initialized
	if problem == nil {
		ready, problem = r.look(limited)
	}
	if ctx.Err() != nil {
		return runner.Capability{}, fmt.Errorf("claude: probe: %w", context.Cause(ctx))
	}
	if problem != nil {
		c.Problem, c.Cause = problem.words, problem.cause
		return c, nil
	}
	c.State, c.Plan, c.Questions, c.Steer = runner.Ready, true, true, true
	c.Why = map[string]string{
		"rewind":           "Taking back a part of the conversation is not supported for this runtime.",
		runner.WhyParallel: "Claude Code carries out one action after another, and asks for one at a time; only its sub-agents ask beside it.",
		runner.WhySandbox:  "Claude Code's commands run without a sandbox.",
		runner.WhySecrets:  "Claude Code does not say that an answer is a secret.",
	}
	c.Looser, c.Models = looser(), ready.models(r.config.Model)
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
			c.Why[string(policy.Auto)] = "Claude's own reviewer is not used: " + why + ". What it would decide goes to the reviewer of this host, if there is one, and else to you."
		} else {
			c.Reviewer = "Claude's own reviewer"
		}
	}
	return c, nil
}

// problem is why the program can't be used.
type problem struct {
	cause runner.Cause
	words string // for people
}

// failed is a problem that an error tells.
func failed(err error) *problem {
	p := &problem{runner.CauseProbe, sentence(err)}
	switch {
	case errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist):
		p.cause = runner.CauseMissing
	case errors.Is(err, errUnheld):
		p.cause = runner.CauseUnheld
	}
	return p
}

// models are those that the program lists. The one that is configured is the default, also where it is not listed.
func (i initialized) models(configured string) []runner.Model {
	var list []runner.Model
	found := false
	for _, m := range i.Models {
		if m.Value == "" || len(list) == runner.MaxModels {
			continue
		}
		one := runner.Model{ID: m.Value, Name: m.Name, Default: m.Value == cmp.Or(configured, "default")}
		if !one.Default && configured != "" && !found {
			one.Default = m.Resolved == configured && m.Value != "default"
		}
		found = found || one.Default
		if m.Effort {
			one.Efforts = m.Efforts
		}
		list = append(list, one)
	}
	if !found && configured != "" {
		list = slices.Insert(list, 0, runner.Model{ID: configured, Default: true})
	}
	return list[:min(len(list), runner.MaxModels)]
}

// looser are the cells in which the program does what the table would not let it.
func looser() []runner.Difference {
	return []runner.Difference{{
		Category: policy.Protected, Plan: true,
		What: "While it plans, Claude Code writes its plan to a file in its own folder unasked; nothing of the workspace changes by that.",
	}}
}

// version is what the program says of itself.
func (r *Runtime) version(ctx context.Context) (runner.Version, *problem) {
	out, code, err := r.run(ctx, "--version")
	if err != nil {
		return runner.Version{}, failed(explainStart(r.config.Program, err))
	}
	v, err := parseVersion(out)
	switch {
	case ctx.Err() != nil:
		return runner.Version{}, silent()
	case err != nil || code != 0:
		return runner.Version{}, &problem{runner.CauseVersion, "Claude Code does not say its version, so it is not used. Install it again: npm install -g @anthropic-ai/claude-code"}
	case v.Before(oldest()):
		return v, &problem{runner.CauseOld, tooOld(v)}
	}
	return v, nil
}

// silent is the problem of a program that does not answer in time.
func silent() *problem { return &problem{runner.CauseProbe, "Claude Code does not answer."} }

// login says what is wrong with the login, as far as the program knows without asking the endpoint.
func (r *Runtime) login(ctx context.Context) *problem {
	out, _, err := r.run(ctx, "auth", "status")
	var status struct {
		LoggedIn *bool `json:"loggedIn"`
	}
	switch {
	case err != nil:
		return failed(explainStart(r.config.Program, err))
	case ctx.Err() != nil:
		return silent()
	case json.Unmarshal([]byte(out), &status) != nil || status.LoggedIn == nil:
		return nil // it does not say; the first turn will
	case !*status.LoggedIn:
		return &problem{runner.CauseLogin, notLoggedIn}
	}
	return nil
}

// look starts a session and ends it without a turn.
func (r *Runtime) look(ctx context.Context) (initialized, *problem) {
	if err := r.prepare(); err != nil {
		return initialized{}, failed(err)
	}
	s := &session{runtime: r, options: runner.Options{Folder: r.home(), Policy: strict}, logger: r.config.Logger, token: newID(), attached: map[string]bool{}}
	s.life, s.end = context.WithCancel(context.WithoutCancel(ctx))
	c, err := s.connect(ctx)
	if err != nil {
		s.end()
		return initialized{}, failed(err)
	}
	defer func() { _ = s.Close() }() // nothing can be wrong that was not seen
	return c.ready, nil
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
