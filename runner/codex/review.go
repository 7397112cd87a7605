package codex

import (
	"context"
	"strings"

	"drawbridge/runner"
)

// Codex's own reviewer decides about what codex would ask: what is to leave the sandbox, rm -f, patches outside. Codex
// sends all of that to one side, so with it nobody can ask a person about a push or a password among it; that is why the
// owner has to choose it, and reviewedCells names it. The reviewer is a model at the session's provider: one of its own at
// OpenAI, the session's own model was seen elsewhere. Whatever fails about it refuses the action; from there on a person
// is asked.

// reviewerName names it for people.
const reviewerName = "Codex's own reviewer"

// reviewable says why the reviewer cannot be used on this host, or nothing.
func (r *Runtime) reviewable() string {
	if len(r.config.Servers) > 0 {
		return "an external MCP server is configured"
	}
	return ""
}

// reviewable reports whether the reviewer may be used in the next turn.
func (s *session) reviewable() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.runtime.config.Reviewer && s.runtime.reviewable() == "" && s.unreviewed == ""
}

// unreview stops using the reviewer, for the session, and tells it.
func (s *session) unreview(t *turn, asked runner.Policy, why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.loseReviewer(t, asked, why)
}

// loseReviewer is unreview under the lock. The turn counts as one that the reviewer may still decide in: what codex has
// begun keeps its reviewer.
func (s *session) loseReviewer(t *turn, asked runner.Policy, why string) {
	if s.unreviewed != "" {
		return
	}
	s.unreviewed = why
	s.queue.emit(runner.Event{Kind: runner.PolicyChanged, Turn: t.input.Turn, Policy: &runner.Effective{
		Asked: asked, Effective: asked, Why: reviewerName + " is not used: " + why + ". What it would decide goes to the reviewer of this host, if there is one, and else to you.",
	}})
}

// review tells a step of the reviewer. One that failed is not used again: what the turn does next is asked. The lock is
// held.
func (s *session) review(f reviewFrame) {
	r := runner.Review{Source: s.runtime.config.Name, Item: f.TargetItemID, Title: f.Action.title()}
	failed := ""
	switch f.Review.Status {
	case "", "inProgress":
		r.State = runner.ReviewRequested
	case "approved":
		r.State, r.Reason = runner.ReviewApproved, f.Review.Rationale
	case "denied":
		r.State, r.Reason = runner.ReviewDenied, f.Review.Rationale
		if f.Review.RiskLevel == nil { // it refuses what it could not judge
			r.State, failed = runner.ReviewUnavailable, "it failed"
		}
	case "timedOut":
		r.State, r.Reason, failed = runner.ReviewTimeout, f.Review.Rationale, "it did not answer in time"
	case "aborted":
		r.State, r.Reason = runner.ReviewUnavailable, f.Review.Rationale // the turn was interrupted
	default:
		r.State, failed = runner.ReviewUnavailable, "what it said is not known"
	}
	s.queue.emit(runner.Event{Kind: runner.ReviewChanged, Turn: s.owner(f.TurnID), Review: &r})
	t := s.turn
	if failed == "" || t == nil || s.unreviewed != "" || t.held.reviewer != reviewerAuto {
		return
	}
	s.loseReviewer(t, t.asked, failed)
	srv, p := s.server, reviewerParams{s.thread, t.id, reviewerUser}
	s.asks.Go(func() {
		ctx, cancel := context.WithTimeout(s.context, s.runtime.config.Pace.Stop)
		defer cancel()
		s.expect(srv, srv.call(ctx, "turn/settings/update", p, nil), "turn/settings/update")
	})
}

// title is what is looked at, in one line.
func (a reviewAction) title() string {
	switch a.Type {
	case "command":
		return script(a.Command)
	case "applyPatch":
		return "Change " + strings.Join(a.Files, ", ")
	case "mcpToolCall":
		return a.Server + "/" + a.Tool
	case "networkAccess":
		return a.Target
	}
	return ""
}
