package bot

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"drawbridge/bridge"
	"drawbridge/bridge/task"
	"drawbridge/formatting"
	"drawbridge/internal/store"
	"drawbridge/policy"
	"drawbridge/runner"

	"github.com/go-telegram/bot/models"
)

// How much of a run its report shows.
const (
	maxReportWords    = 2000 // UTF-16 units of what the agent said last
	maxReportChanges  = 10
	maxReportRefusals = 8
)

// MayWork is task.Config.May: whether the person who had something planned may still have work done in a chat.
func (b *Bot) MayWork(t *store.Txn, chat, by string) (bool, error) {
	c, err := ParseChat(chat)
	if err != nil {
		return false, nil //nolint:nilerr // no chat of ours
	}
	id, err := strconv.ParseInt(by, 10, 64)
	if err != nil {
		return false, nil //nolint:nilerr // nobody
	}
	role, err := b.cfg.People.Role(t, id)
	if err != nil || !role.CanPrompt() {
		return false, err
	}
	return b.cfg.People.enabled(t, c)
}

// Worked is task.Config.Notify: what happens to work that nobody sits in front of, told in the commit in which it happens.
func (b *Bot) Worked(t *store.Txn, e task.Event) error {
	chat, err := ParseChat(e.Chat)
	if err != nil {
		return nil //nolint:nilerr // a chat that this messenger does not have can't be told
	}
	if err := b.tellOwners(t, chat, e); err != nil {
		return err
	}
	switch {
	case e.Kind == task.FollowedUp && e.Task != nil:
		return b.followedUp(t, chat, e)
	case e.Kind == task.Hooked && e.Task != nil:
		return b.say(t, chat, 0, formatting.Visible(front(e.Words, maxReportWords)))
	case e.Kind == task.HookFailed && e.Task != nil:
		return b.hookFailed(t, chat, e)
	case e.Kind == task.Finished && e.Task != nil:
		return b.report(t, chat, *e.Task, Outgoing{Kind: KindSend})
	case e.Kind == task.Retried && e.Task != nil:
		return b.say(t, chat, 0, oneLine(e.Task.Title)+": "+whyWords(task.WhyRetry))
	case e.Kind == task.Halted && e.Task != nil:
		return b.report(t, chat, *e.Task, Outgoing{Kind: KindSend})
	case e.Kind == task.Halted && e.Schedule != nil:
		var m formatting.Builder
		b.describe(&m, *e.Schedule)
		return b.send(t, chat, 0, "", m.Message(), scheduleButtons(*e.Schedule, false)...)
	case e.Kind == task.Omitted && e.Schedule != nil && e.Omission != nil:
		if e.Omission.Repeated {
			return nil
		}
		return b.say(t, chat, 0, omissionWords(*e.Schedule, *e.Omission))
	}
	return nil
}

func omissionWords(sch task.Schedule, o task.Omission) string {
	loc, err := task.Zone(sch.Zone)
	if err != nil {
		loc = time.UTC
	}
	text := textMissedTimes + oneLine(sch.Title) + ", " + clock(o.From, loc)
	if o.Count > 1 {
		text += fmt.Sprintf(" to %s (%d times)", clock(o.To, loc), o.Count)
	}
	return text + ". " + whyWords(o.Why)
}

// reportSlot names the report of a task's run.
func reportSlot(k task.Task) string {
	n := 0
	if k.Run != nil {
		n = k.Run.N
	}
	return fmt.Sprintf("task:%s:%d", k.ID, n)
}

// report sends or edits the report of a task's latest run.
func (b *Bot) report(t *store.Txn, chat ChatRef, k task.Task, out Outgoing) error {
	buttons, err := b.buttons(t, chat, taskButtons(k, false)...)
	if err != nil {
		return err
	}
	m := reportOf(k)
	out.Chat, out.Text, out.Entities, out.Buttons = chat, m.Text, m.Entities, buttons
	if out.MessageID == 0 {
		out.Slot = reportSlot(k)
	}
	return b.cfg.Outbox.Put(t, out)
}

// reportOf is a run in one message: the outcome first, then what the agent says, what changed, what was asked and refused,
// time and tokens.
func reportOf(k task.Task) formatting.Message {
	var m formatting.Builder
	m.Bold(upper(stateWords(k.State)) + ": " + oneLine(k.Title))
	if why := whyWords(k.Why); why != "" && k.Why != task.WhyAsked {
		m.Text("\n" + why)
	}
	if words := strings.TrimSpace(k.Words); words != "" && k.State == task.Blocked {
		m.Text("\n").Quote(formatting.Inline(words, 600))
	}
	if k.ByHand != "" {
		m.Text("\n" + textForAPerson)
	}
	r := k.Run
	if r == nil {
		return m.Message()
	}
	if said := strings.TrimSpace(formatting.StripInternal(r.Done.Said)); said != "" && !k.InChat { // in the chat it stands there already
		m.Text("\n").Append(quotedWords(said))
	}
	changes(&m, r.Done)
	refusals(&m, r.Done)
	if r.Writing {
		m.Text("\n" + whyWords(task.WhyRetry))
	}
	m.Text("\n" + plural(len(r.Steps), "step") + ", " + elapsed(max(r.Took(r.Ended), time.Second)))
	if n := r.Tokens(); n > 0 {
		m.Text(", " + plural(int(n), "token"))
	}
	if r.Usage.Cost > 0 {
		m.Text(", " + dollars(r.Usage.Cost))
	}
	return m.Split()[0]
}

// quotedWords are an agent's words as Markdown within a quotation, so that nothing in them can pass for the report around
// them: their beginning, if they are long.
func quotedWords(said string) formatting.Message {
	parts := formatting.Render(bridge.Quoted(formatting.Visible(said)), formatting.Options{Limit: maxReportWords})
	if len(parts) == 0 {
		return formatting.Message{}
	}
	m := parts[0]
	for i, e := range m.Entities {
		if e.Type == formatting.TypeBlockquote {
			m.Entities[i].Type = formatting.TypeExpandable
		}
	}
	if len(parts) > 1 {
		m.Text += "\n…"
	}
	return m
}

// front is the beginning of a text, cut between characters.
func front(s string, units int) string {
	n := 0
	for i, r := range s {
		if n++; r > 0xFFFF {
			n++
		}
		if n > units {
			return s[:i] + "…"
		}
	}
	return s
}

func changes(m *formatting.Builder, s bridge.Summary) {
	if s.Changed == 0 && s.Commands == 0 {
		m.Text("\nNothing was changed and no command was run.")
		return
	}
	var parts []string
	if s.Commands > 0 {
		parts = append(parts, plural(s.Commands, "command")+" run")
	}
	parts = append(parts, plural(s.Changed, "file")+" changed")
	m.Text("\n" + upper(strings.Join(parts, ", ")) + ".")
	for i, f := range s.Changes {
		if i == maxReportChanges {
			m.Text("\n… " + plural(len(s.Changes)-i, "more file"))
			break
		}
		m.Text("\n• ").Code(formatting.Inline(f.Path, 200))
		if f.Added+f.Removed > 0 {
			m.Text(fmt.Sprintf(" +%d −%d", f.Added, f.Removed))
		}
	}
}

func refusals(m *formatting.Builder, s bridge.Summary) {
	if s.Asked == 0 {
		return
	}
	m.Text(fmt.Sprintf("\nAsked %s, allowed %d, refused %d.", times(s.Asked), s.Allowed, s.Refused))
	for i, r := range s.Refusals {
		if i == maxReportRefusals {
			m.Text("\n… " + plural(s.Refused-i, "more refusal"))
			break
		}
		m.Text("\n• Not allowed: ").Code(formatting.Visible(formatting.Inline(r.What, 200))).Text(" – " + refusedBy(r.Source, formatting.Inline(r.By, 60), r.Withdrawn))
	}
}

// dollars is a cost in millionths of a US dollar.
func dollars(n int64) string {
	if n < 10_000 {
		return "less than $0.01"
	}
	return fmt.Sprintf("$%d.%02d", n/1_000_000, n/10_000%100)
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// taskButtons are what can be done with a task where it stands.
func taskButtons(k task.Task, page bool) [][]option {
	one := func(label, do string, style runner.Style) option {
		return option{Label: label, Style: string(style), choice: choice{Do: do, Args: []string{k.ID}}}
	}
	again := one(textRerun, doTaskRerun, "")
	if k.Run != nil && k.Run.Done.Lacking() || k.Origin == task.OriginPending {
		again.Label = textRerunAsk
	}
	var rows [][]option
	switch k.State {
	case task.InReview:
		rows = append(rows, []option{one(textApprove, doTaskApprove, runner.StyleSuccess), one(textRejectTask, doTaskReject, runner.StyleDanger)}, []option{again})
	case task.Blocked:
		rows = append(rows, []option{again, one(textByHand, doTaskHand, "")})
		if k.Run != nil || k.Origin == task.OriginPending {
			rows = append(rows, []option{one(textSkipStep, doTaskSkip, "")})
		}
	case task.Pending, task.InProgress:
		rows = append(rows, []option{one(textCancelTask, doTaskCancel, runner.StyleDanger)})
	case task.Done, task.Cancelled:
		if k.Origin != task.OriginPending { // what it was made for goes on by itself
			rows = append(rows, []option{again})
		}
	}
	if !page && len(rows) == 0 {
		rows = append(rows, []option{one(textDetails, doTask, "")})
	} else if !page {
		rows[len(rows)-1] = append(rows[len(rows)-1], one(textDetails, doTask, ""))
	}
	return rows
}

// replyToReport is a reply to the report of a task that waits for a person: it goes back to the agent with these words. It
// reports whether m was such a reply.
func (b *Bot) replyToReport(t *store.Txn, s author, m *models.Message) (bool, error) {
	if m.ReplyToMessage.From == nil || m.ReplyToMessage.From.ID != b.cfg.API.ID() || !s.Role.CanTap() {
		return false, nil
	}
	waiting, err := b.cfg.Tasks.Tasks(t, s.chat.Key(), task.Filter{States: []task.State{task.InReview}})
	if err != nil {
		return false, err
	}
	named, err := b.names(t, s.chat, m.ReplyToMessage, doTaskReject)
	if err != nil {
		return false, err
	}
	for _, k := range waiting {
		sent, ok, err := SentAs(t, reportSlot(k))
		if err != nil {
			return false, err
		}
		this := ok && sent.MessageID == m.ReplyToMessage.ID || slices.Contains(named, k.ID)
		if !this || strings.TrimSpace(m.Text) == "" {
			continue
		}
		k, won, err := b.cfg.Tasks.Reject(t, k.ID, m.Text, s.Name)
		switch {
		case err != nil:
			return false, err
		case !won:
			return true, b.say(t, s.chat, s.message, textTooLateTask)
		}
		if err := b.report(t, s.chat, k, Outgoing{Kind: KindEdit}); err != nil {
			return false, err
		}
		return true, b.say(t, s.chat, s.message, textRejected)
	}
	return false, nil
}

// raise offers the modes to which an owner may raise a task.
func raise(k task.Task, chat policy.Mode) []option {
	var row []option
	for _, m := range policy.Modes() {
		if m.Looser(k.Mode) && !m.Looser(chat) {
			row = append(row, option{Label: textRaise + string(m), choice: choice{Do: doTaskMode, Args: []string{k.ID, string(m)}}})
		}
	}
	return row
}
