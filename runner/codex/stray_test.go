package codex_test

import (
	"path/filepath"
	"strings"
	"testing"

	"drawbridge/policy"
	"drawbridge/runner"
)

// told reports whether codex was told something about a turn or a thread.
func told(t *testing.T, record, method, name, value string) bool {
	t.Helper()
	for _, f := range sentFrames(t, record) {
		if f["method"] == method && f.text("params", name) == value {
			return true
		}
	}
	return false
}

// TestATurnThatIsLoosenedAsItBeginsIsStopped has codex say something looser between our request and its turn.
func TestATurnThatIsLoosenedAsItBeginsIsStopped(t *testing.T) {
	t.Parallel()
	c := open(t, imitate(t, imitation{}), opening{})
	if r := c.turn("loosen at once"); r.Outcome != runner.Interrupted || !strings.Contains(r.Reason, "loosened") {
		t.Errorf("the turn ended as %+v", r)
	}
}

// TestAPromptIsNotGivenToATurnThatNobodyAskedFor lets codex take a prompt into a turn that it began by itself, under
// whatever it was held to then.
func TestAPromptIsNotGivenToATurnThatNobodyAskedFor(t *testing.T) {
	t.Parallel()
	record := filepath.Join(t.TempDir(), "record")
	c := open(t, imitate(t, imitation{Record: record}), opening{policy: runner.Policy{Mode: policy.AutoAcceptEdits, Interaction: policy.Default}})
	c.turn("stray that goes on")
	c.mu.Lock()
	c.policy = approvalRequired()
	c.mu.Unlock()
	if r, err := c.Turn(t.Context(), runner.Input{Turn: "next", Text: "go"}); err == nil || !strings.Contains(err.Error(), "by itself") {
		t.Errorf("the turn ended as %+v, %v", r, err)
	}
	if !told(t, record, "turn/interrupt", "turnId", "stray") || !told(t, record, "thread/backgroundTerminals/clean", "threadId", imitatedThread) {
		t.Error("the other turn was not ended, or not its commands")
	}
}

// TestASubAgentThatBeginsAfterTheStopIsStopped has a sub-agent begin its work when its turn was interrupted already.
func TestASubAgentThatBeginsAfterTheStopIsStopped(t *testing.T) {
	t.Parallel()
	c := open(t, imitate(t, imitation{}), opening{})
	ctx, cancel := contextOf(t)
	defer cancel()
	done := make(chan error, 1)
	go func() {
		_, err := c.Turn(ctx, runner.Input{Turn: "turn", Text: "late child"})
		done <- err
	}()
	c.await(runner.Notice)
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	c.until(func() bool { return len(c.kinds(runner.Notice)) == 2 })
}

// TestCommandsOfAnEndedSubAgentAreBackgroundWork lets a sub-agent end before one of its commands: that is told, keeps the
// session from being taken for tightened, and ends with it.
func TestCommandsOfAnEndedSubAgentAreBackgroundWork(t *testing.T) {
	t.Parallel()
	record := filepath.Join(t.TempDir(), "record")
	c := open(t, imitate(t, imitation{Record: record}), opening{policy: runner.Policy{Mode: policy.AutoAcceptEdits, Interaction: policy.Default}})
	c.turn("child with a command")
	ended := func(title string) bool {
		for _, e := range c.kinds(runner.ItemCompleted) {
			if e.Item.Command == title {
				return true
			}
		}
		return false
	}
	c.until(func() bool { return ended("call_2") })
	running := ""
	for _, e := range c.kinds(runner.BackgroundEvent) {
		if e.Background.Title == "call_1" && !e.Background.Ended {
			running = e.Background.ID
		}
	}
	if running == "" || ended("call_1") {
		t.Errorf("the command that runs is told as %+v", c.kinds(runner.BackgroundEvent))
	}
	held, err := c.Session.(runner.PolicySetter).SetPolicy(t.Context(), approvalRequired())
	if err != nil || held {
		t.Errorf("the session is held to the lower mode: %v, %v", held, err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if !told(t, record, "thread/backgroundTerminals/clean", "threadId", "child") {
		t.Error("the sub-agent's commands were not ended")
	}
	if !ended("call_1") {
		t.Error("the end of the command was not told")
	}
}
