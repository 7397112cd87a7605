//go:build runtimes

package codex_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"drawbridge/internal/modeltest"
	"drawbridge/policy"
	"drawbridge/runner"
)

// judging is a script whose reviewer says what it is told to. At a provider of its own, a session is judged by its own
// model: the task alone tells the requests apart.
func judging(verdict string) modeltest.Script {
	follow := modeltest.Follow(hands())
	return func(ctx context.Context, r modeltest.Request) modeltest.Reply {
		if strings.HasPrefix(r.Messages[0].Content, "You are judging one planned coding-agent action.") {
			return modeltest.Reply{Text: verdict}
		}
		return follow(ctx, r)
	}
}

const (
	saysYes = `{"risk_level":"low","user_authorization":"high","outcome":"allow","rationale":"fine"}`
	saysNo  = `{"risk_level":"high","user_authorization":"low","outcome":"deny","rationale":"too risky"}`
)

// TestRealReviewer measures what the reviewer decides in a person's place: everything that is to leave the sandbox, what is
// human-only too. Each category that it was seen to decide and that the table leaves to a person has to be named in
// Looser. One that fails is lost, and the same action is asked in the same turn.
func TestRealReviewer(t *testing.T) {
	for name, c := range map[string]struct {
		verdict string
		lines   []string
		reviews []string // the states that are told, of each line in turn
		asked   int
		done    bool
	}{
		"allows":  {saysYes, []string{"run touch done"}, []string{"approved"}, 0, true},
		"refuses": {saysNo, []string{"run touch done"}, []string{"denied"}, 0, false},
		"fails":   {"no JSON at all", []string{"run touch first", "run touch done"}, []string{"unavailable"}, 1, true},
		"push":    {saysYes, []string{"run touch done; git push origin main"}, []string{"approved"}, 0, true},
		"secret":  {saysYes, []string{"run touch done; cat .env"}, []string{"approved"}, 0, true},
		"login":   {saysYes, []string{"run touch done; gh auth login"}, []string{"approved"}, 0, true},
		"install": {saysYes, []string{"run touch done; sudo apt-get install -y nothing-of-that-name"}, []string{"approved"}, 0, true},
		"delete":  {saysYes, []string{"run touch done; rm -rf nothing"}, []string{"approved"}, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			folder := data(t)
			if err := os.WriteFile(filepath.Join(folder, ".env"), []byte("KEY=1\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			config := realConfig(t, data(t), model(t, modeltest.Config{Script: judging(c.verdict), Piece: 500}))
			config.Reviewer = true
			r := installed(t, config)
			said, err := r.Probe(t.Context())
			if err != nil || said.Reviewer == "" {
				t.Fatalf("%+v, %v", said, err)
			}
			s := open(t, r, opening{folder: folder, policy: runner.Policy{Mode: policy.Auto, Interaction: policy.Default}, answer: yes})
			s.turn(c.lines...)
			var states []string
			for _, e := range s.kinds(runner.ReviewChanged) {
				if e.Review.Source != "codex" {
					t.Errorf("a review of %q", e.Review.Source)
				}
				if e.Review.State != runner.ReviewRequested {
					states = append(states, e.Review.State)
				}
			}
			_, questions := s.seen()
			if !slices.Equal(states, c.reviews) || len(questions) != c.asked {
				t.Errorf("reviews %q, want %q; %d questions, want %d; told %+v", states, c.reviews, len(questions), c.asked, s.kinds(runner.ReviewChanged)[1].Review)
			}
			if _, err := os.Stat(filepath.Join(folder, "done")); (err == nil) != c.done {
				t.Errorf("done: %v", err)
			}
			if lost := s.kinds(runner.PolicyChanged); (len(lost) > 0) != (c.asked > 0) {
				t.Errorf("told %+v", lost)
			}
			if c.asked > 0 {
				return
			}
			command, _ := strings.CutPrefix(c.lines[0], "run ")
			for _, of := range policy.Classify(command, policy.Workspace{Root: folder, Home: "/nobody"}) {
				v, _ := said.Cell(policy.Auto, policy.Default, of)
				if v != policy.Allow && v != policy.Review {
					t.Errorf("%s was decided by the reviewer, and Probe says %s", of, v)
				}
			}
		})
	}
}

// TestRealModels chooses from the real list: what a turn names is in the next request.
func TestRealModels(t *testing.T) {
	srv := model(t, modeltest.Config{Script: modeltest.Follow(hands())})
	r := installed(t, realConfig(t, data(t), srv))
	said, err := r.Probe(t.Context())
	if err != nil || len(said.Models) < 3 {
		t.Fatalf("codex lists %+v (%s), %v", said.Models, said.Problem, err)
	}
	plain, ok := said.Model("")
	i := slices.IndexFunc(said.Models, func(m runner.Model) bool { return m.ID != realModel && slices.Contains(m.Efforts, "high") })
	if !ok || plain.ID != realModel || i < 0 {
		t.Fatalf("the default is %+v, of %+v", plain, said.Models)
	}
	other := said.Models[i].ID
	s := open(t, r, opening{})
	for _, c := range []struct{ model, effort, want string }{{"", "", realModel}, {other, "high", other}, {realModel, "low", realModel}} {
		if _, err := s.Turn(t.Context(), runner.Input{Turn: "turn", Text: "say it", Model: c.model, Effort: c.effort}); err != nil {
			t.Fatal(err)
		}
		all := srv.Requests()
		last := all[len(all)-1]
		if last.Model != c.want || c.effort != "" && last.Effort != c.effort {
			t.Errorf("asked for %s, %s: the request was for %s, %s", c.model, c.effort, last.Model, last.Effort)
		}
	}
}
