package approvals_test

import (
	"slices"
	"testing"

	"drawbridge/approvals"
	"drawbridge/internal/store"
	"drawbridge/policy"
	"drawbridge/runner"
)

func edit(paths ...string) runner.Question {
	q := runner.Question{Kind: runner.KindFileChange, Folder: "/srv/p1", Categories: []policy.Category{policy.Write}}
	for _, p := range paths {
		q.Files = append(q.Files, runner.FileChange{Path: p, Op: runner.FileEdit, Diff: "+x"})
	}
	return q
}

func tool(name string, c ...policy.Category) runner.Question {
	return runner.Question{Kind: runner.KindTool, Tool: name, Categories: c}
}

// granting gives one grant and then asks other questions.
type granting struct {
	h, g *approvals.Service
	db   store.DB
}

func newGranting(t *testing.T) granting {
	t.Helper()
	db := openBolt(t)
	h, _ := host(t, fast(db), "i1")
	return granting{h, gateway(t, fast(db)), db}
}

// spared asks q and reports whether a grant answered it; whatever reaches a person is denied.
func (x granting) spared(t *testing.T, run approvals.Run, q runner.Question) bool {
	t.Helper()
	a := ask(t.Context(), x.h, run, q)
	for {
		select {
		case <-a.done:
			return a.answer.Source == runner.SourceGrant && a.answer.Allows()
		default:
		}
		rs, err := x.g.Pending(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rs {
			decide(t, x.g, tap(r, ada, runner.ActionDeny))
		}
	}
}

// TestGrantsSpareOnlyWhatTheyWereGivenFor gives a grant for the first question and tries it on the second.
func TestGrantsSpareOnlyWhatTheyWereGivenFor(t *testing.T) {
	t.Parallel()
	protected := edit("a.go") // its folder is a link by now
	protected.Categories = append(protected.Categories, policy.Protected)
	elsewhere := command("go test ./...")
	elsewhere.Folder = "/srv/p1/sub"
	deletion := edit("a.go")
	deletion.Files[0].Op = runner.FileDelete
	inBackground := command("go test ./...")
	inBackground.Background = true
	asRun := func(change func(*approvals.Run)) func(*approvals.Run) { return change }
	for name, test := range map[string]struct {
		given runner.Question
		asked runner.Question
		run   func(*approvals.Run)
		scope string
		want  bool
	}{
		"the same command":                  {given: command("go test ./..."), asked: command("go test ./..."), want: true},
		"another one of the prefix":         {given: command("go test ./..."), asked: command("go test -race ./a"), want: true},
		"a forbidden option":                {given: command("go test ./..."), asked: command("go test -exec sh ./...")},
		"a second command":                  {given: command("go test ./..."), asked: command("go test ./... && make")},
		"a redirect":                        {given: command("go test ./..."), asked: command("go test ./... > out")},
		"another subcommand":                {given: command("go test ./..."), asked: command("go run ./...")},
		"another folder":                    {given: command("go test ./..."), asked: elsewhere},
		"a whole command":                   {given: command("make docs"), asked: command("make docs"), want: true},
		"a longer command":                  {given: command("make docs"), asked: command("make docs clean")},
		"a line behind it":                  {given: command("make docs"), asked: command("make docs\nmake")},
		"the same file":                     {given: edit("a.go", "b.go"), asked: edit("a.go"), want: true},
		"it does more than it did":          {given: edit("a.go"), asked: protected},
		"it does less than it did":          {given: protected, asked: edit("a.go"), want: true},
		"another file":                      {given: edit("a.go"), asked: edit("a.go", "b.go")},
		"another name of it":                {given: edit("a.go"), asked: edit("./a.go")},
		"deleting it":                       {given: edit("a.go"), asked: deletion},
		"no file":                           {given: edit("a.go"), asked: edit()},
		"the same tool":                     {given: tool("mcp__x", policy.Network), asked: tool("mcp__x", policy.Network), want: true},
		"a longer name":                     {given: tool("mcp__x", policy.Network), asked: tool("mcp__x2", policy.Network)},
		"the tool publishes":                {given: tool("mcp__x", policy.Network), asked: tool("mcp__x", policy.Network, policy.Publish)},
		"the tool deletes":                  {given: tool("mcp__x", policy.Network), asked: tool("mcp__x", policy.Delete)},
		"the tool reads secrets":            {given: tool("mcp__x", policy.Network), asked: tool("mcp__x", policy.Secret)},
		"another session":                   {given: command("go test ./..."), asked: command("go test ./..."), run: asRun(func(r *approvals.Run) { r.Session = "s2" })},
		"no session":                        {given: command("go test ./..."), asked: command("go test ./..."), run: asRun(func(r *approvals.Run) { r.Session = "" })},
		"another session, for the project":  {given: command("go test ./..."), asked: command("go test ./..."), scope: runner.ActionAllowProject, run: asRun(func(r *approvals.Run) { r.Session = "s2" }), want: true},
		"another project":                   {given: command("go test ./..."), asked: command("go test ./..."), scope: runner.ActionAllowProject, run: asRun(func(r *approvals.Run) { r.Project = "p2" })},
		"another chat":                      {given: command("go test ./..."), asked: command("go test ./..."), scope: runner.ActionAllowProject, run: asRun(func(r *approvals.Run) { r.Chat = "other" })},
		"background work":                   {given: command("go test ./..."), asked: inBackground},
		"a background run":                  {given: command("go test ./..."), asked: command("go test ./..."), run: asRun(func(r *approvals.Run) { r.Background = true })},
		"background work, on its own card":  {given: inBackground, asked: inBackground, want: true},
		"a background card, the foreground": {given: inBackground, asked: command("go test ./..."), want: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := newGranting(t)
			if test.scope == "" {
				test.scope = runner.ActionAllowSession
			}
			give(t, x.h, x.g, test.given, test.scope)
			run := turn(under(policy.ApprovalRequired, policy.Default))
			if test.run != nil {
				test.run(&run)
			}
			if got := x.spared(t, run, test.asked); got != test.want {
				t.Errorf("spared is %v, want %v", got, test.want)
			}
		})
	}
}

// TestWhatIsNeverGranted looks for buttons that grant.
func TestWhatIsNeverGranted(t *testing.T) {
	t.Parallel()
	x := newGranting(t)
	moved := edit("a.go")
	moved.Files[0].Op = runner.FileMove
	relative := command("make")
	relative.Folder = "p1"
	own := command("rm -r build")
	own.Actions = []runner.Action{
		{ID: "yes", Label: "Yes", Allows: true},
		{ID: "always", Label: "Always", Allows: true, Grant: approvals.ScopeProject},
		{ID: "no", Label: "No", Grant: approvals.ScopeSession},
	}
	for name, q := range map[string]runner.Question{
		"deleting":                 command("rm -r build"),
		"a secret":                 command("cat .env"),
		"publishing":               command("git push"),
		"what can't be parsed":     command("make 'docs"),
		"what is built at runtime": command("$CMD docs"),
		"a command without folder": relative,
		"moving a file":            moved,
		"a secret file":            edit(".env"),
		"no file":                  edit(),
		"a tool without a name":    tool("", policy.Network),
		"a paying tool":            tool("mcp__pay", policy.Payment),
		"a plan":                   {Kind: runner.KindPlan, Plan: "1. go"},
		"its own buttons":          own,
	} {
		a := ask(t.Context(), x.h, turn(under(policy.ApprovalRequired, policy.Default)), q)
		r := card(t, x.g, 1)[0]
		if r.Grant != nil || slices.ContainsFunc(r.Actions(), func(a runner.Action) bool { return a.Grant != "" }) {
			t.Errorf("%s can be granted: %+v, %+v", name, r.Grant, r.Actions())
		}
		if o := decide(t, x.g, tap(r, ada, runner.ActionAllowSession)); o.Refused != approvals.RefusedAction {
			t.Errorf("%s: the tap came to %+v", name, o)
		}
		deny := r.Actions()[len(r.Actions())-1]
		if deny.Allows {
			t.Errorf("%s: the last button is %+v", name, deny)
		}
		decide(t, x.g, tap(r, ada, deny.ID))
		a.wait(t)
	}
}

// TestAGrantIsShownExactly compares what the card holds with what is stored.
func TestAGrantIsShownExactly(t *testing.T) {
	t.Parallel()
	x := newGranting(t)
	for _, test := range []struct {
		q    runner.Question
		want approvals.Grant
	}{
		{command("go test -race ./..."), approvals.Grant{Prefix: "go test", Folder: "/srv/p1"}},
		{command("make  docs"), approvals.Grant{Command: "make  docs", Folder: "/srv/p1"}},
		{edit("b.go", "a.go", "b.go"), approvals.Grant{Paths: []string{"a.go", "b.go"}, Folder: "/srv/p1"}},
		{tool("mcp__x", policy.Network), approvals.Grant{Tool: "mcp__x"}},
	} {
		a := ask(t.Context(), x.h, turn(under(policy.ApprovalRequired, policy.Default)), test.q)
		r := card(t, x.g, 1)[0]
		same := func(where string, g approvals.Grant) {
			t.Helper()
			if g.Prefix != test.want.Prefix || g.Command != test.want.Command || g.Folder != test.want.Folder ||
				g.Tool != test.want.Tool || !slices.Equal(g.Paths, test.want.Paths) {
				t.Errorf("%s is %+v, want %+v", where, g, test.want)
			}
		}
		same("the card's", *r.Grant)
		decide(t, x.g, tap(r, ada, runner.ActionAllowProject))
		a.wait(t)
		gs, err := x.g.Grants(t.Context(), "box", chat)
		if err != nil || len(gs) == 0 {
			t.Fatalf("the grants are %v, %v", gs, err)
		}
		g := gs[len(gs)-1]
		same("the stored one", g)
		if g.ID == "" || g.Scope != approvals.ScopeProject || g.Project != "p1" || g.Session != "" || g.By != ada.ID || g.At.IsZero() || g.Mode != policy.ApprovalRequired {
			t.Errorf("the stored one is %+v", g)
		}
	}
}

// TestALowerModeEndsAGrant gives in auto and asks in approval-required and back.
func TestALowerModeEndsAGrant(t *testing.T) {
	t.Parallel()
	x := newGranting(t)
	p := under(policy.AutoAcceptEdits, policy.Default)
	a := ask(t.Context(), x.h, turn(p), command("make docs"))
	decide(t, x.g, tap(card(t, x.g, 1)[0], ada, runner.ActionAllowSession))
	a.wait(t)
	for _, test := range []struct {
		mode policy.Mode
		want bool
	}{{policy.AutoAcceptEdits, true}, {policy.ApprovalRequired, false}, {"", false}, {policy.Auto, true}} {
		p.set(test.mode, policy.Default)
		if got := x.spared(t, turn(p), command("make docs")); got != test.want {
			t.Errorf("in %q spared is %v, want %v", test.mode, got, test.want)
		}
	}
}

func TestRemovalOfAGrantActsAtOnce(t *testing.T) {
	t.Parallel()
	x := newGranting(t)
	p := under(policy.ApprovalRequired, policy.Default)
	give(t, x.h, x.g, command("make a"), runner.ActionAllowSession)
	give(t, x.h, x.g, command("make b"), runner.ActionAllowProject)
	give(t, x.h, x.g, edit("a.go"), runner.ActionAllowSession)
	gs, err := x.g.Grants(t.Context(), "box", chat)
	if err != nil || len(gs) != 3 {
		t.Fatalf("the grants are %+v, %v", gs, err)
	}
	revoke := func(id string) (ok bool) {
		t.Helper()
		if err := store.Update(t.Context(), x.db, func(tx *store.Txn) (err error) {
			ok, err = x.g.RevokeIn(tx, "box", chat, id)
			return err
		}); err != nil {
			t.Fatal(err)
		}
		return ok
	}
	if !revoke(gs[0].ID) || revoke(gs[0].ID) || revoke("") {
		t.Error("a grant is revoked exactly once")
	}
	if x.spared(t, turn(p), command("make a")) || !x.spared(t, turn(p), command("make b")) {
		t.Error("the wrong grant was revoked")
	}
	err = store.Update(t.Context(), x.db, func(tx *store.Txn) error {
		return x.g.DropGrantsIn(tx, "box", chat, func(g approvals.Grant) bool { return g.Scope == approvals.ScopeProject })
	})
	if err != nil {
		t.Fatal(err)
	}
	if x.spared(t, turn(p), edit("a.go")) || !x.spared(t, turn(p), command("make b")) {
		t.Error("a new session ends the grants of the session, and no other")
	}
	if err := store.Update(t.Context(), x.db, func(tx *store.Txn) error { return x.g.DropGrantsIn(tx, "box", chat, nil) }); err != nil {
		t.Fatal(err)
	}
	if x.spared(t, turn(p), command("make b")) {
		t.Error("a grant serves after all were dropped")
	}
}

// TestALosingGrantLeavesNothingBehind lets Bob deny first.
func TestALosingGrantLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	x := newGranting(t)
	a := ask(t.Context(), x.h, turn(under(policy.ApprovalRequired, policy.Default)), command("make docs"))
	r := card(t, x.g, 1)[0]
	decide(t, x.g, tap(r, bob, runner.ActionDeny))
	if o := decide(t, x.g, tap(r, ada, runner.ActionAllowProject)); o.Won || o.Decision.By != bob.ID {
		t.Errorf("the tap came to %+v", o)
	}
	a.wait(t)
	if gs, err := x.g.Grants(t.Context(), "box", chat); err != nil || len(gs) != 0 {
		t.Errorf("the grants are %+v, %v", gs, err)
	}
}
