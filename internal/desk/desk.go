// Package desk connects agents that a person runs in terminals of their own: what they ask there is asked in a chat as
// well, and whoever answers first decides.
//
// An agent runs a hook for each permission request; the hook is this program, which lives as long as the question does.
// It hands the request to the host through its control socket (Client), the host asks a person (Server), and the answer
// goes back the same way. Install puts the hook into an agent's settings and Uninstall takes it out again.
//
// It guarantees that nothing but a person's answer reaches an agent: no table, no grant and no reviewer of a chat speaks
// for a terminal. Whatever fails (no host, no chat, a request that is not understood, nobody in time) is silence, after
// which the terminal asks as it always does. It sends the agent's request and the name of its session, and nothing of its
// environment.
package desk

import (
	"errors"
	"fmt"

	"drawbridge/runner"
	"drawbridge/runner/claude"
	"drawbridge/runner/codex"
)

// Agent is a kind of program whose terminals can be connected.
type Agent string

// The agents.
const (
	Claude Agent = "claude"
	Codex  Agent = "codex"
)

// ErrAgent says that an agent is not known.
var ErrAgent = errors.New("desk: no such agent")

// ParseAgent returns the agent of a name.
func ParseAgent(name string) (Agent, error) {
	switch a := Agent(name); a {
	case Claude, Codex:
		return a, nil
	}
	return "", ErrAgent
}

// maxRequest bounds what an agent gives its hook: more can't be read by a person.
const maxRequest = 4 << 20

// request is a question of an agent and what answers it.
type request struct {
	session, folder string
	question        runner.Question
	// answer is what the hook prints; nil leaves the question to the terminal.
	answer func(runner.Answer) []byte
}

// parse reads what an agent gives its hook.
func (a Agent) parse(raw []byte, home string) (request, error) {
	switch a {
	case Claude:
		h, err := claude.ParseHook(raw, home)
		return request{h.Session, h.Folder, h.Question, h.Answer}, err
	case Codex:
		h, err := codex.ParseHook(raw, home)
		return request{h.Session, h.Folder, h.Question, h.Answer}, err
	}
	return request{}, fmt.Errorf("%w: %q", ErrAgent, string(a))
}
