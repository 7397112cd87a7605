package bridge

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"drawbridge/approvals"
	"drawbridge/internal/store"
	"drawbridge/policy"
	"drawbridge/runner"
)

func TestPromptIsRunAndItsTextStandsInTheTimeline(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.host("laptop")
	if p := h.prompt("7", "u:1", "say hello"); !p.Started || p.Ahead != 0 {
		t.Fatalf("placement %+v, want started", p)
	}
	if r := h.shown.ended(t, "t.u:1"); r.Outcome != runner.Completed {
		t.Fatalf("result %+v", r)
	}
	es := h.timeline("laptop", "7")
	if got := said(es, "t.u:1"); got != "hello" {
		t.Errorf("said %q, want hello", got)
	}
	waitFor(t, "the chat to be free", func() bool { c := h.chat("7"); return c.Active == nil && c.Session != "" })
}

func TestAskWaitsForAPersonAndTheTapLetsItGoOn(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.host("laptop")
	h.prompt("7", "u:1", "say before\nwrite a.txt content\nsay after")
	id := h.shown.asked(t, 1)

	// What was said before stands in the log before the ask, so that it is read above the card.
	es := h.shown.until(t, "text", func([]Entry) bool { return true })
	var order []string
	for _, e := range es {
		if e.Event.Kind == runner.ContentDelta || e.Event.Kind == runner.RequestOpened {
			order = append(order, string(e.Event.Kind))
		}
	}
	if got := strings.Join(order, " "); got != "content.delta request.opened" {
		t.Errorf("order %q", got)
	}
	if _, err := os.Stat(filepath.Join(h.folder, "a.txt")); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("written before anybody allowed it: %v", err)
	}
	if o := h.tap("7", id, runner.ActionAllow); !o.Won {
		t.Fatalf("tap refused: %+v", o)
	}
	if r := h.shown.ended(t, "t.u:1"); r.Outcome != runner.Completed {
		t.Fatalf("result %+v", r)
	}
	b, err := os.ReadFile(filepath.Join(h.folder, "a.txt"))
	if err != nil || string(b) != "content\n" {
		t.Errorf("file %q, %v", b, err)
	}
}

func TestOneTurnAChatOthersWaitInTheirOrder(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.host("laptop")
	h.prompt("7", "u:1", "ask ready?|yes")
	id := h.shown.asked(t, 1)
	if p := h.prompt("7", "u:2", "say two"); p.Started || p.Ahead != 1 {
		t.Errorf("second prompt: %+v", p)
	}
	if p := h.prompt("7", "u:3", "say three"); p.Started || p.Ahead != 2 {
		t.Errorf("third prompt: %+v", p)
	}
	if p := h.prompt("7", "u:3", "say three"); !p.Again {
		t.Errorf("the same prompt again: %+v", p)
	}
	h.update(func(tx *store.Txn) error { _, err := h.chats.Stop(tx, "7", past(), false); return err }) // too old: stops the turn, takes no prompt
	_ = id
	h.shown.ended(t, "t.u:1")
	h.shown.ended(t, "t.u:2")
	es := h.shown.until(t, "the third", func(es []Entry) bool {
		return len(es) > 0 && es[len(es)-1].Turn == "t.u:3" && es[len(es)-1].Event.Kind == runner.TurnEnded
	})
	if said(es, "t.u:2") != "two" || said(es, "t.u:3") != "three" {
		t.Errorf("said %q and %q", said(es, "t.u:2"), said(es, "t.u:3"))
	}
}

func past() time.Time { return time.Unix(1, 0) }

func TestStopEndsTheTurnAndEveryPromptBeforeIt(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.host("laptop")
	h.prompt("7", "u:1", "sleep 1h")
	h.prompt("7", "u:2", "say never")
	h.shown.until(t, "start", func(es []Entry) bool { return len(es) > 0 })
	h.update(func(tx *store.Txn) error {
		now, err := tx.Now()
		if err != nil {
			return err
		}
		s, err := h.chats.Stop(tx, "7", now, false)
		if !s.Turn || s.Prompts != 1 {
			t.Errorf("stopped %+v, want the turn and one prompt", s)
		}
		return err
	})
	if r := h.shown.ended(t, "t.u:1"); r.Outcome != runner.Interrupted || r.Reason != "stopped" {
		t.Errorf("result %+v", r)
	}
	// A prompt that arrived before the stop and is handled after it is not run either.
	h.update(func(tx *store.Txn) error {
		p, err := h.chats.Prompt(tx, "7", Prompt{ID: "u:0", Text: "say late", At: past()})
		if !p.Stopped {
			t.Errorf("a prompt from before the stop: %+v", p)
		}
		return err
	})
	h.prompt("7", "u:3", "say next")
	h.shown.ended(t, "t.u:3")
	h.shown.mu.Lock()
	defer h.shown.mu.Unlock()
	for _, e := range h.shown.entries {
		if e.Turn == "t.u:2" || e.Turn == "t.u:0" {
			t.Errorf("a stopped prompt was run: %s", e.Event.Kind)
		}
	}
}

func TestOneWritingTurnAWorkspace(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.host("laptop")
	h.prompt("7", "u:1", "ask ready?|yes")
	h.shown.asked(t, 1)
	if p := h.prompt("8", "u:2", "say eight"); p.Started || p.WaitsFor != "7" {
		t.Fatalf("another chat in the same folder: %+v", p)
	}
	if c := h.chat("8"); c.WaitsFor != "7" || len(c.Queue) != 1 {
		t.Fatalf("chat 8: %+v", c)
	}
	// In plan nothing is written, so nothing is waited for.
	h.update(func(tx *store.Txn) error { return h.chats.SetInteraction(tx, "9", policy.Plan) })
	if p := h.prompt("9", "u:3", "say nine"); !p.Started {
		t.Errorf("a chat in plan: %+v", p)
	}
	h.shown.ended(t, "t.u:3")
	h.update(func(tx *store.Txn) error { _, err := h.chats.Stop(tx, "7", past(), false); return err })
	if r := h.shown.ended(t, "t.u:2"); r.Outcome != runner.Completed {
		t.Errorf("the waiting turn: %+v", r)
	}
}

func TestLoweredModeTakesEffectAtTheNextAskOfARunningTurn(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.host("laptop")
	h.mode("7", policy.FullAccess)
	h.prompt("7", "u:1", "write a.txt one\nask go on?|yes\nwrite b.txt two")
	id := h.shown.asked(t, 1) // the question, not the first file
	h.mode("7", policy.ApprovalRequired)
	if o, err := h.gateway.Decide(t.Context(), approvals.Tap{
		ID: id, Chat: "7", Person: approvals.Person{ID: 1, Name: "Ada", Role: approvals.Owner}, Answers: map[string][]string{"q": {"yes"}},
		Action: answerAction(t, h, id), Token: "x",
	}); err != nil || !o.Won {
		t.Fatalf("answer: %+v %v", o, err)
	}
	second := h.shown.asked(t, 2)
	if r, _, err := h.gateway.Get(t.Context(), second); err != nil || r.Mode != policy.ApprovalRequired {
		t.Errorf("asked under %q, %v", r.Mode, err)
	}
	h.tap("7", second, runner.ActionDeny)
	h.shown.ended(t, "t.u:1")
	if _, err := os.Stat(filepath.Join(h.folder, "b.txt")); !errors.Is(err, os.ErrNotExist) {
		t.Error("written past the lowered mode")
	}
}

func answerAction(t *testing.T, h *house, id approvals.ID) string {
	t.Helper()
	r, _, err := h.gateway.Get(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if a := r.Actions(); len(a) > 0 {
		return a[0].ID
	}
	return ""
}

func TestSessionResumesAfterARestartOfTheHost(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	stop := h.host("laptop")
	h.prompt("7", "u:1", "turns")
	h.shown.ended(t, "t.u:1")
	stop()
	h.host("laptop")
	h.prompt("7", "u:2", "turns")
	h.shown.ended(t, "t.u:2")
	es := h.shown.until(t, "text", func([]Entry) bool { return true })
	if a, b := said(es, "t.u:1"), said(es, "t.u:2"); a == b || !strings.Contains(b, "2") {
		t.Errorf("turns %q, then %q: not resumed", a, b)
	}
	h.update(func(tx *store.Txn) error { return h.chats.New(tx, "7") })
	h.prompt("7", "u:3", "turns")
	h.shown.ended(t, "t.u:3")
	es = h.shown.until(t, "text", func([]Entry) bool { return true })
	if a, c := said(es, "t.u:1"), said(es, "t.u:3"); a != c {
		t.Errorf("after /new: %q, want %q", c, a)
	}
}

func TestTurnOfADeadHostIsInterruptedAndNotStartedAgain(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	_, crash := h.hostWithCrash("laptop")
	h.prompt("7", "u:1", "write a.txt x\nsay done")
	id := h.shown.asked(t, 1)
	h.prompt("7", "u:2", "say second")
	crash()
	r := h.shown.ended(t, "t.u:1")
	if r.Outcome != runner.Interrupted || r.Reason != errHostDied.Error() {
		t.Errorf("result %+v", r)
	}
	h.shown.mu.Lock()
	closed := len(h.shown.decided) > 0 && h.shown.decided[0].Source == runner.SourceShutdown
	h.shown.mu.Unlock()
	if !closed {
		// The approval is closed by the sweep, which may come a moment after the turn's end.
		waitFor(t, "the card of the dead host", func() bool {
			_, d, err := h.gateway.Get(t.Context(), id)
			return err == nil && d != nil && d.Source == runner.SourceShutdown
		})
	}
	if o := h.tap("7", id, runner.ActionAllow); o.Won {
		t.Error("a dead host's approval could be tapped")
	}
	h.host("laptop") // a new incarnation
	if r := h.shown.ended(t, "t.u:2"); r.Outcome != runner.Completed {
		t.Errorf("the prompt that waited: %+v", r)
	}
	es := h.shown.until(t, "all", func([]Entry) bool { return true })
	if got := said(es, "t.u:1"); got != "" {
		t.Errorf("the lost turn was run again: %q", got)
	}
}

// TestATurnOfTheNextRunIsNoTurnOfADeadHost: a host that is there again may begin a turn before its first beat is seen.
func TestATurnOfTheNextRunIsNoTurnOfADeadHost(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	_, crash := h.hostWithCrash("laptop")
	h.prompt("9", "u:0", "say settled")
	h.shown.ended(t, "t.u:0")
	crash()
	var gone string
	waitFor(t, "the host's death", func() bool {
		incarnation, dead, err := h.gateway.HostDead(t.Context(), "laptop")
		gone = incarnation
		return err == nil && dead
	})
	h.update(func(tx *store.Txn) error { return h.chats.SetInteraction(tx, "8", policy.Plan) }) // which leaves the folder to the other
	h.prompt("7", "u:1", "say by the next run")
	h.prompt("8", "u:2", "say by the one that died")
	begun := func(turn, chat, incarnation string, at time.Time) {
		h.update(func(tx *store.Txn) error {
			return store.Put(tx, turnKey("laptop", turn), Turn{V: Version, ID: turn, Chat: chat, Incarnation: incarnation, State: TurnRunning, Started: at})
		})
	}
	begun("t.u:1", "7", "next", time.Now().Add(time.Hour))
	begun("t.u:2", "8", gone, time.Now().Add(time.Hour))
	if r := h.shown.ended(t, "t.u:2"); r.Outcome != runner.Interrupted {
		t.Errorf("the turn of the run that died: %+v", r)
	}
	if c := h.chat("7"); c.Active == nil || c.Active.Turn != "t.u:1" {
		t.Errorf("the turn that the next run has begun was ended: %+v", c.Active)
	}
	begun("t.u:1", "7", "next", time.Now().Add(-time.Hour)) // and is silent for as long as a dead one
	if r := h.shown.ended(t, "t.u:1"); r.Outcome != runner.Interrupted {
		t.Errorf("the turn of a next run that died too: %+v", r)
	}
}

func waitFor(t *testing.T, what string, f func() bool) {
	t.Helper()
	deadline := time.Now().Add(60 * time.Second)
	for !f() {
		if time.Now().After(deadline) {
			t.Fatalf("%s: did not happen", what)
		}
		<-time.After(beat)
	}
}

func TestQueueIsBounded(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.host("laptop")
	h.prompt("7", "u:0", "sleep 1h")
	for i := range MaxQueue {
		h.prompt("7", "q:"+string(rune('a'+i)), "say x")
	}
	err := store.Update(t.Context(), h.db, func(tx *store.Txn) error {
		now, err := tx.Now()
		if err != nil {
			return err
		}
		_, err = h.chats.Prompt(tx, "7", Prompt{ID: "one more", Text: "x", At: now})
		return err
	})
	if !errors.Is(err, ErrQueueFull) {
		t.Errorf("error %v, want ErrQueueFull", err)
	}
	h.update(func(tx *store.Txn) error { now, _ := tx.Now(); _, err := h.chats.Stop(tx, "7", now, false); return err })
	h.shown.ended(t, "t.u:0")
}

func TestLongTextIsCommittedInPiecesAndWhole(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.host("laptop")
	h.prompt("7", "u:1", "long 100000")
	h.shown.ended(t, "t.u:1")
	es := h.timeline("laptop", "7")
	n := 0
	for _, e := range es {
		if e.Event.Kind == runner.ContentDelta {
			n++
			if len(e.Event.Item.Text) > maxItem {
				t.Errorf("a piece of %d bytes", len(e.Event.Item.Text))
			}
		}
	}
	if got := len([]rune(said(es, "t.u:1"))); got != 100_000 || n < 4 {
		t.Errorf("%d characters in %d pieces", got, n)
	}
}
