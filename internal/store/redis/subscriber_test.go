package redis

import (
	"log/slog"
	"testing"

	"drawbridge/internal/store"
)

// TestTopicIsHeardAfterTheLastConfirmation: between the first and the last SUBSCRIBE of a topic an UNSUBSCRIBE of a listener
// that left can be under way, so the first confirmation promises nothing.
func TestTopicIsHeardAfterTheLastConfirmation(t *testing.T) {
	t.Parallel()
	s := newSubscriber(nil, "db:{1}:", &store.Hub{}, slog.New(slog.DiscardHandler))
	defer s.close()
	waiting := &topic{refs: 1, settled: make(chan struct{})}
	s.topics["a"] = waiting
	s.unconfirmed = map[string]int{"a": 2}
	s.confirm("a")
	select {
	case <-waiting.settled:
		t.Fatal("settled by the confirmation of an earlier listener")
	default:
	}
	s.confirm("a")
	select {
	case <-waiting.settled:
	default:
		t.Fatal("not settled by its own confirmation")
	}
	if !waiting.heard || len(s.unconfirmed) != 0 {
		t.Errorf("the topic is %+v, unconfirmed are %v", waiting, s.unconfirmed)
	}
}
