package bridge

import (
	"context"
	"fmt"
	"strconv"

	"drawbridge/approvals"
	"drawbridge/internal/store"
	"drawbridge/runner"
)

// head is the end of a host's log, under headKey.
type head struct {
	V   int   `json:"v"`
	Seq int64 `json:"seq"`
}

// Log is a host's log: the timelines of all its chats in one order, with no gaps. Only its host writes it. It is safe
// for concurrent use within that process.
type Log struct {
	db   store.DB
	host string
	// flush commits what the turn has said so far; see Opened.
	flush func(ctx context.Context, turn string) error
	// cost counts what a review took into its turn; see ReviewCost.
	cost func(turn string, u runner.Usage)
}

// NewLog returns the log of a host.
func NewLog(db store.DB, host string) *Log { return &Log{db: db, host: host} }

// Append commits entries at the end of the log.
func (l *Log) Append(ctx context.Context, entries ...Entry) error {
	if len(entries) == 0 {
		return nil
	}
	err := store.Update(ctx, l.db, func(t *store.Txn) error { return l.AppendIn(t, entries...) })
	if err != nil {
		return fmt.Errorf("bridge: append to the log of %s: %w", l.host, err)
	}
	return nil
}

// AppendIn adds entries to the end of the log in the caller's commit.
func (l *Log) AppendIn(t *store.Txn, entries ...Entry) error {
	h, _, err := store.Get[head](t, headKey(l.host))
	if err != nil {
		return err
	}
	now, err := t.Now()
	if err != nil {
		return err
	}
	for _, e := range entries {
		h.Seq++
		e.V, e.Seq = Version, h.Seq
		if e.At.IsZero() {
			e.At = now
		}
		key := entryKey(l.host, e.Seq)
		if err := store.Put(t, key, e); err != nil {
			return err
		}
		t.Add(timelineIndex(l.host, e.Chat), strconv.FormatInt(e.Seq, 10), e.Seq)
		t.Add(forgetIndex(l.host), key, store.Micros(now))
	}
	h.V = Version
	t.Publish(logTopic(l.host), nil)
	return store.Put(t, headKey(l.host), h)
}

// Opened is approvals.Config.Opened of this host: what the turn has said so far is committed before the ask is
// published, so that a person reads it above the card; the entry itself is part of the ask's commit.
func (l *Log) Opened(t *store.Txn, r approvals.Record) error {
	if l.flush != nil {
		if err := l.flush(t.Context(), r.Turn); err != nil {
			return err
		}
	}
	return l.AppendIn(t, requestEntry(r, runner.RequestOpened))
}

// Resolved is approvals.Config.Resolved of this host.
func (l *Log) Resolved(t *store.Txn, r approvals.Record) error {
	return l.AppendIn(t, requestEntry(r, runner.RequestResolved))
}

// Reviewed is approvals.Config.Reviewed of this host: each step of a reviewer of ours stands in the timeline, below what
// the agent has said before it.
func (l *Log) Reviewed(t *store.Txn, run approvals.Run, r runner.Review) error {
	if l.flush != nil {
		if err := l.flush(t.Context(), run.Turn); err != nil {
			return err
		}
	}
	return l.AppendIn(t, Entry{
		Chat: run.Chat, Turn: run.Turn, Session: run.Session,
		Event: runner.Event{Kind: runner.ReviewChanged, Turn: run.Turn, Review: &r},
	})
}

// ReviewCost is approvals.Config.ReviewCost of this host: what a review took is part of what its turn took. A review
// outside of a turn counts nowhere.
func (l *Log) ReviewCost(run approvals.Run, u runner.Usage) {
	if l.cost != nil {
		l.cost(run.Turn, u)
	}
}

func requestEntry(r approvals.Record, kind runner.EventKind) Entry {
	// The record holds the question and the decision; the entry only points there, so that it stays small.
	return Entry{
		Chat: r.Chat, Turn: r.Turn, Session: r.Session,
		Event: runner.Event{Kind: kind, Turn: r.Turn, Request: &runner.Request{ID: string(r.ID)}},
	}
}

// TimelineIn reads a chat's entries on a host with from <= Seq <= to, oldest first, at most limit of them (0: all).
// Entries that were forgotten are left out. What it reads is not guarded, since entries never change.
func TimelineIn(t *store.Txn, host, chat string, from, to int64, limit int) ([]Entry, error) {
	items, err := t.Range(timelineIndex(host, chat), from, to, limit)
	if err != nil {
		return nil, fmt.Errorf("bridge: timeline of %s: %w", chat, err)
	}
	keys := make([]string, len(items))
	for i, it := range items {
		keys[i] = entryKey(host, it.Score)
	}
	if err := t.Preload(keys...); err != nil {
		return nil, fmt.Errorf("bridge: timeline of %s: %w", chat, err)
	}
	entries := make([]Entry, 0, len(keys))
	for _, key := range keys {
		e, ok, err := store.Peek[Entry](t, key)
		if err != nil {
			return nil, err
		}
		if e.Host = host; ok {
			entries = append(entries, e)
		}
	}
	return entries, nil
}
