package approvals_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"drawbridge/approvals"
	"drawbridge/internal/store"
	"drawbridge/internal/store/storetest"
	"drawbridge/policy"
	"drawbridge/runner"
)

// onBoth runs a test on the embedded store and on a real redis-server; open returns another connection to the same data.
func onBoth(t *testing.T, test func(t *testing.T, open func() store.DB)) {
	t.Helper()
	t.Run("bolt", func(t *testing.T) {
		t.Parallel()
		db := openBolt(t)
		test(t, func() store.DB { return db })
	})
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		server := storetest.StartRedis(t, storetest.RedisOptions{})
		test(t, func() store.DB { return server.Open(t, "db:{1}:") })
	})
}

// TestOnce has 1,000 approvals decided by two people through two gateways at once, each with another wish.
func TestOnce(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open func() store.DB) {
		const rounds, each = 20, 50
		c := approvals.Config{DB: open(), MaxPerRun: each}
		h, _ := host(t, c, "i1")
		g1, g2 := gateway(t, approvals.Config{DB: open()}), gateway(t, approvals.Config{DB: open()})
		for range rounds {
			var all sync.WaitGroup
			answers := make([]runner.Answer, each)
			for i := range each {
				all.Go(func() {
					q := command(fmt.Sprint("make ", i))
					var err error
					if answers[i], err = h.Ask(t.Context(), turn(under(policy.ApprovalRequired, policy.Default)), q); err != nil {
						t.Error(err)
					}
				})
			}
			winners := make([]*approvals.Decision, each)
			var taps sync.WaitGroup
			for _, r := range card(t, g1, each) {
				taps.Go(func() {
					var i int
					if _, err := fmt.Sscanf(r.Question.Command, "make %d", &i); err != nil {
						t.Error(err)
					}
					winners[i] = race(t, r, g1, g2)
				})
			}
			taps.Wait()
			all.Wait()
			for i, a := range answers {
				if w := winners[i]; w != nil && (a.Decision != w.Decision || a.By != w.Name || a.Source != runner.SourceUser) {
					t.Fatalf("the agent was told %+v, the winner is %+v", a, w)
				}
			}
		}
	})
}

// race taps r by two people at once and returns the decision of the one who has won.
func race(t *testing.T, r approvals.Record, gateways ...*approvals.Service) *approvals.Decision {
	var outcomes [2]approvals.Outcome
	taps := [2]approvals.Tap{tap(r, ada, runner.ActionAllow), tap(r, bob, runner.ActionDeny)}
	var g sync.WaitGroup
	for i := range taps {
		g.Go(func() {
			var err error
			if outcomes[i], err = gateways[i].Decide(context.WithoutCancel(t.Context()), taps[i]); err != nil {
				t.Error(err)
			}
		})
	}
	g.Wait()
	if outcomes[0].Won == outcomes[1].Won {
		t.Errorf("both have won, or none: %+v, %+v", outcomes[0], outcomes[1])
		return nil
	}
	winner, loser := 0, 1
	if outcomes[1].Won {
		winner, loser = 1, 0
	}
	d := outcomes[winner].Decision
	if d == nil || d.By != taps[winner].Person.ID || d.Action != taps[winner].Action {
		t.Errorf("the winner %s was told %+v", taps[winner].Person.Name, d)
		return nil
	}
	if l := outcomes[loser]; l.Refused != "" || l.Decision == nil || l.Decision.By != d.By || l.Decision.Action != d.Action {
		t.Errorf("the loser was told %+v, the decision is %+v", l, d)
	}
	return d
}

// TestATapKnowsItsOwnDecision delivers one tap three times, as Telegram or a lost reply may.
func TestATapKnowsItsOwnDecision(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open func() store.DB) {
		h, _ := host(t, fast(open()), "i1")
		g1, g2 := gateway(t, fast(open())), gateway(t, fast(open()))
		a := ask(t.Context(), h, turn(under(policy.ApprovalRequired, policy.Default)), command("make"))
		mine := tap(card(t, g1, 1)[0], ada, runner.ActionAllow)
		mine.Token = "q1"
		for i, g := range []*approvals.Service{g1, g1, g2} {
			if o := decide(t, g, mine); !o.Won || o.Decision.By != ada.ID {
				t.Errorf("delivery %d came to %+v", i, o)
			}
		}
		other := mine
		other.Token = "q2"
		if o := decide(t, g2, other); o.Won || o.Decision == nil {
			t.Errorf("another tap came to %+v", o)
		}
		if got := a.wait(t); !got.Allows() {
			t.Errorf("the answer is %+v", got)
		}
	})
}

// TestARestartedStoreLosesNoDecision kills redis-server while cards are open and after one was decided.
func TestARestartedStoreLosesNoDecision(t *testing.T) {
	t.Parallel()
	server := storetest.StartRedis(t, storetest.RedisOptions{})
	c := fast(server.Open(t, "db:{1}:"))
	h, _ := host(t, c, "i1")
	g := gateway(t, fast(server.Open(t, "db:{1}:")))
	sweeping(t, g)
	a := ask(t.Context(), h, turn(under(policy.ApprovalRequired, policy.Default)), command("make 1"))
	b := ask(t.Context(), h, turn(under(policy.ApprovalRequired, policy.Default)), command("make 2"))
	rs := card(t, g, 2)
	decide(t, g, tap(rs[0], ada, runner.ActionAllow))
	server.Kill()
	server.Restart()
	left := card(t, g, 1)
	if left[0].ID != rs[1].ID {
		t.Fatalf("open is %s, want %s", left[0].ID, rs[1].ID)
	}
	var o approvals.Outcome
	for end := time.Now().Add(60 * time.Second); !o.Won && time.Now().Before(end); {
		var err error
		if o, err = g.Decide(t.Context(), tap(rs[1], bob, runner.ActionAllow)); err != nil {
			t.Log(err)
		}
	}
	for _, x := range []*asked{a, b} {
		if got := x.wait(t); !got.Allows() {
			t.Errorf("the answer is %+v, %+v", got, o)
		}
	}
}
