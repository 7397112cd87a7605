package task

import (
	"context"
	"errors"
	"strings"

	"drawbridge/internal/store"
)

func taskMember(id string) string     { return "t:" + id }
func scheduleMember(id string) string { return "s:" + id }

// prune forgets what ended long ago.
func (s *Service) prune(ctx context.Context) error {
	now, _, err := s.cfg.DB.Read(ctx)
	if err != nil {
		return err
	}
	old, err := s.cfg.DB.Range(ctx, oldIndex, 0, store.Micros(now.Add(-keep)), most)
	if err != nil {
		return err
	}
	for _, it := range old {
		err = errors.Join(err, store.Update(ctx, s.cfg.DB, func(t *store.Txn) error { return s.forget(t, it.Member) }))
	}
	return err
}

func (s *Service) forget(t *store.Txn, member string) error {
	t.Drop(oldIndex, member)
	if id, ok := strings.CutPrefix(member, scheduleMember("")); ok {
		sch, known, err := store.Get[Schedule](t, scheduleKey(id))
		if errors.Is(err, store.ErrDamaged) || err == nil && (!known || sch.State != Over) {
			return nil
		}
		if err != nil {
			return err
		}
		s.dropSchedule(t, sch.Chat, id)
		return nil
	}
	id := strings.TrimPrefix(member, taskMember(""))
	task, known, err := store.Get[Task](t, taskKey(id))
	if errors.Is(err, store.ErrDamaged) || err == nil && (!known || !task.State.Ended()) {
		return nil
	}
	if err != nil {
		return err
	}
	if task.Pipeline != nil { // no gateway was there to end it: kept until one has
		now, err := t.Now()
		t.Add(oldIndex, member, store.Micros(now))
		return err
	}
	t.Delete(taskKey(id))
	t.Drop(tasksIndex(task.Chat), id)
	return s.cfg.Chats.Retire(t, laneOf(task), true)
}
