package claude

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"drawbridge/runner"
)

// turn is a Turn that runs. session.mu guards it.
type turn struct {
	id          string
	open        map[string]bool // messages of ours that the program is not done with
	done        chan struct{}   // closed when the program is idle and done with all of them
	over        bool            // done is closed
	abort       chan string     // why the turn is to be ended, for people
	interrupted bool            // nothing may begin any more
	stopping    chan struct{}   // closed once the program has taken the interrupt, or could not
	last        *result
	usage       runner.Usage
	plan        string // that it ends with
}

// interruptTime is how long the program may take to answer that it ends a turn, and then again to end it. Ending a running
// command takes 50 ms.
const interruptTime = 5 * time.Second

// prompt is the message for an input. The text is sent as it is; attached files are named below it.
func (c *conn) prompt(in runner.Input) prompt {
	text := in.Text
	if len(in.Files) > 0 {
		var b strings.Builder
		b.WriteString("\n\nAttached files, which you can read:")
		for _, f := range in.Files {
			fmt.Fprintf(&b, "\n- %s: %s", f.Name, f.Path)
			c.session.attached[f.Path] = true
		}
		text += b.String()
	}
	return prompt{Type: "user", UUID: newID(), Composed: true, Message: promptMessage{Role: "user", Content: text}}
}

// turn sends a prompt and waits for the end of it.
func (c *conn) turn(ctx context.Context, in runner.Input) (runner.Result, error) {
	c.session.mu.Lock()
	p := c.prompt(in)
	c.session.mu.Unlock()
	return c.follow(ctx, c.newTurn(in.Turn, p.UUID), &p)
}

// newTurn makes a turn the running one. It waits for the end of open.
func (c *conn) newTurn(id, open string) *turn {
	t := &turn{
		id: id, open: map[string]bool{open: true}, done: make(chan struct{}), abort: make(chan string, 1), stopping: make(chan struct{}),
	}
	c.session.mu.Lock()
	defer c.session.mu.Unlock()
	c.active = t
	c.turning.Do(func() { close(c.turned) })
	return t
}

// follow sends the prompt of a turn, if it has one, and waits for the end of the turn.
func (c *conn) follow(ctx context.Context, t *turn, p *prompt) (runner.Result, error) {
	s := c.session
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		c.endItems(t)
		c.active = nil
	}()
	if p != nil {
		if err := c.peer.Send(*p); err != nil {
			return runner.Result{}, c.crashed(err)
		}
	}
	var reason string
	select {
	case <-t.done:
		s.mu.Lock()
		defer s.mu.Unlock()
		return t.result(), nil
	case <-c.gone:
		return runner.Result{}, c.crashed(c.cause)
	case reason = <-t.abort:
	case <-ctx.Done():
	}
	c.interrupt(t)
	s.mu.Lock()
	defer s.mu.Unlock()
	if reason != "" {
		return runner.Result{Outcome: runner.Broken, Reason: reason, Usage: t.usage}, nil
	}
	return runner.Result{Outcome: runner.Interrupted, Usage: t.usage}, nil
}

// interrupt ends a turn, its commands, and what runs in the background. A program that does not end it is ended itself.
func (c *conn) interrupt(t *turn) {
	s := c.session
	s.mu.Lock()
	t.interrupted = true
	c.withdraw()
	tasks := make([]string, 0, len(c.tasks))
	for id := range c.tasks {
		tasks = append(tasks, id)
	}
	s.mu.Unlock()

	// Not bound by the turn's context, which has ended.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.life), s.runtime.interruptTime)
	defer cancel()
	err := c.peer.Call(ctx, "interrupt", map[string]bool{"cancel_queued": true}, nil)
	for _, id := range tasks {
		if err := c.peer.Call(ctx, "stop_task", map[string]string{"task_id": id}, nil); err != nil {
			s.logger.Debug("background task not stopped", "runtime", s.runtime.config.Name, "err", err)
		}
	}
	close(t.stopping)
	if err == nil {
		timer := time.NewTimer(s.runtime.interruptTime)
		defer timer.Stop()
		select {
		case <-t.done:
			return
		case <-c.gone:
			return
		case <-timer.C:
		}
	}
	s.logger.Warn("program does not end its turn, so it is ended", "runtime", s.runtime.config.Name, "err", err)
	c.stop()
}

// crashed is the error of a turn whose process ended under it.
func (c *conn) crashed(err error) error {
	c.stop()
	return explainEnd("", errors.Join(err, c.cause))
}

// settle ends the turn when the program is idle and done with what it was sent. mu is held.
func (c *conn) settle() {
	if t := c.current(); t != nil && c.state == "idle" && len(t.open) == 0 {
		t.over = true
		c.endItems(t)
		close(t.done)
	}
}

// resulted takes the end of a turn of the program: of ours, or of one that it began by itself. mu is held.
func (c *conn) resulted(f frame) {
	r := f.result
	if !c.greeted {
		c.failed = strings.Join(append(r.Errors, r.Result), "\n") // the process ends now
		return
	}
	u := runner.Usage{}
	if r.Usage != nil {
		u.Input, u.Cached, u.Output = r.Usage.Input+r.Usage.Created+r.Usage.Cached, r.Usage.Cached, r.Usage.Output
	}
	for _, m := range r.Models {
		u.Window = max(u.Window, m.Window)
	}
	u.Context = c.lane.context
	u.Cost = c.session.cost(r.Cost)
	t := c.current()
	c.session.emit(runner.Event{Kind: runner.UsageUpdated, Turn: c.turnID(), Usage: &u})
	if t == nil {
		return
	}
	t.usage = t.usage.Plus(u)
	t.last = &r
	delete(t.open, r.Message0)
	delete(t.open, takenUp)
	for _, id := range r.Messages {
		delete(t.open, id)
	}
	c.settle()
}

// cost is what was paid since the program spoke of it last, in millionths of a dollar. mu is held.
func (s *session) cost(total float64) int64 {
	if total <= 0 {
		return 0
	}
	since := total - s.paid
	if !s.paidKnown || since < 0 {
		since = 0
	}
	s.paid, s.paidKnown = total, true
	return int64(math.Round(since * 1e6))
}

// result is how the turn ended. mu is held.
func (t *turn) result() runner.Result {
	res := runner.Result{Outcome: runner.Completed, Usage: t.usage, Plan: t.plan}
	switch r := t.last; {
	case r == nil:
		res.Outcome, res.Reason = runner.Broken, "The program took the prompt and did nothing about it."
	case r.Terminal == terminalDeferred && r.Deferred != nil:
		res.Outcome, res.Deferred = runner.Interrupted, r.Deferred.ID
	case r.Stopped:
		res.Outcome, res.Reason = runner.Broken, "The program's reviewer gave no verdict, so it stopped the turn."
	case strings.HasPrefix(r.Terminal, "aborted"):
		res.Outcome, res.Reason = runner.Interrupted, "The program stopped the turn."
	case r.IsError:
		res.Outcome, res.Reason = runner.Broken, r.explain()
	}
	return res
}
