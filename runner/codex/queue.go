package codex

import (
	"sync"

	"drawbridge/runner"
)

// queue hands a session's events to its sink, in order and by one goroutine, so that a slow sink holds up nobody else's
// session. Pieces of text that wait behind one another become one.
type queue struct {
	sink runner.Sink

	mu    sync.Mutex
	list  []entry
	ended bool
	ready chan struct{} // has room for one signal
	done  chan struct{} // closed when all was handed over after end
}

// entry is an event, or a mark that is closed when it is reached.
type entry struct {
	event runner.Event
	mark  chan struct{}
}

func newQueue(sink runner.Sink) *queue {
	q := &queue{sink: sink, ready: make(chan struct{}, 1), done: make(chan struct{})}
	go q.run()
	return q
}

func (q *queue) run() {
	defer close(q.done)
	for {
		q.mu.Lock()
		list, ended := q.list, q.ended
		q.list = nil
		q.mu.Unlock()
		if len(list) == 0 {
			if ended {
				return
			}
			<-q.ready
			continue
		}
		for _, e := range list {
			if e.mark != nil {
				close(e.mark)
				continue
			}
			q.sink(e.event)
		}
	}
}

func (q *queue) emit(e runner.Event) { q.push(entry{event: e}) }

// mark is closed when everything that was emitted before has been handed over, or when the queue has ended.
func (q *queue) mark() <-chan struct{} {
	m := make(chan struct{})
	if !q.push(entry{mark: m}) {
		close(m)
	}
	return m
}

func (q *queue) push(e entry) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.ended {
		return false
	}
	if n := len(q.list); n > 0 && joins(q.list[n-1], e) {
		joined := *q.list[n-1].event.Item
		joined.Text += e.event.Item.Text
		q.list[n-1].event.Item = &joined
		return true
	}
	q.list = append(q.list, e)
	select {
	case q.ready <- struct{}{}:
	default:
	}
	return true
}

// joinLimit bounds what becomes one piece, in bytes.
const joinLimit = 16 << 10

func joins(a, b entry) bool {
	return a.mark == nil && b.mark == nil && a.event.Kind == runner.ContentDelta && b.event.Kind == runner.ContentDelta &&
		a.event.Item.ID == b.event.Item.ID && len(a.event.Item.Text) < joinLimit
}

// end hands over what is left and returns when the sink will not be called again.
func (q *queue) end() {
	q.mu.Lock()
	if !q.ended {
		q.ended = true
		close(q.ready)
	}
	q.mu.Unlock()
	<-q.done
}
