package bridge

import (
	"errors"
	"log/slog"
	"testing"

	"drawbridge/internal/store"
)

// TestAnOrderThatCannotBeReadIsReportedOnce, and once more when it has changed and still can't be.
func TestAnOrderThatCannotBeReadIsReportedOnce(t *testing.T) {
	t.Parallel()
	var tape lines
	h := &Host{cfg: HostConfig{Logger: slog.New(&tape)}, aside: map[string]store.Rev{}}
	for _, rev := range []store.Rev{"1", "1", "1", "2", "2"} {
		h.setAside("t.u:1", rev, errors.New("broken"))
	}
	h.setAside("t.u:2", "1", errors.New("broken"))
	if n := tape.count("an order cannot be read and is set aside; /stop in its chat ends the turn"); n != 3 {
		t.Errorf("reported %d times, want 3", n)
	}
}
