package codex

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"drawbridge/policy"
	"drawbridge/runner"
)

// permissionEvent is the hook that codex runs before it asks in the terminal: the terminal asks once the hook has ended
// without an answer, and not before.
const permissionEvent = "PermissionRequest"

// Hooked is a permission question of a session in a person's own terminal, as codex gives it to a hook.
type Hooked struct {
	Session  string // codex's id of it
	Folder   string
	Question runner.Question
}

var errHook = errors.New("codex: hook")

// ParseHook reads what codex gives a hook for permission requests. home is the person's home folder. What is not
// understood is an error: it is for the terminal alone.
func ParseHook(raw []byte, home string) (Hooked, error) {
	var in struct {
		Event   string          `json:"hook_event_name"`
		Session string          `json:"session_id"`
		Folder  string          `json:"cwd"`
		Tool    string          `json:"tool_name"`
		Input   json.RawMessage `json:"tool_input"`
	}
	if err := json.Unmarshal(raw, &in); err != nil {
		return Hooked{}, fmt.Errorf("%w: it is no JSON that is understood", errHook)
	}
	switch {
	case in.Event != permissionEvent:
		return Hooked{}, fmt.Errorf("%w: it is no permission request", errHook)
	case !threadID(in.Session) || !filepath.IsAbs(in.Folder) || in.Tool == "" || len(in.Input) == 0:
		return Hooked{}, fmt.Errorf("%w: its session, folder or tool is missing", errHook)
	}
	// The terminal's session may have any sandbox or none: what it asks for is outside of it.
	where := policy.Workspace{Root: in.Folder, Home: home}
	q := runner.Question{
		Kind: runner.KindTool, Tool: in.Tool, Arguments: in.Input, Folder: in.Folder, Categories: []policy.Category{policy.Unknown},
	}
	fields := map[string]json.RawMessage{}
	_ = json.Unmarshal(in.Input, &fields) // what is no object is shown as it is
	var command, why string
	known := json.Unmarshal(fields["command"], &command) == nil && command != ""
	if known {
		_ = json.Unmarshal(fields["description"], &why) // codex may leave it out
		delete(fields, "command")
		delete(fields, "description")
		known = len(fields) == 0
	}
	switch {
	case !known:
	case in.Tool == "Bash":
		q.Kind, q.Command, q.Tool, q.Arguments = runner.KindCommand, command, "", nil
		q.Title, q.Categories = why, policy.Classify(command, where)
	case in.Tool == "apply_patch":
		files, touched, ok := patched(command)
		if !ok {
			break
		}
		q.Kind, q.Files, q.Tool, q.Arguments = runner.KindFileChange, files, "", nil
		q.Title, q.Categories = why, nil
		for i, path := range touched {
			if !filepath.IsAbs(path) {
				touched[i] = filepath.Join(in.Folder, path)
			}
			q.Categories = append(q.Categories, policy.ClassifyPath(policy.OpWrite, touched[i], where)...)
		}
		q.Categories = distinct(q.Categories)
		q.Check = func() (string, error) { return digest(touched) }
	}
	return Hooked{Session: in.Session, Folder: in.Folder, Question: q}, nil
}

// The lines of a patch that are no content.
const (
	patchBegin  = "*** Begin Patch"
	patchEnd    = "*** End Patch"
	patchAdd    = "*** Add File: "
	patchUpdate = "*** Update File: "
	patchDelete = "*** Delete File: "
	patchMove   = "*** Move to: "
)

// patched takes a patch apart into its files, with every line that says what becomes of them, and the paths that it
// touches. It reports false for what is no patch.
func patched(patch string) (files []runner.FileChange, touched []string, ok bool) {
	lines := strings.Split(strings.TrimSuffix(patch, "\n"), "\n")
	if len(lines) < 3 || lines[0] != patchBegin || lines[len(lines)-1] != patchEnd {
		return nil, nil, false
	}
	for _, line := range lines[1 : len(lines)-1] {
		op, path := runner.FileOp(""), ""
		for head, does := range map[string]runner.FileOp{patchAdd: runner.FileCreate, patchUpdate: runner.FileEdit, patchDelete: runner.FileDelete} {
			if rest, is := strings.CutPrefix(line, head); is {
				op, path = does, rest
			}
		}
		if op != "" {
			files, touched = append(files, runner.FileChange{Path: path, Op: op}), append(touched, path)
			continue
		}
		if len(files) == 0 {
			return nil, nil, false
		}
		f := &files[len(files)-1]
		if to, is := strings.CutPrefix(line, patchMove); is && f.Op == runner.FileEdit && f.Diff == "" {
			f.Op, f.Path, touched = runner.FileMove, f.Path+" → "+to, append(touched, to)
			continue
		}
		switch {
		case strings.HasPrefix(line, "+"):
			f.Added++
		case strings.HasPrefix(line, "-"):
			f.Removed++
		}
		f.Diff += line + "\n"
	}
	return files, touched, len(files) > 0
}

// Answer is what the hook prints; nil leaves the question to the terminal. Only a person's answer is one.
func (Hooked) Answer(a runner.Answer) []byte {
	if a.Source != runner.SourceUser || a.Decision == runner.Withdrawn {
		return nil
	}
	decision := map[string]string{"behavior": "allow"}
	if !a.Allows() {
		decision = map[string]string{"behavior": "deny", "message": a.Describe()}
	}
	b, err := json.Marshal(map[string]any{"hookSpecificOutput": map[string]any{"hookEventName": permissionEvent, "decision": decision}})
	if err != nil {
		return nil
	}
	return b
}
