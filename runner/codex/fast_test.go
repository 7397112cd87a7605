package codex_test

import (
	"path/filepath"
	"testing"

	"drawbridge/policy"
	"drawbridge/runner"
)

func (c *chat) be(p runner.Policy) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.policy = p
}

// TestLeavingPlanSwitchesFastOff: the turn with which a chat leaves plan names the standard tier where its thread has a faster
// one, and says so, once. No other turn names any.
func TestLeavingPlanSwitchesFastOff(t *testing.T) {
	t.Parallel()
	plan := runner.Policy{Mode: policy.AutoAcceptEdits, Interaction: policy.Plan}
	work := runner.Policy{Mode: policy.AutoAcceptEdits, Interaction: policy.Default}
	for tier, off := range map[string]bool{"priority": true, "ultrafast": true, "default": false, "flex": false, "": false} {
		t.Run("tier "+tier, func(t *testing.T) {
			t.Parallel()
			record := filepath.Join(t.TempDir(), "record")
			c := open(t, imitate(t, imitation{Record: record, Tier: tier}), opening{policy: work})
			for _, p := range []runner.Policy{work, plan, plan, work, work} {
				c.be(p)
				c.turn("say it")
			}
			var told []any
			for _, f := range sentFrames(t, record) {
				if f["method"] == "turn/start" {
					params, _ := f["params"].(map[string]any)
					told = append(told, params["serviceTier"])
				}
			}
			want := []any{nil, nil, nil, nil, nil}
			if off {
				want[3] = "default"
			}
			if len(told) != len(want) {
				t.Fatalf("%d turns were begun", len(told))
			}
			for i := range want {
				if told[i] != want[i] {
					t.Errorf("turn %d names the tier %v, want %v", i, told[i], want[i])
				}
			}
			if n := len(c.kinds(runner.Notice)); (n == 1) != off || n > 1 {
				t.Errorf("it is told %d times", n)
			}
		})
	}
}
