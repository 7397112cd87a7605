package desk

import (
	"context"
	"flag"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"
)

var update = flag.Bool("update", false, "rewrite golden files")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// golden compares got with a file of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s is\n%s\nwant\n%s", name, got, want)
	}
}

// strictLog fails the test on a line of level Error.
type strictLog struct {
	t testing.TB
	slog.Handler
}

func (h strictLog) Handle(_ context.Context, r slog.Record) error {
	if r.Level >= slog.LevelError {
		h.t.Errorf("logged as an error: %s", r.Message)
	}
	return nil
}

func (h strictLog) Enabled(context.Context, slog.Level) bool { return true }

func quiet(t testing.TB) *slog.Logger { return slog.New(strictLog{t, slog.DiscardHandler}) }
