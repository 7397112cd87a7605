//go:build runtimes

package claude_test

import (
	"strings"
	"testing"

	"drawbridge/internal/modeltest"
	"drawbridge/runner"
	"drawbridge/runner/claude"
)

// TestOurServerKeepsTheReviewer: our own server is no external one, so that the program's reviewer stays; and a proposal is
// a person's all the same, although the reviewer would let everything pass.
func TestOurServerKeepsTheReviewer(t *testing.T) {
	t.Parallel()
	proposal := modeltest.CallOf("mcp__drawbridge__propose_task", args{"title": "Later", "steps": []string{"Run the tests."}})
	r := live(t, serve(t, modeltest.Config{Script: checked(modeltest.CheckPasses, bash("touch one"), proposal)}), claude.Config{Reviewer: true})
	o := begin(t, r, folder(t), reviewing, func(q runner.Question) runner.Answer {
		return runner.Answer{Decision: runner.Allowed, Action: runner.ActionMake, Source: runner.SourceUser, Made: "p4711"}
	})
	o.turn("go", runner.Completed)
	if q := o.asked(); len(q) != 1 || q[0].Kind != runner.KindProposal || !o.exists("one") || o.states() != "requested approved" || len(o.told(runner.PolicyChanged)) != 0 {
		t.Errorf("asked %+v, reviewed %q\n%s", q, o.states(), o.story())
	}
	var told string
	for _, e := range o.told(runner.ItemCompleted) {
		told += e.Item.Text + "\n"
	}
	if !strings.Contains(told, "its id is p4711") {
		t.Errorf("the agent was told %q", told)
	}
}
