//go:build runtimes

package e2e_test

import (
	"os"
	"testing"
)

// TestRealAgentsTaskWithNobodyThere: the real programs run a scheduled task in approval-required while nobody answers:
// nothing is changed, and the report says what was refused.
func TestRealAgentsTaskWithNobodyThere(t *testing.T) {
	for _, agent := range []string{"codex", "claude"} {
		t.Run(agent, func(t *testing.T) {
			w := withAgent(t, agent, on{})
			w.env["DRAWBRIDGE_APPROVAL_DEADLINE"] = "15s" // at this pace 3 seconds
			before := listed(t, w.project)
			serve := w.start("serve")
			me := w.private(ada)
			planned := me.hears(me.say("/in 1s run touch made"), "Scheduled: run touch made")
			card := me.card(planned.ID, "touch made")
			me.hears(card.ID, "nobody answered")
			if after := listed(t, w.project); len(after) != len(before) {
				t.Errorf("the project holds %q, and held %q before", after, before)
			}
			serve.stop()
		})
	}
}

func listed(t *testing.T, dir string) (names []string) {
	t.Helper()
	all, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range all {
		names = append(names, e.Name())
	}
	return names
}
