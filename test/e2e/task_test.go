package e2e_test

import (
	"os"
	"strings"
	"testing"
)

// TestNobodyIsThere: what is planned and asks while nobody answers changes nothing, says so, and asks again for who is
// there then.
func TestNobodyIsThere(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]on{"bbolt": {}, "redis": {redis: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o.env = map[string]string{"DRAWBRIDGE_APPROVAL_DEADLINE": "45s"} // at this pace 9 or 15 seconds
			w := newWorld(t, o)
			w.start("serve")
			me := w.private(ada)
			planned := me.hears(me.say("/in 1s run touch made"), "Scheduled: run touch made")
			if !strings.Contains(planned.Text, "approval-required") {
				t.Errorf("it is not said under which mode it is done: %q", planned.Text)
			}
			card := me.card(planned.ID, "touch made")
			if !strings.Contains(card.Text, "Asked in the background") {
				t.Errorf("the card does not say that nobody waits for it:\n%s", card.Text)
			}
			report := me.hears(card.ID, "Not allowed: touch made – nobody answered")
			w.holds("made", "")
			if !strings.Contains(report.Text, "Nothing was changed and no command was run.") {
				t.Errorf("the report says\n%s", report.Text)
			}
			me.tap(report.ID, "Run again and ask me")
			again := me.card(report.ID, "touch made")
			me.tap(again.ID, "Allow")
			me.hears(again.ID, "1 command run")
			if _, err := os.Stat(w.path("made")); err != nil {
				t.Errorf("it was allowed and not done: %v", err)
			}
		})
	}
}

// TestAProposalIsACardFirst: an agent that proposes a task in a chat that allows everything makes nothing by that; the tap of
// a person makes one task, under no more than the chat's mode of then.
func TestAProposalIsACardFirst(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]on{"bbolt": {}, "redis": {redis: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o.env = map[string]string{"DRAWBRIDGE_DEFAULT_MODE": "full-access"}
			w := newWorld(t, o)
			w.start("serve")
			me := w.private(ada)
			first := me.say(`propose {"title":"clean up","steps":["run rm -f everything"]}`)
			card := me.card(first, "Proposed task")
			me.tap(card.ID, "Deny")
			me.ends(first, "Done in")
			second := me.say(`propose {"title":"look around","steps":["run touch looked"],"mode":"full-access"}`)
			card = me.card(second, "Proposed task")
			me.hears(me.say("/tasks"), "There are no tasks here.")
			me.hears(me.say("/mode approval-required"), "The mode is now")
			me.tap(card.ID, "Make it")
			made := me.card(card.ID, "touch looked") // full-access would not have asked
			me.tap(made.ID, "Allow")
			me.hears(made.ID, "In review: look around")
			w.comes("looked", "")
			list := me.hears(me.say("/tasks"), "look around")
			if strings.Contains(list.Text, "clean up") || strings.Contains(list.Text, "2. ") {
				t.Errorf("there is more than was made:\n%s", list.Text)
			}
		})
	}
}

// TestAFiringOutlivesAKill: a time that passes while nothing runs is made up for, once.
func TestAFiringOutlivesAKill(t *testing.T) {
	t.Parallel()
	w := newWorld(t, on{env: map[string]string{"DRAWBRIDGE_DEFAULT_MODE": "full-access"}})
	p := w.start("serve")
	me := w.private(ada)
	planned := me.hears(me.say("/in 2s run echo fired >> fired"), "Scheduled: ")
	p.kill()
	w.start("serve")
	w.comes("fired", "fired\n")
	me.hears(planned.ID, "1 command run")
	me.hears(me.say("/cron"), "It has no further time.")
	w.holds("fired", "fired\n")
}

// TestLoweringBindsATask: a chat's mode that is lowered while a task runs holds it at its next ask; one that is raised
// raises no task.
func TestLoweringBindsATask(t *testing.T) {
	t.Parallel()
	w := newWorld(t, on{})
	w.start("serve")
	me := w.private(ada)
	me.hears(me.say("/mode auto-accept-edits"), "The mode is now auto-accept-edits")
	at := me.say("/task new work\nwrite free.txt x\nrun echo gate\nwrite asked.txt y")
	gate := me.card(at, "echo gate")
	w.holds("free.txt", "x\n")
	me.hears(me.say("/mode approval-required"), "The mode is now approval-required")
	me.tap(gate.ID, "Allow")
	write := me.card(gate.ID, "asked.txt")
	w.holds("asked.txt", "")
	me.tap(write.ID, "Deny")
	me.hears(write.ID, "Asked 2 times, allowed 1, refused 1.")
	w.holds("asked.txt", "")

	at = me.say("/task new more\nwrite later.txt z")
	held := me.card(at, "later.txt")
	me.hears(me.say("/mode auto-accept-edits"), "The mode is now auto-accept-edits")
	me.tap(held.ID, "Deny")
	me.hears(held.ID, "refused 1.")
	me.tap(me.hears(held.ID, "more").ID, "Rerun")
	me.card(held.ID, "later.txt") // it was made under approval-required, and stays there
	w.holds("later.txt", "")
}
