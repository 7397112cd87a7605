package codex

import (
	"cmp"
	"encoding/json"
	"time"

	"drawbridge/runner"
)

// hear takes a notification about one of the session's threads. It reports whether it knows the method. It must not call
// codex, whose answers wait behind it.
func (s *session) hear(method string, r route, params json.RawMessage) (known bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch method {
	case "turn/started":
		return true, with(params, s.turnStarted)
	case "turn/completed":
		return true, with(params, s.turnCompleted)
	case "item/started":
		return true, with(params, s.itemStarted)
	case "item/completed":
		return true, with(params, s.itemCompleted)
	case "item/agentMessage/delta", "item/plan/delta", "item/reasoning/summaryTextDelta", "item/reasoning/textDelta":
		return true, with(params, s.delta)
	case "item/reasoning/summaryPartAdded":
		return true, with(params, s.summaryPart)
	case "thread/settings/updated":
		if r.ThreadID != s.thread {
			return true, nil // a sub-agent has its parent's
		}
		return true, with(params, s.settings)
	case "thread/tokenUsage/updated":
		return true, with(params, s.used)
	case "turn/plan/updated":
		return true, with(params, s.plan)
	case "error":
		return true, with(params, func(f errorFrame) { s.troubled(r, f) })
	case "item/autoApprovalReview/started", "item/autoApprovalReview/completed":
		return true, with(params, s.review)
	case "warning", "guardianWarning":
		return true, with(params, func(f struct {
			Message string `json:"message"`
		},
		) {
			s.runtime.config.Logger.Debug("codex warns", "message", f.Message)
			if method == "guardianWarning" {
				s.queue.emit(runner.Event{Kind: runner.Notice, Turn: s.owner(r.TurnID), Text: f.Message})
			}
		})
	case "model/rerouted":
		s.queue.emit(runner.Event{Kind: runner.Notice, Turn: s.owner(r.TurnID), Text: "Codex was given another model than the chosen one."})
		return true, nil
	case "thread/started", "thread/status/changed", "thread/compacted", "deprecationNotice", "thread/closed", "thread/name/updated":
		return true, nil
	}
	return false, nil
}

// with decodes a frame for whoever takes it.
func with[F any](params json.RawMessage, take func(F)) error {
	var f F
	if err := json.Unmarshal(params, &f); err != nil {
		return err
	}
	take(f)
	return nil
}

// owner is our turn that a turn of codex belongs to; empty if none of ours.
func (s *session) owner(codexTurn string) string { return s.turns[codexTurn] }

func (s *session) turnStarted(f turnFrame) {
	if f.ThreadID != s.thread {
		a := s.agent(f.ThreadID, "")
		a.turn, a.owner = f.Turn.ID, s.owner(f.Turn.RootTurnID)
		s.turns[f.Turn.ID] = a.owner
		if (s.stopped[f.Turn.RootTurnID] || s.strays[f.Turn.RootTurnID]) && !s.closed {
			s.stopped[f.Turn.ID] = true
			s.cutOff(threadTurn{f.ThreadID, f.Turn.ID})
		}
		return
	}
	if s.turn != nil && s.turn.id == "" && s.turn.sent {
		s.started(s.turn, f.Turn.ID)
		return
	}
	if s.owner(f.Turn.ID) != "" {
		return
	}
	if s.closed {
		return // what runs is ended anyway
	}
	// A turn that nobody asked for would run under the policy of the last one.
	s.runtime.config.Logger.Warn("codex began a turn by itself, which is stopped", "thread", s.thread)
	s.strays[f.Turn.ID], s.turns[f.Turn.ID] = true, ""
	s.cutOff(threadTurn{s.thread, f.Turn.ID})
}

// cutOff ends a turn of codex that may not go on. The lock is held, and the session not closed.
func (s *session) cutOff(t threadTurn) {
	srv := s.server
	s.asks.Go(func() { s.cut(srv, t) })
}

func (s *session) turnCompleted(f turnFrame) {
	if f.ThreadID != s.thread {
		s.endAgent(f.ThreadID)
		return
	}
	t := s.turn
	if t == nil || t.id != f.Turn.ID {
		return
	}
	select {
	case t.ended <- f:
	default:
	}
}

// agent is the sub-agent of a thread, announced the first time.
func (s *session) agent(thread, title string) *agent {
	if a := s.agents[thread]; a != nil {
		return a
	}
	if title == "" {
		title = "Sub-agent"
	}
	a := &agent{title: title, started: time.Now()}
	if s.turn != nil {
		a.owner = s.turn.input.Turn
	}
	s.agents[thread] = a
	s.queue.emit(runner.Event{Kind: runner.BackgroundEvent, Turn: a.owner, Background: &runner.Background{
		ID: thread, Title: a.title, Started: a.started,
	}})
	return a
}

// endAgent tells the end of a sub-agent's work. It may be given more.
func (s *session) endAgent(thread string) {
	a := s.agents[thread]
	if a == nil {
		return
	}
	delete(s.agents, thread)
	s.past[thread] = true
	srv := s.server
	alive := srv != nil && srv.alive() && !s.closed
	s.closeItems(func(i *item) bool {
		return i.thread == thread && (!alive || !i.background && i.event.Kind != runner.ItemCommand)
	})
	if alive {
		s.asks.Go(func() { s.outlive(srv, thread) })
	}
	s.queue.emit(runner.Event{Kind: runner.BackgroundEvent, Turn: a.owner, Background: &runner.Background{
		ID: thread, Title: a.title, Started: a.started, Ended: true,
	}})
}

// outlive sees which commands of a sub-agent outlive its work, as settle does for a turn's, and ends the items of the others.
func (s *session) outlive(srv *server, thread string) {
	of := func(i *item) bool { return i.thread == thread }
	s.settleItems(s.context, srv, thread, of)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closeItems(func(i *item) bool { return of(i) && !i.background && s.agents[thread] == nil })
}

// settings takes an echo. One that is looser than what the running turn is held to ends the turn.
func (s *session) settings(f settingsUpdated) {
	s.echo, s.tier = f.echo(), orEmpty(f.ThreadSettings.Tier)
	if m := f.ThreadSettings.Model; m != "" {
		s.model = m
	}
	close(s.echoed)
	s.echoed = make(chan struct{})
	if t := s.turn; t != nil && t.sent && t.held.compare(s.echo, s.options.Folder) == looser {
		s.runtime.config.Logger.Warn("codex loosened a running turn, which is stopped", "echo", s.echo.describe())
		t.loose = s.echo.describe()
		t.abort()
	}
}

func (s *session) used(f tokenUsage) {
	u, t := f.TokenUsage, s.turn
	if t == nil || f.ThreadID != s.thread && s.owner(f.TurnID) != t.input.Turn {
		return
	}
	t.usage.Input += u.Last.Input
	t.usage.Cached += u.Last.Cached
	t.usage.Output += u.Last.Output
	if f.ThreadID == s.thread {
		t.usage.Context, t.usage.Window = u.Last.Total, u.Window
	}
	now := t.usage
	s.queue.emit(runner.Event{Kind: runner.UsageUpdated, Turn: t.input.Turn, Usage: &now})
}

func (s *session) plan(f planUpdated) {
	if f.ThreadID != s.thread {
		return
	}
	steps := make([]runner.Step, 0, len(f.Plan))
	for _, p := range f.Plan {
		steps = append(steps, runner.Step{Text: p.Step, Done: p.Status == "completed", Now: p.Status == "inProgress"})
	}
	s.queue.emit(runner.Event{Kind: runner.PlanUpdated, Turn: s.owner(f.TurnID), Plan: steps})
}

// troubled tells an error that codex tries to get over; the last one becomes the turn's result.
func (s *session) troubled(r route, f errorFrame) {
	t := s.turn
	if t == nil || s.owner(r.TurnID) != t.input.Turn {
		return
	}
	if r.ThreadID == s.thread {
		t.last = &f.Error
	}
	if f.WillRetry {
		s.queue.emit(runner.Event{Kind: runner.Notice, Turn: t.input.Turn, Text: "Codex tries again: " + f.Error.message()})
	}
	if f.WillRetry && f.Error.hopeless() && t.hopeless == "" {
		// A login may be renewed between the first two; what is refused then stays so, and codex would try for many seconds.
		if t.refused++; t.refused == 2 {
			e := f.Error
			e.Message = cmp.Or(e.Details, e.Message)
			t.hopeless = e.words()
			t.abort()
		}
	}
}
