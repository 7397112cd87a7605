package bridge

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"sync"
	"time"

	"drawbridge/internal/store"
	"drawbridge/runner"
)

const (
	// offerEvery is how often a host looks at its projects, and at the runtimes that do not work: somebody may have
	// installed one, or logged in.
	offerEvery = time.Minute
	// readyFor is how long a runtime that works is taken to do so. To look at one may mean to start its program several
	// times; one that breaks in between says so in the turn that finds it broken.
	readyFor = 15 * time.Minute
	// probeMost bounds one look. Runtimes have shorter limits of their own, and better words for what took so long.
	probeMost = 30 * time.Second
)

// probed is what a look at a runtime has found, and when.
type probed struct {
	capability runner.Capability
	at         time.Time
}

// keepOffering publishes what this host offers until ctx ends. It stands beside the loop that takes orders: a program that
// does not answer must hold up no prompt, and no stop either.
func (h *Host) keepOffering(ctx context.Context) {
	known := map[string]probed{}
	if err := h.retry(ctx, "say hello", func(ctx context.Context) error { return h.hello(ctx, known) }); err != nil {
		return // only ctx ends the retries
	}
	tick := time.NewTicker(offerEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if err := h.hello(ctx, known); err != nil && ctx.Err() == nil {
				h.cfg.Logger.Warn("cannot say what this host offers; trying again in a minute", "err", err)
			}
		}
	}
}

// announce publishes what this host offers without having looked at its runtimes, which may take seconds: prompts are
// taken from here on. A runtime that was here in the last run is what it was then.
func (h *Host) announce(ctx context.Context) error {
	m := h.offer()
	return store.Update(ctx, h.cfg.DB, func(t *store.Txn) error {
		old, _, err := store.Get[Hello](t, helloKey(h.cfg.Name))
		if err != nil && !errors.Is(err, store.ErrDamaged) {
			return err
		}
		m.Runtimes = map[string]runner.Capability{}
		for _, r := range h.cfg.Runtimes {
			c, known := old.Runtimes[r.Name()]
			if !known {
				c = runner.Capability{State: runner.Checking}
			}
			m.Runtimes[r.Name()] = c
		}
		return store.Put(t, helloKey(h.cfg.Name), m)
	})
}

// offer is a hello without runtimes: the projects whose folders exist.
func (h *Host) offer() Hello {
	m := Hello{V: Version, Host: h.cfg.Name, Reviewer: h.cfg.Reviewer, Runtimes: map[string]runner.Capability{}}
	for _, p := range h.cfg.Projects {
		if info, err := os.Stat(p.Folder); err != nil || !info.IsDir() {
			h.cfg.Logger.Warn("project left out: its folder does not exist", "project", p.Name)
			continue
		}
		m.Projects = append(m.Projects, p)
	}
	return m
}

// hello publishes what this host offers: the projects, and the runtimes with what they can do. known is what it found when
// it was last called.
func (h *Host) hello(ctx context.Context, known map[string]probed) error {
	m := h.offer()
	var mu sync.Mutex
	var probes sync.WaitGroup
	for _, r := range h.cfg.Runtimes {
		mu.Lock()
		p := known[r.Name()]
		m.Runtimes[r.Name()] = p.capability
		mu.Unlock()
		if p.capability.State == runner.Ready && time.Since(p.at) < readyFor {
			continue
		}
		probes.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, probeMost)
			defer cancel()
			c, err := r.Probe(ctx)
			if err != nil {
				c = runner.Capability{State: runner.Failed, Problem: err.Error()}
			}
			mu.Lock()
			defer mu.Unlock()
			m.Runtimes[r.Name()], known[r.Name()] = c, probed{c, time.Now()}
		})
	}
	probes.Wait()
	return store.Update(ctx, h.cfg.DB, func(t *store.Txn) error {
		old, ok, err := store.Get[Hello](t, helloKey(h.cfg.Name))
		if err != nil && !errors.Is(err, store.ErrDamaged) {
			return err
		}
		if ok && same(old, m) {
			return nil
		}
		return store.Put(t, helloKey(h.cfg.Name), m)
	})
}

func same[T any](a, b T) bool {
	x, err1 := json.Marshal(a)
	y, err2 := json.Marshal(b)
	return err1 == nil && err2 == nil && bytes.Equal(x, y)
}
