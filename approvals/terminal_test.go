package approvals_test

import (
	"context"
	"testing"
	"time"

	"drawbridge/approvals"
	"drawbridge/policy"
	"drawbridge/runner"
)

// TestAPersonsTerminalIsAnsweredByAPersonAlone: whatever the chat's mode, its grants and its reviewer would allow.
func TestAPersonsTerminalIsAnsweredByAPersonAlone(t *testing.T) {
	t.Parallel()
	db := openBolt(t)
	c := fast(db)
	c.Reviewer = reviewer{verdict: approvals.ReviewVerdict{Decision: runner.Allowed}}
	h, _ := host(t, c, "i1")
	g := gateway(t, c)
	give(t, h, g, tool("mcp__x", policy.Network), runner.ActionAllowSession)
	for _, mode := range policy.Modes() {
		for _, categories := range [][]policy.Category{{policy.Read}, {policy.Network}, {policy.Write}} {
			q := tool("mcp__x", categories...)
			q.Terminal = "claude"
			a := ask(t.Context(), h, turn(under(mode, policy.Default)), q)
			r := card(t, g, 1)[0]
			for _, x := range r.Actions() {
				if x.Grant != "" {
					t.Errorf("%s %v offers %q", mode, categories, x.Label)
				}
			}
			o, err := g.Decide(t.Context(), approvals.Tap{
				ID: r.ID, Chat: r.Chat, Person: ada, Action: runner.ActionAllow, Under: &runner.Policy{Mode: policy.FullAccess, Interaction: policy.Default},
			})
			if err != nil || o.Refused != approvals.RefusedHumanOnly {
				t.Errorf("%s %v: a change of mode came to %+v (%v)", mode, categories, o, err)
			}
			decide(t, g, tap(r, ada, runner.ActionAllow))
			if got := a.wait(t); !got.Allows() || got.Source != runner.SourceUser {
				t.Errorf("%s %v: the answer is %+v", mode, categories, got)
			}
		}
	}
}

// TestAShorterTimeIsTheDeadline: also of a plan, for which a turn of ours would wait for days.
func TestAShorterTimeIsTheDeadline(t *testing.T) {
	t.Parallel()
	db := openBolt(t)
	h, _ := host(t, fast(db), "i1")
	g := gateway(t, fast(db))
	run := turn(under(policy.ApprovalRequired, policy.Default))
	run.Within = time.Minute
	ctx, cancel := context.WithCancel(t.Context())
	a := ask(ctx, h, run, runner.Question{Kind: runner.KindPlan, Plan: "1. go", Terminal: "claude"})
	if r := card(t, g, 1)[0]; r.Deadline.Sub(r.Created) != time.Minute {
		t.Errorf("the deadline is after %s", r.Deadline.Sub(r.Created))
	}
	cancel()
	a.wait(t)
	run.Within = time.Millisecond
	a = ask(t.Context(), h, run, runner.Question{Kind: runner.KindPlan, Plan: "1. go", Terminal: "claude"})
	if got := a.wait(t); got.Source != runner.SourceTimeout {
		t.Errorf("the answer is %+v", got)
	}
}

// TestAnAskerThatIsGoneHasNotTakenItBack: its card says that nobody is there, and not that the question was withdrawn.
func TestAnAskerThatIsGoneHasNotTakenItBack(t *testing.T) {
	t.Parallel()
	db := openBolt(t)
	h, _ := host(t, fast(db), "i1")
	g := gateway(t, fast(db))
	for cause, want := range map[error]approvals.Word{approvals.ErrGone: approvals.StandsGone, context.Canceled: approvals.StandsWithdrawn} {
		ctx, cancel := context.WithCancelCause(t.Context())
		a := ask(ctx, h, turn(under(policy.ApprovalRequired, policy.Default)), command("make"))
		r := card(t, g, 1)[0]
		cancel(cause)
		if got := a.wait(t); got.Allows() {
			t.Errorf("%v: the answer is %+v", cause, got)
		}
		if w := stands(t, g, r.ID).Word; w != want {
			t.Errorf("%v: it stands as %q, want %q", cause, w, want)
		}
	}
}
