package claude_test

import (
	"fmt"
	"testing"

	"drawbridge/policy"
	"drawbridge/runner"
	"drawbridge/runner/claude"
)

// TestTheProgramsOwnQuestionIsTheNet has the program ask by itself: without our hook, and behind it.
func TestTheProgramsOwnQuestionIsTheNet(t *testing.T) {
	t.Parallel()
	hooked := func(answer string) string {
		return `{"dir":"in","frame":{"type":"control_request","request_id":"request-hook","request":{"subtype":"hook_callback","callback_id":"drawbridge-gate","tool_use_id":"c","input":{"hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"touch x"},"tool_use_id":"c"}}}}
{"dir":"out","frame":{"type":"control_response","response":{"request_id":"request-hook","response":` + answer + `}}}
`
	}
	ask := func(reason, command, answer string) string {
		return fmt.Sprintf(`{"dir":"in","frame":{"type":"control_request","request_id":"request-ask","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{"command":%q},"tool_use_id":"c","decision_reason_type":%q}}}
{"dir":"out","frame":{"type":"control_response","response":{"request_id":"request-ask","response":%s}}}
`, command, reason, answer)
	}
	const (
		allowed = `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow"}}`
		run     = `{"behavior":"allow","updatedInput":{"command":"touch x"}}`
		other   = `{"behavior":"allow","updatedInput":{"command":"touch y"}}`
		refused = `{"behavior":"deny","message":"The user refused this."}`
	)
	full := runner.Policy{Mode: policy.FullAccess, Interaction: policy.Default}
	for name, c := range map[string]struct {
		frames  string
		policy  runner.Policy
		answer  func(runner.Question) runner.Answer
		persons int
	}{
		"without the hook, yes":            {ask("other", "touch x", run), asking, yes, 1},
		"without the hook, no":             {ask("other", "touch x", refused), asking, no, 1},
		"a person has said yes":            {hooked(allowed) + ask("rule", "touch x", run), asking, yes, 1},
		"another input than was allowed":   {hooked(allowed) + ask("other", "touch y", other), asking, yes, 2},
		"the table has said yes":           {hooked(allowed) + ask("safetyCheck", "touch x", run), full, no, 0},
		"an administrator wants a person":  {hooked(allowed) + ask("rule", "touch x", refused), full, no, 1},
		"an administrator's hook does too": {hooked(allowed) + ask("hook", "touch x", run), full, yes, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, _ := faked(t, ready("default")+turned(uuid, c.frames), claude.Config{})
			o := begin(t, r, folder(t), c.policy, c.answer)
			o.turn("go", runner.Completed)
			if got := len(o.opened); got != c.persons {
				t.Errorf("%d questions for a person, want %d\n%s", got, c.persons, o.story())
			}
		})
	}
}
