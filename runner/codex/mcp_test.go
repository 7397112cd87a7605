package codex_test

import (
	"encoding/json"
	"testing"

	"drawbridge/runner/codex"
)

// TestServersAreAskedEach: what a thread is told of MCP servers has each tool asked, whatever kind of server it is.
func TestServersAreAskedEach(t *testing.T) {
	t.Parallel()
	r, err := codex.New(codex.Config{
		Program: "codex", Data: "/data", Logger: logger(t), Servers: map[string]codex.Server{
			"notes":    {Command: "/usr/bin/notes", Arguments: []string{"--quiet", `say "hi"`}, Environment: map[string]string{"A": "1"}},
			"odd name": {Command: "odd"},
			"tracker":  {URL: "https://mcp.example.org", Headers: map[string]string{"X-Key": "k"}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.MarshalIndent(codex.Servers(r), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "servers.json", append(b, '\n'))
}
