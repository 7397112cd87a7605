package claude

import (
	"encoding/json"
	"log/slog"
	"time"

	"drawbridge/runner"
)

// What the tests look at from outside.

// Data is the runtime's folder.
func (r *Runtime) Data() string { return r.config.Data }

// BypassWords are the words that skip questions.
func BypassWords() []string { return bypassWords() }

// Gone is closed when the session's present process has ended.
func Gone(s runner.Session) <-chan struct{} {
	own, ok := s.(*session)
	if !ok {
		return nil
	}
	own.mu.Lock()
	defer own.mu.Unlock()
	return own.conn.gone
}

// Hurry makes the runtime wait only so long for the end of an interrupted turn.
func Hurry(r *Runtime, d time.Duration) { r.interruptTime = d }

// Servers are the external MCP servers of a session in a folder.
func Servers(r *Runtime, folder string) map[string]json.RawMessage { return r.servers(folder) }

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// Costs are what a session makes of the totals that the program says one after another.
func Costs(resumed bool, totals ...float64) (out []int64) {
	s := &session{paidKnown: !resumed}
	for _, total := range totals {
		out = append(out, s.cost(total))
	}
	return out
}

// Serve is what our own MCP server answers.
func Serve(message json.RawMessage) (any, error) {
	c := &conn{session: &session{}, hosts: true}
	return c.serve(message)
}
