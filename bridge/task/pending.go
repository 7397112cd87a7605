package task

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"drawbridge/bridge"
	"drawbridge/internal/store"
)

// What becomes of a blocked task: it is run again (Rerun), a person does the step that blocks it (ByHand), or the step is
// left out (Skip). In auto a task for a person is made of a step that was not allowed, and whatever is chosen there or here
// is chosen for both.

// lacking blocks a task because a step of it was not allowed. In auto, which asks nobody, that leaves a task for a person.
func (s *Service) lacking(t *store.Txn, task *Task, sum bridge.Summary, words string) error {
	c := cause{why: WhyPermission, words: words}
	if task.Run.Execution != Auto {
		return s.block(t, task, c)
	}
	var what strings.Builder
	for i, r := range sum.Refusals {
		if i > 0 {
			what.WriteString("\n")
		}
		what.WriteString(r.What)
	}
	run := task.Run
	byHand := Task{
		ID: fmt.Sprintf("%s-p%d-%d-%d", task.ID, run.N, run.Step, run.Tried), Chat: task.Chat, Work: task.Work, Parent: task.ID, Origin: OriginPending,
	}
	byHand.Steps = []string{run.Steps[run.Step]}
	if err := s.create(t, &byHand, cause{}); err != nil {
		return err
	}
	if _, err := s.move(t, &byHand, Blocked, cause{why: WhyByHand, words: what.String()}); err != nil {
		return err
	}
	task.ByHand = byHand.ID
	return s.block(t, task, c)
}

// ByHand says that a person has done the step that blocks a task. It goes on with the steps behind it, or is done. won is
// false, and nothing is changed, if it does not stand there.
func (s *Service) ByHand(t *store.Txn, id, by string) (task Task, won bool, err error) {
	return s.pass(t, id, cause{why: WhyByHand, by: by})
}

// Skip leaves the step out that blocks a task. It goes on with the steps behind it; if there are none, it ends as a task
// does whose steps are done. won as in ByHand.
func (s *Service) Skip(t *store.Txn, id, by string) (task Task, won bool, err error) {
	return s.pass(t, id, cause{why: WhySkipped, by: by})
}

func (s *Service) pass(t *store.Txn, id string, c cause) (task Task, won bool, err error) {
	if task, err = s.Task(t, id); err != nil || task.State != Blocked {
		return task, false, err
	}
	if of, ok, err := s.madeFor(t, task); err != nil {
		return task, false, err
	} else if ok { // it takes this one along
		if _, won, err = s.pass(t, of.ID, c); err != nil || !won {
			return task, won, err
		}
		task, err = s.Task(t, id)
		return task, true, err
	}
	return s.passed(t, task, c)
}

// passed goes on behind the step that blocks a task.
func (s *Service) passed(t *store.Txn, task Task, c cause) (_ Task, won bool, err error) {
	run := task.Run
	if run != nil && run.Step+1 < len(run.Steps) {
		words := "A person did the step before this one by hand:\n"
		if c.why == WhySkipped {
			words = "The step before this one was left out:\n"
		}
		task.Again = &Again{Steps: slices.Clone(run.Steps[run.Step+1:]), Passed: words + bridge.Quoted(run.Steps[run.Step]) + "\n\nGo on with:\n"}
		won, err = s.move(t, &task, Pending, c)
		return task, won, err
	}
	to := Done
	switch {
	case task.Origin == OriginPending && c.why == WhySkipped:
		to = Cancelled
	case run == nil && c.why == WhySkipped:
		to = Cancelled // nothing of it was done
	case run != nil && c.why == WhySkipped && run.Execution == Review:
		to = InReview
	}
	if run != nil && to != Cancelled {
		c.then = []Stage{hooksStage(PipelineCompleted)}
	}
	won, err = s.move(t, &task, to, c)
	return task, won, err
}

// madeFor returns the blocked task for which a task for a person was made, if it still waits for that.
func (s *Service) madeFor(t *store.Txn, task Task) (of Task, ok bool, err error) {
	if task.Origin != OriginPending {
		return Task{}, false, nil
	}
	of, ok, err = store.Get[Task](t, taskKey(task.Parent))
	if errors.Is(err, store.ErrDamaged) {
		return Task{}, false, nil
	}
	return of, ok && of.State == Blocked && of.ByHand == task.ID, err
}

// unblocked ends the task for a person that was made of the step that blocked this one.
func (s *Service) unblocked(t *store.Txn, task *Task, c cause) error {
	id := task.ByHand
	if task.ByHand = ""; id == "" {
		return nil
	}
	byHand, ok, err := store.Get[Task](t, taskKey(id))
	if errors.Is(err, store.ErrDamaged) || err == nil && !ok {
		return nil
	}
	if err != nil {
		return err
	}
	to := Cancelled
	if c.why == WhyByHand {
		to = Done
	}
	_, err = s.move(t, &byHand, to, cause{why: c.why, by: c.by})
	return err
}
