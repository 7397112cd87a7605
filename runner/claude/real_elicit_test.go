//go:build runtimes

package claude_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"drawbridge/internal/modeltest"
	"drawbridge/policy"
	"drawbridge/runner"
	"drawbridge/runner/claude"
)

// TestRealFormsOfServersAreAsked: the program passes the form of an MCP server on, and the answer back to it.
func TestRealFormsOfServersAreAsked(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	server, err := json.Marshal(args{"command": self, "env": args{elicitVariable: "1"}})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		person func(runner.Question) runner.Answer
		told   []string
	}{
		"filled in": {filled, []string{`"action":"accept"`, `"name":"Ada"`, `"size":3`, `"colour":"blue"`}},
		"declined": {func(q runner.Question) runner.Answer {
			if q.Kind == runner.KindQuestion {
				return no(q)
			}
			return yes(q)
		}, []string{`"action":"decline"`}},
		"not answered": {func(q runner.Question) runner.Answer {
			if q.Kind == runner.KindQuestion {
				return late(q)
			}
			return yes(q)
		}, []string{`"action":"cancel"`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := live(t, serve(t, modeltest.Config{Script: calls(modeltest.CallOf("mcp__forms__order", args{}))}), claude.Config{
				MCP: map[string]json.RawMessage{"forms": server},
			})
			o := begin(t, r, folder(t), runner.Policy{Mode: policy.FullAccess, Interaction: policy.Default}, c.person)
			o.turn("go", runner.Completed)
			asked := o.asked()
			if len(asked) != 2 || asked[0].Kind != runner.KindTool || asked[1].Kind != runner.KindQuestion || len(asked[1].Queries) != 3 {
				t.Fatalf("asked %+v\n%s", asked, o.story())
			}
			for _, part := range c.told {
				if !strings.Contains(strings.ReplaceAll(o.story(), `\"`, `"`), part) {
					t.Errorf("the server was not told %s:\n%s", part, o.story())
				}
			}
		})
	}
}
