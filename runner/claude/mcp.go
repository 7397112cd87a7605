package claude

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"drawbridge/runner"
)

// projectMCP is the file in which a project lists MCP servers.
const projectMCP = ".mcp.json"

// mcpLimit bounds it, in bytes.
const mcpLimit = 256 << 10

// trusts reports whether the owner trusts the project in a folder.
func (r *Runtime) trusts(folder string) bool {
	return r.config.Trusts != nil && r.config.Trusts(folder)
}

// servers are the external MCP servers of a session in a folder: those that the owner lists and, where the owner trusts
// the project, those of the project under other names. The program itself looks for none, so what an agent writes into
// the project's file later is not loaded before the next session.
func (r *Runtime) servers(folder string) map[string]json.RawMessage {
	all := maps.Clone(r.config.MCP)
	if !r.trusts(folder) {
		return all
	}
	for name, server := range r.projectServers(folder) {
		if _, taken := all[name]; taken || !serverName(name) {
			r.config.Logger.Warn("MCP server of the project left out: its name is taken or has signs that it must not", "runtime", r.config.Name)
			continue
		}
		if all == nil {
			all = map[string]json.RawMessage{}
		}
		all[name] = server
	}
	return all
}

// projectServers reads the project's file. One that is no plain file, too long or not understood counts as none.
func (r *Runtime) projectServers(folder string) map[string]json.RawMessage {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil
	}
	defer func() { _ = root.Close() }()
	if info, err := root.Lstat(projectMCP); err != nil || !info.Mode().IsRegular() {
		return nil
	}
	f, err := root.Open(projectMCP)
	if err != nil {
		return nil
	}
	defer func() { _ = f.Close() }()
	var file struct {
		Servers map[string]json.RawMessage `json:"mcpServers"`
	}
	b, err := io.ReadAll(io.LimitReader(f, mcpLimit+1))
	if err != nil || len(b) > mcpLimit || json.Unmarshal(b, &file) != nil {
		r.config.Logger.Warn("the project's MCP servers cannot be read", "runtime", r.config.Name, "file", projectMCP)
		return nil
	}
	return file.Servers
}

// plainName is what the program does not change in a server's name.
var plainName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`)

// serverName reports whether a server that the owner did not name can have a name. A tool is called
// mcp__SERVER__TOOL: a name with two lines in it, or one at its end, could be taken for a shorter one, about whose tools
// the owner has said something. The name of our own is taken.
func serverName(name string) bool {
	return name != runner.ToolHost && plainName.MatchString(name) && !strings.Contains(name, "__") && !strings.HasSuffix(name, "_")
}

// serversFile writes the servers into a folder of the process, for the program to read as it starts: on a command line
// everybody on the machine would see what they are given. No servers need no file.
func serversFile(folder string, servers map[string]json.RawMessage) (string, error) {
	if len(servers) == 0 {
		return "", nil
	}
	b, err := json.Marshal(map[string]any{"mcpServers": servers})
	if err != nil {
		return "", fmt.Errorf("claude: MCP servers: %w", err)
	}
	file := filepath.Join(folder, "mcp.json")
	if err := os.WriteFile(file, b, 0o600); err != nil {
		return "", fmt.Errorf("claude: MCP servers: %w", err)
	}
	return file, nil
}
