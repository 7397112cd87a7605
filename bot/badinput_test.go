package bot

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"drawbridge/policy"
	"drawbridge/runner"
	"drawbridge/runner/runnertest"
)

// TestOddQuestionsBlockNobody: whatever an agent asks, a person can answer it or decline, or the agent is told that it can't
// be asked.
func TestOddQuestionsBlockNobody(t *testing.T) {
	t.Parallel()
	var many []string
	for i := range 40 {
		many = append(many, fmt.Sprintf("Number %d", i+1))
	}
	long := strings.Repeat("long ", 60)
	for name, c := range map[string]struct {
		queries []runner.Query
		tap     string // a part of the button's label; empty where there is no card
		hears   string
	}{
		"forty options":    {[]runner.Query{{ID: "q", Text: "Which?", Options: options(many...)}}, "Number 40", `q=["Number 40"]`},
		"no options":       {[]runner.Query{{ID: "q", Text: "Which?"}}, textNotAnswer, "denied"},
		"labels of 300":    {[]runner.Query{{ID: "q", Text: "Which?", Options: options("A "+long, "B "+long)}}, "B long", "allowed"},
		"a label twice":    {[]runner.Query{{ID: "q", Text: "Which?", Options: options("A", "A")}}, "A", `q=["A"]`},
		"an id twice":      {[]runner.Query{{ID: "q", Text: "Which?"}, {ID: "q", Text: "And which?"}}, "", "denied"},
		"no id":            {[]runner.Query{{Text: "Which?"}}, "", "denied"},
		"no question":      {nil, "", "denied"},
		"a text of 60,000": {[]runner.Query{{ID: "q", Text: strings.Repeat("word ", 12_000), Options: options("A")}}, textNotAnswer, "denied"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newTalk(t, talkOptions{turn: asking(c.queries...)})
			p := k.say(ada, ada, "go")
			if c.tap != "" {
				card := k.reads(ada, p, "A question for you")
				for _, label := range card.labels() {
					if strings.Contains(label, c.tap) {
						k.tap(ada, ada, card.ID, label)
						break
					}
				}
			}
			k.reads(ada, p, "It heard: ", c.hears)
			k.idle()
		})
	}
}

// TestOddPlansAreReadOrToldOf: a plan of 60,000 characters is read in full, an empty one is none.
func TestOddPlansAreReadOrToldOf(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ plan, reads string }{
		"of 60,000 characters": {strings.Repeat("step by step ", 4_700), "Carry out this plan?"},
		"of blanks":            {" \n ", "said what it found"},
		"empty":                {"", "said what it found"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newTalk(t, talkOptions{turn: func(_ context.Context, s *runnertest.Scripted, _ runner.Input) (runner.Result, error) {
				if s.Policy().Interaction != policy.Plan {
					s.Say("implements it")
					return runner.Result{Outcome: runner.Completed}, nil
				}
				s.Say("said what it found")
				return runner.Result{Outcome: runner.Completed, Plan: c.plan}, nil
			}})
			p := k.say(ada, ada, "/plan it")
			card := k.reads(ada, p, c.reads)
			if c.reads == "Carry out this plan?" && !card.has("Reject") {
				t.Errorf("the card can't be rejected: %q", card.labels())
			}
			k.idle()
		})
	}
}
