package bridge

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"pgregory.net/rapid"

	"drawbridge/approvals"
	"drawbridge/internal/store"
	"drawbridge/internal/store/storetest"
	"drawbridge/policy"
	"drawbridge/runner"
)

// TestQueueModel runs random histories of prompts, ends, stops, modes and moves through Chats and holds them against what
// must be so at each step: one turn a chat, one writing turn a folder, no prompt handed out twice, none lost.
func TestQueueModel(t *testing.T) {
	t.Parallel()
	db := storetest.OpenBolt(t)
	run := 0
	rapid.Check(t, func(rt *rapid.T) {
		run++
		m := newQueueModel(rt, db, run)
		rt.Repeat(map[string]func(*rapid.T){
			"prompt": m.prompt,
			"again":  m.again,
			"end":    m.end,
			"stop":   m.stop,
			"plan":   m.plan,
			"move":   m.move,
			"":       m.check,
		})
		m.drain(rt)
	})
}

// queueModel knows what was asked for and what has become of it.
type queueModel struct {
	chats   *Chats
	db      store.DB
	host    string
	names   []string
	fate    map[string]string // prompt: waiting, running, ended, stopped
	counted int
	clock   time.Time
}

func newQueueModel(rt *rapid.T, db store.DB, run int) *queueModel {
	m := &queueModel{
		db: db, host: fmt.Sprintf("h%d", run), fate: map[string]string{}, clock: time.Unix(1_000_000, 0),
		chats: NewChats(ChatsConfig{DB: db, Logger: slog.New(slog.DiscardHandler), Approvals: approvals.New(approvals.Config{DB: db}), DefaultRuntime: "script"}),
	}
	for i := range 4 {
		m.names = append(m.names, fmt.Sprintf("%d/%d", run, i))
	}
	m.update(rt, func(t *store.Txn) error {
		t.Add(approvals.HostsIndex, m.host, 1)
		return store.Put(t, helloKey(m.host), Hello{
			V: Version, Host: m.host, Projects: []Project{{Name: "one" + m.host, Folder: "/one"}, {Name: "two" + m.host, Folder: "/two"}},
			Runtimes: map[string]runner.Capability{"script": {State: runner.Ready}},
		})
	})
	for i, chat := range m.names {
		m.update(rt, func(t *store.Txn) error {
			_, err := m.chats.SetProject(t, chat, []string{"one", "two"}[i%2]+m.host)
			return err
		})
	}
	return m
}

func (m *queueModel) update(rt *rapid.T, f func(*store.Txn) error) {
	if err := store.Update(rt.Context(), m.db, f); err != nil {
		rt.Fatal(err)
	}
}

func (m *queueModel) chat(rt *rapid.T) string { return rapid.SampledFrom(m.names).Draw(rt, "chat") }

func (m *queueModel) get(rt *rapid.T, id string) (c Chat) {
	m.update(rt, func(t *store.Txn) (err error) { c, err = m.chats.Get(t, id); return err })
	return c
}

func (m *queueModel) prompt(rt *rapid.T) {
	chat := m.chat(rt)
	if len(m.get(rt, chat).Queue) >= MaxQueue {
		return
	}
	m.counted++
	m.clock = m.clock.Add(time.Second)
	id := fmt.Sprintf("%s:%d", m.host, m.counted)
	m.update(rt, func(t *store.Txn) error {
		p, err := m.chats.Prompt(t, chat, Prompt{ID: id, Text: chat, At: m.clock})
		if p.Again || p.Stopped {
			rt.Fatalf("a fresh prompt was placed as %+v", p)
		}
		return err
	})
	m.fate[id] = "waiting"
}

// again offers a prompt that still waits or runs a second time.
func (m *queueModel) again(rt *rapid.T) {
	for _, chat := range m.names {
		for _, p := range m.get(rt, chat).Queue {
			m.update(rt, func(t *store.Txn) error {
				placed, err := m.chats.Prompt(t, chat, p)
				if !placed.Again {
					rt.Fatalf("the same prompt was taken twice: %+v", placed)
				}
				return err
			})
			return
		}
	}
}

func (m *queueModel) end(rt *rapid.T) {
	chat := m.chat(rt)
	a := m.get(rt, chat).Active
	if a == nil {
		return
	}
	for i, want := range []bool{true, false} { // the second time it is not the chat's turn any more
		m.update(rt, func(t *store.Txn) error {
			mine, err := m.chats.end(t, a.Host, chat, a.Turn, runner.Result{Outcome: runner.Completed})
			if mine != want {
				rt.Fatalf("end %d of %s: mine %v", i, a.Turn, mine)
			}
			return err
		})
	}
	m.fate[a.Prompt.ID] = "ended"
}

func (m *queueModel) stop(rt *rapid.T) {
	chat := m.chat(rt)
	c := m.get(rt, chat)
	m.update(rt, func(t *store.Txn) error {
		s, err := m.chats.Stop(t, chat, m.clock, false)
		if s.Prompts != len(c.Queue) || s.Turn != (c.Active != nil) {
			rt.Fatalf("stop of %d prompts and turn %v: %+v", len(c.Queue), c.Active != nil, s)
		}
		return err
	})
	for _, p := range c.Queue {
		m.fate[p.ID] = "stopped"
	}
}

func (m *queueModel) plan(rt *rapid.T) {
	i := rapid.SampledFrom([]policy.Interaction{policy.Default, policy.Plan}).Draw(rt, "interaction")
	chat := m.chat(rt)
	m.update(rt, func(t *store.Txn) error { return m.chats.SetInteraction(t, chat, i) })
}

func (m *queueModel) move(rt *rapid.T) {
	chat, to := m.chat(rt), rapid.SampledFrom([]string{"one", "two"}).Draw(rt, "project")
	m.update(rt, func(t *store.Txn) error { _, err := m.chats.SetProject(t, chat, to+m.host); return err })
}

// check is what must always be so.
func (m *queueModel) check(rt *rapid.T) {
	writers := map[string]string{}
	seen := map[string]string{}
	for _, chat := range m.names {
		c := m.get(rt, chat)
		if a := c.Active; a != nil {
			if m.fate[a.Prompt.ID] == "waiting" {
				m.fate[a.Prompt.ID] = "running"
			}
			seen[a.Prompt.ID] = "running"
			if a.Writer {
				if other := writers[a.Folder]; other != "" {
					rt.Fatalf("%s and %s both write in %s", chat, other, a.Folder)
				}
				writers[a.Folder] = chat
			}
			if a.Prompt.Text != chat {
				rt.Fatalf("%s runs a prompt of %s", chat, a.Prompt.Text)
			}
		}
		for _, p := range c.Queue {
			seen[p.ID] = "waiting"
		}
	}
	for id, fate := range m.fate {
		if (fate == "waiting" || fate == "running") && seen[id] != fate {
			rt.Fatalf("prompt %s is %s, but stands as %q", id, fate, seen[id])
		}
		if (fate == "ended" || fate == "stopped") && seen[id] != "" {
			rt.Fatalf("prompt %s was %s and stands as %s", id, fate, seen[id])
		}
	}
	orders, err := m.db.Range(rt.Context(), ordersIndex(m.host), 0, maxScore, 0)
	if err != nil {
		rt.Fatal(err)
	}
	running := 0
	for _, fate := range seen {
		if fate == "running" {
			running++
		}
	}
	if len(orders) != running {
		rt.Fatalf("%d orders for %d running turns", len(orders), running)
	}
}

// drain ends turns until nothing is left: whoever waits is handed out in the end.
func (m *queueModel) drain(rt *rapid.T) {
	for range 4 * (m.counted + 1) {
		m.check(rt)
		idle := true
		for _, chat := range m.names {
			a := m.get(rt, chat).Active
			if a == nil {
				continue
			}
			idle = false
			m.update(rt, func(t *store.Txn) error {
				_, err := m.chats.end(t, a.Host, chat, a.Turn, runner.Result{Outcome: runner.Completed})
				return err
			})
			m.fate[a.Prompt.ID] = "ended"
		}
		if idle {
			break
		}
	}
	for id, fate := range m.fate {
		if fate != "ended" && fate != "stopped" {
			rt.Fatalf("prompt %s is %s for ever", id, fate)
		}
	}
}
