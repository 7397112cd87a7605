//go:build runtimes

package claude_test

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"drawbridge/internal/chatapi"
	"drawbridge/internal/modeltest"
	"drawbridge/runner"
	"drawbridge/runner/claude"
	"drawbridge/runner/runnertest"
)

// key is invented: the scripted server wants it, and no other would take it.
const key = "sk-ant-invented-for-a-test"

// installed is the real program in the version that the driver was written for.
func installed(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("DRAWBRIDGE_RUNTIMES")
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

// real makes a runtime of the real program on a model server.
func real(t *testing.T, s *modeltest.Server, c claude.Config) *claude.Runtime {
	t.Helper()
	c.Program, c.Key, c.BaseURL = installed(t), chatapi.Key(key), strings.TrimSuffix(s.URL(), "/v1")
	if c.Name == "" {
		c.Name = "claude"
	}
	if c.Data == "" {
		c.Data = t.TempDir()
	}
	c.Logger = slog.New(strict{t})
	r, err := claude.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// hands are the tool calls of this runtime.
func hands() modeltest.Hands {
	type args = map[string]any
	return modeltest.Hands{
		Run: func(command string) modeltest.Call {
			// The program refuses a long sleep at the beginning of a command, by its words.
			command = strings.Replace(command, "sleep 600 &", "tail -f /dev/null &", 1)
			return modeltest.CallOf("Bash", args{"command": command, "description": "run it"})
		},
		Write: func(p, text string) modeltest.Call {
			return modeltest.CallOf("Write", args{"file_path": p, "content": text})
		},
		Read:    func(path string) modeltest.Call { return modeltest.CallOf("Read", args{"file_path": path}) },
		Refused: refusedMark,
	}
}

// refusedMark stands before the result of a call that was refused, in place of the several ways in which the program says it.
const refusedMark = "Refused: "

var refusals = regexp.MustCompile(`^(PreToolUse:\w+ hook error: )?((The (user|reviewer)|Nobody|This could|This is|The chat's mode|The question was).*)`)

// readFirst marks the calls by which the script reads a file before it writes it, as the program demands.
const readFirst = "toolu_first_"

var asked = regexp.MustCompile(`^ask ([^|]*)\|(.*)$`)

// follow is modeltest.Follow for this program: it reads before it writes, and asks people with the program's tool.
func follow() modeltest.Script {
	plain := modeltest.Follow(hands())
	return func(ctx context.Context, r modeltest.Request) modeltest.Reply {
		var kept []modeltest.Message
		last := modeltest.Message{}
		for _, m := range r.Messages {
			if m.Role == "system" {
				continue
			}
			last = m
			if m.Role == "tool" {
				m.Content = refusals.ReplaceAllString(m.Content, refusedMark+"$2")
			}
			if m.Role == "tool" && strings.HasPrefix(m.ToolCallID, readFirst) {
				continue
			}
			if m.Role == "assistant" && len(m.Calls) > 0 && strings.HasPrefix(m.Calls[0].ID, readFirst) {
				m.Calls = nil
			}
			kept = append(kept, m)
		}
		read := strings.HasPrefix(last.ToolCallID, readFirst)
		r.Messages = kept
		if m := asked.FindStringSubmatch(prompted(kept)); m != nil {
			if last.Role == "tool" {
				return modeltest.Reply{Text: last.Content}
			}
			var options []map[string]any
			for o := range strings.SplitSeq(m[2], "|") {
				options = append(options, map[string]any{"label": o, "description": o})
			}
			return modeltest.Reply{Calls: []modeltest.Call{modeltest.CallOf("AskUserQuestion", map[string]any{
				"questions": []any{map[string]any{"question": m[1], "header": "Which", "multiSelect": false, "options": options}},
			})}}
		}
		reply := plain(ctx, r)
		if len(reply.Calls) == 1 && reply.Calls[0].Name == "Write" && !read {
			call := reply.Calls[0]
			call.ID, call.Name = readFirst+strings.Repeat("x", r.N), "Read"
			call.Arguments = regexp.MustCompile(`"content":"(?:[^"\\]|\\.)*",`).ReplaceAllString(call.Arguments, "")
			return modeltest.Reply{Text: reply.Text, Calls: []modeltest.Call{call}}
		}
		if read {
			reply.Text = ""
		}
		return reply
	}
}

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

func TestClaudeConforms(t *testing.T) {
	runnertest.Exercise(t, runnertest.Harness[*testing.T]{
		New: func(t *testing.T, data string) runner.Runtime {
			return real(t, serve(t, modeltest.Config{Script: follow()}), claude.Config{Data: data})
		},
	})
}
