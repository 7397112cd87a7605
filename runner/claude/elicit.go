package claude

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"drawbridge/runner"
)

// elicitation is what an MCP server wants of a person, as the program passes it on.
type elicitation struct {
	Server  string          `json:"mcp_server_name"`
	Message string          `json:"message"`
	Mode    string          `json:"mode"` // none is a form
	URL     string          `json:"url"`
	Schema  json.RawMessage `json:"requested_schema"`
}

// elicit puts it to a person. What can't be asked is an error, which the program tells the server as a refusal.
func (c *conn) elicit(ctx context.Context, id string, raw json.RawMessage) (any, error) {
	var in elicitation
	if err := json.Unmarshal(raw, &in); err != nil {
		return nil, fmt.Errorf("claude: elicitation: %w", err)
	}
	if len(in.Schema) == 0 {
		in.Schema = json.RawMessage("{}")
	}
	q, answer, err := runner.Elicited{
		Server: in.Server, Message: in.Message, Mode: cmp.Or(in.Mode, "form"), URL: in.URL, Schema: in.Schema,
	}.Question()
	if err != nil {
		return nil, fmt.Errorf("claude: elicitation: %w", err)
	}
	s := c.session
	q.Folder = s.options.Folder
	c.await(ctx)
	id = "elicitation-" + strings.Trim(id, `"`)
	s.mu.Lock()
	k := &call{asked: true, cleared: true, turn: c.turnID(), message: c.lane.message, item: runner.Item{
		ID: id, Kind: runner.ItemQuestion, Status: runner.ItemRunning, Title: line(q.Title),
	}}
	c.calls[id] = k
	item := k.item
	s.emit(runner.Event{Kind: runner.ItemStarted, Turn: k.turn, Item: &item})
	s.mu.Unlock()

	a := c.ask(ctx, id, k, q)
	out := answer(a)
	s.mu.Lock()
	defer s.mu.Unlock()
	if a.Allows() {
		k.item.Text = chosen(q.Queries, a.Answers)
	}
	c.end(k, runner.ItemDone)
	delete(c.calls, id)
	return out, nil
}
