package bridge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"drawbridge/internal/store"
	"drawbridge/runner"
)

// ErrandKind names what an Errand asks for.
type ErrandKind string

// ErrandSessions asks for the sessions of the chat's folder and runtime.
const ErrandSessions ErrandKind = "sessions"

const (
	errandTime  = 15 * time.Second // how long an errand may take
	maxSessions = 20
)

// Errand is what a gateway wants to know from a host: it starts no turn, changes nothing and waits for none. Only
// gateways write it, under errandKey.
type Errand struct {
	V       int        `json:"v"`
	ID      string     `json:"id"`
	Chat    string     `json:"chat"`
	Kind    ErrandKind `json:"kind"`
	Runtime string     `json:"runtime,omitempty"`
	Folder  string     `json:"folder,omitempty"`
	Ref     string     `json:"ref,omitempty"` // for whoever sent it; opaque here
	Created time.Time  `json:"created"`
}

// ErrandResult comes back as an entry of the host's log.
type ErrandResult struct {
	ID       string               `json:"id"`
	Kind     ErrandKind           `json:"kind"`
	Ref      string               `json:"ref,omitempty"`
	Problem  string               `json:"problem,omitempty"` // for people; then there is nothing else
	Runtime  string               `json:"runtime,omitempty"`
	Sessions []runner.SessionInfo `json:"sessions,omitempty"`
}

func errandKey(host, id string) string  { return "to:" + host + ":errand:" + id }
func errandsIndex(host string) string   { return "to:" + host + ":errands" }
func errandDone(host, id string) string { return "from:" + host + ":errand:" + id }

// Send sends a host on an errand for a chat. The result arrives at Projection.Project. ErrNoProject if the chat has none.
func (s *Chats) Send(t *store.Txn, chat string, kind ErrandKind, ref string) error {
	c, err := s.Get(t, chat)
	if err != nil {
		return err
	}
	if c.Project == "" {
		return fmt.Errorf("bridge: errand of %s: %w", chat, ErrNoProject)
	}
	now, err := t.Now()
	if err != nil {
		return err
	}
	e := Errand{V: Version, ID: newID("e."), Chat: chat, Kind: kind, Runtime: c.Runtime, Folder: c.Folder, Ref: ref, Created: now}
	t.Add(errandsIndex(c.Host), e.ID, store.Micros(now))
	t.Publish(wakeTopic(c.Host), nil)
	return store.Put(t, errandKey(c.Host, e.ID), e)
}

// returned forgets an errand whose result has arrived.
func (s *Chats) returned(t *store.Txn, host string, r ErrandResult) {
	t.Delete(errandKey(host, r.ID))
	t.Drop(errandsIndex(host), r.ID)
}

// Continues is the runtime's token of the session with which a chat goes on; empty if that will be a new one, or if its
// runtime has not told yet.
func (s *Chats) Continues(t *store.Txn, chat string) (string, error) {
	c, err := s.Get(t, chat)
	if err != nil || c.Session == "" {
		return c.Resume, err
	}
	r, _, err := store.Peek[SessionRecord](t, sessionKey(c.Host, c.Session))
	return cmp.Or(r.Token, c.Resume), err
}

// Adopt makes a session that the runtime knows the chat's: its next turn resumes it.
func (s *Chats) Adopt(t *store.Txn, chat, runtime, token string) error {
	c, err := s.Get(t, chat)
	if err != nil {
		return err
	}
	c.use(runtime)
	if err := s.fresh(t, &c); err != nil {
		return err
	}
	if c, err = s.Get(t, chat); err != nil {
		return err
	}
	c.Session, c.Resume = newID("s."), token
	return s.put(t, c)
}

// runErrands carries out the errands that nobody has begun. Each is waited for by running.
func (h *Host) runErrands(ctx context.Context, running *sync.WaitGroup) error {
	items, err := h.cfg.DB.Range(ctx, errandsIndex(h.cfg.Name), 0, maxScore, 0)
	if err != nil {
		return err
	}
	h.mu.Lock()
	maps.DeleteFunc(h.errands, func(id string, _ bool) bool { // the gateway has its result
		return !slices.ContainsFunc(items, func(it store.Item) bool { return it.Member == id })
	})
	h.mu.Unlock()
	for _, it := range items {
		h.mu.Lock()
		begun := h.errands[it.Member]
		h.errands[it.Member] = true
		h.mu.Unlock()
		if begun {
			continue
		}
		running.Go(func() {
			if err := h.errand(ctx, it.Member); err != nil && ctx.Err() == nil {
				h.cfg.Logger.Warn("an errand failed; trying again", "err", err)
				h.mu.Lock()
				delete(h.errands, it.Member)
				h.mu.Unlock()
			}
		})
	}
	return nil
}

func (h *Host) errand(ctx context.Context, id string) error {
	_, docs, err := h.cfg.DB.Read(ctx, errandKey(h.cfg.Name, id), errandDone(h.cfg.Name, id))
	if err != nil || docs[0].Rev == "" || docs[1].Rev != "" {
		return err
	}
	e, err := decode[Errand](docs[0].Value)
	if err != nil {
		h.cfg.Logger.Error("an errand cannot be read; skipped", "err", err)
		return nil
	}
	bounded, cancel := context.WithTimeout(ctx, errandTime)
	defer cancel()
	r := h.find(bounded, e)
	r.ID, r.Kind, r.Ref, r.Runtime = e.ID, e.Kind, e.Ref, e.Runtime
	return store.Update(ctx, h.cfg.DB, func(t *store.Txn) error {
		key := errandDone(h.cfg.Name, id)
		_, done, err := store.Get[bool](t, key)
		if err != nil || done {
			return err
		}
		now, err := t.Now()
		if err != nil {
			return err
		}
		t.Add(forgetIndex(h.cfg.Name), key, store.Micros(now))
		if err := store.Put(t, key, true); err != nil {
			return err
		}
		return h.cfg.Log.AppendIn(t, Entry{Chat: e.Chat, Errand: &r})
	})
}

// find is what errands ask for.
func (h *Host) find(ctx context.Context, e Errand) ErrandResult {
	r := h.runtime(e.Runtime)
	switch lister, ok := r.(runner.Lister); {
	case e.Kind != ErrandSessions:
		return ErrandResult{Problem: "This host is older than the gateway and does not know how to do this."}
	case r == nil:
		return ErrandResult{Problem: "This host has no runtime " + e.Runtime + "."}
	case !ok:
		return ErrandResult{Problem: "The runtime " + e.Runtime + " does not list its sessions."}
	default:
		sessions, err := lister.Sessions(ctx, e.Folder, maxSessions)
		if errors.Is(err, context.DeadlineExceeded) {
			return ErrandResult{Problem: "The runtime took too long to list its sessions."}
		}
		if err != nil {
			h.cfg.Logger.Warn("sessions could not be listed", "runtime", e.Runtime, "err", err)
			return ErrandResult{Problem: "The sessions could not be listed; the host's log says why."}
		}
		return ErrandResult{Sessions: sessions}
	}
}
