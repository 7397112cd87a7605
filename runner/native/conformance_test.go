package native_test

import (
	"flag"
	goruntime "runtime"
	"testing"

	"drawbridge/internal/modeltest"
	"drawbridge/runner"
	"drawbridge/runner/native"
	"drawbridge/runner/runnertest"
)

var record = flag.Bool("record", false, "rewrite the table of what the conformance suite sees")

// hands are the tool calls of this runtime.
func hands() modeltest.Hands {
	return modeltest.Hands{
		Run: func(command string) modeltest.Call { return modeltest.CallOf("shell", args{"command": command}) },
		Write: func(p, text string) modeltest.Call {
			return modeltest.CallOf("write_file", args{"path": p, "content": text})
		},
		Read: func(path string) modeltest.Call { return modeltest.CallOf("read_file", args{"path": path}) },
		Ask: func(question string, options []string) modeltest.Call {
			return modeltest.CallOf("ask_user", args{"questions": []args{{"question": question, "options": options}}})
		},
		Questions: func(list []modeltest.Asked) modeltest.Call {
			var questions []args
			for _, q := range list {
				questions = append(questions, args{"id": q.ID, "question": q.Text, "options": q.Options, "multiple": q.Multiple, "secret": q.Secret})
			}
			return modeltest.CallOf("ask_user", args{"questions": questions})
		},
		Propose: func(arguments string) modeltest.Call {
			return modeltest.Call{Name: runner.ProposeTool, Arguments: arguments}
		},
		Plan: func(plan string) modeltest.Reply {
			return modeltest.Reply{Calls: []modeltest.Call{modeltest.CallOf("submit_plan", args{"plan": plan})}}
		},
		Refused: "Not done.",
	}
}

func TestNativeConforms(t *testing.T) {
	runnertest.Exercise(t, runnertest.Harness[*testing.T]{
		Nonsense: true, Daemons: goruntime.GOOS == "linux", Multiple: true, Secrets: true, Books: []string{"sessions/*"},
		Table: "testdata/table.json", Record: *record,
		New: func(t *testing.T, data string) runner.Runtime {
			srv := serve(t, modeltest.Config{Script: modeltest.Follow(hands()), Piece: 500})
			return runtime(t, native.Config{BaseURL: srv.URL(), Data: data, Window: 1_000_000})
		},
	})
}
