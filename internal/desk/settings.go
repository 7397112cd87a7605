package desk

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const (
	hooksKey        = "hooks"
	permissionEvent = "PermissionRequest"
	// mark is what every command of ours holds, and nobody else's.
	mark = " hook run "
	// backupSuffix is that of the file beside the settings that holds them as they were before they were changed.
	backupSuffix = ".before-drawbridge"
)

// Hook is the entry that Install writes.
type Hook struct {
	Command string // a line for a shell; see Command
	Timeout int    // seconds after which the agent ends it
	Status  string // what the terminal shows while it runs
}

// Command is the line for a shell that runs the program at path as a hook of an agent.
func Command(path string, a Agent, flags ...string) string {
	words := append([]string{quoted(path) + mark + string(a)}, flags...)
	return strings.Join(words, " ")
}

// Quote makes a flag's value one word of a shell.
func Quote(s string) string { return quoted(s) }

func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// ours reports whether a command is one that Install wrote for an agent.
func ours(command string, a Agent) bool {
	program, rest, ok := strings.Cut(command, mark)
	return ok && strings.HasPrefix(program, "'") && strings.HasSuffix(program, "'") && (rest == string(a) || strings.HasPrefix(rest, string(a)+" "))
}

// ErrSettings says that a settings file is not what it should be. It was not changed then.
var ErrSettings = errors.New("it is not understood, and was left as it is")

// Install puts a hook into the settings at path, in place of one that was put there before, and reports whether that
// changed anything. What else is there stays, in its order. The settings as they were are kept beside them.
func Install(path string, a Agent, h Hook) (bool, error) {
	entry := object{}.with(hooksKey, array([]json.RawMessage{h.encode()})).bytes()
	return change(path, func(list []json.RawMessage) ([]json.RawMessage, error) {
		if slices.ContainsFunc(list, func(g json.RawMessage) bool { return bytes.Equal(g, entry) }) {
			return list, nil
		}
		list, err := without(list, a)
		return append(list, entry), err
	})
}

// Uninstall takes the hook out of the settings at path, and reports whether there was one.
func Uninstall(path string, a Agent) (bool, error) {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return change(path, func(list []json.RawMessage) ([]json.RawMessage, error) { return without(list, a) })
}

// Installed is the command of the hook in the settings at path; empty if there is none.
func Installed(path string, a Agent) (string, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	} else if err != nil {
		return "", fmt.Errorf("desk: settings: %w", err)
	}
	_, _, list, err := open(text)
	if err != nil {
		return "", fmt.Errorf("desk: %s: %w", path, err)
	}
	for _, group := range list {
		for _, one := range commands(group) {
			if ours(one, a) {
				return one, nil
			}
		}
	}
	return "", nil
}

func (h Hook) encode() []byte {
	o := object{}
	for _, m := range []struct {
		key   string
		value any
	}{{"type", "command"}, {"command", h.Command}, {"timeout", h.Timeout}, {"statusMessage", h.Status}} {
		raw, err := encode(m.value)
		if err != nil {
			panic("desk: hook: " + err.Error()) // texts and numbers always have a form in JSON
		}
		o = o.with(m.key, raw)
	}
	return o.bytes()
}

// without is a list of groups of hooks without ours. A group that held nothing else goes with it.
func without(list []json.RawMessage, a Agent) ([]json.RawMessage, error) {
	var out []json.RawMessage
	for _, raw := range list {
		mine := false
		for _, one := range commands(raw) {
			mine = mine || ours(one, a)
		}
		if !mine {
			out = append(out, raw)
			continue
		}
		group, err := parseObject(raw)
		if err != nil {
			return nil, err
		}
		var hooks, kept []json.RawMessage
		if err := json.Unmarshal(group.value(hooksKey), &hooks); err != nil {
			return nil, ErrSettings
		}
		for _, hook := range hooks {
			if !ours(command(hook), a) {
				kept = append(kept, hook)
			}
		}
		if len(kept) > 0 {
			out = append(out, group.with(hooksKey, array(kept)).bytes())
		}
	}
	return out, nil
}

// commands are those of a group of hooks.
func commands(group json.RawMessage) []string {
	var g struct {
		Hooks []json.RawMessage `json:"hooks"`
	}
	_ = json.Unmarshal(group, &g) // what is of another form is none of ours
	out := make([]string, 0, len(g.Hooks))
	for _, h := range g.Hooks {
		out = append(out, command(h))
	}
	return out
}

func command(hook json.RawMessage) string {
	var h struct {
		Command string `json:"command"`
	}
	_ = json.Unmarshal(hook, &h) // as above
	return h.Command
}

// open finds the groups of hooks in settings.
func open(text []byte) (root, hooks object, list []json.RawMessage, err error) {
	if len(bytes.TrimSpace(text)) == 0 {
		return nil, nil, nil, nil
	}
	if root, err = parseObject(text); err != nil {
		return nil, nil, nil, err
	}
	if raw := root.value(hooksKey); raw != nil {
		if hooks, err = parseObject(raw); err != nil {
			return nil, nil, nil, err
		}
	}
	if raw := hooks.value(permissionEvent); raw != nil {
		if err := json.Unmarshal(raw, &list); err != nil || list == nil {
			return nil, nil, nil, ErrSettings
		}
	}
	return root, hooks, list, nil
}

// change rewrites the settings at path with other groups of hooks.
func change(path string, to func([]json.RawMessage) ([]json.RawMessage, error)) (bool, error) {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real // a link stays one
	}
	fail := func(err error) (bool, error) { return false, fmt.Errorf("desk: %s: %w", path, err) }
	text, err := os.ReadFile(path)
	missing := errors.Is(err, fs.ErrNotExist)
	if err != nil && !missing {
		return fail(err)
	}
	root, hooks, list, err := open(text)
	if err != nil {
		return fail(err)
	}
	had := len(list)
	list, err = to(list)
	if err != nil {
		return fail(err)
	}
	switch {
	case len(list) > 0:
		root = root.with(hooksKey, hooks.with(permissionEvent, array(list)).bytes())
	case had > 0:
		hooks = hooks.without(permissionEvent)
		if root = root.with(hooksKey, hooks.bytes()); len(hooks) == 0 {
			root = root.without(hooksKey)
		}
	}
	var same bytes.Buffer
	if json.Compact(&same, text) == nil && bytes.Equal(same.Bytes(), root.bytes()) {
		return false, nil
	}
	laid := layOut(root.bytes(), text)
	if !missing {
		if err := replace(path+backupSuffix, text, 0o600); err != nil {
			return fail(err)
		}
	} else if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fail(err)
	}
	mode := fs.FileMode(0o600)
	if info, err := os.Stat(path); err == nil {
		mode = info.Mode().Perm()
	}
	if err := replace(path, laid, mode); err != nil {
		return fail(err)
	}
	return true, nil
}

// layOut indents as the settings were before.
func layOut(compact, before []byte) []byte {
	indent := "  "
	if _, rest, ok := bytes.Cut(before, []byte("{\n")); ok {
		if n := len(rest) - len(bytes.TrimLeft(rest, " \t")); n > 0 {
			indent = string(rest[:n])
		}
	}
	var b bytes.Buffer
	if json.Indent(&b, compact, "", indent) != nil {
		return compact
	}
	if len(before) == 0 || bytes.HasSuffix(before, []byte("\n")) {
		b.WriteByte('\n')
	}
	return b.Bytes()
}

// replace writes a file wholly or not at all.
func replace(path string, text []byte, mode fs.FileMode) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".drawbridge-")
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Chmod(mode), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}
