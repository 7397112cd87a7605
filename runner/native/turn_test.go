package native_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"drawbridge/internal/chatapi"
	"drawbridge/internal/modeltest"
	"drawbridge/policy"
	"drawbridge/runner"
	"drawbridge/runner/native"
)

// scripted opens a session on a model whose Nth answer is the Nth reply, and the last one from then on.
func scripted(t *testing.T, c native.Config, replies ...modeltest.Reply) (*session, *modeltest.Server) {
	t.Helper()
	srv := serve(t, modeltest.Config{Script: func(_ context.Context, r modeltest.Request) modeltest.Reply {
		return replies[min(r.N, len(replies))-1]
	}})
	c.BaseURL = srv.URL()
	return open(t, runtime(t, c), runner.Options{Folder: t.TempDir()}, nil), srv
}

// notices are the notices of a session.
func (s *session) notices() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []string
	for _, e := range s.events {
		if e.Kind == runner.Notice {
			all = append(all, e.Text)
		}
	}
	return strings.Join(all, "\n")
}

func TestNonsenseThreeTimesInARowEndsTheTurn(t *testing.T) {
	t.Parallel()
	good := modeltest.CallOf("list_dir", args{})
	for name, c := range map[string]struct {
		replies []modeltest.Reply
		reason  string // empty: the turn completes
	}{
		"unknown tool":     {[]modeltest.Reply{{Calls: []modeltest.Call{{Name: "teleport", Arguments: "{}"}}}}, `there is no tool "teleport"; there are read_file, `},
		"hostile name":     {[]modeltest.Reply{{Calls: []modeltest.Call{{Name: "a\nb\x1b[31m", Arguments: "{}"}}}}, `there is no tool "a\nb\x1b[31m"`},
		"broken arguments": {[]modeltest.Reply{{Calls: []modeltest.Call{{Name: "shell", Arguments: `{"command": "rm -rf`}}}}, `not a JSON object`},
		"no object":        {[]modeltest.Reply{{Calls: []modeltest.Call{{Name: "shell", Arguments: `["rm"]`}}}}, `not a JSON object`},
		"nothing missing":  {[]modeltest.Reply{{Calls: []modeltest.Call{{Name: "shell", Arguments: `null`}}}}, `it is null`},
		"missing argument": {[]modeltest.Reply{{Calls: []modeltest.Call{{Name: "shell", Arguments: ``}}}}, `"command" is missing`},
		"three at once":    {[]modeltest.Reply{{Calls: []modeltest.Call{{Name: "a"}, {Name: "b"}, {Name: "c"}, good}}}, `there is no tool "c"`},
		"nothing":          {[]modeltest.Reply{{}}, "answered nothing 3 times"},
		"filtered":         {[]modeltest.Reply{{Finish: "content_filter"}}, "content filter"},
		"two of them":      {[]modeltest.Reply{{Calls: []modeltest.Call{{Name: "a"}, {Name: "b"}, good, {Name: "a"}, {Name: "b"}}}, {Text: "sorry"}}, ""},
		"same ids":         {[]modeltest.Reply{{Calls: []modeltest.Call{{ID: "x", Name: "list_dir"}, {ID: "x", Name: "list_dir"}}}, {Text: "fine"}}, ""},
		"an error only":    {[]modeltest.Reply{{Calls: []modeltest.Call{modeltest.CallOf("read_file", args{"path": "no"}), modeltest.CallOf("read_file", args{"path": "no"}), modeltest.CallOf("read_file", args{"path": "no"})}}, {Text: "fine"}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, srv := scripted(t, native.Config{}, c.replies...)
			want := runner.Broken
			if c.reason == "" {
				want = runner.Completed
			}
			res := s.turn(t, "go", want)
			if !strings.Contains(res.Reason, c.reason) {
				t.Errorf("reason %q, want %q", res.Reason, c.reason)
			}
			for _, q := range s.questions {
				if q.Kind != runner.KindTool {
					t.Errorf("nonsense was asked: %+v", q)
				}
			}
			// The server refuses a conversation in which calls and results do not match.
			before := len(srv.Requests())
			res, err := s.Turn(t.Context(), runner.Input{Turn: "u", Text: "again"})
			if err != nil || len(srv.Requests()) == before || strings.Contains(res.Reason, "refused the request") {
				t.Errorf("the next turn: %+v, %v", res, err)
			}
		})
	}
}

func TestFailuresOfTheEndpointAreTold(t *testing.T) {
	t.Parallel()
	fault := func(f modeltest.Fault) modeltest.Reply { return modeltest.Reply{Text: "so far, so good", Fault: f} }
	fine := modeltest.Reply{Text: "fine"}
	for name, c := range map[string]struct {
		replies []modeltest.Reply
		reason  string
		notice  string
	}{
		"tried again":      {[]modeltest.Reply{fault(modeltest.Fault{Status: 503}), fault(modeltest.Fault{Status: 429, RetryAfter: "0.01"}), fine}, "", "Attempt 3 follows in"},
		"cut":              {[]modeltest.Reply{fault(modeltest.Fault{Cut: 1}), fine}, "", "cut off; it is asked again"},
		"cut at once":      {[]modeltest.Reply{fault(modeltest.Fault{Cut: -1}), fine}, "", "Attempt 2"},
		"always cut":       {[]modeltest.Reply{fault(modeltest.Fault{Cut: 1})}, "stopped in the middle", "asked again"},
		"dies":             {[]modeltest.Reply{fault(modeltest.Fault{Error: "upstream died"})}, "upstream died", "asked again"},
		"wrong key":        {[]modeltest.Reply{fault(modeltest.Fault{Status: 401})}, "Check the runtime's key", ""},
		"no quota":         {[]modeltest.Reply{fault(modeltest.Fault{Status: 429, Code: "insufficient_quota"})}, "Add credit", ""},
		"garbage":          {[]modeltest.Reply{fault(modeltest.Fault{Body: "data: {{{\n\n"})}, "cannot be understood", ""},
		"without a stream": {[]modeltest.Reply{{Text: "fine", Fault: modeltest.Fault{Whole: true}}}, "", ""},
		"at the limit":     {[]modeltest.Reply{{Text: "fine", Finish: "length"}}, "", "output limit"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, _ := scripted(t, native.Config{}, c.replies...)
			if c.reason == "" {
				s.turn(t, "go", runner.Completed)
				if said := s.said(t); said != "fine" {
					t.Errorf("said %q", said)
				}
			} else if res := s.turn(t, "go", runner.Broken); !strings.Contains(res.Reason, c.reason) {
				t.Errorf("reason %q", res.Reason)
			}
			if n := s.notices(); !strings.Contains(n, c.notice) || (c.notice == "") != (n == "") {
				t.Errorf("notices %q, want %q", n, c.notice)
			}
		})
	}
}

func TestStepsAreLimited(t *testing.T) {
	t.Parallel()
	s, srv := scripted(t, native.Config{MaxSteps: 4}, modeltest.Reply{Calls: []modeltest.Call{modeltest.CallOf("list_dir", args{})}})
	if res := s.turn(t, "go", runner.Broken); !strings.Contains(res.Reason, "4 steps") {
		t.Errorf("reason %q", res.Reason)
	}
	if n := len(srv.Requests()); n != 4 {
		t.Errorf("%d requests", n)
	}
}

func TestInterruptKeepsWhatWasSaid(t *testing.T) {
	t.Parallel()
	srv := serve(t, modeltest.Config{Pace: time.Millisecond, Piece: 4, Script: func(ctx context.Context, r modeltest.Request) modeltest.Reply {
		if r.N == 1 {
			return modeltest.Reply{Text: strings.Repeat("word ", 100_000)}
		}
		return modeltest.Reply{Text: "fine"}
	}})
	ctx, cancel := context.WithCancel(t.Context())
	r := runtime(t, native.Config{BaseURL: srv.URL()})
	s, err := r.Open(t.Context(), runner.Options{Folder: t.TempDir(), Gate: runner.GateFunc(nil), Sink: func(e runner.Event) {
		if e.Kind == runner.ContentDelta {
			cancel()
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close() //nolint:errcheck // nothing is asserted of it here
	if res, err := s.Turn(ctx, runner.Input{Turn: "a", Text: "go"}); err != nil || res.Outcome != runner.Interrupted {
		t.Fatalf("result %+v, %v", res, err)
	}
	if res, err := s.Turn(t.Context(), runner.Input{Turn: "b", Text: "and?"}); err != nil || res.Outcome != runner.Completed {
		t.Fatalf("result %+v, %v", res, err)
	}
	m := srv.Requests()[1].Messages
	if len(m) != 4 || m[2].Role != "assistant" || !strings.HasPrefix(m[2].Content, "word") || len(m[2].Content) > 100_000 {
		t.Errorf("the model is sent %+v", m)
	}
}

func TestTheModelIsToldWhoItIs(t *testing.T) {
	t.Parallel()
	srv := serve(t, modeltest.Config{Script: modeltest.Follow(hands())})
	p := runner.Policy{Mode: policy.FullAccess, Interaction: policy.Default}
	dir := t.TempDir()
	s := open(t, runtime(t, native.Config{BaseURL: srv.URL()}), runner.Options{Folder: dir, Policy: func() runner.Policy { return p }}, nil)
	s.turn(t, "say a", runner.Completed)
	p.Mode = policy.ApprovalRequired
	s.turn(t, "say b", runner.Completed)
	p.Interaction = policy.Plan
	s.turn(t, "say c", runner.Completed)

	r := srv.Requests()
	system := func(i int) string { return r[i].Messages[0].Content }
	if !strings.Contains(system(0), dir) || system(0) != system(1) {
		t.Errorf("the system prompt depends on the mode, or does not name the folder:\n%s\n%s", system(0), system(1))
	}
	if strings.Contains(system(1), "change nothing") || !strings.Contains(system(2), "change nothing") {
		t.Errorf("planning: %s", system(2))
	}
	for i, want := range []string{
		"read_file list_dir glob grep edit write_file shell ask_user update_plan propose_task",
		"read_file list_dir glob grep edit write_file shell ask_user update_plan propose_task",
		"read_file list_dir glob grep ask_user update_plan propose_task submit_plan",
	} {
		if got := strings.Join(r[i].Tools, " "); got != want {
			t.Errorf("request %d offers %s, want %s", i, got, want)
		}
	}
}

func TestAttachedFilesCanBeRead(t *testing.T) {
	t.Parallel()
	elsewhere := t.TempDir()
	write(t, elsewhere, "note.txt", "attached words\n")
	write(t, elsewhere, "other.txt", "other words\n")
	srv := serve(t, modeltest.Config{Script: calling(
		modeltest.CallOf("read_file", args{"path": elsewhere + "/note.txt"}), modeltest.CallOf("read_file", args{"path": elsewhere + "/other.txt"}),
	)})
	s := open(t, runtime(t, native.Config{BaseURL: srv.URL()}), runner.Options{Folder: t.TempDir()}, nil)
	_, err := s.Turn(t.Context(), runner.Input{Turn: "t", Text: "look", Files: []runner.File{{Name: "note.txt", Path: elsewhere + "/note.txt"}}})
	if err != nil {
		t.Fatal(err)
	}
	r := srv.Requests()
	got := results(r[len(r)-1])
	if !strings.Contains(got[0], "attached words") || !strings.Contains(got[1], "outside the workspace") {
		t.Errorf("results %q", got)
	}
	if !strings.Contains(r[0].Messages[1].Content, "note.txt: "+elsewhere) {
		t.Errorf("the prompt is %q", r[0].Messages[1].Content)
	}
}

func TestUsageIsCounted(t *testing.T) {
	t.Parallel()
	s, _ := scripted(t, native.Config{Window: 5000},
		modeltest.Reply{Calls: []modeltest.Call{modeltest.CallOf("list_dir", args{})}, Usage: modeltest.Usage{Input: 100, Cached: 40, Output: 10}},
		modeltest.Reply{Reasoning: "hm", Text: "fine", Usage: modeltest.Usage{Input: 120, Cached: 100, Output: 5}})
	res := s.turn(t, "go", runner.Completed)
	if want := (runner.Usage{Input: 220, Cached: 140, Output: 15, Context: 125, Window: 5000}); res.Usage != want {
		t.Errorf("usage %+v, want %+v", res.Usage, want)
	}
	if i := s.completed(runner.ItemReasoning); len(i) != 1 || i[0].Text != "hm" {
		t.Errorf("reasoning %+v", i)
	}
}

func TestProbe(t *testing.T) {
	t.Parallel()
	srv := serve(t, modeltest.Config{Key: "right", Models: []string{"scripted"}})
	for name, c := range map[string]struct {
		url     string
		key     chatapi.Key
		state   runner.State
		problem string
	}{
		"fine":      {srv.URL(), "right", runner.Ready, ""},
		"wrong key": {srv.URL(), "wrong", runner.Failed, "Check the runtime's key"},
		"no server": {"http://127.0.0.1:1/v1", "", runner.Failed, "cannot be reached"},
		"no list":   {srv.URL() + "/elsewhere", "", runner.Ready, ""},
	} {
		got, err := runtime(t, native.Config{BaseURL: c.url, Key: c.key}).Probe(t.Context())
		if err != nil || got.State != c.state || !strings.Contains(got.Problem, c.problem) || (c.problem == "") != (got.Problem == "") {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	if _, err := native.New(native.Config{Name: "x", Model: "m", Data: "relative"}); err == nil {
		t.Error("a wrong configuration was taken")
	}
	if _, err := runtime(t, native.Config{BaseURL: srv.URL()}).Open(t.Context(), runner.Options{Folder: "/no/such/folder"}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a workspace that is not there: %v", err)
	}
}

func FuzzArguments(f *testing.F) {
	for _, s := range []string{
		`{"path":"a","offset":"3"}`, `{"path":1}`, `null`, `[]`, `{"command":"true","timeout":1e99}`, `{"path":"../\u0000"}`, `{"pattern":"[","glob":"{"}`, "\xff",
		`{"questions":[{"question":"a","options":["b",{"label":"c"}],"id":"q1"},{"question":"a"}]}`, `{"questions":[{"question":"","options":[1]}]}`,
		`{"steps":[{"text":"a","state":"done"}]}`, `{"steps":[]}`, `{"plan":"# A"}`,
	} {
		for _, tool := range []string{"read_file", "list_dir", "glob", "grep", "edit", "write_file", "shell", "ask_user", "update_plan", "submit_plan", "x"} {
			f.Add(tool, s)
		}
	}
	f.Fuzz(func(t *testing.T, tool, arguments string) {
		dir := t.TempDir()
		reached := map[string]bool{}
		refuse := runner.GateFunc(func(_ context.Context, q runner.Question) (runner.Answer, error) {
			reached[q.Tool] = true
			ids := map[string]bool{}
			for _, query := range q.Queries {
				if query.ID == "" || ids[query.ID] || query.Text == "" || len(query.Options) > 50 || len(query.Options) == 0 && !query.Free {
					t.Errorf("%q was asked as %+v", arguments, q.Queries)
				}
				ids[query.ID] = true
			}
			if (q.Kind == runner.KindQuestion) != (len(q.Queries) > 0) {
				t.Errorf("%q was asked as %+v", arguments, q)
			}
			return runner.Answer{}, nil
		})
		result := native.TryCall(t.TempDir(), dir, refuse, chatapi.ToolCall{ID: "a", Name: tool, Arguments: arguments})
		told := slices.ContainsFunc([]string{"Error: ", "Not done.", "Not answered", "The checklist is shown."}, func(words string) bool {
			return strings.HasPrefix(result, words)
		})
		if !told {
			t.Errorf("%s %q: %q", tool, arguments, result)
		}
		var object map[string]any
		if json.Unmarshal([]byte(arguments), &object) != nil && strings.TrimSpace(arguments) != "" && len(reached) > 0 {
			t.Errorf("%s %q was asked", tool, arguments)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("%s %q left %s", tool, arguments, fmt.Sprint(left, err))
		}
	})
}
