package claude_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"drawbridge/policy"
	"drawbridge/runner"
	"drawbridge/runner/claude"
)

const uuid = "00000000-0000-4000-8000-00000000000a"

// stopping is the program's answer to the interrupt.
const stopping = `{"dir":"in","frame":{"type":"control_response","response":{"subtype":"success","request_id":"request-stop","response":{}}}}
`

// try opens a session on a fake and returns why it could not.
func try(t *testing.T, transcript string, o runner.Options) error {
	t.Helper()
	r, _ := faked(t, transcript, claude.Config{})
	o.Policy = func() runner.Policy { return asking }
	o.Folder, o.Gate = folder(t), runner.GateFunc(func(context.Context, runner.Question) (runner.Answer, error) { return runner.Answer{}, nil })
	s, err := r.Open(t.Context(), o)
	if err == nil {
		t.Cleanup(func() {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	return err
}

// TestAProgramThatDoesNotHoldToTheGateIsNotUsed tries each thing that has to be true of a process before its first turn.
func TestAProgramThatDoesNotHoldToTheGateIsNotUsed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ from, to, says string }{
		"another mode":         {`"default","hooks`, `"acceptEdits","hooks`, "acceptEdits"},
		"a bypassing mode":     {`"default","hooks`, `"bypassPermissions","hooks`, "bypassPermissions"},
		"hooks not applied":    {`"hooks_applied":true`, `"hooks_applied":false`, "decide each of its calls"},
		"hooks not mentioned":  {`"hooks_applied":true,`, ``, "decide each of its calls"},
		"failure not blocking": {`"hook_on_failure_supported":true`, `"hook_on_failure_supported":false`, "decide each of its calls"},
		"an old version":       {`2.1.332`, `2.1.331`, "older than 2.1.332"},
		"a pre-release":        {`2.1.332`, `2.1.332-beta.1`, "older than 2.1.332"},
		"no version":           {`2.1.332`, `latest`, "does not say its version"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			good := ready("default")
			bad := strings.Replace(good, c.from, c.to, 1)
			if bad == good {
				t.Fatal("the transcript was not changed")
			}
			if err := try(t, bad, runner.Options{}); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("error %v, want one with %q", err, c.says)
			}
		})
	}
	if err := try(t, ready("default"), runner.Options{}); err != nil {
		t.Errorf("a good program: %v", err)
	}
	if err := try(t, strings.Replace(ready("default"), "2.1.332", "2.2.0", 1), runner.Options{}); err != nil {
		t.Errorf("a newer program: %v", err)
	}
}

// TestAStartThatFailsSaysWhy tries the ends of a process before it is ready.
func TestAStartThatFailsSaysWhy(t *testing.T) {
	t.Parallel()
	const id = "11111111-1111-4111-8111-111111111111"
	gone := `{"dir":"in","frame":{"type":"result","subtype":"error_during_execution","is_error":true,"errors":["No conversation found with session ID: ` + id + `"]}}
{"dir":"exit","exit":1,"says":"No conversation found"}
`
	if err := try(t, gone, runner.Options{Resume: id}); !errors.Is(err, runner.ErrNoSession) {
		t.Errorf("an unknown conversation: error %v, want ErrNoSession", err)
	}
	if err := try(t, `{"dir":"exit","exit":1,"says":"the disk is full"}`+"\n", runner.Options{}); err == nil || !strings.Contains(err.Error(), "the disk is full") {
		t.Errorf("an end with last words: error %v", err)
	}
}

// TestWhatRunsUnaskedEndsTheTurn has the program tell the result of a call for which no hook was called.
func TestWhatRunsUnaskedEndsTheTurn(t *testing.T) {
	t.Parallel()
	call := func(content string, failed bool) string {
		return fmt.Sprintf(`{"dir":"in","frame":{"type":"assistant","message":{"id":"m","content":[{"type":"tool_use","id":"c","name":"Bash","input":{"command":"touch x"}}]}}}
{"dir":"in","frame":{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":%q,"is_error":%v}]}}}
`, content, failed)
	}
	for name, c := range map[string]struct {
		frames string
		want   runner.Outcome
	}{
		"it ran":                  {call("done", false), runner.Broken},
		"it ran and failed":       {call("Exit code 3\nout", true), runner.Broken},
		"it was refused as wrong": {call("<tool_use_error>InputValidationError</tool_use_error>", true), runner.Completed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rest := `{"dir":"out","frame":{"type":"control_request","request_id":"request-stop","request":{"subtype":"interrupt"}}}
` + stopping
			if c.want == runner.Completed {
				rest = ""
			}
			r, _ := faked(t, ready("default")+prompted0(uuid)+c.frames+rest+ended0(uuid), claude.Config{})
			o := begin(t, r, folder(t), asking, yes)
			res := o.turn("go", c.want)
			if c.want == runner.Broken && !strings.Contains(res.Reason, "without asking") {
				t.Errorf("reason %q", res.Reason)
			}
		})
	}
}

// TestWhatRunsBeforeItIsAllowedEndsTheTurn has the program tell the result of a call that was refused, and of one about
// which a person still thinks, as if its hook had been killed, timed out or overruled.
func TestWhatRunsBeforeItIsAllowedEndsTheTurn(t *testing.T) {
	t.Parallel()
	const (
		hook = `{"dir":"in","frame":{"type":"control_request","request_id":"request-hook","request":{"subtype":"hook_callback","callback_id":"drawbridge-gate","tool_use_id":"c","input":{"hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"touch x"},"tool_use_id":"c"}}}}
`
		net = `{"dir":"in","frame":{"type":"control_request","request_id":"request-net","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{"command":"touch x"},"tool_use_id":"c"}}}
`
		answered = `{"dir":"answers","size":1}
`
		ran = `{"dir":"in","frame":{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":"done"}]}}}
`
		stop = `{"dir":"out","frame":{"type":"control_request","request_id":"request-stop","request":{"subtype":"interrupt"}}}
` + stopping
	)
	for name, c := range map[string]struct {
		frames string
		answer func(runner.Question) runner.Answer
		want   runner.Outcome
	}{
		"allowed":                  {hook + answered + ran, yes, runner.Completed},
		"allowed by the net":       {net + answered + ran, yes, runner.Completed},
		"refused":                  {hook + answered + ran, no, runner.Broken},
		"refused by the net":       {net + answered + ran, no, runner.Broken},
		"not answered yet":         {hook + ran, nil, runner.Broken},
		"not answered by the net":  {net + ran, nil, runner.Broken},
		"refused, then the net":    {hook + answered + net + answered + ran, no, runner.Broken},
		"its hook was taken back":  {hook + `{"dir":"in","frame":{"type":"control_cancel_request","request_id":"request-hook"}}` + "\n" + ran, nil, runner.Broken},
		"another call was allowed": {hook + answered + strings.ReplaceAll(ran, `"c"`, `"d"`), yes, runner.Broken},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rest := ""
			if c.want == runner.Broken {
				rest = stop
			}
			r, _ := faked(t, ready("default")+prompted0(uuid)+c.frames+rest+ended0(uuid), claude.Config{})
			o := begin(t, r, folder(t), asking, c.answer)
			if res, err := o.Turn(t.Context(), runner.Input{Turn: "turn", Text: "go"}); err == nil && res.Outcome != c.want || err != nil && c.want != runner.Broken {
				t.Errorf("the turn ended as %+v, %v", res, err)
			}
		})
	}
}

// TestAModeThatNobodyAskedForEndsTheProcess has the program change its mode while no turn of ours runs.
func TestAModeThatNobodyAskedForEndsTheProcess(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"acceptEdits", "bypassPermissions", "auto"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			behind := fmt.Sprintf(`{"dir":"in","frame":{"type":"system","subtype":"status","status":null,"permissionMode":%q}}
`, mode)
			r, _ := faked(t, ready("default")+turned(uuid, "")+behind+"{\"dir\":\"process\"}\n"+ready("default")+turned(uuid, ""), claude.Config{})
			o := begin(t, r, folder(t), asking, yes)
			o.turn("go", runner.Completed)
			<-o.gone()
			o.turn("again", runner.Completed)
		})
	}
}

// TestAModeThatNobodyAskedForEndsTheTurn has the program change its mode in the middle of a turn.
func TestAModeThatNobodyAskedForEndsTheTurn(t *testing.T) {
	t.Parallel()
	for mode, want := range map[string]runner.Outcome{
		"acceptEdits": runner.Broken, "bypassPermissions": runner.Broken, "auto": runner.Broken, "news": runner.Broken, "plan": runner.Completed,
	} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			between := fmt.Sprintf(`{"dir":"in","frame":{"type":"system","subtype":"status","status":null,"permissionMode":%q}}
`, mode)
			if want == runner.Broken {
				between += `{"dir":"out","frame":{"type":"control_request","request_id":"request-stop","request":{"subtype":"interrupt"}}}
` + stopping
			}
			r, _ := faked(t, ready("default")+turned(uuid, between), claude.Config{})
			begin(t, r, folder(t), asking, yes).turn("go", want)
		})
	}
}

// TestNoiseIsSkipped sends what is no frame, what nobody knows, and what is large.
func TestNoiseIsSkipped(t *testing.T) {
	t.Parallel()
	noise := `{"dir":"in","raw":"no frame"}
{"dir":"in","raw":"{\"type\":\"assistant\",\"message\":7}"}
{"dir":"in","raw":"{\"type\":\"stream_event\",\"event\":[]}"}
{"dir":"in","raw":"{\"type\":\"user\",\"message\":{\"content\":{}}}"}
{"dir":"in","raw":"{\"type\":\"system\",\"subtype\":\"of_no_such_kind\"}"}
{"dir":"in","raw":"{\"type\":\"result\",\"usage\":\"none\"}"}
{"dir":"in","size":5000000}
{"dir":"in","frame":{"type":"control_request","request_id":"unknown","request":{"subtype":"of_no_such_kind"}}}
{"dir":"in","frame":{"type":"control_request","request_id":"broken","request":{"subtype":"can_use_tool","tool_name":7}}}
{"dir":"in","frame":{"type":"control_request","request_id":"other","request":{"subtype":"hook_callback","callback_id":"another","input":{"hook_event_name":"PreToolUse"}}}}
{"dir":"answers","size":3}
`
	r, file := faked(t, ready("default")+prompted0(uuid)+noise+ended0(uuid), claude.Config{})
	o := begin(t, r, folder(t), asking, yes)
	o.turn("go", runner.Completed)
	if err := o.Close(); err != nil {
		t.Error(err)
	}
	b, err := os.ReadFile(file + receivedFile)
	if err != nil {
		t.Fatal(err)
	}
	for request, want := range map[string]string{"unknown": `"subtype":"error"`, "broken": `"behavior":"deny"`, "other": `"subtype":"error"`} {
		found := false
		for line := range strings.Lines(string(b)) {
			found = found || strings.Contains(line, `"request_id":"`+request+`"`) && strings.Contains(line, want)
		}
		if !found {
			t.Errorf("request %q was not answered with %s:\n%s", request, want, b)
		}
	}
}

// TestACrashIsToldAndTheSessionGoesOn ends the process in the middle of a turn.
func TestACrashIsToldAndTheSessionGoesOn(t *testing.T) {
	t.Parallel()
	first := ready("default") + prompted0(uuid) + `{"dir":"exit","exit":3,"says":"out of memory"}
`
	r, file := faked(t, first+"{\"dir\":\"process\"}\n"+ready("default")+turned(uuid, ""), claude.Config{})
	o := begin(t, r, folder(t), asking, yes)
	if _, err := o.Turn(t.Context(), runner.Input{Turn: "turn", Text: "go"}); err == nil || !strings.Contains(err.Error(), "out of memory") {
		t.Errorf("error %v", err)
	}
	o.turn("again", runner.Completed)
	if text := sent(t, o, file); strings.Count(text, "--session-id") != 1 || strings.Count(text, "--resume") != 1 {
		t.Errorf("started with\n%s", text)
	}
}

// TestAProgramThatDoesNotStopIsEnded interrupts a turn that goes on regardless.
func TestAProgramThatDoesNotStopIsEnded(t *testing.T) {
	t.Parallel()
	r, _ := faked(t, ready("default")+prompted0(uuid), claude.Config{})
	claude.Hurry(r, 50*time.Millisecond)
	o := begin(t, r, folder(t), asking, yes)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		o.await("the beginning", func(e runner.Event) bool { return e.Kind == runner.SessionStarted })
		cancel()
	}()
	res, err := o.Turn(ctx, runner.Input{Turn: "turn", Text: "go"})
	if err != nil || res.Outcome != runner.Interrupted {
		t.Errorf("result %+v, error %v", res, err)
	}
	<-o.gone()
}

// TestProbeSaysWhatIsWrong tries each "no" of the probe, and that none of them holds an invented version.
func TestProbeSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	said := func(version, auth string) string {
		return fmt.Sprintf("{\"dir\":\"version\",\"raw\":%q}\n{\"dir\":\"auth\",\"raw\":%q}\n", version, auth)
	}
	const in, out = `{"loggedIn":true}`, `{"loggedIn":false,"authMethod":"none"}`
	for name, c := range map[string]struct {
		transcript, version, says string
		cause                     runner.Cause
	}{
		"ready":               {said("2.1.332 (Claude Code)", in) + ready("default"), "2.1.332", "", ""},
		"newer":               {said("3.0.0", in) + ready("default"), "3.0.0", "", ""},
		"too old":             {said("2.0.9 (Claude Code)", in) + ready("default"), "2.0.9", "2.0.9 is older than 2.1.332", runner.CauseOld},
		"no version":          {said("Claude Code", in) + ready("default"), "", "does not say its version", runner.CauseVersion},
		"not logged in":       {said("2.1.332", out) + ready("default"), "2.1.332", "/login", runner.CauseLogin},
		"login unclear":       {said("2.1.332", "what?") + ready("default"), "2.1.332", "", ""},
		"it does not let ask": {said("2.1.332", in) + strings.Replace(ready("default"), `"hooks_applied":true,`, "", 1), "2.1.332", "decide each of its calls", runner.CauseUnheld},
		"it does not start":   {said("2.1.332", in) + `{"dir":"exit","exit":1,"says":"broken pieces"}` + "\n", "2.1.332", "broken pieces", runner.CauseProbe},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, _ := faked(t, c.transcript, claude.Config{})
			got, err := r.Probe(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			want := runner.Ready
			if c.says != "" {
				want = runner.Failed
			}
			if got.State != want || got.Version != c.version || !strings.Contains(got.Problem, c.says) || (got.Problem == "") != (c.says == "") || got.Cause != c.cause {
				t.Errorf("probe says %+v", got)
			}
			if want == runner.Ready {
				for _, m := range policy.Modes() {
					if got.Modes[m] != m {
						t.Errorf("mode %s becomes %q", m, got.Modes[m])
					}
				}
			}
		})
	}
	t.Run("not installed", func(t *testing.T) {
		t.Parallel()
		r, err := claude.New(claude.Config{Name: "claude", Program: "no-such-program", Data: t.TempDir(), Logger: slog.New(strict{t})})
		if err != nil {
			t.Fatal(err)
		}
		got, err := r.Probe(t.Context())
		if err != nil || got.State != runner.Failed || !strings.Contains(got.Problem, "is not installed") || got.Version != "" || got.Cause != runner.CauseMissing {
			t.Errorf("probe says %+v, %v", got, err)
		}
	})
}

// TestTheLoginIsLinked tries that both sides use one file, and that a folder of our own stands before it.
func TestTheLoginIsLinked(t *testing.T) {
	t.Parallel()
	data, login := t.TempDir(), t.TempDir()
	stale := filepath.Join(data, "config", ".credentials.json")
	for range 2 {
		r, _ := faked(t, ready("default"), claude.Config{Data: data, Login: login})
		o := begin(t, r, folder(t), asking, yes)
		if err := o.Close(); err != nil {
			t.Error(err)
		}
		if to, err := os.Readlink(stale); err != nil || to != filepath.Join(login, ".credentials.json") {
			t.Errorf("the credentials lead to %q, %v", to, err)
		}
		if err := errors.Join(os.Remove(stale), os.WriteFile(stale, []byte("old"), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
}

// TestNewRefusesWhatLoosens tries configurations.
func TestNewRefusesWhatLoosens(t *testing.T) {
	t.Parallel()
	good := claude.Config{Name: "claude", Data: t.TempDir(), Logger: slog.New(strict{t})}
	if _, err := claude.New(good); err != nil {
		t.Errorf("a good configuration: %v", err)
	}
	for _, name := range []string{"HOME", "CLAUDE_CONFIG_DIR", "IS_SANDBOX", "CLAUDE_CODE_EVEN_MORE_DANGEROUSLY_SKIP_PERMISSIONS", "NODE_OPTIONS"} {
		bad := good
		bad.Set = map[string]string{name: "1"}
		if _, err := claude.New(bad); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}
