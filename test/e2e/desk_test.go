package e2e_test

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// hook is a hook of an agent in somebody's terminal, which runs until its question is answered.
type hook struct {
	w      *world
	cmd    *exec.Cmd
	out    strings.Builder
	exited chan struct{}
}

// asks starts a hook as an agent does, with the host's data in the folder of a process's name.
func (w *world) asks(process, agent, tool string, input map[string]any) *hook {
	w.t.Helper()
	raw, err := json.Marshal(map[string]any{
		"hook_event_name": "PermissionRequest", "session_id": "68c01727-aaf3-4bdf-bc84-1de2593fc1c8", "cwd": w.web, "tool_name": tool, "tool_input": input,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	h := &hook{w: w, exited: make(chan struct{})}
	h.cmd = exec.Command(binary, "hook", "run", agent, "--data", filepath.Join(w.dir, process), "--wait", "20s")
	h.cmd.Env, h.cmd.Stdin, h.cmd.Stdout = []string{"HOME=" + w.env["HOME"], "SECRET=none of your business"}, strings.NewReader(string(raw)), &h.out
	if err := h.cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	go func() { defer close(h.exited); _ = h.cmd.Wait() }() // waited for below
	w.t.Cleanup(func() { _ = h.cmd.Process.Kill(); <-h.exited })
	return h
}

// prints waits for the end of the hook, which never fails, and returns what it says.
func (h *hook) prints() string {
	h.w.t.Helper()
	select {
	case <-h.exited:
	case <-time.After(patience):
		h.w.t.Fatal("the hook does not end")
	}
	if code := h.cmd.ProcessState.ExitCode(); code != 0 {
		h.w.t.Errorf("the hook ended with %d", code)
	}
	return h.out.String()
}

const (
	hookAllows = `{"hookSpecificOutput":{"decision":{"behavior":"allow"},"hookEventName":"PermissionRequest"}}`
	hookDenies = `{"hookSpecificOutput":{"decision":{"behavior":"deny","message":"The user refused this. Reason: not now"},"hookEventName":"PermissionRequest"}}`
)

// TestTerminalIsAnsweredInTheChat: also where gateway and host are processes of their own, and whatever the chat's mode is.
func TestTerminalIsAnsweredInTheChat(t *testing.T) {
	t.Parallel()
	for _, on := range []on{{}, {redis: true}} {
		name, host := "bbolt", "serve"
		if on.redis {
			name, host = "redis", "host"
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, on)
			if on.redis {
				w.start("host")
				w.start("gateway")
			} else {
				w.start("serve")
			}
			me := w.private(ada)
			if got := w.asks(host, "claude", "Bash", map[string]any{"command": "make"}).prints(); got != "" {
				t.Errorf("before a chat was chosen the hook prints %q", got)
			}
			me.hears(me.say("/desk"), "comes here now")
			confirm := me.hears(me.say("/mode full-access"), "please confirm")
			me.tap(confirm.ID, "Use full-access")

			h := w.asks(host, "claude", "Bash", map[string]any{"command": "make all"})
			card := me.card(confirm.ID, "make all")
			for _, text := range []string{"In the terminal: claude · web", "Folder: " + w.web} {
				if !strings.Contains(card.Text, text) {
					t.Errorf("the card does not say %q: %s", text, card.Text)
				}
			}
			if labels := strings.Join(card.labels(), " "); labels != "Allow Deny" {
				t.Errorf("the card offers %q", labels)
			}
			me.tap(card.ID, "Allow")
			if got := h.prints(); got != hookAllows {
				t.Errorf("the hook prints %q", got)
			}
			me.decided(card, "Allowed by Ada")

			h = w.asks(host, "claude", "Bash", map[string]any{"command": "make none"})
			card = me.card(card.ID, "make none")
			me.say("deny not now", map[string]any{"reply_to": card.ID})
			if got := h.prints(); got != hookDenies {
				t.Errorf("the hook prints %q", got)
			}
			me.decided(card, "Denied by Ada")

			h = w.asks(host, "claude", "AskUserQuestion", map[string]any{"questions": []any{map[string]any{
				"question": "Which one?", "header": "H", "multiSelect": false,
				"options": []any{map[string]any{"label": "Left", "description": "l"}, map[string]any{"label": "Right", "description": "r"}},
			}}})
			asked := me.expect(card.ID, "a question", func(m message) bool { return m.has("Right") })
			me.tap(asked.ID, "Right")
			if got := h.prints(); !strings.Contains(got, `"answers":{"Which one?":"Right"}`) {
				t.Errorf("the hook prints %q", got)
			}

			h = w.asks(host, "claude", "ExitPlanMode", map[string]any{"plan": "1. Look around"})
			plan := me.expect(asked.ID, "a plan", func(m message) bool { return m.has("Keep planning") && strings.Contains(m.Text, "Look around") })
			me.tap(plan.ID, "Carry it out, asking as it goes")
			if got := h.prints(); !strings.Contains(got, `"mode":"default"`) || !strings.Contains(got, `"updatedInput":{"plan":"1. Look around"}`) {
				t.Errorf("the hook prints %q", got)
			}

			me.hears(me.say("/desk off"), "in the terminals alone")
			if got := w.asks(host, "claude", "Bash", map[string]any{"command": "make"}).prints(); got != "" {
				t.Errorf("after the desk was ended the hook prints %q", got)
			}
		})
	}
}

// TestTerminalThatIsAnsweredFirstClosesTheCard: the agent ends its hook, and so the question is taken back.
func TestTerminalThatIsAnsweredFirstClosesTheCard(t *testing.T) {
	t.Parallel()
	w := newWorld(t, on{})
	w.start("serve")
	me := w.private(ada)
	me.hears(me.say("/desk"), "comes here now")
	h := w.asks("serve", "claude", "Bash", map[string]any{"command": "make all"})
	card := me.card(0, "make all")
	_ = h.cmd.Process.Kill() // not waited for by anybody else
	me.decided(card, "Answered or closed in the terminal")
}

// TestTerminalAsksAsAlwaysWithoutDrawbridge: not running, stopped and killed in the middle of a question.
func TestTerminalAsksAsAlwaysWithoutDrawbridge(t *testing.T) {
	t.Parallel()
	w := newWorld(t, on{})
	if got := w.asks("serve", "claude", "Bash", map[string]any{"command": "make"}).prints(); got != "" {
		t.Errorf("without a host the hook prints %q", got)
	}
	p := w.start("serve")
	me := w.private(ada)
	me.hears(me.say("/desk"), "comes here now")
	last := int64(0)
	for name, end := range map[string]func(*program){"stopped": (*program).stop, "killed": (*program).kill} {
		h := w.asks("serve", "claude", "Bash", map[string]any{"command": "make " + name})
		card := me.card(last, "make "+name)
		end(p)
		if got := h.prints(); got != "" {
			t.Errorf("%s: the hook prints %q", name, got)
		}
		p = w.start("serve")
		// One that is killed may have sent the card without having noted so: then another one says it.
		me.expect(card.ID-1, name+": the card is closed", func(m message) bool {
			return strings.HasPrefix(m.Text, "Drawbridge was stopped meanwhile: it is left to the terminal\n") && strings.Contains(m.Text, "make "+name) && len(m.Buttons) == 0
		})
		last = card.ID
	}
}

// TestTerminalIsNotHeldUpForLong: one that asks only when its hook has ended.
func TestTerminalIsNotHeldUpForLong(t *testing.T) {
	t.Parallel()
	w := newWorld(t, on{env: map[string]string{"DRAWBRIDGE_APPROVAL_DEADLINE": "10s"}}) // at this pace 2 s
	w.start("serve")
	me := w.private(ada)
	me.hears(me.say("/desk"), "comes here now")
	h := w.asks("serve", "claude", "Bash", map[string]any{"command": "make all"})
	card := me.card(0, "make all")
	if got := h.prints(); got != "" {
		t.Errorf("the hook prints %q", got)
	}
	me.decided(card, "Nobody answered here in time: it is left to the terminal")
}
