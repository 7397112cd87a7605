package claude

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"drawbridge/policy"
	"drawbridge/runner"
)

// permissionEvent is the hook that the program runs while its permission question stands in the terminal. Whoever answers
// first, the person there or the hook, decides; the other's answer is ignored.
const permissionEvent = "PermissionRequest"

// Hooked is a permission question of a session in a person's own terminal, as the program gives it to a hook.
type Hooked struct {
	Session    string // the program's id of it
	Folder     string
	Transcript string // the file that the program writes the conversation to
	Question   runner.Question

	tool  string
	input json.RawMessage
}

var (
	errHook     = errors.New("claude: hook")
	errNothing  = errors.New("there is nothing to show")
	errNotAsked = errors.New("it is no permission request")
)

// ParseHook reads what the program gives a hook for permission requests. home is the person's home folder. What it can't
// show whole, or not understand, is an error: it is for the terminal alone.
func ParseHook(raw []byte, home string) (Hooked, error) {
	var in struct {
		Event      string          `json:"hook_event_name"`
		Session    string          `json:"session_id"`
		Folder     string          `json:"cwd"`
		Transcript string          `json:"transcript_path"`
		Tool       string          `json:"tool_name"`
		Input      json.RawMessage `json:"tool_input"`
	}
	if err := json.Unmarshal(raw, &in); err != nil {
		return Hooked{}, fmt.Errorf("%w: it is no JSON that is understood", errHook)
	}
	switch {
	case in.Event != permissionEvent:
		return Hooked{}, fmt.Errorf("%w: %w", errHook, errNotAsked)
	case !validID(in.Session) || !filepath.IsAbs(in.Folder) || in.Tool == "" || len(in.Input) == 0:
		return Hooked{}, fmt.Errorf("%w: its session, folder or tool is missing", errHook)
	}
	h := Hooked{Session: in.Session, Folder: in.Folder, Transcript: in.Transcript, tool: in.Tool, input: in.Input}
	r := &Runtime{person: home}
	c := &conn{session: &session{runtime: r, options: runner.Options{Folder: in.Folder}}}
	var err error
	switch in.Tool {
	case askTool:
		h.Question, err = queries(in.Input)
	case planTool:
		h.Question, err = planned(in.Input)
	default:
		h.Question, _ = c.question(in.Tool, in.Input)
		if h.Question.Kind == runner.KindCommand && !plainCommand(in.Input) {
			q := &h.Question
			q.Kind, q.Command, q.Tool, q.Arguments = runner.KindTool, "", in.Tool, in.Input
		}
	}
	if err != nil {
		return Hooked{}, fmt.Errorf("%w: %w", errHook, err)
	}
	h.Question.Folder = in.Folder
	return h, nil
}

// plainCommand reports whether a command's text says all that its call does.
func plainCommand(raw json.RawMessage) bool {
	fields := map[string]json.RawMessage{}
	if json.Unmarshal(raw, &fields) != nil {
		return false
	}
	for name := range maps.Keys(fields) {
		if !slices.Contains([]string{"command", "description", "timeout"}, name) {
			return false
		}
	}
	return true
}

// planned is the question for a plan that is ready.
func planned(raw json.RawMessage) (runner.Question, error) {
	var in struct {
		Plan string `json:"plan"`
	}
	if err := json.Unmarshal(raw, &in); err != nil || strings.TrimSpace(in.Plan) == "" {
		return runner.Question{}, errNothing
	}
	return runner.Question{
		Kind: runner.KindPlan, Title: "A plan", Plan: in.Plan, Categories: []policy.Category{policy.Question},
		Actions: []runner.Action{
			{ID: runner.ActionAllow, Label: "Carry it out, asking as it goes", Style: runner.StyleSuccess, Allows: true},
			{ID: runner.ActionDeny, Label: "Keep planning", Style: runner.StyleDanger},
			{ID: runner.ActionRevise, Label: "Change it", Reply: true},
		},
	}, nil
}

// Answer is what the hook prints; nil leaves the question to the terminal. Only a person's answer is one: everything else
// (nobody in time, a store that is away) is silence, and the terminal goes on asking.
func (h Hooked) Answer(a runner.Answer) []byte {
	if a.Source != runner.SourceUser || a.Decision == runner.Withdrawn {
		return nil
	}
	type decision struct {
		Behavior string            `json:"behavior"`
		Message  string            `json:"message,omitempty"`
		Input    json.RawMessage   `json:"updatedInput,omitempty"`
		Updates  []permissionEntry `json:"updatedPermissions,omitempty"`
	}
	d := decision{Behavior: "allow"}
	switch {
	case !a.Allows():
		d = decision{Behavior: "deny", Message: a.Describe()}
	case h.tool == askTool:
		if d.Input = answered(h.input, h.Question.Queries, a.Answers); d.Input == nil {
			return nil
		}
	case h.tool == planTool:
		// The program takes a plan as approved only with its input, and would go on in the mode that it thinks best.
		d.Input, d.Updates = h.input, []permissionEntry{{Type: "setMode", Mode: modeDefault, Destination: "session"}}
	}
	b, err := json.Marshal(map[string]any{"hookSpecificOutput": map[string]any{"hookEventName": permissionEvent, "decision": d}})
	if err != nil {
		return nil
	}
	return b
}
