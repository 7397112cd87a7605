package e2e_test

import (
	"slices"
	"strings"
	"testing"
)

// TestLoweringBindsAtTheNextAsk: a mode that is lowered while a turn runs is in force at its next ask; one that is raised
// answers nothing that waits.
func TestLoweringBindsAtTheNextAsk(t *testing.T) {
	t.Parallel()
	w := newWorld(t, on{})
	w.start("serve")
	me := w.private(ada)
	me.hears(me.say("/mode auto-accept-edits"), "The mode is now auto-accept-edits")
	prompt := me.say("write free.txt x\nrun echo gate\nwrite asked.txt y")
	gate := me.card(prompt, "echo gate")
	w.holds("free.txt", "x\n") // without a question

	raised := me.hears(me.say("/mode auto"), "The mode is now auto")
	if !strings.Contains(raised.Text, "1 question") {
		t.Errorf("the raised mode does not name what waits: %q", raised.Text)
	}
	if m := me.message(gate.ID); !m.has("Allow") {
		t.Errorf("the raised mode answered a card: %q", m.Text)
	}
	me.hears(me.say("/mode approval-required"), "The mode is now approval-required")
	me.tap(gate.ID, "Allow")
	write := me.card(gate.ID, "asked.txt")
	w.holds("asked.txt", "")
	me.tap(write.ID, "Deny")
	me.ends(prompt, "Done in")
	w.holds("asked.txt", "")
}

// TestFullAccessNeedsASecondTap: full-access is confirmed by a second tap that spells out what it means; what waits is
// allowed only by the button that lists it, and human-only never.
func TestFullAccessNeedsASecondTap(t *testing.T) {
	t.Parallel()
	w := newWorld(t, on{})
	w.start("serve")
	me := w.private(ada)
	push := me.say("run git push origin main")
	card := me.card(push, "git push")
	asked := me.hears(me.say("/mode full-access"), "please confirm")
	if labels := asked.labels(); !slices.Equal(labels, []string{"Use full-access", "Keep approval-required"}) || strings.Contains(asked.Text, "git push") {
		t.Errorf("the confirmation lists what only a person decides: %q\n%s", labels, asked.Text)
	}
	if !strings.Contains(asked.Text, "without asking") {
		t.Errorf("the confirmation does not say what full-access means:\n%s", asked.Text)
	}
	me.tap(asked.ID, "Keep approval-required")
	if m := me.hears(me.say("/mode"), "Mode of this chat: "); !strings.HasPrefix(m.Text, "Mode of this chat: approval-required") {
		t.Errorf("without the second tap the mode became %q", m.Text)
	}
	me.tap(card.ID, "Deny")
	me.ends(push, "Done in")

	prompt := me.say("run echo a > a")
	card = me.card(prompt, "echo a > a")
	me.say("/mode full-access")
	asked = me.expect(prompt, "the confirmation", func(m message) bool { return m.has("Use full-access and allow this one") })
	if !strings.Contains(asked.Text, "echo a > a") {
		t.Errorf("the confirmation does not list the command:\n%s", asked.Text)
	}
	me.tap(asked.ID, "Use full-access and allow this one")
	w.comes("a", "a\n")
	me.decided(card, "Allowed by Ada")
	me.ends(prompt, "Done in")

	// From here on commands run, and pushes still wait for a person.
	prompt = me.say("run rm a\nrun git push")
	card = me.card(prompt, "git push")
	w.holds("a", "")
	me.tap(card.ID, "Deny")
	me.ends(prompt, "Done in")
}

// TestFullAccessAllowsOnlyWhatItListed: what came to wait after the confirmation was shown is not allowed with it.
func TestFullAccessAllowsOnlyWhatItListed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, on{})
	w.start("serve")
	me := w.private(ada)
	prompt := me.say("run echo a > a\nrun echo b > b")
	a := me.card(prompt, "echo a")
	asked := me.expect(me.say("/mode full-access"), "the confirmation", func(m message) bool { return m.has("Use full-access and allow this one") })
	me.tap(a.ID, "Deny")
	b := me.card(prompt, "echo b")
	me.tap(asked.ID, "Use full-access and allow this one")
	me.turns(asked.ID, "The mode is now full-access")
	if m := me.message(b.ID); !m.has("Allow") {
		t.Errorf("a card that was not listed was decided: %q", m.Text)
	}
	me.decided(a, "Denied by Ada")
	me.tap(b.ID, "Deny")
	me.ends(prompt, "Done in")
	w.holds("a", "")
	w.holds("b", "")
}

// TestModeNonsense: a wrong name changes nothing and names the four.
func TestModeNonsense(t *testing.T) {
	t.Parallel()
	w := newWorld(t, on{env: map[string]string{"DRAWBRIDGE_DEFAULT_MODE": "auto-accept-edits"}})
	w.start("serve")
	me := w.private(ada)
	for _, wrong := range []string{"nonsense", "yolo", "full access", "bypassPermissions"} {
		m := me.hears(me.say("/mode "+wrong), "There is no such mode")
		for _, name := range []string{"approval-required", "auto-accept-edits", "auto", "full-access", "Nothing was changed"} {
			if !strings.Contains(m.Text, name) {
				t.Errorf("the answer to /mode %s does not name %s: %q", wrong, name, m.Text)
			}
		}
	}
	m := me.hears(me.say("/mode"), "Mode of this chat: auto-accept-edits")
	for _, name := range []string{"approval-required", "auto", "full-access"} {
		if !slices.Contains(m.labels(), name) {
			t.Errorf("/mode offers %q, not %s", m.labels(), name)
		}
	}
	me.tap(m.ID, "approval-required")
	me.turns(m.ID, "The mode is now approval-required")
	me.hears(me.say("/mode default"), "The mode is now auto-accept-edits")
}

// TestSilenceIsADenial: after the deadline an approval is denied, the agent is told why, and the card says so.
func TestSilenceIsADenial(t *testing.T) {
	t.Parallel()
	w := newWorld(t, on{env: map[string]string{"DRAWBRIDGE_APPROVAL_DEADLINE": "10s"}}) // 2 s at this pace
	w.start("serve")
	me := w.private(ada)
	prompt := me.say("run echo one > ran\nsay it goes on")
	card := me.card(prompt, "echo one")
	me.decided(card, "Nobody answered in time: denied")
	me.hears(card.ID, "it goes on")
	w.holds("ran", "")
	told := ""
	for _, r := range w.model.Requests() {
		for _, m := range r.Messages {
			if m.Role == "tool" {
				told = m.Content
			}
		}
	}
	if !strings.HasPrefix(told, "Not done.") || !strings.Contains(told, "in time") {
		t.Errorf("the agent was told %q", told)
	}
}
