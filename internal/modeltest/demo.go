package modeltest

import (
	"context"
	"fmt"
	"regexp"
	"strings"
)

// Demo is a script that behaves like a modest coding agent on the project that Workspace writes. It understands a few
// requests and says so of any other. What it knows comes from the messages alone: from the files that it reads and the
// commands that it runs with the tools read_file, glob, edit, write_file and shell, and from their refusal. While the chat
// plans it reads, and hands a plan over with submit_plan; it carries an approved one out. It asks with ask_user.
func Demo() Script {
	return func(_ context.Context, r Request) Reply {
		t := hear(r)
		prompt := strings.ToLower(t.prompt)
		has := func(words ...string) bool {
			for _, w := range words {
				if !strings.Contains(prompt, w) {
					return false
				}
			}
			return true
		}
		switch {
		case has("say what should be done next"):
			t.say(followUps(prompt))
		case has("the plan is approved"):
			t.implement()
		case has("the plan is not approved yet"):
			t.revise()
		case strings.HasPrefix(prompt, "plan"):
			t.makePlan(prompt)
		case has("ask me"):
			t.ask()
		case has("fix"):
			t.fix()
		case has("add", "function"):
			t.add()
		case has("run", "test"), has("test", "pass"):
			t.test()
		case has("explain"):
			t.explain()
		case has("slow"):
			t.slow()
		default:
			t.say(abilities)
		}
		return t.reply
	}
}

// followUps says what should follow a finished task, in the form that Drawbridge asks for.
func followUps(prompt string) string {
	if strings.Contains(prompt, "fix") {
		return `{"tasks":[{"title":"Run the tests once more","steps":["Run the tests"]}]}`
	}
	return `{"tasks":[]}`
}

const abilities = `I am the scripted model of the demonstration: no real model is behind me, but everything else is real. The files, the commands, the questions to you and your answers take the same way as with any other model.

Try one of these:

- **Fix the failing test** – I read the code, change a line and run the tests
- **Add a function** – I write a file
- **Run the tests**
- **Explain main.go** – reading only, so I need not ask
- **Do something slow** – to try ` + "`/stop`" + `
- **Ask me something** – questions on buttons
- ` + "`/plan fix the failing test`" + ` – I only read, and you decide what becomes of my plan

What I may do without asking depends on the chat's mode: try ` + "`/mode`" + `.`

// talk is the running turn as the messages show it: what was asked, and the calls that were made since, with results.
type talk struct {
	prompt  string
	plan    bool
	planned string   // the last plan that was handed over
	steps   []string // the checklist of a plan that is being carried out
	tools   []string
	results []string
	used    int
	reply   Reply
}

// hear reads the messages.
func hear(r Request) *talk {
	t := &talk{tools: r.Tools}
	for _, m := range r.Messages {
		switch m.Role {
		case "system":
			t.plan = strings.Contains(m.Content, "You are planning now")
		case "user":
			t.prompt, t.results = m.Content, nil
		case "assistant":
			for _, c := range m.Calls {
				if p := submitted(c); p != "" {
					t.planned = p
				}
			}
		case "tool":
			t.results = append(t.results, m.Content)
		}
	}
	return t
}

// use is the result of the next call. While there is none, ok is false and the reply is to make the call: a request is
// then written as a plain sequence of calls, played from its start each time.
func (t *talk) use(say string, c Call) (result string, ok bool) {
	if t.used < len(t.results) {
		t.used++
		return t.results[t.used-1], true
	}
	t.reply = Reply{Text: say, Calls: []Call{c}}
	return "", false
}

func (t *talk) say(text string) { t.reply = Reply{Text: text} }

// refused reports whether a call was not carried out because it was not allowed, with the reason that was given.
func refused(result string) (reason string, is bool) {
	rest, is := strings.CutPrefix(result, "Not done.")
	_, reason, _ = strings.Cut(rest, "Reason: ")
	return strings.TrimSpace(reason), is
}

// failed reports whether a call failed.
func failed(result string) (why string, is bool) {
	return strings.CutPrefix(result, "Error: ")
}

// stopped answers for a call that did not work out: refused or failed. what is what it was for.
func (t *talk) stopped(result, what, instead string) bool {
	if reason, is := refused(result); is {
		s := "You didn't allow me to " + what + "; nothing was changed."
		if reason != "" {
			s += "\n\nYour reason: " + reason
		}
		t.say(s + instead)
		return true
	}
	if why, is := failed(result); is {
		t.say("I could not " + what + ": " + why + instead)
		return true
	}
	return false
}

// source takes the line numbers of read_file away.
func source(result string) string {
	var b strings.Builder
	for line := range strings.Lines(result) {
		if _, text, ok := strings.Cut(line, "\t"); ok {
			b.WriteString(text)
		}
	}
	return b.String()
}

// divided finds a share that is divided before it is multiplied: integers lose what is below a full hundred.
var divided = regexp.MustCompile(`(\w+)/100\*(\w+)`)

func (t *talk) fix() {
	if !t.progress(0) {
		return
	}
	found, ok := t.use("I'll look at the tests and at what they test.", CallOf("glob", map[string]any{"pattern": "**/*.go"}))
	if !ok || t.stopped(found, "look for files", "") {
		return
	}
	for file := range strings.FieldsSeq(found) {
		if !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, ok := t.use("", CallOf("read_file", map[string]any{"path": file}))
		if !ok || t.stopped(text, "read `"+file+"`", "") {
			return
		}
		for line := range strings.Lines(source(text)) {
			if divided.MatchString(line) {
				t.mend(file, strings.TrimSpace(line))
				return
			}
		}
	}
	if t.plan {
		t.say("I see no mistake in the code, so there is nothing to plan.")
		return
	}
	out, ok := t.use("I see no mistake in the code. I'll run the tests to be sure.", testing())
	if !ok || t.stopped(out, "run the tests", "") {
		return
	}
	t.say("There is nothing that I know how to fix.\n\n" + report(out))
}

// mend corrects a line and runs the tests.
func (t *talk) mend(file, line string) {
	better := divided.ReplaceAllString(line, "$1*$2/100")
	change := "\n\nThis is what I would change in `" + file + "`:\n\n```diff\n- " + line + "\n+ " + better + "\n```"
	if t.plan {
		t.submit("# Fix the failing test\n\n`" + file + "` divides before it multiplies, so the integers lose what is below a full hundred.\n\n" +
			"1. In `" + file + "`, multiply before dividing\n2. Run `go test ./...`" + change)
		return
	}
	done, ok := t.use("`"+file+"` divides before it multiplies, so the integers lose what is below a full hundred. I'll turn that around.",
		CallOf("edit", map[string]any{"path": file, "old": line, "new": better}))
	if !ok || t.stopped(done, "change `"+file+"`", change) {
		return
	}
	if !t.progress(1) {
		return
	}
	head := "I corrected one line of `" + file + "`:\n\n```go\n" + better + "\n```\n\n- **Cause:** the division came first, and integers drop the rest.\n- **Change:** it multiplies first now.\n"
	out, ok := t.use("Now the tests.", testing())
	if !ok || !t.progress(2) {
		return
	}
	if _, is := refused(out); is {
		t.say(head + "- **Tests:** you didn't allow me to run them, so I don't know whether they pass.")
		return
	}
	t.say(head + "\n" + report(out))
}

const averageFile = "price/average.go"

const average = `package price

// Average is the mean of the amounts, rounded down; 0 of none.
func Average(cents ...int) int {
	if len(cents) == 0 {
		return 0
	}
	return Total(cents...) / len(cents)
}
`

func (t *talk) add() {
	if !t.progress(0) {
		return
	}
	found, ok := t.use("I'll see what is there.", CallOf("glob", map[string]any{"pattern": "price/*.go"}))
	if !ok || t.stopped(found, "look for files", "") {
		return
	}
	code := "\n\n```go\n" + average + "```"
	switch {
	case strings.Contains(found, averageFile):
		t.say("`Average` is already there, in `" + averageFile + "`.")
		return
	case t.plan:
		t.submit("# Add a function\n\nThe package `price` can add up amounts, but has no average.\n\n" +
			"1. Write `" + averageFile + "`\n2. Run `go vet ./...`" + code)
		return
	}
	done, ok := t.use("The package can add up amounts. I'll add their average.",
		CallOf("write_file", map[string]any{"path": averageFile, "content": average}))
	if !ok || t.stopped(done, "write `"+averageFile+"`", "\n\nThis is what I would have written:"+code) {
		return
	}
	if !t.progress(1) {
		return
	}
	out, ok := t.use("I'll see whether it compiles.", CallOf("shell", map[string]any{"command": "go vet ./..."}))
	if !ok || !t.progress(2) {
		return
	}
	s := "I added `Average` to the package `price`, in `" + averageFile + "`:" + code + "\n\n"
	switch _, is := refused(out); {
	case is:
		s += "You didn't allow me to check that it compiles."
	case strings.Contains(out, "[Exit status 0.]"):
		s += "It compiles: `go vet ./...` has nothing to say."
	default:
		s += "`go vet ./...` is not content:\n\n```\n" + strings.TrimSpace(out) + "\n```"
	}
	t.say(s)
}

func (t *talk) test() {
	out, ok := t.use("I'll run the tests.", testing())
	if !ok || t.stopped(out, "run the tests", "") {
		return
	}
	t.say(report(out))
}

func (t *talk) slow() {
	out, ok := t.use("I'll wait for half a minute. You can stop me.", CallOf("shell", map[string]any{"command": "sleep 30"}))
	if !ok || t.stopped(out, "wait", "") {
		return
	}
	t.say("Half a minute is over.")
}

func testing() Call { return CallOf("shell", map[string]any{"command": "go test ./..."}) }

// report tells how the tests went, from the command's output.
func report(out string) string {
	if why, is := failed(out); is {
		return "I could not run the tests: " + why
	}
	var passed int
	var bad []string
	for line := range strings.Lines(out) {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "ok "), strings.HasPrefix(line, "ok\t"):
			passed++
		case strings.HasPrefix(line, "--- FAIL: "):
			name, _, _ := strings.Cut(strings.TrimPrefix(line, "--- FAIL: "), " ")
			bad = append(bad, "`"+name+"`")
		}
	}
	switch {
	case strings.Contains(out, "[Exit status 0.]"):
		return fmt.Sprintf("**All tests pass** (`go test ./...`, packages with tests: %d).", passed)
	case len(bad) > 0:
		return "**Tests fail:** " + strings.Join(bad, ", ") + "\n\n```\n" + strings.TrimSpace(out) + "\n```\n\nAsk me to *fix the failing test*."
	}
	return "The tests could not be run to their end:\n\n```\n" + strings.TrimSpace(out) + "\n```"
}

var (
	goFile     = regexp.MustCompile(`[\w./-]+\.go\b`)
	declared   = regexp.MustCompile(`(?m)^func (?:\([^)]*\) )?(\w+)`)
	imported   = regexp.MustCompile(`(?m)^\s*(?:import )?"([^"]+)"$`)
	namePrefix = regexp.MustCompile(`(?m)^package (\w+)`)
)

func (t *talk) explain() {
	file := goFile.FindString(t.prompt)
	if file == "" {
		file = "main.go"
	}
	text, ok := t.use("I'll read it.", CallOf("read_file", map[string]any{"path": file}))
	if !ok || t.stopped(text, "read `"+file+"`", "") {
		return
	}
	code := source(text)
	var b strings.Builder
	fmt.Fprintf(&b, "`%s` has %d lines.\n\n", file, strings.Count(code, "\n"))
	if m := namePrefix.FindStringSubmatch(code); m != nil {
		fmt.Fprintf(&b, "- **Package:** `%s`\n", m[1])
	}
	list := func(what string, found [][]string) {
		var names []string
		for _, m := range found {
			names = append(names, "`"+m[1]+"`")
		}
		if len(names) > 0 {
			fmt.Fprintf(&b, "- **%s:** %s\n", what, strings.Join(names, ", "))
		}
	}
	list("Uses", imported.FindAllStringSubmatch(code, -1))
	list("Functions", declared.FindAllStringSubmatch(code, -1))
	if i := strings.Index(code, "func main()"); i >= 0 {
		b.WriteString("\nThe program starts here:\n\n```go\n" + strings.TrimSpace(code[i:]) + "\n```\n\n" +
			"It adds up some amounts, takes the discount off and prints both, in cents.")
	}
	t.say(b.String())
}
