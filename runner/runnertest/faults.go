package runnertest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"drawbridge/policy"
	"drawbridge/runner"
)

// silent closes a session that streams, and gives it time to say more.
func (e *exam) silent() {
	l := e.open(allow)
	l.turn("say something")
	begun := make(chan struct{}, 1)
	l.mu.Lock()
	l.heard = func(ev runner.Event) {
		if ev.Kind == runner.ContentDelta {
			select {
			case begun <- struct{}{}:
			default:
			}
		}
	}
	l.mu.Unlock()
	done := l.begin(e.Context(), "long 500000", "say unreached")
	await(e, begun, "the beginning of the text")
	l.close()
	end := await(e, done, "the end of the turn")
	if end.err != nil && !errors.Is(end.err, runner.ErrClosed) {
		e.Errorf("the turn ended with %v", end.err)
	}
	other := e.open(allow) // another session's turn is time enough
	other.turn("run sleep 0.3")
}

// daemon starts what leaves its command's session and group, ends with another parent, and would outlive everything.
func (e *exam) daemon() {
	if !e.can(e.daemons, runner.WhyDaemons) {
		return
	}
	const detached = "setsid %s < /dev/null > /dev/null 2>&1 & "
	quiet, stopped := newRest(), newRest()
	l := e.open(allow)
	l.turn("run " + fmt.Sprintf(detached, quiet))
	ctx, cancel := context.WithCancel(e.Context())
	defer cancel()
	done := l.begin(ctx, "run "+fmt.Sprintf(detached, stopped)+string(newRest()))
	e.awaitRest(stopped)
	cancel()
	l.ends(done, runner.Interrupted)
	l.close()
	e.awaitGone(quiet)
	e.awaitGone(stopped)
}

// crashes kills the agent while it waits for an answer, and while a command runs.
func (e *exam) crashes() {
	if !e.can(e.crash != nil, runner.WhyCrash) {
		return
	}
	asked, withdrawn := make(chan struct{}, 1), make(chan struct{}, 1)
	l := e.open(func(ctx context.Context, q runner.Question) (runner.Answer, error) {
		if strings.Contains(q.Command, "sleep") {
			return allow(ctx, q)
		}
		asked <- struct{}{}
		<-ctx.Done()
		withdrawn <- struct{}{}
		return allow(ctx, q)
	})
	l.turn("say before it")
	done := l.begin(e.Context(), "run touch ran")
	await(e, asked, "the question")
	e.crash()
	await(e, withdrawn, "the withdrawal of the question")
	e.broken(done)

	l = e.again(l)
	command := newRest()
	done = l.begin(e.Context(), "run "+string(command))
	e.awaitRest(command)
	e.crash()
	e.broken(done)
	l = e.again(l)
	e.awaitGone(command)
	if e.exists("ran") {
		e.Errorf("a command was run although its agent was gone when it was allowed")
	}
	l.turn("say back again")
}

// broken waits for the end of a turn whose agent crashed: it says so in words.
func (e *exam) broken(done <-chan ended) {
	e.Helper()
	end := await(e, done, "the end of the turn")
	reason := end.Reason
	if end.err != nil {
		reason = end.err.Error()
	}
	if end.err == nil && end.Outcome != runner.Broken || len(strings.Fields(reason)) < 4 {
		e.Errorf("the turn of the crashed agent ended as %q, because %q", end.Outcome, reason)
	}
}

// again closes a session, resumes it after a restart, and sees that it knows its turns.
func (e *exam) again(l *log) *log {
	e.Helper()
	token, answer := l.ResumeToken(), l.answer
	l.close()
	if token == "" {
		e.Fatalf("there is nothing to resume after a crash")
	}
	l = e.resume(e.restart(), token, answer)
	l.turn("turns")
	if said := l.said(); !strings.Contains(said, "This is turn ") || strings.Contains(said, "turn 1.") {
		e.Errorf("the resumed session does not know its turns; the agent said %q", said)
	}
	return l
}

// noise is a program that says what is no frame, what is none that anybody knows, what nobody knows how to answer, and
// what is far too long, before it says anything else.
func (e *exam) noise() {
	if !e.can(e.noisy != nil, runner.WhyFrames) {
		return
	}
	file := filepath.Join(e.TempDir(), "noise")
	lines := []string{
		"this is no frame", "{", "[]", "null", `"word"`, "{}", `{"type":7,"method":{},"id":[]}`, "\x00\xff\xfe",
		`{"type":"of-no-such-kind","session_id":"x"}`,
		`{"jsonrpc":"2.0","method":"of/no/such/kind","params":{"threadId":"x"}}`,
		`{"jsonrpc":"2.0","id":"noise-1","method":"ask/of/no/such/kind","params":{}}`,
		`{"type":"control_request","request_id":"noise-2","request":{"subtype":"of_no_such_kind"}}`,
		`{"type":"of-no-such-kind","text":"` + strings.Repeat("x", 20<<20) + `"}`,
	}
	if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		e.Fatalf("%v", err)
	}
	wrapped := 0
	r := e.noisy(func(program, argument string) string {
		wrapped++
		script := filepath.Join(e.TempDir(), "noisy")
		text := "#!/bin/sh\ncase \" $* \" in *" + quoted(argument) + "*) cat " + quoted(file) + ";; esac\nexec " + quoted(program) + " \"$@\"\n"
		if err := os.WriteFile(script, []byte(text), 0o700); err != nil {
			e.Fatalf("%v", err)
		}
		return script
	})
	if wrapped == 0 {
		e.Errorf("the harness did not wrap the program")
	}
	l := e.resume(r, "", allow)
	l.turn("say despite it", "run touch ran")
	if !e.exists("ran") || !strings.Contains(l.said(), "despite it") {
		e.Errorf("the turn was not carried out; the agent said %q", l.said())
	}
	l.ordered()
}

// quoted is a word for sh.
func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// review is a Review without its type of test.
type review struct {
	state, frame, impossible, line string
	restart                        func() runner.Runtime
}

// reviewed brings the runtime's own reviewer into each of its states. What it does not approve is asked, and refused by a
// person; what it approves runs without a question.
func (e *exam) reviewed() {
	if !e.can(len(e.reviews) > 0, runner.WhyReview) {
		return
	}
	told := map[string]bool{}
	for _, r := range e.reviews {
		if told[r.state] = true; r.restart == nil {
			if r.impossible == "" {
				e.Errorf("state %q is not tried, and nothing says that it is impossible", r.state)
			}
			continue
		}
		l := e.resume(r.restart(), "", refuse)
		l.set(runner.Policy{Mode: policy.Auto, Interaction: policy.Default})
		l.turn(r.line)
		events, questions := l.seen()
		found := false
		for _, ev := range events {
			if ev.Kind != runner.ReviewChanged || ev.Review == nil {
				continue
			}
			if ev.Review.Source == "" || ev.Review.Source == runner.ReviewerOurs {
				e.Errorf("state %q: a review of the runtime's own has the source %q", r.state, ev.Review.Source)
			}
			found = found || ev.Review.State == r.state
		}
		if !found {
			e.Errorf("state %q was not told: %+v", r.state, events)
		}
		approved := r.state == runner.ReviewApproved || r.state == runner.ReviewRequested && len(questions) == 0
		if e.exists("reviewed") != approved || approved && len(questions) > 0 {
			e.Errorf("state %q: done %v with %d questions", r.state, e.exists("reviewed"), len(questions))
		}
		l.close()
		if e.exists("reviewed") {
			if err := os.Remove(filepath.Join(e.folder, "reviewed")); err != nil {
				e.Fatalf("%v", err)
			}
		}
	}
	for _, state := range []string{
		runner.ReviewRequested, runner.ReviewApproved, runner.ReviewDenied, runner.ReviewUnavailable, runner.ReviewTimeout,
	} {
		if !told[state] {
			e.Errorf("the harness says nothing of state %q", state)
		}
	}
}
