package bridge

import (
	"context"
	"strings"
	"testing"
	"time"

	"drawbridge/approvals"
	"drawbridge/internal/store"
	"drawbridge/policy"
	"drawbridge/runner"
	"drawbridge/runner/runnertest"
)

// planner ends turns in plan with a plan, and says under which policy the others run.
func planner(_ context.Context, s *runnertest.Scripted, in runner.Input) (runner.Result, error) {
	p := s.Policy()
	if p.Interaction == policy.Plan {
		return runner.Result{Outcome: runner.Completed, Plan: "1. do it\n" + in.Text}, nil
	}
	s.Say(string(p.Mode))
	return runner.Result{Outcome: runner.Completed}, nil
}

func TestPlanOutlivesItsHostAndIsImplementedByATurnOfItsOwn(t *testing.T) {
	t.Parallel()
	for action, want := range map[string]policy.Mode{
		runner.ActionImplement: policy.AutoAcceptEdits, runner.ActionImplementMode: policy.FullAccess,
	} {
		h := newHouse(t)
		_, crash := h.hostWithCrash("laptop", withTurn(planner))
		h.mode("7", policy.FullAccess)
		h.update(func(tx *store.Txn) error { return h.chats.SetInteraction(tx, "7", policy.Plan) })
		h.prompt("7", "u:1", "build it")
		h.shown.ended(t, "t.u:1")
		id := h.shown.asked(t, 1)
		crash()
		waitFor(t, "the host's death", func() bool { _, dead, err := h.gateway.HostDead(t.Context(), "laptop"); return err == nil && dead })
		if err := h.gateway.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		h.host("laptop", withTurn(planner)) // another incarnation
		r, d, err := h.gateway.Get(t.Context(), id)
		if err != nil || d != nil || approvals.Standing(r, d).Word != approvals.StandsOpen {
			t.Fatalf("the plan stands as %q, %v", approvals.Standing(r, d).Word, err)
		}
		if left := r.Deadline.Sub(r.Created); left != 7*24*time.Hour {
			t.Errorf("a plan is kept for %s", left)
		}
		o := h.tap("7", id, action)
		if !o.Won || approvals.Standing(o.Record, o.Decision).Word != approvals.StandsAllowed {
			t.Fatalf("outcome %+v", o)
		}
		h.update(func(tx *store.Txn) error {
			if err := h.chats.SetInteraction(tx, "7", policy.Default); err != nil {
				return err
			}
			p, ok := PlanPrompt(string(id), action, r.Question.Plan, "")
			if !ok || !strings.Contains(p.Text, "1. do it") {
				t.Errorf("prompt %+v, %v", p, ok)
			}
			p.At = time.Now()
			_, err := h.chats.Prompt(tx, "7", p)
			return err
		})
		turn := "t.p:" + string(id)
		h.shown.ended(t, turn)
		es := h.shown.until(t, "text", func([]Entry) bool { return true })
		if got := said(es, turn); got != string(want) {
			t.Errorf("%s runs under %q, want %q", action, got, want)
		}
		h.down()
	}
}

// TestPlanIsNeverImplementedPastTheChat: the chat's mode may have been lowered since the plan was made.
func TestPlanIsNeverImplementedPastTheChat(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.host("laptop", withTurn(planner))
	for i, action := range []string{runner.ActionImplement, runner.ActionImplementMode} {
		h.update(func(tx *store.Txn) error {
			p, _ := PlanPrompt(string(rune('a'+i)), action, "a plan", "")
			p.At = time.Now()
			_, err := h.chats.Prompt(tx, "7", p)
			return err
		})
		turn := "t.p:" + string(rune('a'+i))
		h.shown.ended(t, turn)
		es := h.shown.until(t, "text", func([]Entry) bool { return true })
		if got := said(es, turn); got != string(policy.ApprovalRequired) {
			t.Errorf("%s in a chat that requires approval runs under %q", action, got)
		}
	}
	if _, ok := PlanPrompt("x", runner.ActionReject, "a plan", ""); ok {
		t.Error("a rejected plan starts a turn")
	}
	if p, ok := PlanPrompt("x", runner.ActionImplement, "my plan", "and hurry"); !ok || p.Plan || p.Limit != policy.AutoAcceptEdits ||
		!strings.Contains(p.Text, "my plan") || !strings.HasSuffix(p.Text, "and hurry") {
		t.Errorf("a plan with words: %+v, %v", p, ok)
	}
	if p, ok := PlanPrompt("x", runner.ActionRevise, "a plan", "smaller"); !ok || !p.Plan || !strings.Contains(p.Text, "smaller") {
		t.Errorf("a revision: %+v, %v", p, ok)
	}
}

// TestPlanThatCannotBeShownEndsItsTurnAllTheSame: it must not keep the turn, and with it the chat, for ever.
func TestPlanThatCannotBeShownEndsItsTurnAllTheSame(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.host("laptop", withTurn(func(context.Context, *runnertest.Scripted, runner.Input) (runner.Result, error) {
		return runner.Result{Outcome: runner.Completed, Plan: strings.Repeat("x", 2<<20)}, nil
	}))
	h.prompt("7", "u:1", "plan")
	if r := h.shown.ended(t, "t.u:1"); r.Outcome != runner.Completed {
		t.Errorf("result %+v", r)
	}
	h.shown.until(t, "a word about the plan", func(es []Entry) bool {
		for _, e := range es {
			if e.Event.Kind == runner.Notice && strings.Contains(e.Event.Text, "plan") {
				return true
			}
		}
		return false
	})
}
