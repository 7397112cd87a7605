package approvals_test

import (
	"context"
	"testing"
	"time"

	"drawbridge/approvals"
	"drawbridge/policy"
	"drawbridge/runner"
)

// TestBackgroundAsksHaveATimeAndAPlaceOfTheirOwn: what a task asks may wait longer than the usual deadline, silently, and in
// another chat, where nothing can be granted.
func TestBackgroundAsksHaveATimeAndAPlaceOfTheirOwn(t *testing.T) {
	t.Parallel()
	c := fast(openBolt(t))
	g := gateway(t, c)
	h, _ := host(t, c, "i1")
	for name, x := range map[string]struct {
		wait   time.Duration
		silent bool
		card   string
		want   time.Duration
	}{
		"usual":                        {0, false, "", 10 * time.Minute},
		"longer, at night":             {9 * time.Hour, true, "", 9 * time.Hour},
		"shorter, in the owner's chat": {time.Minute, false, "11", time.Minute},
		"longer than a plan may wait":  {30 * 24 * time.Hour, false, "", 7 * 24 * time.Hour},
	} {
		run := turn(under(policy.ApprovalRequired, policy.Default))
		run.Background, run.Card = true, x.card
		run.Wait = func(now time.Time, usual time.Duration) (time.Time, bool) {
			if x.wait == 0 {
				return now.Add(usual), x.silent
			}
			return now.Add(x.wait), x.silent
		}
		ctx, end := context.WithCancel(t.Context())
		a := ask(ctx, h, run, command("make "+name))
		r := card(t, g, 1)[0]
		wantChat := chat
		if x.card != "" {
			wantChat = x.card
		}
		if got := r.Deadline.Sub(r.Created); got != x.want || r.Silent != x.silent || r.Chat != wantChat || !r.Background {
			t.Errorf("%s: %s to decide, silent %v, in %s", name, got, r.Silent, r.Chat)
		}
		grants := false
		for _, action := range r.Actions() {
			grants = grants || action.Grant != ""
		}
		if grants == (x.card != "") {
			t.Errorf("%s: the card grants: %v", name, grants)
		}
		if x.card != "" {
			if o, err := g.Decide(t.Context(), approvals.Tap{ID: r.ID, Chat: chat, Person: ada, Action: runner.ActionAllow}); err == nil && o.Won {
				t.Errorf("%s: decided from a chat that was not asked", name)
			}
		}
		end()
		a.wait(t)
	}
}
