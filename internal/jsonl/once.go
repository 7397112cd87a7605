package jsonl

import "sync"

// onceLimit bounds what a Once remembers: the names come from the other side.
const onceLimit = 1000

// Once tells the first of its kind from all others, so that something unknown is logged once and not with every frame.
// The zero value is ready. It is safe for concurrent use.
type Once struct {
	mu   sync.Mutex
	seen map[string]struct{}
}

// First reports whether the name is given for the first time. It remembers 1000 names; any more are none's first.
func (o *Once) First(name string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, found := o.seen[name]; found || len(o.seen) >= onceLimit {
		return false
	}
	if o.seen == nil {
		o.seen = map[string]struct{}{}
	}
	o.seen[name] = struct{}{}
	return true
}
