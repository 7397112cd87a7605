package bridge

import (
	"errors"
	"strings"

	"drawbridge/approvals"
	"drawbridge/internal/store"
	"drawbridge/policy"
	"drawbridge/runner"
)

// planActions are what a person can do with a plan under a mode. The last one is chosen by replying.
func planActions(m policy.Mode) []runner.Action {
	actions := []runner.Action{{ID: runner.ActionImplement, Label: "Implement", Style: runner.StyleSuccess, Allows: true}}
	if m.Looser(policy.AutoAcceptEdits) {
		actions = append(actions, runner.Action{ID: runner.ActionImplementMode, Label: "Implement with " + string(m), Allows: true})
	}
	return append(actions,
		runner.Action{ID: runner.ActionReject, Label: "Reject", Style: runner.StyleDanger},
		runner.Action{ID: runner.ActionRevise, Label: "Revise", Reply: true},
	)
}

// submitPlan makes the plan with which a turn has ended an approval, in the commit that ends the turn. Nobody waits for
// it: what is decided is carried out by a turn of its own.
func (t *hostTurn) submitPlan(tx *store.Txn, r runner.Result) error {
	if w := t.order.Prompt.Work; r.Outcome != runner.Completed || strings.TrimSpace(r.Plan) == "" || w != nil && w.Alone {
		return nil // nobody is asked about what is done alone
	}
	m, _, err := store.Peek[Mirror](tx, mirrorKey(t.h.cfg.Name, t.order.held()))
	if err != nil {
		return err
	}
	p := t.order.policy(m)
	p.Interaction = policy.Plan
	_, err = t.h.cfg.Approvals.PostIn(tx, t.asker(), p, runner.Question{
		Kind: runner.KindPlan, Title: "Plan", Plan: r.Plan, Folder: t.order.Folder, Actions: planActions(p.Mode),
		Categories: []policy.Category{policy.Question},
	})
	if errors.Is(err, approvals.ErrMalformed) {
		// The turn has ended all the same, and its chat has to know that there was a plan.
		t.rec.logger.Warn("a plan cannot be put on a card", "err", err)
		return t.h.cfg.Log.AppendIn(tx, Entry{
			Chat:  t.order.held(), // of no turn: this one is over
			Event: runner.Event{Kind: runner.Notice, Text: "The agent submitted a plan that is too large or damaged, so it cannot be shown. Ask it for a shorter one."},
		})
	}
	return err
}

// PlanPrompt is the prompt by which a decided plan goes on, and false if nothing follows from the action: implement it,
// at most as auto-accept-edits unless the chat's own mode was chosen, or revise it with a person's words. id names the
// approval, so that one decision starts one turn. plan is what is implemented: the agent's, or as a person has edited it, and
// words what they said with it.
//
// The plan of a task is implemented under no looser mode than the task was held to; see Prompt.Bound.
func PlanPrompt(id, action, plan, words string) (Prompt, bool) {
	p := Prompt{ID: "p:" + id}
	switch action {
	case runner.ActionImplement:
		p.Limit = policy.AutoAcceptEdits
		p.Text = implementing(plan, words)
	case runner.ActionImplementMode:
		p.Text = implementing(plan, words)
	case runner.ActionRevise:
		p.Plan = true
		p.Text = "The plan is not approved yet. Revise it, change nothing, and submit it again. What I want to be different:\n\n" + words
	default:
		return Prompt{}, false
	}
	return p, true
}

func implementing(plan, words string) string {
	text := "The plan is approved. Implement it:\n\n" + plan
	if words != "" {
		text += "\n\nBesides, I said:\n\n" + words
	}
	return text
}
