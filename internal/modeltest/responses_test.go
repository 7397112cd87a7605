package modeltest_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"drawbridge/internal/modeltest"
)

// respond sends a request of the Responses API and returns the status and all that came.
func respond(t *testing.T, s *modeltest.Server, body string) (int, string, error) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL()+"/responses", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer sk-test")
	res, err := client.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = res.Body.Close() }()
	b, err := io.ReadAll(res.Body)
	return res.StatusCode, string(b), err
}

func says(r modeltest.Reply) modeltest.Script {
	return func(context.Context, modeltest.Request) modeltest.Reply { return r }
}

const prompt = `{"model":"m","stream":true,"input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]}],
	"tools":[{"type":"custom","name":"apply_patch"},{"type":"function","name":"exec_command"},{"type":"namespace","name":"mcp__x","tools":[{"name":"add"}]}]}`

func TestResponsesStream(t *testing.T) {
	t.Parallel()
	s := serve(t, modeltest.Config{Key: "sk-test", Piece: 3, Script: says(modeltest.Reply{
		Reasoning: "thought", Text: "hello", Usage: modeltest.Usage{Input: 7, Cached: 2, Output: 3},
		Calls: []modeltest.Call{
			{Name: "apply_patch", Arguments: "*** Begin Patch"},
			modeltest.CallOf("exec_command", map[string]string{"cmd": "ls"}),
			{Name: "add", Arguments: "{}"},
			{Name: "mcp__y/sub", Arguments: "{}"},
		},
	})})
	status, body, err := respond(t, s, prompt)
	if err != nil || status != http.StatusOK {
		t.Fatal(status, err)
	}
	for _, want := range []string{
		"event: response.created", `"delta":"tho"`, `"delta":"hel"`, `"delta":"lo"`, `"input":"*** Begin Patch"`, `"type":"custom_tool_call"`,
		`"name":"exec_command"`, `"namespace":"mcp__x"`, `"name":"sub","namespace":"mcp__y"`, "event: response.completed", `"cached_tokens":2`,
		`"total_tokens":10`,
	} {
		if !strings.Contains(body, want) {
			t.Errorf("%s is missing in:\n%s", want, body)
		}
	}
}

func TestResponsesRequestIsUnderstood(t *testing.T) {
	t.Parallel()
	s := serve(t, modeltest.Config{Script: says(modeltest.Reply{})})
	status, body, err := respond(t, s, `{"model":"m","instructions":"be good","input":[
		{"type":"message","role":"developer","content":"rules"},
		{"type":"message","role":"user","content":"<environment_context>x</environment_context>"},
		{"type":"message","role":"user","content":"first"},
		{"type":"message","role":"assistant","content":[{"type":"output_text","text":"a"},{"type":"output_text","text":"b"}]},
		{"type":"reasoning","summary":[]},
		{"type":"function_call","call_id":"1","name":"exec_command","arguments":"{}"},
		{"type":"custom_tool_call","call_id":"2","name":"apply_patch","input":"patch"},
		{"type":"function_call_output","call_id":"1","output":"fine"},
		{"type":"custom_tool_call_output","call_id":"2","output":[{"type":"input_text","text":"patch rejected by user"}]},
		{"type":"message","role":"developer","content":"<refused_action>because</refused_action>"}]}`)
	if err != nil || status != http.StatusOK || strings.Contains(body, "event:") {
		t.Fatal(status, body, err)
	}
	var got []string
	for _, m := range s.Requests()[0].Messages {
		line := m.Role + ":" + m.Content
		for _, c := range m.Calls {
			line += "call " + c.Name + " " + c.Arguments
		}
		got = append(got, line)
	}
	want := []string{
		"system:be good", "system:rules", "system:<environment_context>x</environment_context>", "user:first", "assistant:a\nb",
		"assistant:call exec_command {}", "assistant:call apply_patch patch", "tool:fine",
		"tool:Not done. <refused_action>because</refused_action>\npatch rejected by user",
	}
	if strings.Join(got, "|") != strings.Join(want, "|") {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestResponsesRefusesWhatDoesNotMatch(t *testing.T) {
	t.Parallel()
	s := serve(t, modeltest.Config{Models: []string{"m"}, Script: says(modeltest.Reply{Text: "hello"})})
	for body, want := range map[string]int{
		`{`:                        http.StatusBadRequest,
		`{"model":"m","input":[]}`: http.StatusBadRequest,
		`{"model":"m","input":[{"role":"ghost","content":"x"}]}`:                                       http.StatusBadRequest,
		`{"model":"m","input":[{"type":"function_call","call_id":"1","name":"x"}]}`:                    http.StatusBadRequest,
		`{"model":"m","input":[{"type":"function_call","call_id":"","name":"x"}]}`:                     http.StatusBadRequest,
		`{"model":"m","input":[{"type":"function_call_output","call_id":"1","output":"x"}]}`:           http.StatusBadRequest,
		`{"model":"other","input":[{"role":"user","content":"x"}]}`:                                    http.StatusNotFound,
		`{"model":"m","input":[{"role":"user","content":"x"},{"type":"of_a_new_kind","content":"?"}]}`: http.StatusOK,
	} {
		if status, answer, err := respond(t, s, body); err != nil || status != want {
			t.Errorf("%s: %d %s %v, want %d", body, status, answer, err, want)
		}
	}
}

func TestResponsesFaults(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fault  modeltest.Fault
		status int // 0 for a connection that is cut
		want   string
	}{
		"status":  {modeltest.Fault{Status: 429, Code: "rate_limit_exceeded", RetryAfter: "7"}, 429, "rate_limit_exceeded"},
		"body":    {modeltest.Fault{Status: 500, Body: "<html>"}, 500, "<html>"},
		"garbage": {modeltest.Fault{Body: "no events"}, 200, "no events"},
		"error":   {modeltest.Fault{Error: "overloaded"}, 200, "response.failed"},
		"cut":     {modeltest.Fault{Cut: 1}, 0, "response.output_text.delta"},
		"cut off": {modeltest.Fault{Cut: -1}, 0, ""},
		"whole":   {modeltest.Fault{Whole: true}, 200, `"output_text"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, modeltest.Config{Piece: 2, Script: says(modeltest.Reply{Text: "hello", Fault: c.fault})})
			status, body, err := respond(t, s, prompt)
			if (err != nil) != (c.status == 0) || err == nil && status != c.status || !strings.Contains(body, c.want) {
				t.Errorf("%d %q %v", status, body, err)
			}
			if strings.Contains(body, "response.completed") {
				t.Error("a faulty answer was completed")
			}
		})
	}
}
