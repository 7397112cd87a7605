package native

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"drawbridge/internal/process"
	"drawbridge/policy"
	"drawbridge/runner"
)

// maxShellTimeout bounds what the model may ask for.
const maxShellTimeout = time.Hour

// errTimeout ends a command that takes too long.
var errTimeout = errors.New("timeout")

func planShell(t *turn, arguments json.RawMessage) (*action, error) {
	var in struct {
		Command string `json:"command"`
		Timeout whole  `json:"timeout"`
	}
	if err := decode(arguments, &in); err != nil {
		return nil, err
	}
	if in.Command == "" {
		return nil, missing("command")
	}
	timeout := t.session.runtime.config.ShellTimeout
	if in.Timeout > 0 {
		timeout = min(time.Duration(in.Timeout)*time.Second, maxShellTimeout)
	}
	return &action{
		item:       runner.Item{Kind: runner.ItemCommand, Title: "Run a command", Command: in.Command},
		question:   runner.Question{Kind: runner.KindCommand, Command: in.Command},
		categories: policy.Classify(in.Command, t.session.workspace()),
		do: func(ctx context.Context, item *runner.Item) (string, error) {
			return t.session.run(ctx, in.Command, timeout, item)
		},
	}, nil
}

// run runs a command line in the workspace. The timeout counts from here: waiting for a person is not its time.
func (s *session) run(ctx context.Context, command string, timeout time.Duration, item *runner.Item) (string, error) {
	home := s.runtime.home()
	if err := os.MkdirAll(home, 0o700); err != nil {
		return "", fmt.Errorf("the home folder of commands: %w", err)
	}
	limited, cancel := context.WithTimeoutCause(ctx, timeout, errTimeout)
	defer cancel()
	out := process.NewCapture(resultLimit)
	exit, err := process.RunSupervised(limited, process.Command{
		Args: []string{s.runtime.shell, "-c", command}, Dir: s.options.Folder, Output: out,
		Env: process.Environment(process.Spec{Home: home, Lookup: os.LookupEnv, Set: s.runtime.config.Env}),
	})
	if err != nil {
		return "", fmt.Errorf("the command could not be started: %w", err)
	}
	item.Output, item.Exit = out.String(), &exit.Code
	if exit.Code != 0 || exit.Stopped {
		item.Status = runner.ItemFailed
	}
	result := item.Output
	if result != "" && result[len(result)-1] != '\n' {
		result += "\n"
	}
	switch {
	case ctx.Err() != nil && exit.Stopped:
		return result + "[The user interrupted the command; it and all that it started were ended.]", nil
	case exit.Stopped:
		return result + fmt.Sprintf("[The command took longer than %s and was ended with all that it started.]", timeout), nil
	}
	return result + fmt.Sprintf("[Exit status %d.]", exit.Code), nil
}
