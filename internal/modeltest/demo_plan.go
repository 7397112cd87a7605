package modeltest

import (
	"encoding/json"
	"slices"
	"strings"
)

// submitted is the plan that a call hands over, or nothing.
func submitted(c Call) string {
	var in struct {
		Plan string `json:"plan"`
	}
	if c.Name != "submit_plan" || json.Unmarshal([]byte(c.Arguments), &in) != nil {
		return ""
	}
	return in.Plan
}

// can reports whether there is a tool of that name.
func (t *talk) can(tool string) bool { return slices.Contains(t.tools, tool) }

const howToPlan = "I make a plan, and change nothing, when the chat plans: send `/plan fix the failing test`, or `/plan` and then what you want."

// makePlan plans what was asked for, or the fix where nothing else was.
func (t *talk) makePlan(prompt string) {
	switch {
	case !t.plan:
		t.say(howToPlan)
	case strings.Contains(prompt, "add"):
		t.add()
	default:
		t.fix()
	}
}

// submit hands a plan over, or says it where there is no tool for that.
func (t *talk) submit(plan string) {
	if !t.can("submit_plan") {
		t.say(plan)
		return
	}
	result, ok := t.use("I know enough for a plan.", CallOf("submit_plan", map[string]any{"plan": plan}))
	if !ok || t.stopped(result, "submit the plan", "") {
		return
	}
	t.say("The plan is with you.") // for agents whose turn does not end with the tool
}

// revise hands the last plan over once more, with what the person wants to be different.
func (t *talk) revise() {
	_, words, _ := strings.Cut(t.prompt, "\n\n")
	if t.planned == "" {
		t.say("I have no plan that I could revise.")
		return
	}
	before, _, _ := strings.Cut(t.planned, "\n\n## Revised")
	t.submit(before + "\n\n## Revised\n\nWith what you asked for:\n\n> " + strings.ReplaceAll(strings.TrimSpace(words), "\n", "\n> "))
}

// implement does what the plan in the prompt says, with a checklist.
func (t *talk) implement() {
	if strings.Contains(t.prompt, averageFile) {
		t.steps = []string{"Write " + averageFile, "Check that it compiles"}
		t.add()
		return
	}
	t.steps = []string{"Multiply before dividing", "Run the tests"}
	t.fix()
}

// progress shows the checklist with so many steps done, while a plan is carried out. It reports false if the reply is to
// show it.
func (t *talk) progress(done int) bool {
	if len(t.steps) == 0 || !t.can("update_plan") {
		return true
	}
	var steps []map[string]string
	for i, text := range t.steps {
		state := "pending"
		switch {
		case i < done:
			state = "done"
		case i == done:
			state = "in_progress"
		}
		steps = append(steps, map[string]string{"text": text, "state": state})
	}
	_, ok := t.use("", CallOf("update_plan", map[string]any{"steps": steps}))
	return ok
}

// ask puts questions to the person and says what was answered.
func (t *talk) ask() {
	if !t.can("ask_user") {
		t.say("I have no tool to ask with.")
		return
	}
	option := func(label, description string) map[string]string {
		return map[string]string{"label": label, "description": description}
	}
	answers, ok := t.use("I'd like to know two things.", CallOf("ask_user", map[string]any{"questions": []map[string]any{
		{
			"id": "rounding", "question": "How shall a discount be rounded?",
			"options": []map[string]string{
				option("Down", "what is taken off loses its fraction of a cent, as it does today"),
				option("To the nearest", "half a cent and more counts as one"),
				option("Up", "always in favour of the customer"),
			},
		},
		{
			"id": "checks", "question": "What shall I run after each change?", "multiple": true,
			"options": []map[string]string{option("The tests", "`go test ./...`"), option("The vet", "`go vet ./...`"), option("The program", "`go run .`")},
		},
	}}))
	if !ok || t.stopped(answers, "ask", "") {
		return
	}
	if list, is := strings.CutPrefix(answers, "The user answered:"); is {
		t.say("**Thank you.** This is what I heard:\n" + list + "\n\nI only remember it: nothing was changed.")
		return
	}
	t.say("I go on without an answer. What I was told: " + answers)
}
