package claude_test

import (
	"os"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"drawbridge/internal/process"
	"drawbridge/runner/runnertest"
)

// serveVariable makes the test binary the suite's MCP server.
const serveVariable = "SERVE_TOOLS"

func TestMain(m *testing.M) {
	// Where the test binary is another program, it ends by the system call: the race detector holds up os.Exit for a second.
	if len(os.Args) > 1 && os.Args[1] == process.SuperviseCommand {
		syscall.Exit(process.Supervise(os.Args[2:]))
	}
	if transcript := os.Getenv(fakeVariable); transcript != "" {
		syscall.Exit(play(transcript, os.Args[1:]))
	}
	if os.Getenv(serveVariable) != "" {
		if err := runnertest.ServeTools(os.Stdin, os.Stdout); err != nil {
			os.Exit(1)
		}
		return
	}
	if os.Getenv(elicitVariable) != "" {
		if err := serveForm(os.Stdin, os.Stdout); err != nil {
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}
