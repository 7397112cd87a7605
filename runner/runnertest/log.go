package runnertest

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"drawbridge/policy"
	"drawbridge/runner"
)

// log is an open session, with all that it told and asked.
type log struct {
	runner.Session
	exam   *exam
	answer func(ctx context.Context, q runner.Question) (runner.Answer, error)
	slow   time.Duration
	after  func(policy.Verdict) // called for each question, when the table has been looked at

	mu        sync.Mutex
	heard     func(runner.Event) // called for each event, with mu held
	events    []runner.Event
	questions []runner.Question // that were for a person
	verdicts  []policy.Verdict  // of all that were asked
	all       []runner.Question // that were asked, also those that the table answered
	closed    bool
	policy    runner.Policy
	turns     map[string]bool // the ids of those that were begun
}

func allow(context.Context, runner.Question) (runner.Answer, error) {
	return runner.Answer{Decision: runner.Allowed, Action: runner.ActionAllow, Source: runner.SourceUser, By: "Ada"}, nil
}

const refusal = "Ada would rather not"

func refuse(context.Context, runner.Question) (runner.Answer, error) {
	return runner.Answer{Decision: runner.Denied, Action: runner.ActionDeny, Source: runner.SourceUser, By: "Ada", Reason: refusal}, nil
}

// open begins a session on a fresh runtime; answer is asked for whatever is not just read in the workspace.
func (e *exam) open(answer func(context.Context, runner.Question) (runner.Answer, error)) *log {
	e.Helper()
	return e.resume(e.restart(), "", answer)
}

func (e *exam) resume(r runner.Runtime, token string, answer func(context.Context, runner.Question) (runner.Answer, error)) *log {
	e.Helper()
	l := &log{exam: e, answer: answer, turns: map[string]bool{}, policy: runner.Policy{Mode: policy.ApprovalRequired, Interaction: policy.Default}}
	s, err := r.Open(e.Context(), runner.Options{
		Folder: e.folder, Resume: token, Gate: runner.GateFunc(l.ask), Sink: l.sink,
		Policy: l.now,
	})
	if err != nil {
		e.Fatalf("open: %v", err)
	}
	l.Session = s
	e.Cleanup(func() { l.close() })
	return l
}

func (l *log) close() {
	l.exam.Helper()
	if err := l.Close(); err != nil {
		l.exam.Errorf("close: %v", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
}

// ask is the session's gate: the table, and behind it the person.
func (l *log) ask(ctx context.Context, q runner.Question) (runner.Answer, error) {
	l.mu.Lock()
	verdict := policy.Decide(l.policy.Mode, l.policy.Interaction, q.Categories...)
	if verdict == policy.Ask || verdict == policy.Review {
		l.questions = append(l.questions, q)
	}
	l.verdicts, l.all = append(l.verdicts, verdict), append(l.all, q)
	l.mu.Unlock()
	if l.after != nil {
		l.after(verdict)
	}
	switch verdict {
	case policy.Allow:
		return runner.Answer{Decision: runner.Allowed, Source: runner.SourceRule}, nil
	case policy.Ask, policy.Review:
		return l.answer(ctx, q)
	case policy.Deny:
	}
	return runner.Answer{Decision: runner.Denied, Source: runner.SourceRule}, nil
}

// now is what the chat allows.
func (l *log) now() runner.Policy {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.policy
}

// set changes what the chat allows, and forgets what was told and asked so far.
func (l *log) set(p runner.Policy) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.policy, l.events, l.questions, l.verdicts, l.all = p, nil, nil, nil, nil
}

func (l *log) sink(e runner.Event) {
	if l.slow > 0 {
		time.Sleep(l.slow)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		l.exam.Errorf("an event after Close: %s", e.Kind)
	}
	l.events = append(l.events, e)
	if l.heard != nil {
		l.heard(e)
	}
}

// begin starts a turn and returns its end.
func (l *log) begin(ctx context.Context, lines ...string) <-chan ended {
	l.mu.Lock()
	id := "turn" + strconv.Itoa(len(l.turns)+1)
	l.turns[id] = true
	l.mu.Unlock()
	done := make(chan ended, 1)
	go func() {
		res, err := l.Turn(ctx, runner.Input{Turn: id, Text: strings.Join(lines, "\n")})
		done <- ended{res, err}
	}()
	return done
}

type ended struct {
	runner.Result
	err error
}

// turn runs a turn that has to be completed.
func (l *log) turn(lines ...string) {
	l.exam.Helper()
	l.ends(l.begin(l.exam.Context(), lines...), runner.Completed)
}

// ends waits for a turn that has to end so.
func (l *log) ends(done <-chan ended, want runner.Outcome) ended {
	l.exam.Helper()
	end := await(l.exam, done, "the end of the turn")
	if end.err != nil || end.Outcome != want {
		l.exam.Fatalf("the turn ended as %q (%s), error %v; want %q", end.Outcome, end.Reason, end.err, want)
	}
	return end
}

func await[V any](e *exam, c <-chan V, what string) V {
	e.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(e.patience):
		e.Fatalf("%s did not come within %s", what, e.patience)
		panic("Fatalf returned")
	}
}

// seen are the events so far, and the questions that were for a person.
func (l *log) seen() ([]runner.Event, []runner.Question) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.events), slices.Clone(l.questions)
}

// completed are the completed items of a kind.
func (l *log) completed(kind runner.ItemKind) []runner.Item {
	events, _ := l.seen()
	var list []runner.Item
	for _, e := range events {
		if e.Kind == runner.ItemCompleted && e.Item != nil && e.Item.Kind == kind {
			list = append(list, *e.Item)
		}
	}
	return list
}

// said is all that the completed messages say.
func (l *log) said() string {
	var parts []string
	for _, i := range l.completed(runner.ItemMessage) {
		parts = append(parts, i.Text)
	}
	return strings.Join(parts, "\n")
}

// ordered checks the life of every item: begun once, then deltas, then completed once with the text of its deltas.
func (l *log) ordered() {
	l.exam.Helper()
	events, _ := l.seen()
	open, ended := map[string]string{}, map[string]bool{}
	for n, e := range events {
		switch e.Kind {
		case runner.ItemStarted, runner.ContentDelta, runner.ItemCompleted:
			if e.Item == nil || e.Item.ID == "" || !l.turns[e.Turn] {
				l.exam.Fatalf("event %d has no item, or belongs to no turn: %+v", n, e)
			}
		case runner.RequestOpened, runner.RequestResolved, runner.TurnStarted, runner.TurnEnded:
			l.exam.Errorf("event %d is %s, which is not a runtime's to tell", n, e.Kind)
			continue
		default:
			continue
		}
		id := e.Item.ID
		text, begun := open[id]
		if begun == (e.Kind == runner.ItemStarted) || ended[id] {
			l.exam.Errorf("event %d, %s of %s: out of order", n, e.Kind, id)
		}
		switch e.Kind {
		case runner.ContentDelta:
			open[id] = text + e.Item.Text
		case runner.ItemCompleted:
			if ended[id] = true; text != "" && e.Item.Text != text {
				l.exam.Errorf("item %s was completed as %.200q, but its deltas say %.200q", id, e.Item.Text, text)
			}
			if e.Item.Status != runner.ItemDone && e.Item.Status != runner.ItemFailed && e.Item.Status != runner.ItemRefused {
				l.exam.Errorf("item %s was completed in state %q", id, e.Item.Status)
			}
		default:
			open[id] = ""
		}
	}
	for id := range open {
		if !ended[id] {
			l.exam.Errorf("item %s was never completed", id)
		}
	}
}

// errNoGate is a gate's failure.
var errNoGate = errors.New("the gate is out of order")
