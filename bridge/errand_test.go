package bridge

import (
	"context"
	"testing"

	"drawbridge/internal/store"
	"drawbridge/runner"
	"drawbridge/runner/runnertest"
)

// listing is a runtime that knows sessions which were begun elsewhere.
type listing struct{ runner.Runtime }

func (listing) Sessions(_ context.Context, folder string, _ int) ([]runner.SessionInfo, error) {
	return []runner.SessionInfo{{Token: "elsewhere", Title: folder, Command: "agent --resume elsewhere"}}, nil
}

func (h *house) errand(chat string) ErrandResult {
	h.t.Helper()
	h.update(func(t *store.Txn) error { return h.chats.Send(t, chat, ErrandSessions, "12") })
	var r ErrandResult
	h.shown.until(h.t, "the errand's result", func(es []Entry) bool {
		for _, e := range es {
			if e.Errand != nil && e.Chat == chat {
				r = *e.Errand
				return true
			}
		}
		return false
	})
	return r
}

func TestSessionsOfATerminalAreListedAndAdopted(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	resumed := make(chan string, 1)
	script := runnertest.New("script", func(context.Context, *runnertest.Scripted, runner.Input) (runner.Result, error) {
		return runner.Result{Outcome: runner.Completed}, nil
	})
	h.host("laptop", func(c *HostConfig) { c.Runtimes = []runner.Runtime{listing{spy{script, resumed}}} })
	r := h.errand("7")
	if len(r.Sessions) != 1 || r.Sessions[0].Title != h.folder || r.Ref != "12" || r.Runtime != "script" {
		t.Fatalf("result %+v", r)
	}
	h.update(func(tx *store.Txn) error { return h.chats.Adopt(tx, "7", r.Runtime, r.Sessions[0].Token) })
	h.prompt("7", "u:1", "go on")
	if got := <-resumed; got != "elsewhere" {
		t.Errorf("resumed %q", got)
	}
	h.shown.ended(t, "t.u:1")
	h.update(func(tx *store.Txn) error { return h.chats.New(tx, "7") })
	h.prompt("7", "u:2", "anew")
	if got := <-resumed; got != "" {
		t.Errorf("after /new: resumed %q", got)
	}
	h.shown.ended(t, "t.u:2")
	waitFor(t, "the errand to be forgotten", func() bool {
		left, err := h.db.Range(t.Context(), errandsIndex("laptop"), 0, maxScore, 0)
		return err == nil && len(left) == 0
	})
}

// spy tells what is resumed, and resumes nothing.
type spy struct {
	runner.Runtime
	resumed chan string
}

func (s spy) Open(ctx context.Context, o runner.Options) (runner.Session, error) {
	s.resumed <- o.Resume
	o.Resume = ""
	return s.Runtime.Open(ctx, o)
}

func TestRuntimeThatListsNothingSaysSo(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.host("laptop")
	if r := h.errand("7"); r.Problem == "" || len(r.Sessions) != 0 {
		t.Errorf("result %+v", r)
	}
}
