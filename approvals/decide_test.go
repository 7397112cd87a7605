package approvals_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"drawbridge/approvals"
	"drawbridge/internal/store"
	"drawbridge/policy"
	"drawbridge/runner"
)

// TestWhatATapIsRefused tries each refusal on a card that stays open, and then decides it.
func TestWhatATapIsRefused(t *testing.T) {
	t.Parallel()
	db := openBolt(t)
	h, _ := host(t, fast(db), "i1")
	g := gateway(t, fast(db))
	a := ask(t.Context(), h, turn(under(policy.ApprovalRequired, policy.Default)), command("make"))
	r := card(t, g, 1)[0]
	for name, test := range map[string]struct {
		change func(*approvals.Tap)
		want   approvals.Refusal
	}{
		"a malformed id":              {func(x *approvals.Tap) { x.ID = "box" }, approvals.RefusedUnknown},
		"no id":                       {func(x *approvals.Tap) { x.ID = "" }, approvals.RefusedUnknown},
		"another id":                  {func(x *approvals.Tap) { x.ID = approvals.NewID("box") }, approvals.RefusedUnknown},
		"another host's id":           {func(x *approvals.Tap) { x.ID = approvals.NewID("other") }, approvals.RefusedUnknown},
		"another chat":                {func(x *approvals.Tap) { x.Chat = "-1001:8" }, approvals.RefusedChat},
		"no chat":                     {func(x *approvals.Tap) { x.Chat = "" }, approvals.RefusedChat},
		"a viewer":                    {func(x *approvals.Tap) { x.Person = eve }, approvals.RefusedForbidden},
		"somebody who is not listed":  {func(x *approvals.Tap) { x.Person = approvals.Person{ID: 99, Name: "Mallory"} }, approvals.RefusedForbidden},
		"an unknown role":             {func(x *approvals.Tap) { x.Person.Role = "Owner" }, approvals.RefusedForbidden},
		"an anonymous administrator":  {func(x *approvals.Tap) { x.Person.ID = 0 }, approvals.RefusedForbidden},
		"a button that is not there":  {func(x *approvals.Tap) { x.Action = "allow-always" }, approvals.RefusedAction},
		"no button":                   {func(x *approvals.Tap) { x.Action = "" }, approvals.RefusedAction},
		"an operator for the project": {func(x *approvals.Tap) { x.Person, x.Action = bob, runner.ActionAllowProject }, approvals.RefusedOwners},
		"answers to a command":        {func(x *approvals.Tap) { x.Answers = map[string][]string{"a": {"b"}} }, approvals.RefusedAnswers},
		"an endless reason":           {func(x *approvals.Tap) { x.Reason = strings.Repeat("a", 17<<10) }, approvals.RefusedAnswers},
	} {
		x := tap(r, ada, runner.ActionAllow)
		test.change(&x)
		if o := decide(t, g, x); o.Won || o.Refused != test.want || o.Decision != nil {
			t.Errorf("%s came to %+v, want %s", name, o, test.want)
		}
	}
	if o := decide(t, g, tap(r, bob, runner.ActionDeny)); !o.Won {
		t.Errorf("the tap came to %+v", o)
	}
	if got := a.wait(t); got.Decision != runner.Denied || got.By != "Bob" {
		t.Errorf("the answer is %+v", got)
	}
}

func TestAPersonsReasonReachesTheAgent(t *testing.T) {
	t.Parallel()
	db := openBolt(t)
	h, _ := host(t, fast(db), "i1")
	g := gateway(t, fast(db))
	a := ask(t.Context(), h, turn(under(policy.ApprovalRequired, policy.Default)), command("make"))
	x := tap(card(t, g, 1)[0], bob, runner.ActionDeny)
	x.Reason = "use \"go test\"\ninstead"
	decide(t, g, x)
	if got := a.wait(t); got.Reason != x.Reason || !strings.Contains(got.Describe(), x.Reason) {
		t.Errorf("the answer is %+v", got)
	}
}

func TestAQuestionIsAnsweredWithWhatItOffers(t *testing.T) {
	t.Parallel()
	db := openBolt(t)
	h, _ := host(t, fast(db), "i1")
	g := gateway(t, fast(db))
	q := runner.Question{Kind: runner.KindQuestion, Queries: []runner.Query{
		{ID: "colour", Text: "Which?", Options: []runner.Option{{Label: "red"}, {Label: "blue"}}},
		{ID: "tags", Text: "Which?", Options: []runner.Option{{Label: "a"}, {Label: "b"}}, Multiple: true, Free: true},
	}}
	a := ask(t.Context(), h, turn(under(policy.FullAccess, policy.Default)), q)
	r := card(t, g, 1)[0]
	for name, answers := range map[string]map[string][]string{
		"nothing":              nil,
		"one is missing":       {"colour": {"red"}},
		"an empty one":         {"colour": {"red"}, "tags": {""}},
		"two for one":          {"colour": {"red", "blue"}, "tags": {"a"}},
		"not offered":          {"colour": {"green"}, "tags": {"a"}},
		"an unknown query":     {"colour": {"red"}, "tags": {"a"}, "more": {"a"}},
		"an endless free text": {"colour": {"red"}, "tags": {strings.Repeat("x", 17<<10)}},
	} {
		x := approvals.Tap{ID: r.ID, Chat: chat, Person: bob, Answers: answers}
		if o := decide(t, g, x); o.Won || o.Refused != approvals.RefusedAnswers {
			t.Errorf("%s came to %+v", name, o)
		}
	}
	want := map[string][]string{"colour": {"blue"}, "tags": {"a", "my own"}}
	if o := decide(t, g, approvals.Tap{ID: r.ID, Chat: chat, Person: bob, Answers: want}); !o.Won {
		t.Fatalf("the answers came to %+v", o)
	}
	if got := a.wait(t); !got.Allows() || !reflect.DeepEqual(got.Answers, want) {
		t.Errorf("the answer is %+v", got)
	}
	b := ask(t.Context(), h, turn(under(policy.FullAccess, policy.Default)), q)
	if o := decide(t, g, tap(card(t, g, 1)[0], bob, runner.ActionDeny)); !o.Won {
		t.Errorf("declining came to %+v", o)
	}
	if got := b.wait(t); got.Decision != runner.Denied {
		t.Errorf("the answer is %+v", got)
	}
}

// TestAChangeOfModeAllowsOnlyWhatItCovers is the second button of the confirmation of full-access.
func TestAChangeOfModeAllowsOnlyWhatItCovers(t *testing.T) {
	t.Parallel()
	db := openBolt(t)
	h, _ := host(t, fast(db), "i1")
	g := gateway(t, fast(db))
	for _, test := range []struct {
		q     runner.Question
		under runner.Policy
		want  approvals.Refusal
	}{
		{command("make"), runner.Policy{Mode: policy.FullAccess, Interaction: policy.Default}, ""},
		{command("make"), runner.Policy{Mode: policy.AutoAcceptEdits, Interaction: policy.Default}, approvals.RefusedNotAllowed},
		{command("make"), runner.Policy{Mode: policy.FullAccess, Interaction: policy.Plan}, approvals.RefusedNotAllowed},
		{runner.Question{Kind: runner.KindTool, Tool: "x", Categories: []policy.Category{policy.Publish}}, runner.Policy{Mode: policy.FullAccess, Interaction: policy.Default}, approvals.RefusedHumanOnly},
		{runner.Question{Kind: runner.KindPlan, Plan: "1. go"}, runner.Policy{Mode: policy.FullAccess, Interaction: policy.Default}, approvals.RefusedHumanOnly},
	} {
		a := ask(t.Context(), h, turn(under(policy.ApprovalRequired, policy.Default)), test.q)
		r := card(t, g, 1)[0]
		x := tap(r, ada, runner.ActionAllow)
		x.Under = &test.under
		if o := decide(t, g, x); o.Won != (test.want == "") || o.Refused != test.want {
			t.Errorf("%s under %+v came to %+v, want %q", test.q.Kind, test.under, o, test.want)
		}
		decide(t, g, tap(r, ada, runner.ActionDeny))
		a.wait(t)
	}
}

// TestADecisionIsOneCommitWithWhatCausedIt lets the caller's part of the Txn fail.
func TestADecisionIsOneCommitWithWhatCausedIt(t *testing.T) {
	t.Parallel()
	db := openBolt(t)
	h, _ := host(t, fast(db), "i1")
	c := fast(db)
	refuse := errors.New("the hook fails")
	var hook error
	c.Decided = func(t *store.Txn, r approvals.Record, _ approvals.Decision) error {
		t.Add("g:cards", string(r.ID), 1)
		return hook
	}
	g := gateway(t, c)
	a := ask(t.Context(), h, turn(under(policy.ApprovalRequired, policy.Default)), command("make"))
	r := card(t, g, 1)[0]
	hook = refuse
	if _, err := g.Decide(t.Context(), tap(r, ada, runner.ActionAllow)); !errors.Is(err, refuse) {
		t.Errorf("Decide returns %v", err)
	}
	if st := stands(t, g, r.ID); st.Word != approvals.StandsOpen {
		t.Errorf("it stands as %+v", st)
	}
	hook = nil
	err := store.Update(t.Context(), db, func(tx *store.Txn) error {
		o, err := g.DecideIn(tx, tap(r, ada, runner.ActionAllow))
		if err == nil && !o.Won {
			t.Errorf("the tap came to %+v", o)
		}
		tx.Drop("g:inbox", "7")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := a.wait(t); !got.Allows() {
		t.Errorf("the answer is %+v", got)
	}
	if items, err := db.Range(t.Context(), "g:cards", 0, 9, 0); err != nil || len(items) != 1 {
		t.Errorf("the hook wrote %v, %v", items, err)
	}
}

// TestSecretAnswersAreNotKept looks through everything that is stored, once the agent was told.
func TestSecretAnswersAreNotKept(t *testing.T) {
	t.Parallel()
	db := openBolt(t)
	h, _ := host(t, fast(db), "i1")
	g := gateway(t, fast(db))
	q := runner.Question{Kind: runner.KindQuestion, Queries: []runner.Query{
		{ID: "key", Text: "The key?", Free: true, Secret: true}, {ID: "name", Text: "The name?", Free: true},
	}}
	a := ask(t.Context(), h, turn(under(policy.FullAccess, policy.Default)), q)
	r := card(t, g, 1)[0]
	given := map[string][]string{"key": {"SENTINEL"}, "name": {"n"}}
	if o := decide(t, g, approvals.Tap{ID: r.ID, Chat: chat, Person: bob, Answers: given}); !o.Won {
		t.Fatalf("the answers came to %+v", o)
	}
	if got := a.wait(t); !reflect.DeepEqual(got.Answers, given) {
		t.Errorf("the answer is %+v", got)
	}
	if err := g.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, docs, err := db.Read(t.Context(), approvals.AskKey(r.ID), approvals.DecisionKey(r.ID))
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range docs {
		if strings.Contains(string(d.Value), "SENTINEL") || !strings.Contains(string(d.Value), `"name":["n"]`) {
			t.Errorf("kept is %s", d.Value)
		}
	}
}
