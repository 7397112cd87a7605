package approvals_test

import (
	"slices"
	"testing"
	"time"

	"drawbridge/approvals"
	"drawbridge/internal/store"
	"drawbridge/internal/store/storetest"
	"drawbridge/policy"
	"drawbridge/runner"
)

// BenchmarkTapToAnswer measures from the call of Decide on a gateway to the return of Ask on the host, at the pace of a
// real installation. On Redis the two have connections of their own.
func BenchmarkTapToAnswer(b *testing.B) {
	b.Run("bolt", func(b *testing.B) {
		db := openBolt(b)
		tapToAnswer(b, db, db)
	})
	b.Run("redis", func(b *testing.B) {
		server := storetest.StartRedis(b, storetest.RedisOptions{})
		tapToAnswer(b, server.Open(b, "db:{1}:"), server.Open(b, "db:{1}:"))
	})
}

func tapToAnswer(b *testing.B, hostDB, gatewayDB store.DB) {
	published := make(chan approvals.Record, 1)
	c := approvals.Config{DB: hostDB}
	c.Opened = func(_ *store.Txn, r approvals.Record) error { published <- r; return nil }
	h, _ := host(b, c, "i1")
	g := gateway(b, approvals.Config{DB: gatewayDB})
	run := turn(under(policy.ApprovalRequired, policy.Default))
	var took []time.Duration
	for b.Loop() {
		a := ask(b.Context(), h, run, command("go test ./..."))
		r := <-published
		for {
			if got, _, err := g.Get(b.Context(), r.ID); err != nil {
				b.Fatal(err)
			} else if got.ID != "" {
				break
			}
		}
		start := time.Now()
		if o := decide(b, g, tap(r, ada, runner.ActionAllow)); !o.Won {
			b.Fatalf("the tap came to %+v", o)
		}
		<-a.done
		took = append(took, time.Since(start))
		if !a.answer.Allows() {
			b.Fatalf("the answer is %+v", a.answer)
		}
	}
	slices.Sort(took)
	for name, share := range map[string]int{"p50-ms": 50, "p99-ms": 99} {
		b.ReportMetric(float64(took[(len(took)-1)*share/100].Microseconds())/1000, name)
	}
}
