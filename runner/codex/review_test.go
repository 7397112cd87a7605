package codex_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"drawbridge/policy"
	"drawbridge/runner"
	"drawbridge/runner/codex"
)

func reviewing(c *codex.Config) { c.Reviewer = true }

// TestAReviewerThatFailsIsNotUsedAgain plays a turn whose review fails: the turn's next action goes to a person, the chat
// is told why, and so does the next turn.
func TestAReviewerThatFailsIsNotUsedAgain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		state string
		lost  bool
	}{
		"review-approved": {runner.ReviewApproved, false},
		"review-denied":   {runner.ReviewDenied, false},
		"review-failed":   {runner.ReviewUnavailable, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			played, err := filepath.Abs("testdata/turns/" + name + ".jsonl")
			if err != nil {
				t.Fatal(err)
			}
			record := filepath.Join(t.TempDir(), "record")
			auto := runner.Policy{Mode: policy.Auto, Interaction: policy.Default}
			s := open(t, imitate(t, imitation{Turn: played, Record: record}, reviewing), opening{policy: auto})
			s.turn("go")
			reviews, told := s.kinds(runner.ReviewChanged), s.kinds(runner.PolicyChanged)
			if n := len(reviews); n != 2 || reviews[0].Review.State != runner.ReviewRequested || reviews[1].Review.State != c.state ||
				reviews[1].Review.Source != "codex" || reviews[1].Review.Title == "" {
				t.Errorf("reviews %+v", reviews)
			}
			if (len(told) == 1) != c.lost || c.lost && (told[0].Policy.Effective != auto || !strings.Contains(told[0].Policy.Why, "else to you")) {
				t.Errorf("told %+v", told)
			}
			s.turn("go on")
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			var to []string
			for _, f := range sentFrames(t, record) {
				if f["method"] == "turn/start" || f["method"] == "turn/settings/update" {
					to = append(to, f.text("method")+" "+f.text("params", "approvalsReviewer"))
				}
			}
			want := "turn/start auto_review, turn/start auto_review"
			if c.lost {
				want = "turn/start auto_review, turn/settings/update user, turn/start user"
				slices.Sort(to[1:]) // the running turn is told beside everything else, which may be late
			}
			if got := strings.Join(to, ", "); got != want {
				t.Errorf("codex was told %s, want %s", got, want)
			}
		})
	}
}

// TestALoweredModeEndsATurnThatIsReviewed: what codex's reviewer would allow is never asked, so no answer of ours binds it.
func TestALoweredModeEndsATurnThatIsReviewed(t *testing.T) {
	t.Parallel()
	s := open(t, imitate(t, imitation{}, reviewing), opening{policy: runner.Policy{Mode: policy.Auto, Interaction: policy.Default}})
	setter, ok := s.Session.(runner.PolicySetter)
	if !ok {
		t.Fatal("a session takes no policy")
	}
	ctx, stop := contextOf(t)
	done := make(chan runner.Result, 1)
	go func() {
		r, _ := s.Turn(ctx, runner.Input{Turn: "turn", Text: "hang"})
		done <- r
	}()
	s.await(runner.ItemStarted)
	held, err := setter.SetPolicy(t.Context(), runner.Policy{Mode: policy.AutoAcceptEdits, Interaction: policy.Default})
	if err != nil || held {
		t.Errorf("held %v, %v", held, err)
	}
	stop()
	<-done
}

// TestTheReviewerIsAnOwnersChoice: without it, or with an MCP server, it is not used, and Probe says which.
func TestTheReviewerIsAnOwnersChoice(t *testing.T) {
	t.Parallel()
	server := map[string]codex.Server{"notes": {Command: "/usr/bin/notes"}}
	for name, c := range map[string]struct {
		reviewer  bool
		servers   map[string]codex.Server
		used      bool
		why, auto string
	}{
		"not chosen":          {why: "has not chosen it"},
		"chosen":              {reviewer: true, used: true},
		"with an MCP server":  {reviewer: true, servers: server, why: "MCP server is configured", auto: "else to you"},
		"neither of the both": {servers: server, why: "has not chosen it"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			record := filepath.Join(t.TempDir(), "record")
			r := imitate(t, imitation{Record: record}, func(x *codex.Config) { x.Reviewer, x.Servers = c.reviewer, c.servers })
			got, err := r.Probe(t.Context())
			if err != nil || (got.Reviewer != "") != c.used || !strings.Contains(got.Why[runner.WhyReview], c.why) ||
				!strings.Contains(got.Why[string(policy.Auto)], c.auto) || (c.auto == "") != (got.Why[string(policy.Auto)] == "") {
				t.Errorf("%+v, %v", got, err)
			}
			for _, of := range []policy.Category{policy.Credential, policy.Payment, policy.System} {
				want := policy.Ask
				if c.used {
					want = policy.Review
				}
				if v, ok := got.Cell(policy.Auto, policy.Default, of); v != want || !ok {
					t.Errorf("%s in auto is said to be %s, %v, want %s", of, v, ok, want)
				}
				if v, _ := got.Cell(policy.AutoAcceptEdits, policy.Default, of); v != policy.Ask {
					t.Errorf("%s in auto-accept-edits is said to be %s", of, v)
				}
			}
			s := open(t, r, opening{policy: runner.Policy{Mode: policy.Auto, Interaction: policy.Default}})
			s.turn("say it")
			for _, f := range sentFrames(t, record) {
				if f["method"] == "turn/start" && (f.text("params", "approvalsReviewer") == "auto_review") != c.used {
					t.Errorf("codex was told %v", f)
				}
			}
		})
	}
}
