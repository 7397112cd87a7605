package claude

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"

	"drawbridge/policy"
	"drawbridge/runner"
)

// hook answers the program's PreToolUse hook: it is asked before every call, in every mode, by the sub-agents too, and
// may take as long as a person does.
func (c *conn) hook(ctx context.Context, h hookCall) hookAnswer {
	s := c.session
	id, name := h.Input.Tool, h.Input.Name
	if id == "" {
		id = h.Tool
	}
	c.await(ctx)
	s.mu.Lock()
	k := c.begin(id, name, h.Input.Input)
	k.asked, k.agent = true, h.Input.Agent
	s.mu.Unlock()

	switch name {
	case askTool, planTool:
		c.clear(k)
		return hookAnswer{} // the program's own question follows, with what it adds to the input
	}
	if name == proposeTool && c.hosts {
		return c.propose(ctx, id, k, h.Input.Input)
	}
	if c.scratch(name, h.Input.Input) {
		s.mu.Lock()
		k.passed, k.cleared = string(h.Input.Input), true
		s.mu.Unlock()
		return decided("allow", "")
	}
	q, expected := c.question(name, h.Input.Input)
	if left, refused := c.review(ctx, id, k, q); left {
		c.clear(k)
		return hookAnswer{} // the program's reviewer said yes, so its mode auto lets it run
	} else if refused {
		// A person decides, and no other reviewer: what one of them refused is nobody else's to allow.
		q.Categories = append(slices.Clone(q.Categories), policy.Unknown)
	}
	s.mu.Lock()
	c.hooks++
	k.hooked = c.hooks
	s.mu.Unlock()
	a := c.ask(ctx, id, k, q)
	s.mu.Lock()
	defer s.mu.Unlock()
	k.hooked = 0
	switch {
	case a.Decision == runner.Deferred:
		return decided("defer", "") // see defer.go
	case !a.Allows():
		return decided("deny", a.Describe())
	}
	k.cleared, k.passed, k.expected, k.person = true, string(h.Input.Input), expected, a.Source == runner.SourceUser
	return decided("allow", "")
}

// clear notes that a call may run.
func (c *conn) clear(k *call) {
	c.session.mu.Lock()
	defer c.session.mu.Unlock()
	k.cleared = true
}

func decided(decision, reason string) hookAnswer {
	return hookAnswer{Output: &hookOutput{Event: "PreToolUse", Decision: decision, Reason: reason}}
}

// permission answers the program's own permission question: what the hook left to it, and what rules of the machine's
// administrator ask for.
func (c *conn) permission(ctx context.Context, raw json.RawMessage) permissionAnswer {
	var p permissionCall
	if err := json.Unmarshal(raw, &p); err != nil {
		return permissionAnswer{Behavior: "deny", Message: "This could not be understood, so it is refused."}
	}
	s := c.session
	c.await(ctx)
	s.mu.Lock()
	k := c.begin(p.Tool, p.Name, p.Input)
	passed := k.passed != "" && sameJSON(k.passed, string(p.Input))
	// Rules and hooks of the machine's administrator may want a person where the table does not.
	managed := passed && !k.person && (p.Reason == "rule" || p.Reason == "hook")
	k.passed = "" // once
	k.asked = true
	k.cleared = k.cleared || p.Name == askTool || p.Name == planTool
	s.mu.Unlock()

	switch {
	case passed && !managed:
		return permissionAnswer{Behavior: "allow", Input: p.Input}
	case p.Name == proposeTool && c.hosts:
		return permissionAnswer{Behavior: "deny", Message: "Nobody was asked about this, so it is refused."}
	case p.Name == askTool:
		return c.askPerson(ctx, p, k)
	case p.Name == planTool:
		return c.leavePlan(p, k)
	}
	q, expected := c.question(p.Name, p.Input)
	if managed {
		q.Categories = append(slices.Clone(q.Categories), policy.Unknown)
	}
	a := c.ask(ctx, p.Tool, k, q)
	if !a.Allows() {
		return permissionAnswer{Behavior: "deny", Message: a.Describe()}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	k.cleared, k.expected = true, expected
	return permissionAnswer{Behavior: "allow", Input: p.Input}
}

// sameJSON reports whether two texts are the same value; the program may write its fields in another order.
func sameJSON(a, b string) bool {
	var x, y any
	if json.Unmarshal([]byte(a), &x) != nil || json.Unmarshal([]byte(b), &y) != nil {
		return false
	}
	p, err := json.Marshal(x)
	q, err2 := json.Marshal(y)
	return err == nil && err2 == nil && bytes.Equal(p, q)
}

// ask puts a question to the gate. The question is withdrawn when the program takes it back, when its turn is
// interrupted, and when the session ends. Whatever is no clear yes is a no.
func (c *conn) ask(ctx context.Context, id string, k *call, q runner.Question) runner.Answer {
	s := c.session
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.life, cancel)()
	s.mu.Lock()
	t := c.current()
	q.Item, q.Background = id, t == nil
	if t != nil {
		q.Turn = t.id
	}
	k.withdraw = append(k.withdraw, cancel)
	closed := s.closed || c.deferring || t != nil && t.interrupted
	s.mu.Unlock()

	a := runner.Answer{Decision: runner.Withdrawn}
	if !closed {
		var err error
		a, err = s.options.Gate.Ask(ctx, q)
		if err == nil && a.Allows() && k.item.Kind == runner.ItemCommand {
			err = s.runtime.startup() // the command's shell reads them first, and the card does not show them
		}
		if err != nil && ctx.Err() == nil {
			s.logger.Warn("gate failed", "runtime", s.runtime.config.Name, "err", err)
			a = runner.Answer{Decision: runner.Denied, Source: runner.SourceRuntime}
		}
	}
	s.mu.Lock()
	if ctx.Err() != nil || t != nil && t.interrupted {
		a = runner.Answer{Decision: runner.Withdrawn} // also an allowance that came with the interrupt
	}
	if !a.Allows() {
		k.refusal = a.Describe()
	}
	s.mu.Unlock()
	if t != nil && a.Decision == runner.Withdrawn {
		c.holdBack(t)
	}
	return a
}

// holdBack waits, before the program is told of a withdrawal, until it has taken the interrupt that is the reason for it:
// it would go on with the turn.
func (c *conn) holdBack(t *turn) {
	c.session.mu.Lock()
	interrupted := t.interrupted
	c.session.mu.Unlock()
	if !interrupted {
		return
	}
	select {
	case <-t.stopping:
	case <-c.gone:
	case <-c.peer.Over():
	}
}

// withdraw takes back every open question. mu is held.
func (c *conn) withdraw() {
	for _, k := range c.calls {
		for _, cancel := range k.withdraw {
			cancel()
		}
		k.withdraw = nil
	}
}
