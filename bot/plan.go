package bot

import (
	"strconv"
	"strings"
	"time"

	"drawbridge/approvals"
	"drawbridge/bridge"
	"drawbridge/formatting"
	"drawbridge/internal/store"
	"drawbridge/policy"
	"drawbridge/runner"
)

const (
	textPlanOn       = "This chat only plans now: nothing is changed, whatever the mode, until you implement a plan or send /plan off."
	textPlanOff      = "Planning is over. The mode applies again: "
	textPlanRevise   = "Reply to this message to have it changed."
	textPlanOrEdit   = " Or reply with the plan as you want it, as a text file."
	textPlanLeft     = "The plan is being implemented; this chat has left planning."
	textPlanConfirm  = "Implement with full-access: please confirm"
	textPlanSure     = "Implement with full-access"
	textPlanBack     = "Not now"
	textPlanBackDone = "The plan waits."
	tapPlanConfirm   = "Please confirm below."
	sure             = "sure"
)

// planCommand switches planning on and off, or plans a single prompt.
func (b *Bot) planCommand(t *store.Txn, s author, args string) error {
	switch strings.ToLower(args) {
	case "":
		if err := b.cfg.Chats.SetInteraction(t, s.chat.Key(), policy.Plan); err != nil {
			return err
		}
		return b.say(t, s.chat, s.message, textPlanOn)
	case "off":
		if err := b.cfg.Chats.SetInteraction(t, s.chat.Key(), policy.Default); err != nil {
			return err
		}
		c, err := b.cfg.Chats.Get(t, s.chat.Key())
		if err != nil {
			return err
		}
		var m formatting.Builder
		m.Text(textPlanOff).Bold(string(c.Mode))
		return b.send(t, s.chat, s.message, "", m.Message())
	}
	return b.enqueue(t, s.chat, s.message, bridge.Prompt{
		ID: "u:" + strconv.FormatInt(s.update, 10), Text: args, By: strconv.FormatInt(s.ID, 10), Name: s.Name, At: s.at,
		Ref: strconv.Itoa(s.message), Plan: true,
	})
}

// planBody is the plan itself, in full, and how to have it changed while it waits.
func planBody(m *formatting.Builder, q runner.Question, open bool) {
	for i, part := range formatting.Render(q.Plan, formatting.Options{}) {
		if i > 0 {
			m.Text("\n")
		}
		m.Append(part)
	}
	m.Text("\n")
	for _, a := range q.Actions {
		if a.Reply && open {
			m.Text("\n" + textPlanRevise)
			if implementable(q) {
				m.Text(textPlanOrEdit)
			}
		}
	}
}

// confirmPlan asks for a second tap where the plan would be implemented under full-access. It reports false if there is
// nothing to confirm.
func (b *Bot) confirmPlan(t *store.Txn, s author, id string) (bool, error) {
	c, err := b.cfg.Chats.Get(t, s.chat.Key())
	if err != nil || c.Mode != policy.FullAccess {
		return false, err
	}
	a, err := b.agent(t, c)
	if err != nil {
		return false, err
	}
	var m formatting.Builder
	m.Bold(textPlanConfirm).Text("\n" + a.fullMeans())
	a.notHeld(&m, policy.FullAccess)
	return true, b.send(t, s.chat, s.tapped, "", m.Message(),
		[]option{{Label: textPlanSure, Style: string(runner.StyleDanger), choice: choice{Do: doDecide, Args: []string{id, runner.ActionImplementMode, sure}}}},
		[]option{{Label: textPlanBack, choice: choice{Do: doKeepPlan}}})
}

// goOn starts the turn that follows from a decided plan, in the commit that decides it. A plan that is implemented ends
// planning in its chat; the mode stays what it is.
func (b *Bot) goOn(t *store.Txn, r approvals.Record, d approvals.Decision) error {
	if r.Question.Kind != runner.KindPlan || !r.Deferred() || d.Source != runner.SourceUser {
		return nil
	}
	plan, err := b.planOf(t, r, d)
	if err != nil {
		return err
	}
	p, ok := bridge.PlanPrompt(string(r.ID), d.Action, plan, d.Reason)
	if !ok {
		return nil
	}
	chat, err := ParseChat(r.Chat)
	if err != nil {
		return err
	}
	c, err := b.cfg.Chats.Get(t, r.Chat)
	if err != nil {
		return err
	}
	if !p.Plan && c.Interaction == policy.Plan {
		if err := b.cfg.Chats.SetInteraction(t, r.Chat, policy.Default); err != nil {
			return err
		}
		if err := b.say(t, chat, 0, textPlanLeft); err != nil {
			return err
		}
	}
	if r.Background { // a task's plan is not carried out under a looser mode than the task's
		p = p.Bound(r.Mode)
	}
	p.By, p.Name, p.At = strconv.FormatInt(d.By, 10), d.Name, c.Stopped.Add(time.Nanosecond)
	return b.enqueue(t, chat, 0, p)
}

// replyAction is the action of a record that is chosen by replying; false if it has none.
func replyAction(r approvals.Record) (string, bool) {
	for _, a := range r.Actions() {
		if a.Reply {
			return a.ID, true
		}
	}
	return "", false
}
