package approvals_test

import (
	"encoding/json"
	"testing"
	"time"

	"drawbridge/approvals"
	"drawbridge/policy"
	"drawbridge/runner"
)

// TestOldRecordsAreRead reads what an older and a newer host may have stored.
func TestOldRecordsAreRead(t *testing.T) {
	t.Parallel()
	const old = `{"v":1,"id":"box.ABC","incarnation":"i1","chat":"7","question":{"kind":"command","command":"make","categories":["terminal"]},
		"mode":"auto","interaction":"default","digest":"d","created":"2026-01-02T03:04:05Z","deadline":"2026-01-02T03:14:05Z","state":"open",
		"someday":{"a":[1,2]}}`
	var r approvals.Record
	if err := json.Unmarshal([]byte(old), &r); err != nil {
		t.Fatal(err)
	}
	if a := r.Actions(); len(a) != 2 || a[0].ID != runner.ActionAllow || a[1].ID != runner.ActionDeny {
		t.Errorf("the actions are %+v", a)
	}
	if w := approvals.Standing(r, nil).Word; w != approvals.StandsOpen {
		t.Errorf("it stands as %q", w)
	}
	if r.ID.Host() != "box" || !r.Resolved.IsZero() || r.Mode != policy.Auto {
		t.Errorf("it is read as %+v", r)
	}
}

func TestIDsNameTheirHost(t *testing.T) {
	t.Parallel()
	for id, want := range map[approvals.ID]string{"box.ABC": "box", "my.box.lan.ABC": "my.box.lan", "box": "", "box.": "", ".ABC": "", "": ""} {
		if got := id.Host(); got != want {
			t.Errorf("the host of %q is %q, want %q", id, got, want)
		}
	}
	if a, b := approvals.NewID("box"), approvals.NewID("box"); a == b || a.Host() != "box" || len(a) != len("box.")+26 {
		t.Errorf("fresh ids are %q and %q", a, b)
	}
}

// TestStanding is the whole table: each state with each decision.
func TestStanding(t *testing.T) {
	t.Parallel()
	allowed := &approvals.Decision{Decision: runner.Allowed, Source: runner.SourceUser}
	denied := &approvals.Decision{Decision: runner.Denied, Source: runner.SourceUser}
	timeout := &approvals.Decision{Decision: runner.Denied, Source: runner.SourceTimeout}
	shutdown := &approvals.Decision{Decision: runner.Denied, Source: runner.SourceShutdown}
	gone := &approvals.Decision{Decision: runner.Allowed, Source: runner.SourceUser, Gone: time.Unix(1, 0)}
	nonsense := &approvals.Decision{Decision: "ALLOWED", Source: "user "}
	columns := []*approvals.Decision{nil, allowed, denied, timeout, shutdown, gone, nonsense}
	const (
		o, h, a, d, w, e, g, c = approvals.StandsOpen, approvals.StandsHandingOver, approvals.StandsAllowed, approvals.StandsDenied,
			approvals.StandsWithdrawn, approvals.StandsExpired, approvals.StandsGone, approvals.StandsChanged
	)
	for state, row := range map[approvals.State][]approvals.Word{
		approvals.Open:      {o, h, d, e, g, g, d},
		approvals.Closing:   {e, h, d, e, g, g, d},
		approvals.Handed:    {d, a, d, d, d, a, d},
		approvals.Withdrawn: {w, g, d, e, g, g, d},
		approvals.Expired:   {e, g, d, e, g, g, d},
		approvals.Lost:      {g, g, d, e, g, g, d},
		approvals.Changed:   {c, c, c, c, c, c, c},
		"later":             {g, g, d, e, g, g, d},
	} {
		for i, want := range row {
			if got := approvals.Standing(approvals.Record{State: state}, columns[i]).Word; got != want {
				t.Errorf("%s with %+v stands as %q, want %q", state, columns[i], got, want)
			}
		}
	}
	r := approvals.Record{State: approvals.Handed, Decision: denied}
	if got := approvals.Standing(r, allowed); got.Word != d || got.Decision != denied {
		t.Errorf("what the host has told the runtime counts, not %+v", got)
	}
}
