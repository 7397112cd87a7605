package app

import (
	"encoding/json"
	"fmt"
	"path/filepath"

	"drawbridge/internal/config"
	"drawbridge/runner/codex"
)

// claudeServers are MCP servers as Claude Code's own configuration has them.
func claudeServers(list []config.Server) (map[string]json.RawMessage, error) {
	out := map[string]json.RawMessage{}
	for _, s := range list {
		one := map[string]any{"command": s.Command, "args": append([]string{}, s.Args...), "env": reveal(s.Env)}
		if s.URL != "" {
			one = map[string]any{"type": "http", "url": s.URL, "headers": reveal(s.Headers)}
		}
		b, err := json.Marshal(one)
		if err != nil {
			return nil, fmt.Errorf("app: MCP server %s: %w", s.Name, err)
		}
		out[s.Name] = b
	}
	return out, nil
}

func codexServers(list []config.Server) map[string]codex.Server {
	out := map[string]codex.Server{}
	for _, s := range list {
		out[s.Name] = codex.Server{Command: s.Command, Arguments: s.Args, Environment: reveal(s.Env), URL: s.URL, Headers: reveal(s.Headers)}
	}
	return out
}

func reveal(secrets map[string]config.Secret) map[string]string {
	out := map[string]string{}
	for name, s := range secrets {
		out[name] = s.Reveal()
	}
	return out
}

// trusts reports whether a folder is that of a project that the owner trusts, by whichever way one gets there.
func trusts(c config.Config) func(folder string) bool {
	trusted := map[string]bool{}
	for _, p := range c.Projects {
		before, twice := trusted[unlinked(p.Path)]
		trusted[unlinked(p.Path)] = p.Trusted && (before || !twice) // where two projects share a folder, both have to say so
	}
	return func(folder string) bool { return trusted[unlinked(folder)] }
}

// unlinked is a path without links, as far as that can be told.
func unlinked(path string) string {
	if found, err := filepath.EvalSymlinks(path); err == nil {
		return found
	}
	return filepath.Clean(path)
}
