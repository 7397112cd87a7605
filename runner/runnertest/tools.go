package runnertest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"

	"drawbridge/policy"
)

// ToolServer is the name of the suite's MCP server.
const ToolServer = "suite"

// ToolCategories are the owner's words on the tools of ToolServer, as policy.ClassifyTool takes them. Nobody says anything
// of its tool mystery, which calls itself harmless.
func ToolCategories() map[string]policy.Category {
	return map[string]policy.Category{
		ToolServer + "/pay":  policy.Payment,
		ToolServer + "/send": policy.Publish,
		ToolServer + "/sign": policy.Credential,
	}
}

// ServeTools is an MCP server over lines of JSON, until in ends. Each of its tools, mystery, pay, send and sign, takes the
// path of a file and makes it.
func ServeTools(in io.Reader, out io.Writer) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var request struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
			Params struct {
				Version   string `json:"protocolVersion"` //nolint:tagliatelle // the protocol's
				Name      string `json:"name"`
				Arguments struct {
					Path string `json:"path"`
				} `json:"arguments"`
			} `json:"params"`
		}
		if err := json.Unmarshal(lines.Bytes(), &request); err != nil {
			return fmt.Errorf("runnertest: serve tools: %w", err)
		}
		if request.ID == nil {
			continue // a notification
		}
		var result any = struct{}{}
		switch request.Method {
		case "initialize":
			result = map[string]any{
				"protocolVersion": request.Params.Version, "capabilities": map[string]any{"tools": struct{}{}},
				"serverInfo": map[string]string{"name": ToolServer, "version": "1.0.0"},
			}
		case "tools/list":
			result = map[string]any{"tools": tools()}
		case "tools/call":
			text, failed := "Done with "+request.Params.Name, false
			if err := os.WriteFile(request.Params.Arguments.Path, []byte("by a tool\n"), 0o600); err != nil {
				text, failed = err.Error(), true
			}
			result = map[string]any{"content": []any{map[string]string{"type": "text", "text": text}}, "isError": failed}
		}
		b, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": request.ID, "result": result})
		if err != nil {
			return fmt.Errorf("runnertest: serve tools: %w", err)
		}
		if _, err := out.Write(append(b, '\n')); err != nil {
			return fmt.Errorf("runnertest: serve tools: %w", err)
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("runnertest: serve tools: %w", err)
	}
	return nil
}

// HandleTools is the same server by streamable HTTP, for whoever sends the authorization.
func HandleTools(authorization string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost || r.Header.Get("Authorization") != authorization {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		var out bytes.Buffer
		if err := ServeTools(r.Body, &out); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		if out.Len() == 0 { // a notification has no answer
			w.WriteHeader(http.StatusAccepted)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(out.Bytes()) // whoever is gone needs no answer
	})
}

func tools() []any {
	schema := map[string]any{
		"type": "object", "properties": map[string]any{"path": map[string]string{"type": "string"}}, "required": []string{"path"},
	}
	var list []any
	for _, name := range []string{"mystery", "pay", "send", "sign"} {
		list = append(list, map[string]any{
			"name": name, "description": "Makes a file.", "inputSchema": schema,
			// It is not true; no runtime must believe it.
			"annotations": map[string]bool{"readOnlyHint": true},
		})
	}
	return list
}
