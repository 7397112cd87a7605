package claude

import (
	"context"
	"encoding/json"
	"strings"

	"drawbridge/policy"
	"drawbridge/runner"
)

// askPerson puts the agent's questions to a person. Its answers are the program's updatedInput.
func (c *conn) askPerson(ctx context.Context, p permissionCall, k *call) permissionAnswer {
	var in struct {
		Questions []struct {
			Question string `json:"question"`
			Header   string `json:"header"`
			Multiple bool   `json:"multiSelect"`
			Options  []struct {
				Label       string `json:"label"`
				Description string `json:"description"`
			} `json:"options"`
		} `json:"questions"`
	}
	if err := json.Unmarshal(p.Input, &in); err != nil || len(in.Questions) == 0 {
		return permissionAnswer{Behavior: "deny", Message: "The question could not be understood."}
	}
	q := runner.Question{
		Kind: runner.KindQuestion, Title: line(in.Questions[0].Question), Folder: c.session.options.Folder,
		Categories: []policy.Category{policy.Question},
	}
	for _, one := range in.Questions {
		query := runner.Query{ID: one.Question, Text: one.Question, Multiple: one.Multiple, Free: true}
		for _, o := range one.Options {
			query.Options = append(query.Options, runner.Option{Label: o.Label, Description: o.Description})
		}
		q.Queries = append(q.Queries, query)
	}
	a := c.ask(ctx, p.Tool, k, q)
	if !a.Allows() {
		return permissionAnswer{Behavior: "deny", Message: a.Describe()}
	}
	// The answers go beside the questions as they came: the program takes the input as a whole.
	input := map[string]json.RawMessage{}
	if err := json.Unmarshal(p.Input, &input); err != nil {
		return permissionAnswer{Behavior: "deny", Message: "The question could not be understood."}
	}
	answers, told := map[string]string{}, []string{}
	for _, query := range q.Queries {
		if chosen := a.Answers[query.ID]; len(chosen) > 0 {
			answers[query.ID] = strings.Join(chosen, ", ")
			told = append(told, answers[query.ID])
		}
	}
	b, err := json.Marshal(answers)
	if err != nil {
		return permissionAnswer{Behavior: "deny", Message: "The answer could not be written."}
	}
	input["answers"] = b
	b, err = json.Marshal(input)
	if err != nil {
		return permissionAnswer{Behavior: "deny", Message: "The answer could not be written."}
	}
	c.session.mu.Lock()
	k.item.Text = strings.Join(told, "\n")
	c.session.mu.Unlock()
	return permissionAnswer{Behavior: "allow", Input: b}
}

// planKept tells the agent that its plan was accepted while the chat still plans.
const planKept = "The user accepted the plan, but the chat is still planning: nothing may be changed yet. End your turn and wait for the next message."

// leavePlan shows the plan. Where it is accepted, the program leaves its plan mode for its default mode, and for no
// other, once the chat does not plan any more.
func (c *conn) leavePlan(ctx context.Context, p permissionCall, k *call) permissionAnswer {
	s := c.session
	var in struct {
		Plan string `json:"plan"`
	}
	_ = json.Unmarshal(p.Input, &in) // without a plan, what was said is all there is
	s.mu.Lock()
	if in.Plan == "" {
		_ = json.Unmarshal(k.input, &in) // the model gave it itself, and the program left it out
	}
	k.item.Text = in.Plan
	s.mu.Unlock()
	q := runner.Question{
		Kind: runner.KindPlan, Title: "A plan", Plan: in.Plan, Folder: s.options.Folder, Categories: []policy.Category{policy.Question},
	}
	a := c.ask(ctx, p.Tool, k, q)
	switch {
	case !a.Allows():
		return permissionAnswer{Behavior: "deny", Message: a.Describe()}
	case s.allowed().Interaction != policy.Default:
		s.mu.Lock()
		k.accepted = true
		s.mu.Unlock()
		return permissionAnswer{Behavior: "deny", Message: planKept}
	}
	s.mu.Lock()
	c.aligning = modeDefault
	s.mu.Unlock()
	return permissionAnswer{
		Behavior: "allow", Input: p.Input,
		Updates: []permissionEntry{{Type: "setMode", Mode: modeDefault, Destination: "session"}},
	}
}
