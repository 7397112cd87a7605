package e2e_test

import (
	"slices"
	"strings"
	"testing"
)

// TestStopEndsTheTurnAndItsProcesses: /stop ends the turn, what it runs, and every prompt that came before it.
func TestStopEndsTheTurnAndItsProcesses(t *testing.T) {
	t.Parallel()
	w := newWorld(t, on{})
	w.start("serve")
	me := w.private(ada)
	sleeps := func() bool {
		return slices.ContainsFunc(under(w.project), func(p string) bool { return strings.Contains(p, "sleep") })
	}
	prompt := me.say("run sleep 301 & sleep 302\nsay never")
	me.tap(me.card(prompt, "sleep 301").ID, "Allow")
	soon(t, "the command runs", sleeps)
	queued := me.say("say never either")
	me.hears(queued, "Queued")
	me.hears(me.say("/stop"), "Stopping the turn; 1 waiting prompt will not be run.")
	me.ends(prompt, "Stopped after")
	if sleeps() {
		t.Errorf("processes of the stopped turn are left: %q", under(w.project))
	}
	me.ends(me.say("say and on"), "and on")
	me.hears(me.say("/stop session"), "Nothing runs here. The agent's process is ended")
	me.ends(me.say("turns"), "This is turn 3.") // it is resumed
	for _, m := range me.bots(prompt) {
		if m.Text == "never" || m.Text == "never either" {
			t.Errorf("what was stopped was said: %q", m.Text)
		}
	}
}

// TestStopButton: the button of the live turn stops it too, and a card of it that is open is withdrawn.
func TestStopButton(t *testing.T) {
	t.Parallel()
	w := newWorld(t, on{})
	w.start("serve")
	me := w.private(ada)
	prompt := me.say("run echo one > ran")
	card := me.card(prompt, "echo one")
	live := me.expect(prompt, "the live turn", func(m message) bool { return m.has("Stop") })
	me.tap(live.ID, "Stop")
	me.ends(prompt, "Stopped after")
	me.decided(card, "Not asked any more: nothing ran")
	w.holds("ran", "")
}

// TestQueue: what waits is listed and can be taken back, edited and stopped.
func TestQueue(t *testing.T) {
	t.Parallel()
	w := newWorld(t, on{})
	w.start("serve")
	me := w.private(ada)
	prompt := me.say("run echo one")
	card := me.card(prompt, "echo one")
	first := me.say("say first")
	second := me.say("say second")
	third := me.say("say third")
	waiting := me.hears(first, "Queued")
	me.expect(third, "the third one waits", func(m message) bool { return m.ReplyTo == third && strings.HasPrefix(m.Text, "Queued: 3 turns") })

	list := me.hears(me.say("/queue"), "1. say first")
	for _, text := range []string{"run echo one", "2. say second", "3. say third"} {
		if !strings.Contains(list.Text, text) {
			t.Errorf("/queue does not list %q:\n%s", text, list.Text)
		}
	}
	me.tap(waiting.ID, "Take back")
	me.tap(list.ID, "Take back 2")
	w.post("/sim/edits", map[string]any{"chat": ada, "from": ada, "message_id": third, "text": "say third, edited"}, nil)
	// Edits keep their place among what the chat says.
	me.eventually("the edit has come", func() bool {
		return strings.Contains(me.hears(me.say("/queue"), "1. say third").Text, "say third, edited")
	})
	me.tap(card.ID, "Allow")
	me.ends(third, "third, edited")
	for _, m := range me.bots(0) {
		if m.ReplyTo == first && m.Text == "first" || m.ReplyTo == second && m.Text == "second" {
			t.Errorf("a prompt that was taken back was run: %q", m.Text)
		}
	}
}

// TestPendingPostsCardsAgain: the old card points to the new one.
func TestPendingPostsCardsAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, on{})
	w.start("serve")
	me := w.private(ada)
	me.hears(me.say("/pending"), "Nothing waits for an answer")
	prompt := me.say("run echo one > ran")
	old := me.card(prompt, "echo one")
	again := me.card(me.say("/pending"), "echo one")
	if m := me.turns(old.ID, "This card stands again further down."); len(m.Buttons) > 0 {
		t.Errorf("the old card still has the buttons %q", m.labels())
	}
	me.tap(again.ID, "Allow")
	me.decided(again, "Allowed by Ada")
	w.comes("ran", "one\n")
}

// TestGrants: what is granted is not asked again, is listed, and is asked again once it is removed. It ends with /new.
func TestGrants(t *testing.T) {
	t.Parallel()
	w := newWorld(t, on{})
	w.start("serve")
	me := w.private(ada)
	me.hears(me.say("/grants"), "Nothing is granted")
	command := "echo one >> ran"
	prompt := me.say("run " + command)
	me.tap(me.card(prompt, command).ID, "Allow for this session")
	me.ends(prompt, "Done in")
	me.ends(me.say("run "+command), "Done in") // without a card
	w.holds("ran", "one\none\n")
	other := me.say("run " + command + "; date") // another command
	me.tap(me.card(other, "date").ID, "Deny")
	me.ends(other, "Done in")

	list := me.hears(me.say("/grants"), command)
	if seen := me.tap(list.ID, "Remove 1"); !strings.Contains(seen.Text, "Removed") {
		t.Errorf("removing was answered with %q", seen.Text)
	}
	prompt = me.say("run " + command)
	me.tap(me.card(prompt, command).ID, "Allow for this session")
	me.ends(prompt, "Done in")
	me.hears(me.say("/new"), "A new session begins")
	prompt = me.say("turns\nrun " + command)
	me.tap(me.card(prompt, command).ID, "Deny")
	me.expect(prompt, "the session is new", func(m message) bool { return strings.Contains(m.Text, "This is turn 1.") })
	w.holds("ran", "one\none\none\n")
}

// TestProjectsAndRuntimes: a project that does not exist is refused with the list of those that do; one that is chosen is
// where the agent works.
func TestProjectsAndRuntimes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, on{})
	w.start("serve")
	me := w.private(ada)
	wrong := me.hears(me.say("/project nonsense"), "There is no such project")
	if !slices.Contains(wrong.labels(), "shop") || !slices.Contains(wrong.labels(), "web") {
		t.Errorf("a wrong project is answered with the buttons %q", wrong.labels())
	}
	me.tap(wrong.ID, "web")
	me.turns(wrong.ID, "This chat now works in web")
	prompt := me.say("run pwd > here")
	me.tap(me.card(prompt, w.web).ID, "Allow")
	me.ends(prompt, "Done in")
	w.holds("../web/here", w.web+"\n")

	if m := me.hears(me.say("/runtime nonsense"), "There is no such runtime"); !slices.Contains(m.labels(), "• native") {
		t.Errorf("a wrong runtime is answered with the buttons %q", m.labels())
	}
	if m := me.hears(me.say("/runtime"), "Runtime: native"); !slices.Contains(m.labels(), "• native") {
		t.Errorf("/runtime has the buttons %q", m.labels())
	}
	me.hears(me.say("/status"), "Project: web")
	me.hears(me.say("/nonsense"), "I don't know this command")
	me.hears(me.say("/help"), "/mode")
}

// TestWorkspaceHasOneWriter: two chats work in one folder one after the other, visibly.
func TestWorkspaceHasOneWriter(t *testing.T) {
	t.Parallel()
	w := newWorld(t, on{})
	w.start("serve")
	me, she := w.private(ada), w.private(grace)
	prompt := me.say("run echo hers-comes-later")
	card := me.card(prompt, "hers-comes-later")
	hers := she.say("say after you")
	she.hears(hers, "another chat's turn works in this folder")
	me.tap(card.ID, "Allow")
	me.ends(prompt, "Done in")
	she.ends(hers, "after you")
}

// TestModelTalksNonsense: calls of tools that do not exist are the model's error, and three in a row end the turn.
func TestModelTalksNonsense(t *testing.T) {
	t.Parallel()
	w := newWorld(t, on{})
	w.start("serve")
	me := w.private(ada)
	prompt := me.say("nonsense")
	end := me.ends(prompt, "Failed after")
	if !end.has("Continue") {
		t.Errorf("the failed turn has the buttons %q", end.labels())
	}
	me.ends(me.say("say and on"), "and on")
}
