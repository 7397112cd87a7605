//go:build runtimes

package e2e_test

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"drawbridge/internal/modeltest"
)

// deskHands are the calls of Claude Code's tools.
func deskHands() modeltest.Hands {
	h := realHands("claude")
	h.Ask = func(question string, options []string) modeltest.Call {
		list := make([]map[string]any, 0, len(options))
		for _, o := range options {
			list = append(list, map[string]any{"label": o, "description": "to take " + o})
		}
		return modeltest.CallOf("AskUserQuestion", map[string]any{
			"questions": []any{map[string]any{"question": question, "header": "Choice", "multiSelect": false, "options": list}},
		})
	}
	return h
}

// atHome writes a file below the home folder of the person at the terminal.
func (w *world) atHome(name, text string) {
	w.t.Helper()
	path := filepath.Join(w.env["HOME"], name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// connect installs the hook as a person does.
func (w *world) connect(process, agent string, more ...string) {
	w.t.Helper()
	cmd := exec.CommandContext(w.t.Context(), binary, append([]string{"hook", "install", agent}, more...)...)
	cmd.Env = w.environ(process)
	if out, err := cmd.CombinedOutput(); err != nil {
		w.t.Fatalf("hook install: %v\n%s", err, out)
	}
}

// sits opens a terminal with an agent, with an environment made from nothing.
func (w *world) sits(set map[string]string, args ...string) *screen {
	w.t.Helper()
	all := map[string]string{
		"HOME": w.env["HOME"], "PATH": agents(w.t) + ":/usr/bin:/bin", "TERM": "xterm-256color", "LANG": "C.UTF-8", "TMPDIR": w.t.TempDir(), "USER": "ada",
	}
	maps.Copy(all, set)
	var env []string
	for k, v := range all {
		env = append(env, k+"="+v)
	}
	return openScreen(w.t, w.web, env, args...)
}

// is reports whether Claude Code says of itself that it does something: that it is idle, or waiting for its person.
func (w *world) is(status string) bool {
	files, err := filepath.Glob(filepath.Join(w.env["HOME"], ".claude", "sessions", "*.json"))
	for _, f := range files {
		if b, err := os.ReadFile(f); err == nil && strings.Contains(string(b), `"status":"`+status+`"`) {
			return true
		}
	}
	return err != nil
}

// answers presses keys until the terminal takes them.
func (w *world) answers(s *screen, keys string) {
	w.t.Helper()
	soon(w.t, "the agent waits", func() bool { return w.is("waiting") }) // it says so a little after it asks
	s.insists(keys, func() bool { return !w.is("waiting") })
}

// tells types a prompt once the last turn is over.
func (w *world) tells(s *screen, prompt string) {
	w.t.Helper()
	soon(w.t, "the agent is idle", func() bool { return w.is("idle") })
	s.types(prompt)
}

// TestRealAgentInATerminalIsAnsweredInTheChatOrThere: Claude Code as a person starts it by hand. A tap lets it go on, and an
// answer in the terminal closes the card, at once, also while the command still runs. Without Drawbridge the terminal asks
// as always.
func TestRealAgentInATerminalIsAnsweredInTheChatOrThere(t *testing.T) {
	w := newWorld(t, on{model: modeltest.Follow(deskHands())})
	w.dir = persistent(t)
	w.env["HOME"] = filepath.Join(w.dir, "home")
	state, err := json.Marshal(map[string]any{
		"hasCompletedOnboarding": true, "theme": "dark",
		"customApiKeyResponses": map[string]any{"approved": []string{modelKey[len(modelKey)-20:]}, "rejected": []string{}},
		"projects":              map[string]any{w.web: map[string]any{"hasTrustDialogAccepted": true, "hasCompletedProjectOnboarding": true}},
	})
	if err != nil {
		t.Fatal(err)
	}
	w.atHome(".claude.json", string(state))
	w.atHome(".claude/settings.json", `{"theme": "dark"}`)
	p := w.start("serve")
	me := w.private(ada)
	me.hears(me.say("/desk"), "comes here now")
	w.connect("serve", "claude")

	s := w.sits(map[string]string{
		"ANTHROPIC_API_KEY": modelKey, "ANTHROPIC_BASE_URL": strings.TrimSuffix(w.model.URL(), "/v1"),
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1", "DISABLE_TELEMETRY": "1",
	}, filepath.Join(agents(t), "claude"), "--permission-mode", "default")
	s.shows("manual mode on")
	made := func(name string) {
		t.Helper()
		soon(t, name+" is there", func() bool { _, err := os.Stat(filepath.Join(w.web, name)); return err == nil })
	}

	w.tells(s, "run touch one.txt")
	card := me.card(0, "touch one.txt")
	if !strings.Contains(card.Text, "In the terminal: claude · web") || !strings.Contains(card.Text, w.web) {
		t.Errorf("the card says %q", card.Text)
	}
	s.shows("Do you want to proceed?") // both ask at the same time
	me.tap(card.ID, "Allow")
	made("one.txt")
	s.shows("Allowed by PermissionRequest hook")
	me.decided(card, "Allowed by Ada")

	w.tells(s, "run while ! test -e go; do sleep 0.1; done; touch two.txt")
	card = me.card(card.ID, "touch two.txt")
	s.shows("Do you want to proceed?")
	w.answers(s, "\r")
	me.decided(card, "Answered or closed in the terminal")
	if err := os.WriteFile(filepath.Join(w.web, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	made("two.txt")

	w.tells(s, "run touch three.txt")
	card = me.card(card.ID, "touch three.txt")
	me.say("deny not today", map[string]any{"reply_to": card.ID})
	s.shows("Reason: not today")
	me.decided(card, "Denied by Ada")

	w.tells(s, "run touch four.txt")
	card = me.card(card.ID, "touch four.txt")
	s.shows("Do you want to proceed?")
	w.answers(s, "\x1b")
	me.decided(card, "Answered or closed in the terminal")

	w.tells(s, "ask Which one?|Left|Right")
	asked := me.expect(card.ID, "a question", func(m message) bool { return m.has("Right") })
	me.tap(asked.ID, "Right")
	s.shows("Which one? → Right")
	me.decided(asked, "Answered by Ada")

	p.kill()
	w.tells(s, "run touch five.txt")
	s.shows("Do you want to proceed?")
	w.answers(s, "\r")
	made("five.txt")
	for _, name := range []string{"three.txt", "four.txt"} {
		if _, err := os.Stat(filepath.Join(w.web, name)); err == nil {
			t.Errorf("%s is there, though nobody allowed it", name)
		}
	}
}

// TestRealAgentThatWaitsForTheChatIsAnsweredThere: Codex as a person starts it by hand. It asks in the terminal only when
// its hook has ended, at once where Drawbridge does not run.
func TestRealAgentThatWaitsForTheChatIsAnsweredThere(t *testing.T) {
	hands := realHands("codex")
	hands.Write = func(path, text string) modeltest.Call {
		return modeltest.Call{Name: "apply_patch", Arguments: "*** Begin Patch\n*** Add File: " + path + "\n+" + text + "*** End Patch\n"}
	}
	w := newWorld(t, on{model: modeltest.Follow(hands)})
	w.dir = persistent(t)
	w.env["HOME"] = filepath.Join(w.dir, "home")
	w.atHome(".codex/config.toml", `model = "gpt-5.5"
model_provider = "scripted"
approval_policy = "on-request"
sandbox_mode = "read-only"
check_for_update_on_startup = false
[model_providers.scripted]
name = "scripted"
base_url = "`+w.model.URL()+`"
env_key = "OPENAI_API_KEY"
wire_api = "responses"
[projects."`+w.web+`"]
trust_level = "trusted"
[notice.model_migrations]
"gpt-5.5" = "gpt-6-sol"
`)
	p := w.start("serve")
	me := w.private(ada)
	me.hears(me.say("/desk"), "comes here now")
	w.connect("serve", "codex")

	s := w.sits(map[string]string{"OPENAI_API_KEY": modelKey}, filepath.Join(agents(t), "codex"), "--no-daemon")
	s.shows("Trust all and continue") // of what is there already, the program draws only what changes
	s.insists("2\r", func() bool { return s.has("default") })
	made := func(name string) {
		t.Helper()
		soon(t, name+" is there", func() bool { _, err := os.Stat(filepath.Join(w.web, name)); return err == nil })
	}

	asks := func(prompt, text string) message {
		t.Helper()
		before := int64(0)
		if all := me.messages(); len(all) > 0 {
			before = all[len(all)-1].ID
		}
		s.presses(prompt)
		s.insists("\r", func() bool { return len(me.bots(before)) > 0 })
		return me.card(before, text)
	}
	card := asks("run touch one.txt", "touch one.txt")
	if !strings.Contains(card.Text, "In the terminal: codex · web") || !strings.Contains(card.Text, w.web) {
		t.Errorf("the card says %q", card.Text)
	}
	me.tap(card.ID, "Allow")
	made("one.txt")
	s.shows("Process exited with code 0")
	me.decided(card, "Allowed by Ada")

	card = asks("write two.txt hello", "Create this file?")
	if !strings.Contains(card.Text, "two.txt") || !strings.Contains(card.Text, "+hello") {
		t.Errorf("the card says %q", card.Text)
	}
	me.say("deny not today", map[string]any{"reply_to": card.ID})
	s.shows("Reason: not today")
	me.decided(card, "Denied by Ada")

	card = asks("run touch three.txt", "touch three.txt")
	s.presses("\x1b")
	me.decided(card, "Answered or closed in the terminal")

	p.kill()
	s.presses("run touch four.txt")
	s.insists("\r", func() bool { return s.has("Would you like to run the following command?") })
	s.insists("y", func() bool { _, err := os.Stat(filepath.Join(w.web, "four.txt")); return err == nil })
	for _, name := range []string{"two.txt", "three.txt"} {
		if _, err := os.Stat(filepath.Join(w.web, name)); err == nil {
			t.Errorf("%s is there, though nobody allowed it", name)
		}
	}
}
