package task

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"drawbridge/bridge"
	"drawbridge/internal/store"
	"drawbridge/policy"
)

// NewTask is what a person wants done.
type NewTask struct {
	ID string // given by who adds it, so that the same one is added once; empty for a fresh one
	Work
	Parent string
	Origin Origin
	Ref    string // the messenger's
}

// Add adds a task to a chat; it begins as soon as there is a place for it. Its mode is the chat's at this moment, or the
// stricter one that is given. A task with an id that is known is returned as it stands. Errors as AddSchedule.
func (s *Service) Add(t *store.Txn, chat string, n NewTask) (Task, error) {
	if n.ID == "" {
		n.ID = newID()
	}
	if strings.ContainsRune(n.ID, ':') {
		return Task{}, fmt.Errorf("task: add %q: an id has no colon", n.ID)
	}
	if old, known, err := store.Get[Task](t, taskKey(n.ID)); err != nil || known {
		return old, err
	}
	open, err := s.Tasks(t, chat, Filter{States: []State{Pending, InProgress}})
	if err != nil {
		return Task{}, err
	}
	if len(open) >= MaxOpen {
		return Task{}, ErrTooMany
	}
	w, err := s.prepared(t, chat, n.Work)
	if err != nil {
		return Task{}, err
	}
	task := Task{ID: n.ID, Chat: chat, Work: w, Parent: n.Parent, Origin: n.Origin, Ref: n.Ref}
	err = s.create(t, &task, cause{by: w.Name})
	return task, err
}

// create writes a task for the first time, as pending. One that exists is left alone.
func (s *Service) create(t *store.Txn, task *Task, c cause) error {
	if _, known, err := store.Get[Task](t, taskKey(task.ID)); err != nil || known {
		return err
	}
	now, err := t.Now()
	if err != nil {
		return err
	}
	task.State, task.Why, task.Created = Pending, c.why, now
	task.Log = []Line{{At: now, State: Pending, Why: c.why, By: c.by}}
	t.Add(pendingIndex, task.ID, store.Micros(now))
	t.Publish(topic, nil)
	return s.put(t, task, now)
}

// Task returns a task. ErrNotFound.
func (s *Service) Task(t *store.Txn, id string) (Task, error) {
	task, ok, err := store.Get[Task](t, taskKey(id))
	if err == nil && !ok {
		err = ErrNotFound
	}
	if err != nil {
		return Task{}, fmt.Errorf("task: %s: %w", id, err)
	}
	return task, nil
}

// Filter chooses tasks.
type Filter struct {
	States   []State // any if empty
	Schedule string  // of this schedule only
	Limit    int     // zero for all
}

// Tasks lists a chat's tasks, the one that changed last first.
func (s *Service) Tasks(t *store.Txn, chat string, f Filter) ([]Task, error) {
	items, err := t.Range(tasksIndex(chat), 0, maxScore, 0)
	if err != nil {
		return nil, err
	}
	keys := make([]string, len(items))
	for i, it := range items {
		keys[len(items)-1-i] = taskKey(it.Member)
	}
	if err := t.Preload(keys...); err != nil {
		return nil, err
	}
	var out []Task
	for _, key := range keys {
		task, ok, err := store.Peek[Task](t, key)
		if errors.Is(err, store.ErrDamaged) {
			s.cfg.Logger.Error("a task's record is damaged; left out", "err", err)
			continue
		}
		if err != nil {
			return nil, err
		}
		if !ok || f.Schedule != "" && task.Schedule != f.Schedule || len(f.States) > 0 && !slices.Contains(f.States, task.State) {
			continue
		}
		if out = append(out, task); len(out) == f.Limit {
			break
		}
	}
	return out, nil
}

// Approve makes a task that is in review done; its follow-ups are looked for then, behind the hooks that still run. won is
// false, and nothing is changed, if it does not stand there.
func (s *Service) Approve(t *store.Txn, id, by string) (task Task, won bool, err error) {
	if task, err = s.Task(t, id); err != nil || task.State != InReview {
		return task, false, err
	}
	won, err = s.move(t, &task, Done, cause{by: by, then: []Stage{{Kind: StageFollowUps}}, behind: true})
	return task, won, err
}

// Reject gives a task that is in review back to the agent, in the same session, with a person's words. won as in Approve.
func (s *Service) Reject(t *store.Txn, id, words, by string) (task Task, won bool, err error) {
	if task, err = s.Task(t, id); err != nil || task.State != InReview {
		return task, false, err
	}
	if strings.TrimSpace(words) == "" {
		return task, false, ErrEmpty
	}
	task.Again = &Again{Words: front(words, MaxText)}
	won, err = s.move(t, &task, Pending, cause{why: WhyRejected, words: words, by: by})
	return task, won, err
}

// Rerun begins a task that has ended from its first step, in a new session. Attended is for who stays in front of it: its
// asks are then those of the foreground. won is false if the task has not ended.
func (s *Service) Rerun(t *store.Txn, id string, attended bool, by string) (task Task, won bool, err error) {
	if task, err = s.Task(t, id); err != nil {
		return task, false, err
	}
	if of, ok, err := s.madeFor(t, task); err != nil {
		return task, false, err
	} else if ok { // it takes this one along
		return s.Rerun(t, of.ID, attended, by)
	}
	if task.Origin == OriginPending {
		return task, false, nil // what it was made for has gone on
	}
	if err := s.stopFollowUps(t, task); err != nil {
		return task, false, err
	}
	task.Again = &Again{Attended: attended}
	won, err = s.move(t, &task, Pending, cause{why: WhyAsked, by: by})
	return task, won, err
}

// stopFollowUps ends the run that looks for a task's follow-ups, if there is one.
func (s *Service) stopFollowUps(t *store.Txn, task Task) error {
	if task.Pipeline == nil || task.Pipeline.Prompt == "" {
		return nil
	}
	if err := s.release(t, task.ID, task.Host, laneOf(task)); err != nil {
		return err
	}
	_, err := s.cfg.Chats.Stop(t, laneOf(task), time.Time{}, true)
	return err
}

// Cancel ends a task and stops what runs of it; of one that is done, what still follows. won is false if there is nothing to
// end.
func (s *Service) Cancel(t *store.Txn, id, by string) (task Task, won bool, err error) {
	if task, err = s.Task(t, id); err != nil {
		return task, false, err
	}
	if task.Pipeline != nil && task.State.Ended() && !task.State.leadsTo(Cancelled) {
		if err := s.stopFollowUps(t, task); err != nil {
			return task, false, err
		}
		now, err := t.Now()
		if err != nil {
			return task, false, err
		}
		s.chain(t, &task, now)
		err = s.put(t, &task, now)
		return task, true, err
	}
	was := task.State
	if won, err = s.move(t, &task, Cancelled, cause{why: WhyAsked, by: by}); err != nil || !won || was != InProgress {
		return task, won, err
	}
	if err := s.halted(t, &task); err != nil {
		return task, won, err
	}
	return task, won, s.stop(t, task)
}

// SetExecution changes what becomes of a task; empty for the project's. A run that goes on keeps what it read.
func (s *Service) SetExecution(t *store.Txn, id string, e Execution) (Task, error) {
	task, err := s.Task(t, id)
	if err != nil {
		return Task{}, err
	}
	if e != Auto && e != Review && e != "" {
		return Task{}, fmt.Errorf("task: execution of %s: unknown %q", id, e)
	}
	task.Execution = e
	err = s.rewrite(t, &task)
	return task, err
}

// SetMode changes the mode that a task is held to. Lowering it is in force at the next ask, raising it from the next step on. Raising it is
// an owner's deliberate step, which the caller has confirmed; it can't be raised above the chat's. ErrMode.
func (s *Service) SetMode(t *store.Txn, id string, m policy.Mode) (Task, error) {
	task, err := s.Task(t, id)
	if err != nil {
		return Task{}, err
	}
	if err := s.mayHold(t, task.Chat, m); err != nil {
		return Task{}, err
	}
	task.Mode = m
	if task.State == InProgress {
		if err := s.cfg.Chats.Bind(t, task.Run.Chat, task.Run.Prompt, m); err != nil {
			return Task{}, err
		}
	}
	err = s.rewrite(t, &task)
	return task, err
}

func (s *Service) rewrite(t *store.Txn, task *Task) error {
	now, err := t.Now()
	if err != nil {
		return err
	}
	return s.put(t, task, now)
}

// mayHold says whether work of a chat may be held to m.
func (s *Service) mayHold(t *store.Txn, chat string, m policy.Mode) error {
	if !m.Valid() {
		return fmt.Errorf("task: mode of %s: %w", chat, policy.ErrUnknownMode)
	}
	c, err := s.cfg.Chats.Standing(t, chat)
	if err != nil {
		return err
	}
	if m.Looser(c.Mode) {
		return ErrMode
	}
	return nil
}

// Effective is the policy that a task would be held to at this moment: what a card shows. What it really is held to, its
// host reads at each ask.
func (s *Service) Effective(t *store.Txn, chat string, m policy.Mode) (policy.Mode, policy.Interaction, error) {
	c, err := s.cfg.Chats.Standing(t, chat)
	if err != nil {
		return policy.ApprovalRequired, policy.Plan, err
	}
	return c.Mode.AtMost(m), c.Interaction, nil
}

// title is the first line of a text, bounded.
func title(text string) string {
	text, _, _ = strings.Cut(strings.TrimSpace(text), "\n")
	if len(text) <= maxTitle {
		return text
	}
	return strings.TrimSpace(front(text, maxTitle)) + "…"
}

// Took is how long a run took, or has taken so far.
func (r Run) Took(now time.Time) time.Duration {
	if r.Ended.IsZero() {
		return now.Sub(r.Started)
	}
	return r.Ended.Sub(r.Started)
}

// Refusals are what the run was not allowed to do.
func (r Run) Refusals() []bridge.Refusal { return r.Done.Refusals }

// Tokens are what a run has taken.
func (r Run) Tokens() int64 { return r.Usage.Input + r.Usage.Output }
