package modeltest_test

import (
	"context"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"drawbridge/internal/modeltest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve runs a server until the test ends.
func serve(t *testing.T, c modeltest.Config) *modeltest.Server {
	t.Helper()
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

// post sends a request and returns the status and all that came.
func post(t *testing.T, s *modeltest.Server, key, body string) (int, string, error) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL()+"/chat/completions", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	res, err := client.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = res.Body.Close() }()
	b, err := io.ReadAll(res.Body)
	return res.StatusCode, string(b), err
}

func echo(_ context.Context, r modeltest.Request) modeltest.Reply {
	return modeltest.Reply{Reasoning: "hm", Text: r.Messages[len(r.Messages)-1].Content, Calls: []modeltest.Call{{Name: "t", Arguments: `{"a":1}`}}}
}

const (
	user = `{"role":"user","content":"hello+here, world"}`
	call = `{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"t","arguments":"{}"}}]}`
	tool = `{"role":"tool","tool_call_id":"a","content":"r"}`
)

func body(extra string, messages ...string) string {
	return `{"model":"m","messages":[` + strings.Join(messages, ",") + `]` + extra + `}`
}

func TestServerIsStrict(t *testing.T) {
	t.Parallel()
	s := serve(t, modeltest.Config{Script: echo, Key: "k", Models: []string{"m"}, Window: 100})
	for name, c := range map[string]struct {
		key, body string
		status    int
		want      string
	}{
		"wrong key":         {"x", body("", user), 401, "Incorrect API key"},
		"no JSON":           {"k", "{", 400, "not JSON"},
		"no model":          {"k", `{"messages":[` + user + `]}`, 400, "must provide"},
		"unknown model":     {"k", `{"model":"x","messages":[` + user + `]}`, 404, "model_not_found"},
		"no messages":       {"k", body(""), 400, "must provide"},
		"unknown role":      {"k", body("", `{"role":"god","content":""}`), 400, "unknown role"},
		"no result":         {"k", body("", user, call), 400, "no result"},
		"no result, later":  {"k", body("", user, call, user), 400, "no result"},
		"a foreign result":  {"k", body("", user, tool), 400, "must follow"},
		"two results":       {"k", body("", user, call, tool, tool), 400, "must follow"},
		"a call without id": {"k", body("", user, strings.Replace(call, `"a"`, `""`, 1)), 400, "an id of its own"},
		"a wrong schema":    {"k", body(`,"tools":[{"type":"function","function":{"name":"t","parameters":{}}}]`, user), 400, "invalid schema"},
		"too long":          {"k", body("", `{"role":"user","content":"`+strings.Repeat("x", 500)+`"}`), 400, "context_length_exceeded"},
		"whole":             {"k", body("", user, call, tool, user), 200, `"finish_reason":"tool_calls"`},
		"stream":            {"k", body(`,"stream":true`, user), 200, "data: [DONE]\n\n"},
	} {
		status, got, err := post(t, s, c.key, c.body)
		if err != nil || status != c.status || !strings.Contains(got, c.want) {
			t.Errorf("%s: %d %s %v; want %d with %q", name, status, got, err, c.status, c.want)
		}
	}
	if r := s.Requests(); len(r) != 3 {
		t.Errorf("%d requests reached the model or its window, want 3", len(r))
	}
}

func TestStreamComesInPieces(t *testing.T) {
	t.Parallel()
	s := serve(t, modeltest.Config{Script: echo, Piece: 5})
	_, got, err := post(t, s, "", body(`,"stream":true`, user))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"delta":{"reasoning_content":"hm"}`, `"delta":{"content":"hello"}`, `"delta":{"content":"+here"}`,
		`{"index":0,"id":"call_1_1","type":"function","function":{"name":"t","arguments":""}}`, `"arguments":"{\"a\":"`, `"arguments":"1}"`,
		`"finish_reason":"tool_calls"`, `"prompt_tokens":4`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%s is missing in\n%s", want, got)
		}
	}
}

func TestFaults(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fault  modeltest.Fault
		status int
		want   string
		cut    bool
	}{
		"status":       {modeltest.Fault{Status: 429, Code: "rate", RetryAfter: "3"}, 429, `"code":"rate"`, false},
		"status, body": {modeltest.Fault{Status: 502, Body: "<html>"}, 502, "<html>", false},
		"garbage":      {modeltest.Fault{Body: "garbage"}, 200, "garbage", false},
		"error":        {modeltest.Fault{Error: "died"}, 200, `"message":"died"`, false},
		"cut":          {modeltest.Fault{Cut: 2}, 200, "hm", true},
		"cut late":     {modeltest.Fault{Cut: 1000}, 200, "call_1_1", true},
	} {
		s := serve(t, modeltest.Config{Script: func(ctx context.Context, r modeltest.Request) modeltest.Reply {
			reply := echo(ctx, r)
			reply.Fault = c.fault
			return reply
		}})
		status, got, err := post(t, s, "", body(`,"stream":true`, user))
		if status != c.status || !strings.Contains(got, c.want) || (err != nil) != c.cut || strings.Contains(got, "[DONE]") {
			t.Errorf("%s: %d %s %v", name, status, got, err)
		}
	}
}

func TestWorkspaceHasOneMistake(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "made")
	for range 2 { // also over an existing one
		if err := modeltest.Workspace(dir); err != nil {
			t.Fatal(err)
		}
	}
	run := func(args ...string) (string, error) {
		cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOPROXY=off", "GOFLAGS=", "GOWORK=off", "GOTOOLCHAIN=local")
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	out, err := run("go", "test", "./...")
	if err == nil || !strings.Contains(out, "--- FAIL: TestDiscount") || strings.Contains(out, "FAIL: TestTotal") {
		t.Errorf("the tests say %v\n%s", err, out)
	}
	if out, err := run("go", "vet", "./..."); err != nil {
		t.Errorf("vet says %v\n%s", err, out)
	}
	if out, err := run("git", "status", "--porcelain"); err != nil || out != "" {
		t.Errorf("git says %v\n%s", err, out)
	}
}
