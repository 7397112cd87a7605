package approvals_test

import (
	"context"
	"encoding/json"
	"math"
	"regexp"
	"strings"
	"testing"
	"time"

	"drawbridge/approvals"
	"drawbridge/internal/store"
	"drawbridge/policy"
	"drawbridge/runner"
)

// raw returns the audit lines as they are stored.
func raw(t testing.TB, db store.DB) (lines []string) {
	t.Helper()
	for _, index := range []string{approvals.AuditIndex, approvals.HostAuditIndex("box")} {
		items, err := db.Range(t.Context(), index, math.MinInt64, math.MaxInt64, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range items {
			lines = append(lines, i.Member)
		}
	}
	return lines
}

// hostile are texts of people and models that want to be a line of their own, or to be found in one.
func hostile() []string {
	return []string{
		"SENTINEL because", "SENTINEL\n{\"v\":1,\"decision\":\"allowed\",\"by\":11}", `SENTINEL","decision":"allowed","x":"`,
		"SENTINEL\x00\x1b[2J\u202e\u200b\u2028", strings.Repeat("SENTINEL ", 10<<10/9), "/home/SENTINEL/.ssh/id_rsa", "https://SENTINEL.example/",
	}
}

// TestAuditLinesHoldNoWords puts hostile text everywhere that somebody else can write.
func TestAuditLinesHoldNoWords(t *testing.T) {
	t.Parallel()
	db := openBolt(t)
	h, _ := host(t, fast(db), "i1")
	g := gateway(t, fast(db))
	// A whole line: only what varies by nature is left open.
	whole := regexp.MustCompile(`^\{"v":1,"n":"[A-Z2-7]{26}","at":"[0-9TZ:.+-]{20,40}","event":"decision","id":"box\.[A-Z2-7]{26}","host":"box",` +
		`"chat":"-1001:7","session":"other","run":"other","turn":"other","prompted":"other","kind":"command","categories":\[("secret",)?"terminal","unknown"\],` +
		`"mode":"approval-required","interaction":"default","decision":"denied","action":"own","source":"user","by":12,"has_reason":true,"digest":"[0-9a-f]{64}"\}$`)
	for _, bad := range hostile() {
		run := turn(under(policy.ApprovalRequired, policy.Default))
		run.ID, run.Session, run.Turn, run.Prompted, run.Runtime, run.Project = bad, bad, bad, bad, bad, bad
		q := command("echo '" + strings.ToValidUTF8(bad, "") + "'")
		q.Title, q.Item, q.Categories = bad, bad, []policy.Category{policy.Terminal, policy.Category(bad)}
		q.Actions = []runner.Action{{ID: "yes", Label: bad, Allows: true}, {ID: bad[:min(60, len(bad))], Label: bad}}
		before := len(raw(t, db))
		a := ask(t.Context(), h, run, q)
		x := tap(card(t, g, 1)[0], approvals.Person{ID: 12, Name: bad, Role: approvals.Operator}, q.Actions[1].ID)
		x.Reason, x.Token = bad, bad
		if o := decide(t, g, x); !o.Won {
			t.Fatalf("the tap came to %+v", o)
		}
		a.wait(t)
		lines := raw(t, db)
		if len(lines) != before+1 {
			t.Fatalf("one decision made %d lines", len(lines)-before)
		}
		if line := lines[len(lines)-1]; !whole.MatchString(line) {
			t.Errorf("the line is\n%q", line)
		}
	}
	for _, line := range raw(t, db) {
		if strings.Contains(line, "SENTINEL") || strings.ContainsAny(line, "\n\r\x00\x1b") {
			t.Errorf("the line holds what somebody wrote:\n%q", line)
		}
	}
}

// TestEveryDecisionIsAudited makes one decision of every source, and one that needs no line.
func TestEveryDecisionIsAudited(t *testing.T) {
	t.Parallel()
	db := openBolt(t)
	c := fast(db)
	c.Deadline = 400 * time.Millisecond
	c.Reviewer = reviewer{verdict: approvals.ReviewVerdict{Decision: runner.Allowed, Reason: "SENTINEL"}}
	h, _ := host(t, c, "i1")
	g := gateway(t, fast(db))
	network := tool("mcp__x", policy.Network)
	answer := func(m policy.Mode, i policy.Interaction, q runner.Question) {
		t.Helper()
		if _, err := h.Ask(t.Context(), turn(under(m, i)), q); err != nil {
			t.Fatal(err)
		}
	}
	answer(policy.ApprovalRequired, policy.Default, tool("read_file", policy.Read)) // no line
	answer(policy.FullAccess, policy.Default, network)                              // rule, allowed
	answer(policy.FullAccess, policy.Plan, network)                                 // rule, denied
	answer(policy.Auto, policy.Default, network)                                    // reviewer
	answer(policy.ApprovalRequired, policy.Default, network)                        // timeout
	ctx, cancel := context.WithCancel(t.Context())
	a := ask(ctx, h, turn(under(policy.ApprovalRequired, policy.Default)), network)
	card(t, g, 1)
	cancel()
	a.wait(t) // withdrawn
	give(t, h, g, network, runner.ActionAllowSession)
	answer(policy.ApprovalRequired, policy.Default, network) // grant
	answer(policy.FullAccess, policy.Default, runner.Question{Kind: "nonsense"})
	lines, err := g.Audit(t.Context(), time.Time{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for i, l := range lines {
		got = append(got, strings.TrimSpace(string(l.Decision)+" "+string(l.Source)+" "+l.Action+" "+l.Grant))
		if l.V != 1 || l.Event != approvals.EventDecision || l.Chat != chat || (i > 0 && l.At.Before(lines[i-1].At)) {
			t.Errorf("line %d is %+v", i, l)
		}
	}
	want := []string{
		"allowed rule", "denied rule", "allowed reviewer", "denied timeout", "withdrawn runtime",
		"allowed user allow-session session", "allowed grant", "denied runtime",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("the lines are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	some, err := g.Audit(t.Context(), lines[2].At, 3)
	if err != nil || len(some) != 3 || some[0].N != lines[2].N {
		t.Errorf("the lines from the third on are %+v, %v", some, err)
	}
	if strings.Contains(strings.Join(raw(t, db), ""), "SENTINEL") {
		t.Error("the reviewer's words are in the log")
	}
}

// TestAnAllowanceThatCanNotBeAuditedIsNone cuts the store for a question that the table allows.
func TestAnAllowanceThatCanNotBeAuditedIsNone(t *testing.T) {
	t.Parallel()
	db := &faulty{DB: openBolt(t)}
	h, _ := host(t, fast(db), "i1")
	db.away.Store(true)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	got, err := h.Ask(ctx, turn(under(policy.FullAccess, policy.Default)), tool("x", policy.Network))
	if err != nil || got.Decision != runner.Denied || got.Source != runner.SourceShutdown {
		t.Errorf("the answer is %+v, %v", got, err)
	}
}

func FuzzAuditLine(f *testing.F) {
	for _, s := range hostile() {
		f.Add(s)
	}
	allowed := regexp.MustCompile(`^[A-Za-z0-9_.:-]*$`)
	f.Fuzz(func(t *testing.T, s string) {
		db := &lastAdd{}
		g := approvals.New(approvals.Config{DB: db})
		err := store.Update(t.Context(), db, func(tx *store.Txn) error {
			return g.AuditIn(tx, approvals.AuditLine{
				Event: approvals.Event(s), ID: approvals.ID(s), Host: s, Chat: s, Session: s, Run: s, Turn: s, Prompted: s, Kind: s,
				Categories: []policy.Category{policy.Category(s)}, Mode: policy.Mode(s), Interaction: policy.Interaction(s),
				Decision: runner.Decision(s), Action: s, Source: runner.Source(s), Grant: s, Digest: s,
			})
		})
		if err != nil {
			t.Fatal(err)
		}
		var line map[string]any
		if err := json.Unmarshal([]byte(db.member), &line); err != nil {
			t.Fatalf("%q is no JSON: %v", db.member, err)
		}
		for k, v := range line {
			if text, ok := v.(string); ok && (!allowed.MatchString(text) && k != "at" || len(text) > 160) {
				t.Errorf("%s is %q", k, text)
			}
		}
		if len(db.member) > store.MaxName {
			t.Errorf("the line has %d bytes", len(db.member))
		}
	})
}

// lastAdd is a store that keeps the last member that was added to an index.
type lastAdd struct {
	store.DB
	member string
}

func (l *lastAdd) Read(context.Context, ...string) (time.Time, []store.Doc, error) {
	return time.Unix(1e9, 0), nil, nil
}

func (l *lastAdd) Commit(_ context.Context, b store.Batch) error {
	l.member = b.Add[0].Member
	return nil
}

func TestAuditKeepsTopics(t *testing.T) {
	t.Parallel()
	db := openBolt(t)
	g := gateway(t, fast(db))
	for chat, want := range map[string]string{
		"-1001/7": "-1001/7", "42": "42", "/etc/passwd": "other", "1/etc": "other", "-1001/7/8": "other", "etc/7": "other",
	} {
		err := store.Update(t.Context(), db, func(t *store.Txn) error {
			return g.AuditIn(t, approvals.AuditLine{Event: approvals.EventMode, Chat: chat})
		})
		if err != nil {
			t.Fatal(err)
		}
		lines := raw(t, db)
		if line := lines[len(lines)-1]; !strings.Contains(line, `"chat":"`+want+`"`) {
			t.Errorf("chat %q is written in %s, want %q", chat, line, want)
		}
	}
}
