package bot

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"drawbridge/bridge/task"
	"drawbridge/formatting"
	"drawbridge/internal/store"
	"drawbridge/runner"
)

// doExecution changes what becomes of the finished tasks of the chat's project.
const doExecution = "execution" // "auto", "review", "follow-ups on" or "follow-ups off"

// followedUp tells what follows a task, or why nothing was looked for.
func (b *Bot) followedUp(t *store.Txn, chat ChatRef, e task.Event) error {
	title := "“" + oneLine(e.Task.Title) + "”"
	switch {
	case e.Why == task.WhyForm:
		return b.say(t, chat, 0, textFollowUpsOf+title+textFollowUpsForm)
	case e.Why != "":
		return b.say(t, chat, 0, textFollowUpsOf+title+textFollowUpsNot+whyWords(e.Why))
	case len(e.Made) == 0:
		return b.say(t, chat, 0, textFollowUpsOf+title+textFollowUpsNone+whyWords(e.LeftWhy))
	}
	m, rows := followUps(title, e.Made)
	switch {
	case e.Left > 0 && e.LeftWhy != "":
		m.Text(fmt.Sprintf("\n%d more could not be made. %s", e.Left, whyWords(e.LeftWhy)))
	case e.Left > 0:
		m.Text(fmt.Sprintf("\n%d more could not be made; %d are the most.", e.Left, task.MaxFollowUps))
	}
	return b.send(t, chat, 0, "", m.Split()[0], rows...)
}

// followUps lists what follows a task, with what can be done about each.
func followUps(title string, made []task.Task) (*formatting.Builder, [][]option) {
	m := &formatting.Builder{}
	m.Text(textFollowUpsOf + title + ":")
	var rows [][]option
	for i, k := range made {
		m.Text("\n" + strconv.Itoa(i+1) + ". ").Bold(oneLine(k.Title)).Text(" – " + stateWords(k.State) + ", " + string(k.Mode))
		if k.Execution == task.Review {
			m.Text(textAskedForMore)
		}
		for _, step := range k.Steps {
			m.Text("\n   ").Text(formatting.Inline(step, 200))
		}
		row := []option{
			{Label: strconv.Itoa(i+1) + ". " + buttonLabel(k.Title), choice: choice{Do: doTask, Args: []string{k.ID, ""}}},
		}
		if k.State == task.Pending || k.State == task.InProgress {
			row = append(row, option{Label: textCancelTask, Style: string(runner.StyleDanger), choice: choice{Do: doTaskDrop, Args: []string{k.ID}}})
		}
		rows = append(rows, row)
	}
	return m, rows
}

// dropTap cancels a follow-up where it stands in a list, which then shows how all of them stand.
func (b *Bot) dropTap(t *store.Txn, s author, k task.Task) (notice, error) {
	_, won, err := b.cfg.Tasks.Cancel(t, k.ID, s.Name)
	if err != nil {
		return notice{}, err
	}
	all, err := b.cfg.Tasks.Tasks(t, s.chat.Key(), task.Filter{})
	if err != nil {
		return notice{}, err
	}
	all = slices.DeleteFunc(all, func(one task.Task) bool { return one.Origin != task.OriginFollowUp || one.Parent != k.Parent })
	slices.SortFunc(all, func(a, b task.Task) int { return strings.Compare(a.ID, b.ID) })
	title := textFollowUpsGone
	if of, known, err := b.taskOf(t, s, k.Parent); err != nil {
		return notice{}, err
	} else if known {
		title = "“" + oneLine(of.Title) + "”"
	}
	m, rows := followUps(title, all)
	n := notice{text: textCancelled}
	if !won {
		n = notice{textTooLateTask, true}
	}
	return n, b.respond(t, s, m.Split()[0], rows...)
}

// hookFailed tells that a hook of the owner's configuration did not end well. What it printed is not shown to the chat.
func (b *Bot) hookFailed(t *store.Txn, chat ChatRef, e task.Event) error {
	var m formatting.Builder
	m.Text(textHook).Code(string(e.Hook)).Text(" (“" + oneLine(e.Task.Title) + "”)" + textHookFailed)
	switch e.Why {
	case task.WhyInterrupted:
		m.Text(textHookStopped)
	case task.WhyFailed:
		m.Text(": ").Code(formatting.Visible(formatting.Inline(e.Words, 200)))
	default:
		m.Text(". " + whyWords(e.Why))
	}
	return b.send(t, chat, 0, "", m.Message())
}

// tellOwners tells the owners, each in private, what keeps work from being run and is not for the chat alone to know: the
// chat may be gone, and whoever is in it may not be who decides.
func (b *Bot) tellOwners(t *store.Txn, chat ChatRef, e task.Event) error {
	if e.Why != task.WhyNoChat && e.Why != task.WhyChatRemoved && e.Why != task.WhyNoRight && e.Why != task.WhyNoMode {
		return nil
	}
	var m formatting.Builder
	switch {
	case e.Task != nil && e.Kind == task.FollowedUp:
		m.Text(textFollowUpsOf).Bold(oneLine(e.Task.Title)).Text(strings.TrimRight(textFollowUpsNot, ". "))
	case e.Task != nil:
		m.Text(textTaskNotRun).Bold(oneLine(e.Task.Title))
	case e.Schedule != nil:
		m.Text(textNotPlanned).Bold(oneLine(e.Schedule.Title))
	}
	m.Text(". " + whyWords(e.Why))
	owners, err := b.cfg.People.owners(t)
	if err != nil {
		return err
	}
	for _, id := range owners {
		private := ChatRef{ID: id}
		if private == chat {
			continue
		}
		if err := b.send(t, private, 0, "", m.Message()); err != nil {
			return err
		}
	}
	return nil
}

// origin says how a task came to be where nobody here wrote it down; empty otherwise.
func origin(k task.Task) string {
	switch k.Origin {
	case task.OriginFollowUp:
		return textOriginFollow
	case task.OriginEvent:
		return textOriginEvent
	case task.OriginPending:
		return textOriginPending
	case task.OriginProposal:
		return textOriginAgent
	}
	return ""
}

// executionCommand shows or changes what becomes of the finished tasks of the chat's project.
func (b *Bot) executionCommand(t *store.Txn, s author, args string) error {
	return b.execution(t, s, strings.Join(strings.Fields(strings.ToLower(args)), " "))
}

func (b *Bot) execution(t *store.Txn, s author, choose string) error {
	c, err := b.cfg.Chats.Get(t, s.chat.Key())
	if err != nil {
		return err
	}
	if c.Project == "" {
		return b.say(t, s.chat, s.message, textProjectNone)
	}
	p, err := b.cfg.Tasks.ProjectSettings(t, c.Host, c.Project)
	if err != nil {
		return err
	}
	known := []string{string(task.Review), string(task.Auto), followUpsOn, followUpsOff}
	switch i := slices.Index(known, choose); i {
	case 0, 1:
		p.Execution = task.Execution(choose)
	case 2, 3:
		p.NoFollowUps = choose == followUpsOff
	default:
		if choose != "" {
			return b.say(t, s.chat, s.message, textExecHelp)
		}
	}
	if choose != "" {
		if err := b.cfg.Tasks.SetProjectSettings(t, c.Host, c.Project, p); err != nil {
			return err
		}
	}
	var m formatting.Builder
	m.Text(textExecution).Bold(c.Project).Text(" ")
	one := func(now bool, label, to string) option {
		if now {
			label = "• " + label
		}
		return option{Label: label, choice: choice{Do: doExecution, Args: []string{to}}}
	}
	words := textExecReview
	if p.Execution == task.Auto {
		words = textExecAuto
	}
	m.Text(words)
	if words = textFollowUpsOn; p.NoFollowUps {
		words = textFollowUpsOff
	}
	m.Text(words + textExecHow)
	return b.respond(
		t, s, m.Message(),
		[]option{one(p.Execution != task.Auto, "Review", known[0]), one(p.Execution == task.Auto, "Auto", known[1])},
		[]option{one(!p.NoFollowUps, "Follow-ups", known[2]), one(p.NoFollowUps, "No follow-ups", known[3])},
	)
}

// How follow-ups are switched, as text behind /execution.
const (
	followUpsOn  = "follow-ups on"
	followUpsOff = "follow-ups off"
)
