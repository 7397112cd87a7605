package claude

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"drawbridge/policy"
	"drawbridge/runner"
)

// The program's own reviewer runs at the model's endpoint, within the request that makes the calls: its verdicts come at
// the end of the answer. The hook waits for the verdict of its call before it leaves the call to the program, so that a
// missing verdict and a refusal both end with a person, and never with the program's own rules, which let some commands
// run unchecked where there is no check.

// verdict is what the reviewer says of a call.
type verdict string

const (
	verdictApproved verdict = "approved"
	verdictDenied   verdict = "denied"
	// verdictSkipped is for a call that the endpoint held not to need a check; the program would have it made again.
	verdictSkipped verdict = "skipped"
	// verdictFailed is a check that failed for the call.
	verdictFailed verdict = "failed"
	// verdictMissing is no check at all: the model or the endpoint has none, or something between drops it.
	verdictMissing verdict = "missing"
)

// state is how a review event calls it.
func (v verdict) state() string {
	switch v {
	case verdictApproved:
		return runner.ReviewApproved
	case verdictDenied:
		return runner.ReviewDenied
	case verdictSkipped, verdictFailed, verdictMissing:
	}
	return runner.ReviewUnavailable
}

// verdictWait is how long a call waits for its verdict: until the answer with it is whole, which may have other calls.
const verdictWait = 2 * time.Minute

// maxFailures is how many checks in a row may fail before the reviewer is given up: one is an accident.
const maxFailures = 2

// verdicts are those of the answer that is being written.
type verdicts struct {
	said    map[string]verdict // by call
	waiting map[string]chan verdict
	failed  int // in a row
}

// managedMCP are files from which the program loads MCP servers whatever it is told.
func managedMCP() []string {
	return []string{"/etc/claude-code/managed-mcp.json", "/Library/Application Support/ClaudeCode/managed-mcp.json"}
}

// reviewable says why the program's reviewer cannot be used, or nothing. What cannot be found out counts against it.
func (c *conn) reviewable(ctx context.Context) string {
	s := c.session
	s.mu.Lock()
	why := s.unreviewed
	s.mu.Unlock()
	if why != "" {
		return why
	}
	if why := s.runtime.reviewable(); why != "" {
		return why
	}
	if c.trusted {
		return "the project is trusted, so its own settings count"
	}
	if !c.ready.reviews(cmp.Or(c.model, s.runtime.config.Model)) {
		return "the model does not support it"
	}
	var status struct {
		Servers []mcpServer `json:"mcpServers"`
	}
	if err := c.peer.Call(ctx, "mcp_status", nil, &status); err != nil || status.Servers == nil {
		return "the program does not say whether external MCP servers are loaded"
	}
	if len(c.external(status.Servers)) > 0 {
		return "an external MCP server is loaded"
	}
	return ""
}

// reviewable says why the program's reviewer cannot be used on this host, whatever the model.
func (r *Runtime) reviewable() string {
	if len(r.config.MCP) > 0 {
		return "an external MCP server is configured"
	}
	for _, file := range managedMCP() {
		switch _, err := os.Lstat(file); {
		case err == nil:
			return fmt.Sprintf("%s may load external MCP servers", filepath.Base(file))
		case !errors.Is(err, fs.ErrNotExist):
			return fmt.Sprintf("%s, which may load external MCP servers, cannot be read", filepath.Base(file))
		}
	}
	return ""
}

// reviews reports whether the model has the reviewer.
func (i initialized) reviews(model string) bool {
	if model == "" {
		model = "default"
	}
	for _, m := range i.Models {
		if m.Value == model || m.Resolved == model {
			return m.Auto
		}
	}
	return false
}

// review has the program's reviewer decide, where the table sends the call to a reviewer and the program is in mode auto.
// left says that it approved and the call is the program's to run; refused says that it said no. Neither says that the
// gate decides.
func (c *conn) review(ctx context.Context, id string, k *call, q runner.Question) (left, refused bool) {
	s := c.session
	p := s.allowed()
	switch {
	case policy.Decide(p.Mode, p.Interaction, q.Categories...) != policy.Review, p.Mode != policy.Auto:
		return false, false
	case k.name != "Bash" && k.name != "WebFetch" && k.name != "WebSearch":
		return false, false // the program lets its own reads run whatever the reviewer says
	case k.agent != "":
		return false, false // the verdicts of sub-agents' calls are not told
	}
	s.mu.Lock()
	if c.mode != modeAuto || s.unreviewed != "" || !s.runtime.config.Reviewer {
		s.mu.Unlock()
		return false, false
	}
	v, said := c.verdicts.said[id]
	if !said && (k.message != c.lane.message || c.lane.over) {
		v, said = verdictMissing, true // its answer has ended without one
	}
	wait := make(chan verdict, 1)
	if !said {
		if c.verdicts.waiting == nil {
			c.verdicts.waiting = map[string]chan verdict{}
		}
		c.verdicts.waiting[id] = wait
	}
	c.tellReview(k, runner.ReviewRequested)
	s.mu.Unlock()
	if !said {
		timer := time.NewTimer(verdictWait)
		defer timer.Stop()
		select {
		case v = <-wait:
		case <-timer.C:
			v = verdictFailed
		case <-ctx.Done():
			v = verdictSkipped // nobody waits for it any more
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(c.verdicts.waiting, id)
	c.tellReview(k, v.state())
	if v != verdictFailed {
		c.verdicts.failed = 0
	}
	switch v {
	case verdictApproved:
		// The mode is looked at again: it may have been lowered while the reviewer thought.
		return c.mode == modeAuto && s.unreviewed == "" && (c.current() == nil || !c.current().interrupted), false
	case verdictDenied:
		return false, true
	case verdictFailed:
		if c.verdicts.failed++; c.verdicts.failed >= maxFailures {
			c.unreview("it failed several times in a row")
		}
	case verdictMissing:
		c.unreview("the endpoint gave no verdict")
	case verdictSkipped:
	}
	return false, false
}

// tellReview tells a step of the reviewer. mu is held.
func (c *conn) tellReview(k *call, state string) {
	c.session.emit(runner.Event{Kind: runner.ReviewChanged, Turn: k.turn, Review: &runner.Review{State: state, Source: "claude", Item: k.item.ID}})
}

// reviewed takes the verdicts of an answer, a field of message_delta. mu is held.
func (c *conn) reviewed(raw json.RawMessage) {
	var list []struct {
		Type   string `json:"type"`
		Status struct {
			Type  string `json:"type"`
			Calls map[string]struct {
				Type    string `json:"type"`
				Outcome string `json:"outcome"`
			} `json:"tool_uses"`
		} `json:"status"`
	}
	if len(raw) == 0 || json.Unmarshal(raw, &list) != nil {
		return
	}
	for _, one := range list {
		if one.Type != "dangerous_tool_use" || one.Status.Type != "available" {
			continue
		}
		for id, v := range one.Status.Calls {
			said := verdictMissing
			switch {
			case v.Type == "skipped":
				said = verdictSkipped
			case v.Type == "unavailable":
				said = verdictFailed
			case v.Type == "evaluated" && v.Outcome == "not_flagged":
				said = verdictApproved
			case v.Type == "evaluated" && v.Outcome == "flagged":
				said = verdictDenied
			}
			c.settleReview(id, said)
		}
	}
}

// settleReview keeps a verdict and hands it to who waits for it. mu is held.
func (c *conn) settleReview(id string, v verdict) {
	if c.verdicts.said == nil {
		c.verdicts.said = map[string]verdict{}
	}
	c.verdicts.said[id] = v
	if wait := c.verdicts.waiting[id]; wait != nil {
		select {
		case wait <- v:
		default:
		}
	}
}

// reviewEnds is the end of an answer: whoever still waits has no verdict. mu is held.
func (c *conn) reviewEnds() {
	for id := range c.verdicts.waiting {
		if _, said := c.verdicts.said[id]; !said {
			c.settleReview(id, verdictMissing)
		}
	}
}

// unreview stops using the program's reviewer, for the session, and has the program ask at once. mu is held.
func (c *conn) unreview(why string) {
	s := c.session
	if s.unreviewed != "" || !s.runtime.config.Reviewer {
		return
	}
	s.unreviewed = why
	if c.mode != modeAuto {
		return
	}
	c.loseReviewer(s.allowed(), why)
	c.running.Go(func() {
		if err := c.setMode(c.life, modeDefault); err != nil {
			s.mu.Lock()
			defer s.mu.Unlock()
			c.fail("The program's reviewer was lost, and the program does not leave its mode auto: the turn was ended.")
		}
	})
}

// loseReviewer tells, once for each reason, that the mode auto goes on without the program's reviewer. mu is held.
func (c *conn) loseReviewer(p runner.Policy, why string) {
	s := c.session
	if s.lost == why {
		return
	}
	s.lost = why
	s.emit(runner.Event{Kind: runner.PolicyChanged, Turn: c.turnID(), Policy: &runner.Effective{
		Asked: p, Effective: p, Why: "Claude's own reviewer is not used: " + why + ". What it would decide goes to the reviewer of this host, if there is one, and else to you.",
	}})
}

// informed takes a note of the program about itself. mu is held.
func (c *conn) informed(f frame) {
	switch f.Tag {
	case "auto_mode_no_server_check":
		c.unreview("its check does not reach the endpoint")
	case "hook_callback_failed":
		c.session.logger.Warn("program could not call the hook", "runtime", c.session.runtime.config.Name)
	}
}

// refusedByProgram takes a refusal that nobody was asked for: by a rule, or by the reviewer. mu is held.
func (c *conn) refusedByProgram(f frame) {
	k := c.calls[f.Tool]
	if k == nil {
		return
	}
	switch {
	case f.ReasonType == "classifier":
		k.refusal = "The reviewer refused this."
		if f.ReasonCode != "" || f.Reason == "Classifier unavailable" {
			k.refusal = "The reviewer could not decide, so this is refused."
			c.unreview("it could not decide")
		}
	default:
		k.refusal = "A rule of this machine refused this."
	}
}
