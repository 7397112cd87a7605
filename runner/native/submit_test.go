package native_test

import (
	"context"
	"strings"
	"testing"

	"drawbridge/internal/modeltest"
	"drawbridge/policy"
	"drawbridge/runner"
	"drawbridge/runner/native"
)

// planned opens a session whose chat plans, on a model whose Nth answer is the Nth reply.
func planned(t *testing.T, p *runner.Policy, replies ...modeltest.Reply) (*session, *modeltest.Server) {
	t.Helper()
	srv := serve(t, modeltest.Config{Piece: 10_000, Script: func(_ context.Context, r modeltest.Request) modeltest.Reply {
		return replies[min(r.N, len(replies))-1]
	}})
	o := runner.Options{Folder: t.TempDir(), Policy: func() runner.Policy { return *p }}
	return open(t, runtime(t, native.Config{BaseURL: srv.URL(), Window: 1_000_000}), o, nil), srv
}

func plansNow() *runner.Policy {
	return &runner.Policy{Mode: policy.FullAccess, Interaction: policy.Plan}
}

func submit(plan string) modeltest.Call { return modeltest.CallOf("submit_plan", args{"plan": plan}) }

func TestASubmittedPlanEndsTheTurn(t *testing.T) {
	t.Parallel()
	const plan = "# Plan\n\n1. Do <it> & be \"done\"."
	p := plansNow()
	s, srv := planned(t, p,
		modeltest.Reply{Text: "I know enough.", Calls: []modeltest.Call{
			modeltest.CallOf("list_dir", args{}), submit("\n" + plan + "\n"), modeltest.CallOf("list_dir", args{}), submit("# Another"),
		}},
		modeltest.Reply{Text: "done"})
	if res := s.turn(t, "plan it", runner.Completed); res.Plan != plan || res.Usage.Input == 0 {
		t.Errorf("the result is %+v", res)
	}
	if n := len(srv.Requests()); n != 1 {
		t.Errorf("the model was asked %d times", n)
	}
	for _, e := range s.events {
		if e.Item != nil && (strings.Contains(e.Item.Text, "<it>") || strings.Contains(e.Item.Title, "submit")) {
			t.Errorf("the plan is told also by %s of %+v", e.Kind, *e.Item)
		}
	}
	if len(s.questions) != 1 || s.questions[0].Tool != "list_dir" {
		t.Errorf("the gate was asked %+v", s.questions)
	}

	p.Interaction = policy.Default
	s.turn(t, "The plan is approved.", runner.Completed)
	m := srv.Requests()[1].Messages
	roles := ""
	for _, one := range m {
		roles += one.Role + " "
	}
	if roles != "system user assistant tool tool tool tool assistant user " {
		t.Fatalf("the conversation goes on as %s", roles)
	}
	if !strings.Contains(m[4].Content, "A person will read it and decide") || !strings.Contains(m[5].Content, "the turn ended before this call") ||
		!strings.Contains(m[7].Content, "a person decides") || m[8].Content != "The plan is approved." {
		t.Errorf("the model is told %+v", m[3:])
	}
}

func TestASubmittedPlanIsNotRepairedAwayByAResume(t *testing.T) {
	t.Parallel()
	p := plansNow()
	srv := serve(t, modeltest.Config{Script: func(_ context.Context, r modeltest.Request) modeltest.Reply {
		if r.N == 1 {
			return modeltest.Reply{Calls: []modeltest.Call{submit("# A plan")}}
		}
		return modeltest.Reply{Text: r.Messages[len(r.Messages)-2].Content}
	}})
	r := runtime(t, native.Config{BaseURL: srv.URL()})
	o := runner.Options{Folder: t.TempDir(), Policy: func() runner.Policy { return *p }}
	first := open(t, r, o, nil)
	first.turn(t, "plan it", runner.Completed)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	o.Resume = first.ResumeToken()
	second := open(t, r, o, nil)
	second.turn(t, "and?", runner.Completed)
	if said := second.said(t); strings.Contains(said, "interrupted") || !strings.Contains(said, "a person decides") {
		t.Errorf("a resumed session holds %q", said)
	}
}

func TestPlansThatCannotBeSubmitted(t *testing.T) {
	t.Parallel()
	fine := submit("# Fine")
	for name, c := range map[string]struct {
		call   modeltest.Call
		leaves bool // the chat leaves plan before the call is carried out
		says   string
	}{
		"empty":      {submit(""), false, "Error: the plan is empty"},
		"blank":      {submit(" \n\t"), false, "Error: the plan is empty"},
		"no plan":    {modeltest.CallOf("submit_plan", args{}), false, "Error: the plan is empty"},
		"a number":   {modeltest.CallOf("submit_plan", args{"plan": 7}), false, "Error: the arguments do not fit"},
		"too long":   {submit(strings.Repeat("ä", 100_001)), false, "Error: the plan has 100001 characters"},
		"not now":    {fine, true, "Error: the chat is not planning"},
		"broken off": {modeltest.Call{Name: "submit_plan", Arguments: `{"plan":"# Half of`}, false, "Error: the arguments of"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := plansNow()
			srv := serve(t, modeltest.Config{Piece: 50_000, Script: func(_ context.Context, r modeltest.Request) modeltest.Reply {
				if r.N == 1 {
					if c.leaves {
						p.Interaction = policy.Default
					}
					return modeltest.Reply{Calls: []modeltest.Call{c.call}}
				}
				return modeltest.Reply{Text: r.Messages[len(r.Messages)-1].Content}
			}})
			s := open(t, runtime(t, native.Config{BaseURL: srv.URL(), Window: 1_000_000}),
				runner.Options{Folder: t.TempDir(), Policy: func() runner.Policy { return *p }}, nil)
			if res := s.turn(t, "plan it", runner.Completed); res.Plan != "" {
				t.Errorf("the plan %.40q was taken", res.Plan)
			}
			if said := s.said(t); !strings.HasPrefix(said, c.says) {
				t.Errorf("the model was told %q", said)
			}
		})
	}
	t.Run("again and again", func(t *testing.T) {
		t.Parallel()
		s, _ := planned(t, plansNow(), modeltest.Reply{Calls: []modeltest.Call{submit("")}})
		if res := s.turn(t, "plan it", runner.Broken); !strings.Contains(res.Reason, "the plan is empty") {
			t.Errorf("reason %q", res.Reason)
		}
	})
}

func TestALongPlanIsTakenWhole(t *testing.T) {
	t.Parallel()
	long := "# Plan\n\n" + strings.Repeat("A step. ", 7500) + "The end."
	s, _ := planned(t, plansNow(), modeltest.Reply{Calls: []modeltest.Call{submit(long)}})
	if res := s.turn(t, "plan it", runner.Completed); res.Plan != long {
		t.Errorf("%d of %d bytes came", len(res.Plan), len(long))
	}
}

func TestAProposedPlanInTheLastMessageCounts(t *testing.T) {
	t.Parallel()
	const tags = "<proposed_plan>\n# A\n\n1. b\n</proposed_plan>"
	for name, c := range map[string]struct {
		said string
		acts bool // the chat does not plan
		plan string
	}{
		"alone":          {tags, false, "# A\n\n1. b"},
		"between words":  {"Here:\n\n" + tags + "\n\nShall I?", false, "# A\n\n1. b"},
		"the last one":   {"<proposed_plan>old</proposed_plan>\n" + tags, false, "# A\n\n1. b"},
		"never closed":   {"Here:\n<proposed_plan>\n# A", false, "# A"},
		"empty":          {"Here: <proposed_plan> \n</proposed_plan>", false, ""},
		"quoted":         {"Write it so:\n\n```\n" + tags + "\n```", false, ""},
		"quoted in line": {"Write `<proposed_plan>x</proposed_plan>` around it.", false, ""},
		"no plan":        {"It is in main.go.", false, ""},
		"not planning":   {tags, true, ""},
		"far too long":   {"<proposed_plan>" + strings.Repeat("ä", 100_001) + "</proposed_plan>", false, strings.Repeat("ä", 100_000) + "\n\n[The plan was longer and is cut here.]"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := plansNow()
			if c.acts {
				p.Interaction = policy.Default
			}
			s, _ := planned(t, p, modeltest.Reply{Text: c.said})
			if res := s.turn(t, "plan it", runner.Completed); res.Plan != c.plan {
				t.Errorf("the plan is %.60q, want %.60q", res.Plan, c.plan)
			}
			if said := s.said(t); said != c.said {
				t.Errorf("the message is %.60q", said)
			}
		})
	}
}

func TestThePhasesAreToldWhilePlanning(t *testing.T) {
	t.Parallel()
	p := plansNow()
	s, srv := planned(t, p, modeltest.Reply{Text: "fine"})
	s.turn(t, "plan it", runner.Completed)
	p.Interaction = policy.Default
	s.turn(t, "do it", runner.Completed)
	system := srv.Requests()[0].Messages[0].Content
	last := -1
	for _, phase := range []string{"Explore first", "Settle the intent", "Settle the implementation", "submit_plan"} {
		at := strings.Index(system, phase)
		if at <= last {
			t.Errorf("%q is not told, or not in its place:\n%s", phase, system)
		}
		last = at
		if strings.Contains(srv.Requests()[1].Messages[0].Content, phase) {
			t.Errorf("%q is told although the chat does not plan", phase)
		}
	}
}
