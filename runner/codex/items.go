package codex

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"
	"unicode/utf8"

	"drawbridge/runner"
)

// outputLimit is how many bytes of a command's or a tool's output an item keeps.
const outputLimit = 32 << 10

// item is an item that runs.
type item struct {
	event      runner.Item
	thread     string
	turn       string // ours
	text       strings.Builder
	wire       wireItem
	started    time.Time
	background bool // it outlives its turn
	refused    bool // a person said no
	hidden     bool // only kept for questions about it; nothing was told
}

func itemKey(thread, id string) string { return thread + "/" + id }

// id is an item's id for events. Two threads may use the same.
func (s *session) id(thread, id string) string {
	if thread == s.thread {
		return id
	}
	return thread + "/" + id
}

func (s *session) itemStarted(f itemFrame) {
	if f.Item.Type == "subAgentActivity" {
		s.activity(f.Item)
		return
	}
	if _, running := s.items[itemKey(f.ThreadID, f.Item.ID)]; running {
		return
	}
	s.open(f)
}

// open begins an item and returns it; nil for those that nothing is told of.
func (s *session) open(f itemFrame) *item {
	e, known := s.describe(f.Item)
	if !known {
		return nil
	}
	owner := s.owner(f.TurnID)
	if owner == "" {
		return nil // of no turn that was begun here
	}
	e.ID, e.Status = s.id(f.ThreadID, f.Item.ID), runner.ItemRunning
	i := &item{event: e, thread: f.ThreadID, turn: owner, wire: f.Item, started: time.Now()}
	// What sub-agents say is for their parent, who says what matters of it.
	i.hidden = f.ThreadID != s.thread && (e.Kind == runner.ItemMessage || e.Kind == runner.ItemReasoning || e.Kind == runner.ItemPlan)
	s.items[itemKey(f.ThreadID, f.Item.ID)] = i
	if !i.hidden {
		begun := e
		begun.Text, begun.Output, begun.Exit = "", "", nil
		s.queue.emit(runner.Event{Kind: runner.ItemStarted, Turn: owner, Item: &begun})
	}
	return i
}

func (s *session) itemCompleted(f itemFrame) {
	if f.Item.Type == "subAgentActivity" {
		s.activity(f.Item)
		return
	}
	if f.Item.Type == "contextCompaction" {
		s.queue.emit(runner.Event{Kind: runner.Notice, Turn: s.owner(f.TurnID), Text: "Codex has summed up the conversation to make room."})
		return
	}
	i := s.items[itemKey(f.ThreadID, f.Item.ID)]
	if i == nil {
		if i = s.open(f); i == nil {
			return
		}
	}
	e, _ := s.describe(f.Item)
	if text := i.text.String(); text != "" {
		e.Text = text // what was streamed is what was said
	} else if e.Text != "" && (e.Kind == runner.ItemMessage || e.Kind == runner.ItemPlan) && !i.hidden {
		s.queue.emit(runner.Event{Kind: runner.ContentDelta, Turn: i.turn, Item: &runner.Item{ID: i.event.ID, Kind: e.Kind, Text: e.Text}})
	}
	if t := s.turn; t != nil && t.held.plan && e.Kind == runner.ItemPlan && !i.hidden {
		t.plan = e.Text // the last one is the plan that a person decides
	}
	e.ID = i.event.ID
	i.event = e
	status := statusOf(f.Item)
	if i.refused {
		status = runner.ItemRefused
	}
	s.complete(itemKey(f.ThreadID, f.Item.ID), i, status)
}

func statusOf(w wireItem) runner.ItemStatus {
	switch w.Status {
	case "declined":
		return runner.ItemRefused
	case "failed":
		return runner.ItemFailed
	}
	return runner.ItemDone
}

// complete ends an item that runs.
func (s *session) complete(key string, i *item, status runner.ItemStatus) {
	delete(s.items, key)
	close(s.changed)
	s.changed = make(chan struct{})
	if i.hidden {
		return
	}
	e := i.event
	e.Status = status
	if e.Text == "" {
		e.Text = i.text.String()
	}
	s.queue.emit(runner.Event{Kind: runner.ItemCompleted, Turn: i.turn, Item: &e})
	if i.background {
		s.queue.emit(runner.Event{Kind: runner.BackgroundEvent, Turn: i.turn, Background: &runner.Background{
			ID: e.ID, Title: e.Command, Started: i.started, Ended: true,
		}})
	}
}

// closeItems completes the items that codex will not complete. A text that was cut off is done, anything else failed.
func (s *session) closeItems(which func(*item) bool) {
	for key, i := range s.items {
		if !which(i) {
			continue
		}
		end := runner.ItemFailed
		if k := i.event.Kind; k == runner.ItemMessage || k == runner.ItemReasoning || k == runner.ItemPlan {
			end = runner.ItemDone
		}
		s.complete(key, i, end)
	}
}

func (s *session) delta(f deltaFrame) {
	i := s.items[itemKey(f.ThreadID, f.ItemID)]
	if i == nil || f.Delta == "" {
		return
	}
	i.text.WriteString(f.Delta)
	if !i.hidden {
		s.queue.emit(runner.Event{Kind: runner.ContentDelta, Turn: i.turn, Item: &runner.Item{
			ID: i.event.ID, Kind: i.event.Kind, Text: f.Delta,
		}})
	}
}

func (s *session) summaryPart(f deltaFrame) {
	if f.SummaryIndex > 0 {
		f.Delta = "\n\n"
		s.delta(f)
	}
}

// activity notes a sub-agent.
func (s *session) activity(w wireItem) {
	if w.AgentThreadID == "" {
		return
	}
	title := "Sub-agent"
	if w.AgentPath != "" {
		title += " " + w.AgentPath
	}
	if !s.past[w.AgentThreadID] { // or else it is told of once more when it is given more to do
		s.agent(w.AgentThreadID, title)
	}
	if srv := s.server; srv != nil {
		srv.add(w.AgentThreadID, s)
	}
}

// describe makes an item of codex's. False is for those that nothing is told of.
func (s *session) describe(w wireItem) (runner.Item, bool) {
	switch w.Type {
	case "agentMessage":
		return runner.Item{Kind: runner.ItemMessage, Text: w.Text}, true
	case "reasoning":
		return runner.Item{Kind: runner.ItemReasoning, Text: strings.Join(w.Summary, "\n\n")}, true
	case "plan":
		return runner.Item{Kind: runner.ItemPlan, Title: "Plan", Text: w.Text}, true
	case "commandExecution":
		e := runner.Item{Kind: runner.ItemCommand, Title: "Run a command", Command: script(w.Command), Exit: w.ExitCode}
		if w.AggregatedOutput != nil {
			e.Output = bounded(*w.AggregatedOutput)
		}
		return e, true
	case "fileChange":
		return runner.Item{Kind: runner.ItemFileChange, Title: "Change files", Files: s.changes(w.Changes)}, true
	case "mcpToolCall":
		e := runner.Item{Kind: runner.ItemToolCall, Title: w.Server + "/" + w.Tool, Text: outcome(w)}
		return e, true
	case "dynamicToolCall":
		return runner.Item{Kind: runner.ItemToolCall, Title: strings.TrimPrefix(w.Namespace+"/"+w.Tool, "/"), Text: outcome(w)}, true
	case "functionCallOutput":
		return runner.Item{Kind: runner.ItemToolCall, Title: w.Name, Text: outcome(w)}, true
	case "webSearch":
		return runner.Item{Kind: runner.ItemToolCall, Title: "Search the web: " + w.Query}, true
	case "imageView":
		return runner.Item{Kind: runner.ItemToolCall, Title: "View " + s.relative(w.Path)}, true
	case "collabAgentToolCall":
		return runner.Item{Kind: runner.ItemToolCall, Title: "Sub-agents: " + w.Tool}, true
	case "userMessage", "hookPrompt", "sleep", "contextCompaction", "enteredReviewMode", "exitedReviewMode", "imageGeneration":
		return runner.Item{}, false
	}
	if srv := s.server; srv != nil && srv.once.First("item "+w.Type) {
		s.runtime.config.Logger.Debug("item skipped", "type", w.Type)
	}
	return runner.Item{}, false
}

// outcome is what a tool returned, as text.
func outcome(w wireItem) string {
	for _, raw := range []json.RawMessage{w.Error, w.Result, w.Output} {
		if len(raw) == 0 || string(raw) == "null" {
			continue
		}
		var words string
		var object struct {
			Message string `json:"message"`
			Content []struct {
				Text string `json:"text"`
			} `json:"content"`
		}
		switch {
		case json.Unmarshal(raw, &words) == nil:
			return bounded(words)
		case json.Unmarshal(raw, &object) == nil && (object.Message != "" || len(object.Content) > 0):
			parts := []string{object.Message}
			for _, c := range object.Content {
				parts = append(parts, c.Text)
			}
			return bounded(strings.TrimSpace(strings.Join(parts, "\n")))
		}
		var b bytes.Buffer
		if json.Compact(&b, raw) == nil {
			return bounded(b.String())
		}
	}
	return ""
}

// bounded keeps the end of an output, from the beginning of a character on.
func bounded(s string) string {
	if len(s) <= outputLimit {
		return s
	}
	s = s[len(s)-outputLimit:]
	for len(s) > 0 && !utf8.RuneStart(s[0]) {
		s = s[1:]
	}
	return s
}
