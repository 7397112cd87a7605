package bot

import (
	"strconv"

	"drawbridge/bridge"
	"drawbridge/bridge/task"
	"drawbridge/formatting"
	"drawbridge/internal/store"
	"drawbridge/runner"
)

// What the buttons of /jobs do, as choice.Do.
const (
	doJobsStop   = "jobs-stop"   // nothing
	doJobsCancel = "jobs-cancel" // task, cancelled where it stands in the list
)

const (
	textJobs         = "In the background:"
	textJobsNone     = "Nothing goes on in the background."
	textJobsTasks    = "Tasks:"
	textJobsSince    = ", since "
	textJobsEarlier  = ", of an earlier session"
	textJobsOf       = ", of the task "
	textJobsAway     = " does not answer: whether this still goes on there is not known."
	textJobsStop     = "Stop all of it"
	textJobsStopHow  = "“Stop all of it” ends the agent's process and what it has begun, the turn that runs, and the prompts that wait. Your next message resumes the session."
	textJobsTasksNot = " Tasks go on."
	textJobsTaskEnd  = "What a task has begun ends with the task."
)

// maxJobsShown is how many jobs, and how many tasks, a list shows: they are to fit into one message.
const maxJobsShown = 15

func (b *Bot) jobsCommand(t *store.Txn, s author, _ string) error {
	jobs, more, err := b.cfg.Chats.Jobs(t, s.chat.Key())
	if err != nil {
		return err
	}
	tasks, err := b.openTasks(t, s.chat)
	if err != nil {
		return err
	}
	if len(jobs)+len(tasks) == 0 {
		return b.respond(t, s, formatting.Message{Text: textJobsNone})
	}
	m := &formatting.Builder{}
	own, err := b.listJobs(t, m, s, jobs, more)
	if err != nil {
		return err
	}
	rows := listOpenTasks(m, tasks)
	switch {
	case own && len(tasks) > 0:
		m.Text("\n\n" + textJobsStopHow + textJobsTasksNot)
	case own:
		m.Text("\n\n" + textJobsStopHow)
	case len(jobs) > 0:
		m.Text("\n\n" + textJobsTaskEnd)
	}
	if own {
		rows = append(rows, []option{{Label: textJobsStop, Style: string(runner.StyleDanger), choice: choice{Do: doJobsStop}}})
	}
	return b.respond(t, s, m.Split()[0], rows...)
}

// openTasks are the chat's tasks that wait or run.
func (b *Bot) openTasks(t *store.Txn, chat ChatRef) ([]task.Task, error) {
	return b.cfg.Tasks.Tasks(t, chat.Key(), task.Filter{States: []task.State{task.Pending, task.InProgress}})
}

// listJobs writes what goes on in the background, and reports whether any of it is of the chat's own session. What an agent
// calls a thing is shown as it is, in code.
func (b *Bot) listJobs(t *store.Txn, m *formatting.Builder, s author, jobs []bridge.Job, more int) (own bool, err error) {
	c, err := b.cfg.Chats.Get(t, s.chat.Key())
	if err != nil || len(jobs) == 0 {
		return false, err
	}
	m.Text(textJobs)
	var hosts []string
	for i, j := range jobs {
		own = own || j.Chat == s.chat.Key()
		if i >= maxJobsShown {
			more++
			continue
		}
		title := formatting.Inline(j.Title, 160)
		if formatting.Blank(title) {
			title = textBlankLabel
		}
		m.Text("\n" + strconv.Itoa(i+1) + ". ").Code(title).Text(" – " + formatting.Inline(j.Runtime, 60))
		switch {
		case bridge.IsLane(j.Chat):
			k, ok, err := b.taskOf(t, s, bridge.LaneName(j.Chat))
			if err != nil {
				return false, err
			}
			if ok {
				m.Text(textJobsOf + "“" + formatting.Inline(k.Title, 60) + "”")
			}
		case j.Session != c.Session:
			m.Text(textJobsEarlier)
		}
		m.Text(textJobsSince).DateTime(j.Started.Unix(), "r", j.Started.UTC().Format("2 Jan 15:04 UTC"))
		if len(hosts) == 0 || hosts[len(hosts)-1] != j.Host {
			hosts = append(hosts, j.Host)
		}
	}
	if more > 0 {
		m.Text("\n… " + strconv.Itoa(more) + " more")
	}
	told := map[string]bool{}
	for _, h := range hosts {
		alive, err := b.cfg.Approvals.HostAlive(t.Context(), h)
		if err != nil {
			return false, err
		}
		if !alive && !told[h] {
			m.Text("\n" + h + textJobsAway)
		}
		told[h] = true
	}
	return own, nil
}

// listOpenTasks writes the tasks that wait or run, each with its buttons.
func listOpenTasks(m *formatting.Builder, tasks []task.Task) (rows [][]option) {
	if len(tasks) == 0 {
		return nil
	}
	if m.Len() > 0 {
		m.Text("\n\n")
	}
	m.Text(textJobsTasks)
	for i, k := range tasks {
		if i == maxJobsShown {
			m.Text("\n… " + strconv.Itoa(len(tasks)-i) + " more; /tasks lists them.")
			break
		}
		m.Text("\n" + strconv.Itoa(i+1) + ". ").Bold(formatting.Inline(k.Title, 120)).Text(" – " + stateWords(k.State))
		rows = append(rows, []option{
			{Label: strconv.Itoa(i+1) + ". " + buttonLabel(k.Title), choice: choice{Do: doTask, Args: []string{k.ID, ""}}},
			{Label: textCancelTask, Style: string(runner.StyleDanger), choice: choice{Do: doJobsCancel, Args: []string{k.ID}}},
		})
	}
	return rows
}

// jobsTap carries a button of /jobs out.
func (b *Bot) jobsTap(t *store.Txn, s author, do, id string) (notice, error) {
	if do == doJobsStop {
		done, err := b.stop(t, s.chat, s.at, true)
		if err != nil {
			return notice{}, err
		}
		words := stoppedWords(done)
		return notice{text: words}, b.respond(t, s, formatting.Message{Text: words + " " + textSessionEnds})
	}
	_, ok, err := b.taskOf(t, s, id)
	if err != nil {
		return notice{}, err
	}
	if !ok {
		return notice{textTaskGone, true}, nil
	}
	_, won, err := b.cfg.Tasks.Cancel(t, id, s.Name)
	if err != nil {
		return notice{}, err
	}
	n := notice{text: textCancelled}
	if !won {
		n = notice{textTooLateTask, true}
	}
	return n, b.jobsCommand(t, s, "")
}

// jobsLine is what /status says of it, nothing if there is none.
func (b *Bot) jobsLine(t *store.Txn, chat ChatRef) (string, error) {
	jobs, more, err := b.cfg.Chats.Jobs(t, chat.Key())
	if err != nil || len(jobs) == 0 {
		return "", err
	}
	return plural(len(jobs)+more, "background job") + ", /jobs", nil
}
