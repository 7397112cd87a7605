package runnertest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"drawbridge/runner"
)

func (e *exam) text() {
	l := e.open(refuse)
	l.turn("say Grüß Gott, 世界")
	if said := l.said(); !strings.Contains(said, "Grüß Gott, 世界") {
		e.Errorf("the agent said %q", said)
	}
	if l.ResumeToken() == "" {
		e.Errorf("there is nothing to resume after a turn")
	}
	events, _ := l.seen()
	deltas := 0
	for _, ev := range events {
		if ev.Kind == runner.ContentDelta {
			deltas++
		}
	}
	if deltas == 0 {
		e.Errorf("nothing was streamed")
	}
	l.ordered()
}

func (e *exam) long() {
	l := e.open(refuse)
	l.turn("long 100000")
	if said := l.said(); len(said) < 100_000 || strings.Count(said, "no play. ") < 4_500 {
		e.Errorf("%d characters arrived of 100000", len(said))
	}
	l.ordered()
}

func (e *exam) order() {
	var l *log
	l = e.open(func(ctx context.Context, q runner.Question) (runner.Answer, error) {
		events, _ := l.seen()
		begun := false
		for _, ev := range events {
			if ev.Item != nil && ev.Item.ID == q.Item {
				begun = ev.Kind == runner.ItemStarted
			}
		}
		if !begun {
			e.Errorf("the question's item %q is not one that runs", q.Item)
		}
		if !strings.Contains(l.said(), "first") {
			e.Errorf("what was said before the question was not told before it")
		}
		return allow(ctx, q)
	})
	l.turn("say first", "run echo middle", "say last")
	l.ordered()
	var told []string
	events, _ := l.seen()
	for _, ev := range events {
		if ev.Kind == runner.ItemCompleted {
			for _, word := range []string{"first", "middle", "last"} {
				if strings.Contains(ev.Item.Text+ev.Item.Output, word) {
					told = append(told, word)
				}
			}
		}
	}
	if got := strings.Join(told, " "); got != "first middle last" {
		e.Errorf("told in the order %q", got)
	}
}

// withdrawn interrupts a turn that waits for a person, and then another that the person allows too late.
func (e *exam) withdrawn() {
	asked, late := make(chan struct{}, 1), make(chan struct{})
	l := e.open(func(ctx context.Context, q runner.Question) (runner.Answer, error) {
		asked <- struct{}{}
		<-ctx.Done()
		if q.Kind == runner.KindFileChange {
			close(late)
			return allow(ctx, q)
		}
		return runner.Answer{}, ctx.Err()
	})
	for file, line := range map[string]string{"ran": "run touch ran", "late": "write late text"} {
		ctx, cancel := context.WithCancel(e.Context())
		done := l.begin(ctx, line, "say unreached")
		await(e, asked, "the question")
		cancel()
		l.ends(done, runner.Interrupted)
		if e.exists(file) {
			e.Errorf("%q was done although its question was withdrawn", line)
		}
	}
	await(e, late, "the late answer")
	if strings.Contains(l.said(), "unreached") {
		e.Errorf("the interrupted turn went on")
	}
	l.ordered()
	l.turn("say still here")
}

func (e *exam) stopsCommand() {
	l := e.open(allow)
	ctx, cancel := context.WithCancel(e.Context())
	defer cancel()
	child := newRest()
	done := l.begin(ctx, fmt.Sprintf("run %s & wait", child), "say unreached")
	e.awaitRest(child)
	cancel()
	l.ends(done, runner.Interrupted)
	e.awaitGone(child)
	if strings.Contains(l.said(), "unreached") {
		e.Errorf("the interrupted turn went on")
	}
	l.ordered()
	l.turn("say still here")
}

// ancestors writes the environments of a command's parents, as far as it can read them, behind a line that says that it
// could.
const ancestors = `p=$PPID; while [ "$p" -gt 1 ] 2>/dev/null && [ -r /proc/$p/environ ]; do ` +
	`tr '\0' '\n' < /proc/$p/environ >> parents.txt 2>/dev/null; p=$(sed -n 's/^PPid:[^0-9]*//p' /proc/$p/status); done; touch parents.txt`

// environment has a command print what it is given, and what its parents were given: the agent's program, and us.
func (e *exam) environment() {
	l := e.open(allow)
	l.turn("run env > env.txt; cat /proc/self/environ > environ.txt 2>/dev/null; " + ancestors)
	for _, file := range []string{"env.txt", "environ.txt", "parents.txt"} {
		b, err := os.ReadFile(filepath.Join(e.folder, file))
		if err != nil {
			e.Fatalf("%v", err)
		}
		if bytes.Contains(b, []byte(leak)) {
			e.Errorf("%s: the command sees what it must not:\n%s", file, b)
		}
		if home, err := os.UserHomeDir(); file != "parents.txt" && err == nil && bytes.Contains(b, []byte("HOME="+home+"\n")) {
			e.Errorf("%s: the command has our home folder:\n%s", file, b)
		}
	}
	env, _ := os.ReadFile(filepath.Join(e.folder, "env.txt"))
	if !bytes.Contains(env, []byte("PATH=")) || !bytes.Contains(env, []byte("HOME=/")) {
		e.Errorf("the command has no PATH or no HOME:\n%s", env)
	}
}

func (e *exam) hugeOutput() {
	l := e.open(allow)
	l.turn("run echo begin; head -c 5000000 /dev/zero | tr '\\0' x; echo; echo end")
	items := l.completed(runner.ItemCommand)
	if len(items) != 1 {
		e.Fatalf("the command's items are %+v", items)
	}
	if out := items[0].Output; len(out) > 64<<10 || !strings.HasSuffix(out, "end\n") {
		e.Errorf("%d bytes of output are kept, ending with %q", len(out), out[max(0, len(out)-20):])
	}
}

func (e *exam) slowSink() {
	l := e.open(allow)
	l.slow = time.Millisecond
	l.turn("long 3000", "run echo middle", "say last")
	if said := l.said(); !strings.Contains(said, "last") || len(said) < 3000 {
		e.Errorf("only %d characters arrived", len(said))
	}
	l.ordered()
}

func (e *exam) resumes() {
	l := e.open(allow)
	l.turn("run echo $(( 40 + 2 ))")
	token := l.ResumeToken()
	l.close()
	l = e.resume(e.restart(), token, allow)
	if l.ResumeToken() == "" {
		e.Errorf("a resumed session has no token")
	}
	l.turn("turns")
	if !strings.Contains(l.said(), "turn 2") {
		e.Errorf("the resumed session does not know its first turn; it said %q", l.said())
	}
}

func (e *exam) unknownToken() {
	r := e.restart()
	for _, token := range []string{"unknown", "../../etc/passwd", "/etc/passwd", ".", "a\x00b", strings.Repeat("x", 5000)} {
		s, err := r.Open(e.Context(), runner.Options{Folder: e.folder, Resume: token, Gate: runner.GateFunc(refuse), Sink: func(runner.Event) {}})
		if !errors.Is(err, runner.ErrNoSession) {
			e.Errorf("open with token %.20q: error %v, want ErrNoSession", token, err)
		}
		if err == nil {
			_ = s.Close()
		}
	}
}

// closes closes a session in the middle of a command.
func (e *exam) closes() {
	l := e.open(allow)
	command := newRest()
	done := l.begin(e.Context(), "run "+string(command), "say unreached")
	e.awaitRest(command)
	l.close()
	if end := await(e, done, "the end of the turn"); end.err != nil && !errors.Is(end.err, runner.ErrClosed) ||
		end.err == nil && end.Outcome != runner.Interrupted {
		e.Errorf("the turn ended as %q, error %v", end.Outcome, end.err)
	}
	e.awaitGone(command)
	l.close()
	if _, err := l.Turn(e.Context(), runner.Input{Turn: "late", Text: "say too late"}); !errors.Is(err, runner.ErrClosed) {
		e.Errorf("a turn after Close: error %v, want ErrClosed", err)
	}
	if strings.Contains(l.said(), "too late") {
		e.Errorf("something was said after Close")
	}
}

func (e *exam) oneTurn() {
	asked, leave := make(chan struct{}), make(chan struct{})
	l := e.open(func(ctx context.Context, q runner.Question) (runner.Answer, error) {
		close(asked)
		<-leave
		return allow(ctx, q)
	})
	done := l.begin(e.Context(), "run true")
	await(e, asked, "the question")
	if _, err := l.Turn(e.Context(), runner.Input{Turn: "other", Text: "say second"}); err == nil {
		e.Errorf("two turns ran at the same time")
	}
	close(leave)
	l.ends(done, runner.Completed)
}

func (e *exam) nonsense() {
	l := e.open(allow)
	end := l.ends(l.begin(e.Context(), "nonsense"), runner.Broken)
	if end.Reason == "" {
		e.Errorf("the broken turn has no reason")
	}
	l.ordered()
	l.turn("say still here")
	if !strings.Contains(l.said(), "still here") {
		e.Errorf("the session does not go on; it said %q", l.said())
	}
}
