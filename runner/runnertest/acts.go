package runnertest

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"

	"drawbridge/policy"
	"drawbridge/runner"
)

func (e *exam) probe() {
	c := e.capability()
	for _, m := range policy.Modes() {
		effective, ok := c.Modes[m]
		switch {
		case !ok || !effective.Valid() || effective.Looser(m):
			e.Errorf("mode %s becomes %q, which is none or looser", m, effective)
		case effective != m && c.Why[string(m)] == "":
			e.Errorf("mode %s becomes %s without a reason", m, effective)
		}
	}
	for name, can := range map[string]bool{"plan": c.Plan, "questions": c.Questions, "steer": c.Steer, "rewind": c.Rewind} {
		if !can && c.Why[name] == "" {
			e.Errorf("there is no reason for the lack of %s", name)
		}
	}
}

// exists reports whether a file of the workspace exists.
func (e *exam) exists(path string) bool {
	e.Helper()
	_, err := os.Lstat(filepath.Join(e.folder, path))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		e.Fatalf("%v", err)
	}
	return err == nil
}

func (e *exam) holds(path, want string) {
	e.Helper()
	b, err := os.ReadFile(filepath.Join(e.folder, path))
	if err != nil || string(b) != want {
		e.Errorf("%s holds %q (%v), want %q", path, b, err, want)
	}
}

func (e *exam) put(path, text string) {
	e.Helper()
	e.putFile(filepath.Join(e.folder, path), text)
}

func (e *exam) putFile(file, text string) {
	e.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o644)); err != nil {
		e.Fatalf("%v", err)
	}
}

func (e *exam) commandAllowed() {
	l := e.open(allow)
	l.turn("run pwd > where; echo out; exit 3")
	e.holds("where", e.folder+"\n")
	_, questions := l.seen()
	if len(questions) != 1 {
		e.Fatalf("%d questions for one command", len(questions))
	}
	q := questions[0]
	if q.Kind != runner.KindCommand || q.Command != "pwd > where; echo out; exit 3" || q.Folder != e.folder ||
		q.Turn != "turn1" || !q.Has(policy.Terminal) {
		e.Errorf("the command was asked as %+v", q)
	}
	items := l.completed(runner.ItemCommand)
	if len(items) != 1 || items[0].ID != q.Item || items[0].Command != q.Command || items[0].Status != runner.ItemFailed ||
		items[0].Exit == nil || *items[0].Exit != 3 || items[0].Output != "out\n" {
		e.Errorf("the command's items are %+v", items)
	}
	l.ordered()
}

func (e *exam) commandRefused() {
	l := e.open(refuse)
	l.turn("run touch ran", "say after it")
	if e.exists("ran") {
		e.Errorf("the refused command was run")
	}
	if items := l.completed(runner.ItemCommand); len(items) != 1 || items[0].Status != runner.ItemRefused {
		e.Errorf("the command's items are %+v", items)
	}
	if said := l.said(); !strings.Contains(said, refusal) || !strings.Contains(said, "after it") {
		e.Errorf("the agent was not told why, or did not go on; it said %q", said)
	}
	l.ordered()
}

func (e *exam) gateFails() {
	l := e.open(func(ctx context.Context, q runner.Question) (runner.Answer, error) {
		a, _ := allow(ctx, q) // whatever else it says
		return a, errNoGate
	})
	l.turn("run touch ran", "write a.txt text", "say after it")
	if e.exists("ran") || e.exists("a.txt") {
		e.Errorf("something was done although the gate failed")
	}
	if !strings.Contains(l.said(), "after it") {
		e.Errorf("the agent did not go on; it said %q", l.said())
	}
}

func (e *exam) fileChange() {
	e.put("old.txt", "before\n")
	l := e.open(allow)
	l.turn("write sub/new.txt some words", "write old.txt after")
	e.holds("sub/new.txt", "some words\n")
	e.holds("old.txt", "after\n")
	_, questions := l.seen()
	if len(questions) != 2 {
		e.Fatalf("%d questions for two file changes", len(questions))
	}
	for i, want := range []struct {
		path  string
		op    runner.FileOp
		lines []string
	}{
		{"sub/new.txt", runner.FileCreate, []string{"+some words"}},
		{"old.txt", runner.FileEdit, []string{"-before", "+after"}},
	} {
		q := questions[i]
		if q.Kind != runner.KindFileChange || len(q.Files) != 1 || q.Files[0].Op != want.op || !strings.HasSuffix(q.Files[0].Path, want.path) {
			e.Errorf("the change of %s was asked as %+v", want.path, q)
			continue
		}
		for _, line := range want.lines {
			if !strings.Contains(q.Files[0].Diff, "\n"+line+"\n") {
				e.Errorf("the diff of %s does not show %q:\n%s", want.path, line, q.Files[0].Diff)
			}
		}
	}
	if items := l.completed(runner.ItemFileChange); len(items) != 2 || items[0].Status != runner.ItemDone || items[0].ID != questions[0].Item {
		e.Errorf("the items are %+v", items)
	}
	l.ordered()
}

func (e *exam) fileChangeRefused() {
	e.put("old.txt", "before\n")
	l := e.open(refuse)
	l.turn("write sub/new.txt some words", "write old.txt after")
	e.holds("old.txt", "before\n")
	if e.exists("sub") {
		e.Errorf("a folder was made for the refused file")
	}
	for _, i := range l.completed(runner.ItemFileChange) {
		if i.Status != runner.ItemRefused {
			e.Errorf("item %+v is not refused", i)
		}
	}
	if !strings.Contains(l.said(), refusal) {
		e.Errorf("the agent was not told why; it said %q", l.said())
	}
}

func (e *exam) several() {
	if !e.can(e.parallel, runner.WhyParallel) {
		return
	}
	var open atomic.Int32
	both := make(chan struct{})
	l := e.open(func(ctx context.Context, q runner.Question) (runner.Answer, error) {
		if open.Add(1) == 2 {
			close(both)
		}
		select {
		case <-both:
		case <-ctx.Done():
			return runner.Answer{}, ctx.Err()
		}
		if strings.Contains(q.Command, "first") {
			return refuse(ctx, q)
		}
		return allow(ctx, q)
	})
	l.turn("together touch first || touch second")
	if e.exists("first") || !e.exists("second") {
		e.Errorf("the answers were mixed up: first %v, second %v", e.exists("first"), e.exists("second"))
	}
	l.ordered()
}

func (e *exam) asks() {
	c := e.capability()
	if !c.Questions {
		return // probe demands the reason
	}
	l := e.open(func(_ context.Context, q runner.Question) (runner.Answer, error) {
		if q.Kind != runner.KindQuestion || len(q.Queries) != 1 || len(q.Queries[0].Options) != 2 || !q.Has(policy.Question) {
			e.Errorf("the question was asked as %+v", q)
			return runner.Answer{}, nil
		}
		return runner.Answer{
			Decision: runner.Allowed, Source: runner.SourceUser,
			Answers: map[string][]string{q.Queries[0].ID: {q.Queries[0].Options[1].Label}},
		}, nil
	})
	l.turn("ask Which one?|left|right")
	if !strings.Contains(l.said(), "right") {
		e.Errorf("the agent was not told the answer; it said %q", l.said())
	}
}
