package task

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"drawbridge/internal/store"
)

// HookEvent names a moment in the life of a task at which the owner's configuration may have something done.
type HookEvent string

// The moments.
const (
	AutoApproved      HookEvent = "task_auto_approved"    // the steps of a task in auto are done
	PermissionRetry   HookEvent = "task_permission_retry" // a step is about to be done once more, writing allowed
	PipelineCompleted HookEvent = "pipeline_completed"    // in auto: follow-ups are made; in review: the result waits for a person
)

// HookEvents returns them in the order in which a task comes by them.
func HookEvents() []HookEvent { return []HookEvent{PermissionRetry, AutoApproved, PipelineCompleted} }

// Hook is one thing that the owner's configuration has done at such a moment: a command is run, or a message is sent to the
// task's chat.
type Hook struct {
	Event   HookEvent
	Project string // only for tasks of this project; empty for all
	// Message may hold {title}, {state} and {project}.
	Message string
	// Command is a program and its arguments; no shell reads it. Config.Call runs it.
	Command []string
	Folder  string            // where it is run; empty for wherever Config.Call does
	Env     map[string]string // besides what it gets anyway
	Limit   time.Duration     // after which it is ended (30 s)
}

// Pipeline is what still follows by itself after a step or a run, in order. Only the first stage is under way.
type Pipeline struct {
	Stages []Stage `json:"stages"`
	// Claim is set while a command of a hook runs: by which claim, and until when it has to have ended. After that time nobody
	// knows whether it ran to its end, so it is not run again.
	Claim string    `json:"claim,omitempty"`
	Until time.Time `json:"until,omitzero"`
	// Prompt is that of the run that looks for follow-ups, while it is queued or runs.
	Prompt string `json:"prompt,omitempty"`
}

// Stage is one part of a pipeline.
type Stage struct {
	Kind StageKind `json:"kind"`
	// Event is of hooks; Hook counts those of the event that are done.
	Event HookEvent `json:"event,omitempty"`
	Hook  int       `json:"hook,omitempty"`
}

// StageKind says what a stage does. An unknown one is left out.
type StageKind string

// The kinds of stages.
const (
	StageHooks     StageKind = "hooks"
	StageFollowUps StageKind = "follow-ups"
	StageRetry     StageKind = "retry" // the present step is handed over once more
)

const (
	hookLimit   = 30 * time.Second // of a hook that says nothing else
	hookSlack   = 30 * time.Second // for the commit after a hook has ended
	hooksAtOnce = 4
	maxHookWord = 300 // bytes of what a failed hook is reported with
)

func hooksStage(e HookEvent) Stage { return Stage{Kind: StageHooks, Event: e} }

// hooks are those of an event that are meant for a task.
func (s *Service) hooks(e HookEvent, task Task) []Hook {
	var out []Hook
	for _, h := range s.cfg.Hooks {
		if h.Event == e && (h.Project == "" || h.Project == task.Project) {
			out = append(out, h)
		}
	}
	return out
}

// chain gives a task what follows by itself. The task has to be written by the caller; nothing is under way yet.
func (s *Service) chain(t *store.Txn, task *Task, now time.Time, stages ...Stage) {
	stages = slices.DeleteFunc(stages, func(st Stage) bool {
		return st.Kind == StageHooks && len(s.hooks(st.Event, *task)) == 0 || st.Kind == StageFollowUps && !task.mayFollow()
	})
	t.Drop(pipelineIndex, task.ID)
	if task.Pipeline = nil; len(stages) == 0 {
		return
	}
	task.Pipeline = &Pipeline{Stages: stages}
	t.Add(pipelineIndex, task.ID, store.Micros(now))
	t.Publish(topic, nil)
}

// behind gives a task what follows behind what still does, which goes on as it stands.
func (s *Service) behind(t *store.Txn, task *Task, now time.Time, stages ...Stage) {
	was := task.Pipeline
	s.chain(t, task, now, stages...)
	if was == nil {
		return
	}
	p := *was
	if task.Pipeline != nil {
		p.Stages = slices.Concat(was.Stages, task.Pipeline.Stages)
	}
	task.Pipeline = &p
	t.Add(pipelineIndex, task.ID, store.Micros(later(now, p.Until)))
	t.Publish(topic, nil)
}

// next ends the stage that is under way, or one hook of it.
func (s *Service) next(t *store.Txn, task *Task) error {
	p := task.Pipeline
	now, err := t.Now()
	if err != nil {
		return err
	}
	p.Claim, p.Until, p.Prompt = "", time.Time{}, ""
	if first := &p.Stages[0]; first.Kind == StageHooks {
		if first.Hook++; first.Hook < len(s.hooks(first.Event, *task)) {
			t.Add(pipelineIndex, task.ID, store.Micros(now))
			t.Publish(topic, nil)
			return s.put(t, task, now)
		}
	}
	s.chain(t, task, now, slices.Clone(p.Stages[1:])...)
	return s.put(t, task, now)
}

// advance does what is next in the pipeline of a task, if that needs no process of ours: a message, a run for follow-ups, a
// retry. Commands are left to RunHooks; one that nobody brought to its end is given up.
func (s *Service) advance(t *store.Txn, id string) error {
	task, ok, err := store.Get[Task](t, taskKey(id))
	if errors.Is(err, store.ErrDamaged) || err == nil && (!ok || task.Pipeline == nil || len(task.Pipeline.Stages) == 0) {
		t.Drop(pipelineIndex, id)
		return nil
	}
	if err != nil {
		return err
	}
	now, err := t.Now()
	if err != nil {
		return err
	}
	p := task.Pipeline
	switch first := p.Stages[0]; first.Kind {
	case StageHooks:
		hooks := s.hooks(first.Event, task)
		switch {
		case first.Hook >= len(hooks): // the configuration has become shorter
			return s.next(t, &task)
		case p.Claim != "" && now.Before(p.Until):
			t.Add(pipelineIndex, id, store.Micros(p.Until))
			return nil
		case p.Claim != "":
			return s.hookEnded(t, &task, first.Event, WhyUnknown, "")
		case len(hooks[first.Hook].Command) > 0 && s.cfg.Call != nil:
			return nil // it stays due, for RunHooks
		case len(hooks[first.Hook].Command) > 0:
			return s.hookEnded(t, &task, first.Event, WhyFailed, "this gateway runs no commands")
		}
		told := task
		if err := s.cfg.Notify(t, Event{Kind: Hooked, Chat: task.Chat, Task: &told, Words: hooks[first.Hook].words(task)}); err != nil {
			return err
		}
		return s.next(t, &task)
	case StageFollowUps:
		return s.lookForFollowUps(t, &task, now)
	case StageRetry:
		s.chain(t, &task, now)
		return s.goOn(t, &task)
	}
	return s.next(t, &task)
}

func (h Hook) words(task Task) string {
	return strings.NewReplacer("{title}", task.Title, "{state}", string(task.State), "{project}", task.Project).Replace(h.Message)
}

// hookEnded notes a hook that did not end well, and goes on with what follows: no task waits for a hook that fails.
func (s *Service) hookEnded(t *store.Txn, task *Task, e HookEvent, why Reason, words string) error {
	if why != "" {
		told := *task
		err := s.cfg.Notify(t, Event{Kind: HookFailed, Chat: task.Chat, Task: &told, Why: why, Hook: e, Words: front(words, maxHookWord)})
		if err != nil {
			return err
		}
	}
	return s.next(t, task)
}

// RunHooks runs the commands of hooks until ctx ends, each at most once: a command is claimed in the store before it is
// begun. One gateway or several may run it. When ctx ends, the commands that run are ended.
func (s *Service) RunHooks(ctx context.Context) error {
	if s.cfg.Call == nil || len(s.cfg.Hooks) == 0 {
		<-ctx.Done()
		return nil
	}
	hints, err := s.cfg.DB.Listen(ctx, topic)
	if err != nil {
		return fmt.Errorf("task: listen: %w", err)
	}
	tick := time.NewTicker(s.cfg.Pace)
	defer tick.Stop()
	var running sync.WaitGroup
	defer running.Wait()
	places := make(chan struct{}, hooksAtOnce)
	for {
		if err := s.callDue(ctx, &running, places); err != nil && ctx.Err() == nil {
			s.cfg.Logger.Warn("cannot look for hooks that are due; trying again", "err", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-hints:
		case <-tick.C:
		}
	}
}

// callDue begins the commands that are due, as far as there are places.
func (s *Service) callDue(ctx context.Context, running *sync.WaitGroup, places chan struct{}) error {
	now, _, err := s.cfg.DB.Read(ctx)
	if err != nil {
		return err
	}
	due, err := s.cfg.DB.Range(ctx, pipelineIndex, 0, store.Micros(now), most)
	if err != nil {
		return err
	}
	for _, it := range due {
		select {
		case places <- struct{}{}:
		default:
			return nil // whoever leaves a place looks again
		}
		call, ok, err := s.claim(ctx, it.Member)
		if err != nil || !ok {
			<-places
			if err != nil {
				return err
			}
			continue
		}
		running.Go(func() {
			defer func() { <-places }()
			s.call(ctx, call)
		})
	}
	return nil
}

// call is a hook's command that is claimed.
type call struct {
	hook  Hook
	task  Task
	claim string
}

// claim takes the command that is next for a task, and reports false if there is none, or if somebody else has it.
func (s *Service) claim(ctx context.Context, id string) (c call, won bool, err error) {
	err = store.Update(ctx, s.cfg.DB, func(t *store.Txn) error {
		won = false
		task, ok, err := store.Get[Task](t, taskKey(id))
		if err != nil || !ok || task.Pipeline == nil || len(task.Pipeline.Stages) == 0 || task.Pipeline.Claim != "" {
			return err
		}
		now, err := t.Now()
		if err != nil {
			return err
		}
		first := task.Pipeline.Stages[0]
		hooks := s.hooks(first.Event, task)
		if first.Kind != StageHooks || first.Hook >= len(hooks) || len(hooks[first.Hook].Command) == 0 {
			return nil
		}
		c = call{hook: hooks[first.Hook], claim: newID()}
		if c.hook.Limit <= 0 {
			c.hook.Limit = hookLimit
		}
		task.Pipeline.Claim, task.Pipeline.Until = c.claim, now.Add(c.hook.Limit+hookSlack)
		t.Add(pipelineIndex, id, store.Micros(task.Pipeline.Until))
		c.task, won = task, true
		return s.put(t, &task, now)
	})
	if errors.Is(err, store.ErrDamaged) {
		return call{}, false, nil
	}
	return c, won, err
}

// call runs a command and notes its end, also while this gateway stops: what was begun is known to have ended then.
func (s *Service) call(ctx context.Context, c call) {
	limited, cancel := context.WithTimeout(ctx, c.hook.Limit)
	failed := s.cfg.Call(limited, c.hook, c.task)
	late := limited.Err() != nil
	cancel()
	why, words := Reason(""), ""
	switch {
	case failed == nil:
	case ctx.Err() != nil:
		why = WhyInterrupted
	case late:
		why = WhyTooLong
	default:
		why, words = WhyFailed, failed.Error()
	}
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	err := store.Update(ending, s.cfg.DB, func(t *store.Txn) error {
		task, ok, err := store.Get[Task](t, taskKey(c.task.ID))
		if err != nil || !ok || task.Pipeline == nil || task.Pipeline.Claim != c.claim {
			return err // a person was faster
		}
		return s.hookEnded(t, &task, c.hook.Event, why, words)
	})
	if err != nil {
		s.cfg.Logger.Warn("the end of a hook could not be noted; it is given up later", "task", c.task.ID, "err", err)
	}
}
