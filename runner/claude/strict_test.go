package claude_test

import (
	"context"
	"log/slog"
	"testing"
)

// strict fails the test on an Error line, and shows the others if it fails.
type strict struct{ t *testing.T }

func (s strict) Enabled(context.Context, slog.Level) bool { return true }

func (s strict) Handle(_ context.Context, r slog.Record) error {
	line := r.Message
	r.Attrs(func(a slog.Attr) bool {
		line += " " + a.String()
		return true
	})
	if r.Level >= slog.LevelError {
		s.t.Errorf("logged: %s", line)
	} else {
		s.t.Logf("%s %s", r.Level, line)
	}
	return nil
}

func (s strict) WithAttrs([]slog.Attr) slog.Handler { return s }
func (s strict) WithGroup(string) slog.Handler      { return s }
