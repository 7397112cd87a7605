package app

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"drawbridge/internal/config"
)

// projectFiles are what a project configures for its agents, and what is used of it only where the owner trusts it.
func projectFiles() []string { return []string{".claude/settings.json", ".mcp.json"} }

// sayTrust prints what comes of what a project configures for its agents.
func sayTrust(say func(string, ...any), c config.Config, p config.Project) {
	var there []string
	for _, name := range projectFiles() {
		if _, err := os.Lstat(filepath.Join(p.Path, name)); err == nil {
			there = append(there, name)
		}
	}
	found := "there are none today"
	if len(there) > 0 {
		found = "there is " + strings.Join(there, " and ")
	}
	claude := slices.ContainsFunc(c.Runtimes, func(r config.Runtime) bool { return r.Kind == config.KindClaude })
	switch {
	case p.Trusted && !trusts(c)(p.Path):
		say("  trusted: no: another project has this folder and is not trusted. Write trusted = true there as well, or here no longer\n")
	case p.Trusted && !claude:
		say("  trusted: yes, which only claude makes use of, and no such runtime is configured\n")
	case p.Trusted:
		say("  trusted: yes: claude uses its own settings and MCP servers (%s), without its hooks and without Claude Code's own reviewer\n", found)
	default:
		say("  trusted: no: its own settings and MCP servers are not used (%s). If you would run whatever stands there, write trusted = true under its [[project]]\n", found)
	}
}

// sayServers prints the MCP servers, who gets them, and what keeps one from being used.
func sayServers(ctx context.Context, say func(string, ...any), c config.Config) (unwell bool) {
	for _, s := range c.Servers {
		say("mcp %s: %s\n", s.Name, strings.Join(slices.Concat([]string{s.Command + s.URL}, s.Args), " "))
		var who []string
		for _, r := range c.Runtimes {
			if slices.ContainsFunc(c.ServersOf(r), func(o config.Server) bool { return o.Name == s.Name }) {
				who = append(who, r.Name)
			}
		}
		if len(who) == 0 {
			say("  used: no: only codex and claude take MCP servers. Add one of them as a [[runtime]], or take this [[mcp]] out\n")
			unwell = true
			continue
		}
		if problem := serverProblem(ctx, s); problem != "" {
			say("  used: no: %s\n", problem)
			unwell = true
			continue
		}
		say("  used: yes, by %s\n", strings.Join(who, ", "))
		said := false
		for _, tool := range sortedTools(c, s.Name) {
			said = true
			say("  %s: %s\n", tool, c.Tools[tool])
		}
		if !said {
			say("  tools: none is known, so each call is asked. Say under [tools] what they do, such as \"%s/NAME\" = \"payment\"\n", s.Name)
		}
	}
	if len(c.Servers) == 0 && slices.ContainsFunc(c.Runtimes, func(r config.Runtime) bool { return r.Kind != config.KindNative }) {
		say("mcp: no: no MCP server is configured. List one as [[mcp]] if agents are to have its tools\n")
	}
	return unwell
}

func sortedTools(c config.Config, server string) []string {
	var out []string
	for tool := range c.Tools {
		if strings.HasPrefix(tool, server+"/") {
			out = append(out, tool)
		}
	}
	slices.Sort(out)
	return out
}

// serverTime is how long an address may take to answer.
const serverTime = 5 * time.Second

// serverProblem says why a server cannot be used and what to do, or nothing. A program is looked for and not started; an
// address is asked without what the server is given.
func serverProblem(ctx context.Context, s config.Server) string {
	if s.URL == "" {
		if _, err := exec.LookPath(s.Command); err != nil {
			return fmt.Sprintf("%s is no program that is found here. Install it, or write its absolute path as command", s.Command)
		}
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, serverTime)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL, nil)
	if err != nil {
		return "its url cannot be used. Write another one"
	}
	answer, err := (&http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}).Do(request)
	if err != nil {
		return "nothing answers at its url. Start it, or write another url"
	}
	_ = answer.Body.Close() // whatever it says, it is there
	return ""
}
