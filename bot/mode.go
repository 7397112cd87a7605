package bot

import (
	"fmt"
	"strings"

	"drawbridge/approvals"
	"drawbridge/bridge"
	"drawbridge/formatting"
	"drawbridge/internal/store"
	"drawbridge/policy"
	"drawbridge/runner"
)

// What the buttons of menus do, as choice.Do.
const (
	doMode     = "mode"      // mode
	doFull     = "full"      // approvals to allow with it
	doKeep     = "keep-mode" // nothing
	doKeepPlan = "keep-plan" // nothing
	doProject  = "project"   // name
	doRuntime  = "runtime"   // name
	doRevoke   = "revoke"    // host, grant
)

// maxListed is how many approvals a confirmation of full-access lists.
const maxListed = 10

func (b *Bot) modeCommand(t *store.Txn, s author, args string) error {
	c, err := b.cfg.Chats.Get(t, s.chat.Key())
	if err != nil {
		return err
	}
	switch args = strings.ToLower(strings.TrimSpace(args)); args {
	case "":
		return b.showModes(t, s, c)
	case "default":
		return b.chooseMode(t, s, c, b.cfg.Chats.DefaultMode())
	}
	m, err := policy.ParseMode(args)
	if err != nil {
		var text formatting.Builder
		text.Text(textModeWrong)
		for i, m := range policy.Modes() {
			if i > 0 {
				text.Text(", ")
			}
			text.Code(string(m))
		}
		text.Text(". " + textModeUnchanged)
		return b.send(t, s.chat, s.message, "", text.Message())
	}
	return b.chooseMode(t, s, c, m)
}

func (b *Bot) showModes(t *store.Txn, s author, c bridge.Chat) error {
	a, err := b.agent(t, c)
	if err != nil {
		return err
	}
	var m formatting.Builder
	m.Text(textModeNow).Bold(string(c.Mode)).Text("\n")
	a.effectively(&m, c.Mode)
	var rows [][]option
	for _, mode := range policy.Modes() {
		m.Text("\n").Bold(string(mode)).Text(" – " + a.means(mode))
		o := option{Label: string(mode), choice: choice{Do: doMode, Args: []string{string(mode)}}}
		switch eff, _ := a.effective(mode); {
		case mode == c.Mode:
			o.Label = "• " + o.Label
		case eff != mode: // it would be another mode than the one on the button
			o.Label, o.choice = markCannot+o.Label, choice{Do: doWhy, Args: []string{a.name, string(mode)}}
		}
		rows = append(rows, []option{o})
	}
	a.notHeld(&m)
	m.Text("\n\n" + textModeAsk)
	return b.send(t, s.chat, s.message, "", m.Message(), rows...)
}

// effectively writes the mode that the runtime really works under, and why, where it is not the one that is asked for; and
// what else it says of the mode, such as that a reviewer of its own is not used.
func (a agent) effectively(m *formatting.Builder, mode policy.Mode) {
	eff, why := a.effective(mode)
	switch {
	case eff != mode && why != "":
		m.Text(textEffective).Bold(string(eff)).Text(": " + why + "\n")
	case eff != mode:
		m.Text(textEffective).Bold(string(eff)).Text("\n")
	case a.Why[string(mode)] != "":
		m.Text(formatting.Inline(a.Why[string(mode)], 300) + "\n")
	}
}

// effectivelyBelow is effectively on a line of its own.
func (a agent) effectivelyBelow(m *formatting.Builder, mode policy.Mode) {
	var one formatting.Builder
	if a.effectively(&one, mode); one.Len() > 0 {
		m.Text("\n")
		m.Append(one.Message())
	}
}

// chooseMode changes the mode; full-access only after a second tap, which spells out what it means.
func (b *Bot) chooseMode(t *store.Txn, s author, c bridge.Chat, m policy.Mode) error {
	if m == c.Mode {
		var text formatting.Builder
		text.Text(textModeSame).Bold(string(m))
		return b.respond(t, s, text.Message())
	}
	if m == policy.FullAccess {
		return b.confirmFull(t, s, c)
	}
	return b.setMode(t, s, c, m)
}

func (b *Bot) setMode(t *store.Txn, s author, c bridge.Chat, m policy.Mode) error {
	if err := b.changeMode(t, s, m); err != nil {
		return err
	}
	a, err := b.agent(t, c)
	if err != nil {
		return err
	}
	var text formatting.Builder
	modeIsSet(&text, m, a)
	open, err := b.cfg.Approvals.Pending(t.Context(), s.chat.Key())
	if err != nil {
		return err
	}
	if len(open) > 0 {
		text.Text("\n" + textModeWaiting + plural(len(open), "question") + ", see /pending.")
	}
	return b.respond(t, s, text.Message())
}

func modeIsSet(m *formatting.Builder, mode policy.Mode, a agent) {
	m.Text(textModeSet).Bold(string(mode)).Text(": " + a.means(mode) + ".\n" + textModeNext)
	a.notHeld(m, mode)
}

// changeMode changes the mode and leaves a line in the audit log.
func (b *Bot) changeMode(t *store.Txn, s author, m policy.Mode) error {
	if _, err := b.cfg.Chats.SetMode(t, s.chat.Key(), m); err != nil {
		return err
	}
	return b.cfg.Approvals.AuditIn(t, approvals.AuditLine{
		Event: approvals.EventMode, Chat: s.chat.Key(), Mode: m, Source: runner.SourceUser, By: s.ID,
	})
}

// confirmFull asks for the second tap. What waits now and would be allowed is listed, and allowed only by the button that
// says so.
func (b *Bot) confirmFull(t *store.Txn, s author, c bridge.Chat) error {
	a, err := b.agent(t, c)
	if err != nil {
		return err
	}
	var m formatting.Builder
	m.Bold(textFullTitle).Text("\n" + a.fullMeans())
	a.effectivelyBelow(&m, policy.FullAccess)
	a.notHeld(&m, policy.FullAccess)
	open, err := b.cfg.Approvals.Pending(t.Context(), s.chat.Key())
	if err != nil {
		return err
	}
	rows := [][]option{{{Label: textFullYes, Style: string(runner.StyleDanger), choice: choice{Do: doFull}}}}
	if ids := listAllowed(&m, open, c.Interaction); len(ids) > 0 {
		rows = append(rows, []option{{
			Label: textFullYes + " and allow " + these(len(ids)), Style: string(runner.StyleDanger), choice: choice{Do: doFull, Args: ids},
		}})
	}
	rows = append(rows, []option{{Label: textFullNo + string(c.Mode), choice: choice{Do: doKeep}}})
	return b.respond(t, s, m.Split()[0], rows...)
}

func these(n int) string {
	if n == 1 {
		return "this one"
	}
	return fmt.Sprintf("these %d", n)
}

// listAllowed writes out the approvals that full-access would allow without asking, and returns their ids. Human-only
// ones are never among them, nor is any of which not every byte finds room in the message.
func listAllowed(m *formatting.Builder, open []approvals.Record, i policy.Interaction) []string {
	var ids []string
	entities := 0
	for _, r := range open {
		c := r.Question.Categories
		if len(ids) == maxListed || policy.HumanOnly(c...) || policy.Decide(policy.FullAccess, i, c...) != policy.Allow {
			continue
		}
		if openFace(r, card{}).empty {
			continue
		}
		var one formatting.Builder
		one.Text("\n")
		cardBody(&one, r.Question, nil)
		marks := entities + len(one.Message().Entities)
		if m.Len()+one.Len() > 3600 || marks > maxCardEntities-10 {
			continue // a message too long would be cut, and an entity too many dropped in silence
		}
		entities = marks
		if len(ids) == 0 {
			m.Text("\n\n" + textFullList)
		}
		m.Append(one.Message())
		ids = append(ids, string(r.ID))
	}
	return ids
}

// useFull is the second tap. The approvals were listed on the message that was tapped; each is decided again under the
// mode that is now in force.
func (b *Bot) useFull(t *store.Txn, s author, ids []string, token string) (allowed int, err error) {
	if err := b.changeMode(t, s, policy.FullAccess); err != nil {
		return 0, err
	}
	c, err := b.cfg.Chats.Get(t, s.chat.Key())
	if err != nil {
		return 0, err
	}
	for _, id := range ids {
		o, err := b.cfg.Approvals.DecideIn(t, approvals.Tap{
			ID: approvals.ID(id), Chat: s.chat.Key(), Person: s.Person, Action: runner.ActionAllow, Token: token + id,
			Under: &runner.Policy{Mode: c.Mode, Interaction: c.Interaction},
		})
		if err != nil {
			return 0, err
		}
		if o.Won {
			allowed++
		}
	}
	return allowed, nil
}
