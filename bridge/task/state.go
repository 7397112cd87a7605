package task

import (
	"time"

	"drawbridge/internal/store"
)

// State is how a task stands.
type State string

// The states of a task.
const (
	Pending    State = "pending"     // it waits to be begun
	InProgress State = "in_progress" // a run of it goes on
	InReview   State = "review"      // its result waits for a person
	Done       State = "done"
	Blocked    State = "blocked" // it needs a person; Why says for what
	Cancelled  State = "cancelled"
)

// States returns them in the order in which a task goes through them.
func States() []State { return []State{Pending, InProgress, InReview, Blocked, Done, Cancelled} }

// leadsTo holds the arrows between the states. A run begins only out of Pending, so that two of them never go on at once.
func (st State) leadsTo(to State) bool {
	switch st {
	case Pending:
		return to == InProgress || to == Blocked || to == Cancelled
	case InProgress:
		return to == InReview || to == Done || to == Blocked || to == Cancelled
	case InReview:
		return to == Done || to == Pending || to == Cancelled
	case Blocked:
		return to == Pending || to == InReview || to == Done || to == Cancelled
	case Done, Cancelled:
		return to == Pending
	}
	return false
}

// Ended reports whether nothing happens to a task any more unless a person wants it.
func (st State) Ended() bool { return st != Pending && st != InProgress }

// cause says why a task moves.
type cause struct {
	why   Reason
	words string
	by    string  // the name of a person
	then  []Stage // what follows by itself
	// behind lets what still follows by itself go on, before then; else it is forgotten.
	behind bool
}

// move is the only way of a task from one state to another, and writes it. It reports false, and changes nothing, if the
// task does not stand where that can be done from: somebody else was faster.
func (s *Service) move(t *store.Txn, task *Task, to State, c cause) (won bool, err error) {
	if !task.State.leadsTo(to) {
		return false, nil
	}
	now, err := t.Now()
	if err != nil {
		return false, err
	}
	if task.State == Blocked {
		if err := s.unblocked(t, task, c); err != nil {
			return false, err
		}
	}
	task.State, task.Why, task.Words = to, c.why, front(c.words, maxWords)
	line := Line{At: now, State: to, Why: c.why, By: c.by}
	if task.Run != nil {
		line.Run = task.Run.N
		if to.Ended() && task.Run.Ended.IsZero() {
			task.Run.Ended = now
		}
	}
	task.Log = append(task.Log, line)
	task.Log = task.Log[max(0, len(task.Log)-maxLog):]
	if to != Pending {
		task.Again = nil
	}
	t.Drop(pendingIndex, task.ID)
	t.Drop(runningIndex, task.ID)
	t.Drop(oldIndex, taskMember(task.ID))
	if c.behind {
		s.behind(t, task, now, c.then...)
	} else {
		s.chain(t, task, now, c.then...)
	}
	switch to {
	case Pending:
		t.Add(pendingIndex, task.ID, store.Micros(now))
		t.Publish(topic, nil)
	case InProgress:
		t.Add(runningIndex, task.ID, store.Micros(now.Add(lookAgain)))
	case InReview, Done, Blocked, Cancelled:
		t.Add(oldIndex, taskMember(task.ID), store.Micros(now))
	}
	return true, s.put(t, task, now)
}

// put writes a task as it stands.
func (s *Service) put(t *store.Txn, task *Task, now time.Time) error {
	task.V, task.Updated = Version, now
	t.Add(tasksIndex(task.Chat), task.ID, store.Micros(now))
	return store.Put(t, taskKey(task.ID), *task)
}

const maxWords = 2 << 10

// front returns the first n bytes of s at the most, cut between characters.
func front(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && s[n]&0xC0 == 0x80 {
		n--
	}
	return s[:n]
}
