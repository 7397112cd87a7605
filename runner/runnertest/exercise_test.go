package runnertest_test

import (
	"testing"

	"drawbridge/runner"
	"drawbridge/runner/runnertest"
)

func TestScriptedRuntimeConforms(t *testing.T) {
	runnertest.Exercise(t, runnertest.Harness[*testing.T]{
		Parallel: true, MCP: true, Background: true, Multiple: true, Secrets: true, Books: []string{"*.json"}, Table: "testdata/table.json", Record: *runnertest.Record,
		New: func(_ *testing.T, data string) runner.Runtime {
			r := runnertest.New("script", nil)
			r.Data = data
			return r
		},
	})
}
