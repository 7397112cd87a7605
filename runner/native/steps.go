package native

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"drawbridge/runner"
)

// Steps of a checklist: how many, and how long each, in characters.
const (
	maxChecklist = 50
	maxStep      = 300
)

// planUpdatePlan is the checklist of the running turn. The gate is not asked: nothing is read, written or sent anywhere by
// it; people see it in the turn's own message, as they see what the model says.
func planUpdatePlan(t *turn, arguments json.RawMessage) (*action, error) {
	var in struct {
		Steps *[]struct {
			Text  string `json:"text"`
			State string `json:"state"`
		} `json:"steps"`
	}
	if err := decode(arguments, &in); err != nil {
		return nil, err
	}
	switch {
	case in.Steps == nil:
		return nil, missing("steps")
	case len(*in.Steps) > maxChecklist:
		return nil, nonsense{fmt.Errorf("these are %d steps; at most %d can be shown", len(*in.Steps), maxChecklist)}
	}
	var steps []runner.Step
	for i, one := range *in.Steps {
		s := runner.Step{Text: strings.Join(strings.Fields(one.Text), " ")}
		switch n := utf8.RuneCountInString(s.Text); {
		case n == 0:
			return nil, nonsense{fmt.Errorf("step %d has no text", i+1)}
		case n > maxStep:
			return nil, nonsense{fmt.Errorf("step %d has %d characters; at most %d can be shown", i+1, n, maxStep)}
		}
		switch one.State {
		case "", "pending":
		case "in_progress":
			s.Now = true
		case "done", "completed":
			s.Done = true
		default:
			return nil, nonsense{fmt.Errorf("step %d is in no known state; there are pending, in_progress and done", i+1)}
		}
		steps = append(steps, s)
	}
	return &action{ungated: true, do: func(context.Context, *runner.Item) (string, error) {
		t.emit(runner.Event{Kind: runner.PlanUpdated, Plan: steps})
		return "The checklist is shown.", nil
	}}, nil
}
