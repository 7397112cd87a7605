package task

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"drawbridge/approvals"
	"drawbridge/bridge"
	"drawbridge/internal/store"
	"drawbridge/policy"
)

const (
	lookAgain = 30 * time.Second    // how often it is looked whether a running task's prompt still stands
	waitAgain = 5 * time.Second     // how often a pending task is tried that had no place, or no host
	hostMost  = 24 * time.Hour      // how long a pending task waits for its host
	onTime    = time.Minute         // a planned time that was missed by less is in time
	keep      = 30 * 24 * time.Hour // how long tasks that have ended are kept
	most      = 100                 // of an index in one look
	maxScore  = 1<<53 - 1
)

// Config is what a Service needs. Zero durations and numbers get the value in parentheses.
type Config struct {
	DB        store.DB
	Chats     *bridge.Chats
	Approvals *approvals.Service
	// Next is shown what is not a task's own: everything but what lanes do.
	Next bridge.Projection
	// Notify joins the commit in which something happens that people are told. It may run several times for one commit.
	Notify func(t *store.Txn, e Event) error
	// May reports whether a person (bridge.Prompt.By) may have work done in a chat, at this moment.
	May    func(t *store.Txn, chat, by string) (bool, error)
	Logger *slog.Logger

	Pace    time.Duration // how often the store is read without a hint (1 s)
	PerHost int           // tasks of one host that are in progress at the same time (4)
	Zone    string        // for chats that chose none (UTC)

	// Hooks are the owner's, in the order in which those of one event are run.
	Hooks []Hook
	// Call runs the command of a hook and returns when it has ended, at the latest soon after ctx has.
	Call func(ctx context.Context, h Hook, k Task) error
}

// Service is the gateway's: it keeps schedules and tasks, and Run starts what is due. It may run in one gateway or in
// several. Methods that take a Txn join the caller's transaction, so that a change and what led to it are one commit.
// It stands between bridge.Follower and the messenger's projection.
type Service struct{ cfg Config }

var (
	_ bridge.Projection = (*Service)(nil)
	_ bridge.Omitter    = (*Service)(nil)
)

// New returns a service that starts nothing until Run.
func New(c Config) *Service {
	c.Pace = cmp.Or(c.Pace, time.Second)
	c.PerHost = cmp.Or(c.PerHost, 4)
	c.Zone = cmp.Or(c.Zone, "UTC")
	if c.Notify == nil {
		c.Notify = func(*store.Txn, Event) error { return nil }
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return &Service{cfg: c}
}

// EventKind names what an Event tells.
type EventKind string

// The kinds of events.
const (
	Finished   EventKind = "finished"    // a run has ended: Task is in review, done, blocked or cancelled
	Omitted    EventKind = "omitted"     // planned times of Schedule were not fired
	Halted     EventKind = "halted"      // Schedule was paused by itself, or a task could not begin; Why says so
	Retried    EventKind = "retried"     // a step of Task is done once more, writing allowed
	FollowedUp EventKind = "followed-up" // Made follow up Task; Left more were proposed and not made, or Why says why there are none
	Hooked     EventKind = "hooked"      // a hook of Task has Words for the chat
	HookFailed EventKind = "hook-failed" // Hook of Task did not end well: Why, Words
)

// Event is something that people are told. Task or Schedule is set.
type Event struct {
	Kind     EventKind
	Chat     string
	Task     *Task
	Schedule *Schedule
	Why      Reason
	Words    string
	Hook     HookEvent
	Made     []Task
	Left     int
	LeftWhy  Reason // empty where only MaxFollowUps is why
	// Omission is set with Omitted.
	Omission *Omission
}

// Omission is a range of planned times that were not fired.
type Omission struct {
	From, To time.Time // the first and the last of them
	Count    int
	Why      Reason
	// Repeated says that the times before these were omitted for the same reason, so that nothing new is told.
	Repeated bool
}

// Settings are what a chat has chosen for its work without anybody in front of it, under settingsKey.
type Settings struct {
	V    int    `json:"v"`
	Zone string `json:"zone,omitempty"` // a name of the IANA database; empty for the configured one
	// Card is the chat that is asked, empty for this one: the owner's private chat, say.
	Card string `json:"card,omitempty"`
	// Patience is how long a person has for an ask of a task; zero for the usual deadline.
	Patience time.Duration `json:"patience,omitempty"`
	Quiet    *bridge.Quiet `json:"quiet,omitempty"`
}

// Settings returns what a chat has chosen; Zone is always set.
func (s *Service) Settings(t *store.Txn, chat string) (Settings, error) {
	set, _, err := store.Get[Settings](t, settingsKey(chat))
	if err != nil && !errors.Is(err, store.ErrDamaged) {
		return Settings{}, fmt.Errorf("task: settings of %s: %w", chat, err)
	}
	set.Zone = cmp.Or(set.Zone, s.cfg.Zone)
	if set.Quiet != nil {
		set.Quiet.Zone = set.Zone
	}
	return set, nil
}

// SetSettings changes what a chat has chosen. Schedules keep the zone that they were made in. ErrZone.
func (s *Service) SetSettings(t *store.Txn, chat string, set Settings) error {
	if _, err := Zone(set.Zone); err != nil {
		return err
	}
	if q := set.Quiet; q != nil && (q.From < 0 || q.To < 0 || q.From >= 24*60 || q.To >= 24*60) {
		return ErrSpec
	}
	set.V = Version
	set.Patience = max(0, set.Patience)
	return store.Put(t, settingsKey(chat), set)
}

// ProjectSettings are what an owner has chosen for the tasks of a project, under projectKey.
type ProjectSettings struct {
	V         int       `json:"v"`
	Execution Execution `json:"execution,omitempty"`
	// NoFollowUps switches follow-ups off.
	NoFollowUps bool `json:"no_follow_ups,omitempty"`
}

// ProjectSettings returns what was chosen for a project.
func (s *Service) ProjectSettings(t *store.Txn, host, name string) (ProjectSettings, error) {
	p, _, err := store.Get[ProjectSettings](t, projectKey(host, name))
	if errors.Is(err, store.ErrDamaged) {
		return ProjectSettings{}, nil
	}
	return p, err
}

// SetProjectSettings changes what was chosen for a project. It is read when a run begins.
func (s *Service) SetProjectSettings(t *store.Txn, host, name string, p ProjectSettings) error {
	p.V = Version
	return store.Put(t, projectKey(host, name), p)
}

// execution is what holds for a task: its own, else its project's, else review.
func (s *Service) execution(t *store.Txn, task Task) (Execution, error) {
	e := task.Execution
	if e == "" {
		p, err := s.ProjectSettings(t, task.Host, task.Project)
		if err != nil {
			return "", err
		}
		e = p.Execution
	}
	if e != Auto {
		e = Review
	}
	return e, nil
}

// prepared completes what somebody wants done in a chat, and says why it can't be. The mode that the work is made under
// is the chat's, or a stricter one that was chosen. It is the only place in which a mode is given to new work.
func (s *Service) prepared(t *store.Txn, chat string, w Work) (Work, error) {
	c, err := s.cfg.Chats.Keep(t, chat)
	if err != nil {
		return Work{}, err
	}
	if w.Mode == "" {
		w.Mode = c.Mode
	}
	switch {
	case len(w.Steps) == 0:
		return Work{}, ErrEmpty
	case len(w.Steps) > MaxSteps:
		return Work{}, ErrTooLong
	case !w.Mode.Valid():
		return Work{}, fmt.Errorf("task: new work of %s: %w", chat, policy.ErrUnknownMode)
	case w.Mode.Looser(c.Mode):
		return Work{}, ErrMode
	case c.Project == "":
		return Work{}, bridge.ErrNoProject
	}
	for _, step := range w.Steps {
		if step == "" {
			return Work{}, ErrEmpty
		}
		if len(step) > MaxText {
			return Work{}, ErrTooLong
		}
	}
	if w.InChat || w.Project == "" {
		w.Host, w.Project = c.Host, c.Project
	}
	if w.InChat || w.Runtime == "" {
		w.Runtime = c.Runtime
	}
	if w.Title == "" {
		w.Title = w.Steps[0]
	}
	w.Title = title(w.Title)
	w.Budget = max(0, w.Budget)
	if w.Runtime == "" {
		return Work{}, bridge.ErrNoRuntime
	}
	_, err = s.cfg.Chats.Offered(t, w.Host, w.Project, w.Runtime)
	return w, err
}

// Run starts what is due until ctx ends.
func (s *Service) Run(ctx context.Context) error {
	hints, err := s.cfg.DB.Listen(ctx, topic)
	if err != nil {
		return fmt.Errorf("task: listen: %w", err)
	}
	tick := time.NewTicker(s.cfg.Pace)
	defer tick.Stop()
	slow := time.NewTicker(10 * time.Minute)
	defer slow.Stop()
	for {
		if err := s.Step(ctx); err != nil && ctx.Err() == nil {
			s.cfg.Logger.Warn("cannot look for what is due; trying again", "err", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-hints:
		case <-tick.C:
		case <-slow.C:
			if err := s.prune(ctx); err != nil && ctx.Err() == nil {
				s.cfg.Logger.Warn("housekeeping failed; trying again", "err", err)
			}
		}
	}
}

// Step is one look at what is due: it fires schedules, begins tasks that wait, and ends those whose prompt is gone. Each is
// a commit of its own.
func (s *Service) Step(ctx context.Context) error {
	return errors.Join(
		s.each(ctx, dueIndex, s.fire),
		s.each(ctx, pendingIndex, s.begin),
		s.each(ctx, runningIndex, s.missing),
		s.each(ctx, pipelineIndex, s.advance),
	)
}

// each calls do for every member of an index whose time has come. One that fails does not keep the others from being done.
func (s *Service) each(ctx context.Context, index string, do func(t *store.Txn, id string) error) error {
	now, _, err := s.cfg.DB.Read(ctx)
	if err != nil {
		return err
	}
	items, err := s.cfg.DB.Range(ctx, index, 0, store.Micros(now), most)
	if err != nil {
		return err
	}
	for _, it := range items {
		err := store.Update(ctx, s.cfg.DB, func(t *store.Txn) error { return do(t, it.Member) })
		switch {
		case err == nil:
		case ctx.Err() != nil, errors.Is(err, store.ErrUnavailable), errors.Is(err, store.ErrClosed):
			return err
		default:
			s.cfg.Logger.Warn("something that is due could not be done; trying again", "index", index, "member", it.Member, "err", err)
			later := func(t *store.Txn) error { t.Add(index, it.Member, store.Micros(now.Add(waitAgain))); return nil }
			if err := store.Update(ctx, s.cfg.DB, later); err != nil {
				return err
			}
		}
	}
	return nil
}
