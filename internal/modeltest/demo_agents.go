package modeltest

import (
	"context"
	"regexp"
	"strings"
)

// AgentTools are the tool calls by which an agent that is a program of its own works on the demonstration's project.
type AgentTools struct {
	Read func(path string) Call
	Edit func(path, old, better string) Call
	Run  func(command string) Call
}

// DemoFor is Demo for agents that bring their own tools: it understands the requests that need few of them.
func DemoFor(a AgentTools) Script {
	return func(_ context.Context, r Request) Reply {
		t := hear(r)
		prompt := strings.ToLower(reminders.ReplaceAllString(t.prompt, ""))
		switch {
		case strings.Contains(prompt, "say what should be done next"):
			t.say(followUps(prompt))
		case strings.Contains(prompt, "fix"):
			t.fixWith(a)
		case strings.Contains(prompt, "run") && strings.Contains(prompt, "test"):
			t.testWith(a)
		case strings.Contains(prompt, "explain"):
			t.explainWith(a)
		default:
			t.say(agentAbilities)
		}
		return t.reply
	}
}

const agentAbilities = "I am the scripted model of the demonstration, behind the real agent: its program, its tools, its questions and your answers " +
	"are as they always are.\n\nTry one of these:\n\n- **Fix the failing test**\n- **Run the tests**\n- **Explain main.go**"

// reminders are what agents put around a person's words.
var reminders = regexp.MustCompile(`(?s)<(system-reminder|environment_context|user_instructions)>.*?</(system-reminder|environment_context|user_instructions)>`)

// The mistake in the project, as Workspace writes it.
const (
	mistaken     = "price/price.go"
	mistakenLine = "return cents - cents/100*percent"
	mendedLine   = "return cents - cents*percent/100"
)

// declined are words by which agents tell the model that a call was not carried out.
var declined = regexp.MustCompile(`(?i)refused|rejected|declined|does not allow|not allowed|hook error|nobody answered`)

func (t *talk) fixWith(a AgentTools) {
	if _, ok := t.use("I'll look at what the test tries.", a.Read(mistaken)); !ok {
		return
	}
	done, ok := t.use("`"+mistaken+"` divides before it multiplies, so the integers lose what is below a full hundred. I'll turn that around.",
		a.Edit(mistaken, mistakenLine, mendedLine))
	if !ok {
		return
	}
	if declined.MatchString(done) {
		t.say("You didn't allow me to change `" + mistaken + "`; nothing was changed.")
		return
	}
	out, ok := t.use("Now the tests.", a.Run("go test ./..."))
	if !ok {
		return
	}
	head := "I corrected one line of `" + mistaken + "`:\n\n```go\n" + mendedLine + "\n```\n\n"
	if declined.MatchString(out) {
		t.say(head + "You didn't allow me to run the tests, so I don't know whether they pass.")
		return
	}
	t.say(head + outcome(out))
}

func (t *talk) testWith(a AgentTools) {
	out, ok := t.use("", a.Run("go test ./..."))
	switch {
	case !ok:
	case declined.MatchString(out):
		t.say("You didn't allow me to run the tests.")
	default:
		t.say(outcome(out))
	}
}

func outcome(out string) string {
	if strings.Contains(out, "FAIL") || !strings.Contains(out, "ok ") {
		return "The tests fail:\n\n```\n" + strings.TrimSpace(out) + "\n```"
	}
	return "**All tests pass** (`go test ./...`)."
}

func (t *talk) explainWith(a AgentTools) {
	if _, ok := t.use("", a.Read("main.go")); !ok {
		return
	}
	t.say("`main.go` adds up the prices of a small shop, takes off a discount and prints the result. The arithmetic is in the package `price`.")
}
