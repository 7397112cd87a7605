package e2e_test

import (
	"strings"
	"testing"
)

// TestStoppedWhileACardIsOpen: SIGTERM ends the program within its grace although an agent waits for an answer. The chat
// is told, the card is closed, and after a restart its Resume button goes on with the turn.
func TestStoppedWhileACardIsOpen(t *testing.T) {
	t.Parallel()
	w := newWorld(t, on{})
	serve := w.start("serve")
	me := w.private(ada)
	prompt := me.say("run echo one >> ran")
	card := me.card(prompt, "echo one")
	serve.stop()
	serve = w.start("serve")
	if m := me.turns(card.ID, "The agent is gone: nothing ran"); strings.Join(m.labels(), " ") != "Resume" {
		t.Errorf("the card has the buttons %q", m.labels())
	}
	end := me.ends(prompt, "Interrupted after")
	if !strings.Contains(end.Text, "Drawbridge was stopped") || !end.has("Continue") {
		t.Errorf("the turn ended with %q and the buttons %q", end.Text, end.labels())
	}
	me.tap(card.ID, "Resume")
	me.hears(end.ID, "Continue where you were interrupted.")
	if m := me.message(card.ID); len(m.Buttons) > 0 {
		t.Errorf("the resumed card has the buttons %q", m.labels())
	}
	w.holds("ran", "")
	serve.stop()
}

// TestHostKilledWhileACommandRuns: what a dead host was doing is not done again by the next one.
func TestHostKilledWhileACommandRuns(t *testing.T) {
	t.Parallel()
	w := newWorld(t, on{redis: true})
	w.start("gateway")
	host := w.start("host")
	me := w.private(ada)
	prompt := me.say("run echo begun >> ran; sleep 300")
	me.tap(me.card(prompt, "echo begun").ID, "Allow")
	w.comes("ran", "begun\n")
	host.kill()
	end := me.ends(prompt, "Interrupted after")
	soon(t, "the dead host's command has ended with it", func() bool { return !strings.Contains(strings.Join(under(w.project), " "), "sleep") })
	w.start("host")
	me.ends(me.say("say what was queued runs on"), "what was queued runs on")
	w.holds("ran", "begun\n")
	if !end.has("Continue") {
		t.Fatalf("the interrupted turn has the buttons %q, want Continue", end.labels())
	}
	me.tap(end.ID, "Continue")
	me.hears(end.ID, "Continue where you were interrupted.")
	w.holds("ran", "begun\n")
}
