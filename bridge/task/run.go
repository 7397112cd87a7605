package task

import (
	"errors"
	"slices"
	"time"

	"drawbridge/bridge"
	"drawbridge/internal/store"
	"drawbridge/policy"
	"drawbridge/runner"
)

// hindered says why work may not be run at this moment; empty if it may. It is asked before each firing and each step.
func (s *Service) hindered(t *store.Txn, chat string, w Work) (Reason, error) {
	c, err := s.cfg.Chats.Standing(t, chat)
	if why, known := reason(err); known {
		return why, nil
	}
	if err != nil {
		return "", err
	}
	if !w.Mode.Valid() {
		return WhyNoMode, nil
	}
	if s.cfg.May != nil {
		may, err := s.cfg.May(t, c.ID, w.By)
		if err != nil {
			return "", err
		}
		if !may {
			return WhyNoRight, nil
		}
	}
	if w.InChat {
		w.Host, w.Project, w.Runtime = c.Host, c.Project, c.Runtime
	}
	_, err = s.cfg.Chats.Offered(t, w.Host, w.Project, w.Runtime)
	if why, known := reason(err); known {
		return why, nil
	}
	return "", err
}

// reason turns an error of bridge into a word, if it says why something can't be run.
func reason(err error) (Reason, bool) {
	for _, known := range []struct {
		err error
		why Reason
	}{
		{bridge.ErrNoChat, WhyNoChat},
		{policy.ErrUnknownMode, WhyNoMode},
		{bridge.ErrNoHost, WhyNoHost},
		{bridge.ErrNoProject, WhyNoProject},
		{bridge.ErrNoRuntime, WhyNoRuntime},
	} {
		if errors.Is(err, known.err) {
			return known.why, true
		}
	}
	return "", false
}

// places are the tasks of a host that are in progress, under placesKey: so many at a time, that a minute in which hundreds
// are due does not bury the host.
type places struct {
	V     int      `json:"v"`
	Tasks []string `json:"tasks,omitempty"`
}

// begin starts a run of a pending task, if nothing is in its way and there is a place on its host; else it is looked at
// again later.
func (s *Service) begin(t *store.Txn, id string) error {
	task, ok, err := store.Get[Task](t, taskKey(id))
	if errors.Is(err, store.ErrDamaged) {
		s.cfg.Logger.Error("a task's record is damaged; it is not run", "task", id, "err", err)
		t.Drop(pendingIndex, id)
		return nil
	}
	if err != nil {
		return err
	}
	if !ok || task.State != Pending {
		t.Drop(pendingIndex, id)
		return nil
	}
	now, err := t.Now()
	if err != nil {
		return err
	}
	why, err := s.hindered(t, task.Chat, task.Work)
	if err != nil {
		return err
	}
	if why != "" {
		return s.block(t, &task, cause{why: why})
	}
	host, full := task.Host, false
	if task.InChat {
		c, err := s.cfg.Chats.Standing(t, task.Chat)
		if err != nil {
			return err
		}
		// What follows the run is done where the run was, wherever the chat is by then.
		task.Host, task.Project, task.Runtime = c.Host, c.Project, c.Runtime
		host, full = c.Host, len(c.Queue) >= bridge.MaxQueue
	}
	alive, err := s.alive(t, host)
	if err != nil {
		return err
	}
	if !alive && now.Sub(task.Updated) >= hostMost {
		return s.block(t, &task, cause{why: WhyHostAway})
	}
	free := alive && !full
	if free {
		free, err = s.place(t, id, host)
	}
	if err != nil {
		return err
	}
	if !free {
		t.Add(pendingIndex, id, store.Micros(now.Add(waitAgain)))
		return nil
	}
	if err := s.newRun(t, &task, host, now); err != nil {
		return err
	}
	again := task.Again
	if won, err := s.move(t, &task, InProgress, cause{}); err != nil || !won {
		return err
	}
	return s.order(t, &task, s.present(&task, again == nil || again.Words == "" && len(again.Steps) == 0))
}

// place takes a place on a host for a task, and reports false if there is none. A task has one at the most, and one that is
// gone, or of which nothing runs, has none.
func (s *Service) place(t *store.Txn, id, host string) (bool, error) {
	p, _, err := store.Get[places](t, placesKey(host))
	if err != nil && !errors.Is(err, store.ErrDamaged) {
		return false, err
	}
	if slices.Contains(p.Tasks, id) {
		return true, nil
	}
	if len(p.Tasks) >= s.cfg.PerHost {
		if p.Tasks, err = s.holding(t, p.Tasks); err != nil || len(p.Tasks) >= s.cfg.PerHost {
			return false, err
		}
	}
	p.V, p.Tasks = Version, append(p.Tasks, id)
	return true, store.Put(t, placesKey(host), p)
}

// holding are those of some tasks of which something runs.
func (s *Service) holding(t *store.Txn, ids []string) (all []string, err error) {
	for _, id := range ids {
		task, ok, err := store.Peek[Task](t, taskKey(id))
		if err != nil && !errors.Is(err, store.ErrDamaged) {
			return nil, err
		}
		if err == nil && ok && (task.State == InProgress || task.Pipeline != nil && task.Pipeline.Prompt != "") {
			all = append(all, id)
		}
	}
	return all, nil
}

// alive reports whether a host has beaten lately. A service without approvals takes every host for alive.
func (s *Service) alive(t *store.Txn, host string) (bool, error) {
	if s.cfg.Approvals == nil {
		return true, nil
	}
	return s.cfg.Approvals.HostAlive(t.Context(), host)
}

// newRun gives a task the run that begins.
func (s *Service) newRun(t *store.Txn, task *Task, host string, now time.Time) error {
	e, err := s.execution(t, *task)
	if err != nil {
		return err
	}
	n := 1
	if task.Run != nil {
		n = task.Run.N + 1
	}
	run := &Run{N: n, Execution: e, Steps: slices.Clone(task.Steps), Host: host, Started: now}
	if a := task.Again; a != nil {
		run.Attended = a.Attended
		if a.Words != "" {
			run.Steps = []string{"The result was not accepted. What has to be different:\n\n" + a.Words}
		}
		if len(a.Steps) > 0 {
			run.Steps, run.Passed = slices.Clone(a.Steps), a.Passed
		}
	}
	task.Run = run
	return nil
}

// step is what is handed over of a task.
type step struct {
	prompt, text string
	limit        policy.Mode
	fresh        bool // in a new session
	// follows is the run that looks for follow-ups: always in the task's lane, and nobody is asked.
	follows bool
}

// present is the step at which a task's run stands.
func (s *Service) present(task *Task, fresh bool) step {
	run := task.Run
	st := step{prompt: promptID(*task), text: run.Steps[run.Step], limit: s.limit(*task), fresh: fresh && run.Step == 0 && run.Tried == 0}
	if run.Step == 0 {
		st.text = run.Passed + st.text
	}
	if run.Tried > 0 {
		st.text = "You were not allowed to do all of this before. Writing is allowed now; do what is left of it:\n\n" + st.text
	}
	return st
}

// order hands a step of a task over as a prompt, with the mode that the task was made under. Whatever starts work of a task
// ends here: a schedule, a delay, a step that follows, a retry, a rejection, a further run, a look for follow-ups.
func (s *Service) order(t *store.Txn, task *Task, st step) error {
	run := task.Run
	c, err := s.cfg.Chats.Standing(t, task.Chat)
	if err != nil {
		return err
	}
	if !task.InChat || st.follows {
		c, err = s.cfg.Chats.Lane(t, bridge.Lane{
			Name: task.ID, Of: task.Chat, Host: task.Host, Project: task.Project, Runtime: task.Runtime, Fresh: st.fresh,
		})
		if err != nil {
			return err
		}
	}
	set, err := s.Settings(t, task.Chat)
	if err != nil {
		return err
	}
	now, err := t.Now()
	if err != nil {
		return err
	}
	if !st.follows {
		run.Chat, run.Prompt = c.ID, st.prompt
	}
	p := bridge.Prompt{
		ID: st.prompt, Text: st.text, By: task.By, Name: task.Name, At: later(now, c.Stopped.Add(time.Microsecond)),
		Limit: st.limit,
		Work: &bridge.Work{
			Task: task.ID, Attended: run.Attended && !st.follows, Card: set.Card, Patience: set.Patience, Quiet: set.Quiet, Alone: st.follows,
		},
	}
	placed, err := s.cfg.Chats.Prompt(t, c.ID, p)
	if err != nil {
		return err
	}
	if placed.Stopped {
		return errors.New("task: a stop was faster")
	}
	return s.put(t, task, now)
}

// limit is the mode that the present step of a task is held to, besides the chat's. It is part of the prompt, and the host
// takes the stricter of both at each ask.
func (s *Service) limit(task Task) policy.Mode {
	if task.Careful && !task.Run.Writing {
		return policy.ApprovalRequired
	}
	return task.Mode.AtMost(policy.FullAccess)
}

// ended takes the end of a turn into account, in the commit in which the chat learns of it. A turn that is not the one the
// run waits for changes nothing.
func (s *Service) ended(t *store.Txn, id string, e bridge.Entry) error {
	task, ok, err := store.Get[Task](t, taskKey(id))
	if errors.Is(err, store.ErrDamaged) {
		return nil
	}
	if err != nil || !ok || task.Run == nil {
		return err
	}
	var r runner.Result
	if e.Event.Result != nil {
		r = *e.Event.Result
	}
	run := task.Run
	var sum bridge.Summary
	if e.Summary != nil {
		sum = *e.Summary
	}
	if p := task.Pipeline; p != nil && p.Prompt != "" && p.Prompt == bridge.PromptOf(e.Turn) {
		return s.followed(t, &task, r, sum)
	}
	if task.State != InProgress || task.Pipeline != nil || run.Prompt != bridge.PromptOf(e.Turn) {
		return nil // also what was taken into account already, while the hooks before a retry run
	}
	run.Done = run.Done.Plus(sum)
	run.Usage = run.Usage.Plus(r.Usage)
	if task.Budget > 0 && run.Tokens() > task.Budget {
		run.Over = true
	}
	if r.Next != nil && r.Outcome == runner.Completed { // the runtime goes on by itself; the chat has queued it
		held, err := s.cfg.Chats.Holds(t, run.Chat, bridge.NextPrompt(run.Prompt))
		if err != nil {
			return err
		}
		if held {
			run.Prompt = bridge.NextPrompt(run.Prompt)
			return s.rewrite(t, &task)
		}
	}
	return s.after(t, &task, r, sum)
}

// after decides what follows a turn.
func (s *Service) after(t *store.Txn, task *Task, r runner.Result, sum bridge.Summary) error {
	run := task.Run
	switch {
	case run.Over:
		return s.block(t, task, cause{why: WhyBudget})
	case r.Outcome == runner.Interrupted:
		return s.block(t, task, cause{why: WhyInterrupted, words: r.Reason})
	case sum.Lacking():
		if may, err := s.mayRetry(t, *task); err != nil || may {
			if err != nil {
				return err
			}
			return s.retry(t, task)
		}
		return s.lacking(t, task, sum, r.Reason)
	case r.Outcome != runner.Completed:
		return s.block(t, task, cause{why: WhyFailed, words: r.Reason})
	case run.Step+1 < len(run.Steps):
		run.Step, run.Tried = run.Step+1, 0
		return s.goOn(t, task)
	case run.Execution == Auto:
		return s.finish(t, task, Done, cause{then: autoStages()})
	}
	return s.finish(t, task, InReview, cause{then: []Stage{hooksStage(PipelineCompleted)}})
}

// autoStages are what follows a task in auto whose steps are done.
func autoStages() []Stage {
	return []Stage{hooksStage(AutoApproved), {Kind: StageFollowUps}, hooksStage(PipelineCompleted)}
}

// goOn hands over the step that the run stands at, unless something is in its way by now.
func (s *Service) goOn(t *store.Txn, task *Task) error {
	why, err := s.hindered(t, task.Chat, task.Work)
	if err != nil {
		return err
	}
	if why == "" {
		err = s.order(t, task, s.present(task, false))
		if !errors.Is(err, bridge.ErrQueueFull) {
			return err
		}
		why = WhyStopped
	}
	return s.block(t, task, cause{why: why})
}

// mayRetry reports whether the present step may be done once more with writing allowed: in auto, once, and only where the
// mode of the task and of the chat, both at this moment, allow writing without anybody being asked.
func (s *Service) mayRetry(t *store.Txn, task Task) (bool, error) {
	if task.Run.Execution != Auto || task.Run.Tried > 0 {
		return false, nil
	}
	mode, interaction, err := s.Effective(t, task.Chat, task.Mode)
	if _, known := reason(err); known {
		return false, nil
	}
	return err == nil && policy.Decide(mode, interaction, policy.Write) == policy.Allow, err
}

func (s *Service) retry(t *store.Txn, task *Task) error {
	task.Run.Tried, task.Run.Writing = 1, true
	if len(s.hooks(PermissionRetry, *task)) > 0 { // the step is handed over when they have ended
		now, err := t.Now()
		if err != nil {
			return err
		}
		s.chain(t, task, now, hooksStage(PermissionRetry), Stage{Kind: StageRetry})
		if err := s.put(t, task, now); err != nil {
			return err
		}
	} else if err := s.goOn(t, task); err != nil || task.State != InProgress {
		return err
	}
	told := *task
	return s.cfg.Notify(t, Event{Kind: Retried, Chat: task.Chat, Task: &told, Why: WhyRetry})
}

// block ends a run, or keeps one from beginning, because a person is needed.
func (s *Service) block(t *store.Txn, task *Task, c cause) error {
	return s.finish(t, task, Blocked, c)
}

// finish ends a run and reports it.
func (s *Service) finish(t *store.Txn, task *Task, to State, c cause) error {
	won, err := s.move(t, task, to, c)
	if err != nil || !won {
		return err
	}
	if err := s.halted(t, task); err != nil {
		return err
	}
	told := *task
	return s.cfg.Notify(t, Event{Kind: Finished, Chat: task.Chat, Task: &told, Why: c.why})
}

// halted gives back what a run held: its place on the host, and the agent's process.
func (s *Service) halted(t *store.Txn, task *Task) error {
	if task.Run == nil {
		return nil
	}
	return s.release(t, task.ID, task.Run.Host, task.Run.Chat)
}

// release gives a task's place on a host back, and ends the agent's process if that was a lane's own.
func (s *Service) release(t *store.Txn, id, host, chat string) error {
	key := placesKey(host)
	p, _, err := store.Get[places](t, key)
	if err != nil && !errors.Is(err, store.ErrDamaged) {
		return err
	}
	if slices.Contains(p.Tasks, id) {
		p.V, p.Tasks = Version, slices.DeleteFunc(p.Tasks, func(one string) bool { return one == id })
		if err := store.Put(t, key, p); err != nil {
			return err
		}
		if err := s.hurry(t); err != nil {
			return err
		}
	}
	if bridge.IsLane(chat) {
		return s.cfg.Chats.Retire(t, chat, false)
	}
	return nil
}

// hurried is how many tasks are looked at when a place becomes free; some of them may be another host's.
const hurried = 4

// hurry has the tasks that would be looked at next looked at now, since a place has become free: else that would stay empty
// until one of them is tried again by itself.
func (s *Service) hurry(t *store.Txn) error {
	now, err := t.Now()
	if err != nil {
		return err
	}
	items, err := t.Range(pendingIndex, 0, maxScore, hurried)
	if err != nil {
		return err
	}
	for _, it := range items {
		t.Add(pendingIndex, it.Member, min(it.Score, store.Micros(now)))
	}
	if len(items) > 0 {
		t.Publish(topic, nil)
	}
	return nil
}

// stop interrupts what runs of a task: its lane, or its prompt in the chat's queue, or the chat's turn if that is the task's.
func (s *Service) stop(t *store.Txn, task Task) error {
	run := task.Run
	if bridge.IsLane(run.Chat) {
		_, err := s.cfg.Chats.Stop(t, run.Chat, time.Time{}, true)
		return err
	}
	if took, err := s.cfg.Chats.Unqueue(t, run.Chat, run.Prompt); err != nil || took {
		return err
	}
	return s.cfg.Chats.Interrupt(t, run.Chat, run.Prompt)
}

// missing ends the run of a task whose prompt is neither queued nor running: a stop took it, or the chat has gone.
func (s *Service) missing(t *store.Txn, id string) error {
	task, ok, err := store.Get[Task](t, taskKey(id))
	if errors.Is(err, store.ErrDamaged) || err == nil && (!ok || task.State != InProgress) {
		t.Drop(runningIndex, id)
		return nil
	}
	if err != nil {
		return err
	}
	held := task.Pipeline != nil // the step is handed over when its hooks have ended
	if !held {
		if held, err = s.cfg.Chats.Holds(t, task.Run.Chat, task.Run.Prompt); err != nil {
			return err
		}
	}
	if !held {
		return s.block(t, &task, cause{why: WhyStopped})
	}
	now, err := t.Now()
	if err != nil {
		return err
	}
	t.Add(runningIndex, id, store.Micros(now.Add(lookAgain)))
	return nil
}
