//go:build runtimes

package codex_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"drawbridge/internal/modeltest"
	"drawbridge/policy"
	"drawbridge/runner"
)

// TestRealLeavingPlanSwitchesFastOff: codex takes the standard tier with the turn that leaves plan, and keeps it.
func TestRealLeavingPlanSwitchesFastOff(t *testing.T) {
	t.Parallel()
	config := realConfig(t, data(t), model(t, modeltest.Config{Script: func(context.Context, modeltest.Request) modeltest.Reply {
		return modeltest.Reply{Text: "Yes."}
	}}))
	config.Model = "gpt-6-astra" // whose catalogue entry has the tier
	native, err := filepath.EvalSymlinks(config.Program)
	if err != nil {
		t.Fatal(err)
	}
	config.Program, config.Readable = filepath.Join(t.TempDir(), "codex"), []string{filepath.Dir(native)}
	script := "#!/bin/sh\nif [ \"$1\" = app-server ]; then exec '" + native + "' \"$@\" -c 'service_tier=\"fast\"'; fi\nexec '" + native + "' \"$@\"\n"
	if err := os.WriteFile(config.Program, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	c := open(t, installed(t, config), opening{})
	for i, interaction := range []policy.Interaction{policy.Plan, policy.Default, policy.Default} {
		c.be(runner.Policy{Mode: policy.AutoAcceptEdits, Interaction: interaction})
		c.turn("say it")
		if n := len(c.kinds(runner.Notice)); n != min(i, 1) {
			t.Errorf("behind turn %d it was told %d times", i, n)
		}
	}
}
