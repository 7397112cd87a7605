package native

import (
	"fmt"
	"slices"

	"drawbridge/internal/chatapi"
)

// Compaction. When what would be sent reaches compactAt of the window, results of tools are left out, the oldest first,
// down to compactTo; if that is not enough, whole turns are left out, the oldest first. The file keeps everything; what
// is left out only is not sent any more. A call and its result are kept or left out together, and the running turn is
// never left out. Doing it in large steps keeps the beginning of what is sent the same for long, which endpoints cache.
const (
	compactAt = 0.8
	compactTo = 0.5
	// keepResult is the length up to which a tool's result stays: leaving it out would gain nothing.
	keepResult = 200
	// recent is how many of the latest messages keep their results as long as anything else can go.
	recent = 6
)

const (
	leftOutResult = "[The result was left out to save room. Run the tool again if it is needed.]"
	leftOutTurns  = "[Earlier turns of this conversation were left out to save room.]\n\n"
)

// view is what is sent: the messages that are not left out. reasoning says whether that of the running turn is sent.
func (c *conversation) view(reasoning bool) []chatapi.Message {
	turn := c.lastPrompt()
	out := make([]chatapi.Message, 0, len(c.messages)-c.dropped)
	for i := c.dropped; i < len(c.messages); i++ {
		m := c.messages[i]
		if m.Role == chatapi.ToolRole && i < c.elided && len(m.Content) > keepResult {
			m.Content = leftOutResult
		}
		if !reasoning || i < turn {
			m.Reasoning = ""
		}
		if i == c.dropped && i > 0 {
			m.Content = leftOutTurns + m.Content
		}
		out = append(out, m)
	}
	return out
}

// lastPrompt is where the running turn begins.
func (c *conversation) lastPrompt() int {
	for i, m := range slices.Backward(c.messages) {
		if m.Role == chatapi.User {
			return i
		}
	}
	return 0
}

// estimate is about how many tokens messages are: four bytes each, which is near the truth for English and code.
func estimate(messages []chatapi.Message) int64 {
	n := 0
	for _, m := range messages {
		n += 16 + len(m.Content) + len(m.Reasoning)
		for _, t := range m.ToolCalls {
			n += 16 + len(t.Name) + len(t.Arguments)
		}
	}
	return int64(n / 4)
}

// toolTokens is about how many tokens the tools' definitions are, which go with every request.
func toolTokens(planning bool) int64 {
	n := 0
	for _, t := range offered(planning) {
		n += 16 + len(t.Name) + len(t.Description) + len(t.Parameters)
	}
	return int64(n / 4)
}

// compact leaves out until at most room tokens remain, by measure. It reports whether anything more was left out.
func (c *conversation) compact(room int64, measure func([]chatapi.Message) int64) (bool, error) {
	elided, dropped := c.elided, c.dropped
	fits := func() bool { return measure(c.view(false)) <= room }
	for limit := len(c.messages) - recent; c.elided < limit && !fits(); {
		c.elided++
	}
	for next := c.nextPrompt(); next > 0 && !fits(); next = c.nextPrompt() {
		c.dropped = next
	}
	for c.elided < len(c.messages) && !fits() {
		c.elided++
	}
	if c.elided == elided && c.dropped == dropped {
		return false, nil
	}
	if err := c.write(entry{Elide: c.elided, Drop: c.dropped}); err != nil {
		return false, fmt.Errorf("keep the conversation: %w", err)
	}
	return true, nil
}

// nextPrompt is where the turn after the first one that is still sent begins; 0 when that is the running one.
func (c *conversation) nextPrompt() int {
	for i := c.dropped + 1; i < len(c.messages); i++ {
		if c.messages[i].Role == chatapi.User {
			return i
		}
	}
	return 0
}
