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

// elicitation is a form that an MCP server wants filled in, or a page that it wants visited.
func (s *session) elicitation(f elicitationRequest, item string) (*request, error) {
	q, answer, err := runner.Elicited{
		Server: f.ServerName, Message: f.Message, Mode: f.Mode, URL: f.URL, Schema: f.RequestedSchema,
	}.Question()
	if err != nil {
		return nil, err
	}
	q.Item, q.Folder = item, s.options.Folder
	return &request{own: true, question: q, answer: func(a runner.Answer) any {
		out := answer(a)
		return elicitationAnswer{Action: out.Action, Content: out.Content}
	}}, nil
}
