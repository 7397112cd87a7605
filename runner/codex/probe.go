package codex

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"drawbridge/policy"
	"drawbridge/runner"
)

// probeLimit is how long a probe may take as a whole.
const probeLimit = 15 * time.Second

// Probe looks whether codex is there, new enough, logged in and able to confine commands. See runner.Runtime.
func (r *Runtime) Probe(ctx context.Context) (runner.Capability, error) {
	limited, cancel := context.WithTimeout(ctx, probeLimit)
	defer cancel()
	c, err := r.look(limited)
	if err == nil {
		return c, nil
	}
	if ctx.Err() != nil {
		return runner.Capability{}, fmt.Errorf("codex: probe: %w", context.Cause(ctx))
	}
	c.State, c.Problem, c.Cause = runner.Failed, problem(err), cause(err)
	return c, nil
}

// What a probe can find.
var (
	errNoLogin = errors.New("codex is not logged in")
)

// problem says what is wrong and what to do about it.
func problem(err error) string {
	old, isOld := errors.AsType[*tooOldError](err)
	switch {
	case errors.Is(err, ErrNotInstalled):
		return "Codex is not installed here. Install it with `npm install -g @openai/codex`, or say where it is. (" +
			strings.TrimPrefix(err.Error(), ErrNotInstalled.Error()+": ") + ")"
	case isOld:
		return old.Error() + ". Update it with `npm install -g @openai/codex@latest`."
	case errors.Is(err, errVersion):
		return "Codex does not say its version in a way that can be read, so it is not used. Install it again with `npm install -g @openai/codex`."
	case errors.Is(err, errNoLogin):
		return "Codex is not logged in. Run `codex login` on the host."
	case errors.Is(err, context.DeadlineExceeded):
		return "Codex did not answer in time."
	}
	if e, ok := errors.AsType[*endedError](err); ok {
		return "Codex does not start. It says: " + e.words
	}
	return "Codex could not be tried: " + err.Error()
}

// cause is problem in one word.
func cause(err error) runner.Cause {
	_, isOld := errors.AsType[*tooOldError](err)
	switch {
	case errors.Is(err, ErrNotInstalled):
		return runner.CauseMissing
	case isOld:
		return runner.CauseOld
	case errors.Is(err, errVersion):
		return runner.CauseVersion
	case errors.Is(err, errNoLogin):
		return runner.CauseLogin
	}
	return runner.CauseProbe
}

func (r *Runtime) look(ctx context.Context) (runner.Capability, error) {
	var c runner.Capability
	p, err := r.find()
	if err != nil {
		return c, err
	}
	v, err := r.askVersion(ctx, p)
	if err != nil {
		return c, err
	}
	c.Version = v.String()
	if v.Before(oldest()) {
		return c, &tooOldError{v}
	}
	srv, err := r.acquire(ctx)
	if err != nil {
		return c, err
	}
	defer r.release(srv)
	var account accountRead
	if err := srv.call(ctx, "account/read", struct{}{}, &account); err != nil {
		return c, err
	}
	if account.Account == nil && account.RequiresOpenaiAuth {
		return c, errNoLogin
	}

	c.Looser, c.Stricter, c.Models = looserCells(), stricterCells(), r.models(ctx, srv)
	c.State, c.Plan, c.Questions, c.Steer = runner.Ready, true, true, true
	c.Modes = map[policy.Mode]policy.Mode{}
	for _, m := range policy.Modes() {
		c.Modes[m] = m
	}
	c.Why = map[string]string{
		"rewind":             "Codex takes back the conversation only, not the files.",
		runner.WhyParallel:   "Codex runs one command after the other, unless its model writes programs that call several.",
		runner.WhyMultiple:   "A question of Codex takes one of its options.",
		runner.WhySecrets:    "Codex's models can't ask for secrets.",
		string(policy.Fetch): "Codex has no tool that only fetches; its hosted search is switched off, because it never asks.",
	}
	switch why := r.reviewable(); {
	case !r.config.Reviewer:
		c.Why[runner.WhyReview] = reviewerName + " is not used: it would decide what only a person may, and the owner has not chosen it."
	case why != "":
		c.Why[runner.WhyReview] = reviewerName + " is not used: " + why + "."
		c.Why[string(policy.Auto)] = reviewerName + " is not used: " + why + ". What it would decide goes to the reviewer of this host, if there is one, and else to you."
	default:
		c.Reviewer = reviewerName
		c.Looser = append(c.Looser, reviewedCells()...)
	}
	if len(r.config.Servers) > 0 {
		c.Looser = append(c.Looser, resourceCells()...)
	}
	c.Sandbox = true
	if err := r.trySandbox(ctx, p); err != nil {
		c.Sandbox = false
		c.Why[runner.WhySandbox] = "Codex's sandbox does not work here, so every command has to be allowed to run without it: " + err.Error()
	}
	if _, err := r.outer(ctx); err != nil {
		c.Why["outer_sandbox"] = "Keys and other secrets are not hidden from what is allowed to leave Codex's sandbox: " + err.Error()
	}
	return c, nil
}

// models are those that codex lists: of its own catalogue, whatever the provider has. None if it does not say.
func (r *Runtime) models(ctx context.Context, srv *server) []runner.Model {
	var list []runner.Model
	found := r.config.Model == ""
	cursor := ""
	for range maxPages {
		var page modelList
		params := map[string]any{"limit": runner.MaxModels}
		if cursor != "" {
			params["cursor"] = cursor
		}
		if err := srv.call(ctx, "model/list", params, &page); err != nil {
			r.config.Logger.Warn("codex does not list its models", "err", err)
			break
		}
		for _, m := range page.Data {
			if m.Model == "" || m.Hidden {
				continue
			}
			one := runner.Model{ID: m.Model, Name: m.Name, Default: m.Default, Effort: m.Effort}
			if r.config.Model != "" {
				one.Default = m.Model == r.config.Model
			}
			found = found || one.Default
			for _, e := range m.Efforts {
				one.Efforts = append(one.Efforts, e.Effort)
			}
			if one.Default && r.config.Effort != "" {
				one.Effort = r.config.Effort
			}
			list = append(list, one)
		}
		if page.Next == nil || *page.Next == "" {
			break
		}
		cursor = *page.Next
	}
	if !found {
		list = slices.Insert(list, 0, runner.Model{ID: r.config.Model, Default: true, Effort: r.config.Effort})
	}
	return list[:min(len(list), runner.MaxModels)]
}

// maxPages bounds how often codex is asked for more models.
const maxPages = 5

// output runs the program and returns what it says on its standard output.
func (r *Runtime) output(ctx context.Context, p program, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, p.path, args...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = r.scratch(), r.environment(), time.Second
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return string(out), fmt.Errorf("%w: %s", err, lastLine(errs.String()))
	}
	return string(out), nil
}

func (r *Runtime) askVersion(ctx context.Context, p program) (runner.Version, error) {
	if err := r.prepare(); err != nil {
		return runner.Version{}, err
	}
	out, err := r.output(ctx, p, "--version")
	if err != nil {
		return runner.Version{}, fmt.Errorf("codex: version: %w", err)
	}
	return versionIn(out)
}

// trySandbox sees whether codex's sandbox lets a command run and keeps it from writing.
func (r *Runtime) trySandbox(ctx context.Context, p program) error {
	confined := func(command ...string) error {
		_, err := r.output(ctx, p, append([]string{
			"sandbox", "-c", `sandbox_mode="read-only"`, "-c", "approval_policy=" + quote(askEscalations), "--",
		}, command...)...)
		return err
	}
	if err := confined("/bin/sh", "-c", "exit 0"); err != nil {
		return err
	}
	file := filepath.Join(r.scratch(), "written-in-spite-of-the-sandbox")
	_ = confined("/bin/sh", "-c", `: > "$1"`, "sh", file) // it has to fail; the file tells
	if _, err := os.Lstat(file); err == nil {
		_ = os.Remove(file)
		return errors.New("it does not keep a command from writing")
	}
	return nil
}
