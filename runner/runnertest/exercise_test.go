package runnertest_test

import (
	"flag"
	"testing"

	"drawbridge/runner"
	"drawbridge/runner/runnertest"
)

var record = flag.Bool("record", false, "rewrite the table of what the conformance suite sees")

func TestScriptedRuntimeConforms(t *testing.T) {
	runnertest.Exercise(t, runnertest.Harness[*testing.T]{
		Parallel: true, MCP: true, Background: true, Table: "testdata/table.json", Record: *record,
		New: func(_ *testing.T, data string) runner.Runtime {
			r := runnertest.New("script", nil)
			r.Data = data
			return r
		},
	})
}
