//go:build runtimes

package e2e_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"drawbridge/internal/modeltest"
	"drawbridge/policy"
)

// approving is a model that works as others do and is a reviewer as well, who allows all that it is asked; so does the
// reviewer at the endpoint that Claude Code has.
func approving(work modeltest.Script) modeltest.Script {
	return func(ctx context.Context, r modeltest.Request) modeltest.Reply {
		if !reviewed(r) {
			reply := work(ctx, r)
			reply.Check = modeltest.CheckPasses
			return reply
		}
		_, rest, _ := strings.Cut(r.Messages[0].Content, `{"id":"`)
		id, _, _ := strings.Cut(rest, `"`)
		return modeltest.Reply{Text: fmt.Sprintf(`{"id":%q,"decision":"allow","reason":"Why not?"}`, id)}
	}
}

// reviewed reports whether a request is one to a reviewer: ours, or Codex's own.
func reviewed(r modeltest.Request) bool {
	return len(r.Messages) > 0 && strings.HasPrefix(r.Messages[0].Content, "You decide, in place of a person,") || r.Model == "codex-auto-review"
}

// reviews are the requests to a reviewer.
func (w *world) reviews() (out []modeltest.Request) {
	for _, r := range w.model.Requests() {
		if reviewed(r) {
			out = append(out, r)
		}
	}
	return out
}

// decisions are the lines of the audit log that tell of a decision about a category.
func (w *world) decisions(about policy.Category) (by []string) {
	w.t.Helper()
	lines := bufio.NewScanner(strings.NewReader(w.audit("serve")))
	for lines.Scan() {
		var line struct {
			Event, Source, Decision string
			Categories              []policy.Category
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			w.t.Fatal(err)
		}
		if line.Event == "decision" && slices.Contains(line.Categories, about) {
			by = append(by, line.Source+" "+line.Decision)
		}
	}
	return by
}

// bank is an agent's runtime with the MCP server bank, on whose tools the owner has said what is to be said, and ours as
// the reviewer.
func bank(t *testing.T, agent, more string) *world {
	t.Helper()
	hands := realHands(agent)
	hands.Tool = func(name, path string) modeltest.Call {
		joined := "mcp__bank__"
		if agent == "codex" {
			joined = "mcp__bank/"
		}
		return modeltest.CallOf(joined+name, map[string]any{"path": path})
	}
	w := newWorld(t, on{model: approving(modeltest.Follow(hands)), env: map[string]string{"DRAWBRIDGE_DEFAULT_RUNTIME": agent, "BANK_KEY": "1"}})
	w.dir = persistent(t)
	t.Cleanup(func() { // runs once the program was killed, whose agents have a moment to end
		soon(t, "nothing of the agent runs", func() bool { return len(under(w.dir)) == 0 })
	})
	w.env["HOME"] = filepath.Join(w.dir, "home")
	w.env["PATH"] = agents(t) + ":" + os.Getenv("PATH")
	w.env["DRAWBRIDGE_REVIEWER_URL"], w.env["DRAWBRIDGE_REVIEWER_MODEL"], w.env["DRAWBRIDGE_REVIEWER_KEY"] = w.model.URL(), "judge", modelKey
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	base, model := w.model.URL(), "model = \"gpt-5.5\"\n"
	if agent == "claude" {
		base, model = strings.TrimSuffix(base, "/v1"), ""
	}
	text := fmt.Sprintf(`
[[runtime]]
name = %q
base_url = %q
key = %q
login = ""
%s%s
[[mcp]]
name = "bank"
command = %q
env_from = { %s = "BANK_KEY" }

[tools]
"bank/pay" = "payment"
"mcp__bank__send" = "publish"
"bank/sign" = "credential"
`, agent, base, modelKey, model, more, self, toolsVariable)
	w.env["DRAWBRIDGE_CONFIG"] = filepath.Join(w.dir, "drawbridge.toml")
	if err := os.WriteFile(w.env["DRAWBRIDGE_CONFIG"], []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return w
}

// remote makes the project a repository that can be pushed, and returns what was pushed so far.
func (w *world) remote() func() string {
	w.t.Helper()
	bare := filepath.Join(w.dir, "remote.git")
	git := func(args ...string) string {
		out, err := exec.CommandContext(w.t.Context(), "git", args...).CombinedOutput()
		if err != nil {
			w.t.Fatalf("git %q: %v\n%s", args, err, out)
		}
		return string(out)
	}
	git("init", "-q", "--bare", bare)
	git("init", "-q", w.project)
	git("-C", w.project, "-c", "user.name=Ada", "-c", "user.email=ada@example.org", "commit", "-q", "--allow-empty", "-m", "first")
	git("-C", w.project, "remote", "add", "origin", bare)
	return func() string { return git("-C", bare, "for-each-ref", "--format=%(refname)") }
}

// doctor demands that `drawbridge doctor` says something in this world. It is asked until it can say anything of the agent,
// whose program is given a few seconds to answer, which a busy machine may need for itself.
func (w *world) doctor(wants ...string) {
	w.t.Helper()
	out, err := "", errors.New("not asked")
	for end := time.Now().Add(5 * patience); err != nil && time.Now().Before(end); {
		cmd := exec.CommandContext(w.t.Context(), binary, "doctor")
		cmd.Env = w.environ("doctor")
		var b []byte
		b, err = cmd.CombinedOutput()
		out = string(b)
	}
	for _, want := range wants {
		if err != nil || !strings.Contains(out, want) {
			w.t.Errorf("the doctor does not say %q (%v):\n%s", want, err, out)
		}
	}
}

// TestRealAgentsHumanOnlyStaysHuman: in auto, with a reviewer who allows everything, what uses a credential, pays,
// publishes or is unknown comes to a person, on the real programs. The reviewer is not asked of it, nothing happens
// before the tap, and after Deny nothing at all. The programs' own reviewers are not used beside an MCP server, also where
// the owner has chosen them.
func TestRealAgentsHumanOnlyStaysHuman(t *testing.T) {
	for name, c := range map[string]struct{ agent, more string }{
		"codex": {"codex", ""}, "codex with its own reviewer": {"codex", "reviewer = true\n"},
		"claude": {"claude", ""}, "claude with its own reviewer": {"claude", "reviewer = true\n"},
	} {
		t.Run(name, func(t *testing.T) {
			w := bank(t, c.agent, c.more)
			pushed := w.remote()
			said := []string{"used: yes, by " + c.agent + "\n  bank/pay: payment\n"}
			if c.more != "" {
				said = append(said, "own reviewer is not used: an external MCP server is configured")
			}
			w.doctor(said...)
			p := w.start("serve")
			me := w.private(ada)
			me.hears(me.say("/mode auto"), "the reviewer, the model judge, decides about commands")

			// The reviewer is there, and decides what is its to decide.
			prompt := me.say("run echo fine > fine.txt")
			me.ends(prompt, "Done in")
			w.holds("fine.txt", "fine\n")
			if n := len(w.reviews()); n != 1 || len(me.cards(prompt)) > 0 {
				t.Fatalf("a command was reviewed %d times, and is to be once and by nobody else:\n%s", n, me.transcript())
			}
			told := false
			for _, m := range me.bots(0) {
				told = told || strings.Contains(m.Text, "Claude's own reviewer is not used: an external MCP server is configured")
			}
			if told != (c.agent == "claude" && c.more != "") {
				t.Errorf("the chat was told that Claude's own reviewer is not used: %v\n%s", told, me.transcript())
			}

			file := w.path("deed.txt")
			made := func() bool {
				_, err := os.Lstat(file)
				return !errors.Is(err, fs.ErrNotExist)
			}
			tool := func(name string) string { return "tool " + name + " " + file }
			for _, deed := range []struct {
				category policy.Category
				line     string
				shown    string
				done     func() bool
			}{
				{policy.Credential, tool("sign"), "sign", made},
				{policy.Payment, tool("pay"), "pay", made},
				{policy.Publish, tool("send"), "send", made},
				{policy.Unknown, tool("mystery"), "mystery", made},
				{policy.Publish, "run git push -q origin HEAD:refs/heads/main", "git push", func() bool { return pushed() != "" }},
				{policy.Publish, "run echo x > /dev/null; sh -c 'git push -q origin HEAD:refs/heads/other'", "git push", func() bool {
					return strings.Contains(pushed(), "other")
				}},
			} {
				before := len(w.decisions(deed.category))
				prompt := me.say(deed.line)
				card := me.card(prompt, deed.shown)
				w.untouched(me, card, deed.line, deed.done)
				me.tap(card.ID, "Deny")
				me.decided(card, "Denied by Ada")
				me.ends(prompt, "Done in")
				w.untouched(me, card, deed.line, deed.done)

				// The same once more, to see that it does what it says, and that a Deny is no rule.
				prompt = me.say(deed.line)
				card = me.card(prompt, deed.shown)
				w.untouched(me, card, deed.line, deed.done)
				me.tap(card.ID, "Allow")
				me.ends(prompt, "Done in")
				if !deed.done() {
					t.Errorf("%q was allowed and did not happen", deed.line)
				}
				if got := w.decisions(deed.category)[before:]; !slices.Equal(got, []string{"user denied", "user allowed"}) {
					t.Errorf("%q was decided by %q", deed.line, got)
				}
				if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
					t.Fatal(err)
				}
			}
			if all := w.reviews(); len(all) != 1 {
				t.Errorf("the reviewer was asked of %+v", all[1:])
			}
			for _, r := range w.model.Requests() {
				if r.Checked {
					t.Fatal("Claude Code asked its own reviewer")
				}
			}
			p.stop()
		})
	}
}

// untouched demands that nothing was done, that no reviewer was asked, and that a card says of none and offers no grant.
func (w *world) untouched(me seat, card message, line string, done func() bool) {
	w.t.Helper()
	if done() {
		w.t.Errorf("%q was done without having been allowed", line)
	}
	if n := len(w.reviews()); n != 1 {
		w.t.Errorf("%q: %d reviews, want the one of before", line, n)
	}
	if strings.Contains(card.Text, "eviewer") {
		w.t.Errorf("%q: the card tells of a reviewer:\n%s", line, card.Text)
	}
	if !strings.Contains(line, "mystery") && slices.ContainsFunc(card.labels(), func(l string) bool { return strings.HasPrefix(l, "Allow for") }) {
		w.t.Errorf("%q: the card offers a grant: %q", line, card.labels())
	}
}

// cards are the bot's messages after one that can be, or were, decided.
func (s seat) cards(after int64) (out []message) {
	s.t.Helper()
	for _, m := range s.bots(after) {
		if m.has("Deny") || strings.HasPrefix(m.Text, "Allowed") || strings.HasPrefix(m.Text, "Denied") {
			out = append(out, m)
		}
	}
	return out
}
