package config

import (
	"maps"
	"net"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"drawbridge/policy"
)

// hooksListen is where deliveries are taken if nobody chose another address: on this machine.
const hooksListen = "127.0.0.1:8765"

// Bounds of a template. A step is handed to an agent whole; what a delivery brings is put behind the first one, which
// leaves room for it.
const (
	maxSteps     = 20
	maxStep      = 8 << 10
	maxFirstStep = 3 << 9
	maxTitle     = 120
	minSecret    = 16
	maxSecret    = 256
	maxMessage   = 1000
)

// Hook is a task that another program starts by a signed delivery to its name.
type Hook struct {
	// Name is unique, 1–32 of a–z, 0–9 and the hyphen; deliveries are posted to /hooks/NAME.
	Name string
	// Secret signs its deliveries. No other hook has it: what is signed does not say for which one it is.
	Secret Secret
	// Chat is asked and told: "1001", or "-100123/5" for a topic.
	Chat string
	// By is the person for whom it is done, who must be allowed to prompt there whenever it is.
	By int64
	// Title is shown; the first line of the first step if it is empty.
	Title string
	// Steps are what is done, at least one.
	Steps []string
	// Host, Project and Runtime are where; the chat's where they are empty.
	Host, Project, Runtime string
	// Mode is a stricter one than the chat's, Execution review or auto; the chat's and the project's if empty.
	Mode      policy.Mode
	Execution string
}

// On is what is done when something happens to a task: a command is run on the gateway's machine, or a message is sent to the
// task's chat.
type On struct {
	// Event is one of TaskEvents.
	Event string
	// Command is the program, found in PATH or absolute, and its arguments; no shell reads it. Empty if there is a Message.
	Command []string
	Message string
	// Folder is where the command runs, absolute; empty for one of its own.
	Folder string
	// Env is added to the environment that is made for it.
	Env map[string]Secret
	// Limit is how long the command may take, already divided by the pace.
	Limit time.Duration
	// Project names the project for whose tasks it is; empty for all.
	Project string
}

// TaskEvents are what can happen to a task that something can be done on, as task.HookEvent has them.
func TaskEvents() []string {
	return []string{"task_auto_approved", "task_permission_retry", "pipeline_completed"}
}

const (
	defaultLimit = "30s"
	minLimit     = time.Second
	maxLimit     = 10 * time.Minute
)

const (
	chatAllowed   = "a chat's id, such as \"123456789\", or the id of a group and a topic, such as \"-100123456789/45\""
	listenAllowed = "an address to listen on, such as " + hooksListen + " or :8765"
	secretAllowed = "16 to 256 printable characters without blanks"
	stepsAllowed  = "1 to 20 texts, the first of at most 1536 bytes and the others of at most 8192"
)

var chatForm = regexp.MustCompile(`^-?[1-9][0-9]{0,15}(/[1-9][0-9]{0,9})?$`)

// hooks takes the hooks and the address at which they are taken over, and reports whether the file holds a secret of theirs.
func (l *loader) hooks(c *Config) (secretInFile bool) {
	listen, source := hooksListen, fromDefault
	if raw, ok := l.table["hooks"]; ok {
		table, ok := raw.(map[string]any)
		if !ok {
			l.mistake(mistakeError{Key: "hooks", Source: l.file, Allowed: "one table, under the heading [hooks]"})
			return false
		}
		e := entry{l: l, label: "hooks", table: table, seen: map[string]bool{}}
		listen = e.text("listen", hooksListen, listenAllowed, listenAddress)
		if table["listen"] != nil {
			source = l.file
		}
		e.done()
	}
	var shown []Value
	for _, e := range l.entries("hook") {
		k, from := e.hook()
		e.done()
		switch {
		case slices.ContainsFunc(c.Hooks, func(o Hook) bool { return o.Name == k.Name }):
			l.mistake(mistakeError{Key: "hook", Source: l.file, Value: k.Name, Allowed: "a name that stands once"})
			continue
		case k.Secret.Set() && slices.ContainsFunc(c.Hooks, func(o Hook) bool { return o.Secret.Reveal() == k.Secret.Reveal() }):
			e.wrong("secret", Mask, "a secret of its own; another hook has this one")
		}
		secretInFile = secretInFile || k.Secret.Set() && from == l.file
		c.Hooks = append(c.Hooks, k)
		shown = append(shown, l.showHook(k, from)...)
	}
	if len(c.Hooks) == 0 {
		if source != fromDefault {
			l.warnings = append(l.warnings, "hooks has an address, and there is no [[hook]]: nothing listens there")
		}
		return secretInFile
	}
	c.HooksListen = listen
	c.values = append(append(c.values, Value{Key: "hooks listen", Text: listen, Source: source}), shown...)
	if c.HooksOpen() {
		l.warnings = append(l.warnings, "hooks are taken at "+listen+", which others can reach; deliveries are signed and not encrypted, so put something before it that ends TLS")
	}
	return secretInFile
}

// HooksOpen reports whether the address at which deliveries are taken can be reached from other machines.
func (c Config) HooksOpen() bool {
	host, _, err := net.SplitHostPort(c.HooksListen)
	ip := net.ParseIP(host)
	return err == nil && host != "localhost" && (ip == nil || !ip.IsLoopback())
}

// listenAddress reports whether text is host:port with a port of its own.
func listenAddress(text string) bool {
	_, port, err := net.SplitHostPort(text)
	n, perr := strconv.ParseUint(port, 10, 16)
	return err == nil && perr == nil && n > 0
}

// hook reads one [[hook]], and where its secret comes from.
func (e *entry) hook() (k Hook, from string) {
	k.Name = e.text("name", "", serverAllowed, serverName.MatchString)
	before := len(e.l.mistakes)
	k.Secret, from = e.hidden("secret", secretAllowed, func(s string) bool { return printable(s) && len(s) >= minSecret && len(s) <= maxSecret })
	if !k.Secret.Set() && len(e.l.mistakes) == before {
		e.wrong("secret", "", "not set; "+secretAllowed+", or secret_env in its place")
	}
	k.Chat = e.text("chat", "", chatAllowed, chatForm.MatchString)
	k.Title = e.text("title", "", "one line of at most 120 bytes", func(s string) bool { return len(s) <= maxTitle && printableText(s) })
	before = len(e.l.mistakes)
	k.Steps = e.texts("steps", stepsAllowed, func(s string) bool { return strings.TrimSpace(s) != "" && len(s) <= maxStep })
	if n := len(k.Steps); len(e.l.mistakes) == before && (n == 0 || n > maxSteps || len(k.Steps[0]) > maxFirstStep) {
		e.wrong("steps", "", "a list of "+stepsAllowed)
	}
	k.Host = e.text("host", "", "the name of the project's host", func(s string) bool { return s == "" || hostName.MatchString(s) })
	k.Project = e.text("project", "", "the name of a project", func(s string) bool { return s == "" || projectName.MatchString(s) })
	if k.Host != "" && k.Project == "" {
		e.wrong("host", k.Host, "only together with project")
	}
	k.Runtime = e.text("runtime", "", "the name of a runtime", func(s string) bool { return s == "" || runtimeName.MatchString(s) })
	mode := e.text("mode", "", modesAllowed(), func(s string) bool {
		_, err := policy.ParseMode(s)
		return s == "" || err == nil
	})
	k.Mode = policy.Mode(mode)
	k.Execution = e.text("execution", "", "review or auto", func(s string) bool { return s == "" || s == "review" || s == "auto" })
	k.By = e.id("by", "the id of the owner or operator for whom it is done, such as 123456789")
	return k, from
}

// id returns the id of a Telegram user, which has to be there.
func (e *entry) id(key, allowed string) int64 {
	e.seen[key] = true
	raw, ok := e.table[key]
	n, isInt := raw.(int64)
	switch {
	case !ok:
		e.wrong(key, "", "not set; "+allowed)
	case !isInt || n <= 0 || n > maxID:
		shown, _ := scalar(raw)
		e.wrong(key, shown, allowed)
	}
	return n
}

func (l *loader) showHook(k Hook, secretFrom string) []Value {
	var out []Value
	show := func(key, text, source string) {
		if text != "" {
			out = append(out, Value{Key: "hook " + k.Name + " " + key, Text: text, Source: source})
		}
	}
	show("secret", k.Secret.String(), secretFrom)
	show("chat", k.Chat, l.file)
	show("by", strconv.FormatInt(k.By, 10), l.file)
	show("title", k.Title, l.file)
	for i, step := range k.Steps {
		show("step "+strconv.Itoa(i+1), cut(step), l.file)
	}
	show("host", k.Host, l.file)
	show("project", k.Project, l.file)
	show("runtime", k.Runtime, l.file)
	show("mode", string(k.Mode), l.file)
	show("execution", k.Execution, l.file)
	return out
}

// ons takes over what is done when something happens to a task, and reports whether the file holds a secret of it.
func (l *loader) ons(c *Config) (secretInFile bool) {
	for _, e := range l.entries("on") {
		var o On
		o.Event = e.text("event", "", "one of "+strings.Join(TaskEvents(), ", "), func(s string) bool { return slices.Contains(TaskEvents(), s) })
		before := len(l.mistakes)
		o.Command = e.texts("command", "texts, the program and its arguments", printableText)
		listed := len(l.mistakes) == before
		o.Message = e.text("message", "", "a text of at most 1000 bytes", func(s string) bool { return len(s) <= maxMessage && !strings.ContainsRune(s, 0) })
		e.text("folder", "", pathAllowed, func(s string) (ok bool) {
			if s == "" {
				return true
			}
			o.Folder, ok = l.path(s)
			return ok
		})
		var env map[string]string
		o.Env, env = e.secrets("env", "names of environment variables, each with a text", variable, func(text string) bool { return !strings.ContainsRune(text, 0) })
		limit := e.text("limit", defaultLimit, "a duration from "+short(minLimit)+" to "+short(maxLimit)+", such as "+defaultLimit, func(s string) (ok bool) {
			d, err := time.ParseDuration(s)
			o.Limit = d
			return err == nil && d >= minLimit && d <= maxLimit
		})
		o.Project = e.text("project", "", "the name of a project", func(s string) bool { return s == "" || projectName.MatchString(s) })
		e.checkOn(o, listed)
		e.done()
		secretInFile = secretInFile || slices.Contains(slices.Collect(maps.Values(env)), l.file)
		c.On = append(c.On, o)
		l.showOn(c, len(c.On), o, limit, e.table["limit"] != nil, env)
	}
	return secretInFile
}

// checkOn looks at what one value of an [[on]] demands of another; listed says that its command is a list.
func (e *entry) checkOn(o On, listed bool) {
	_, isCommand := e.table["command"]
	_, isMessage := e.table["message"]
	switch {
	case isCommand == isMessage:
		e.wrong("command", "", "either command, a list such as [\"/opt/tell\", \"done\"], or message")
	case isMessage && strings.TrimSpace(o.Message) == "":
		e.wrong("message", "", "a text of at most 1000 bytes")
	case isMessage:
		for _, key := range []string{"folder", "env", "env_from", "limit"} {
			if e.table[key] != nil {
				e.wrong(key, "", "only together with command")
			}
		}
	case listed && len(o.Command) == 0:
		e.wrong("command", "", "a list of the program and its arguments")
	case listed && (o.Command[0] == "" || !filepath.IsAbs(o.Command[0]) && strings.ContainsRune(o.Command[0], '/')):
		e.wrong("command", o.Command[0], commandAllowed)
	}
}

func (l *loader) showOn(c *Config, n int, o On, limit string, limitInFile bool, env map[string]string) {
	show := func(key, text, source string) {
		if text != "" {
			c.values = append(c.values, Value{Key: "on " + strconv.Itoa(n) + " " + key, Text: text, Source: source})
		}
	}
	show("event", o.Event, l.file)
	show("project", o.Project, l.file)
	show("message", o.Message, l.file)
	if len(o.Command) == 0 {
		return
	}
	show("command", strings.Join(o.Command, " "), l.file)
	show("folder", o.Folder, l.file)
	for _, name := range slices.Sorted(maps.Keys(o.Env)) {
		show("env "+name, o.Env[name].String(), env[name])
	}
	source := fromDefault
	if limitInFile {
		source = l.file
	}
	show("limit", limit, source)
}

// eventPointers looks for what is probably not meant.
func (l *loader) eventPointers(c *Config) {
	for i, o := range c.On {
		for _, p := range c.Projects {
			if slices.ContainsFunc(o.Command, func(path string) bool { return filepath.IsAbs(path) && inside(path, p.Path) }) {
				l.warnings = append(l.warnings, "on "+strconv.Itoa(i+1)+" runs something in the folder of project "+p.Name+", whose agent can change it")
			}
		}
	}
	for _, k := range c.Hooks {
		if slices.Contains(c.People.Viewers, k.By) {
			l.mistake(mistakeError{Key: "hook " + k.Name + ", by", Source: l.file, Value: strconv.FormatInt(k.By, 10), Allowed: "the id of an owner or operator; this one is among the viewers, who may not prompt"})
		}
	}
}
