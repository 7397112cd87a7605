package config

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// The variables that stand for a table of the file.
const (
	// projectsEnv is a list of name=path, in place of all the file's projects.
	projectsEnv = "DRAWBRIDGE_PROJECTS"
	// The model variables make one runtime named native, in place of the file's of that name.
	modelURLEnv     = "DRAWBRIDGE_MODEL_URL"
	modelEnv        = "DRAWBRIDGE_MODEL"
	modelKeyEnv     = "DRAWBRIDGE_MODEL_KEY"
	modelContextEnv = "DRAWBRIDGE_MODEL_CONTEXT"
	// agentsEnv lists agents that are installed, each to be a runtime of that name, in place of the file's of that name.
	agentsEnv = "DRAWBRIDGE_AGENTS"
)

// The ends of what a context window can be, and what it is where nobody said: a window that is too small costs a
// compaction, one that is too large a failed turn.
const (
	minContext     = 4096
	maxContext     = 10_000_000
	defaultContext = 128_000
)

// entry is one [[project]] or [[runtime]] of the file, or [reviewer].
type entry struct {
	l     *loader
	label string
	table map[string]any
	seen  map[string]bool
	// source says where a key stands; nil: all of them in the file.
	source func(key string) string
}

// entries returns the tables of an array of tables.
func (l *loader) entries(name string) []entry {
	raw, ok := l.table[name]
	if !ok {
		return nil
	}
	tables, ok := raw.([]map[string]any)
	if !ok {
		l.mistake(mistakeError{Key: name, Source: l.file, Allowed: "a table of its own for each, under the heading [[" + name + "]]"})
	}
	out := make([]entry, 0, len(tables))
	for i, t := range tables {
		e := entry{l: l, label: name + " " + strconv.Itoa(i+1), table: t, seen: map[string]bool{}}
		if s, ok := t["name"].(string); ok && (projectName.MatchString(s) || runtimeName.MatchString(s)) {
			e.label = name + " " + s
		}
		out = append(out, e)
	}
	return out
}

func (e *entry) wrong(key, value, allowed string) {
	source := e.l.file
	if e.source != nil {
		source = e.source(key)
	}
	e.l.mistake(mistakeError{Key: e.label + ", " + key, Source: source, Value: value, Allowed: allowed})
}

// text returns the text at key, which fits says to be allowed or not; without the key, def.
func (e *entry) text(key, def, allowed string, fits func(string) bool) string {
	e.seen[key] = true
	raw, ok := e.table[key]
	if !ok {
		if !fits(def) {
			e.wrong(key, "", "not set; "+allowed)
		}
		return def
	}
	s, isText := raw.(string)
	if !isText || !fits(s) {
		shown := "a value that is no text"
		switch {
		case isText && (key == "key" || key == "secret" || strings.ContainsAny(s, "@?")):
			shown = Mask
		case isText:
			shown = s
		}
		e.wrong(key, shown, allowed)
	}
	return s
}

func (e *entry) flag(key string) bool {
	e.seen[key] = true
	raw, ok := e.table[key]
	b, isBool := raw.(bool)
	if ok && !isBool {
		e.wrong(key, "", "true or false")
	}
	return b
}

func (e *entry) number(key string, def, least, most int64) int {
	e.seen[key] = true
	raw, ok := e.table[key]
	if !ok {
		return int(def)
	}
	n, isInt := raw.(int64)
	if !isInt || n < least || n > most {
		e.wrong(key, "", fmt.Sprintf("a whole number from %d to %d", least, most))
	}
	return int(n)
}

// done refuses the keys that nobody asked for.
func (e *entry) done() {
	for _, key := range slices.Sorted(maps.Keys(e.table)) {
		if !e.seen[key] {
			e.wrong(key, "", "unknown key; there are "+strings.Join(slices.Sorted(maps.Keys(e.seen)), ", "))
		}
	}
}

const (
	projectAllowed = "1 to 32 letters, digits, dots, hyphens and underscores, not starting with a dot"
	pathAllowed    = "a folder: an absolute path, or one that starts with ~/"
	keyAllowed     = "the endpoint's key: printable, without blanks"
	runtimeAllowed = "native, codex or claude, or one of these with a colon and 1 to 32 of a-z, 0-9, dot, hyphen and underscore"
)

// projects takes the projects over, from the environment or else from the file.
func (l *loader) projects(c *Config) {
	if list := l.env[projectsEnv]; list != "" {
		for _, item := range split(list) {
			name, text, _ := strings.Cut(item, "=")
			path, ok := l.path(text)
			if !ok || !projectName.MatchString(name) {
				l.mistake(mistakeError{Key: projectsEnv, Source: projectsEnv, Allowed: "a list of name=path, separated by commas; the name has " + projectAllowed + ", the path is " + pathAllowed + "; not " + strconv.Quote(cut(item))})
				continue
			}
			l.project(c, Project{Name: name, Path: path}, projectsEnv)
		}
		delete(l.table, "project")
		return
	}
	for _, e := range l.entries("project") {
		var p Project
		p.Name = e.text("name", "", projectAllowed, projectName.MatchString)
		e.text("path", "", pathAllowed, func(s string) (ok bool) {
			p.Path, ok = l.path(s)
			return ok
		})
		p.Runtime = e.text("runtime", "", "the name of a runtime that is configured", func(s string) bool { return s == "" || runtimeName.MatchString(s) })
		p.PublishIsOrdinary = e.flag("publish_is_ordinary")
		p.Trusted = e.flag("trusted")
		e.done()
		l.project(c, p, l.file)
	}
}

func (l *loader) project(c *Config, p Project, source string) {
	if slices.ContainsFunc(c.Projects, func(o Project) bool { return o.Name == p.Name }) {
		l.mistake(mistakeError{Key: "project", Source: source, Value: p.Name, Allowed: "a name that stands once"})
		return
	}
	c.Projects = append(c.Projects, p)
	label := "project " + p.Name + " "
	c.values = append(c.values, Value{Key: label + "path", Text: p.Path, Source: source})
	if p.Runtime != "" {
		c.values = append(c.values, Value{Key: label + "runtime", Text: p.Runtime, Source: source})
	}
	if p.PublishIsOrdinary {
		c.values = append(c.values, Value{Key: label + "publish_is_ordinary", Text: "true", Source: source})
	}
	if p.Trusted {
		c.values = append(c.values, Value{Key: label + "trusted", Text: "true", Source: source})
	}
}

// runtimes takes the runtimes over, checks the names that point to them, and reports whether the file holds a key.
func (l *loader) runtimes(c *Config) (keyInFile bool) {
	fromEnv, ok := l.environmentRuntime()
	if ok {
		from := runtimeSources{baseURL: modelURLEnv, model: modelEnv, window: fromDefault, key: modelKeyEnv}
		if l.env[modelContextEnv] != "" {
			from.window = modelContextEnv
		}
		l.runtime(c, fromEnv, from)
	}
	agents := l.environmentAgents()
	for _, r := range agents {
		l.agent(c, r, agentsEnv)
	}
	for _, e := range l.entries("runtime") {
		var r Runtime
		r.Name = e.text("name", KindNative, runtimeAllowed, func(s string) bool { return runtimeName.MatchString(s) && slices.Contains(kinds(), kindOf(s)) })
		r.Kind = e.text("kind", kindOf(r.Name), "the kind that the name begins with", func(s string) bool { return s == kindOf(r.Name) })
		if r.Kind == KindCodex || r.Kind == KindClaude {
			e.agent(&r)
			var source string
			r.Key, source = e.key()
			keyInFile = keyInFile || r.Key.Set() && source == l.file
			e.done()
			if !slices.ContainsFunc(agents, func(a Runtime) bool { return a.Name == r.Name }) {
				l.agent(c, r, l.file)
			}
			continue
		}
		r.BaseURL = strings.TrimRight(e.text("base_url", "", webAllowed+", up to and without /chat/completions", func(s string) bool {
			_, ok := webURL(s)
			return ok
		}), "/")
		r.Model = e.text("model", "", "what the endpoint calls the model", modelName)
		r.ContextWindow = e.number("context_window", defaultContext, minContext, maxContext)
		from := runtimeSources{baseURL: l.file, model: l.file, window: l.file}
		if e.table["context_window"] == nil {
			from.window = fromDefault
		}
		r.Key, from.key = e.key()
		keyInFile = keyInFile || r.Key.Set() && from.key == l.file
		e.done()
		if ok && r.Name == fromEnv.Name {
			continue
		}
		l.runtime(c, r, from)
	}
	if len(l.mistakes) > 0 {
		return keyInFile
	}
	l.pointers(c)
	return keyInFile
}

// kindOf is the kind that a runtime's name begins with.
func kindOf(name string) string {
	kind, _, _ := strings.Cut(name, ":")
	return kind
}

// agent reads what only agents that are programs have.
func (e *entry) agent(r *Runtime) {
	r.Program = e.text("program", r.Kind, "a name that is found in PATH, or an absolute path", func(s string) bool { return s != "" && !strings.ContainsAny(s, "\x00\n") })
	e.text("login", "", pathAllowed, func(s string) (ok bool) {
		if s == "" {
			return true
		}
		r.Login, ok = e.l.path(s)
		return ok
	})
	if r.Login == "" && e.table["login"] == nil {
		r.Login = e.l.usualLogin(r.Kind)
	}
	r.Reviewer = e.flag("reviewer")
	r.BaseURL = strings.TrimRight(e.text("base_url", "", webAllowed, func(s string) bool {
		_, ok := webURL(s)
		return s == "" || ok
	}), "/")
	r.Model = e.text("model", "", "a model's name", func(s string) bool { return s == "" || modelName(s) })
}

// usualLogin is where an agent keeps the login of the person who runs it; empty without a home.
func (l *loader) usualLogin(kind string) string {
	home := l.env["HOME"]
	switch {
	case home == "":
		return ""
	case kind == KindCodex:
		return filepath.Join(home, ".codex", "auth.json")
	}
	return filepath.Join(home, ".claude")
}

// environmentAgents are the runtimes that the variable names.
func (l *loader) environmentAgents() []Runtime {
	var out []Runtime
	if l.env[agentsEnv] == "" {
		return nil
	}
	for _, name := range split(l.env[agentsEnv]) {
		if kind := kindOf(name); !runtimeName.MatchString(name) || kind != KindCodex && kind != KindClaude {
			l.mistake(mistakeError{Key: agentsEnv, Source: agentsEnv, Value: cut(name), Allowed: "codex, claude, or both, separated by a comma"})
			continue
		}
		out = append(out, Runtime{Name: name, Kind: kindOf(name), Program: kindOf(name), Login: l.usualLogin(kindOf(name))})
	}
	return out
}

// agent takes a runtime over that is a program.
func (l *loader) agent(c *Config, r Runtime, source string) {
	if slices.ContainsFunc(c.Runtimes, func(o Runtime) bool { return o.Name == r.Name }) {
		l.mistake(mistakeError{Key: "runtime", Source: source, Value: r.Name, Allowed: "a name that stands once"})
		return
	}
	c.Runtimes = append(c.Runtimes, r)
	label := "runtime " + r.Name + " "
	for _, v := range []Value{
		{Key: "program", Text: r.Program},
		{Key: "login", Text: r.Login},
		{Key: "base_url", Text: r.BaseURL},
		{Key: "model", Text: r.Model},
		{Key: "key", Text: r.Key.String()},
	} {
		if v.Text != "" && (v.Key != "key" || r.Key.Set()) {
			c.values = append(c.values, Value{Key: label + v.Key, Text: v.Text, Source: source})
		}
	}
	if r.Reviewer {
		c.values = append(c.values, Value{Key: label + "reviewer", Text: "true", Source: source})
	}
}

// key reads the two ways to give a runtime's key, and says which one it was.
func (e *entry) key() (key Secret, source string) { return e.hidden("key", keyAllowed, printable) }

// hidden reads the two ways to give a secret, as a text or by the name of a variable that holds it, and says which one it was.
func (e *entry) hidden(key, allowed string, fits func(string) bool) (secret Secret, source string) {
	text := e.text(key, "", allowed, func(s string) bool { return s == "" || fits(s) })
	byName := key + "_env"
	name := e.text(byName, "", "the name of an environment variable that holds the "+key, func(s string) bool { return !strings.ContainsAny(s, "= ") })
	if name == "" {
		return NewSecret(text), e.l.file
	}
	e.l.named[name] = true
	switch value := e.l.env[name]; {
	case text != "":
		e.wrong(byName, name, "either "+key+" or "+byName)
	case value == "":
		e.wrong(byName, name, "the name of an environment variable that is set")
	case !fits(value):
		e.wrong(byName, name, "the name of an environment variable that holds "+allowed)
	default:
		return NewSecret(value), name
	}
	return Secret{}, e.l.file
}

// environmentRuntime is the runtime that the model variables describe, if any of them is set.
func (l *loader) environmentRuntime() (Runtime, bool) {
	base, model, key, context := l.env[modelURLEnv], l.env[modelEnv], l.env[modelKeyEnv], l.env[modelContextEnv]
	if base == "" && model == "" && key == "" && context == "" {
		return Runtime{}, false
	}
	r := Runtime{Name: KindNative, Kind: KindNative, Model: model, Key: NewSecret(key), ContextWindow: defaultContext}
	var ok bool
	if r.BaseURL, ok = webURL(base); !ok {
		l.mistake(mistakeError{Key: modelURLEnv, Source: modelURLEnv, Allowed: "not set or not allowed; " + webAllowed + ", up to and without /chat/completions"})
	}
	if !modelName(model) {
		l.mistake(mistakeError{Key: modelEnv, Source: modelEnv, Allowed: "not set or not allowed; what the endpoint calls the model"})
	}
	if key != "" && !printable(key) {
		l.mistake(mistakeError{Key: modelKeyEnv, Source: modelKeyEnv, Allowed: keyAllowed})
	}
	if context != "" {
		n, err := strconv.Atoi(context)
		if err != nil || n < minContext || n > maxContext {
			l.mistake(mistakeError{Key: modelContextEnv, Source: modelContextEnv, Allowed: fmt.Sprintf("a whole number from %d to %d, not %q", minContext, maxContext, cut(context))})
		}
		r.ContextWindow = n
	}
	return r, true
}

// runtimeSources is where the parts of a runtime come from.
type runtimeSources struct{ baseURL, model, window, key string }

func (l *loader) runtime(c *Config, r Runtime, from runtimeSources) {
	if slices.ContainsFunc(c.Runtimes, func(o Runtime) bool { return o.Name == r.Name }) {
		l.mistake(mistakeError{Key: "runtime", Source: from.model, Value: r.Name, Allowed: "a name that stands once"})
		return
	}
	c.Runtimes = append(c.Runtimes, r)
	label := "runtime " + r.Name + " "
	c.values = append(c.values,
		Value{Key: label + "base_url", Text: r.BaseURL, Source: from.baseURL},
		Value{Key: label + "model", Text: r.Model, Source: from.model},
		Value{Key: label + "context_window", Text: strconv.Itoa(r.ContextWindow), Source: from.window},
	)
	if r.Key.Set() {
		c.values = append(c.values, Value{Key: label + "key", Text: r.Key.String(), Source: from.key})
	}
}

// pointers checks the names of runtimes and fills in the default one: the first.
func (l *loader) pointers(c *Config) {
	exists := func(name string) bool {
		return slices.ContainsFunc(c.Runtimes, func(r Runtime) bool { return r.Name == name })
	}
	names := make([]string, 0, len(c.Runtimes))
	for _, r := range c.Runtimes {
		names = append(names, r.Name)
	}
	allowed := "a runtime that is configured: " + strings.Join(names, ", ")
	if len(names) == 0 {
		allowed = "not to be set without a [[runtime]] of that name"
	}
	switch {
	case c.DefaultRuntime == "" && len(names) > 0:
		c.DefaultRuntime = names[0]
		if i := slices.IndexFunc(c.values, func(v Value) bool { return v.Key == "default_runtime" }); i >= 0 {
			c.values[i].Text = names[0]
		}
	case c.DefaultRuntime != "" && !exists(c.DefaultRuntime):
		l.mistake(mistakeError{Key: "default_runtime", Source: l.sources["default_runtime"], Value: c.DefaultRuntime, Allowed: allowed})
	}
	for _, p := range c.Projects {
		if p.Runtime != "" && !exists(p.Runtime) {
			l.mistake(mistakeError{Key: "project " + p.Name + ", runtime", Source: l.file, Value: p.Runtime, Allowed: allowed})
		}
	}
	l.serverPointers(c)
}

func modelName(s string) bool { return printable(s) && len(s) <= 200 }

// printable reports whether s can stand in a header: visible ASCII, at least one.
func printable(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r >= 0x7f })
}
