package approvals_test

import (
	"context"
	"errors"
	"testing"

	"drawbridge/approvals"
	"drawbridge/policy"
	"drawbridge/runner"
)

func TestATapLetsTheAgentGoOn(t *testing.T) {
	t.Parallel()
	db := openBolt(t)
	h, _ := host(t, fast(db), "i1")
	g := gateway(t, fast(db))
	a := ask(t.Context(), h, turn(under(policy.ApprovalRequired, policy.Default)), command("make"))
	r := card(t, g, 1)[0]
	if r.Chat != chat || r.Question.Command != "make" || r.Mode != policy.ApprovalRequired || r.Run != "t1" {
		t.Errorf("the record is %+v", r)
	}
	o := decide(t, g, tap(r, ada, runner.ActionAllow))
	if !o.Won || o.Decision == nil || o.Decision.By != 11 {
		t.Fatalf("the outcome is %+v", o)
	}
	got := a.wait(t)
	if !got.Allows() || got.Source != runner.SourceUser || got.By != "Ada" || got.Action != runner.ActionAllow {
		t.Errorf("the answer is %+v", got)
	}
	if w := stands(t, g, r.ID).Word; w != approvals.StandsAllowed {
		t.Errorf("it stands as %q", w)
	}
}

// reviewer says the same each time.
type reviewer struct {
	verdict approvals.ReviewVerdict
	err     error
	hang    bool
	before  func()
}

func (r reviewer) Review(ctx context.Context, _ approvals.ReviewRequest) (approvals.ReviewVerdict, error) {
	if r.before != nil {
		r.before()
	}
	if r.hang {
		<-ctx.Done()
	}
	return r.verdict, r.err
}

// TestOrder tries every stage against those behind it. A question that reaches a person is tapped "deny" by Ada, so that
// the answer's source tells who has decided.
func TestOrder(t *testing.T) {
	t.Parallel()
	allows := reviewer{verdict: approvals.ReviewVerdict{Decision: runner.Allowed}}
	for name, test := range map[string]struct {
		mode        policy.Mode
		interaction policy.Interaction
		categories  []policy.Category
		kind        runner.QuestionKind
		reviewer    approvals.Reviewer
		background  bool
		grant       bool // a session grant for the tool is there
		want        runner.Source
		decision    runner.Decision
	}{
		"plan is stronger than full access":            {mode: policy.FullAccess, interaction: policy.Plan, categories: []policy.Category{policy.Write}, want: runner.SourceRule, decision: runner.Denied},
		"plan is stronger than a grant":                {mode: policy.FullAccess, interaction: policy.Plan, categories: []policy.Category{policy.Network}, grant: true, want: runner.SourceRule, decision: runner.Denied},
		"an unknown interaction is plan":               {mode: policy.FullAccess, interaction: "later", categories: []policy.Category{policy.Write}, want: runner.SourceRule, decision: runner.Denied},
		"human-only is asked in full access":           {mode: policy.FullAccess, interaction: policy.Default, categories: []policy.Category{policy.Publish}, want: runner.SourceUser},
		"human-only is not for grants":                 {mode: policy.FullAccess, interaction: policy.Default, categories: []policy.Category{policy.Payment}, grant: true, want: runner.SourceUser},
		"human-only is not for reviewers":              {mode: policy.Auto, interaction: policy.Default, categories: []policy.Category{policy.Network, policy.Credential}, reviewer: allows, want: runner.SourceUser},
		"a grant comes before the table's ask":         {mode: policy.ApprovalRequired, interaction: policy.Default, categories: []policy.Category{policy.Network}, grant: true, want: runner.SourceGrant, decision: runner.Allowed},
		"a grant comes before the reviewer":            {mode: policy.Auto, interaction: policy.Default, categories: []policy.Category{policy.Network}, grant: true, reviewer: reviewer{verdict: approvals.ReviewVerdict{Decision: runner.Denied}}, want: runner.SourceGrant, decision: runner.Allowed},
		"the table allows before the reviewer":         {mode: policy.FullAccess, interaction: policy.Default, categories: []policy.Category{policy.Network}, reviewer: reviewer{verdict: approvals.ReviewVerdict{Decision: runner.Denied}}, want: runner.SourceRule, decision: runner.Allowed},
		"the table's ask is not for reviewers":         {mode: policy.ApprovalRequired, interaction: policy.Default, categories: []policy.Category{policy.Network}, reviewer: allows, want: runner.SourceUser},
		"the reviewer comes before the person":         {mode: policy.Auto, interaction: policy.Default, categories: []policy.Category{policy.Network}, reviewer: allows, want: runner.SourceReviewer, decision: runner.Allowed},
		"a reviewer's no is for a person, foreground":  {mode: policy.Auto, interaction: policy.Default, categories: []policy.Category{policy.Network}, reviewer: reviewer{verdict: approvals.ReviewVerdict{Decision: runner.Denied}}, want: runner.SourceUser},
		"a reviewer's no is final, background":         {mode: policy.Auto, interaction: policy.Default, categories: []policy.Category{policy.Network}, reviewer: reviewer{verdict: approvals.ReviewVerdict{Decision: runner.Denied}}, background: true, want: runner.SourceReviewer, decision: runner.Denied},
		"no reviewer, foreground":                      {mode: policy.Auto, interaction: policy.Default, categories: []policy.Category{policy.Network}, want: runner.SourceUser},
		"no reviewer, background":                      {mode: policy.Auto, interaction: policy.Default, categories: []policy.Category{policy.Network}, background: true, want: runner.SourceReviewer, decision: runner.Denied},
		"a reviewer that fails, foreground":            {mode: policy.Auto, interaction: policy.Default, categories: []policy.Category{policy.Network}, reviewer: reviewer{verdict: allows.verdict, err: errors.New("no")}, want: runner.SourceUser},
		"a reviewer that fails, background":            {mode: policy.Auto, interaction: policy.Default, categories: []policy.Category{policy.Network}, reviewer: reviewer{verdict: allows.verdict, err: errors.New("no")}, background: true, want: runner.SourceReviewer, decision: runner.Denied},
		"a reviewer that talks nonsense, foreground":   {mode: policy.Auto, interaction: policy.Default, categories: []policy.Category{policy.Network}, reviewer: reviewer{verdict: approvals.ReviewVerdict{Decision: "Allowed."}}, want: runner.SourceUser},
		"a reviewer that talks nonsense, background":   {mode: policy.Auto, interaction: policy.Default, categories: []policy.Category{policy.Network}, reviewer: reviewer{}, background: true, want: runner.SourceReviewer, decision: runner.Denied},
		"a reviewer that allows too late, foreground":  {mode: policy.Auto, interaction: policy.Default, categories: []policy.Category{policy.Network}, reviewer: reviewer{verdict: allows.verdict, hang: true}, want: runner.SourceUser},
		"a reviewer that allows too late, background":  {mode: policy.Auto, interaction: policy.Default, categories: []policy.Category{policy.Network}, reviewer: reviewer{verdict: allows.verdict, hang: true}, background: true, want: runner.SourceReviewer, decision: runner.Denied},
		"the table's ask in the background is a card":  {mode: policy.ApprovalRequired, interaction: policy.Default, categories: []policy.Category{policy.Network}, background: true, want: runner.SourceUser},
		"no categories are unknown, never allowed":     {mode: policy.FullAccess, interaction: policy.Default, want: runner.SourceUser},
		"an unknown mode is approval-required":         {mode: "root", interaction: policy.Default, categories: []policy.Category{policy.Write}, want: runner.SourceUser},
		"a read is allowed":                            {mode: policy.ApprovalRequired, interaction: policy.Default, categories: []policy.Category{policy.Read}, want: runner.SourceRule, decision: runner.Allowed},
		"a plan is a person's, whatever it claims":     {mode: policy.FullAccess, interaction: policy.Plan, kind: runner.KindPlan, categories: []policy.Category{policy.Read}, want: runner.SourceUser},
		"a question is a person's, whatever it claims": {mode: policy.FullAccess, interaction: policy.Default, kind: runner.KindQuestion, categories: []policy.Category{policy.Read}, want: runner.SourceUser},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := openBolt(t)
			c := fast(db)
			c.Reviewer, c.ReviewTime = test.reviewer, fast(db).Reread
			h, _ := host(t, c, "i1")
			g := gateway(t, c)
			if test.grant {
				give(t, h, g, runner.Question{Kind: runner.KindTool, Tool: "mcp__x", Categories: []policy.Category{policy.Network}}, runner.ActionAllowSession)
			}
			q := runner.Question{Kind: test.kind, Tool: "mcp__x", Plan: "1. go", Categories: test.categories, Background: test.background}
			if q.Kind == "" {
				q.Kind = runner.KindTool
			}
			if q.Kind == runner.KindQuestion {
				q.Queries = []runner.Query{{ID: "a", Text: "Why?", Free: true}}
			}
			a := ask(t.Context(), h, turn(under(test.mode, test.interaction)), q)
			if test.want == runner.SourceUser {
				test.decision = runner.Denied
				if o := decide(t, g, tap(card(t, g, 1)[0], ada, runner.ActionDeny)); !o.Won {
					t.Fatalf("the tap came to %+v", o)
				}
			}
			if got := a.wait(t); got.Source != test.want || got.Decision != test.decision {
				t.Errorf("the answer is %+v, want %s by %s", got, test.decision, test.want)
			}
		})
	}
}

// give asks q in approval-required and taps action.
func give(t testing.TB, h, g *approvals.Service, q runner.Question, action string) {
	t.Helper()
	a := ask(t.Context(), h, turn(under(policy.ApprovalRequired, policy.Default)), q)
	r := card(t, g, 1)[0]
	if o := decide(t, g, tap(r, ada, action)); !o.Won {
		t.Fatalf("%s came to %+v", action, o)
	}
	if got := a.wait(t); !got.Allows() {
		t.Fatalf("%s was answered %+v", action, got)
	}
}

// TestAModeThatIsLoweredDuringAReview lowers it while the reviewer thinks, and then allows.
func TestAModeThatIsLoweredDuringAReview(t *testing.T) {
	t.Parallel()
	for to, want := range map[runner.Policy]runner.Source{
		{Mode: policy.Auto, Interaction: policy.Default}:             runner.SourceReviewer,
		{Mode: policy.ApprovalRequired, Interaction: policy.Default}: runner.SourceUser,
		{Mode: policy.Auto, Interaction: policy.Plan}:                runner.SourceRule,
	} {
		db := openBolt(t)
		p := under(policy.Auto, policy.Default)
		c := fast(db)
		c.Reviewer = reviewer{verdict: approvals.ReviewVerdict{Decision: runner.Allowed}, before: func() { p.set(to.Mode, to.Interaction) }}
		h, _ := host(t, c, "i1")
		g := gateway(t, c)
		a := ask(t.Context(), h, turn(p), tool("mcp__x", policy.Network))
		if want == runner.SourceUser {
			decide(t, g, tap(card(t, g, 1)[0], ada, runner.ActionAllow))
		}
		if got := a.wait(t); got.Source != want || got.Allows() != (want != runner.SourceRule) {
			t.Errorf("lowered to %+v the answer is %+v", to, got)
		}
	}
}
