package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"drawbridge/internal/config"
	"drawbridge/policy"
	"drawbridge/runner"
)

// errUnwell says that the doctor has found, and printed, something that keeps a project or a runtime from being used.
var errUnwell = errors.New("app: something is missing; see above")

// probeTime is how long a runtime may take to say how it is.
const probeTime = 30 * time.Second

// Doctor looks at what this host would offer and prints it: each project and whether it is trusted, each MCP server, what
// other programs start and what is run on tasks, and each runtime with its version, what it makes of the modes, where it is looser than the table, and what it cannot do and
// why. It starts the agents' programs to ask them, changes nothing and speaks to no chat. The error is for what keeps
// something from being used.
func Doctor(ctx context.Context, c config.Config, w io.Writer) error {
	unwell := false
	say := func(format string, args ...any) { fmt.Fprintf(w, format, args...) } //nolint:errcheck // a console that is gone reads nothing
	for _, p := range c.Projects {
		if info, err := os.Stat(p.Path); err != nil || !info.IsDir() {
			unwell = true
			say("project %s: %s is no folder\n", p.Name, p.Path)
			continue
		}
		say("project %s: %s\n", p.Name, p.Path)
		sayTrust(say, c, p)
	}
	unwell = sayServers(ctx, say, c) || unwell
	unwell = sayEvents(say, c) || unwell
	if _, err := exec.LookPath("git"); err != nil {
		say("git: not found; agents will miss it\n")
	}
	rs, err := runtimes(Options{Config: c, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	for _, r := range rs {
		bounded, cancel := context.WithTimeout(ctx, probeTime)
		capability, err := r.Probe(bounded)
		cancel()
		if err != nil {
			capability = runner.Capability{State: runner.Failed, Problem: err.Error()}
		}
		unwell = unwell || capability.State == runner.Failed
		report(say, r.Name(), capability)
	}
	if unwell {
		return errUnwell
	}
	return nil
}

// report prints what is known of a runtime.
func report(say func(string, ...any), name string, c runner.Capability) {
	say("runtime %s: %s", name, cmp.Or(c.State, runner.Checking))
	if c.Version != "" {
		say(", version %s", c.Version)
	}
	say("\n")
	if c.Problem != "" {
		say("  problem: %s\n", c.Problem)
		return
	}
	chosen(say, c)
	for _, m := range policy.Modes() {
		switch eff, ok := c.Modes[m]; {
		case ok && eff != m:
			say("  %s works as %s: %s\n", m, eff, cmp.Or(c.Why[string(m)], "it cannot do more"))
		case ok && c.Why[string(m)] != "":
			say("  %s: %s\n", m, c.Why[string(m)])
		}
	}
	for _, ability := range []struct {
		name string
		can  bool
	}{{"plan", c.Plan}, {"questions", c.Questions}, {"steer", c.Steer}, {"rewind", c.Rewind}} {
		if !ability.can {
			say("  no %s: %s\n", ability.name, cmp.Or(c.Why[ability.name], "it does not offer it"))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(c.Why)) {
		if _, mode := c.Modes[policy.Mode(key)]; !mode && runner.Told(key) && !slices.Contains([]string{"plan", "questions", "steer", "rewind"}, key) {
			say("  %s: %s\n", key, c.Why[key])
		}
	}
	told := map[string]bool{}
	for _, d := range c.Looser {
		if !told[d.What] {
			told[d.What] = true
			say("  looser than the table (%s): %s\n", looserIn(d), d.What)
		}
	}
}

func looserIn(d runner.Difference) string {
	var in []string
	for _, m := range d.Modes {
		in = append(in, string(m))
	}
	if d.Plan {
		in = append(in, "plan")
	}
	return strings.Join(in, ", ")
}

// chosen prints what can be chosen of a runtime, and what its owner has chosen.
func chosen(say func(string, ...any), c runner.Capability) {
	if m, ok := c.Model(""); ok {
		say("  model: %s, of %d\n", m.ID, len(c.Models))
	}
	if c.Reviewer != "" {
		say("  %s decides in auto\n", c.Reviewer)
	}
}
