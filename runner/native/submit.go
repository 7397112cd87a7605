package native

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"drawbridge/formatting"
	"drawbridge/runner"
)

// maxPlan is the size of a plan in characters. Much more could not be kept with its approval.
const maxPlan = 100_000

// submittedResult is what the model knows of its plan's fate; what becomes of it comes as a prompt.
const submittedResult = "The plan was submitted. A person will read it and decide, and your turn ends here. " +
	"If it is approved, or has to be revised, the next message says so; until then nothing is to be changed."

// planSubmitPlan ends a turn in plan with a plan. The gate is not asked: submitting carries out nothing, and the plan
// becomes an approval of its own with the end of the turn, whatever the mode.
func planSubmitPlan(t *turn, arguments json.RawMessage) (*action, error) {
	var in struct {
		Plan string `json:"plan"`
	}
	if err := decode(arguments, &in); err != nil {
		return nil, err
	}
	plan := strings.TrimSpace(in.Plan)
	switch n := utf8.RuneCountInString(plan); {
	case !t.session.planning():
		return nil, nonsense{errors.New("the chat is not planning, so there is no plan to submit; do what you were asked")}
	case n == 0:
		return nil, nonsense{errors.New("the plan is empty; write all of it, in Markdown, into \"plan\"")}
	case n > maxPlan:
		return nil, nonsense{fmt.Errorf("the plan has %d characters, and at most %d can be kept; submit a shorter one", n, maxPlan)}
	}
	return &action{ungated: true, do: func(context.Context, *runner.Item) (string, error) {
		t.submitted = plan
		return submittedResult, nil
	}}, nil
}

// handOver ends a turn whose plan was submitted.
func (t *turn) handOver() (runner.Result, error) {
	if err := t.conversation.close("The plan was submitted; a person decides what becomes of it."); err != nil {
		return runner.Result{}, err
	}
	return runner.Result{Outcome: runner.Completed, Usage: t.usage, Plan: t.submitted}, nil
}

// proposedBlock is how some models were trained to hand over a plan: within a message. One that is not closed goes to the
// end, as it does for whoever takes it out of the message that people read.
var proposedBlock = regexp.MustCompile(`(?s)<proposed_plan>(.*?)(?:</proposed_plan>|\z)`)

// proposed is the plan that a final message holds, or nothing. A block that is only quoted, in code, is none: it stays in
// the message.
func proposed(message string) string {
	blocks := proposedBlock.FindAllStringSubmatch(message, -1)
	if len(blocks) == 0 {
		return ""
	}
	last := blocks[len(blocks)-1]
	plan := strings.ToValidUTF8(strings.TrimSpace(last[1]), "\ufffd")
	if plan == "" || strings.Contains(formatting.StripInternal(message), last[0]) {
		return ""
	}
	if utf8.RuneCountInString(plan) > maxPlan {
		plan = string([]rune(plan)[:maxPlan]) + "\n\n[The plan was longer and is cut here.]"
	}
	return plan
}
