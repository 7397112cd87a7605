package app

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"drawbridge/internal/chatapi"
	"drawbridge/internal/config"
	"drawbridge/runner"
	"drawbridge/runner/claude"
	"drawbridge/runner/codex"
	"drawbridge/runner/native"
)

// runtimes are those of the configuration, and those that were added.
func runtimes(o Options) ([]runner.Runtime, error) {
	out := make([]runner.Runtime, 0, len(o.Config.Runtimes)+len(o.Runtimes))
	for _, r := range o.Config.Runtimes {
		made, err := newRuntime(o, r)
		if err != nil {
			return nil, fmt.Errorf("app: runtime %s: %w", r.Name, err)
		}
		out = append(out, made)
	}
	return append(out, o.Runtimes...), nil
}

func newRuntime(o Options, r config.Runtime) (runner.Runtime, error) {
	// "native:glm" keeps what it has in native-glm.
	data := filepath.Join(o.Config.DataDir, "runtimes", strings.ReplaceAll(r.Name, ":", "-"))
	log := o.Logger.With("runtime", r.Name)
	switch r.Kind {
	case config.KindCodex:
		return newCodex(o.Config, o.AgentEnv, r, codex.Config{
			Name: r.Name, Program: r.Program, Data: data, Login: existing(r.Login), Model: r.Model, Reviewer: r.Reviewer, Logger: log,
			Servers: codexServers(o.Config.ServersOf(r)), Tools: o.Config.Tools,
		})
	case config.KindClaude:
		servers, err := claudeServers(o.Config.ServersOf(r))
		if err != nil {
			return nil, err
		}
		return claude.New(claude.Config{
			Name: r.Name, Program: r.Program, Data: data, Login: existing(r.Login), Key: chatapi.Key(r.Key.Reveal()), BaseURL: r.BaseURL,
			Model: r.Model, Reviewer: r.Reviewer, Set: o.AgentEnv, MCP: servers, Tools: o.Config.Tools, Trusts: trusts(o.Config), Logger: log,
		})
	default:
		return native.New(native.Config{
			Name: r.Name, BaseURL: r.BaseURL, Key: chatapi.Key(r.Key.Reveal()), Model: r.Model, Window: int64(r.ContextWindow), Data: data,
			Env: o.AgentEnv, Logger: log,
		})
	}
}

// openAI is where Codex's models are unless another endpoint is configured.
const openAI = "https://api.openai.com/v1"

// codexKey is the variable that Codex reads a key from.
const codexKey = "OPENAI_API_KEY"

// newCodex adds the key and the endpoint if they were configured, and what agents must not see.
func newCodex(c config.Config, env map[string]string, r config.Runtime, x codex.Config) (runner.Runtime, error) {
	x.Environment = maps.Clone(env)
	if x.Environment == nil {
		x.Environment = map[string]string{}
	}
	if r.Key.Set() {
		x.Environment[codexKey] = r.Key.Reveal()
	}
	switch {
	case r.Key.Set(): // with a key in the environment alone Codex counts as logged out
		x.Provider = &codex.Provider{Name: r.Name, URL: cmp.Or(r.BaseURL, openAI), Key: codexKey}
	case r.BaseURL != "":
		x.Provider = &codex.Provider{Name: r.Name, URL: r.BaseURL}
	}
	x.Hidden, x.Readable = hidden(c), toolchains()
	return codex.New(x)
}

// hidden is what an agent in an outer sandbox must not see: our own data, apart from its own folder, and where people keep
// keys.
func hidden(c config.Config) []string {
	out := append([]string{filepath.Join(c.DataDir, "drawbridge.db")}, hostSockets(c.DataDir)...)
	if home, err := os.UserHomeDir(); err == nil {
		for _, name := range []string{".ssh", ".gnupg", ".aws", ".config/gcloud", ".azure", ".kube", ".docker", ".netrc", ".npmrc", ".pypirc"} {
			out = append(out, filepath.Join(home, name)) // also what is made only later
		}
	}
	return out
}

// toolchains are the folders below a person's home that hold programs: Codex's sandbox shows the project and the system's
// folders only.
func toolchains() []string {
	home, err := os.UserHomeDir()
	if err != nil {
		return nil
	}
	var out []string
	for _, name := range []string{"go", "sdk", ".cargo", ".rustup", ".nvm", ".local/bin", ".pyenv", ".bun", ".deno"} {
		if path := existing(filepath.Join(home, name)); path != "" {
			out = append(out, path)
		}
	}
	return out
}

// existing is path, or nothing where nothing is.
func existing(path string) string {
	if path == "" {
		return ""
	}
	if _, err := os.Stat(path); err != nil {
		return ""
	}
	return path
}
