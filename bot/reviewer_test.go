package bot

import (
	"slices"
	"testing"

	"drawbridge/bridge"
	"drawbridge/policy"
	"drawbridge/runner"
)

// TestAReviewIsToldApart puts what reviewers did into a turn's story: what one refused is never told as what the person or a
// rule refused, and what a person is asked about instead has its card.
func TestAReviewIsToldApart(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		review runner.Review
		want   string
	}{
		"requested":   {runner.Review{State: runner.ReviewRequested, Source: runner.ReviewerOurs, Title: "Run make"}, ""},
		"approved":    {runner.Review{State: runner.ReviewApproved, Source: runner.ReviewerOurs, Title: "Run make"}, ""},
		"asked":       {runner.Review{State: runner.ReviewDenied, Source: runner.ReviewerOurs, Title: "Run make", Asked: true}, ""},
		"asked, lost": {runner.Review{State: runner.ReviewTimeout, Source: runner.ReviewerOurs, Title: "Run make", Asked: true}, ""},
		"refused": {
			runner.Review{State: runner.ReviewDenied, Source: runner.ReviewerOurs, Title: "Run make\n", Reason: "Too\u202e much."},
			"Refused by the reviewer: Run make⏎ (Too⟨U+202E⟩ much.)",
		},
		"lost": {
			runner.Review{State: runner.ReviewUnavailable, Source: runner.ReviewerOurs, Title: "Run make", Reason: "There is no reviewer."},
			"No verdict of the reviewer, so it was refused: Run make (There is no reviewer.)",
		},
		"too slow":           {runner.Review{State: runner.ReviewTimeout, Source: runner.ReviewerOurs}, "No verdict of the reviewer, so it was refused"},
		"a runtime's refuse": {runner.Review{State: runner.ReviewDenied, Source: "claude"}, "Refused by claude's reviewer"},
		"a runtime's lost":   {runner.Review{State: runner.ReviewUnavailable, Source: "claude"}, "No verdict of claude's reviewer"},
		"another state":      {runner.Review{State: "soon", Source: "claude"}, ""},
	} {
		s := tell([]bridge.Entry{{Turn: "t", Event: runner.Event{Kind: runner.ReviewChanged, Turn: "t", Review: &test.review}}}, "t", runner.Completed)
		var want []string
		if test.want != "" {
			want = []string{test.want}
		}
		if !slices.Equal(s.steps, want) || s.count != 0 {
			t.Errorf("%s is told as %q, want %q", name, s.steps, want)
		}
	}
}

// TestARefusalBetweenTurnsIsTold: there is no turn whose story could tell of it, so it is a message of its own.
func TestARefusalBetweenTurnsIsTold(t *testing.T) {
	t.Parallel()
	k := newTalk(t, talkOptions{})
	prompt := k.say(ada, ada, "say fine")
	k.reads(ada, prompt, "fine")
	log := bridge.NewLog(k.db, "box")
	for _, r := range []runner.Review{
		{State: runner.ReviewRequested, Source: runner.ReviewerOurs, Title: "Run one"},
		{State: runner.ReviewDenied, Source: runner.ReviewerOurs, Title: "Run two", Asked: true},
		{State: runner.ReviewDenied, Source: runner.ReviewerOurs, Title: "Run three", Reason: "Nobody wants it."},
	} {
		err := log.Append(t.Context(), bridge.Entry{
			Chat: ChatRef{ID: ada}.Key(), Turn: "an-old-turn", Event: runner.Event{Kind: runner.ReviewChanged, Turn: "an-old-turn", Review: &r},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	k.reads(ada, prompt, "Refused by the reviewer: Run three (Nobody wants it.)")
	k.idle()
	k.none(ada, prompt, "Run one")
	k.none(ada, prompt, "Run two")
}

// TestALostReviewerIsTold: a mode that is kept in another way than the owner has chosen is a message, with the reason.
func TestALostReviewerIsTold(t *testing.T) {
	t.Parallel()
	k := newTalk(t, talkOptions{})
	prompt := k.say(ada, ada, "say fine")
	k.reads(ada, prompt, "fine")
	auto := runner.Policy{Mode: policy.Auto, Interaction: policy.Default}
	log := bridge.NewLog(k.db, "box")
	for _, why := range []string{"", "Its own reviewer is not used: an external MCP server is configured."} {
		err := log.Append(t.Context(), bridge.Entry{Chat: ChatRef{ID: ada}.Key(), Turn: "an-old-turn", Event: runner.Event{
			Kind: runner.PolicyChanged, Turn: "an-old-turn", Policy: &runner.Effective{Asked: auto, Effective: auto, Why: why},
		}})
		if err != nil {
			t.Fatal(err)
		}
	}
	k.reads(ada, prompt, "Its own reviewer is not used: an external MCP server is configured.")
	k.idle()
	k.none(ada, prompt, "instead of")
}
