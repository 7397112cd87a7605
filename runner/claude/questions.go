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
	q, err := queries(p.Input)
	if err != nil {
		return permissionAnswer{Behavior: "deny", Message: "The question could not be understood."}
	}
	q.Folder = c.session.options.Folder
	a := c.ask(ctx, p.Tool, k, q)
	if !a.Allows() {
		return permissionAnswer{Behavior: "deny", Message: a.Describe()}
	}
	input := answered(p.Input, q.Queries, a.Answers)
	if input == nil {
		return permissionAnswer{Behavior: "deny", Message: "The answer could not be written."}
	}
	c.session.mu.Lock()
	k.item.Text = chosen(q.Queries, a.Answers)
	c.session.mu.Unlock()
	return permissionAnswer{Behavior: "allow", Input: input}
}

// chosen is what a person has answered, a line a question.
func chosen(asked []runner.Query, answers map[string][]string) string {
	var told []string
	for _, query := range asked {
		if given := answers[query.ID]; len(given) > 0 {
			told = append(told, strings.Join(given, ", "))
		}
	}
	return strings.Join(told, "\n")
}

// queries are the questions of the tool that asks a person.
func queries(raw json.RawMessage) (runner.Question, error) {
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
	if err := json.Unmarshal(raw, &in); err != nil || len(in.Questions) == 0 {
		return runner.Question{}, errNothing
	}
	q := runner.Question{Kind: runner.KindQuestion, Title: line(in.Questions[0].Question), Categories: []policy.Category{policy.Question}}
	for _, one := range in.Questions {
		query := runner.Query{ID: one.Question, Text: one.Question, Multiple: one.Multiple, Free: true}
		for _, o := range one.Options {
			query.Options = append(query.Options, runner.Option{Label: o.Label, Description: o.Description})
		}
		q.Queries = append(q.Queries, query)
	}
	return q, nil
}

// answered is the tool's input with the answers beside the questions as they came: the program takes it as a whole. Nil
// if it can't be made.
func answered(raw json.RawMessage, asked []runner.Query, given map[string][]string) json.RawMessage {
	input, answers := map[string]json.RawMessage{}, map[string]string{}
	if err := json.Unmarshal(raw, &input); err != nil {
		return nil
	}
	for _, query := range asked {
		if chosen := given[query.ID]; len(chosen) > 0 {
			answers[query.ID] = strings.Join(chosen, ", ")
		}
	}
	b, err := json.Marshal(answers)
	if err != nil {
		return nil
	}
	input["answers"] = b
	if b, err = json.Marshal(input); err != nil {
		return nil
	}
	return b
}

// What the agent is told of its plan.
const (
	planShown = "The plan is shown to the user, who decides about it in their own time. Nothing may be changed before that: end your turn now."
	planEmpty = "There is no plan to show. Write it in your answer, and end your turn."
)

// leavePlan takes the plan. While the chat plans, a turn ends with it, and nobody waits for the decision; the program
// stays in its plan mode. Where the chat does not plan any more, the program leaves it for its default mode, and for no
// other.
func (c *conn) leavePlan(p permissionCall, k *call) permissionAnswer {
	s := c.session
	var in struct {
		Plan string `json:"plan"`
	}
	_ = json.Unmarshal(p.Input, &in) // without a plan, what was said is all there is
	policyNow := s.allowed()
	s.mu.Lock()
	defer s.mu.Unlock()
	if in.Plan == "" {
		_ = json.Unmarshal(k.input, &in) // the model gave it itself, and the program left it out
	}
	k.item.Text = in.Plan
	switch {
	case policyNow.Interaction == policy.Default:
		c.aligning = modeDefault
		return permissionAnswer{
			Behavior: "allow", Input: p.Input,
			Updates: []permissionEntry{{Type: "setMode", Mode: modeDefault, Destination: "session"}},
		}
	case in.Plan == "":
		return permissionAnswer{Behavior: "deny", Message: planEmpty}
	}
	k.accepted = true
	if t := c.current(); t != nil {
		t.plan = in.Plan
	}
	return permissionAnswer{Behavior: "deny", Message: planShown}
}
