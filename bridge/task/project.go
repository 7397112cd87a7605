package task

import (
	"errors"
	"time"

	"drawbridge/bridge"
	"drawbridge/internal/store"
	"drawbridge/runner"
)

// Project implements bridge.Projection: what an entry of a host's log means for a task, and then, unless it is a lane's own,
// what it means for the chat.
func (s *Service) Project(t *store.Txn, e bridge.Entry) error {
	if err := s.follow(t, e); err != nil {
		return err
	}
	if bridge.IsLane(e.Chat) || s.cfg.Next == nil {
		return nil
	}
	if _, ofTask := OfTurn(e.Turn); ofTask && e.Event.Kind == runner.ReviewChanged {
		return nil // the report says what was refused
	}
	return s.cfg.Next.Project(t, e)
}

// Omitted implements bridge.Omitter.
func (s *Service) Omitted(t *store.Txn, e bridge.Entry) error {
	if err := s.follow(t, e); err != nil {
		return err
	}
	if o, can := s.cfg.Next.(bridge.Omitter); can && !bridge.IsLane(e.Chat) {
		return o.Omitted(t, e)
	}
	return nil
}

// Live implements bridge.Projection.
func (s *Service) Live(l bridge.Live) {
	if s.cfg.Next != nil && !bridge.IsLane(l.Chat) {
		s.cfg.Next.Live(l)
	}
}

func (s *Service) follow(t *store.Txn, e bridge.Entry) error {
	id, ok := OfTurn(e.Turn)
	if !ok {
		return nil
	}
	switch e.Event.Kind { //nolint:exhaustive // the others change no task
	case runner.TurnEnded:
		return s.ended(t, id, e)
	case runner.UsageUpdated:
		return s.spent(t, id, e)
	}
	return nil
}

// spent interrupts a run that has used up its budget.
func (s *Service) spent(t *store.Txn, id string, e bridge.Entry) error {
	task, ok, err := store.Peek[Task](t, taskKey(id))
	if errors.Is(err, store.ErrDamaged) || err == nil && (!ok || task.Budget == 0 || e.Event.Usage == nil) {
		return nil
	}
	if err != nil || task.Run == nil || task.Run.Over {
		return err
	}
	prompt := bridge.PromptOf(e.Turn)
	looks := task.Pipeline != nil && task.Pipeline.Prompt == prompt // for follow-ups, which are part of the run's cost
	if !looks && (task.State != InProgress || task.Run.Prompt != prompt) {
		return nil
	}
	if task.Run.Tokens()+e.Event.Usage.Input+e.Event.Usage.Output <= task.Budget {
		return nil
	}
	if task, err = s.Task(t, id); err != nil {
		return err
	}
	task.Run.Over = true
	if err := s.rewrite(t, &task); err != nil {
		return err
	}
	if looks {
		_, err := s.cfg.Chats.Stop(t, laneOf(task), time.Time{}, true)
		return err
	}
	return s.stop(t, task)
}
