package native

import (
	"encoding/json"

	"drawbridge/internal/chatapi"
	"drawbridge/policy"
	"drawbridge/runner"
)

// proposeTool is the tool by which the model proposes a task.
func proposeTool() tool {
	return tool{chatapi.Tool{
		Name: runner.ProposeTool, Description: runner.ProposalDescription, Parameters: runner.ProposalSchema(),
	}, planProposal, always}
}

// planProposal puts a proposal to a person: there is nothing to carry out here, whatever the answer.
func planProposal(_ *turn, arguments json.RawMessage) (*action, error) {
	p, err := runner.ParseProposal(arguments)
	if err != nil {
		return nil, nonsense{err}
	}
	return &action{
		item:       runner.Item{Kind: runner.ItemToolCall, Title: firstLine("Propose: " + p.Title)},
		question:   p.Question(),
		categories: []policy.Category{policy.Question},
		heard: func(a runner.Answer, item *runner.Item) string {
			if !a.Allows() {
				item.Status = runner.ItemRefused
			}
			item.Text = p.Told(a)
			return item.Text
		},
	}, nil
}
