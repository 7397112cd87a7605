package codex

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

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

// property is a field of a form, as much of JSON Schema as MCP allows there.
type property struct {
	Type        string   `json:"type"`
	Title       string   `json:"title"`
	Description string   `json:"description"`
	Enum        []string `json:"enum"`
	EnumNames   []string `json:"enumNames"`
}

const (
	wordYes  = "Yes"
	wordNo   = "No"
	wordDone = "Done"
)

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
			return elicitationAnswer{Action: "decline"}
		}}, nil
	case "form":
	default:
		return nil, fmt.Errorf("the mode %q is unknown", f.Mode)
	}
	var schema struct {
		Properties map[string]property `json:"properties"`
		Required   []string            `json:"required"`
	}
	if err := json.Unmarshal(f.RequestedSchema, &schema); err != nil {
		return nil, fmt.Errorf("its form can't be read: %w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		one, err := schema.Properties[name].query(name)
		if err != nil {
			return nil, err
		}
		one.Text = f.Message + "\n" + one.Text
		q.Queries = append(q.Queries, one)
	}
	if len(q.Queries) == 0 {
		q.Queries = []runner.Query{{ID: "confirm", Text: f.ServerName + ": " + f.Message, Options: []runner.Option{{Label: wordYes}}}}
	}
	return &request{own: true, question: q, answer: func(a runner.Answer) any {
		if !a.Allows() {
			return elicitationAnswer{Action: "decline"}
		}
		content := map[string]any{}
		for name, p := range schema.Properties {
			given := a.Answers[name]
			if len(given) == 0 {
				if slices.Contains(schema.Required, name) {
					return elicitationAnswer{Action: "decline"}
				}
				continue
			}
			v, err := p.value(given[0])
			if err != nil {
				return elicitationAnswer{Action: "decline"}
			}
			content[name] = v
		}
		return elicitationAnswer{Action: "accept", Content: content}
	}}, nil
}

// query is the question for a field.
func (p property) query(name string) (runner.Query, error) {
	q := runner.Query{ID: name, Text: name}
	if p.Title != "" {
		q.Text = p.Title
	}
	if p.Description != "" {
		q.Text += " — " + p.Description
	}
	switch p.Type {
	case "boolean":
		q.Options = []runner.Option{{Label: wordYes}, {Label: wordNo}}
	case "string":
		q.Free = len(p.Enum) == 0
		for i := range p.Enum {
			q.Options = append(q.Options, runner.Option{Label: p.label(i)})
		}
	case "number", "integer":
		q.Free = true
	default:
		return q, fmt.Errorf("a field of the type %q", p.Type)
	}
	return q, nil
}

// label is how an option is shown.
func (p property) label(i int) string {
	if i < len(p.EnumNames) && p.EnumNames[i] != "" {
		return p.EnumNames[i]
	}
	return p.Enum[i]
}

var errValue = errors.New("codex: not a value of the field")

// value is an answer as the form wants it.
func (p property) value(given string) (any, error) {
	switch p.Type {
	case "boolean":
		switch given {
		case wordYes:
			return true, nil
		case wordNo:
			return false, nil
		}
		return nil, errValue
	case "integer":
		n, err := strconv.ParseInt(given, 10, 64)
		if err != nil {
			return nil, errValue
		}
		return n, nil
	case "number":
		n, err := strconv.ParseFloat(given, 64)
		if err != nil {
			return nil, errValue
		}
		return n, nil
	}
	if len(p.Enum) == 0 {
		return given, nil
	}
	for i := range p.Enum {
		if given == p.label(i) || given == p.Enum[i] {
			return p.Enum[i], nil
		}
	}
	return nil, errValue
}
