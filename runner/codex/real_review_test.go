//go:build runtimes

package codex_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"drawbridge/internal/modeltest"
	"drawbridge/policy"
	"drawbridge/runner"
	"drawbridge/runner/codex"
)

// looked is what a runtime says of itself. On a machine that is busy the look may take longer than people wait for it, so it is
// tried again.
func looked(t *testing.T, r *codex.Runtime) runner.Capability {
	t.Helper()
	for end := time.Now().Add(3 * time.Minute); ; {
		c, err := r.Probe(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if c.State != runner.Failed || c.Cause != runner.CauseProbe || time.Now().After(end) {
			return c
		}
	}
}

// judging is Follow beside a reviewer who says what it is told to.
func judging(verdict string) modeltest.Script { return judged(verdict, modeltest.Follow(hands())) }

// judged is a script beside such a reviewer. At a provider of its own, a session is judged by its own model: the task alone
// tells the requests apart.
func judged(verdict string, work modeltest.Script) modeltest.Script {
	return func(ctx context.Context, r modeltest.Request) modeltest.Reply {
		if strings.HasPrefix(r.Messages[0].Content, "You are judging one planned coding-agent action.") {
			return modeltest.Reply{Text: verdict}
		}
		return work(ctx, r)
	}
}

// insisting is a script whose agent, refused, tries a command again until it has left its mark. When a reviewer that failed is
// lost, codex is told so while its model goes on: how many more calls that reviewer refuses until then, nobody knows.
func insisting(script modeltest.Script, command, mark string) modeltest.Script {
	end := time.Now().Add(time.Minute)
	return func(ctx context.Context, r modeltest.Request) modeltest.Reply {
		reply := script(ctx, r)
		called := slices.ContainsFunc(r.Messages, func(m modeltest.Message) bool { return m.Role == "tool" })
		if called && len(reply.Calls) == 0 && !exists(mark) && time.Now().Before(end) {
			return modeltest.Reply{Calls: []modeltest.Call{escalated(command)}}
		}
		return reply
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
		"fails":   {"no JSON at all", []string{"run touch first"}, []string{"unavailable"}, 1, true},
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
			work := modeltest.Follow(hands())
			if c.asked > 0 {
				work = insisting(work, "touch done", filepath.Join(folder, "done"))
			}
			config := realConfig(t, data(t), model(t, modeltest.Config{Script: judged(c.verdict, work), Piece: 500}))
			config.Reviewer = true
			r := installed(t, config)
			said := looked(t, r)
			if said.Reviewer == "" {
				t.Fatalf("%+v", said)
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
			if c.asked > 0 {
				states = slices.Compact(states)
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
	said := looked(t, r)
	if len(said.Models) < 3 {
		t.Fatalf("codex lists %+v (%s)", said.Models, said.Problem)
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
