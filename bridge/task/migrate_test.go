package task

import (
	"testing"

	"drawbridge/internal/store"
	"drawbridge/policy"
	"drawbridge/runner"
)

// TestWhatRunsWhileItsChatMovesMayOnlyLook: a task that runs when its group becomes a supergroup is held to the old key, of
// which nobody changes the mode any more. That also holds where somebody wrote in the supergroup before the move was seen.
func TestWhatRunsWhileItsChatMovesMayOnlyLook(t *testing.T) {
	t.Parallel()
	for name, taken := range map[string]bool{"to a new key": false, "to one that is used already": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, policy.FullAccess, func(w *world) {
				w.add(policy.FullAccess, Work{})
				k := w.keeper()
				w.update(func(t *store.Txn) error {
					if taken {
						if _, err := k.chats.SetMode(t, "-2", policy.FullAccess); err != nil {
							return err
						}
					}
					if _, err := k.chats.Migrate(t, home, "-2"); err != nil {
						return err
					}
					return k.tasks.Migrate(t, home, "-2")
				})
				if len(w.running()) != 1 {
					t.Fatalf("%d turns run", len(w.running()))
				}
				if got, want := w.running()[0].policy(), (runner.Policy{Mode: policy.ApprovalRequired, Interaction: policy.Plan}); got != want {
					t.Errorf("it may %+v, want %+v", got, want)
				}
			})
		})
	}
}
