package bridge

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"drawbridge/internal/store"
	"drawbridge/policy"
	"drawbridge/runner"
	"drawbridge/runner/runnertest"
)

// TestNothingGrowsForEver: what a host wrote is forgotten with everything that points to it. Only what is still in use
// stays: the session that the chat has.
func TestNothingGrowsForEver(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	data := t.TempDir()
	config := HostConfig{}
	stop := h.host("laptop", func(c *HostConfig) { c.Data = data; c.Keep = time.Nanosecond; config = *c })
	blob, err := PutBlob(t.Context(), h.db, "laptop", "a.txt", strings.NewReader("a"))
	if err != nil {
		t.Fatal(err)
	}
	h.update(func(tx *store.Txn) error {
		now, err := tx.Now()
		if err != nil {
			return err
		}
		_, err = h.chats.Prompt(tx, "7", Prompt{ID: "u:1", Text: "turns", Files: []Blob{blob}, At: now})
		return err
	})
	h.shown.ended(t, "t.u:1")
	first := h.chat("7").Session
	h.update(func(tx *store.Txn) error { return h.chats.New(tx, "7") })
	h.prompt("7", "u:2", "turns")
	h.shown.ended(t, "t.u:2")
	second := h.chat("7").Session
	stop()

	host := NewHost(config)
	if err := host.prune(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, index := range []string{timelineIndex("laptop", "7"), forgetIndex("laptop")} {
		items, err := h.db.Range(t.Context(), index, 0, maxScore, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, it := range items {
			if it.Member != sessionKey("laptop", second) {
				t.Errorf("%s still holds %s", index, it.Member)
			}
		}
	}
	_, docs, err := h.db.Read(t.Context(), sessionKey("laptop", first), sessionKey("laptop", second), entryKey("laptop", 1), turnKey("laptop", "t.u:1"))
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []bool{false, true, false, false} {
		if (docs[i].Rev != "") != want {
			t.Errorf("document %d is there: %v, want %v", i, !want, want)
		}
	}
	if left, err := os.ReadDir(filepath.Join(data, "attachments")); err != nil || len(left) > 0 {
		t.Errorf("attachments left: %v, %v", left, err)
	}
}

// TestLimitBindsWhatFollows: a turn that a runtime asks for is held to the limit of the one that it follows, and a stop
// ends both.
func TestLimitBindsWhatFollows(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	under := make(chan runner.Policy, 2)
	h.host("laptop", withTurn(func(_ context.Context, s *runnertest.Scripted, in runner.Input) (runner.Result, error) {
		under <- s.Policy()
		r := runner.Result{Outcome: runner.Completed}
		if in.Text == "first" {
			r.Next = &runner.Input{Text: "next"}
		}
		return r, nil
	}))
	h.mode("7", policy.FullAccess)
	h.update(func(tx *store.Txn) error {
		now, err := tx.Now()
		if err != nil {
			return err
		}
		_, err = h.chats.Prompt(tx, "7", Prompt{ID: "u:1", Text: "first", At: now, Limit: policy.AutoAcceptEdits, Plan: true})
		return err
	})
	h.shown.ended(t, "t.u:1+")
	for range 2 {
		if p := <-under; p.Mode != policy.AutoAcceptEdits || p.Interaction != policy.Plan {
			t.Errorf("a turn ran under %+v", p)
		}
	}
	h.update(func(tx *store.Txn) error {
		if _, err := h.chats.Stop(tx, "8", time.Unix(1, 0), false); err != nil {
			return err
		}
		return store.Put(tx, chatKey("8"), Chat{V: Version, ID: "8", Active: &Active{Turn: "t.x", Prompt: Prompt{ID: "x"}, Host: "laptop", Stopping: true}})
	})
	h.update(func(tx *store.Txn) error {
		_, err := h.chats.end(tx, "laptop", "8", "t.x", runner.Result{Outcome: runner.Completed, Next: &runner.Input{Text: "next"}})
		return err
	})
	if c := h.chat("8"); c.Active != nil || len(c.Queue) > 0 {
		t.Errorf("a turn that was stopped goes on with %+v, %+v", c.Active, c.Queue)
	}
}

// TestTurnThatBeganInPlanStaysThere: it does not have the workspace, in which another turn may be writing by the time
// that its chat leaves planning.
func TestTurnThatBeganInPlanStaysThere(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	begun, left := make(chan struct{}), make(chan struct{})
	answers := make(chan runner.Answer, 1)
	h.host("laptop", withTurn(func(_ context.Context, s *runnertest.Scripted, _ runner.Input) (runner.Result, error) {
		close(begun)
		<-left
		answers <- s.Edit("a.txt", "x")
		return runner.Result{Outcome: runner.Completed}, nil
	}))
	h.mode("7", policy.FullAccess)
	h.update(func(tx *store.Txn) error { return h.chats.SetInteraction(tx, "7", policy.Plan) })
	h.prompt("7", "u:1", "plan")
	<-begun
	h.update(func(tx *store.Txn) error { return h.chats.SetInteraction(tx, "7", policy.Default) })
	close(left)
	if a := <-answers; a.Allows() {
		t.Error("a turn without the workspace wrote in it")
	}
	h.shown.ended(t, "t.u:1")
}

// TestHostThatAChatLeavesHearsOfIt: its agent's process is closed, and does not keep an older mode.
func TestHostThatAChatLeavesHearsOfIt(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.host("laptop")
	h.host("tower", func(c *HostConfig) { c.Projects = []Project{{Name: "other", Folder: t.TempDir()}} })
	h.mode("7", policy.FullAccess)
	before := h.chat("7")
	h.update(func(tx *store.Txn) error { _, err := h.chats.SetProject(tx, "7", "other"); return err })
	h.update(func(tx *store.Txn) error {
		m, ok, err := store.Get[Mirror](tx, mirrorKey("laptop", "7"))
		if !ok || m.CloseSeq == before.CloseSeq || m.Session == before.Session && m.Session != "" {
			t.Errorf("the host that was left knows %+v", m)
		}
		return err
	})
}
