//go:build runtimes

package claude_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	goruntime "runtime"
	"strings"
	"testing"

	"drawbridge/internal/chatapi"
	"drawbridge/internal/modeltest"
	"drawbridge/policy"
	"drawbridge/runner"
	"drawbridge/runner/claude"
	"drawbridge/runner/runnertest"
)

// key is invented: the scripted server wants it, and no other would take it.
const key = "sk-ant-invented-for-a-test"

// installed is the real program in the version that the driver was written for.
func installed(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("DRAWBRIDGE_TEST_RUNTIMES")
	if dir == "" {
		install := exec.Command("../../test/runtimes/install")
		var says bytes.Buffer
		install.Stderr = &says
		out, err := install.Output()
		if err != nil {
			t.Fatalf("install: %v\n%s", err, &says)
		}
		dir = strings.TrimSpace(string(out))
	}
	return filepath.Join(dir, "claude")
}

// serve runs a model server until the test ends.
func serve(t *testing.T, c modeltest.Config) *modeltest.Server {
	t.Helper()
	c.Key = key
	if c.Piece == 0 {
		c.Piece = 500
	}
	s, err := modeltest.New(c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return s
}

// live makes a runtime of the real program on a model server.
func live(t *testing.T, s *modeltest.Server, c claude.Config) *claude.Runtime {
	t.Helper()
	c.Program, c.Key, c.BaseURL = cmp.Or(c.Program, installed(t)), chatapi.Key(key), strings.TrimSuffix(s.URL(), "/v1")
	if c.Name == "" {
		c.Name = "claude"
	}
	if c.Data == "" {
		c.Data = t.TempDir()
	}
	// Whatever else the program would reach, it does not: WebFetch asks Anthropic about the site first.
	c.Set = map[string]string{"HTTPS_PROXY": "http://127.0.0.1:9", "NO_PROXY": "127.0.0.1"}
	c.Logger = slog.New(strict{t})
	r, err := claude.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// hands are the tool calls of this runtime.
func hands() modeltest.Hands {
	return modeltest.Hands{
		Run: func(command string) modeltest.Call {
			// The program refuses a long sleep at the beginning of a command, by its words.
			if strings.HasPrefix(command, "sleep 600") {
				command = ":; " + command
			}
			return modeltest.CallOf("Bash", args{"command": command, "description": "run it"})
		},
		Background: func(command string) modeltest.Call {
			return modeltest.CallOf("Bash", args{"command": command, "description": "run it", "run_in_background": true})
		},
		Write: func(p, text string) modeltest.Call {
			return modeltest.CallOf("Write", args{"file_path": p, "content": text})
		},
		Read: func(path string) modeltest.Call { return modeltest.CallOf("Read", args{"file_path": path}) },
		Ask: func(question string, options []string) modeltest.Call {
			var list []args
			for _, o := range options {
				list = append(list, args{"label": o, "description": o})
			}
			return modeltest.CallOf("AskUserQuestion", args{"questions": []any{
				args{"question": question, "header": "Which", "multiSelect": false, "options": list},
			}})
		},
		Questions: func(asked []modeltest.Asked) modeltest.Call {
			var questions []any
			for _, q := range asked {
				var list []args
				for _, o := range q.Options {
					list = append(list, args{"label": o, "description": o})
				}
				questions = append(questions, args{"question": q.Text, "header": q.ID, "multiSelect": q.Multiple, "options": list})
			}
			return modeltest.CallOf("AskUserQuestion", args{"questions": questions})
		},
		Propose: func(arguments string) modeltest.Call {
			return modeltest.Call{Name: "mcp__" + runner.ToolHost + "__" + runner.ProposeTool, Arguments: arguments}
		},
		Plan: func(plan string) modeltest.Reply {
			return modeltest.Reply{Calls: []modeltest.Call{modeltest.CallOf("ExitPlanMode", args{"plan": plan})}}
		},
		Agent: func(line string) modeltest.Call {
			return modeltest.CallOf("Agent", args{"description": "a part", "prompt": line, "subagent_type": "general-purpose"})
		},
		Tool: func(name, path string) modeltest.Call {
			return modeltest.CallOf("mcp__"+runnertest.ToolServer+"__"+name, args{"path": path})
		},
		Refused: refusedMark,
	}
}

// refusedMark stands before the result of a call that was refused, in place of the several ways in which the program says it.
const refusedMark = "Refused: "

var refusals = regexp.MustCompile(`^(PreToolUse:\w+ hook error: )?((The (user|reviewer)|Nobody|This could|This is|The chat's mode|The question was).*)`)

// readFirst marks the calls by which the script reads a file before it writes it, as the program demands.
const readFirst = "toolu_first_"

// steering begins the message by which the program tells the model what a person said in the middle of a turn.
const steering = "The user sent a new message while you were working:\n"

// content is that argument of a Write.
var content = regexp.MustCompile(`"content":"(?:[^"\\]|\\.)*",`)

// follow is modeltest.Follow for this program: it reads before it writes, and writes notes of its plan where the program
// keeps them.
func follow(data string) modeltest.Script {
	plain := modeltest.Follow(hands())
	return func(ctx context.Context, r modeltest.Request) modeltest.Reply {
		var kept []modeltest.Message
		last := modeltest.Message{}
		for _, m := range r.Messages {
			if text, steered := strings.CutPrefix(m.Content, steering); m.Role == "system" && steered {
				m.Role = "user"
				m.Content, _, _ = strings.Cut(text, "\n\n")
			}
			if m.Role == "system" {
				continue
			}
			if m.Role == "user" {
				m.Content = notes.ReplaceAllString(m.Content, "write "+data+"/config/plans/$1.md text")
			}
			if m.Role == "tool" {
				m.Content = refusals.ReplaceAllString(m.Content, refusedMark+"$2")
			}
			last = m
			if m.Role == "tool" && strings.HasPrefix(m.ToolCallID, readFirst) {
				continue
			}
			if m.Role == "assistant" && len(m.Calls) > 0 && strings.HasPrefix(m.Calls[0].ID, readFirst) {
				m.Calls = nil
			}
			kept = append(kept, m)
		}
		if prompted(kept) == "fetch" {
			if last.Role == "tool" {
				return modeltest.Reply{Text: last.Content}
			}
			return modeltest.Reply{Calls: []modeltest.Call{modeltest.CallOf("WebFetch", args{"url": "http://127.0.0.1:9/", "prompt": "read"})}}
		}
		read := strings.HasPrefix(last.ToolCallID, readFirst)
		if strings.Contains(prompted(kept), "/config/plans/") && last.Role == "tool" {
			return modeltest.Reply{Text: last.Content}
		}
		r.Messages = kept
		reply := plain(ctx, r)
		if len(reply.Calls) == 1 && reply.Calls[0].Name == "Write" && !read && !strings.Contains(reply.Calls[0].Arguments, "/config/plans/") {
			call := reply.Calls[0]
			call.ID, call.Name = readFirst+strings.Repeat("x", r.N), "Read"
			call.Arguments = content.ReplaceAllString(call.Arguments, "")
			return modeltest.Reply{Text: reply.Text, Calls: []modeltest.Call{call}}
		}
		if read {
			reply.Text = ""
		}
		return reply
	}
}

// notes is the line that has the agent write notes of its plan.
var notes = regexp.MustCompile(`^note (\w+)$`)

// prompted is the last thing that a person said.
func prompted(messages []modeltest.Message) string {
	p := ""
	for _, m := range messages {
		if m.Role == "user" {
			p = m.Content
		}
	}
	return strings.TrimSpace(p)
}

// tooled is a configuration with the suite's MCP server.
func tooled(t *testing.T, data string) claude.Config {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	server, err := json.Marshal(args{"command": self, "env": args{serveVariable: "1"}})
	if err != nil {
		t.Fatal(err)
	}
	return claude.Config{Data: data, Tools: runnertest.ToolCategories(), MCP: map[string]json.RawMessage{runnertest.ToolServer: server}}
}

// reviews are the states of the program's own reviewer.
func reviews() []runnertest.Review[*testing.T] {
	state := func(state string, c modeltest.Check) runnertest.Review[*testing.T] {
		return runnertest.Review[*testing.T]{
			State: state, Frame: "stream_event message_delta, safeguard_results",
			New: func(t *testing.T, data string) runner.Runtime {
				plain := follow(data)
				return live(t, serve(t, modeltest.Config{Script: func(ctx context.Context, r modeltest.Request) modeltest.Reply {
					reply := plain(ctx, r)
					reply.Check = c
					return reply
				}}), claude.Config{Data: data, Reviewer: true})
			},
		}
	}
	return []runnertest.Review[*testing.T]{
		state(runner.ReviewRequested, modeltest.CheckPasses), state(runner.ReviewApproved, modeltest.CheckPasses),
		state(runner.ReviewDenied, modeltest.CheckFlags), state(runner.ReviewUnavailable, modeltest.CheckAbsent),
		{State: runner.ReviewTimeout, Impossible: "the endpoint tells a check that took too long as one that failed"},
	}
}

func TestClaudeConforms(t *testing.T) {
	runnertest.Exercise(t, runnertest.Harness[*testing.T]{
		MCP: true, Background: true, Daemons: goruntime.GOOS == "linux", Agents: true, Multiple: true,
		Books:   []string{"config/.claude.json*", "config/projects", "config/sessions", "home/.cache", "tmp"},
		Reviews: reviews(), Table: "testdata/table.json", Record: *update,
		New: func(t *testing.T, data string) runner.Runtime {
			return live(t, serve(t, modeltest.Config{Script: follow(data)}), tooled(t, data))
		},
		Crash: func(t *testing.T, data string) {
			if runnertest.KillPrograms("claude", data) == 0 {
				t.Error("there was no program to kill")
			}
		},
		Noisy: func(t *testing.T, data string, wrap func(program, argument string) string) runner.Runtime {
			c := tooled(t, data)
			c.Program = wrap(installed(t), "--input-format")
			return live(t, serve(t, modeltest.Config{Script: follow(data)}), c)
		},
		Deeds: []runnertest.Deed{
			{
				Name: "fetch a page", Category: policy.Fetch, Line: func(string) string { return "fetch" },
				Done: func(w runnertest.Witness) bool { return strings.Contains(w.Told, "Unable to verify") },
			},
			{
				Name: "write notes of a plan", Category: policy.Protected, Line: func(file string) string { return "note " + file },
				Done: func(w runnertest.Witness) bool { return strings.Contains(w.Told, "File created successfully") },
			},
		},
	})
}
