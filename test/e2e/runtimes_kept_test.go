//go:build runtimes

package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"drawbridge/internal/modeltest"
)

// withAgent is a world whose chats use the real program of an agent, with a scripted model.
func withAgent(t *testing.T, agent string, o on) *world {
	t.Helper()
	o.model, o.env = modeltest.Follow(realHands(agent)), map[string]string{"DRAWBRIDGE_DEFAULT_RUNTIME": agent}
	w := newWorld(t, o)
	w.uses(agent)
	return w
}

// uses has the chats of a world work with the real program of an agent, at the scripted model.
func (w *world) uses(agent string) {
	w.t.Helper()
	w.dir = persistent(w.t)
	w.env["HOME"] = filepath.Join(w.dir, "home")
	w.env["PATH"] = agents(w.t) + ":" + os.Getenv("PATH")
	base, model := w.model.URL(), "model = \"gpt-5.5\"\n"
	if agent == "claude" {
		base, model = strings.TrimSuffix(base, "/v1"), ""
	}
	file := filepath.Join(w.dir, "drawbridge.toml")
	text := fmt.Sprintf("[[runtime]]\nname = %q\nbase_url = %q\nkey = %q\nlogin = \"\"\n%s", agent, base, modelKey, model)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
	w.env["DRAWBRIDGE_CONFIG"] = file
}

// TestRealAgentApprovalOutlivesTheHost: Claude Code keeps the call that waits when its host is stopped. The card says so, and
// a tap runs it after the restart, once; before the restart or after it. A denial reaches the agent in the same way.
func TestRealAgentApprovalOutlivesTheHost(t *testing.T) {
	for name, c := range map[string]struct {
		early bool   // the tap comes before the host is back
		tap   string // the button
		ran   string
	}{
		"tap before the restart": {true, "Allow", "one\n"},
		"tap after the restart":  {false, "Allow", "one\n"},
		"denied":                 {true, "Deny", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := withAgent(t, "claude", on{redis: true})
			gateway := w.start("gateway")
			host := w.start("host")
			me := w.private(ada)
			prompt := me.say("run echo one >> ran")
			card := me.card(prompt, "echo one >> ran")
			host.stop()
			kept := me.turns(card.ID, "This is kept")
			if !kept.has("Allow") || !kept.has("Deny") {
				t.Errorf("the kept card has the buttons %q", kept.labels())
			}
			end := me.ends(prompt, "Interrupted after")
			if !strings.Contains(end.Text, "is kept") {
				t.Errorf("the turn ended with %q", end.Text)
			}
			if !c.early {
				host = w.start("host")
			}
			me.tap(card.ID, c.tap)
			if c.early {
				me.turns(card.ID, " by Ada")
				w.holds("ran", "")
				host = w.start("host")
			}
			me.hears(end.ID, "Done in")
			w.holds("ran", c.ran)
			me.decided(card, map[string]string{"Allow": "Allowed by Ada", "Deny": "Denied by Ada"}[c.tap])
			host.stop()
			gateway.stop()
			w.holds("ran", c.ran)
		})
	}
}

// TestRealAgentKeptCallIsTakenUpByThePrompt: whoever writes first, without a tap, wakes the agent, which asks again for the
// same call on the same card.
func TestRealAgentKeptCallIsTakenUpByThePrompt(t *testing.T) {
	w := withAgent(t, "claude", on{})
	serve := w.start("serve")
	me := w.private(ada)
	prompt := me.say("run echo one >> ran")
	card := me.card(prompt, "echo one >> ran")
	serve.stop()
	serve = w.start("serve")
	me.turns(card.ID, "This is kept")
	end := me.ends(prompt, "Interrupted after")
	again := me.say("say and this too")
	me.eventually("the card is waited for again", func() bool { return !strings.Contains(me.message(card.ID).Text, "This is kept") })
	w.holds("ran", "")
	me.tap(card.ID, "Allow")
	me.decided(card, "Allowed by Ada")
	w.comes("ran", "one\n")
	me.ends(again, "Done in")
	w.holds("ran", "one\n")
	_ = end
	serve.stop()
}

// TestRealAgentCodexCardHasAResumeButton: Codex keeps nothing, so its card is closed when the host stops.
func TestRealAgentCodexCardHasAResumeButton(t *testing.T) {
	w := withAgent(t, "codex", on{})
	serve := w.start("serve")
	me := w.private(ada)
	prompt := me.say("run echo one >> ran")
	card := me.card(prompt, "echo one >> ran")
	serve.stop()
	serve = w.start("serve")
	if m := me.turns(card.ID, "The agent is gone: nothing ran"); strings.Join(m.labels(), " ") != "Resume" {
		t.Errorf("the card has the buttons %q", m.labels())
	}
	end := me.ends(prompt, "Interrupted after")
	me.tap(card.ID, "Resume")
	me.hears(end.ID, "Done in")
	w.holds("ran", "")
	serve.stop()
}
