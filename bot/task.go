package bot

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"drawbridge/bridge/task"
	"drawbridge/formatting"
	"drawbridge/internal/store"
	"drawbridge/policy"
	"drawbridge/runner"
)

// What the buttons of tasks do, as choice.Do.
const (
	doTasks       = "tasks"        // state, empty for all: the list
	doTask        = "task"         // task, and the filter to go back to: its page
	doTaskApprove = "task-approve" // task
	doTaskReject  = "task-reject"  // task
	doTaskRerun   = "task-rerun"   // task
	doTaskHand    = "task-hand"    // task
	doTaskCancel  = "task-cancel"  // task
	doTaskMode    = "task-mode"    // task, mode, "sure"
	doTaskExec    = "task-exec"    // task, execution
	doTaskSkip    = "task-skip"    // task
	doTaskDrop    = "task-drop"    // task, cancelled where it stands in a list
)

// maxTasks is how many a list shows.
const maxTasks = 20

// tasksCommand lists the chat's tasks; the state chosen is kept in the buttons.
func (b *Bot) tasksCommand(t *store.Txn, s author, args string) error {
	state := ""
	for _, one := range task.States() {
		if w := strings.ToLower(args); w == string(one) || w == stateWords(one) {
			state = string(one)
		}
	}
	return b.showTasks(t, s, state)
}

func (b *Bot) showTasks(t *store.Txn, s author, state string) error {
	all, err := b.cfg.Tasks.Tasks(t, s.chat.Key(), task.Filter{})
	if err != nil {
		return err
	}
	var m formatting.Builder
	var rows [][]option
	shown := 0
	for _, k := range all {
		if state != "" && string(k.State) != state {
			continue
		}
		if shown++; shown > maxTasks {
			continue
		}
		m.Text("\n" + strconv.Itoa(shown) + ". ").Bold(oneLine(k.Title)).Text(" – " + stateWords(k.State))
		if k.Execution == task.Auto || k.Run != nil && k.Run.Execution == task.Auto {
			m.Text(", " + textAutopilot)
		}
		if words := origin(k); words != "" {
			m.Text(", " + words)
		}
		rows = append(rows, []option{{
			Label: strconv.Itoa(shown) + ". " + buttonLabel(k.Title), choice: choice{Do: doTask, Args: []string{k.ID, state}},
		}})
	}
	if shown > maxTasks {
		m.Text("\n… " + strconv.Itoa(shown-maxTasks) + " more")
	}
	switch {
	case len(all) == 0:
		m.Text(textTasksNone)
	case shown == 0:
		m.Text(textTasksNoneOf + stateWords(task.State(state)) + ".")
	}
	return b.respond(t, s, m.Split()[0], append(rows, filters(all, state)...)...)
}

// filters are the buttons that show the tasks of one state, for the states that there are.
func filters(all []task.Task, state string) [][]option {
	if len(all) == 0 {
		return nil
	}
	one := func(label, of string) option {
		if of == state {
			label = "• " + label
		}
		return option{Label: label, choice: choice{Do: doTasks, Args: []string{of}}}
	}
	rows := [][]option{{one("all", "")}}
	for _, st := range task.States() {
		if !slices.ContainsFunc(all, func(k task.Task) bool { return k.State == st }) {
			continue
		}
		if last := len(rows) - 1; len(rows[last]) < 3 {
			rows[last] = append(rows[last], one(stateWords(st), string(st)))
		} else {
			rows = append(rows, []option{one(stateWords(st), string(st))})
		}
	}
	return rows
}

// taskCommand shows a task, or makes one.
func (b *Bot) taskCommand(t *store.Txn, s author, args string) error {
	word, rest := firstWord(args)
	switch {
	case word == "":
		return b.say(t, s.chat, s.message, textTaskHelp)
	case !strings.EqualFold(word, "new"):
		k, ok, err := b.taskOf(t, s, strings.ToLower(word))
		if err != nil {
			return err
		}
		if !ok {
			return b.say(t, s.chat, s.message, textTaskGone)
		}
		return b.showTask(t, s, k, "")
	}
	w, _, text, err := workOptions(rest)
	if err != nil {
		return b.say(t, s.chat, s.message, textFlagsHelp+strings.TrimPrefix(err.Error(), errOption.Error()+": ")+textFlagsKnown)
	}
	title, steps, _ := strings.Cut(text, "\n")
	for step := range strings.SplitSeq(steps, "\n") {
		if step = strings.TrimSpace(step); step != "" {
			w.Steps = append(w.Steps, step)
		}
	}
	if len(w.Steps) == 0 {
		return b.say(t, s.chat, s.message, textTaskNoSteps)
	}
	if err := b.place(t, &w); err != nil {
		return b.refuseWork(t, s, "", err)
	}
	w.Title, w.By, w.Name = strings.TrimSpace(title), strconv.FormatInt(s.ID, 10), s.Name
	k, err := b.cfg.Tasks.Add(t, s.chat.Key(), task.NewTask{ID: "u" + strconv.FormatInt(s.update, 36), Work: w})
	if err != nil {
		return b.refuseWork(t, s, "", err)
	}
	var m formatting.Builder
	m.Text(textTaskAdded).Bold(oneLine(k.Title)).Text("\n" + textMode).Bold(string(k.Mode)).Text(textScheduleAsks)
	return b.send(t, s.chat, s.message, "", m.Message(), taskButtons(k, false)...)
}

// taskOf returns a task of this chat; false if there is none, for buttons outlive what they stand for.
func (b *Bot) taskOf(t *store.Txn, s author, id string) (task.Task, bool, error) {
	k, err := b.cfg.Tasks.Task(t, id)
	if errors.Is(err, task.ErrNotFound) {
		return k, false, nil
	}
	return k, err == nil && k.Chat == s.chat.Key(), err
}

// showTask is a task's page: its steps, its mode, what it cost, what happened.
func (b *Bot) showTask(t *store.Txn, s author, k task.Task, filter string) error {
	c, err := b.cfg.Chats.Get(t, s.chat.Key())
	if err != nil {
		return err
	}
	eff, _, err := b.cfg.Tasks.Effective(t, s.chat.Key(), k.Mode)
	if err != nil {
		return err
	}
	m := &formatting.Builder{}
	m.Append(reportOf(k))
	m.Text("\n\n" + k.Project + " on " + k.Host + ", " + k.Runtime + "\n" + textMode).Bold(string(k.Mode))
	if eff != k.Mode {
		m.Text(", now ").Bold(string(eff)).Text(", because this chat is in it")
	}
	exec, other := task.Review, textMakeAuto
	to := task.Auto
	if k.Execution == task.Auto || k.Run != nil && k.Execution == "" && k.Run.Execution == task.Auto {
		exec, other, to = task.Auto, textMakeReview, task.Review
	}
	if exec == task.Auto {
		m.Text(", " + textAutopilot)
	}
	if words := origin(k); words != "" {
		m.Text("\n" + upper(words) + ".")
	}
	m.Text("\n\n" + textTaskSteps)
	for i, step := range k.Steps {
		m.Text(fmt.Sprintf("\n%d. %s", i+1, formatting.Inline(step, 160)))
	}
	m.Text("\n\n" + textTaskLog)
	for _, line := range k.Log[max(0, len(k.Log)-8):] {
		m.Text("\n").DateTime(line.At.Unix(), "r", line.At.UTC().Format("2 Jan 15:04 UTC")).Text(" " + stateWords(line.State))
		if line.By != "" {
			m.Text(", " + formatting.Inline(line.By, 60))
		}
	}
	rows := taskButtons(k, true)
	rows = append(rows, []option{{Label: other, choice: choice{Do: doTaskExec, Args: []string{k.ID, string(to)}}}})
	if up := raise(k, c.Mode); len(up) > 0 && s.Role.IsOwner() {
		rows = append(rows, up)
	}
	rows = append(rows, []option{{Label: textBack, choice: choice{Do: doTasks, Args: []string{filter}}}})
	return b.respond(t, s, m.Split()[0], rows...)
}

// taskTap carries a button of a task out.
func (b *Bot) taskTap(t *store.Txn, s author, c choice) (notice, error) {
	id, second, third := "", "", ""
	for i, to := range []*string{&id, &second, &third} {
		if i < len(c.Args) {
			*to = c.Args[i]
		}
	}
	if c.Do == doTasks {
		return notice{text: tapDone}, b.showTasks(t, s, id)
	}
	k, ok, err := b.taskOf(t, s, id)
	if err != nil {
		return notice{}, err
	}
	if !ok {
		return notice{textTaskGone, true}, nil
	}
	won, said := false, ""
	switch c.Do {
	case doTask:
		return notice{text: tapDone}, b.showTask(t, s, k, second)
	case doTaskReject:
		if k.State != task.InReview {
			return notice{textTooLateTask, true}, nil
		}
		return notice{textRejectHow, true}, nil
	case doTaskMode:
		return b.raiseTap(t, s, k, second, third)
	case doTaskExec:
		if k, err = b.cfg.Tasks.SetExecution(t, id, task.Execution(second)); err != nil {
			return notice{}, err
		}
		return notice{text: tapDone}, b.showTask(t, s, k, "")
	case doTaskApprove:
		k, won, err = b.cfg.Tasks.Approve(t, id, s.Name)
		said = textApproved
	case doTaskRerun: // whoever taps sits in front of it
		k, won, err = b.cfg.Tasks.Rerun(t, id, true, s.Name)
		said = textRunStarted
	case doTaskHand:
		k, won, err = b.cfg.Tasks.ByHand(t, id, s.Name)
		said = tapDone
	case doTaskSkip:
		k, won, err = b.cfg.Tasks.Skip(t, id, s.Name)
		said = textSkipped
	case doTaskDrop:
		return b.dropTap(t, s, k)
	case doTaskCancel:
		k, won, err = b.cfg.Tasks.Cancel(t, id, s.Name)
		said = textCancelled
	}
	if err != nil {
		return notice{}, err
	}
	if !won {
		return notice{textTooLateTask, true}, nil
	}
	out := Outgoing{Kind: KindEdit, MessageID: s.tapped}
	return notice{text: said}, b.report(t, s.chat, k, out)
}

// raiseTap raises a task's mode, on an owner's second tap.
func (b *Bot) raiseTap(t *store.Txn, s author, k task.Task, mode, confirmed string) (notice, error) {
	m, err := policy.ParseMode(mode)
	if err != nil {
		return notice{tapStale, false}, nil //nolint:nilerr // an older version's button
	}
	if !s.Role.IsOwner() {
		return notice{textRaiseOwner, true}, nil
	}
	if confirmed != sure {
		_, a, err := b.chatAgent(t, s)
		if err != nil {
			return notice{}, err
		}
		var text formatting.Builder
		text.Bold(oneLine(k.Title)).Text("\n" + textRaiseSure).Bold(mode).Text(" – " + a.means(m))
		return notice{text: tapConfirm}, b.respond(
			t, s, text.Message(),
			[]option{{Label: textRaise + mode, Style: string(runner.StyleDanger), choice: choice{Do: doTaskMode, Args: []string{k.ID, mode, sure}}}},
			[]option{{Label: textBack, choice: choice{Do: doTask, Args: []string{k.ID, ""}}}},
		)
	}
	k, err = b.cfg.Tasks.SetMode(t, k.ID, m)
	if errors.Is(err, task.ErrMode) {
		return notice{textNotLooser, true}, nil
	}
	if err != nil {
		return notice{}, err
	}
	return notice{text: textRaised + mode}, b.showTask(t, s, k, "")
}
