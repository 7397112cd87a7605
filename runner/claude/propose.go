package claude

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"

	"drawbridge/internal/jsonl"
	"drawbridge/runner"
)

// The tool by which the agent proposes a task is one of an MCP server that is Drawbridge itself: the program speaks with it
// over the same conversation, so that there is no process, no file and no address for anybody to stand in for. What it is
// called for is asked by the hook, as everything is; its call only fetches the words for the agent.

// proposeTool is how the program calls it.
const proposeTool = "mcp__" + runner.ToolHost + "__" + runner.ProposeTool

// hosts reports whether a session has our own server: unless something else can have its name. Servers of the machine's
// administrator are loaded whatever the program is told, and may have any.
func hosts(servers map[string]json.RawMessage) bool {
	for _, file := range managedMCP() {
		if _, err := os.Lstat(file); !errors.Is(err, fs.ErrNotExist) {
			return false
		}
	}
	_, taken := servers[runner.ToolHost]
	return !taken
}

// external are the servers that are not ours.
func (c *conn) external(all []mcpServer) []mcpServer {
	var out []mcpServer
	for _, m := range all {
		if !c.hosts || m.Name != runner.ToolHost {
			out = append(out, m)
		}
	}
	return out
}

// propose answers the hook for a proposal. What is no proposal is asked of nobody: its call returns why.
func (c *conn) propose(ctx context.Context, id string, k *call, raw json.RawMessage) hookAnswer {
	s := c.session
	allow := func(words string, wrong bool) hookAnswer {
		s.mu.Lock()
		defer s.mu.Unlock()
		k.cleared, k.passed, k.person, k.words, k.wrong = true, string(raw), true, words, wrong
		return decided("allow", "")
	}
	p, err := runner.ParseProposal(raw)
	if err != nil {
		return allow(err.Error(), true)
	}
	q := p.Question()
	q.Folder = s.options.Folder
	a := c.ask(ctx, id, k, q)
	if !a.Allows() {
		return decided("deny", p.Told(a))
	}
	return allow(p.Told(a), false)
}

// hostedCall is a message of the program to our server.
type hostedCall struct {
	Server  string `json:"server_name"`
	Message struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
		Params struct {
			Version string `json:"protocolVersion"`
			Name    string `json:"name"`
			Meta    struct {
				Tool string `json:"claudecode/toolUseId"`
			} `json:"_meta"`
		} `json:"params"`
	} `json:"message"`
}

type hostedAnswer struct {
	Response hostedResponse `json:"mcp_response"`
}

type hostedResponse struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Result  any             `json:"result,omitempty"`
	Error   *hostedError    `json:"error,omitempty"`
}

type hostedError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

const (
	unknownMethod = -32601
	unknownParams = -32602
)

type hostedResult struct {
	Content []hostedText `json:"content"`
	IsError bool         `json:"isError,omitempty"`
}

type hostedText struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// serve is our MCP server. Nothing happens by it that the hook has not had decided.
func (c *conn) serve(raw json.RawMessage) (any, error) {
	var in hostedCall
	if err := json.Unmarshal(raw, &in); err != nil || !c.hosts || in.Server != runner.ToolHost {
		return nil, jsonl.ErrMethod
	}
	out := hostedResponse{JSONRPC: "2.0", ID: in.Message.ID, Result: struct{}{}}
	params := in.Message.Params
	switch {
	case len(in.Message.ID) == 0: // a notification, whose answer says nothing
		out.ID = json.RawMessage("0")
	case in.Message.Method == "initialize":
		out.Result = map[string]any{
			"protocolVersion": params.Version, "capabilities": map[string]any{"tools": struct{}{}},
			"serverInfo": map[string]string{"name": runner.ToolHost, "version": "1"},
		}
	case in.Message.Method == "ping":
	case in.Message.Method == "tools/list":
		out.Result = map[string]any{"tools": []any{map[string]any{
			"name": runner.ProposeTool, "description": runner.ProposalDescription, "inputSchema": runner.ProposalSchema(),
		}}}
	case in.Message.Method == "tools/call" && params.Name == runner.ProposeTool:
		out.Result = c.proposed(params.Meta.Tool)
	case in.Message.Method == "tools/call":
		out.Result, out.Error = nil, &hostedError{unknownParams, "there is no such tool"}
	default:
		out.Result, out.Error = nil, &hostedError{unknownMethod, "there is no such method"}
	}
	return hostedAnswer{out}, nil
}

// proposed is what the agent is told of a call that the hook has let through, once.
func (c *conn) proposed(id string) hostedResult {
	s := c.session
	s.mu.Lock()
	defer s.mu.Unlock()
	k := c.calls[id]
	if k == nil || k.name != proposeTool || k.words == "" {
		return hostedResult{[]hostedText{{"text", "Not made: nobody was asked about this."}}, true}
	}
	r := hostedResult{[]hostedText{{"text", k.words}}, k.wrong}
	k.words = ""
	return r
}
