package app

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"time"

	"drawbridge/bridge/task"
	"drawbridge/internal/process"
)

// taskCommands runs the commands that the owner has run when something happens to a task, on this machine. What a command has
// started ends with it, with its limit, and with us.
type taskCommands struct {
	home   string // its own, absolute
	logger *slog.Logger
}

// hookOutput is how much of what a command says is kept, from its end.
const hookOutput = 1 << 10

// call is task.Config.Call. The error says no more than how the command ended: people read it.
func (c taskCommands) call(ctx context.Context, h task.Hook, k task.Task) error {
	if err := os.MkdirAll(c.home, 0o700); err != nil {
		return fmt.Errorf("its home folder: %w", err)
	}
	folder := cmp.Or(h.Folder, c.home)
	if _, err := os.Stat(folder); err != nil { // a program that is started where nothing is only says that it is not there
		return fmt.Errorf("its folder: %w", err)
	}
	input, err := json.Marshal(noteOf(h, k))
	if err != nil {
		return fmt.Errorf("what it is told of the task: %w", err)
	}
	set := map[string]string{}
	maps.Copy(set, h.Env)
	maps.Copy(set, map[string]string{
		"DRAWBRIDGE_EVENT": string(h.Event), "DRAWBRIDGE_TASK": k.ID, "DRAWBRIDGE_STATE": string(k.State),
		"DRAWBRIDGE_PROJECT": k.Project, "DRAWBRIDGE_CHAT": k.Chat,
	})
	said := &ending{}
	exit, err := process.RunSupervised(ctx, process.Command{
		Args: h.Command, Dir: folder, Stdin: bytes.NewReader(input), Output: said,
		Env: process.Environment(process.Spec{Home: c.home, Lookup: os.LookupEnv, Set: set}),
	})
	if err != nil {
		return err
	}
	c.logger.Debug("a command on a task has ended", "event", string(h.Event), "task", k.ID, "code", exit.Code, "stopped", exit.Stopped, "output", said.text())
	switch {
	case exit.Stopped:
		return fmt.Errorf("it was ended: %w", context.Cause(ctx))
	case exit.Code != 0:
		return fmt.Errorf("it ended with exit code %d", exit.Code)
	}
	return nil
}

// ending keeps the last of what is written. One goroutine writes.
type ending struct{ b []byte }

// Write takes all of b.
func (e *ending) Write(b []byte) (int, error) {
	e.b = append(e.b, b[max(0, len(b)-hookOutput):]...)
	e.b = append([]byte(nil), e.b[max(0, len(e.b)-hookOutput):]...)
	return len(b), nil
}

func (e *ending) text() string { return string(bytes.ToValidUTF8(e.b, nil)) }

// taskNote is what a command reads of its task on its standard input, a JSON object. New fields may be added.
type taskNote struct {
	V     int            `json:"v"`
	Event task.HookEvent `json:"event"`
	Task  taskFacts      `json:"task"`
	// Agent is in the agent's own words, and what it wanted: material, as anything that an agent says.
	Agent agentWords `json:"agent"`
}

type taskFacts struct {
	ID        string         `json:"id"`
	Title     string         `json:"title"`
	State     task.State     `json:"state"`
	Why       task.Reason    `json:"why,omitempty"`
	Mode      string         `json:"mode"`
	Execution task.Execution `json:"execution,omitempty"`
	Project   string         `json:"project"`
	Host      string         `json:"host"`
	Runtime   string         `json:"runtime"`
	Chat      string         `json:"chat"`
	Run       int            `json:"run"`
	Started   time.Time      `json:"started,omitzero"`
	Ended     time.Time      `json:"ended,omitzero"`
	Tokens    int64          `json:"tokens"`
	Asked     int            `json:"asked"`
	Allowed   int            `json:"allowed"`
	Refused   int            `json:"refused"`
	Commands  int            `json:"commands"`
	Changed   int            `json:"changed"`
}

type agentWords struct {
	Said     string        `json:"said"`
	Changes  []noteChange  `json:"changes"`  // the first of the files that it changed
	Refusals []noteRefusal `json:"refusals"` // the first of what it was not allowed to do
}

type noteChange struct {
	Path    string `json:"path"`
	Added   int    `json:"added"`
	Removed int    `json:"removed"`
}

type noteRefusal struct {
	What   string `json:"what"`
	Source string `json:"source"`
	By     string `json:"by,omitempty"`
}

func noteOf(h task.Hook, k task.Task) taskNote {
	n := taskNote{
		V: 1, Event: h.Event,
		Task: taskFacts{
			ID: k.ID, Title: k.Title, State: k.State, Why: k.Why, Mode: string(k.Mode), Execution: k.Execution, Project: k.Project, Host: k.Host,
			Runtime: k.Runtime, Chat: k.Chat,
		},
		Agent: agentWords{Changes: []noteChange{}, Refusals: []noteRefusal{}},
	}
	r := k.Run
	if r == nil {
		return n
	}
	f := &n.Task
	f.Run, f.Execution, f.Tokens = r.N, r.Execution, r.Tokens()
	f.Asked, f.Allowed, f.Refused, f.Commands, f.Changed = r.Done.Asked, r.Done.Allowed, r.Done.Refused, r.Done.Commands, r.Done.Changed
	f.Started, f.Ended = r.Started, r.Ended
	n.Agent.Said = r.Done.Said
	for _, c := range r.Done.Changes {
		n.Agent.Changes = append(n.Agent.Changes, noteChange{Path: c.Path, Added: c.Added, Removed: c.Removed})
	}
	for _, d := range r.Refusals() {
		n.Agent.Refusals = append(n.Agent.Refusals, noteRefusal{What: d.What, Source: string(d.Source), By: d.By})
	}
	return n
}
