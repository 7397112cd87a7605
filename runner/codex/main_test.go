package codex_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"drawbridge/internal/process"
	"drawbridge/runner/runnertest"
)

// toolsVariable makes the test binary the suite's MCP server.
const toolsVariable = "DRAWBRIDGE_TEST_TOOLS"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == process.SuperviseCommand {
		syscall.Exit(process.Supervise(os.Args[2:])) // os.Exit waits for a second under the race detector
	}
	if os.Getenv(toolsVariable) != "" {
		if err := runnertest.ServeTools(os.Stdin, os.Stdout); err != nil {
			syscall.Exit(1)
		}
		syscall.Exit(0)
	}
	if replay := os.Getenv(replayVariable); replay != "" {
		os.Exit(runReplay(replay))
	}
	goleak.VerifyTestMain(m)
}

// logger fails the test on an Error line.
func logger(t *testing.T) *slog.Logger {
	t.Helper()
	return slog.New(slog.NewTextHandler(lines{t}, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

type lines struct{ t *testing.T }

func (l lines) Write(b []byte) (int, error) {
	l.t.Helper()
	if l.t.Context().Err() == nil { // a test that is over takes no lines
		l.t.Logf("%s", b)
	}
	return len(b), nil
}

// data is a folder for codex. It is not below the folder for temporary files, where codex would not make its helpers.
func data(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}
