package claude_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"drawbridge/internal/process"
	"drawbridge/runner/runnertest"
)

// serveVariable makes the test binary the suite's MCP server.
const serveVariable = "SERVE_TOOLS"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == process.SuperviseCommand {
		os.Exit(process.Supervise(os.Args[2:]))
	}
	if transcript := os.Getenv(fakeVariable); transcript != "" {
		os.Exit(play(transcript, os.Args[1:]))
	}
	if os.Getenv(serveVariable) != "" {
		if err := runnertest.ServeTools(os.Stdin, os.Stdout); err != nil {
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}
