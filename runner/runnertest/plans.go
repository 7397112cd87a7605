package runnertest

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"drawbridge/policy"
	"drawbridge/runner"
)

// attempt is something that an agent which only plans may try.
type attempt struct {
	line string
	// changes is the path that it changes where everything is allowed; empty where no runtime lets it be done this way.
	changes string
}

// attempts are all the ways in which the agent can be told to change something in the workspace, or outside of it.
func (e *exam) attempts(outside string) []attempt {
	in := func(name string) string { return filepath.Join(e.folder, name) }
	out := func(name string) string { return filepath.Join(outside, name) }
	list := []attempt{
		{"write new.txt text", in("new.txt")},
		{"write old.txt after", in("old.txt")},
		{"write " + out("new.txt") + " text", ""},
		{"run rm gone.txt", in("gone.txt")},
		{"run rm -rf full", in("full")},
		{"run rm " + out("gone.txt"), out("gone.txt")},
		{"run echo more >> more.txt", in("more.txt")},
		{"run cat more.txt | tee copy.txt", in("copy.txt")},
		{"run chmod 600 mode.txt", in("mode.txt")},
		{"run touch " + out("touched.txt"), out("touched.txt")},
		{"run echo x > out/linked.txt", out("linked.txt")},
		{"run echo x > \"$HOME/planned.txt\"", ""},
		{"run { echo x > behind.txt; } & wait", in("behind.txt")},
		{"run nohup sh -c 'echo x > " + out("detached.txt") + "' > /dev/null 2>&1 & wait", out("detached.txt")},
	}
	if e.sandboxed {
		list = append(
			list, attempt{"sandboxed touch boxed.txt", in("boxed.txt")}, attempt{"sandboxed rm unboxed.txt", in("unboxed.txt")},
			attempt{"sandboxed touch " + out("boxed.txt"), out("boxed.txt")},
		)
	}
	if e.background {
		list = append(list, attempt{"background echo x > later.txt; exec sleep 600", in("later.txt")})
	}
	if e.mcp {
		list = append(list, attempt{"tool mystery " + in("tool.txt"), in("tool.txt")})
	}
	if e.can(e.agents, runner.WhyAgents) {
		list = append(list, attempt{"agent run touch " + byAgent, in(byAgent)})
	}
	return list
}

// byAgent is the file that a sub-agent makes. It may work behind its turn.
const byAgent = "by-agent.txt"

// scene makes the files that attempts change, and returns the folder outside of the workspace.
func (e *exam) scene() (outside string) {
	e.Helper()
	outside = folder(e)
	for _, name := range []string{"gone.txt", "more.txt", "mode.txt", "unboxed.txt", "full/a.txt", ".git/config"} {
		e.put(name, "words\n")
	}
	e.put("old.txt", "before\n")
	e.putFile(filepath.Join(outside, "gone.txt"), "words\n")
	if err := os.Symlink(outside, filepath.Join(e.folder, "out")); err != nil {
		e.Fatalf("%v", err)
	}
	return outside
}

// planChangesNothing has an agent that plans try everything, in each mode, and compares the workspace, what lies outside
// of it, and the agent's own folder, byte for byte. A session in which everything is allowed shows that each attempt would
// have been seen.
func (e *exam) planChangesNothing() {
	if !e.capability().Plan {
		return // probe demands the reason
	}
	outside := e.scene()
	tries := e.attempts(outside)
	var lines []string
	for _, a := range tries {
		lines = append(lines, a.line)
	}
	look := func() map[string]string {
		all := e.tree(nil, e.folder, outside)
		maps.Copy(all, e.tree(e.books, e.data))
		return all
	}
	l := e.open(allow)
	l.set(runner.Policy{Mode: policy.FullAccess, Interaction: policy.Plan})
	l.turn("say ready") // the agent's program has made its own files
	before := look()
	for _, m := range policy.Modes() {
		l.set(runner.Policy{Mode: m, Interaction: policy.Plan})
		l.turn(lines...)
		if e.agents {
			e.eventually("the sub-agent asks", func() bool { return l.askedFor(byAgent) })
		}
		if changed := differences(before, look()); len(changed) > 0 {
			e.Errorf("in %s the plan changed %q", m, changed)
		}
		for _, q := range l.asked() {
			if q.Kind != runner.KindTool && policy.Decide(m, policy.Plan, q.Categories...) != policy.Deny {
				e.Errorf("in %s, plan, this was not refused: %+v", m, q)
			}
		}
	}
	l.close()
	if changed := differences(before, look()); len(changed) > 0 {
		e.Errorf("when nothing ran any more the plan had changed %q", changed)
	}

	l = e.open(allow)
	l.set(runner.Policy{Mode: policy.FullAccess, Interaction: policy.Default})
	l.turn(lines...)
	var missing []string
	e.within("each attempt changes something where it is allowed", func() bool {
		changed := differences(before, e.tree(nil, e.folder, outside))
		missing = nil
		for _, a := range tries {
			if a.changes != "" && !slices.Contains(changed, a.changes) {
				missing = append(missing, a.line)
			}
		}
		return len(missing) == 0
	}, func() { e.Errorf("where it was allowed nothing was changed by %q; told: %s", missing, l.told()) })
}

// asked are all questions, also those that the table answered.
func (l *log) asked() []runner.Question {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.all)
}

// askedFor reports whether a command with a word in it was asked for.
func (l *log) askedFor(word string) bool {
	return slices.ContainsFunc(l.asked(), func(q runner.Question) bool { return strings.Contains(q.Command, word) })
}

// eventually waits for what nothing tells.
func (e *exam) eventually(what string, ok func() bool) {
	e.Helper()
	e.within(what, ok, func() { e.Fatalf("it did not come to pass within %s that %s", e.patience, what) })
}

func (e *exam) within(_ string, ok func() bool, late func()) {
	e.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(e.patience); !ok(); <-tick.C {
		if time.Now().After(end) {
			late()
			return
		}
	}
}

// The plans of the suite. A line of the prompt writes them with \n for the end of a line.
const (
	firstPlan  = "# Füße 世界\n\n1. look at `a.txt`\n2. **do** it\n\n```go\nfunc main() {}\n```"
	secondPlan = "# The second plan\n\n1. only do it"
)

func planLine(plan string) string { return "plan " + strings.ReplaceAll(plan, "\n", `\n`) }

// handed is the plan with which a turn in plan ended, by whichever of the two ways a runtime has; empty without one. Whoever
// is asked in the turn says no: what a person decides comes as another turn.
func (l *log) handed(lines ...string) string {
	l.exam.Helper()
	end := l.ends(l.begin(l.exam.Context(), lines...), runner.Completed)
	var plans []string
	if end.Plan != "" {
		plans = append(plans, end.Plan)
	}
	for _, q := range l.asked() {
		if q.Kind == runner.KindPlan {
			plans = append(plans, q.Plan)
		}
	}
	if len(plans) > 1 {
		l.exam.Errorf("the plan was handed over %d times", len(plans))
	}
	return strings.TrimSpace(strings.Join(plans, "\n"))
}

// rejects is a person who rejects a plan and allows everything else.
func rejects(ctx context.Context, q runner.Question) (runner.Answer, error) {
	if q.Kind == runner.KindPlan {
		return runner.Answer{Decision: runner.Denied, Action: runner.ActionReject, Source: runner.SourceUser}, nil
	}
	return allow(ctx, q)
}

// plans has the agent hand over plans, in each mode.
func (e *exam) plans() {
	if !e.capability().Plan {
		return // probe demands the reason
	}
	l := e.open(rejects)
	for _, m := range policy.Modes() {
		l.set(runner.Policy{Mode: m, Interaction: policy.Plan})
		if plan := l.handed("say thinking", planLine(firstPlan)); plan != firstPlan {
			e.Errorf("in %s the plan is %q, want %q", m, plan, firstPlan)
		}
		if said := l.said(); strings.Contains(said, "Füße") || !strings.Contains(said, "thinking") {
			e.Errorf("in %s the answer repeats the plan, or lacks what was said before it: %q", m, said)
		}
		l.ordered()
	}
	l.set(runner.Policy{Mode: policy.FullAccess, Interaction: policy.Plan})
	if plan := l.handed("say only an answer"); plan != "" || !strings.Contains(l.said(), "only an answer") {
		e.Errorf("an answer was taken for the plan %q; said %q", plan, l.said())
	}
}

// decided takes a plan through what a person may decide: nothing follows from a no, a revision stays in plan, and only the
// turn that implements it may change something, under the mode that this turn has.
func (e *exam) decided() {
	if !e.capability().Plan {
		return // probe demands the reason
	}
	l := e.open(rejects)
	planning := runner.Policy{Mode: policy.FullAccess, Interaction: policy.Plan}
	l.set(planning)
	if plan := l.handed(planLine(firstPlan)); plan != firstPlan {
		e.Errorf("the plan is %q", plan)
	}
	l.set(planning) // rejected: nothing is told to the agent, and the chat goes on planning
	if plan := l.handed("run touch rejected"); plan != "" || e.exists("rejected") {
		e.Errorf("after the plan was rejected there was the plan %q, and something was done: %v", plan, e.exists("rejected"))
	}
	l.set(planning) // revised: a prompt that stays in plan
	if plan := l.handed("say with fewer words", "write revised text", planLine(secondPlan)); plan != secondPlan {
		e.Errorf("the revised plan is %q, want %q", plan, secondPlan)
	}
	if e.exists("revised") || !strings.Contains(l.said(), "with fewer words") {
		e.Errorf("revising changed something: %v; said %q", e.exists("revised"), l.said())
	}
	l.set(runner.Policy{Mode: policy.AutoAcceptEdits, Interaction: policy.Default}) // implemented, at most so
	if plan := l.handed("write done.txt text", "run touch done"); plan != "" {
		e.Errorf("implementing handed over the plan %q", plan)
	}
	e.holds("done.txt", "text\n")
	_, questions := l.seen()
	if !e.exists("done") || len(questions) != 1 || questions[0].Kind != runner.KindCommand {
		e.Errorf("implementing under auto-accept-edits, the command was done: %v; asked %+v", e.exists("done"), questions)
	}
	for _, ev := range l.changes() {
		if ev.Effective.Mode.Looser(policy.AutoAcceptEdits) {
			e.Errorf("the mode became %+v", ev)
		}
	}
	l.set(planning) // and the chat plans again
	if plan := l.handed("run touch again", planLine(firstPlan)); plan != firstPlan || e.exists("again") {
		e.Errorf("when the chat planned again the plan was %q, and something was done: %v", plan, e.exists("again"))
	}
	l.ordered()
}

// changes are what was told of the policy.
func (l *log) changes() []runner.Effective {
	events, _ := l.seen()
	var list []runner.Effective
	for _, ev := range events {
		if ev.Kind == runner.PolicyChanged && ev.Policy != nil {
			list = append(list, *ev.Policy)
		}
	}
	return list
}

// planStopped interrupts a turn before its plan.
func (e *exam) planStopped() {
	c := e.capability()
	if !c.Plan || !c.Questions {
		return // probe demands the reason
	}
	asked := make(chan struct{}, 1)
	l := e.open(func(ctx context.Context, _ runner.Question) (runner.Answer, error) {
		asked <- struct{}{}
		<-ctx.Done()
		return runner.Answer{}, ctx.Err()
	})
	l.set(runner.Policy{Mode: policy.FullAccess, Interaction: policy.Plan})
	ctx, cancel := context.WithCancel(e.Context())
	defer cancel()
	done := l.begin(ctx, "ask Which one?|left|right", planLine(firstPlan))
	await(e, asked, "the question")
	cancel()
	if end := l.ends(done, runner.Interrupted); end.Plan != "" {
		e.Errorf("the interrupted turn has the plan %q", end.Plan)
	}
	l.ordered()
}
