package store

import (
	"bytes"
	"context"
	"sync"
)

// hintBuffer is how many hints wait for one listener. A waiter reads again after any hint, so more would only make it
// read the same documents more often.
const hintBuffer = 64

// Hub hands hints to the listeners of this process. Both engines deliver through it, so that both treat a slow listener
// alike: Deliver never blocks, and a listener whose buffer is full loses hints and then finds one empty Message, which
// tells it to read again. The zero value is ready for use. Safe for concurrent use.
type Hub struct {
	mu        sync.Mutex
	closed    bool
	listeners map[string]map[*listener]struct{}
}

type listener struct {
	ch     chan Message
	topics []string
	lost   bool // the last slot of ch holds, or held, the empty Message for what was lost
	gone   bool
	stop   func() bool
	left   func()
}

// offer keeps the last slot of the buffer for the empty Message, so that a loss is always told.
func (l *listener) offer(m Message) {
	switch {
	case len(l.ch) < cap(l.ch)-1:
		l.lost = false
		l.ch <- m
	case !l.lost:
		l.lost = true
		l.ch <- Message{}
	}
}

// Join adds a listener to topics until ctx ends or the hub is closed; then the channel is closed and left, which may be
// nil, is called once. It returns ErrClosed on a closed hub, and then left is not called.
func (h *Hub) Join(ctx context.Context, topics []string, left func()) (<-chan Message, error) {
	l := &listener{ch: make(chan Message, hintBuffer), topics: topics, left: left}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil, ErrClosed
	}
	if h.listeners == nil {
		h.listeners = map[string]map[*listener]struct{}{}
	}
	// The empty topic holds every listener: it is how Close finds those without topics.
	for _, t := range append([]string{""}, topics...) {
		if h.listeners[t] == nil {
			h.listeners[t] = map[*listener]struct{}{}
		}
		h.listeners[t][l] = struct{}{}
	}
	l.stop = context.AfterFunc(ctx, func() { h.remove(l) })
	return l.ch, nil
}

// Deliver hands m to every listener of its topic and never blocks. The listeners share one copy of the body. It returns
// ErrClosed on a closed hub.
func (h *Hub) Deliver(m Message) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return ErrClosed
	}
	m.Body = bytes.Clone(m.Body)
	for l := range h.listeners[m.Topic] {
		l.offer(m)
	}
	return nil
}

// Lost tells every listener of the topic, by an empty Message, that hints may have been lost.
func (h *Hub) Lost(topic string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for l := range h.listeners[topic] {
		l.offer(Message{})
	}
}

// Close closes the channels of all listeners; a later Join is refused.
func (h *Hub) Close() {
	h.mu.Lock()
	h.closed = true
	var all []*listener
	for l := range h.listeners[""] {
		all = append(all, l)
	}
	h.mu.Unlock()
	for _, l := range all {
		l.stop()
		h.remove(l)
	}
}

func (h *Hub) remove(l *listener) {
	h.mu.Lock()
	if l.gone {
		h.mu.Unlock()
		return
	}
	l.gone = true
	for _, t := range append([]string{""}, l.topics...) {
		delete(h.listeners[t], l)
		if len(h.listeners[t]) == 0 {
			delete(h.listeners, t)
		}
	}
	close(l.ch)
	h.mu.Unlock()
	if l.left != nil {
		l.left()
	}
}
