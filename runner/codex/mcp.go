package codex

import (
	"fmt"

	"drawbridge/policy"
	"drawbridge/runner"
)

// servers are the MCP servers, as each thread is told of them. They do not stand among codex's arguments, which everybody
// on the machine can read, nor in its configuration, which lasts.
func (r *Runtime) servers() map[string]access {
	all := map[string]access{}
	for name, s := range r.config.Servers {
		one := map[string]access{"default_tools_approval_mode": "prompt"}
		if s.URL != "" {
			one["url"] = s.URL
			if len(s.Headers) > 0 {
				one["http_headers"] = s.Headers
			}
		} else {
			one["command"] = s.Command
			if len(s.Arguments) > 0 {
				one["args"] = s.Arguments
			}
			if len(s.Environment) > 0 {
				one["env"] = s.Environment
			}
		}
		all[name] = one
	}
	return all
}

// tool is the approval of an MCP tool's call, which codex asks as an elicitation.
func (s *session) tool(f elicitationRequest, id string) (*request, error) {
	if f.Meta.ApprovalKind != "mcp_tool_call" || f.Meta.ToolName == "" || f.ServerName == "" {
		return nil, fmt.Errorf("the kind of approval %q is unknown", f.Meta.ApprovalKind)
	}
	var h policy.Hints
	if a := f.Meta.Annotations; a != nil {
		h = policy.Hints{ReadOnly: a.ReadOnly, Destructive: a.Destructive, OpenWorld: a.OpenWorld}
	}
	name := f.ServerName + "/" + f.Meta.ToolName
	req := &request{question: runner.Question{
		Kind: runner.KindTool, Title: f.Message, Tool: name, Arguments: f.Meta.ToolParams, Folder: s.options.Folder,
		Categories: policy.ClassifyTool(name, h, s.runtime.config.Tools),
	}, answer: func(a runner.Answer) any {
		if a.Allows() {
			return elicitationAnswer{Action: "accept", Content: struct{}{}}
		}
		return elicitationAnswer{Action: "decline"}
	}}
	// The request does not name its item: it is the call of this tool that runs, the last of them.
	var call *item
	for _, i := range s.items {
		if w := i.wire; i.thread == f.ThreadID && w.Type == "mcpToolCall" && w.Server == f.ServerName && w.Tool == f.Meta.ToolName &&
			(call == nil || i.started.After(call.started)) {
			call = i
		}
	}
	if call == nil {
		req.own, req.question.Item = true, s.id(f.ThreadID, "tool-"+id)
		return req, nil
	}
	req.question.Item = call.event.ID
	return req, nil
}

// The labels of the one option that a page to visit, and a form without fields, has.
const (
	wordYes  = "Yes"
	wordDone = "Done"
)

// unfilled is the answer to an elicitation that a person declined, or that nobody answered.
func unfilled(a runner.Answer) elicitationAnswer {
	if a.Source == runner.SourceUser {
		return elicitationAnswer{Action: "decline"}
	}
	return elicitationAnswer{Action: "cancel"}
}

// elicitation is a form that an MCP server wants filled in, or a page that it wants visited.
func (s *session) elicitation(f elicitationRequest, item string) (*request, error) {
	q := runner.Question{
		Kind: runner.KindQuestion, Item: item, Title: f.ServerName + ": " + f.Message, Folder: s.options.Folder,
		Categories: []policy.Category{policy.Question},
	}
	switch f.Mode {
	case "url":
		q.Queries = []runner.Query{{
			ID: "url", Text: f.ServerName + " asks to open " + f.URL + "\n" + f.Message, Options: []runner.Option{{Label: wordDone}},
		}}
		return &request{own: true, question: q, answer: func(a runner.Answer) any {
			if a.Allows() {
				return elicitationAnswer{Action: "accept", Content: struct{}{}}
			}
			return unfilled(a)
		}}, nil
	case "form":
	default:
		return nil, fmt.Errorf("the mode %q is unknown", f.Mode)
	}
	form, err := runner.ParseElicitation(f.RequestedSchema)
	if err != nil {
		return nil, fmt.Errorf("its form can't be asked: %w", err)
	}
	q.Queries = form.Queries()
	if len(q.Queries) == 0 {
		q.Queries = []runner.Query{{ID: "confirm", Text: f.ServerName + ": " + f.Message, Options: []runner.Option{{Label: wordYes}}}}
	} else {
		q.Queries[0].Text = f.ServerName + ": " + f.Message + "\n" + q.Queries[0].Text
	}
	return &request{own: true, question: q, answer: func(a runner.Answer) any {
		if !a.Allows() {
			return unfilled(a)
		}
		content, ok := form.Content(a.Answers)
		if !ok {
			return elicitationAnswer{Action: "cancel"}
		}
		return elicitationAnswer{Action: "accept", Content: content}
	}}, nil
}
