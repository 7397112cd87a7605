package task

import (
	"errors"
	"time"

	"drawbridge/internal/store"
)

// maxMissed bounds how many missed times are counted one by one: two months of one a minute.
const maxMissed = 100_000

// fire handles the planned times of a schedule that have come, in one commit with what that starts: whoever commits first
// moves the schedule on, and the task's id is made of the planned time, so that no time is fired twice. Each planned time is
// either fired or part of an Omitted event.
func (s *Service) fire(t *store.Txn, id string) error {
	sch, ok, err := store.Get[Schedule](t, scheduleKey(id))
	if errors.Is(err, store.ErrDamaged) {
		s.cfg.Logger.Error("a schedule's record is damaged; it is not fired any more", "schedule", id, "err", err)
		t.Drop(dueIndex, id)
		return nil
	}
	if err != nil {
		return err
	}
	now, err := t.Now()
	if err != nil {
		return err
	}
	if !ok || sch.State != Active || sch.Next.IsZero() {
		t.Drop(dueIndex, id)
		return nil
	}
	if sch.Next.After(now) {
		t.Add(dueIndex, id, store.Micros(sch.Next))
		return nil
	}
	loc, err := Zone(sch.Zone)
	if err != nil {
		return s.halt(t, sch, WhyUnreadable)
	}
	// The latest planned time that has come, and how many came before it.
	planned, before, missed := sch.Next, sch.Next, 0
	for from := sch.Spec.from(loc); missed < maxMissed; {
		next, more := from(planned)
		if !more || next.After(now) {
			break
		}
		before, planned = planned, next
		missed++
	}
	why, err := s.hindered(t, sch.Chat, sch.Work)
	if err != nil {
		return err
	}
	if why != "" {
		if err := s.omit(t, &sch, sch.Next, planned, missed+1, why); err != nil {
			return err
		}
		return s.halt(t, sch, why)
	}
	if missed > 0 {
		if err := s.omit(t, &sch, sch.Next, before, missed, WhyAway); err != nil {
			return err
		}
	}
	overlaps, _, err := s.running(t, sch)
	if err != nil {
		return err
	}
	switch {
	case overlaps:
		err = s.omit(t, &sch, planned, planned, 1, WhyOverlap)
	case sch.Missed == Skip && now.Sub(planned) >= onTime:
		err = s.omit(t, &sch, planned, planned, 1, WhyAway)
	default:
		task := Task{ID: firingID(sch.ID, planned), Chat: sch.Chat, Work: sch.Work, Schedule: sch.ID, Planned: planned}
		sch.Last, sch.Task = planned, task.ID
		sch.Fired++
		sch.Why = ""
		err = s.create(t, &task, cause{})
	}
	if err != nil {
		return err
	}
	next, more := sch.Spec.Next(loc, later(planned, now))
	if sch.Next = next; !more {
		sch.Next, sch.State = time.Time{}, Over
	}
	return s.putSchedule(t, sch)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// omit reports planned times that are not fired.
func (s *Service) omit(t *store.Txn, sch *Schedule, from, to time.Time, n int, why Reason) error {
	o := &Omission{From: from, To: to, Count: n, Why: why, Repeated: sch.Why == why}
	sch.Omitted += n
	sch.Why = why
	told := *sch
	return s.cfg.Notify(t, Event{Kind: Omitted, Chat: sch.Chat, Schedule: &told, Why: why, Omission: o})
}

// halt pauses a schedule by itself, and says so once.
func (s *Service) halt(t *store.Txn, sch Schedule, why Reason) error {
	sch.State, sch.Why = Paused, why
	if err := s.putSchedule(t, sch); err != nil {
		return err
	}
	return s.cfg.Notify(t, Event{Kind: Halted, Chat: sch.Chat, Schedule: &sch, Why: why})
}
