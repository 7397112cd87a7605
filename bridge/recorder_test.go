package bridge

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"drawbridge/runner"
)

// TestLiveSaysWhatIsDone: the command that runs rather than its title, and what the runtime says of a wait.
func TestLiveSaysWhatIsDone(t *testing.T) {
	t.Parallel()
	r := newRecorder(nil, slog.New(slog.DiscardHandler), Entry{Turn: "t"}, time.Now())
	for _, c := range []struct {
		event runner.Event
		want  string
	}{
		{runner.Event{Kind: runner.ItemStarted, Item: &runner.Item{Kind: runner.ItemCommand, Title: "Run a command", Command: "sleep 30"}}, "sleep 30"},
		{runner.Event{Kind: runner.ItemCompleted, Item: &runner.Item{Kind: runner.ItemCommand, Command: "sleep 30"}}, ""},
		{runner.Event{Kind: runner.ItemStarted, Item: &runner.Item{Kind: runner.ItemFileChange, Title: "Edit a.go"}}, "Edit a.go"},
		{runner.Event{Kind: runner.ItemStarted, Item: &runner.Item{Kind: runner.ItemCommand, Command: strings.Repeat("é", maxDoing)}}, strings.Repeat("é", maxDoing/2)},
		{runner.Event{Kind: runner.Notice, Text: "The model is busy."}, "The model is busy."},
		{runner.Event{Kind: runner.ContentDelta, Item: &runner.Item{ID: "m", Kind: runner.ItemMessage, Text: "Well"}}, ""},
	} {
		r.take(c.event)
		if l, changed := r.snapshot(); !changed || l.Doing != c.want {
			t.Errorf("after %s %q: doing %q, changed %v", c.event.Kind, c.event.Text, l.Doing, changed)
		}
	}
}
