package task

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"drawbridge/internal/store"
	"drawbridge/policy"
)

// NewSchedule is what a person wants done at times.
type NewSchedule struct {
	ID string // given by who adds it, so that the same one is added once; empty for a fresh one
	Work
	Spec   Spec
	Zone   string // empty for the chat's
	Missed Missed // empty for Late
}

// AddSchedule adds a schedule to a chat. Its mode is the chat's at this moment, or the stricter one that is given. A
// schedule with an id that is known is returned as it stands. Errors: *SpecError, ErrZone, ErrMode, ErrTooMany, ErrEmpty, ErrTooLong,
// bridge.ErrNoProject, ErrNoRuntime, ErrNoHost.
func (s *Service) AddSchedule(t *store.Txn, chat string, n NewSchedule) (Schedule, error) {
	if n.ID == "" {
		n.ID = newID()
	}
	if old, known, err := store.Get[Schedule](t, scheduleKey(n.ID)); err != nil || known {
		return old, err
	}
	items, err := t.Range(schedulesIndex(chat), 0, maxScore, MaxSchedules)
	if err != nil {
		return Schedule{}, err
	}
	if len(items) >= MaxSchedules {
		return Schedule{}, ErrTooMany
	}
	set, err := s.Settings(t, chat)
	if err != nil {
		return Schedule{}, err
	}
	w, err := s.prepared(t, chat, n.Work)
	if err != nil {
		return Schedule{}, err
	}
	now, err := t.Now()
	if err != nil {
		return Schedule{}, err
	}
	sch := Schedule{V: Version, ID: n.ID, Chat: chat, Work: w, Spec: n.Spec, Zone: n.Zone, Missed: n.Missed, State: Active, Created: now}
	if sch.Zone == "" {
		sch.Zone = set.Zone
	}
	if sch.Missed != Skip {
		sch.Missed = Late
	}
	loc, err := Zone(sch.Zone)
	if err != nil {
		return Schedule{}, err
	}
	if err := sch.Spec.Check(loc, now); err != nil {
		return Schedule{}, err
	}
	sch.Next, _ = sch.Spec.Next(loc, now)
	t.Add(schedulesIndex(chat), sch.ID, store.Micros(now))
	return sch, s.putSchedule(t, sch)
}

// putSchedule writes a schedule, and where it stands among what is due.
func (s *Service) putSchedule(t *store.Txn, sch Schedule) error {
	if sch.State == Active && !sch.Next.IsZero() {
		t.Add(dueIndex, sch.ID, store.Micros(sch.Next))
		t.Publish(topic, nil)
	} else {
		t.Drop(dueIndex, sch.ID)
	}
	t.Drop(oldIndex, scheduleMember(sch.ID))
	if sch.State == Over {
		now, err := t.Now()
		if err != nil {
			return err
		}
		t.Add(oldIndex, scheduleMember(sch.ID), store.Micros(now))
	}
	return store.Put(t, scheduleKey(sch.ID), sch)
}

// Schedule returns a schedule. ErrNotFound.
func (s *Service) Schedule(t *store.Txn, id string) (Schedule, error) {
	sch, ok, err := store.Get[Schedule](t, scheduleKey(id))
	if err == nil && !ok {
		err = ErrNotFound
	}
	if err != nil {
		return Schedule{}, fmt.Errorf("task: schedule %s: %w", id, err)
	}
	return sch, nil
}

// Schedules lists a chat's, oldest first.
func (s *Service) Schedules(t *store.Txn, chat string) ([]Schedule, error) {
	items, err := t.Range(schedulesIndex(chat), 0, maxScore, 0)
	if err != nil {
		return nil, err
	}
	keys := make([]string, len(items))
	for i, it := range items {
		keys[i] = scheduleKey(it.Member)
	}
	if err := t.Preload(keys...); err != nil {
		return nil, err
	}
	var out []Schedule
	for _, key := range keys {
		sch, ok, err := store.Peek[Schedule](t, key)
		if errors.Is(err, store.ErrDamaged) {
			s.cfg.Logger.Error("a schedule's record is damaged; left out", "err", err)
			continue
		}
		if err != nil {
			return nil, err
		}
		if ok {
			out = append(out, sch)
		}
	}
	return out, nil
}

// Upcoming are the next n planned times of a schedule; none while it is paused.
func (sch Schedule) Upcoming(n int) []time.Time {
	loc, err := Zone(sch.Zone)
	if err != nil || sch.State != Active || sch.Next.IsZero() || n < 1 {
		return nil
	}
	return append([]time.Time{sch.Next}, sch.Spec.Times(loc, sch.Next, n-1)...)
}

// Pause stops a schedule from being fired, and reports whether it was active.
func (s *Service) Pause(t *store.Txn, id string, why Reason) (Schedule, bool, error) {
	sch, err := s.Schedule(t, id)
	if err != nil || sch.State != Active {
		return sch, false, err
	}
	sch.State, sch.Why = Paused, why
	return sch, true, s.putSchedule(t, sch)
}

// Resume lets a paused schedule be fired from its next time on, and reports whether it was paused. What was planned in
// between is not made up for.
func (s *Service) Resume(t *store.Txn, id string) (Schedule, bool, error) {
	sch, err := s.Schedule(t, id)
	if err != nil || sch.State != Paused {
		return sch, false, err
	}
	sch.State, sch.Why = Active, ""
	err = s.plan(t, &sch)
	return sch, true, err
}

// plan sets the next time of a schedule from now on and writes it.
func (s *Service) plan(t *store.Txn, sch *Schedule) error {
	loc, err := Zone(sch.Zone)
	if err != nil {
		return err
	}
	now, err := t.Now()
	if err != nil {
		return err
	}
	next, ok := sch.Spec.Next(loc, now)
	if sch.Next = next; !ok {
		sch.Next, sch.State = time.Time{}, Over
	}
	return s.putSchedule(t, *sch)
}

// EditSchedule changes the steps and the spec of a schedule; what is empty stays. The mode stays what it was made under.
// A schedule that was over is active again if it has a time. Errors as AddSchedule.
func (s *Service) EditSchedule(t *store.Txn, id string, steps []string, spec *Spec) (Schedule, error) {
	sch, err := s.Schedule(t, id)
	if err != nil {
		return Schedule{}, err
	}
	if len(steps) > 0 {
		w := sch.Work
		if w.Title == title(strings.Join(w.Steps[:min(1, len(w.Steps))], "")) {
			w.Title = ""
		}
		w.Steps = slices.Clone(steps)
		prepared, err := s.prepared(t, sch.Chat, Work{Steps: w.Steps, Title: w.Title, Host: w.Host, Project: w.Project, Runtime: w.Runtime, InChat: w.InChat})
		if err != nil {
			return Schedule{}, err
		}
		sch.Steps, sch.Title = prepared.Steps, prepared.Title
	}
	if spec == nil {
		return sch, s.putSchedule(t, sch)
	}
	loc, err := Zone(sch.Zone)
	if err != nil {
		return Schedule{}, err
	}
	now, err := t.Now()
	if err != nil {
		return Schedule{}, err
	}
	if err := spec.Check(loc, now); err != nil {
		return Schedule{}, err
	}
	sch.Spec = *spec
	if sch.State == Over {
		sch.State = Active
	}
	err = s.plan(t, &sch)
	return sch, err
}

// SetScheduleMode changes the mode that a schedule is held to. Raising it is an owner's deliberate step, which the caller
// has confirmed; it can't be raised above the chat's. ErrMode.
func (s *Service) SetScheduleMode(t *store.Txn, id string, m policy.Mode) (Schedule, error) {
	sch, err := s.Schedule(t, id)
	if err != nil {
		return Schedule{}, err
	}
	if err := s.mayHold(t, sch.Chat, m); err != nil {
		return Schedule{}, err
	}
	sch.Mode = m
	return sch, s.putSchedule(t, sch)
}

// DeleteSchedule forgets a schedule and reports whether there was one. What it has started goes on.
func (s *Service) DeleteSchedule(t *store.Txn, id string) (bool, error) {
	sch, ok, err := store.Get[Schedule](t, scheduleKey(id))
	if err != nil || !ok {
		return false, err
	}
	s.dropSchedule(t, sch.Chat, id)
	return true, nil
}

func (s *Service) dropSchedule(t *store.Txn, chat, id string) {
	t.Delete(scheduleKey(id))
	t.Drop(dueIndex, id)
	t.Drop(schedulesIndex(chat), id)
	t.Drop(oldIndex, scheduleMember(id))
}

// RunNow starts a schedule's task at once, besides its planned times, and returns it. If the one before it has not ended it
// returns that and false.
func (s *Service) RunNow(t *store.Txn, id, by string) (Task, bool, error) {
	sch, err := s.Schedule(t, id)
	if err != nil {
		return Task{}, false, err
	}
	if running, task, err := s.running(t, sch); err != nil || running {
		return task, false, err
	}
	task := Task{ID: sch.ID + "-" + newID(), Chat: sch.Chat, Work: sch.Work, Schedule: sch.ID}
	sch.Task = task.ID
	if err := s.putSchedule(t, sch); err != nil {
		return Task{}, false, err
	}
	err = s.create(t, &task, cause{why: WhyAsked, by: by})
	return task, true, err
}

// running reports whether the task that a schedule started last has not ended, and returns it.
func (s *Service) running(t *store.Txn, sch Schedule) (bool, Task, error) {
	if sch.Task == "" {
		return false, Task{}, nil
	}
	task, ok, err := store.Get[Task](t, taskKey(sch.Task))
	if errors.Is(err, store.ErrDamaged) {
		return false, Task{}, nil
	}
	return ok && !task.State.Ended(), task, err
}
