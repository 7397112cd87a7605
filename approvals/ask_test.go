package approvals_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"drawbridge/approvals"
	"drawbridge/internal/store"
	"drawbridge/policy"
	"drawbridge/runner"
)

func TestAPolicyThatCanNotBeReadIsADenial(t *testing.T) {
	t.Parallel()
	h, _ := host(t, fast(openBolt(t)), "i1")
	run := turn(&allowing{p: runner.Policy{Mode: policy.FullAccess, Interaction: policy.Default}, err: errors.New("away")})
	read := runner.Question{Kind: runner.KindTool, Tool: "read_file", Categories: []policy.Category{policy.Read}}
	if got, err := h.Ask(t.Context(), run, read); err != nil || got.Decision != runner.Denied {
		t.Errorf("the answer is %+v, %v", got, err)
	}
	run.Policy = nil
	if got, err := h.Ask(t.Context(), run, read); err != nil || got.Decision != runner.Denied {
		t.Errorf("without a policy the answer is %+v, %v", got, err)
	}
}

// TestAChangeOfModeIsForWhatComesAfter changes the policy while a card is open.
func TestAChangeOfModeIsForWhatComesAfter(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		from, to policy.Mode
		then     policy.Interaction
		allowed  bool
	}{
		"raising answers nothing":              {policy.ApprovalRequired, policy.FullAccess, policy.Default, true},
		"lowering leaves the card to a person": {policy.Auto, policy.ApprovalRequired, policy.Default, true},
		"plan is stronger than the person":     {policy.Auto, policy.FullAccess, policy.Plan, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := openBolt(t)
			h, _ := host(t, fast(db), "i1")
			g := gateway(t, fast(db))
			p := under(test.from, policy.Default)
			a := ask(t.Context(), h, turn(p), command("make"))
			r := card(t, g, 1)[0]
			p.set(test.to, test.then)
			if st := stands(t, g, r.ID); st.Word != approvals.StandsOpen {
				t.Errorf("the change of mode made it %+v", st)
			}
			decide(t, g, tap(r, ada, runner.ActionAllow))
			if got := a.wait(t); got.Allows() != test.allowed {
				t.Errorf("the answer is %+v", got)
			}
			if st := stands(t, g, r.ID); (st.Word == approvals.StandsAllowed) != test.allowed {
				t.Errorf("it stands as %+v", st)
			}
			// The next ask sees the mode of now.
			p.set(policy.FullAccess, policy.Default)
			if got, err := h.Ask(t.Context(), turn(p), command("make")); err != nil || got.Source != runner.SourceRule || !got.Allows() {
				t.Errorf("the next answer is %+v, %v", got, err)
			}
		})
	}
}

func TestAnEndedTurnWithdrawsItsQuestion(t *testing.T) {
	t.Parallel()
	db := openBolt(t)
	h, _ := host(t, fast(db), "i1")
	g := gateway(t, fast(db))
	ctx, cancel := context.WithCancel(t.Context())
	a := ask(ctx, h, turn(under(policy.ApprovalRequired, policy.Default)), command("make"))
	r := card(t, g, 1)[0]
	cancel()
	if got := a.wait(t); got.Decision != runner.Withdrawn || got.Allows() {
		t.Errorf("the answer is %+v", got)
	}
	if w := stands(t, g, r.ID).Word; w != approvals.StandsWithdrawn {
		t.Errorf("it stands as %q", w)
	}
	if o := decide(t, g, tap(r, ada, runner.ActionAllow)); o.Won || o.Refused != approvals.RefusedWithdrawn {
		t.Errorf("a tap came to %+v", o)
	}
}

// TestWhatYouSeeIsWhatRuns changes the files while the card is open.
func TestWhatYouSeeIsWhatRuns(t *testing.T) {
	t.Parallel()
	db := openBolt(t)
	h, _ := host(t, fast(db), "i1")
	g := gateway(t, fast(db))
	var content atomic.Value
	content.Store("one")
	q := command("sh build.sh")
	q.Check = func() (string, error) { return content.Load().(string), nil }
	a := ask(t.Context(), h, turn(under(policy.ApprovalRequired, policy.Default)), q)
	first := card(t, g, 1)[0]
	content.Store("two")
	decide(t, g, tap(first, ada, runner.ActionAllow))
	var second approvals.Record
	for second = first; second.ID == first.ID; {
		second = card(t, g, 1)[0]
	}
	if w := stands(t, g, first.ID).Word; w != approvals.StandsChanged || first.Digest == second.Digest {
		t.Errorf("the first stands as %q, the digests are %s and %s", w, first.Digest, second.Digest)
	}
	decide(t, g, tap(second, ada, runner.ActionAllow))
	if got := a.wait(t); !got.Allows() {
		t.Errorf("the answer is %+v", got)
	}
}

func TestFilesThatKeepChangingAreADenial(t *testing.T) {
	t.Parallel()
	db := openBolt(t)
	h, _ := host(t, fast(db), "i1")
	g := gateway(t, fast(db))
	var n atomic.Int64
	q := command("sh build.sh")
	q.Check = func() (string, error) { return string(rune('a' + n.Add(1))), nil }
	a := ask(t.Context(), h, turn(under(policy.ApprovalRequired, policy.Default)), q)
	seen := map[approvals.ID]bool{}
	for running := true; running; {
		select {
		case <-a.done:
			running = false
		default:
			rs, err := g.Pending(t.Context(), chat)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range rs {
				seen[r.ID] = true
				decide(t, g, tap(r, ada, runner.ActionAllow))
			}
		}
	}
	if got := a.wait(t); got.Allows() || len(seen) != 3 {
		t.Errorf("after %d cards the answer is %+v", len(seen), got)
	}
}

// TestADecisionForSomethingElseIsADenial writes a decision with another digest, as a confused gateway might.
func TestADecisionForSomethingElseIsADenial(t *testing.T) {
	t.Parallel()
	db := openBolt(t)
	c := fast(db)
	c.Host, c.Incarnation = "box", "i1" // its logger may hold an error: that is what is tried
	h := approvals.New(c)
	g := gateway(t, fast(db))
	a := ask(t.Context(), h, turn(under(policy.ApprovalRequired, policy.Default)), command("make"))
	r := card(t, g, 1)[0]
	err := store.Update(t.Context(), db, func(tx *store.Txn) error {
		return store.Put(tx, approvals.DecisionKey(r.ID), approvals.Decision{
			V: 1, ID: r.ID, Decision: runner.Allowed, Source: runner.SourceUser, By: ada.ID, Digest: "other",
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := a.wait(t); got.Allows() {
		t.Errorf("the answer is %+v", got)
	}
	if w := stands(t, g, r.ID).Word; w != approvals.StandsDenied {
		t.Errorf("it stands as %q", w)
	}
}

func TestLimitsAreDenialsThatSaySo(t *testing.T) {
	t.Parallel()
	db := openBolt(t)
	c := fast(db)
	c.MaxPerRun, c.MaxPerChat = 2, 3
	h, _ := host(t, c, "i1")
	g := gateway(t, c)
	ctx, cancel := context.WithCancel(t.Context())
	p := under(policy.ApprovalRequired, policy.Default)
	of := func(run, chat string) approvals.Run { r := turn(p); r.ID, r.Chat = run, chat; return r }
	all := []*asked{ask(ctx, h, of("t1", chat), command("a")), ask(ctx, h, of("t1", chat), command("b"))}
	card(t, g, 2)
	refused := func(run approvals.Run, words string) {
		t.Helper()
		if got, err := h.Ask(ctx, run, command("c")); err != nil || got.Decision != runner.Denied || !strings.Contains(got.Reason, words) {
			t.Errorf("the answer is %+v, %v", got, err)
		}
	}
	refused(of("t1", chat), "run has 2 open")
	all = append(all, ask(ctx, h, of("t2", chat), command("d")))
	card(t, g, 3)
	refused(of("t3", chat), "chat has 3 open")
	all = append(all, ask(ctx, h, of("t4", "other"), command("e")))
	rs := card(t, g, 4) // the oldest first: it is of this chat
	i := map[string]int{"a": 0, "b": 1, "d": 2, "e": 3}[rs[0].Question.Command]
	decide(t, g, tap(rs[0], ada, runner.ActionDeny))
	all[i].wait(t)
	all = append(all, ask(ctx, h, of("t3", chat), command("f"))) // there is room again
	card(t, g, 4)
	cancel()
	for _, a := range all {
		a.wait(t)
	}
}

func TestWhatCanNotBeAskedIsDenied(t *testing.T) {
	t.Parallel()
	db := openBolt(t)
	h, _ := host(t, fast(db), "i1")
	own := func(actions ...runner.Action) runner.Question {
		q := command("make")
		q.Actions = actions
		return q
	}
	nine := make([]runner.Action, 9)
	for i := range nine {
		nine[i] = runner.Action{ID: string(rune('a' + i)), Label: "x"}
	}
	for name, q := range map[string]runner.Question{
		"an unknown kind":          {Kind: "deed", Categories: []policy.Category{policy.Read}},
		"bytes that are not UTF-8": command("rm \xff"),
		"a file name that is not":  {Kind: runner.KindFileChange, Files: []runner.FileChange{{Path: "a\xff", Op: runner.FileEdit}}},
		"more than can be read":    command(strings.Repeat("x", 2<<20)),
		"broken arguments":         {Kind: runner.KindTool, Tool: "x", Arguments: json.RawMessage(`{"a":`)},
		"two actions of one id":    own(runner.Action{ID: "a", Label: "A"}, runner.Action{ID: "a", Label: "B", Allows: true}),
		"an action without a name": own(runner.Action{ID: "a"}),
		"nine actions":             own(nine...),
		"deny that allows":         own(runner.Action{ID: "deny", Label: "Deny", Allows: true}),
		"a question of nothing":    {Kind: runner.KindQuestion},
		"two queries of one id":    {Kind: runner.KindQuestion, Queries: []runner.Query{{ID: "a", Free: true}, {ID: "a", Free: true}}},
	} {
		got, err := h.Ask(t.Context(), turn(under(policy.FullAccess, policy.Default)), q)
		if err != nil || got.Decision != runner.Denied || got.Source != runner.SourceRuntime || got.Reason == "" {
			t.Errorf("%s: the answer is %+v, %v", name, got, err)
		}
	}
}

// TestCategoriesOnlyBecomeStricter lets runtimes claim that something is a read.
func TestCategoriesOnlyBecomeStricter(t *testing.T) {
	t.Parallel()
	db := openBolt(t)
	h, _ := host(t, fast(db), "i1")
	g := gateway(t, fast(db))
	read := []policy.Category{policy.Read}
	for name, q := range map[string]runner.Question{
		"deleting a file":          {Kind: runner.KindFileChange, Files: []runner.FileChange{{Path: "a.go", Op: runner.FileDelete}}, Categories: read},
		"writing a git hook":       {Kind: runner.KindFileChange, Files: []runner.FileChange{{Path: ".git/hooks/pre-commit", Op: runner.FileEdit}}, Categories: read},
		"writing a secret":         {Kind: runner.KindFileChange, Files: []runner.FileChange{{Path: ".env", Op: runner.FileEdit}}, Categories: read},
		"publishing in a sandbox":  {Kind: runner.KindCommand, Command: "git push", Folder: "/srv/p1", Categories: read},
		"a secret read by command": {Kind: runner.KindCommand, Command: "cat ~/.ssh/id_rsa", Folder: "/srv/p1", Categories: read},
	} {
		a := ask(t.Context(), h, turn(under(policy.AutoAcceptEdits, policy.Default)), q)
		select {
		case <-a.done:
			t.Errorf("%s was answered without a person: %+v", name, a.answer)
			continue
		default:
		}
		decide(t, g, tap(card(t, g, 1)[0], ada, runner.ActionDeny))
		a.wait(t)
	}
}
