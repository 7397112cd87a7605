package codex

import (
	"encoding/json"
	"errors"

	"drawbridge/runner"
)

// ownTool is a tool that codex offers to the model and has us carry out. Codex keeps it with the thread: a thread that is
// resumed has those that it was started with.
type ownTool struct {
	Type        string          `json:"type"`
	Name        string          `json:"name"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"inputSchema"`
}

// ownTools are those of every thread.
func ownTools() []ownTool {
	return []ownTool{{
		Type: "function", Name: runner.ProposeTool, Description: runner.ProposalDescription, InputSchema: runner.ProposalSchema(),
	}}
}

// ownCall is the call of one. No other server can make it: a server's tools are called by codex itself.
type ownCall struct {
	route
	CallID    string          `json:"callId"`
	Namespace *string         `json:"namespace"`
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments"`
}

// ownResult is what the model is told of a call.
type ownResult struct {
	Success bool      `json:"success"`
	Content []ownText `json:"contentItems"`
}

type ownText struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

func ownResultOf(success bool, text string) ownResult {
	return ownResult{success, []ownText{{"inputText", text}}}
}

// proposal is the call by which the agent proposes a task. What is no proposal is answered without asking anybody.
func (s *session) proposal(f ownCall) (*request, error) {
	if f.Tool != runner.ProposeTool || f.Namespace != nil && *f.Namespace != "" {
		return nil, errors.New("there is no such tool")
	}
	p, err := runner.ParseProposal(f.Arguments)
	if err != nil {
		return &request{ready: ownResultOf(false, err.Error())}, nil
	}
	q := p.Question()
	q.Item, q.Folder = s.id(f.ThreadID, f.CallID), s.options.Folder
	return &request{question: q, tells: true, answer: func(a runner.Answer) any {
		if !a.Allows() {
			s.mu.Lock()
			if i := s.items[itemKey(f.ThreadID, f.CallID)]; i != nil {
				i.refused = true
			}
			s.mu.Unlock()
		}
		return ownResultOf(a.Allows(), p.Told(a))
	}}, nil
}
