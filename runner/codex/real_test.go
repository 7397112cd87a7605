//go:build runtimes

package codex_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"drawbridge/internal/modeltest"
	"drawbridge/policy"
	"drawbridge/runner"
	"drawbridge/runner/codex"
	"drawbridge/runner/runnertest"
)

// realProgram is the codex that test/runtimes/install installed.
func realProgram(t *testing.T) string {
	t.Helper()
	bin := os.Getenv("DRAWBRIDGE_TEST_RUNTIMES")
	if bin == "" {
		t.Fatal("DRAWBRIDGE_TEST_RUNTIMES does not say where the programs are; run make test-runtimes")
	}
	return filepath.Join(bin, "codex")
}

// realModel is a model of codex's own list, whose tools are what the scripts call.
const realModel = "gpt-5.5"

func model(t *testing.T, c modeltest.Config) *modeltest.Server {
	t.Helper()
	c.Key = "sk-invented"
	srv, err := modeltest.New(c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- srv.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return srv
}

func realConfig(t *testing.T, folder string, srv *modeltest.Server) codex.Config {
	t.Helper()
	return codex.Config{
		Program: realProgram(t), Data: folder, Model: realModel, Logger: logger(t),
		Provider:    &codex.Provider{Name: "scripted", URL: srv.URL(), Key: "INVENTED_KEY"},
		Environment: map[string]string{"INVENTED_KEY": "sk-invented"},
	}
}

func installed(t *testing.T, c codex.Config) *codex.Runtime {
	t.Helper()
	r, err := codex.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// escalated is a command that is to run outside of the sandbox, which codex always asks for.
func escalated(command string) modeltest.Call {
	return modeltest.CallOf("exec_command", map[string]any{
		"cmd": command, "sandbox_permissions": "require_escalated", "justification": "May I run this?", "yield_time_ms": 30_000,
	})
}

// confined is a command in the sandbox.
func confined(command string) modeltest.Call {
	return modeltest.CallOf("exec_command", map[string]any{"cmd": command})
}

func hands() modeltest.Hands {
	return modeltest.Hands{
		Run:  escalated,
		Read: func(path string) modeltest.Call { return confined("cat " + path) },
		Write: func(path, text string) modeltest.Call {
			patch := "*** Begin Patch\n*** Add File: " + path + "\n+" + text + "*** End Patch"
			if path == "old.txt" { // which holds a line already
				patch = "*** Begin Patch\n*** Update File: " + path + "\n@@\n-before\n+" + text + "*** End Patch"
			}
			return modeltest.Call{Name: "apply_patch", Arguments: patch}
		},
		Ask: func(question string, options []string) modeltest.Call {
			list := []map[string]string{}
			for _, o := range options {
				list = append(list, map[string]string{"label": o, "description": o})
			}
			return modeltest.CallOf("request_user_input", map[string]any{"questions": []any{map[string]any{
				"id": "q", "header": "Question", "question": question, "options": list,
			}}})
		},
		Questions: func(asked []modeltest.Asked) modeltest.Call {
			var questions []any
			for _, q := range asked {
				list := []map[string]string{}
				for _, o := range q.Options {
					list = append(list, map[string]string{"label": o, "description": o})
				}
				questions = append(questions, map[string]any{"id": q.ID, "header": "Question", "question": q.Text, "options": list})
			}
			return modeltest.CallOf("request_user_input", map[string]any{"questions": questions})
		},
		Propose: func(arguments string) modeltest.Call {
			return modeltest.Call{Name: runner.ProposeTool, Arguments: arguments}
		},
		Plan: func(plan string) modeltest.Reply {
			return modeltest.Reply{Text: "<proposed_plan>\n" + plan + "\n</proposed_plan>"}
		},
		Agent: func(line string) modeltest.Call {
			return modeltest.CallOf("multi_agent_v1/spawn_agent", map[string]string{"message": line})
		},
		Sandboxed: confined,
		Background: func(command string) modeltest.Call {
			return modeltest.CallOf("exec_command", map[string]any{
				"cmd": command, "sandbox_permissions": "require_escalated", "justification": "May I run this?", "yield_time_ms": 250,
			})
		},
		Tool: func(name, path string) modeltest.Call {
			return modeltest.CallOf("mcp__"+runnertest.ToolServer+"/"+name, map[string]any{"path": path})
		},
		Refused: modeltest.RefusedResult,
	}
}

func TestRealCodexConforms(t *testing.T) {
	conforming := func(t *testing.T, folder string) codex.Config {
		t.Helper()
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		c := realConfig(t, folder, model(t, modeltest.Config{Script: modeltest.Follow(hands()), Piece: 500}))
		c.Servers = map[string]codex.Server{runnertest.ToolServer: {Command: self, Environment: map[string]string{toolsVariable: "1"}}}
		c.Tools = runnertest.ToolCategories()
		return c
	}
	runnertest.Exercise(t, runnertest.Harness[*testing.T]{
		MCP: true, Background: true, Daemons: true, Sandboxed: true, Agents: true,
		Books: []string{"codex/*.sqlite*", "codex/.sqlite-maintenance.lock", "codex/sessions", "codex/shell_snapshots", "codex/thread-writer-locks", "codex/tmp"},
		Table: "testdata/table.json", Record: *update,
		New: func(t *testing.T, folder string) runner.Runtime { return installed(t, conforming(t, folder)) },
		Crash: func(t *testing.T, folder string) {
			if runnertest.KillPrograms("codex", folder) == 0 {
				t.Error("no codex was killed")
			}
		},
		Noisy: func(t *testing.T, folder string, wrap func(program, argument string) string) runner.Runtime {
			c := conforming(t, folder)
			native, err := filepath.EvalSymlinks(c.Program)
			if err != nil {
				t.Fatal(err)
			}
			c.Program, c.Readable = wrap(native, "app-server"), []string{filepath.Dir(native)}
			return installed(t, c)
		},
		Deeds: []runnertest.Deed{{
			Name: "write instructions for agents, that were not there, in the sandbox", Category: policy.Protected,
			Line: func(file string) string { return "sandboxed mkdir " + file + "; touch " + file + "/CLAUDE.md" },
			Done: func(w runnertest.Witness) bool { return w.Exists(w.File + "/CLAUDE.md") },
		}},
	})
}
