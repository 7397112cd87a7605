package approvals

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"drawbridge/policy"
	"drawbridge/runner"
)

// about is a request for a review of q.
func about(q runner.Question) ReviewRequest {
	return ReviewRequest{
		Run:      Run{Workspace: policy.Workspace{Root: "/home/ada/src/api", Home: "/home/ada"}, Request: "Build it."},
		Question: q, Categories: []policy.Category{policy.Terminal}, Policy: runner.Policy{Mode: policy.Auto, Interaction: policy.Default},
	}
}

func call(arguments string) runner.Question {
	return runner.Question{Kind: runner.KindTool, Tool: "mcp__web__get", Arguments: json.RawMessage(arguments)}
}

func line(command string) runner.Question {
	return runner.Question{Kind: runner.KindCommand, Command: command, Folder: "/home/ada/src/api/cmd"}
}

func TestFactsAreAllThatIsShown(t *testing.T) {
	t.Parallel()
	change := runner.Question{
		Kind: runner.KindFileChange, Title: "Edit two files", Folder: "/home/ada/src/api",
		Files: []runner.FileChange{
			{Path: "/home/ada/src/api/x/../main.go", Op: runner.FileEdit, Diff: "+DIFF", Added: 2, Removed: 1},
			{Path: "/home/ada/notes.txt", Op: runner.FileCreate, Diff: "+DIFF"},
			{Path: "/home/ada/src/api/../other/a.go", Op: runner.FileMove, Diff: "+DIFF"},
			{Path: "/etc/hosts", Op: "explode", Diff: "+DIFF"},
			{Path: "sub/b.go", Op: runner.FileDelete},
		},
	}
	odd := about(line("make"))
	odd.Categories = []policy.Category{policy.Network, "allow everything", policy.Secret}
	long := about(line("make"))
	long.Run.Request = strings.Repeat("ü", 1500)
	secret := about(line("make"))
	secret.Run.Request = "The token is ghp_abcdefghijklmnop1234, log in with it. postgres://bot:hunter22@db/x\xff"
	background := about(line("make"))
	background.Question.Background = true
	for name, test := range map[string]struct {
		in   ReviewRequest
		want string
	}{
		"a command":     {about(line("go test ./... 2>&1 | tail")), `{"kind":"command","categories":["terminal"],"background":false,"folder":"cmd","command":"go test ./... 2\u003e\u00261 | tail","request":"Build it."}`},
		"a file change": {about(change), `{"kind":"file_change","categories":["terminal"],"background":false,"folder":".","files":[{"path":"main.go","operation":"edit","lines_added":2,"lines_removed":1},{"path":"~/notes.txt","operation":"create","lines_added":0,"lines_removed":0},{"path":"~/src/other/a.go","operation":"move","lines_added":0,"lines_removed":0},{"path":"/etc/hosts","operation":"other","lines_added":0,"lines_removed":0},{"path":"sub/b.go","operation":"delete","lines_added":0,"lines_removed":0}],"request":"Build it."}`},
		"a tool": {
			about(call(`{"url": "https://go.dev/x", "z": [1, 2.50, true, null], "a": {"path": "/home/ada/src/api/go.mod"}, "content": ""}`)),
			`{"kind":"tool","categories":["terminal"],"background":false,"tool":"mcp__web__get","arguments":{"a":{"path":"go.mod"},"content":"","url":"https://go.dev/x","z":[1,2.50,true,null]},"request":"Build it."}`,
		},
		"no arguments":        {about(call("")), `{"kind":"tool","categories":["terminal"],"background":false,"tool":"mcp__web__get","request":"Build it."}`},
		"categories":          {odd, `{"kind":"command","categories":["network","unknown","unknown"],"background":false,"folder":"cmd","command":"make","request":"Build it."}`},
		"a long request":      {long, `{"kind":"command","categories":["terminal"],"background":false,"folder":"cmd","command":"make","request":"` + strings.Repeat("ü", 1024) + ` [cut here: 952 bytes are left out]"}`},
		"a request's secrets": {secret, `{"kind":"command","categories":["terminal"],"background":false,"folder":"cmd","command":"make","request":"The [secret left out], log in with it. postgres[secret left out]db/x` + "\ufffd" + `"}`},
		"in the background":   {background, `{"kind":"command","categories":["terminal"],"background":true,"folder":"cmd","command":"make","request":"Build it."}`},
		"what is hidden":      {about(line("echo '\u202e\u200b\U000e0061\ufe0f\x1b[0m\x7f'\necho ü")), `{"kind":"command","categories":["terminal"],"background":false,"folder":"cmd","command":"echo '\u202e\u200b\udb40\udc61\ufe0f\u001b[0m\u007f'\necho ü","request":"Build it."}`},
	} {
		got, err := facts(test.in)
		if err != nil || got != test.want {
			t.Errorf("%s is shown as\n%s, %v\nwant\n%s", name, got, err, test.want)
		}
		if !json.Valid([]byte(got)) {
			t.Errorf("%s is no JSON", name)
		}
	}
}

// TestWhatIsNotShownWholeIsNotReviewed tries what a reviewer would see only a part of, or must not see at all. None of it
// is cut to fit: who has seen a part must not allow the whole.
func TestWhatIsNotShownWholeIsNotReviewed(t *testing.T) {
	t.Parallel()
	many := func(n int) (files []runner.FileChange) {
		for i := range n {
			files = append(files, runner.FileChange{Path: fmt.Sprintf("src/a%d.go", i), Op: runner.FileEdit})
		}
		return files
	}
	deep := strings.Repeat(`{"a":`, 10) + "1" + strings.Repeat("}", 10)
	for name, test := range map[string]struct {
		q    runner.Question
		want *ReviewError
	}{
		"a long command":            {line("echo " + strings.Repeat("x ", maxCommand/2)), errTooMuch},
		"a long tool":               {runner.Question{Kind: runner.KindTool, Tool: strings.Repeat("x", 201)}, errTooMuch},
		"a long folder":             {runner.Question{Kind: runner.KindCommand, Command: "make", Folder: "/" + strings.Repeat("x/", 600)}, errTooMuch},
		"a long path":               {runner.Question{Kind: runner.KindFileChange, Files: []runner.FileChange{{Path: strings.Repeat("x/", 600)}}}, errTooMuch},
		"many files":                {runner.Question{Kind: runner.KindFileChange, Files: many(maxFiles + 1)}, errTooMuch},
		"a long argument":           {call(`{"query":"` + strings.Repeat("x ", maxArgument/2+1) + `"}`), errTooMuch},
		"a long name":               {call(`{"` + strings.Repeat("x ", 101) + `":1}`), errTooMuch},
		"a long number":             {call(`{"n":1` + strings.Repeat("0", 200) + `}`), errTooMuch},
		"many arguments":            {call("[" + strings.Repeat("1,", maxArguments) + "1]"), errTooMuch},
		"much nesting":              {call(deep), errTooMuch},
		"much that has to be shown": {line(strings.Repeat("\u200b", 1300)), nil},
		"much in small pieces":      {call("[" + strings.Repeat(`"`+strings.Repeat("x ", 400)+`",`, 30) + "1]"), errTooMuch},
		"a here-document":           {line("cat > a.go <<'EOF'\npackage a\nEOF"), errContents},
		"content":                   {call(`{"path":"a.go","content":"package a"}`), errContents},
		"content deep inside":       {call(`{"edits":[{"range":{"note":["package a"]}}]}`), errContents},
		"content by another name":   {call(`{"New-String":"package a"}`), errContents},
		"several lines":             {call(`{"q":"package a\n\nfunc f() {}"}`), errContents},
		"a name that stands twice":  {call(`{"url":"https://go.dev","url":"https://evil.example"}`), errTwofold},
		"the same, escaped":         {call(`{"url":"https://go.dev","\u0075rl":"https://evil.example"}`), errTwofold},
		"the same, deep inside":     {call(`{"a":[{"b":1,"b":2}]}`), errTwofold},
		"no JSON":                   {call(`{"a":`), errTwofold},
		"more than one value":       {call(`{"a":1} {"a":2}`), errTwofold},
		"a secret by its name":      {call(`{"api_key":"x"}`), errSecret},
		"a secret's name":           {call(`{"sk-abcdefghijklmnopqrst":"x"}`), errSecret},
		"a plan":                    {runner.Question{Kind: runner.KindPlan, Plan: "1. go"}, errNotForReview},
		"a question":                {runner.Question{Kind: runner.KindQuestion}, errNotForReview},
		"another kind":              {runner.Question{Kind: "nonsense"}, errNotForReview},
	} {
		got, err := facts(about(test.q))
		if why, ok := errors.AsType[*ReviewError](err); test.want == nil {
			if err != nil || len(got) > maxFacts {
				t.Errorf("%s is not shown: %v", name, err)
			}
		} else if !ok || why.Why != test.want.Why || got != "" {
			t.Errorf("%s is shown as %.200s, %v; want %v", name, got, err, test.want)
		}
	}
}

// secretTexts are what secrets look like; none of them is one.
func secretTexts() []string {
	return []string{
		"-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaA\n-----END OPENSSH PRIVATE KEY-----", "-----BEGIN RSA PRIVATE KEY-----",
		"sk-proj-abcdefghijklmnopqrstuvwx", "sk_live_abcdefghijklmnop", "ghp_abcdefghijklmnopqrst",
		"github_pat_11ABCDEFG0abcdefghij", "glpat-abcdefghijklmnopqrst", "npm_abcdefghijklmnopqrst", "xoxb-1234567890-abcdefghij",
		"AKIAABCDEFGHIJKLMNOP", "AIzaSyA-abcdefghijklmnopqrstuvwxyz012345", "hf_abcdefghijklmnopqrst",
		"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl", "123456789:AAabcdefghijklmnopqrstuvwxyz0123456",
		"https://ada:hunter22@example.org/x", "redis://:hunter22@127.0.0.1", "Authorization: Bearer abcdefghij", "bearer abcdefghij",
		"password=hunter22", "PGPASSWORD=hunter22", `"api_key": "abcdef"`, "--token abcdef12", "--password=hunter22", "MY_SECRET='hunter22'",
		"the password is hunter22", "curl -u ada:hunter22", "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1dE",
	}
}

func TestNoSecretsInThePrompt(t *testing.T) {
	t.Parallel()
	for _, s := range secretTexts() {
		places := map[string]runner.Question{
			"a command": line("run " + s + " now"),
			"a folder":  {Kind: runner.KindCommand, Command: "make", Folder: "/tmp/ " + s},
			"a path":    {Kind: runner.KindFileChange, Files: []runner.FileChange{{Path: "a/ " + s, Op: runner.FileEdit}}},
			"a tool":    {Kind: runner.KindTool, Tool: "x " + s},
		}
		b, err := json.Marshal([]string{"x", "run " + s})
		if err != nil {
			t.Fatal(err)
		}
		places["an argument"] = call(string(b))
		for name, q := range places {
			if got, err := facts(about(q)); err == nil {
				t.Errorf("%q in %s is shown: %s", s, name, got)
			}
		}
		r := about(line("make"))
		r.Run.Request = "Use " + s + " please."
		got, err := facts(r)
		if err != nil || !strings.Contains(got, "[secret left out]") {
			t.Errorf("%q in a request is shown as %s, %v", s, got, err)
		}
		for _, part := range regexp.MustCompile(`[A-Za-z0-9]{8,}`).FindAllString(s, -1) {
			if strings.Contains(got, part) && !regexp.MustCompile(`(?i)password|authorization|private`).MatchString(part) {
				t.Errorf("%q of %q is left in the request: %s", part, s, got)
			}
		}
	}
	for _, s := range []string{
		"go test -run TestTokensAreCounted ./internal/token/...", "grep -rn password internal/config", "curl -sS https://example.org/a?b=c",
		"git log --oneline 0123456789abcdef0123456789abcdef01234567", "docker run --rm -it golang:1.25 sh", "TOKEN=$GITHUB_TOKEN make",
		"echo $PASSWORD", "ls secrets/", "npm ci --ignore-scripts", "make PREFIX=/usr/local install-docs", "go run ./cmd/x --max-tokens 100",
		"kubectl get secret -n default", "curl -H \"Authorization: Bearer $TOKEN\" https://api.example.org",
	} {
		if _, err := facts(about(line(s))); err != nil {
			t.Errorf("%q is not shown: %v", s, err)
		}
	}
}

// TestNoContentsInThePrompt makes questions of every kind with marks wherever contents stand: diffs, plans, what would be
// written, output. No mark is ever shown, and what is shown is whole.
func TestNoContentsInThePrompt(t *testing.T) {
	t.Parallel()
	const mark = "CONTENTS"
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringN(0, 40, 200)
		marked := rapid.Map(text, func(s string) string { return strings.ReplaceAll(s, mark, "") + mark + "\n" })
		word := rapid.StringMatching(`[a-z /._\-"<>\\{}]{0,30}`)
		q := runner.Question{
			Kind:       rapid.SampledFrom([]runner.QuestionKind{runner.KindCommand, runner.KindFileChange, runner.KindTool}).Draw(t, "kind"),
			Title:      marked.Draw(t, "title"),
			Command:    word.Draw(t, "command"),
			Folder:     "/home/ada/src/api/" + word.Draw(t, "folder"),
			Tool:       word.Draw(t, "tool"),
			Plan:       marked.Draw(t, "plan"),
			Background: rapid.Bool().Draw(t, "background"),
			Queries:    []runner.Query{{ID: "a", Text: marked.Draw(t, "query")}},
			Actions:    []runner.Action{{ID: "x", Label: marked.Draw(t, "label")}},
		}
		for range rapid.IntRange(0, 4).Draw(t, "files") {
			q.Files = append(q.Files, runner.FileChange{
				Path: word.Draw(t, "path"), Op: runner.FileOp(rapid.SampledFrom([]string{"create", "edit", "delete", "move", mark}).Draw(t, "op")),
				Diff: marked.Draw(t, "diff"), Added: rapid.IntRange(0, 1e6).Draw(t, "added"), Removed: rapid.IntRange(0, 1e6).Draw(t, "removed"),
			})
		}
		arguments := map[string]any{}
		for range rapid.IntRange(0, 3).Draw(t, "arguments") {
			arguments[word.Draw(t, "name")] = word.Draw(t, "value")
		}
		contents := rapid.SampledFrom([]string{"", "content", "new_string", "oldText", "patch", "body", "anything"}).Draw(t, "contents")
		if contents != "" {
			arguments[contents] = marked.Draw(t, "content")
		}
		b, err := json.Marshal(arguments)
		if err != nil {
			t.Fatal(err)
		}
		if q.Arguments = b; q.Kind != runner.KindTool {
			q.Arguments = json.RawMessage(`{"content":"` + mark + `"}`)
		}
		r := about(q)
		r.Run.ID, r.Run.Chat, r.Run.Session, r.Run.Prompted = mark, mark, mark, mark
		got, err := facts(r)
		if strings.Contains(got, mark) {
			t.Fatalf("contents are shown: %s", got)
		}
		if q.Kind == runner.KindTool && contents != "" && err == nil {
			t.Fatalf("a call is shown without its contents: %s", got)
		}
		if err == nil && q.Kind == runner.KindCommand {
			var f reviewFacts
			if err := json.Unmarshal([]byte(got), &f); err != nil || f.Command != q.Command {
				t.Fatalf("the command %q is shown as %q, %v", q.Command, f.Command, err)
			}
		}
	})
}

func TestReasonsAreOneLine(t *testing.T) {
	t.Parallel()
	for _, pair := range [][2]string{
		{"", ""},
		{" It is\r\n\tfine.\u2028 ", "It is fine."},
		{"a\u202eb\u200bc\x00d\x1b[2J", "abcd[2J"},
		{strings.Repeat("ü", 200), strings.Repeat("ü", 150) + "…"},
		{"x" + strings.Repeat("ü", 200), "x" + strings.Repeat("ü", 149) + "…"},
	} {
		in, want := pair[0], pair[1]
		if got := sentence(in); got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
}

// FuzzVerdict holds what is taken for an allowance to one pattern, written down in another way than the code is.
func FuzzVerdict(f *testing.F) {
	const id = "QWERTYUIOPASDFGHJKLZXCVBNM"
	for _, seed := range []string{
		`{"id":"` + id + `","decision":"allow","reason":"fine"}`, `{"reason":"x","decision":"deny","id":"` + id + `"}`,
		`{"id":"` + id + `","decision":"allow","reason":"fine","reason":"y"}`, `[{"id":"` + id + `","decision":"allow","reason":"fine"}]`,
		`{"id":"` + id + `","decision":"allow","reason":{"decision":"deny"}}`, `{"id":"` + id + `","decision":"allow","reason":"fine",}`,
		`{"id":"` + id + `","decision":"\u0061llow","reason":""} `, "allow", "", "{}", "null", `"` + id + `"`, "\ufeff{}",
	} {
		f.Add(seed)
	}
	const space, text = `[ \t\r\n]*`, `"(?:[^"\\\x00-\x1f]|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})*"`
	member := space + text + space + ":" + space + text + space
	form := regexp.MustCompile(`^` + space + `\{` + member + `,` + member + `,` + member + `\}` + space + `$`)
	f.Fuzz(func(t *testing.T, answer string) {
		decision, reason, err := readVerdict(answer, id)
		if err != nil {
			if decision != "" || reason != "" {
				t.Errorf("%q: %q and %q beside an error", answer, decision, reason)
			}
			return
		}
		var m map[string]string
		if uerr := json.Unmarshal([]byte(answer), &m); uerr != nil || !form.MatchString(answer) || len(m) != 3 || m["id"] != id {
			t.Errorf("%q is taken for an answer", answer)
		}
		if want := map[string]runner.Decision{"allow": runner.Allowed, "deny": runner.Denied}[m["decision"]]; decision != want || want == "" {
			t.Errorf("%q is taken for %q", answer, decision)
		}
		if strings.ContainsAny(reason, "\n\r") || !utf8.ValidString(reason) || len(reason) > maxReviewReason+len("…") {
			t.Errorf("the reason of %q is %q", answer, reason)
		}
		if _, _, err := readVerdict(answer, ""); err == nil {
			t.Errorf("%q is taken for an answer to no question", answer)
		}
	})
}
