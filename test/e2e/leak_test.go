package e2e_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// TestAgentsSeeNoSecrets: what an agent runs has an environment that was made for it.
func TestAgentsSeeNoSecrets(t *testing.T) {
	t.Parallel()
	w := newWorld(t, on{redis: true, env: map[string]string{"SOME_OTHER_SECRET": "hunter2-of-the-shell"}})
	newDoor(t, w, 1)
	w.start("serve")
	me := w.private(ada)
	prompt := me.say("run env > env.txt; pwd > pwd.txt")
	me.tap(me.card(prompt, "env > env.txt").ID, "Allow")
	me.ends(prompt, "Done in")
	b, err := os.ReadFile(w.path("env.txt"))
	if err != nil {
		t.Fatal(err)
	}
	env := string(b)
	for what, secret := range map[string]string{
		"the bot's token": w.telegram.Token(), "the store's address": w.redis.Addr(), "the model's key": modelKey,
		"the model's address": w.model.URL(), "the webhook's secret": webhookSecret, "a variable of whoever started it": "hunter2",
		"a variable of ours": "DRAWBRIDGE", "our home folder": "HOME=" + w.env["HOME"] + "\n",
	} {
		if strings.Contains(env, secret) {
			t.Errorf("the command saw %s:\n%s", what, env)
		}
	}
	if !strings.Contains(env, "PATH=/") {
		t.Errorf("the command has no PATH:\n%s", env)
	}
	w.holds("pwd.txt", w.project+"\n")
}

// TestAuditHoldsNoContent: the audit log tells who decided what by words from fixed lists, and holds nothing of commands,
// paths, reasons, names and answers.
func TestAuditHoldsNoContent(t *testing.T) {
	t.Parallel()
	w := newWorld(t, on{})
	w.start("serve")
	me := w.private(ada)
	me.hears(me.say("/mode auto-accept-edits"), "The mode is now")
	prompt := me.say("run echo hostile-command > hostile-file\nrun echo another-command\nsay hostile-answer")
	me.tap(me.card(prompt, "hostile-command").ID, "Allow")
	card := me.card(prompt, "another-command")
	me.hears(me.say(`deny "hostile-reason","decision":"allowed"`, map[string]any{"reply_to": card.ID}), "Denied, and the agent is told why")
	me.decided(card, "Denied by Ada")
	me.ends(prompt, "Done in")
	told := false
	for _, r := range w.model.Requests() {
		for _, m := range r.Messages {
			told = told || m.Role == "tool" && strings.Contains(m.Content, "hostile-reason")
		}
	}
	if !told {
		t.Error("the agent was not told the reason")
	}

	log := w.audit("serve")
	for _, secret := range []string{"hostile", "another", "echo", w.dir, "shop", "Ada", "hostile-reason"} {
		if strings.Contains(log, secret) {
			t.Errorf("the audit log holds %q:\n%s", secret, log)
		}
	}
	type line struct {
		Event, Decision, Source, Action, Mode string
		By                                    int64
		HasReason                             bool `json:"has_reason"`
	}
	var got []line
	for text := range strings.Lines(log) {
		var l line
		if err := json.Unmarshal([]byte(text), &l); err != nil {
			t.Fatalf("%v in %q", err, text)
		}
		got = append(got, l)
	}
	want := []line{
		{Event: "mode", Source: "user", Mode: "auto-accept-edits", By: ada},
		{Event: "decision", Decision: "allowed", Source: "user", Action: "allow", Mode: "auto-accept-edits", By: ada},
		{Event: "decision", Decision: "denied", Source: "user", Action: "deny", Mode: "auto-accept-edits", By: ada, HasReason: true},
	}
	if len(got) != len(want) {
		t.Fatalf("%d audit lines, want %d:\n%s", len(got), len(want), log)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("audit line %d is %+v, want %+v", i, got[i], want[i])
		}
	}
}

// TestConfigShowsNoSecrets: what is in force can be shown to anybody.
func TestConfigShowsNoSecrets(t *testing.T) {
	t.Parallel()
	w := newWorld(t, on{env: map[string]string{"REDIS_URL": "redis://:password-of-redis@127.0.0.1:1"}})
	newDoor(t, w, 1)
	p := start(t, "config", w.environ("config"), "config")
	if code := p.wait(); code != 0 {
		t.Fatalf("drawbridge config ended with %d", code)
	}
	for _, secret := range []string{w.telegram.Token(), modelKey, webhookSecret, "password-of-redis"} {
		if strings.Contains(p.out.String()+p.log.String(), secret) {
			t.Errorf("drawbridge config shows %q", secret)
		}
	}
	if !strings.Contains(p.out.String(), "shop") {
		t.Errorf("drawbridge config does not show the projects:\n%s", p.out.String())
	}
}

// TestGatewayAndHostNeedRedis: one file is for one process.
func TestGatewayAndHostNeedRedis(t *testing.T) {
	t.Parallel()
	w := newWorld(t, on{})
	for _, role := range []string{"gateway", "host"} {
		p := start(t, role, w.environ(role), role)
		if code := p.wait(); code != 1 {
			t.Errorf("%s without Redis ended with %d, want 1", role, code)
		}
		if text := strings.TrimSpace(p.log.String()); !strings.Contains(text, "REDIS_URL") || strings.Contains(text, "\n") {
			t.Errorf("%s without Redis says %q, want one line that names REDIS_URL", role, text)
		}
	}
}
