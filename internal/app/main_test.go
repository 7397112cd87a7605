package app

import (
	"os"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"drawbridge/internal/process"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == process.SuperviseCommand {
		syscall.Exit(process.Supervise(os.Args[2:])) // os.Exit waits for a second under the race detector
	}
	goleak.VerifyTestMain(m)
}
