package codex

import (
	"slices"

	"drawbridge/runner"
)

// Codex's fast feature is a service tier of a thread, for which the account pays more. Seen on 0.171: the catalogue calls the
// tier "priority" Fast; "fast" is taken for it; its echo says "priority", and "default" once it is off. A tier that turn/start
// names holds for later turns too. Where none is named, none is sent to the model, also for a model whose catalogue entry
// has Fast as its own.

// tierStandard switches it off.
const tierStandard = "default"

// fast reports whether a tier is one of those that are faster.
func fast(tier string) bool { return slices.Contains([]string{"priority", "fast", "ultrafast"}, tier) }

// orEmpty is the text, or none where it is missing.
func orEmpty(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// tellFastIsOff tells that the turn behind a plan runs at the usual speed. The lock is held.
func (s *session) tellFastIsOff(t *turn) {
	s.queue.emit(runner.Event{
		Kind: runner.Notice, Turn: t.input.Turn, Text: "The chat has left plan, so Codex's Fast mode is switched off for this session.",
	})
}
