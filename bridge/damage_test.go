package bridge

import (
	"context"
	"testing"
	"time"

	"drawbridge/internal/store"
	"drawbridge/policy"
	"drawbridge/runner"
	"drawbridge/runner/runnertest"
)

// TestDamagedDocumentWedgesNothing: whatever document can't be decoded any more when a host comes back, a stop and a
// prompt later the chat works again, another chat in the same folder too, and neither in a looser mode than before.
func TestDamagedDocumentWedgesNothing(t *testing.T) {
	t.Parallel()
	for name, key := range map[string]func(h *house) string{
		"hello":     func(*house) string { return helloKey("laptop") },
		"turn":      func(*house) string { return turnKey("laptop", "t.u:1") },
		"order":     func(*house) string { return orderKey("laptop", "t.u:1") },
		"chat":      func(*house) string { return chatKey("7") },
		"mirror":    func(*house) string { return mirrorKey("laptop", "7") },
		"cursor":    func(*house) string { return cursorKey("laptop") },
		"workspace": func(h *house) string { return workspaceKey("laptop", h.folder) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHouseLogging(t, silent())
			begun := make(chan struct{}, 1)
			quiet := func(c *HostConfig) {
				c.Logger = silent()
				withTurn(func(ctx context.Context, _ *runnertest.Scripted, in runner.Input) (runner.Result, error) {
					if in.Text == "hang" {
						begun <- struct{}{}
						<-ctx.Done()
						return runner.Result{}, ctx.Err()
					}
					return runner.Result{Outcome: runner.Completed}, nil
				})(c)
			}
			_, crash := h.hostWithCrash("laptop", quiet)
			h.mode("7", policy.AutoAcceptEdits)
			h.prompt("7", "u:1", "hang")
			<-begun
			crash()
			h.update(func(tx *store.Txn) error {
				tx.PutBytes(key(h), []byte(`{"v":1,"mode":"full-access","id":7,"chat":`))
				return nil
			})
			h.host("laptop", quiet)
			h.update(func(tx *store.Txn) error { _, err := h.chats.Stop(tx, "7", time.Time{}, false); return err })
			h.prompt("7", "u:2", "go on")
			h.prompt("8", "u:3", "go on")
			for _, turn := range []string{"t.u:2", "t.u:3"} {
				if r := h.shown.ended(t, turn); r.Outcome != runner.Completed {
					t.Errorf("%s: %+v", turn, r)
				}
			}
			if m := h.chat("7").Mode; m.Looser(policy.AutoAcceptEdits) {
				t.Errorf("the chat is in %s", m)
			}
		})
	}
}
