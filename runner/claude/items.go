package claude

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"drawbridge/runner"
)

// lane is the answer of the main conversation that is being written. Sub-agents' answers are not shown; what they do is.
type lane struct {
	message string          // its id
	open    map[int]*spoken // its texts, by the number of the block
	over    bool            // it is whole
	context int64           // tokens that stood in the context of it
}

// spoken is a text that is being written.
type spoken struct {
	item runner.Item
	turn string
	text strings.Builder
}

// streamed takes a piece of an answer. mu is held.
func (c *conn) streamed(f frame) {
	e := f.Event
	if e == nil || f.Parent != "" {
		return
	}
	switch e.Type {
	case "message_start":
		c.endTexts(nil)
		if e.Message != nil {
			c.lane.message, c.lane.over = e.Message.ID, false
			c.lane.open = map[int]*spoken{}
			c.verdicts.said = nil // each call of the answer before has its own by now
			if e.Message.Usage != nil {
				c.lane.context = e.Message.Usage.context()
			}
		}
	case "content_block_delta":
		if e.Delta == nil {
			return
		}
		switch e.Delta.Type {
		case "text_delta":
			c.say(e.Index, runner.ItemMessage, e.Delta.Text)
		case "thinking_delta":
			c.say(e.Index, runner.ItemReasoning, e.Delta.Thinking)
		}
	case "content_block_stop":
		if sp := c.lane.open[e.Index]; sp != nil {
			delete(c.lane.open, e.Index)
			c.endText(sp)
		}
	case "message_delta":
		if e.Usage != nil {
			c.lane.context = max(c.lane.context, e.Usage.context())
		}
		if e.Delta != nil {
			c.reviewed(e.Delta.Safeguards)
		}
	case "message_stop":
		c.endTexts(nil)
		c.lane.over = true
		c.reviewEnds()
	}
}

// say adds to a text, and begins it with its first piece. mu is held.
func (c *conn) say(index int, kind runner.ItemKind, piece string) {
	if piece == "" || c.lane.open == nil {
		return
	}
	sp := c.lane.open[index]
	if sp == nil {
		sp = &spoken{turn: c.turnID(), item: runner.Item{ID: c.lane.message + ":" + strconv.Itoa(index), Kind: kind, Status: runner.ItemRunning}}
		c.lane.open[index] = sp
		item := sp.item
		c.session.emit(runner.Event{Kind: runner.ItemStarted, Turn: sp.turn, Item: &item})
	}
	sp.text.WriteString(piece)
	c.session.emit(runner.Event{Kind: runner.ContentDelta, Turn: sp.turn, Item: &runner.Item{ID: sp.item.ID, Kind: kind, Text: piece}})
}

// endText completes a text with what was said. mu is held.
func (c *conn) endText(sp *spoken) {
	item := sp.item
	item.Status, item.Text = runner.ItemDone, sp.text.String()
	c.session.emit(runner.Event{Kind: runner.ItemCompleted, Turn: sp.turn, Item: &item})
}

// endTexts completes the texts that are open, of a turn or of all: the answer is whole, or was cut. mu is held.
func (c *conn) endTexts(t *turn) {
	for _, i := range slices.Sorted(maps.Keys(c.lane.open)) {
		if sp := c.lane.open[i]; t == nil || sp.turn == t.id {
			delete(c.lane.open, i)
			c.endText(sp)
		}
	}
}

// spoke takes a finished block of an answer. Texts were streamed, unless the program had to do without. mu is held.
func (c *conn) spoke(f frame) {
	var m message
	if json.Unmarshal(f.Message, &m) != nil {
		return
	}
	failure := len(f.Error) > 0 && string(f.Error) != "null" // the program's own words, which the result repeats
	for i, b := range m.Content {
		switch b.Type {
		case "text", "thinking":
			text, kind := b.Text, runner.ItemMessage
			if b.Type == "thinking" {
				text, kind = b.Thinking, runner.ItemReasoning
			}
			if f.Parent != "" || failure || text == "" || m.ID == c.lane.message {
				continue
			}
			item := runner.Item{ID: m.ID + ":" + kind0(kind) + strconv.Itoa(i), Kind: kind, Status: runner.ItemRunning}
			c.session.emit(runner.Event{Kind: runner.ItemStarted, Turn: c.turnID(), Item: &item})
			done := item
			done.Status, done.Text = runner.ItemDone, text
			c.session.emit(runner.Event{Kind: runner.ItemCompleted, Turn: c.turnID(), Item: &done})
		case "tool_use":
			c.begin(b.ID, b.Name, b.Input).message = m.ID
		}
	}
}

// kind0 tells the texts of one message apart that come in frames of their own.
func kind0(k runner.ItemKind) string { return string(k) + "-" }

// call is a tool call of the program.
type call struct {
	item     runner.Item
	name     string
	input    json.RawMessage
	turn     string
	message  string // the answer that it is a part of
	agent    string // the sub-agent that makes it
	asked    bool   // it went to the gate, or was left to the program on purpose
	cleared  bool   // it was allowed there, or left to the program
	passed   string // the input that was allowed; can_use_tool does not ask again for it
	person   bool   // a person allowed it
	hooked   int    // not 0 while its hook waits for the gate: the number of it
	ended    bool
	refusal  string // what the agent was told; not empty if it was refused
	accepted bool   // a plan that was taken, though the agent was told to wait
	words    string // what our own server says of it, once it was decided
	wrong    bool   // it was no proposal
	expected *expectation
	withdraw []func() // take back its open questions
}

// begin tells that a call begins; more than once is once. mu is held.
func (c *conn) begin(id, name string, input json.RawMessage) *call {
	if k := c.calls[id]; k != nil {
		return k
	}
	k := &call{name: name, input: input, turn: c.turnID(), message: c.lane.message}
	k.item = c.describe(id, name, input)
	k.item.Status = runner.ItemRunning
	c.calls[id] = k
	if step, is := c.listed(name, input); is {
		k.ended = true // the checklist tells it
		if step {
			c.session.emit(runner.Event{Kind: runner.PlanUpdated, Turn: k.turn, Plan: c.steps.list()})
		}
		return k
	}
	item := k.item
	c.session.emit(runner.Event{Kind: runner.ItemStarted, Turn: k.turn, Item: &item})
	return k
}

// end completes a call's item. mu is held.
func (c *conn) end(k *call, status runner.ItemStatus) {
	if k.ended {
		return
	}
	k.ended = true
	k.item.Status = status
	switch {
	case k.refusal != "":
		k.item.Status, k.item.Text, k.item.Output = runner.ItemRefused, k.refusal, ""
	case k.accepted:
		k.item.Status = runner.ItemDone
	}
	item := k.item
	c.session.emit(runner.Event{Kind: runner.ItemCompleted, Turn: k.turn, Item: &item})
}

// endItems completes what is open of a turn, or of all, as its program is gone or says no more. mu is held.
func (c *conn) endItems(t *turn) {
	c.endTexts(t)
	for id, k := range c.calls {
		if t != nil && k.turn != t.id {
			continue
		}
		c.end(k, runner.ItemFailed)
		delete(c.calls, id)
	}
}
