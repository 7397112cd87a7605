package claude_test

import (
	"encoding/json"
	"log/slog"
	"strings"
	"testing"

	"drawbridge/runner"
	"drawbridge/runner/claude"
)

// TestNoServerCanPoseAsOurs: the name of our own server is nobody else's.
func TestNoServerCanPoseAsOurs(t *testing.T) {
	t.Parallel()
	_, err := claude.New(claude.Config{
		Name: "claude", Data: "/data", Logger: slog.New(slog.DiscardHandler),
		MCP: map[string]json.RawMessage{runner.ToolHost: json.RawMessage(`{"command":"poser"}`)},
	})
	if err == nil || !strings.Contains(err.Error(), `"drawbridge"`) {
		t.Errorf("an owner's server of this name: %v", err)
	}
}

// TestOurServerOnlyRepeatsWhatWasDecided speaks with our server as the program does. A call that the hook did not let through
// makes nothing, and no other server is answered.
func TestOurServerOnlyRepeatsWhatWasDecided(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ message, server, says string }{
		"initialize":     {`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}`, "drawbridge", `"protocolVersion":"2025-06-18"`},
		"notification":   {`{"jsonrpc":"2.0","method":"notifications/initialized"}`, "drawbridge", `"result":{}`},
		"list":           {`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, "drawbridge", `"name":"propose_task"`},
		"call":           {`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"propose_task","arguments":{"title":"t","steps":["a"]},"_meta":{"claudecode/toolUseId":"toolu_1"}}}`, "drawbridge", `Not made: nobody was asked`},
		"another tool":   {`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"sudo"}}`, "drawbridge", `no such tool`},
		"another method": {`{"jsonrpc":"2.0","id":4,"method":"resources/list"}`, "drawbridge", `-32601`},
		"another server": {`{"jsonrpc":"2.0","id":5,"method":"tools/list"}`, "bank", ""},
	} {
		got, err := claude.Serve(json.RawMessage(`{"subtype":"mcp_message","server_name":"` + c.server + `","message":` + c.message + `}`))
		if (err != nil) != (c.says == "") {
			t.Errorf("%s: %v", name, err)
			continue
		}
		b, err := json.Marshal(got)
		if err != nil || c.says != "" && !strings.Contains(string(b), c.says) {
			t.Errorf("%s: %s, %v", name, b, err)
		}
	}
}
