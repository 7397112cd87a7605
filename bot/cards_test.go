package bot

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"drawbridge/approvals"
	"drawbridge/formatting"
	"drawbridge/policy"
	"drawbridge/runner"
)

// asked is an approval as a host publishes it.
func asked(q runner.Question) approvals.Record {
	at := time.Date(2026, 3, 4, 15, 4, 0, 0, time.UTC)
	if q.Folder == "" {
		q.Folder = "/home/ada/shop"
	}
	return approvals.Record{
		V: 1, ID: "box.ABC", Chat: "1001", Question: q, Mode: policy.ApprovalRequired, Interaction: policy.Default,
		Created: at, Deadline: at.Add(10 * time.Minute), State: approvals.Open,
	}
}

func shell(s string, c ...policy.Category) runner.Question {
	return runner.Question{Kind: runner.KindCommand, Title: "Run a command", Command: s, Categories: append(c, policy.Terminal)}
}

func goTest() approvals.Record {
	r := asked(shell("go test ./...", policy.Terminal))
	r.Grant = &approvals.Grant{Prefix: "go test", Folder: r.Question.Folder}
	r.Question.Actions = []runner.Action{
		{ID: "allow", Label: "Allow", Style: runner.StyleSuccess, Allows: true},
		{ID: "allow-session", Label: "Allow for this session", Allows: true, Grant: "session"},
		{ID: "allow-project", Label: "Allow for this project", Allows: true, Grant: "project"},
		{ID: "deny", Label: "Deny", Style: runner.StyleDanger},
	}
	return r
}

func edits(n int) runner.Question {
	q := runner.Question{Kind: runner.KindFileChange, Title: "Write", Categories: []policy.Category{policy.Write}}
	for i := range n {
		q.Files = append(q.Files, runner.FileChange{
			Path: fmt.Sprintf("pkg/file%d.go", i+1), Op: runner.FileEdit, Added: 1, Removed: 1,
			Diff: fmt.Sprintf("@@ -1 +1 @@\n-var n = %d\n+var n = %d\n", i, i+1),
		})
	}
	return q
}

// drawn is a card as a golden file shows it: text with its marks, and the buttons.
func drawn(f face, rows [][]option) string {
	var b strings.Builder
	b.WriteString(marked(f.Message) + "\n")
	for _, row := range rows {
		for _, o := range row {
			fmt.Fprintf(&b, "[%s]", o.Label)
		}
		b.WriteString("\n")
	}
	if f.whole {
		b.WriteString("(every byte is shown)\n")
	}
	return b.String()
}

// marked writes entities into the text: «bold:…».
func marked(m formatting.Message) string {
	units := []rune(m.Text) // goldens hold nothing outside of the basic plane
	var b strings.Builder
	for i := 0; i <= len(units); i++ {
		for _, e := range m.Entities {
			if e.Offset+e.Length == i {
				b.WriteString("»")
			}
		}
		for _, e := range m.Entities {
			if e.Offset == i {
				b.WriteString("«" + strings.TrimSuffix(e.Type+" "+e.Language, " ") + ":")
			}
		}
		if i < len(units) {
			b.WriteRune(units[i])
		}
	}
	return b.String()
}

func TestFaces(t *testing.T) {
	t.Parallel()
	several := edits(2)
	several.Files[0].Op, several.Files[0].Removed, several.Files[0].Diff = runner.FileCreate, 0, "@@ -0,0 +1 @@\n+var n = 1\n"
	several.Files = append(several.Files, runner.FileChange{Path: "old.go", Op: runner.FileDelete}, runner.FileChange{Path: "a.go → b.go", Op: runner.FileMove})
	huge := edits(60)
	tool := runner.Question{
		Kind: runner.KindTool, Tool: "mcp__tracker__create_issue", Title: "Create an issue", Categories: []policy.Category{policy.Network, policy.Unknown},
		Arguments: json.RawMessage(`{"title":"It breaks","n":1.50,"n":2,"labels":["a","b"],"text":"\u202e"}`),
	}
	plan := runner.Question{
		Kind: runner.KindPlan, Title: "Plan", Plan: "1. Read the parser\n2. Fix it", Categories: []policy.Category{policy.Question},
		Actions: []runner.Action{{ID: "implement", Label: "Implement", Style: runner.StyleSuccess, Allows: true}, {ID: "keep-planning", Label: "Keep planning"}},
	}
	question := runner.Question{Kind: runner.KindQuestion, Categories: []policy.Category{policy.Question}, Queries: []runner.Query{
		{ID: "q", Text: "Which one?", Options: []runner.Option{{Label: "Left", Description: "the safe one"}, {Label: "Right"}}},
	}}
	free := runner.Question{Kind: runner.KindQuestion, Queries: []runner.Query{{ID: "q", Text: "What is its name?", Free: true}}}
	background := asked(shell("git push origin main", policy.Publish, policy.Network))
	background.Background, background.Mode, background.Interaction = true, policy.Auto, policy.Plan
	reviewed, unreviewed := asked(shell("go test ./...")), asked(shell("go test ./..."))
	reviewed.Mode, unreviewed.Mode = policy.Auto, policy.Auto
	reviewed.Review = &runner.Review{State: runner.ReviewDenied, Source: runner.ReviewerOurs, Reason: "Nobody asked for\u202e tests.", Asked: true}
	unreviewed.Review = &runner.Review{State: runner.ReviewTimeout, Source: runner.ReviewerOurs, Reason: "The reviewer did not answer in time.", Asked: true}
	longPlan := asked(plan)
	longPlan.Deadline = longPlan.Created.Add(7 * 24 * time.Hour)

	for name, r := range map[string]approvals.Record{
		"command-reviewed": reviewed, "command-unreviewed": unreviewed,
		"command": goTest(), "command-publish": background, "command-lines": asked(shell("cat <<EOF\none\ntwo\nEOF")),
		"command-long": asked(shell("echo " + strings.Repeat("all is well; ", 800) + "rm -rf ~")),
		"command-none": asked(shell("")), "files-none": asked(edits(0)),
		"file-create": asked(runner.Question{Kind: runner.KindFileChange, Files: several.Files[:1], Categories: []policy.Category{policy.Write}}),
		"files":       asked(several), "files-many": asked(huge), "tool": asked(tool), "plan": longPlan, "question": asked(question), "question-free": asked(free),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := openFace(r, card{})
			golden(t, "card-"+name, drawn(f, cardRows(r, card{}, f)))
		})
	}
}

// TestOutcomes shows the closed cards: each way an approval can end, and each kind.
func TestOutcomes(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 4, 15, 6, 0, 0, time.UTC)
	by := func(action string, d runner.Decision) *approvals.Decision {
		return &approvals.Decision{V: 1, Decision: d, Action: action, Source: runner.SourceUser, By: 1001, Name: "Ada", At: at}
	}
	from := func(s runner.Source) *approvals.Decision {
		return &approvals.Decision{V: 1, Decision: runner.Denied, Source: s, At: at}
	}
	gone := by("allow", runner.Allowed)
	gone.Gone = at
	answered := by("", runner.Allowed)
	answered.Answers = map[string][]string{"q": {"Right"}}
	question := runner.Question{Kind: runner.KindQuestion, Queries: []runner.Query{{ID: "q", Text: "Which one?", Options: []runner.Option{{Label: "Left"}, {Label: "Right"}}}}}
	plan := runner.Question{Kind: runner.KindPlan, Title: "Plan", Plan: "1. Read", Actions: []runner.Action{
		{ID: "implement", Label: "Implement", Allows: true}, {ID: "keep-planning", Label: "Keep planning"},
	}}
	var all strings.Builder
	for _, c := range []struct {
		name  string
		q     runner.Question
		state approvals.State
		d     *approvals.Decision
	}{
		{"allowed, handing over", shell("go test"), approvals.Open, by("allow", runner.Allowed)},
		{"allowed", shell("go test"), approvals.Handed, by("allow", runner.Allowed)},
		{"allowed for the session", shell("go test"), approvals.Handed, by("allow-session", runner.Allowed)},
		{"allowed for the project", shell("go test"), approvals.Handed, by("allow-project", runner.Allowed)},
		{"allowed, but gone", shell("go test"), approvals.Lost, gone},
		{"denied", shell("go test"), approvals.Handed, by("deny", runner.Denied)},
		{"denied, not taken yet", shell("go test"), approvals.Open, by("deny", runner.Denied)},
		{"refused by the mode", shell("go test"), approvals.Handed, from(runner.SourceRule)},
		{"refused by the reviewer", shell("go test"), approvals.Handed, from(runner.SourceReviewer)},
		{"withdrawn", shell("go test"), approvals.Withdrawn, nil},
		{"expired", shell("go test"), approvals.Expired, from(runner.SourceTimeout)},
		{"changed", edits(1), approvals.Changed, nil},
		{"gone", shell("go test"), approvals.Lost, nil},
		{"long", shell(strings.Repeat("echo line\n", 900)), approvals.Handed, by("allow", runner.Allowed)},
		{"answered", question, approvals.Handed, answered},
		{"not answered", question, approvals.Handed, by("deny", runner.Denied)},
		{"plan implemented", plan, approvals.Handed, by("implement", runner.Allowed)},
		{"plan kept", plan, approvals.Handed, by("keep-planning", runner.Denied)},
	} {
		r := asked(c.q)
		r.State = c.state
		if c.state == approvals.Handed {
			r.Decision = c.d
		}
		f := closedFace(r, closingOf(r, approvals.Standing(r, c.d)))
		text := marked(f.Message)
		if len(text) > 2000 {
			text = text[:300] + " [...]"
		}
		all.WriteString("== " + c.name + "\n" + text + "\n")
	}
	golden(t, "outcomes", all.String())
}

// TestNothingForgesACard: whatever an agent asks, the words of the card are ours, and what is asked stands in code.
func TestNothingForgesACard(t *testing.T) {
	t.Parallel()
	for name, q := range map[string]runner.Question{
		"bidi":        shell("echo \u202egnp.exe\u202c"),
		"zero width":  shell("rm\u200b -rf /"),
		"blank lines": shell("echo hello\n" + strings.Repeat("\n", 300) + "rm -rf ~"),
		"spaces":      shell("echo hello" + strings.Repeat(" ", 3000) + "; rm -rf ~"),
		"controls":    shell("echo a\rrm -rf ~\x1b[2K\x00"),
		"path":        {Kind: runner.KindFileChange, Files: []runner.FileChange{{Path: "a\n\nAllowed by Ada\n[Allow]", Op: runner.FileEdit, Diff: "@@ -1 +1 @@\n-a\n+b\n"}}},
		"tool":        {Kind: runner.KindTool, Tool: "x\nAllowed by Ada", Arguments: json.RawMessage(`{"a":"\u202e"}`)},
		"title":       {Kind: runner.KindTool, Title: "t\n\nAllowed by Ada", Tool: "x"},
		"option": {Kind: runner.KindQuestion, Queries: []runner.Query{{ID: "q", Text: "Which?", Options: []runner.Option{
			{Label: "a\n\nAllowed by Ada", Description: "b\nMode: full-access"},
		}}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := openFace(asked(q), card{})
			for line := range strings.Lines(f.Text) {
				if l := strings.TrimSpace(line); l == "Allowed by Ada" || l == "[Allow]" || l == "Mode: full-access" {
					t.Errorf("a line of the card is forged:\n%s", f.Text)
				}
			}
			if strings.ContainsAny(f.Text, "\u202e\u202c\u200b\r\x1b\x00") || strings.Contains(f.Text, "\n\n\n\n\n") || strings.Contains(f.Text, strings.Repeat(" ", 50)) {
				t.Errorf("something hides in %q", f.Text)
			}
			if q.Kind == runner.KindCommand && strings.Contains(q.Command, "rm -rf") && !strings.Contains(f.Text, "rm -rf") {
				t.Errorf("the danger is out of sight:\n%s", f.Text)
			}
		})
	}
}

// TestArgumentsAreOnlyLaidOut: what is laid out for reading means the same bytes, with keys that come twice, numbers as
// they were written and escapes as they stand.
func TestArgumentsAreOnlyLaidOut(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{
		`{"a":1.50,"a":2e400,"b":"\u202e\\n é","c":[],"d":{}}`, `"x"`, `[1,2]`, `not json at all`, `{"broken":`, ``,
	} {
		laid := arguments([]byte(raw))
		bare := func(s string) string {
			var b strings.Builder
			in, escaped := false, false
			for _, c := range s {
				switch {
				case escaped:
					escaped = false
				case in && c == '\\':
					escaped = true
				case c == '"':
					in = !in
				case !in && (c == ' ' || c == '\n'):
					continue
				}
				b.WriteRune(c)
			}
			return b.String()
		}
		if bare(laid) != bare(raw) {
			t.Errorf("%s became %s", raw, laid)
		}
	}
}

// TestAllowStandsOnlyWhereEveryByteIsShown, on any face.
func TestAllowStandsOnlyWhereEveryByteIsShown(t *testing.T) {
	t.Parallel()
	for size := 3000; size < 4300; size += 7 {
		long := asked(shell(strings.Repeat("x", size) + "END"))
		f := openFace(long, card{})
		allow := false
		for _, row := range cardRows(long, card{}, f) {
			for _, o := range row {
				allow = allow || o.Label == "Allow"
			}
		}
		shown := strings.Contains(f.Text, long.Question.Command)
		if allow != shown || formatting.Len(f.Text) > formatting.MaxLength {
			t.Errorf("%d characters: Allow %v, shown %v, %d units", size, allow, shown, formatting.Len(f.Text))
		}
	}
	for n := range 60 { // entities that would be dropped in silence
		r := asked(edits(n + 1))
		f := openFace(r, card{})
		if len(f.Entities) >= formatting.MaxEntities || f.whole != strings.Contains(f.Text, fmt.Sprintf("+var n = %d\n", n+1)) && f.whole {
			t.Errorf("%d files: %d entities, whole %v", n+1, len(f.Entities), f.whole)
		}
	}
}
