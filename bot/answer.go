package bot

import (
	"slices"
	"strings"

	"drawbridge/bridge"
	"drawbridge/formatting"
	"drawbridge/runner"
)

// maxAnswer is how many messages an answer may be; a longer one is sent as its first message and a file.
const maxAnswer = 8

// story is what a turn left in the timeline, put together for its last messages.
type story struct {
	answer string   // what the agent said after its last step
	steps  []string // what it said and did before, in order, a line each
	count  int      // steps that were not text
	// notices are how many of the steps are the runtime's own words: about a request that is tried again, say.
	notices int
}

// tell puts a turn's entries together. What the agent says between its steps is part of the story; what it says after the
// last one is the answer. If it says nothing there, its last words are, unless it was cut short: then they announce what
// it did not come to do.
func tell(entries []bridge.Entry, turn string, o runner.Outcome) story {
	var s story
	type saying struct {
		item string
		text strings.Builder
		step int // place in steps
	}
	var said []*saying
	last := -1 // place in said of the first message after the last step
	for _, e := range entries {
		it := e.Event.Item
		switch {
		case e.Turn != turn:
		case e.Event.Kind == runner.Notice:
			s.steps = append(s.steps, formatting.Inline(e.Event.Text, 300))
			s.notices++
		case e.Event.Kind == runner.ReviewChanged && e.Event.Review != nil:
			s.steps = append(s.steps, reviewWords(*e.Event.Review))
		case it == nil:
		case e.Event.Kind == runner.ContentDelta && it.Kind == runner.ItemMessage:
			if len(said) == 0 || said[len(said)-1].item != it.ID {
				said = append(said, &saying{item: it.ID, step: len(s.steps)})
				s.steps = append(s.steps, "")
				if last < 0 {
					last = len(said) - 1
				}
			}
			said[len(said)-1].text.WriteString(it.Text)
		case e.Event.Kind == runner.ItemCompleted && it.Kind != runner.ItemMessage && it.Kind != runner.ItemReasoning:
			s.steps = append(s.steps, itemLine(*it))
			s.count++
			last = -1
		}
	}
	if last < 0 {
		last = len(said)
		if o == runner.Completed {
			last = max(0, last-1)
		}
	}
	for i, one := range said {
		text := formatting.StripInternal(one.text.String())
		if i >= last {
			if s.answer != "" && strings.TrimSpace(text) != "" {
				s.answer += "\n\n"
			}
			s.answer += text
			continue
		}
		s.steps[one.step] = formatting.Inline(strings.TrimSpace(text), 600)
	}
	kept := s.steps[:0]
	for _, line := range s.steps {
		if line != "" {
			kept = append(kept, line)
		}
	}
	s.steps = kept
	return s
}

// summary is the last face of a live turn: how it ended, and behind a fold what happened.
func (s story) summary(head string) formatting.Message {
	var m formatting.Builder
	m.Bold(head)
	if len(s.steps) == 0 {
		return m.Split()[0]
	}
	// The end of a long story is worth more than its beginning.
	var lines []string
	size := 0
	for i, step := range slices.Backward(s.steps) {
		if size += formatting.Len(step) + 3; size > 3000 {
			lines = append(lines, "… "+plural(i+1, "earlier line"))
			break
		}
		lines = append(lines, "• "+step)
	}
	slices.Reverse(lines)
	m.Text("\n").Expandable(strings.Join(lines, "\n"))
	return m.Split()[0]
}
