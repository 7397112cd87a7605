//go:build runtimes

package claude_test

import (
	"context"
	"slices"
	"testing"

	"drawbridge/internal/modeltest"
	"drawbridge/runner"
	"drawbridge/runner/claude"
)

// TestRealModels chooses from the list of the real program: what a turn names is in the next request to the endpoint, and
// a session that is resumed has the default again.
func TestRealModels(t *testing.T) {
	s := serve(t, modeltest.Config{Script: func(context.Context, modeltest.Request) modeltest.Reply { return modeltest.Reply{Text: "fine"} }})
	r := live(t, s, claude.Config{})
	c := looked(t, r)
	if len(c.Models) < 2 {
		t.Fatalf("the program lists %+v (%s)", c.Models, c.Problem)
	}
	plain, ok := c.Model("")
	i := slices.IndexFunc(c.Models, func(m runner.Model) bool { return m.ID == "haiku" && slices.Contains(m.Efforts, "low") })
	if !ok || i < 0 {
		t.Fatalf("no default, or no haiku: %+v", c.Models)
	}
	dir := folder(t)
	o := begin(t, r, dir, asking, no)
	ask := func(o *open, in runner.Input) modeltest.Request {
		t.Helper()
		in.Turn, in.Text = "turn", "go"
		if res, err := o.Turn(t.Context(), in); err != nil || res.Outcome != runner.Completed {
			t.Fatalf("%+v, %v", res, err)
		}
		requests := s.Requests()
		return requests[len(requests)-1]
	}
	first := ask(o, runner.Input{})
	chosen := ask(o, runner.Input{Model: "haiku", Effort: "low"})
	if chosen.Model == first.Model || chosen.Effort != "low" || first.Effort == "low" {
		t.Errorf("default %s, %s; chosen %s, %s", first.Model, first.Effort, chosen.Model, chosen.Effort)
	}
	if back := ask(o, runner.Input{}); back.Model != first.Model || back.Effort != first.Effort {
		t.Errorf("after it the default is %s, %s and not %s, %s (%+v)", back.Model, back.Effort, first.Model, first.Effort, plain)
	}
	ask(o, runner.Input{Model: "haiku"})
	token := o.ResumeToken()
	if err := o.Close(); err != nil {
		t.Fatal(err)
	}
	if again := ask(resume(t, r, dir, token, asking, no), runner.Input{}); again.Model != first.Model {
		t.Errorf("resumed, the model is %s and not %s", again.Model, first.Model)
	}
}
