package e2e_test

import (
	"fmt"
	"strings"
	"testing"
)

// TestPairing: with nobody listed the bot serves no one, and its first owner is who sends the code that stands on its
// own console.
func TestPairing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, on{env: map[string]string{"DRAWBRIDGE_OWNERS": "", "DRAWBRIDGE_OPERATORS": "", "DRAWBRIDGE_VIEWERS": ""}})
	serve := w.start("serve")
	line := serve.log.line(serve, "/start ")
	_, code, _ := strings.Cut(line, "/start ")
	me, her := w.private(ada), w.private(mallory)

	me.hears(me.say("run echo nobody > ran"), "Nobody owns this bot yet")
	her.hears(her.say("/start WRONGONE"), "That is not the code")
	me.hears(me.say("/start "+strings.ToLower(code)), "You are the owner of this bot now")
	her.say("/start " + code) // too late
	me.ends(me.say("say hello"), "hello")
	if got := len(her.bots(0)); got != 1 {
		t.Errorf("who came too late has %d answers, want the one polite line:\n%s", got, her.transcript())
	}

	serve.stop()
	serve = w.start("serve")
	me.ends(me.say("say still the owner"), "still the owner")
	if strings.Contains(serve.log.String(), "/start ") {
		t.Error("a bot with an owner prints a pairing code")
	}
	if !strings.Contains(w.audit("serve"), `"event":"people"`) {
		t.Error("the pairing has no audit line")
	}
	w.holds("ran", "")
}

// TestPairingEndsAfterWrongCodes: guessing ends the code.
func TestPairingEndsAfterWrongCodes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, on{env: map[string]string{"DRAWBRIDGE_OWNERS": "", "DRAWBRIDGE_OPERATORS": "", "DRAWBRIDGE_VIEWERS": ""}})
	serve := w.start("serve")
	_, code, _ := strings.Cut(serve.log.line(serve, "/start "), "/start ")
	me, he := w.private(ada), w.private(linus)
	for range 5 {
		me.say("/start GUESSING")
	}
	me.say("/start " + code)
	he.hears(he.say("/start"), "Nobody owns this bot yet")
	serve.logs("pairing has ended") // guesses that are still under way would count against the next code

	// Only who can restart the program makes another code.
	serve.stop()
	serve = w.start("serve")
	_, code, _ = strings.Cut(serve.log.line(serve, "/start "), "/start ")
	me.hears(me.say("/start "+code), "You are the owner of this bot now")
}

// TestGroupsAreEnabledByAnOwner: in a group the bot works once an owner says so, and no longer.
func TestGroupsAreEnabledByAnOwner(t *testing.T) {
	t.Parallel()
	w := newWorld(t, on{})
	w.start("serve")
	me, she := w.in(group, ada), w.in(group, grace)
	she.say("run echo too early > ran")
	me.hears(me.say("/status"), "This group is not enabled")
	she.hears(she.say("/enable"), "Only an owner can do this")
	me.hears(me.say("/enable"), "This group is enabled")
	prompt := she.say("run echo in time > ran")
	she.tap(she.card(prompt, "in time").ID, "Allow")
	w.comes("ran", "in time\n")
	she.ends(prompt, "Done in")

	// A reply to somebody else is a conversation among people.
	she.say("say not for you", map[string]any{"reply_to": me.say("/status")})
	me.hears(me.say("/disable"), "not enabled any more")
	she.say("run echo too late > ran")
	me.hears(me.say("/mode"), "This group is not enabled")
	for _, r := range w.model.Requests() {
		for _, m := range r.Messages {
			for _, text := range []string{"too early", "not for you", "too late"} {
				if strings.Contains(m.Content, text) {
					t.Errorf("the prompt %q reached the model", text)
				}
			}
		}
	}
}

// TestTopicsAreChats: each topic of a forum has its own settings, session and answers, and a new one begins with the
// configured default.
func TestTopicsAreChats(t *testing.T) {
	t.Parallel()
	w := newWorld(t, on{env: map[string]string{"DRAWBRIDGE_DEFAULT_MODE": "auto-accept-edits"}})
	w.start("serve")
	topic := func(name string) seat {
		var made struct {
			Topic int64 `json:"topic"`
		}
		w.post("/sim/topics", map[string]any{"chat": forum, "name": name, "from": ada}, &made)
		s := w.in(forum, ada)
		s.topic = made.Topic
		return s
	}
	general := w.in(forum, ada)
	general.hears(general.say("/enable"), "This group is enabled")
	one, two := topic("one"), topic("two")
	one.hears(one.say("/mode approval-required"), "The mode is now approval-required")
	two.hears(two.say("/project web"), "This chat now works in web")

	three := topic("three")
	for s, want := range map[seat]string{one: "approval-required", two: "auto-accept-edits", three: "auto-accept-edits", general: "auto-accept-edits"} {
		if m := s.hears(s.say("/mode"), "Mode of this chat: "); !strings.HasPrefix(m.Text, "Mode of this chat: "+want) {
			t.Errorf("topic %d: %q, want %s", s.topic, m.Text, want)
		}
	}
	prompt := one.say("write a.txt one")
	card := one.card(prompt, "a.txt")
	if card.Topic != one.topic {
		t.Errorf("the card stands in topic %d, want %d", card.Topic, one.topic)
	}
	two.ends(two.say("write b.txt two"), "Done in")
	one.tap(card.ID, "Allow")
	one.ends(prompt, "Done in")
	w.holds("a.txt", "one\n")
	w.holds("../web/b.txt", "two\n")
	if log := w.audit("serve"); !strings.Contains(log, fmt.Sprintf(`"chat":"%d/%d"`, forum, one.topic)) {
		t.Errorf("the audit log does not say in which topic it was decided:\n%s", log)
	}
	one.hears(one.say("turns"), "This is turn 2.")
	two.hears(two.say("turns"), "This is turn 2.")
	three.hears(three.say("turns"), "This is turn 1.")
}

// TestMigrationKeepsTheMode: a group that becomes a supergroup stays enabled and in its mode.
func TestMigrationKeepsTheMode(t *testing.T) {
	t.Parallel()
	w := newWorld(t, on{})
	w.start("serve")
	me := w.in(group, ada)
	me.hears(me.say("/enable"), "This group is enabled")
	me.hears(me.say("/mode auto-accept-edits"), "The mode is now auto-accept-edits")
	var moved struct {
		Chat int64 `json:"chat"`
	}
	w.post("/sim/migrations", map[string]any{"chat": group}, &moved)
	now := w.in(moved.Chat, ada)
	if m := now.hears(now.say("/mode"), "Mode of this chat: "); !strings.HasPrefix(m.Text, "Mode of this chat: auto-accept-edits") {
		t.Errorf("after the migration: %q", m.Text)
	}
}
