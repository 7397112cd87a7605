// Package e2e_test holds the promises of Drawbridge against the built program: it starts the binary as processes of their
// own, between a simulated Telegram and a scripted model, on bbolt and on a real redis-server, and lets people write and
// tap. Processes are killed, stores restarted and responses lost on the way.
//
// What runs here is the program as it is delivered; nothing is replaced in it. Only durations pass faster
// (DRAWBRIDGE_PACE), except where a test says that it keeps the real ones. See docs/testing.md.
package e2e_test

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	// What the program is made of is a part of these tests, so that a result is not taken from the cache when it changed.
	_ "drawbridge/internal/app"
	"drawbridge/runner/runnertest"

	"go.uber.org/goleak"
)

// binary is the path of the built program.
var binary string

// toolsVariable makes the test binary the MCP server of runnertest.
const toolsVariable = "SERVE_TOOLS"

func TestMain(m *testing.M) {
	if os.Getenv(toolsVariable) != "" {
		if err := runnertest.ServeTools(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			syscall.Exit(1)
		}
		syscall.Exit(0) // os.Exit waits for a second under the race detector
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	flag.Parse()
	// These tests mostly wait for processes and for each other's silence: more of them fit at once than there are cores.
	if parallel := flag.Lookup("test.parallel"); parallel.Value.String() == parallel.DefValue {
		if err := parallel.Value.Set("8"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	dir, err := os.MkdirTemp("", "drawbridge-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a leftover in the temporary folder harms nobody
	binary = filepath.Join(dir, "drawbridge")
	// As the Makefile builds it, with what that has compiled already. The race detector needs cgo.
	build := exec.Command("go", "build", "-trimpath", "-o", binary, "drawbridge/cmd/drawbridge")
	if !strings.Contains(os.Getenv("GOFLAGS"), "-race") {
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
	}
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build the program: %v\n%s", err, out)
		return 1
	}
	code := m.Run()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}
