package jsonl

import (
	"errors"
	"sync"
)

// ErrOverflow ends a conversation whose frames are handled so slowly that more than the queue's limit wait. To stop
// reading instead would block a program that may be waiting for us, and to drop frames would lose what happened.
var ErrOverflow = errors.New("the program sends faster than its frames are handled")

// entryCost is what a waiting frame costs beside its bytes.
const entryCost = 256

// queue holds what was read and not yet handled, in order. Pushing never blocks.
type queue struct {
	limit int

	mu      sync.Mutex
	waiting []entry
	size    int
	ended   bool
	ready   chan struct{} // has room for one; filled when there is something to look at
}

type entry struct {
	message Message
	size    int
}

func newQueue(limit int) *queue { return &queue{limit: limit, ready: make(chan struct{}, 1)} }

// push adds a message that came in a frame of so many bytes. It reports false if that does not fit; a message alone
// always does.
func (q *queue) push(m Message, size int) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	size += entryCost
	if q.size > 0 && q.size+size > q.limit {
		return false
	}
	q.waiting = append(q.waiting, entry{m, size})
	q.size += size
	q.signal()
	return true
}

// end says that nothing is pushed any more; what waits can still be taken unless it is dropped.
func (q *queue) end(drop bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.ended = true
	if drop {
		q.waiting, q.size = nil, 0
	}
	q.signal()
}

func (q *queue) signal() {
	select {
	case q.ready <- struct{}{}:
	default:
	}
}

// take returns all that waits, in order, and waits until there is something. Its bytes count until done is called for
// each. It reports false at the end. One goroutine may take.
func (q *queue) take() ([]entry, bool) {
	for {
		q.mu.Lock()
		batch, ended := q.waiting, q.ended
		q.waiting = nil
		q.mu.Unlock()
		if len(batch) > 0 {
			return batch, true
		}
		if ended {
			return nil, false
		}
		<-q.ready
	}
}

func (q *queue) done(e entry) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.size = max(0, q.size-e.size)
}
