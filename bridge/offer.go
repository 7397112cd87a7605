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
	// times; one that breaks in between is found out when its next session is opened.
	readyFor = 15 * time.Minute
	// justNow is how old a look may be that the beginning of a session relies on.
	justNow = 10 * time.Second
	// probeMost bounds one look. Runtimes have shorter limits of their own, and better words for what took so long.
	probeMost = 30 * time.Second
	// probeWait is how long the beginning of a session waits for a look; then the session has to find out by itself.
	probeWait = 5 * time.Second
)

// sight is what a look at a runtime has found, and when.
type sight struct {
	runtime runner.Runtime
	looking chan struct{} // held during a look: there is one at a time

	mu         sync.Mutex
	capability runner.Capability
	at         time.Time
}

func sights(runtimes []runner.Runtime) map[string]*sight {
	m := map[string]*sight{}
	for _, r := range runtimes {
		m[r.Name()] = &sight{runtime: r, looking: make(chan struct{}, 1)}
	}
	return m
}

// known is what was found last.
func (s *sight) known() (runner.Capability, time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.capability, s.at
}

// look looks at the runtime, unless it was seen to work within fresh. It reports what is known then, and whether it has
// looked.
func (s *sight) look(ctx context.Context, fresh time.Duration) (runner.Capability, bool) {
	select {
	case s.looking <- struct{}{}:
		defer func() { <-s.looking }()
	case <-ctx.Done():
		c, _ := s.known()
		return c, false
	}
	if c, at := s.known(); c.State == runner.Ready && time.Since(at) < fresh {
		return c, false
	}
	bounded, cancel := context.WithTimeout(ctx, probeMost)
	defer cancel()
	c, err := s.runtime.Probe(bounded)
	if err != nil {
		if ctx.Err() != nil { // whoever wanted to know has given up, which says nothing of the runtime
			c, _ = s.known()
			return c, false
		}
		c = runner.Capability{State: runner.Failed, Cause: runner.CauseProbe, Problem: err.Error()}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.capability, s.at = c, time.Now()
	return c, true
}

// inspect looks at a runtime before a session of it is opened, and tells gateways what it has found. The error says, for
// people, why it can't be used. One that could not be looked at in time is left to try.
func (h *Host) inspect(ctx context.Context, name string) error {
	bounded, cancel := context.WithTimeout(ctx, probeWait)
	defer cancel()
	c, looked := h.sights[name].look(bounded, justNow)
	if looked {
		if err := h.publish(ctx); err != nil && ctx.Err() == nil {
			h.cfg.Logger.Warn("cannot say what this host offers", "err", err)
		}
	}
	if c.State == runner.Failed && c.Cause.Final() {
		return errors.New(c.Problem)
	}
	return nil
}

// keepOffering publishes what this host offers until ctx ends. It stands beside the loop that takes orders: a program that
// does not answer must hold up no prompt, and no stop either.
func (h *Host) keepOffering(ctx context.Context) {
	if err := h.retry(ctx, "say hello", h.hello); err != nil {
		return // only ctx ends the retries
	}
	tick := time.NewTicker(offerEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if err := h.hello(ctx); err != nil && ctx.Err() == nil {
				h.cfg.Logger.Warn("cannot say what this host offers; trying again in a minute", "err", err)
			}
		}
	}
}

// hello looks at the runtimes, as far as that is due, and publishes what this host offers.
func (h *Host) hello(ctx context.Context) error {
	var looks sync.WaitGroup
	for _, s := range h.sights {
		looks.Go(func() { s.look(ctx, readyFor) })
	}
	looks.Wait()
	return h.publish(ctx)
}

// publish tells gateways what this host offers: the projects whose folders exist, and the runtimes with what they can do.
// One that was not looked at yet is what it was in the last run: prompts are taken from here on, and a look may take
// seconds.
func (h *Host) publish(ctx context.Context) error {
	m := Hello{V: Version, Host: h.cfg.Name, Reviewer: h.cfg.Reviewer}
	for _, p := range h.cfg.Projects {
		if info, err := os.Stat(p.Folder); err != nil || !info.IsDir() {
			h.cfg.Logger.Warn("project left out: its folder does not exist", "project", p.Name)
			continue
		}
		m.Projects = append(m.Projects, p)
	}
	return store.Update(ctx, h.cfg.DB, func(t *store.Txn) error {
		old, ok, err := store.Get[Hello](t, helloKey(h.cfg.Name))
		if err != nil && !errors.Is(err, store.ErrDamaged) {
			return err
		}
		m.Runtimes = map[string]runner.Capability{}
		for name, s := range h.sights {
			c, _ := s.known()
			if c.State == "" {
				c = old.Runtimes[name]
			}
			if c.State == "" {
				c.State = runner.Checking
			}
			m.Runtimes[name] = c
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
