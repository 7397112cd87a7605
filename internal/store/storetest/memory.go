package storetest

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"drawbridge/internal/store"
)

// Memory is a store that forgets all when the test ends, for models that take more steps than a disk can follow. It passes
// the suite.
type Memory struct {
	hub store.Hub

	mu      sync.Mutex
	now     func() time.Time
	closed  bool
	docs    map[string]store.Doc
	indexes map[string]map[string]int64
}

var _ store.DB = (*Memory)(nil)

// NewMemory returns an empty store with a clock; time.Now if it is nil.
func NewMemory(now func() time.Time) *Memory {
	if now == nil {
		now = time.Now
	}
	return &Memory{now: now, docs: map[string]store.Doc{}, indexes: map[string]map[string]int64{}}
}

// SetClock gives the store another clock. Unlike bolt's, its time goes back when the clock does.
func (m *Memory) SetClock(now func() time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.now = now
}

// Keys are those of all documents, in their order.
func (m *Memory) Keys() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Sorted(maps.Keys(m.docs))
}

// lock returns with the lock held, or says why nothing can be done.
func (m *Memory) lock(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("memory: %w", context.Cause(ctx))
	}
	m.mu.Lock()
	if m.closed {
		m.mu.Unlock()
		return fmt.Errorf("memory: %w", store.ErrClosed)
	}
	return nil
}

// Read implements store.DB.
func (m *Memory) Read(ctx context.Context, keys ...string) (time.Time, []store.Doc, error) {
	if err := m.lock(ctx); err != nil {
		return time.Time{}, nil, err
	}
	defer m.mu.Unlock()
	docs := make([]store.Doc, len(keys))
	for i, k := range keys {
		if d, ok := m.docs[k]; ok {
			docs[i] = store.Doc{Value: append([]byte{}, d.Value...), Rev: d.Rev}
		}
	}
	return m.now().Round(0).Truncate(time.Microsecond), docs, nil
}

// Range implements store.DB.
func (m *Memory) Range(ctx context.Context, index string, min, max int64, limit int) ([]store.Item, error) {
	if err := m.lock(ctx); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	var items []store.Item
	for member, score := range m.indexes[index] {
		if score >= min && score <= max {
			items = append(items, store.Item{Index: index, Member: member, Score: score})
		}
	}
	slices.SortFunc(items, func(a, b store.Item) int {
		return cmp.Or(cmp.Compare(a.Score, b.Score), cmp.Compare(a.Member, b.Member))
	})
	if limit > 0 && len(items) > limit {
		items = items[:limit]
	}
	return items, nil
}

// Commit implements store.DB.
func (m *Memory) Commit(ctx context.Context, b store.Batch) error {
	if err := b.Check(); err != nil {
		return fmt.Errorf("memory: commit: %w", err)
	}
	if err := m.lock(ctx); err != nil {
		return err
	}
	defer m.mu.Unlock() // hints come in the order of the commits
	again, err := m.apply(b)
	if err != nil || again {
		return err
	}
	for _, msg := range b.Publish {
		if err := m.hub.Deliver(msg); err != nil {
			break // nobody listens any more; the commit has happened
		}
	}
	return nil
}

// apply reports whether this very batch was applied before.
func (m *Memory) apply(b store.Batch) (again bool, err error) {
	if b.Rev != "" {
		for k := range b.Put {
			if m.docs[k].Rev == b.Rev {
				return true, nil
			}
		}
	}
	for k, rev := range b.Guard {
		if m.docs[k].Rev != rev {
			return false, fmt.Errorf("memory: %q: %w", k, store.ErrConflict)
		}
	}
	rev := cmp.Or(b.Rev, store.NewRev())
	for _, k := range b.Del {
		delete(m.docs, k)
	}
	for k, v := range b.Put {
		m.docs[k] = store.Doc{Value: append([]byte{}, v...), Rev: rev}
	}
	for _, it := range b.Drop {
		delete(m.indexes[it.Index], it.Member)
	}
	for _, it := range b.Add {
		if m.indexes[it.Index] == nil {
			m.indexes[it.Index] = map[string]int64{}
		}
		m.indexes[it.Index][it.Member] = it.Score
	}
	return false, nil
}

// Publish implements store.DB.
func (m *Memory) Publish(ctx context.Context, topic string, body []byte) error {
	b := store.Batch{Publish: []store.Message{{Topic: topic, Body: body}}}
	if err := b.Check(); err != nil {
		return fmt.Errorf("memory: publish: %w", err)
	}
	if err := m.lock(ctx); err != nil {
		return err
	}
	m.mu.Unlock()
	return m.hub.Deliver(b.Publish[0])
}

// Listen implements store.DB.
func (m *Memory) Listen(ctx context.Context, topics ...string) (<-chan store.Message, error) {
	if err := m.lock(ctx); err != nil {
		return nil, err
	}
	m.mu.Unlock()
	return m.hub.Join(ctx, topics, nil)
}

// Close implements store.DB.
func (m *Memory) Close() error {
	m.mu.Lock()
	m.closed = true
	m.mu.Unlock()
	m.hub.Close()
	return nil
}
