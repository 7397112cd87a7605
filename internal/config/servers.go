package config

import (
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"drawbridge/policy"
)

// Server is an MCP server, somebody else's tools for agents. Each call of them goes through the gate.
type Server struct {
	// Name is unique, 1–32 of a–z, 0–9 and the hyphen; its tools are NAME/TOOL.
	Name string
	// Command is the server's program, a name to be found in PATH or an absolute path, and Args are its arguments. Empty if
	// there is a URL.
	Command string
	Args    []string
	// Env is given to the program.
	Env map[string]Secret
	// URL is the address of a server that speaks streamable HTTP, and Headers are sent with every request.
	URL     string
	Headers map[string]Secret
	// Runtimes are the names of the runtimes that get it; all that take MCP servers if empty.
	Runtimes []string
}

// ServersOf returns the MCP servers that a runtime gets.
func (c Config) ServersOf(r Runtime) []Server {
	if !takesServers(r.Kind) {
		return nil
	}
	var out []Server
	for _, s := range c.Servers {
		if len(s.Runtimes) == 0 || slices.Contains(s.Runtimes, r.Name) {
			out = append(out, s)
		}
	}
	return out
}

// takesServers reports whether runtimes of a kind can have MCP servers.
func takesServers(kind string) bool { return kind == KindCodex || kind == KindClaude }

// The names of a server and of a tool must not hold what the runtimes put between the two.
var (
	serverName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$`)
	// toolKey is how [tools] names a tool.
	toolKey    = regexp.MustCompile(`^(?:([a-zA-Z0-9_-]{1,64}?)/|mcp__([a-zA-Z0-9_-]{1,64}?)__)(\*|[a-zA-Z0-9][a-zA-Z0-9_.-]{0,127})$`)
	variable   = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`)
	headerName = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}$")
)

// ownServer is the name under which agents know the tools of Drawbridge itself.
const ownServer = "drawbridge"

const (
	serverAllowed  = "1 to 32 of a-z, 0-9 and -, not starting or ending with -"
	commandAllowed = "a name that is found in PATH, or an absolute path"
)

// servers takes the MCP servers over, and reports whether the file holds a secret of theirs.
func (l *loader) servers(c *Config) (secretInFile bool) {
	for _, e := range l.entries("mcp") {
		var s Server
		s.Name = e.text("name", "", serverAllowed, serverName.MatchString)
		s.URL = e.text("url", "", webAllowed, func(text string) bool {
			_, ok := webURL(text)
			return text == "" || ok
		})
		s.Command = e.text("command", "", commandAllowed, func(text string) bool {
			return text == "" || printableText(text) && (filepath.IsAbs(text) || !strings.ContainsRune(text, '/'))
		})
		s.Args = e.texts("args", "texts", printableText)
		s.Runtimes = e.texts("runtimes", "names of runtimes", runtimeName.MatchString)
		var env, headers map[string]string
		s.Env, env = e.secrets("env", "names of environment variables, each with a text", variable, func(text string) bool { return !strings.ContainsRune(text, 0) })
		s.Headers, headers = e.secrets("headers", "names of HTTP headers, each with a text on one line", headerName, headerValue)
		switch {
		case s.Command == "" && s.URL == "":
			e.wrong("command", "", "not set; "+commandAllowed+", or url in its place")
		case s.Command != "" && s.URL != "":
			e.wrong("url", "", "either command or url")
		case s.URL != "" && (len(s.Args) > 0 || len(s.Env) > 0):
			e.wrong("url", "", "not together with args and env, which are for a command")
		case s.Command != "" && len(s.Headers) > 0:
			e.wrong("headers", "", "only together with url")
		}
		e.done()
		if s.Name == ownServer {
			l.mistake(mistakeError{Key: "mcp", Source: l.file, Value: s.Name, Allowed: "any other name: this one is Drawbridge's own"})
			continue
		}
		if slices.ContainsFunc(c.Servers, func(o Server) bool { return o.Name == s.Name }) {
			l.mistake(mistakeError{Key: "mcp", Source: l.file, Value: s.Name, Allowed: "a name that stands once"})
			continue
		}
		for _, from := range []map[string]string{env, headers} {
			secretInFile = secretInFile || slices.Contains(slices.Collect(maps.Values(from)), l.file)
		}
		c.Servers = append(c.Servers, s)
		l.showServer(c, s, env, headers)
	}
	return secretInFile
}

func (l *loader) showServer(c *Config, s Server, env, headers map[string]string) {
	label := "mcp " + s.Name + " "
	show := func(key, text, source string) {
		if text != "" {
			c.values = append(c.values, Value{Key: label + key, Text: text, Source: source})
		}
	}
	show("command", s.Command, l.file)
	show("args", strings.Join(s.Args, " "), l.file)
	show("url", s.URL, l.file)
	for _, name := range slices.Sorted(maps.Keys(s.Env)) {
		show("env "+name, s.Env[name].String(), env[name])
	}
	for _, name := range slices.Sorted(maps.Keys(s.Headers)) {
		show("headers "+name, s.Headers[name].String(), headers[name])
	}
	show("runtimes", strings.Join(s.Runtimes, ", "), l.file)
}

// tools takes the owner's word on tools of MCP servers over. A tool of ours or of an agent itself has no place there:
// what it does is known, and nobody's word makes a question to a person, say, a read.
func (l *loader) tools(c *Config) {
	raw, ok := l.table["tools"]
	if !ok {
		return
	}
	table, ok := raw.(map[string]any)
	if !ok {
		l.mistake(mistakeError{Key: "tools", Source: l.file, Allowed: "one table, under the heading [tools]"})
		return
	}
	written := map[string]string{} // how the file names a tool
	for _, name := range slices.Sorted(maps.Keys(table)) {
		tool, ok := parseTool(name)
		if !ok {
			l.mistake(mistakeError{Key: "tools", Source: l.file, Value: name, Allowed: "a tool of an MCP server: \"server/tool\", \"server/*\" or \"mcp__server__tool\""})
			continue
		}
		if other := written[tool]; other != "" {
			l.mistake(mistakeError{Key: "tools", Source: l.file, Value: name, Allowed: "a tool that stands once; it is also there as " + other})
			continue
		}
		written[tool] = name
		word, _ := table[name].(string)
		category := policy.Category(word)
		if !slices.Contains(policy.Categories(), category) {
			l.mistake(mistakeError{Key: "tools, " + name, Source: l.file, Value: word, Allowed: categoriesAllowed()})
			continue
		}
		if c.Tools == nil {
			c.Tools = map[string]policy.Category{}
		}
		c.Tools[tool] = category
		c.values = append(c.values, Value{Key: "tool " + tool, Text: word, Source: l.file})
	}
}

// parseTool brings the ways to name a tool into one: "server/tool".
func parseTool(name string) (string, bool) {
	m := toolKey.FindStringSubmatch(name)
	if m == nil {
		return "", false
	}
	server := m[1] + m[2]
	// With these the server and the tool could be parted in another place than the owner has.
	if strings.Contains(server, "__") || strings.HasPrefix(server, "_") || strings.HasSuffix(server, "_") {
		return "", false
	}
	return server + "/" + m[3], true
}

func categoriesAllowed() string {
	var names []string
	for _, c := range policy.Categories() {
		names = append(names, string(c))
	}
	return "one of " + strings.Join(names, ", ")
}

// serverPointers checks the names of runtimes that MCP servers point to, and looks for what is probably not meant.
func (l *loader) serverPointers(c *Config) {
	trusted := slices.ContainsFunc(c.Projects, func(p Project) bool { return p.Trusted })
	for _, s := range c.Servers {
		for _, name := range s.Runtimes {
			i := slices.IndexFunc(c.Runtimes, func(r Runtime) bool { return r.Name == name })
			switch {
			case i < 0:
				l.mistake(mistakeError{Key: "mcp " + s.Name + ", runtimes", Source: l.file, Value: name, Allowed: "runtimes that are configured"})
			case !takesServers(c.Runtimes[i].Kind):
				l.mistake(mistakeError{Key: "mcp " + s.Name + ", runtimes", Source: l.file, Value: name, Allowed: "runtimes of codex and claude; no other takes MCP servers"})
			}
		}
		for _, p := range c.Projects {
			if slices.ContainsFunc(append([]string{s.Command}, s.Args...), func(path string) bool { return filepath.IsAbs(path) && inside(path, p.Path) }) {
				l.warnings = append(l.warnings, "mcp "+s.Name+" is a program in the folder of project "+p.Name+", whose agent can change it: it runs without being asked for")
			}
		}
	}
	for _, tool := range slices.Sorted(maps.Keys(c.Tools)) {
		server, _, _ := strings.Cut(tool, "/")
		if !trusted && !slices.ContainsFunc(c.Servers, func(s Server) bool { return s.Name == server }) {
			l.warnings = append(l.warnings, "tools names "+tool+", and no MCP server "+server+" is configured")
		}
	}
}

// texts returns a list of texts.
func (e *entry) texts(key, allowed string, fits func(string) bool) []string {
	e.seen[key] = true
	raw, ok := e.table[key]
	if !ok {
		return nil
	}
	members, ok := raw.([]any)
	var out []string
	for _, m := range members {
		s, isText := m.(string)
		ok = ok && isText && fits(s)
		out = append(out, s)
	}
	if !ok {
		e.wrong(key, "", "a list of "+allowed+", such as [\"a\", \"b\"]")
		return nil
	}
	return out
}

// secrets returns the texts of the table at key, and those that key_from takes from variables of our environment, with
// where each one stands.
func (e *entry) secrets(key, allowed string, name *regexp.Regexp, fits func(string) bool) (out map[string]Secret, from map[string]string) {
	out, from = map[string]Secret{}, map[string]string{}
	e.inner(key, allowed, func(k, text string) bool {
		out[k], from[k] = NewSecret(text), e.l.file
		return name.MatchString(k) && fits(text)
	})
	e.inner(key+"_from", "names, each with the name of an environment variable that is set", func(k, of string) bool {
		e.l.named[of] = true
		text := e.l.env[of]
		if _, twice := out[k]; twice || text == "" || !name.MatchString(k) || !fits(text) {
			return false
		}
		out[k], from[k] = NewSecret(text), of
		return true
	})
	return out, from
}

// inner goes through a table of texts. What stands there is not shown: it may be a secret in the wrong place.
func (e *entry) inner(key, allowed string, take func(name, text string) bool) {
	e.seen[key] = true
	raw, ok := e.table[key]
	if !ok {
		return
	}
	table, ok := raw.(map[string]any)
	if !ok {
		e.wrong(key, "", "a table of "+allowed)
		return
	}
	for _, name := range slices.Sorted(maps.Keys(table)) {
		if text, isText := table[name].(string); !isText || !take(name, text) {
			e.wrong(key+" "+strconv.Quote(cut(name)), "", "a table of "+allowed)
		}
	}
}

// printableText reports whether a text can be an argument that is shown on one line.
func printableText(s string) bool { return !strings.ContainsAny(s, "\x00\r\n") }

// headerValue reports whether a text can stand in a header.
func headerValue(s string) bool {
	return strings.TrimSpace(s) == s && !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f })
}
