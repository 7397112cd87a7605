//go:build runtimes

package claude_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"drawbridge/internal/modeltest"
	"drawbridge/policy"
	"drawbridge/runner"
	"drawbridge/runner/claude"
)

var reviewing = runner.Policy{Mode: policy.Auto, Interaction: policy.Default}

// checked is a script whose answers have the check's result.
func checked(c modeltest.Check, list ...modeltest.Call) modeltest.Script {
	plain := calls(list...)
	return func(ctx context.Context, r modeltest.Request) modeltest.Reply {
		reply := plain(ctx, r)
		reply.Check = c
		return reply
	}
}

func bash(command string) modeltest.Call {
	return modeltest.CallOf("Bash", args{"command": command, "description": "run it"})
}

// states are the steps of the reviewer that were told.
func (o *open) states() string {
	var s []string
	for _, e := range o.told(runner.ReviewChanged) {
		if e.Review.Source != "claude" || e.Review.Item == "" {
			o.t.Errorf("a step of the reviewer was told as %+v", e.Review)
		}
		s = append(s, e.Review.State)
	}
	return strings.Join(s, " ")
}

// TestAutoIsReviewedByTheProgramOrAsked tries each answer of the program's own reviewer: without a clear yes, a person
// decides, at once and in the same call.
func TestAutoIsReviewedByTheProgramOrAsked(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		check  modeltest.Check
		states string
		asked  int // for two commands
		lost   bool
	}{
		{modeltest.CheckPasses, "requested approved requested approved", 0, false},
		{modeltest.CheckFlags, "requested denied requested denied", 2, false},
		{modeltest.CheckSkips, "requested unavailable requested unavailable", 2, false},
		{modeltest.CheckFails, "requested unavailable requested unavailable", 2, true},
		{modeltest.CheckUnsupported, "requested unavailable", 2, true},
		{modeltest.CheckDisabled, "requested unavailable", 2, true},
		{modeltest.CheckAbsent, "requested unavailable", 2, true},
		{modeltest.CheckRefused, "requested unavailable", 2, true},
	} {
		t.Run("check "+string(c.check), func(t *testing.T) {
			t.Parallel()
			for name, answer := range map[string]func(runner.Question) runner.Answer{"yes": yes, "no": no} {
				r := live(t, serve(t, modeltest.Config{Script: checked(c.check, bash("touch one"), bash("touch two"))}), claude.Config{Reviewer: true})
				o := begin(t, r, folder(t), reviewing, answer)
				o.turn("go", runner.Completed)
				if got := o.states(); got != c.states {
					t.Errorf("person says %s: steps %q, want %q\n%s", name, got, c.states, o.story())
				}
				if q := o.asked(); len(q) != c.asked {
					t.Errorf("person says %s: %d questions, want %d\n%s", name, len(q), c.asked, o.story())
				}
				if want := name == "yes" || c.asked == 0; o.exists("one") != want || o.exists("two") != want {
					t.Errorf("person says %s: ran %v and %v, want %v", name, o.exists("one"), o.exists("two"), want)
				}
				lost := slices.ContainsFunc(o.told(runner.PolicyChanged), func(e runner.Event) bool {
					return strings.Contains(e.Policy.Why, "own reviewer is not used")
				})
				if lost != c.lost {
					t.Errorf("person says %s: loss told %v, want %v\n%s", name, lost, c.lost, o.story())
				}
			}
		})
	}
}

// TestTheReviewerNeverDecidesWhatIsAPersons tries what the table gives to a person in auto, with a reviewer who lets
// everything pass.
func TestTheReviewerNeverDecidesWhatIsAPersons(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		call modeltest.Call
		seen string // what exists once it was done
	}{
		"publishing":        {bash("touch done; git push nowhere"), "done"},
		"paying":            {bash("touch done; stripe charges create"), "done"},
		"a credential":      {bash("touch done; gh auth token"), "done"},
		"a secret":          {bash("touch done; cat .env"), "done"},
		"deleting":          {bash("touch done; rm -rf src"), "done"},
		"what is protected": {modeltest.CallOf("Write", args{"file_path": ".github/workflows/done.yml", "content": "x"}), ".github/workflows/done.yml"},
		"git's hooks":       {modeltest.CallOf("Write", args{"file_path": ".git/hooks/pre-commit", "content": "x"}), ".git/hooks/pre-commit"},
		"outside":           {modeltest.CallOf("Write", args{"file_path": "../done", "content": "x"}), "../done"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := live(t, serve(t, modeltest.Config{Script: checked(modeltest.CheckPasses, c.call)}), claude.Config{Reviewer: true})
			o := begin(t, r, folder(t), reviewing, no)
			o.turn("go", runner.Completed)
			if len(o.asked()) != 1 || o.exists(c.seen) {
				t.Errorf("%d questions, done %v\n%s", len(o.asked()), o.exists(c.seen), o.story())
			}
		})
	}
}

// TestAnExternalServerKeepsTheReviewerAway tries that a configured MCP server, whatever it is called, has everything
// asked.
func TestAnExternalServerKeepsTheReviewerAway(t *testing.T) {
	t.Parallel()
	r := live(t, serve(t, modeltest.Config{Script: checked(modeltest.CheckPasses, bash("touch one"))}), claude.Config{
		Reviewer: true, MCP: map[string]json.RawMessage{"Drawbridge": json.RawMessage(`{"command":"/bin/false"}`)},
	})
	c := looked(t, r)
	if c.Modes[policy.Auto] != policy.Auto || !strings.Contains(c.Why[string(policy.Auto)], "MCP server") {
		t.Errorf("probe: %+v", c)
	}
	o := begin(t, r, folder(t), reviewing, no)
	o.turn("go", runner.Completed)
	if len(o.asked()) != 1 || o.exists("one") || len(o.told(runner.ReviewChanged)) > 0 || len(o.told(runner.PolicyChanged)) != 1 {
		t.Errorf("%d questions\n%s", len(o.asked()), o.story())
	}
}

// TestLoweringTakesTheReviewerAway lowers the mode of an open session.
func TestLoweringTakesTheReviewerAway(t *testing.T) {
	t.Parallel()
	r := live(t, serve(t, modeltest.Config{Script: checked(modeltest.CheckPasses, bash("touch one"))}), claude.Config{Reviewer: true})
	o := begin(t, r, folder(t), reviewing, no)
	o.turn("go", runner.Completed)
	if len(o.asked()) != 0 || !o.exists("one") {
		t.Fatalf("not reviewed\n%s", o.story())
	}
	o.set(asking)
	o.turn("again", runner.Completed)
	if len(o.asked()) != 1 {
		t.Errorf("%d questions after lowering\n%s", len(o.asked()), o.story())
	}
}
