package approvals_test

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"drawbridge/approvals"
	"drawbridge/internal/store"
	"drawbridge/policy"
	"drawbridge/runner"
)

func proposed(title string) runner.Question {
	return runner.Proposal{Title: title, Steps: []string{"Run the tests."}}.Question()
}

// makes is what was made, by whoever decided.
type makes struct {
	mu      sync.Mutex
	problem string
}

const madeIndex = "g:made"

// in is approvals.Config.Make: it counts in the commit, as what is really made does.
func (m *makes) in(t *store.Txn, r approvals.Record, d approvals.Decision) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.problem == "" {
		t.Add(madeIndex, r.ID.Made()+" "+d.Name, 0)
	}
	return m.problem, nil
}

func (m *makes) all(t *testing.T, db store.DB) (ids []string) {
	t.Helper()
	items, err := db.Range(t.Context(), madeIndex, 0, 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, it := range items {
		ids = append(ids, it.Member)
	}
	return ids
}

// TestOnlyAPersonMakesWhatIsProposed asks in every mode and interaction, with a reviewer who lets everything pass and nothing
// that grants: a person is asked, a bulk tap does not reach it, and nothing is made before.
func TestOnlyAPersonMakesWhatIsProposed(t *testing.T) {
	t.Parallel()
	db := openBolt(t)
	c, m := fast(db), &makes{}
	c.Make = m.in
	h, _ := host(t, c, "i1")
	g := gateway(t, c)
	for _, i := range []policy.Interaction{policy.Default, policy.Plan} {
		for _, mode := range policy.Modes() {
			before := len(m.all(t, db))
			a := ask(t.Context(), h, turn(under(mode, i)), proposed("t"))
			r := card(t, g, 1)[0]
			if r.Grant != nil || slices.ContainsFunc(r.Actions(), func(x runner.Action) bool { return x.Grant != "" }) || r.Question.Proposal.Title != "t" {
				t.Errorf("%s, %s: the record is %+v", mode, i, r)
			}
			bulk := tap(r, ada, runner.ActionMake)
			bulk.Under = &runner.Policy{Mode: policy.FullAccess, Interaction: policy.Default}
			if o := decide(t, g, bulk); o.Refused != approvals.RefusedHumanOnly {
				t.Errorf("%s, %s: a tap for several came to %+v", mode, i, o)
			}
			if o := decide(t, g, tap(r, eve, runner.ActionMake)); o.Refused != approvals.RefusedForbidden {
				t.Errorf("%s, %s: a viewer's tap came to %+v", mode, i, o)
			}
			if n := len(m.all(t, db)); n != before {
				t.Fatalf("%s, %s: made before anybody decided", mode, i)
			}
			decide(t, g, tap(r, bob, runner.ActionMake))
			if answer := a.wait(t); !answer.Allows() || answer.Made != r.ID.Made() || answer.Source != runner.SourceUser {
				t.Errorf("%s, %s: answered %+v", mode, i, answer)
			}
			if all := m.all(t, db); len(all) != before+1 || !slices.Contains(all, r.ID.Made()+" Bob") {
				t.Errorf("%s, %s: made %q", mode, i, all)
			}
			a = ask(t.Context(), h, turn(under(mode, i)), proposed("t"))
			decide(t, g, tap(card(t, g, 1)[0], ada, runner.ActionDeny))
			if answer := a.wait(t); answer.Allows() || answer.Made != "" {
				t.Errorf("%s, %s: answered %+v", mode, i, answer)
			}
			if n := len(m.all(t, db)); n != before+1 {
				t.Errorf("%s, %s: made although it was denied", mode, i)
			}
		}
	}
}

// TestAProposalIsMadeOnce has two people tap at two gateways at once, on both stores: one thing is made, by the one who won.
func TestAProposalIsMadeOnce(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open func() store.DB) {
		db, m := open(), &makes{}
		h, _ := host(t, approvals.Config{DB: db}, "i1")
		g := []*approvals.Service{gateway(t, approvals.Config{DB: db, Make: m.in}), gateway(t, approvals.Config{DB: open(), Make: m.in})}
		for n := range 20 {
			a := ask(t.Context(), h, turn(under(policy.FullAccess, policy.Default)), proposed("t"))
			r := card(t, g[0], 1)[0]
			var taps sync.WaitGroup
			for i, p := range []approvals.Person{ada, bob} {
				taps.Go(func() {
					if _, err := g[i].Decide(t.Context(), tap(r, p, runner.ActionMake)); err != nil {
						t.Error(err)
					}
				})
			}
			taps.Wait()
			answer := a.wait(t)
			if all := m.all(t, db); len(all) != n+1 || !slices.Contains(all, r.ID.Made()+" "+answer.By) {
				t.Fatalf("made %q; answered %+v", all, answer)
			}
		}
	})
}

// TestWhatCannotBeMadeIsDenied: at the tap, where nothing makes tasks, and before anybody was asked.
func TestWhatCannotBeMadeIsDenied(t *testing.T) {
	t.Parallel()
	db := openBolt(t)
	c, m := fast(db), &makes{problem: "That time has passed."}
	h, _ := host(t, c, "i1")
	c.Make = m.in
	for name, g := range map[string]*approvals.Service{"That time has passed.": gateway(t, c), "Nothing makes tasks here.": gateway(t, fast(db))} {
		a := ask(t.Context(), h, turn(under(policy.FullAccess, policy.Default)), proposed("t"))
		o := decide(t, g, tap(card(t, g, 1)[0], ada, runner.ActionMake))
		if !o.Won || o.Decision.Decision != runner.Denied || o.Decision.Source != runner.SourceRuntime {
			t.Errorf("%s: the tap came to %+v", name, o)
		}
		if answer := a.wait(t); answer.Allows() || answer.Made != "" || !strings.Contains(answer.Describe(), name) {
			t.Errorf("%s: answered %+v", name, answer)
		}
	}
	g := gateway(t, c)
	a := ask(t.Context(), h, turn(under(policy.FullAccess, policy.Default)), proposed("t"))
	r := card(t, g, 1)[0]
	for _, first := range []bool{true, false} {
		var refused bool
		err := store.Update(t.Context(), db, func(t *store.Txn) (err error) { refused, err = g.RefuseIn(t, r.ID, "No such day."); return err })
		if err != nil || refused != first {
			t.Errorf("refused %v, %v", refused, err)
		}
	}
	if answer := a.wait(t); answer.Allows() || !strings.Contains(answer.Describe(), "No such day.") {
		t.Errorf("answered %+v", answer)
	}
	if all := m.all(t, db); len(all) != 0 {
		t.Errorf("made %q", all)
	}
	// What is no proposal, or hides one, is asked of nobody.
	for name, q := range map[string]runner.Question{
		"none":    {Kind: runner.KindProposal},
		"bad":     runner.Proposal{Title: "t"}.Question(),
		"another": {Kind: runner.KindCommand, Command: "ls", Proposal: proposed("t").Proposal},
	} {
		if answer := ask(t.Context(), h, turn(under(policy.FullAccess, policy.Default)), q).wait(t); answer.Allows() || answer.Source != runner.SourceRuntime {
			t.Errorf("%s: answered %+v", name, answer)
		}
	}
}

// TestADigestWithoutAProposalStaysWhatItWas: a card of before can be decided by the next version, and what a proposal says is
// part of its own.
func TestADigestWithoutAProposalStaysWhatItWas(t *testing.T) {
	t.Parallel()
	db := openBolt(t)
	h, _ := host(t, fast(db), "i1")
	g := gateway(t, fast(db))
	seen := map[string]string{}
	for name, q := range map[string]runner.Question{"command": command("make test"), "one": proposed("one"), "two": proposed("two")} {
		a := ask(t.Context(), h, turn(under(policy.ApprovalRequired, policy.Default)), q)
		r := card(t, g, 1)[0]
		seen[name] = r.Digest
		decide(t, g, tap(r, ada, runner.ActionDeny))
		a.wait(t)
	}
	if seen["one"] == seen["two"] {
		t.Error("two proposals have one digest")
	}
	const before = "bf4365f663d138451a88ecf4a0a94321637ce3decbb4998666616a7fc2033db8"
	if seen["command"] != before {
		t.Errorf("the digest of a command is %s, and was %s", seen["command"], before)
	}
}
