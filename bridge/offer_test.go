package bridge

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"drawbridge/approvals"
	"drawbridge/internal/store"
	"drawbridge/internal/store/storetest"
	"drawbridge/runner"
	"drawbridge/runner/runnertest"
)

// probing is a runtime whose program is looked at by a function.
type probing struct {
	runner.Runtime
	probe func(ctx context.Context) (runner.Capability, error)
}

func (p probing) Probe(ctx context.Context) (runner.Capability, error) { return p.probe(ctx) }

// TestOrdersDoNotWaitForAProbe: a program that does not answer when it is looked at holds up no turn, and no stop of the
// host.
func TestOrdersDoNotWaitForAProbe(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	looking := make(chan struct{}, 1)
	stop := h.host("laptop", func(c *HostConfig) {
		c.Runtimes[0] = probing{c.Runtimes[0], func(ctx context.Context) (runner.Capability, error) {
			looking <- struct{}{}
			<-ctx.Done()
			return runner.Capability{}, context.Cause(ctx)
		}}
	})
	<-looking
	if p := h.prompt("7", "u:1", "say hello"); !p.Started {
		t.Fatalf("the prompt was not handed out: %+v", p)
	}
	if r := h.shown.ended(t, "t.u:1"); r.Outcome != runner.Completed {
		t.Errorf("result %+v", r)
	}
	stop()
}

// TestRuntimesThatWorkAreSeldomProbed: a look may start a program several times, so one that works is looked at again after
// a quarter of an hour, while one that does not is tried every minute.
func TestRuntimesThatWorkAreSeldomProbed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		looks := map[string]int{}
		runtime := func(name string, state runner.State) runner.Runtime {
			return probing{runnertest.New(name, nil), func(context.Context) (runner.Capability, error) {
				mu.Lock()
				defer mu.Unlock()
				looks[name]++
				return runner.Capability{State: state}, nil
			}}
		}
		db := storetest.OpenBolt(t)
		log := NewLog(db, "laptop")
		host := NewHost(HostConfig{
			DB: db, Name: "laptop", Incarnation: "1", Log: log, Data: t.TempDir(), Logger: storetest.Logger(t),
			Runtimes:  []runner.Runtime{runtime("works", runner.Ready), runtime("broken", runner.Failed)},
			Approvals: approvals.New(approvals.Config{DB: db, Host: "laptop", Incarnation: "1", Logger: storetest.Logger(t)}),
		})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- host.Run(ctx) }()
		for _, c := range []struct {
			after         time.Duration
			works, broken int
		}{{0, 1, 1}, {14 * time.Minute, 1, 15}, {2 * time.Minute, 2, 17}} {
			<-time.After(c.after)
			synctest.Wait()
			mu.Lock()
			if looks["works"] != c.works || looks["broken"] != c.broken {
				t.Errorf("after another %v there were %v looks, want %d and %d", c.after, looks, c.works, c.broken)
			}
			mu.Unlock()
		}
		var said Hello
		err := store.Update(t.Context(), db, func(tx *store.Txn) (err error) {
			said, _, err = store.Peek[Hello](tx, helloKey("laptop"))
			return err
		})
		if err != nil || said.Runtimes["works"].State != runner.Ready || said.Runtimes["broken"].State != runner.Failed {
			t.Errorf("the host says %+v (%v)", said.Runtimes, err)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
