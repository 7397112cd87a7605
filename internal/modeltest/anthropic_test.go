package modeltest_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"drawbridge/internal/modeltest"
)

// say sends a request of the Messages API and returns the answer's status and body.
func say(t *testing.T, s *modeltest.Server, path, key, body string) (status int, answer string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL()+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Api-Key", key)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		b = append(b, "<cut>"...)
	}
	return res.StatusCode, string(b)
}

// messages is a request body.
func messages(stream bool, more string, list ...string) string {
	b, err := json.Marshal(stream)
	if err != nil {
		return err.Error()
	}
	return `{"model":"m","max_tokens":10,"stream":` + string(b) + more + `,"messages":[` + strings.Join(list, ",") + `]}`
}

const (
	hello  = `{"role":"user","content":[{"type":"text","text":"<system-reminder>x</system-reminder>"},{"type":"text","text":"hello"}]}`
	called = `{"role":"assistant","content":[{"type":"text","text":"well"},{"type":"tool_use","id":"c1","name":"Bash","input":{"command":"ls"}}]}`
	done   = `{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":[{"type":"text","text":"a.txt"}]},{"type":"text","text":"and now?"}]}`
)

func TestTheMessagesAPIIsHeardAsAConversation(t *testing.T) {
	t.Parallel()
	s := serve(t, modeltest.Config{Script: func(context.Context, modeltest.Request) modeltest.Reply { return modeltest.Reply{Text: "yes"} }})
	status, _ := say(t, s, "/messages?beta=true", "", messages(true, `,"system":[{"type":"text","text":"be kind"}],"tools":[{"name":"Bash"}],"safeguards":[{"type":"x"}]`, hello, called, done))
	if status != http.StatusOK {
		t.Fatalf("status %d", status)
	}
	r := s.Requests()[0]
	var got []string
	for _, m := range r.Messages {
		got = append(got, m.Role+":"+m.Content+m.ToolCallID)
		for _, c := range m.Calls {
			got = append(got, "call:"+c.ID+c.Name+c.Arguments)
		}
	}
	want := `system:be kind|system:<system-reminder>x</system-reminder>|user:hello|assistant:well|call:c1Bash{"command":"ls"}|tool:a.txtc1|user:and now?`
	if strings.Join(got, "|") != want || !r.Checked || !r.Stream || len(r.Tools) != 1 {
		t.Errorf("heard %q, request %+v", got, r)
	}
}

func TestTheMessagesAPIIsStrict(t *testing.T) {
	t.Parallel()
	s := serve(t, modeltest.Config{Key: "k", Models: []string{"m"}, Window: 1000, Script: func(context.Context, modeltest.Request) modeltest.Reply { return modeltest.Reply{Text: "yes"} }})
	for name, c := range map[string]struct {
		key, body string
		status    int
		says      string
	}{
		"fine":                {"k", messages(false, "", hello, called, done), 200, `"yes"`},
		"another key":         {"x", messages(false, "", hello), 401, "authentication_error"},
		"another model":       {"k", strings.Replace(messages(false, "", hello), `"m"`, `"n"`, 1), 404, "not_found_error"},
		"a call unanswered":   {"k", messages(false, "", hello, called, hello), 400, "no result"},
		"a result of nothing": {"k", messages(false, "", hello, done), 400, "must follow the call"},
		"text before results": {"k", messages(false, "", hello, called, `{"role":"user","content":[{"type":"text","text":"x"},{"type":"tool_result","tool_use_id":"c1"}]}`), 400, "must come before"},
		"no messages":         {"k", messages(false, ""), 400, "at least one message"},
		"too long":            {"k", messages(false, "", `{"role":"user","content":"`+strings.Repeat("x", 5000)+`"}`), 400, "prompt is too long"},
		"no JSON":             {"k", "{", 400, "not JSON"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if status, answer := say(t, s, "/messages", c.key, c.body); status != c.status || !strings.Contains(answer, c.says) {
				t.Errorf("status %d, %s; want %d with %q", status, answer, c.status, c.says)
			}
		})
	}
	if status, answer := say(t, s, "/messages/count_tokens", "k", messages(false, "", hello)); status != 200 || !strings.Contains(answer, `"input_tokens":`) {
		t.Errorf("count_tokens: %d, %s", status, answer)
	}
}

// TestTheMessagesAPIStreams reads a stream back together.
func TestTheMessagesAPIStreams(t *testing.T) {
	t.Parallel()
	s := serve(t, modeltest.Config{Piece: 3, Script: func(context.Context, modeltest.Request) modeltest.Reply {
		return modeltest.Reply{Reasoning: "let me see", Text: "Grüß Gott", Calls: []modeltest.Call{modeltest.CallOf("Bash", map[string]any{"command": "ls -l"})}}
	}})
	_, answer := say(t, s, "/messages", "", messages(true, "", hello))
	var kinds []string
	text, thinking, arguments := "", "", ""
	for line := range strings.Lines(answer) {
		data, is := strings.CutPrefix(line, "data: ")
		if !is {
			continue
		}
		var e struct {
			Type  string `json:"type"`
			Delta struct {
				Text       string `json:"text"`
				Thinking   string `json:"thinking"`
				Partial    string `json:"partial_json"`
				StopReason string `json:"stop_reason"`
			} `json:"delta"`
		}
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			t.Fatal(err)
		}
		if len(kinds) == 0 || kinds[len(kinds)-1] != e.Type {
			kinds = append(kinds, e.Type)
		}
		text, thinking, arguments = text+e.Delta.Text, thinking+e.Delta.Thinking, arguments+e.Delta.Partial
	}
	block := " content_block_start content_block_delta content_block_stop"
	if want := "message_start" + block + block + block + " message_delta message_stop"; strings.Join(kinds, " ") != want {
		t.Errorf("events %q, want %q", kinds, want)
	}
	if text != "Grüß Gott" || thinking != "let me see" || arguments != `{"command":"ls -l"}` {
		t.Errorf("text %q, thinking %q, arguments %q", text, thinking, arguments)
	}
}

// TestTheSafetyCheckIsAnswered tries each answer, and that nobody gets one who does not ask.
func TestTheSafetyCheckIsAnswered(t *testing.T) {
	t.Parallel()
	for check, want := range map[modeltest.Check]string{
		modeltest.CheckPasses:      `"status":{"tool_uses":{"toolu_1_1":{"outcome":"not_flagged","type":"evaluated"}},"type":"available"}`,
		modeltest.CheckFlags:       `"outcome":"flagged","type":"evaluated"`,
		modeltest.CheckSkips:       `{"toolu_1_1":{"type":"skipped"}}`,
		modeltest.CheckFails:       `{"toolu_1_1":{"reason":"timeout","type":"unavailable"}}`,
		modeltest.CheckUnsupported: `"status":{"type":"unsupported"}`,
		modeltest.CheckDisabled:    `"status":{"reason":"disabled","type":"unavailable"}`,
		modeltest.CheckAbsent:      "",
		modeltest.CheckRefused:     "invalid_request_error",
	} {
		for _, stream := range []bool{true, false} {
			for _, asks := range []bool{true, false} {
				s := serve(t, modeltest.Config{Script: func(context.Context, modeltest.Request) modeltest.Reply {
					return modeltest.Reply{Check: check, Calls: []modeltest.Call{modeltest.CallOf("Bash", map[string]any{})}}
				}})
				more := ""
				if asks {
					more = `,"safeguards":[{"type":"dangerous_tool_use"}]`
				}
				_, answer := say(t, s, "/messages", "", messages(stream, more, hello))
				if !asks || want == "" {
					if strings.Contains(answer, "safeguard") || !strings.Contains(answer, "tool_use") {
						t.Errorf("check %q, asked %v: %s", check, asks, answer)
					}
				} else if !strings.Contains(answer, want) {
					t.Errorf("check %q, stream %v: %s, want %s", check, stream, answer, want)
				}
			}
		}
	}
}

// TestTheMessagesAPIFails tries the ways in which an endpoint fails.
func TestTheMessagesAPIFails(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fault  modeltest.Fault
		status int
		says   string
	}{
		"overloaded":         {modeltest.Fault{Status: 529, Code: "overloaded_error"}, 529, "overloaded_error"},
		"limited":            {modeltest.Fault{Status: 429, RetryAfter: "1", Body: "slow down"}, 429, "slow down"},
		"nonsense":           {modeltest.Fault{Body: "<html>"}, 200, "<html>"},
		"cut in the middle":  {modeltest.Fault{Cut: 2}, 200, "<cut>"},
		"an error within it": {modeltest.Fault{Error: "too busy"}, 200, "event: error\n"},
		"whole":              {modeltest.Fault{Whole: true}, 200, `"content":[{"text":"some words`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, modeltest.Config{Piece: 4, Script: func(context.Context, modeltest.Request) modeltest.Reply {
				return modeltest.Reply{Text: "some words of an answer", Fault: c.fault}
			}})
			if status, answer := say(t, s, "/messages", "", messages(true, "", hello)); status != c.status || !strings.Contains(answer, c.says) {
				t.Errorf("status %d, %q; want %d with %q", status, answer, c.status, c.says)
			}
		})
	}
}
