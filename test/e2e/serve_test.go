package e2e_test

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// TestServeKilledWhileACardIsOpen: kill -9 of gateway and host in one process, on bbolt. The setting and the prompts are
// kept, the card says that its agent is gone, and what was done is not done again: Continue is offered, and works.
func TestServeKilledWhileACardIsOpen(t *testing.T) {
	t.Parallel()
	w := newWorld(t, on{})
	serve := w.start("serve")
	me := w.private(ada)
	me.hears(me.say("/mode auto-accept-edits"), "The mode is now auto-accept-edits")
	prompt := me.say("run echo one >> ran\nrun echo two >> ran")
	me.tap(me.card(prompt, "echo one").ID, "Allow")
	card := me.card(prompt, "echo two")
	queued := me.say("say the queued one")
	me.hears(queued, "Queued")
	serve.kill()

	away := me.say("say sent while nobody was there")
	serve = w.start("serve")
	if m := me.turns(card.ID, "nothing ran"); !slices.Equal(m.labels(), []string{"Resume"}) {
		t.Errorf("the card of the dead agent has the buttons %q, want one that continues its turn", m.labels())
	}
	end := me.ends(prompt, "Interrupted after")
	me.ends(queued, "the queued one")
	me.ends(away, "sent while nobody was there")
	w.holds("ran", "one\n")

	if !end.has("Continue") {
		t.Fatalf("the interrupted turn has the buttons %q, want Continue", end.labels())
	}
	if seen := me.tap(end.ID, "Continue"); seen.Text != "Continuing." {
		t.Errorf("Continue was answered with %q", seen.Text)
	}
	me.hears(away, "Continue where you were interrupted.") // the script says a prompt back
	if m := me.message(end.ID); m.has("Continue") {
		t.Error("the interrupted turn still offers to continue")
	}
	me.hears(me.say("turns"), "This is turn ") // in the session that it was before
	w.holds("ran", "one\n")
	if m := me.hears(me.say("/mode"), "Mode of this chat: "); !strings.HasPrefix(m.Text, "Mode of this chat: auto-accept-edits") {
		t.Errorf("the mode was lost: %q", m.Text)
	}
	serve.stop()
}

// TestServeKilledAfterATap: a decision that was acknowledged stands after kill -9; either the agent got it, or the card
// says that it did not.
func TestServeKilledAfterATap(t *testing.T) {
	t.Parallel()
	w := newWorld(t, on{})
	serve := w.start("serve")
	me := w.private(ada)
	prompt := me.say("run echo one >> ran")
	card := me.card(prompt, "echo one")
	if seen := me.tap(card.ID, "Allow"); seen.Text != "Allowed" {
		t.Fatalf("the tap was answered with %q", seen.Text)
	}
	serve.kill()
	w.start("serve")
	m := me.expect(prompt, "the card says what became of it", func(m message) bool {
		return m.ID == card.ID && strings.HasPrefix(m.Text, "Allowed by Ada") && !strings.Contains(m.Text, "handing over")
	})
	me.expect(prompt, "the turn has ended", func(m message) bool {
		return m.ReplyTo == prompt && (strings.HasPrefix(m.Text, "Interrupted after") || strings.HasPrefix(m.Text, "Done in"))
	})
	// The command may have been killed too, before or after it had written.
	if ran, err := os.ReadFile(w.path("ran")); err == nil && (strings.Contains(m.Text, "nothing ran") || strings.Count(string(ran), "one") > 1) {
		t.Errorf("the command has written %q, and the card says %q", ran, m.Text)
	}
}
