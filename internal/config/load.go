package config

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/BurntSushi/toml"
)

// loader gathers what one Load finds.
type loader struct {
	env map[string]string
	// file is the path of the file that was read, private whether only its owner can read it.
	file    string
	private bool
	// hostname returns the machine's name; a test has its own.
	hostname func() string

	table    map[string]any
	sources  map[string]string
	mistakes []error
	warnings []string
	// named are the variables that key_env names, which are no mistakes.
	named map[string]bool
}

func newLoader(env []string) *loader {
	l := &loader{env: map[string]string{}, sources: map[string]string{}, named: map[string]bool{}, hostname: func() string {
		name, err := os.Hostname()
		if err != nil {
			return ""
		}
		return name
	}}
	for _, e := range env {
		if k, v, ok := strings.Cut(e, "="); ok {
			l.env[k] = v
		}
	}
	return l
}

// decode reads the file's text. Its parser's words are not passed on: they quote what they did not understand, which
// may be a token without its quotes.
func (l *loader) decode(body []byte) {
	table := map[string]any{}
	_, err := toml.Decode(string(body), &table)
	if err == nil {
		l.table = table
		return
	}
	where := "somewhere"
	if parse, ok := errors.AsType[toml.ParseError](err); ok {
		where = "line " + strconv.Itoa(parse.Position.Line)
	}
	l.mistake(mistakeError{Key: where, Source: l.file, Allowed: "not understood as TOML: a text stands in quotes, a key stands once, a list in [ ]"})
}

func (l *loader) mistake(m mistakeError) { l.mistakes = append(l.mistakes, &m) }

// finish checks everything and makes the Config, or the error.
func (l *loader) finish() (Config, error) {
	var c Config
	if len(l.mistakes) > 0 { // the file is not readable at all, and what it would say is not known
		return Config{}, errors.Join(l.mistakes...)
	}
	keys := l.keys()
	fromFile := false
	for _, k := range keys {
		fromFile = l.one(&c, k) && k.secret || fromFile
	}
	l.projects(&c)
	fromFile = l.servers(&c) || fromFile
	l.tools(&c)
	fromFile = l.runtimes(&c) || fromFile
	fromFile = l.reviewer(&c) || fromFile
	fromFile = l.hooks(&c) || fromFile
	fromFile = l.ons(&c) || fromFile
	l.eventPointers(&c)
	l.unknown(keys)
	l.relations(&c)
	l.checkPlaces(c)
	if len(l.mistakes) > 0 {
		return Config{}, errors.Join(l.mistakes...)
	}
	if fromFile && !l.private {
		l.warnings = append(l.warnings, l.file+" holds secrets and others can read it; chmod 600 it, or keep them in the environment")
	}
	c.warnings = l.warnings
	return c, nil
}

// one takes one key over from where it is set, and reports whether that was the file.
func (l *loader) one(c *Config, k key) (fromFile bool) {
	var texts []string
	source, ok := fromDefault, true
	raw, inFile := l.table[k.name]
	switch {
	case l.env[k.env] != "":
		texts, source = []string{l.env[k.env]}, k.env
		if k.list {
			texts = split(texts[0])
		}
	case inFile:
		source, fromFile = l.file, true
		texts, ok = scalars(raw, k.list)
	case k.def != "":
		texts = []string{k.def}
	default:
		c.values = append(c.values, Value{Key: k.name, Source: source})
		return false
	}
	l.sources[k.name] = source
	shown := strings.Join(texts, ", ")
	if !ok || !k.set(c, texts) {
		switch {
		case k.secret, strings.ContainsAny(shown, "@?") && strings.HasSuffix(k.name, "_url"):
			shown = Mask
		case !ok:
			if shown, ok = scalar(raw); !ok {
				shown = "a value of another kind" // a table in the wrong place may hold a secret
			}
		}
		l.mistake(mistakeError{Key: k.name, Source: source, Value: shown, Allowed: k.allowed})
		return fromFile
	}
	switch {
	case k.show != nil:
		shown = k.show(texts[0])
	case k.secret:
		shown = Mask
	}
	c.values = append(c.values, Value{Key: k.name, Text: shown, Source: source})
	return fromFile
}

// split takes a list from the environment apart; blanks around members and empty members do not count.
func split(text string) []string {
	var out []string
	for member := range strings.SplitSeq(text, ",") {
		if member = strings.TrimSpace(member); member != "" {
			out = append(out, member)
		}
	}
	return out
}

// scalars writes a value of the file as the environment would have it.
func scalars(raw any, list bool) ([]string, bool) {
	if list {
		members, ok := raw.([]any)
		if !ok {
			return nil, false
		}
		out := make([]string, 0, len(members))
		for _, m := range members {
			s, ok := scalar(m)
			if !ok {
				return nil, false
			}
			out = append(out, s)
		}
		return out, true
	}
	s, ok := scalar(raw)
	return []string{s}, ok
}

func scalar(raw any) (string, bool) {
	switch v := raw.(type) {
	case string:
		return v, true
	case int64:
		return strconv.FormatInt(v, 10), true
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64), true
	default:
		return "", false
	}
}

// unknown refuses what the file has and nobody knows, and warns of variables that look like ours: those may come from
// somebody else (Kubernetes makes DRAWBRIDGE_PORT for a service of that name).
func (l *loader) unknown(keys []key) {
	vars := map[string]bool{
		fileEnv: true, projectsEnv: true, modelURLEnv: true, modelEnv: true, modelKeyEnv: true, modelContextEnv: true, agentsEnv: true,
		reviewerURLEnv: true, reviewerModelEnv: true, reviewerKeyEnv: true, reviewerTimeoutEnv: true,
	}
	known := map[string]bool{"project": true, "runtime": true, "mcp": true, "tools": true, "reviewer": true, "hooks": true, "hook": true, "on": true}
	names := make([]string, 0, len(keys)+8)
	for _, k := range keys {
		vars[k.env], known[k.name] = true, true
		names = append(names, k.name)
	}
	names = append(names, "[[project]]", "[[runtime]]", "[[mcp]]", "[tools]", "[reviewer]", "[hooks]", "[[hook]]", "[[on]]")
	for _, name := range slices.Sorted(maps.Keys(l.table)) {
		if !known[name] {
			l.mistake(mistakeError{Key: name, Source: l.file, Allowed: "unknown key; there are " + strings.Join(names, ", ")})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(l.env)) {
		if strings.HasPrefix(name, "DRAWBRIDGE_") && !vars[name] && !l.named[name] {
			l.warnings = append(l.warnings, oneLine(name)+" is set in the environment and is not a variable that drawbridge knows")
		}
	}
}

// relations checks what one value demands of another, and divides the durations by the pace.
func (l *loader) relations(c *Config) {
	if w := c.Telegram.Webhook; w != nil && len(l.mistakes) == 0 {
		for _, part := range []struct {
			key string
			set bool
		}{{"webhook_url", w.URL != ""}, {"webhook_listen", w.Listen != ""}, {"webhook_secret", w.Secret.Set()}} {
			if !part.set {
				l.mistake(mistakeError{Key: part.key, Allowed: "not set; webhook_url, webhook_listen and webhook_secret are needed together"})
			}
		}
	}
	role := map[int64]string{}
	for _, group := range []struct {
		key string
		ids []int64
	}{{"owners", c.People.Owners}, {"operators", c.People.Operators}, {"viewers", c.People.Viewers}} {
		for _, id := range group.ids {
			if other := role[id]; other != "" {
				l.mistake(mistakeError{Key: group.key, Source: l.sources[group.key], Value: strconv.FormatInt(id, 10), Allowed: "an id that stands once; this one is among the " + other})
			}
			role[id] = group.key
		}
	}
	t := &c.Timing
	if len(l.mistakes) == 0 {
		l.atLeast("dead_after", t.DeadAfter, 3, "beat", t.Beat)
		l.atLeast("lease", t.Lease, 3, "renew", t.Renew)
	}
	if c.DataDir == "" && l.sources["data_dir"] == "" {
		l.mistake(mistakeError{Key: "data_dir", Allowed: "not set, and there is neither XDG_STATE_HOME nor HOME to choose it from; set DRAWBRIDGE_DATA_DIR to an absolute path"})
	}
	if len(l.mistakes) > 0 {
		return
	}
	for _, d := range []*time.Duration{&t.ApprovalDeadline, &t.SessionIdle, &t.Beat, &t.DeadAfter, &t.Sweep, &t.Lease, &t.Renew, &t.Reread} {
		*d = time.Duration(float64(*d) / t.Pace)
	}
	for i := range c.On {
		c.On[i].Limit = time.Duration(float64(c.On[i].Limit) / t.Pace)
	}
	if c.Reviewer != nil {
		c.Reviewer.Timeout = time.Duration(float64(c.Reviewer.Timeout) / t.Pace)
	}
}

// atLeast demands that a limit leaves room for more than one late message.
func (l *loader) atLeast(name string, d time.Duration, times int, of string, unit time.Duration) {
	if d < time.Duration(times)*unit {
		l.mistake(mistakeError{Key: name, Source: l.sources[name], Value: short(d), Allowed: fmt.Sprintf("at least %d times %s, which is %s", times, of, short(unit))})
	}
}
