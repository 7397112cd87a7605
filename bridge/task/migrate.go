package task

import (
	"errors"

	"drawbridge/internal/store"
)

// Migrate moves what a chat has planned, done and chosen to another key, as bridge.Chats.Migrate moves the chat. It may be
// called again for the same pair.
func (s *Service) Migrate(t *store.Txn, from, to string) error {
	set, ok, err := store.Get[Settings](t, settingsKey(from))
	if err == nil && ok {
		t.Delete(settingsKey(from))
		err = store.Put(t, settingsKey(to), set)
	}
	if err != nil && !errors.Is(err, store.ErrDamaged) {
		return err
	}
	schedules, err := t.Range(schedulesIndex(from), 0, maxScore, 0)
	if err != nil {
		return err
	}
	for _, it := range schedules {
		t.Drop(schedulesIndex(from), it.Member)
		sch, ok, err := store.Get[Schedule](t, scheduleKey(it.Member))
		if errors.Is(err, store.ErrDamaged) || err == nil && !ok {
			continue
		}
		if err != nil {
			return err
		}
		sch.Chat = to
		t.Add(schedulesIndex(to), it.Member, it.Score)
		if err := store.Put(t, scheduleKey(it.Member), sch); err != nil {
			return err
		}
	}
	tasks, err := t.Range(tasksIndex(from), 0, maxScore, 0)
	if err != nil {
		return err
	}
	for _, it := range tasks {
		t.Drop(tasksIndex(from), it.Member)
		task, ok, err := store.Get[Task](t, taskKey(it.Member))
		if errors.Is(err, store.ErrDamaged) || err == nil && !ok {
			continue
		}
		if err != nil {
			return err
		}
		task.Chat = to
		t.Add(tasksIndex(to), it.Member, it.Score)
		if err := store.Put(t, taskKey(it.Member), task); err != nil {
			return err
		}
	}
	return nil
}
