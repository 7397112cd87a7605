package bot

import (
	"slices"
	"testing"

	"drawbridge/bridge"
	"drawbridge/runner"
)

// TestTheAnswerIsWhatWasSaidLast: the words after the last step are the answer. Where there are none, the last words are, but
// not those of a turn that was cut short: they announce what was not done.
func TestTheAnswerIsWhatWasSaidLast(t *testing.T) {
	t.Parallel()
	say := func(id, text string) bridge.Entry {
		return bridge.Entry{Turn: "t", Event: runner.Event{Kind: runner.ContentDelta, Item: &runner.Item{ID: id, Kind: runner.ItemMessage, Text: text}}}
	}
	step := bridge.Entry{Turn: "t", Event: runner.Event{Kind: runner.ItemCompleted, Item: &runner.Item{Kind: runner.ItemCommand, Title: "look"}}}
	for _, c := range []struct {
		name    string
		entries []bridge.Entry
		outcome runner.Outcome
		answer  string
		steps   []string
	}{
		{"after the last step", []bridge.Entry{say("1", "I look."), step, say("2", "It is "), say("2", "fine.")}, runner.Completed, "It is fine.", []string{"I look.", "look"}},
		{"none after it", []bridge.Entry{say("1", "I look."), step}, runner.Completed, "I look.", []string{"look"}},
		{"none after it, stopped", []bridge.Entry{say("1", "I look."), step}, runner.Interrupted, "", []string{"I look.", "look"}},
		{"none after it, failed", []bridge.Entry{say("1", "I look."), step, say("2", " ")}, runner.Broken, " ", []string{"I look.", "look"}},
		{"half an answer", []bridge.Entry{step, say("2", "It is")}, runner.Interrupted, "It is", []string{"look"}},
		{"nothing", nil, runner.Completed, "", nil},
	} {
		if s := tell(c.entries, "t", c.outcome); s.answer != c.answer || !slices.Equal(s.steps, c.steps) {
			t.Errorf("%s: the answer is %q, the story %q", c.name, s.answer, s.steps)
		}
	}
}

// TestAFailureIsHeard: an edit makes no sound, so a turn that ends as nobody expects ends with a message of its own, in the
// place of the live one.
func TestAFailureIsHeard(t *testing.T) {
	t.Parallel()
	k := newTalk(t, talkOptions{})
	p := k.say(ada, ada, "fail on purpose")
	end := k.reads(ada, p, "Failed after", "on purpose")
	if end.Silent || !end.has(textTryAgain) {
		t.Errorf("the end is %+v", end)
	}
	k.none(ada, p, textWorking)

	// The agent said and did nothing, so there is nothing to continue: it is told the same once more.
	if got := k.tap(ada, ada, end.ID, textTryAgain); got.Text != textContinued {
		t.Errorf("%s was answered with %+v", textTryAgain, got)
	}
	again := k.reads(ada, end.ID, "Failed after", "on purpose")
	if again.ReplyTo != p || len(k.message(ada, end.ID).Buttons) > 0 {
		t.Errorf("the second try is %+v", again)
	}

	p = k.say(ada, ada, "sleep 60s")
	live := k.reads(ada, p, textWorking)
	k.say(ada, ada, "/stop") // whoever stops it knows
	if end := k.reads(ada, p, "Stopped after"); end.ID != live.ID {
		t.Errorf("the end of a stopped turn is message %d, not the live one, %d", end.ID, live.ID)
	}
}
