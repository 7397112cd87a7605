package claude

import (
	"cmp"
	"encoding/json"
	"time"

	"drawbridge/runner"
)

// task is work of the program that goes on beside the conversation: a command in the background, or a sub-agent.
type task struct {
	id      string
	title   string
	started time.Time
	told    bool // it was told as background: a command that is only slow is none
}

// tasked takes the life of a task. mu is held.
func (c *conn) tasked(f frame) {
	t := c.tasks[f.Task]
	switch f.Subtype {
	case "task_started":
		if t != nil || f.Task == "" {
			return
		}
		t = &task{id: f.Task, title: line(cmp.Or(f.Description, "A task")), started: time.Now()}
		c.tasks[t.id] = t
		if f.Background {
			c.tellTask(t)
		}
		if c.active != nil && c.active.interrupted {
			c.stopTask(t.id) // it was begun between the interrupt and its effect
		}
	case "task_updated":
		if t == nil || f.Patch == nil {
			return
		}
		if f.Patch.Background != nil && *f.Patch.Background {
			c.tellTask(t)
		}
		if ended(f.Patch.Status) {
			c.endTask(t)
		}
	case "task_notification":
		var status string
		_ = json.Unmarshal(f.Status, &status) // none is no end
		if t != nil && ended(status) {
			c.endTask(t)
		}
	}
}

// stopTask ends a task, and the program where it does not end it. mu is held.
func (c *conn) stopTask(id string) {
	c.running.Go(func() {
		err := c.peer.Call(c.life, "stop_task", map[string]string{"task_id": id}, nil)
		s := c.session
		s.mu.Lock()
		left := c.tasks[id] != nil
		s.mu.Unlock()
		if err != nil && left && !c.ended() {
			s.logger.Warn("program does not end what it began behind the interrupt, so it is ended", "runtime", s.runtime.config.Name, "err", err)
			c.kill()
		}
	})
}

func ended(status string) bool {
	switch status {
	case "completed", "failed", "killed", "stopped", "cancelled":
		return true
	}
	return false
}

// tellTask tells that a task goes on in the background. mu is held.
func (c *conn) tellTask(t *task) {
	if t.told {
		return
	}
	t.told = true
	c.session.emit(runner.Event{Kind: runner.BackgroundEvent, Turn: c.turnID(), Background: &runner.Background{ID: t.id, Title: t.title, Started: t.started}})
}

// endTask forgets a task and tells its end, if its beginning was told. mu is held.
func (c *conn) endTask(t *task) {
	delete(c.tasks, t.id)
	c.past[t.id] = true
	if t.told {
		c.session.emit(runner.Event{Kind: runner.BackgroundEvent, Turn: c.turnID(), Background: &runner.Background{
			ID: t.id, Title: t.title, Started: t.started, Ended: true,
		}})
	}
}
