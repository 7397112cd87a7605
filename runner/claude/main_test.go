package claude_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"drawbridge/internal/process"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == process.SuperviseCommand {
		os.Exit(process.Supervise(os.Args[2:]))
	}
	if transcript := os.Getenv(fakeVariable); transcript != "" {
		os.Exit(play(transcript, os.Args[1:]))
	}
	goleak.VerifyTestMain(m)
}
