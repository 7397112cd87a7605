package runnertest

import (
	"context"
	"path/filepath"
	"strings"
	"sync"

	"drawbridge/policy"
	"drawbridge/runner"
)

// withdrawsAll interrupts a turn with two questions, which are then both allowed too late.
func (e *exam) withdrawsAll() {
	if !e.can(e.parallel, runner.WhyParallel) {
		return
	}
	asked, withdrawn := make(chan struct{}, 2), make(chan struct{}, 2)
	l := e.open(func(ctx context.Context, q runner.Question) (runner.Answer, error) {
		asked <- struct{}{}
		<-ctx.Done()
		withdrawn <- struct{}{}
		return allow(ctx, q)
	})
	ctx, cancel := context.WithCancel(e.Context())
	defer cancel()
	done := l.begin(ctx, "together touch first || touch second", "say unreached")
	for range 2 {
		await(e, asked, "a question")
	}
	cancel()
	for range 2 {
		await(e, withdrawn, "the withdrawal of a question")
	}
	l.ends(done, runner.Interrupted)
	if e.exists("first") || e.exists("second") {
		e.Errorf("something was run although its question was withdrawn")
	}
	l.ordered()
	l.turn("say still here")
}

// remembersNothing allows a command for the session, then by a grant of ours, and then refuses it: each time the runtime
// has to ask, also when it was resumed.
func (e *exam) remembersNothing() {
	var mu sync.Mutex
	asked := 0
	answer := func(ctx context.Context, q runner.Question) (runner.Answer, error) {
		mu.Lock()
		defer mu.Unlock()
		switch asked++; asked {
		case 1:
			return runner.Answer{Decision: runner.Allowed, Action: runner.ActionAllowProject, Source: runner.SourceUser, By: "Ada"}, nil
		case 2:
			return runner.Answer{Decision: runner.Allowed, Action: runner.ActionAllowSession, Source: runner.SourceGrant}, nil
		}
		return refuse(ctx, q)
	}
	l := e.open(answer)
	const line = "run echo once >> ran"
	l.turn(line)
	l.turn(line, line)
	l.close()
	l = e.resume(e.restart(), l.ResumeToken(), answer)
	l.turn(line)
	if asked != 4 {
		e.Errorf("%d questions for a command that was to be run four times", asked)
	}
	e.holds("ran", "once\nonce\n")
}

// overdue is the denial of a question for which nobody had time.
func (e *exam) overdue() {
	l := e.open(func(context.Context, runner.Question) (runner.Answer, error) {
		return runner.Answer{Decision: runner.Denied, Source: runner.SourceTimeout}, nil
	})
	l.turn("run touch ran", "write a.txt text", "say after it")
	if e.exists("ran") || e.exists("a.txt") {
		e.Errorf("something was done although nobody answered")
	}
	if said := l.said(); strings.Count(said, "Nobody answered in time") != 2 || !strings.Contains(said, "after it") {
		e.Errorf("the agent was not told that nobody answered, or did not go on; it said %q", said)
	}
}

// queue runs turns one after another, as a chat's queue does.
func (e *exam) queue() {
	l := e.open(allow)
	for _, word := range []string{"one", "two", "three"} {
		l.turn("say "+word, "run echo "+word+" >> ran")
	}
	e.holds("ran", "one\ntwo\nthree\n")
	l.ordered()
	events, _ := l.seen()
	last := ""
	for n, ev := range events {
		if ev.Item == nil {
			continue
		}
		if ev.Turn < last {
			e.Errorf("event %d, %s, belongs to %s, but came after the beginning of %s", n, ev.Kind, ev.Turn, last)
		}
		last = ev.Turn
	}
	l.turn("turns")
	if !strings.Contains(l.said(), "turn 4") {
		e.Errorf("the conversation does not have all turns; the agent said %q", l.said())
	}
}

func (e *exam) steers() {
	if !e.capability().Steer {
		return // probe demands the reason
	}
	asked, leave := make(chan struct{}, 1), make(chan struct{})
	l := e.open(func(ctx context.Context, q runner.Question) (runner.Answer, error) {
		asked <- struct{}{}
		<-leave
		return allow(ctx, q)
	})
	s, ok := l.Session.(runner.Steerer)
	if !ok {
		e.Fatalf("Probe says that turns can be steered, and the session is no Steerer")
	}
	done := l.begin(e.Context(), "run touch ran")
	await(e, asked, "the question")
	if took, err := s.Steer(e.Context(), runner.Input{Turn: "turn1", Text: "say steered words"}); !took || err != nil {
		e.Errorf("steer: %v, %v", took, err)
	}
	close(leave)
	l.ends(done, runner.Completed)
	if !e.exists("ran") || !strings.Contains(l.said(), "steered words") {
		e.Errorf("the command was run: %v; the agent said %q", e.exists("ran"), l.said())
	}
	l.ordered()
	if took, err := s.Steer(e.Context(), runner.Input{Turn: "none", Text: "say into nothing"}); took || err != nil {
		e.Errorf("steer without a turn: %v, %v", took, err)
	}
	l.turn("say still here")
	if strings.Contains(l.said(), "into nothing") {
		e.Errorf("input that was not taken came up all the same")
	}
}

// lowered lowers the mode while a turn runs: what is asked next is answered by what holds then.
func (e *exam) lowered() {
	c := e.capability()
	if c.Modes[policy.FullAccess] != policy.FullAccess {
		return // probe demands the reason
	}
	e.lowersTo(runner.Policy{Mode: policy.ApprovalRequired, Interaction: policy.Default}, "strict")
	if c.Plan {
		e.lowersTo(runner.Policy{Mode: policy.FullAccess, Interaction: policy.Plan}, "plan")
	}
}

// lowersTo lowers the mode at the first question of a turn. A turn that cannot be tightened is interrupted, as the bridge
// does it.
func (e *exam) lowersTo(lower runner.Policy, file string) {
	ctx, interrupt := context.WithCancel(e.Context())
	defer interrupt()
	l := e.open(refuse)
	var once sync.Once
	l.after = func(policy.Verdict) {
		once.Do(func() {
			l.mu.Lock()
			l.policy = lower
			l.mu.Unlock()
			if s, ok := l.Session.(runner.PolicySetter); ok {
				if held, err := s.SetPolicy(e.Context(), lower); err != nil || !held {
					interrupt()
				}
			}
		})
	}
	l.set(runner.Policy{Mode: policy.FullAccess, Interaction: policy.Default})
	end := await(e, l.begin(ctx, "run touch "+file+"1", "run touch "+file+"2", "write "+file+"3 text"), "the end of the turn")
	if end.err != nil || end.Outcome != runner.Completed && ctx.Err() == nil {
		e.Errorf("the turn ended as %q (%s), error %v", end.Outcome, end.Reason, end.err)
	}
	if ctx.Err() == nil && !e.exists(file+"1") {
		e.Errorf("what full-access allowed was not done")
	}
	if e.exists(file+"2") || e.exists(file+"3") {
		e.Errorf("something was done after the mode was lowered to %s, %s", lower.Mode, lower.Interaction)
	}
	l.ordered()
}

// tool calls a tool of an MCP server three times: allowed, refused, and with nobody there.
func (e *exam) tool() {
	if !e.can(e.mcp, runner.WhyMCP) {
		return
	}
	var answers []runner.Answer
	l := e.open(func(_ context.Context, q runner.Question) (runner.Answer, error) {
		if q.Kind != runner.KindTool || !strings.Contains(q.Tool, "mystery") || !q.Has(policy.Unknown) ||
			!strings.Contains(string(q.Arguments), e.folder) {
			e.Errorf("the tool was asked as %+v", q)
		}
		a := answers[0]
		answers = answers[1:]
		return a, nil
	})
	yes, _ := allow(e.Context(), runner.Question{})
	no, _ := refuse(e.Context(), runner.Question{})
	for file, want := range map[string]struct {
		answer runner.Answer
		says   string
	}{
		"allowed": {yes, ""},
		"refused": {no, refusal},
		"overdue": {runner.Answer{Decision: runner.Denied, Source: runner.SourceTimeout}, "Nobody answered in time"},
	} {
		answers = []runner.Answer{want.answer}
		l.set(runner.Policy{Mode: policy.FullAccess, Interaction: policy.Default})
		l.turn("tool mystery "+filepath.Join(e.folder, file), "say after it")
		if e.exists(file) != want.answer.Allows() || len(answers) > 0 {
			e.Errorf("%s: done %v, %d questions are missing", file, e.exists(file), len(answers))
		}
		if said := l.said(); !strings.Contains(said, want.says) || !strings.Contains(said, "after it") {
			e.Errorf("%s: the agent said %q", file, said)
		}
		items := l.completed(runner.ItemToolCall)
		if len(items) != 1 || (items[0].Status == runner.ItemDone) != want.answer.Allows() {
			e.Errorf("%s: the items are %+v", file, items)
		}
		l.ordered()
	}
}

// worksOn starts a command that goes on behind its turn.
func (e *exam) worksOn() {
	if !e.can(e.background, runner.WhyBackground) {
		return
	}
	l := e.open(allow)
	command := newRest()
	l.turn("background " + string(command))
	e.awaitRest(command)
	l.turn("say meanwhile")
	if len(command.processes(e)) == 0 {
		e.Errorf("the background work ended with its turn")
	}
	work := func(ended bool) (ids []string) {
		events, _ := l.seen()
		for _, ev := range events {
			if ev.Kind == runner.BackgroundEvent && ev.Background != nil && ev.Background.Ended == ended {
				ids = append(ids, ev.Background.ID)
			}
		}
		return ids
	}
	started := work(false)
	if len(started) == 0 || started[0] == "" || len(work(true)) > 0 {
		e.Fatalf("background work was told to start as %q, and to end as %q", started, work(true))
	}
	l.close()
	e.awaitGone(command)
	if ended := work(true); len(ended) != 1 || ended[0] != started[0] {
		e.Errorf("the end of %q was told as that of %q", started, ended)
	}
}
