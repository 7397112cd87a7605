package bot

import (
	"sync"
	"time"

	"drawbridge/bridge"
	"drawbridge/formatting"
	"drawbridge/runner"
)

// What the buttons of live turns do, as choice.Do.
const (
	doStop     = "stop"     // turn
	doContinue = "continue" // turn
	doUnqueue  = "unqueue"  // prompt
)

// maxStreaming is how many UTF-16 units of the answer a live turn shows at the most; its end, where it is longer. maxFace
// is what all of it may be.
const (
	maxStreaming = 3000
	maxFace      = 4000
)

// liveTurns are the turns that stream at this moment. They are only what is on the screen: a restart forgets them, and
// the next hint of a turn brings it back.
type liveTurns struct {
	mu    sync.Mutex
	turns map[string]liveTurn
}

type liveTurn struct {
	seq  int64
	seen time.Time
}

func newLiveTurns() *liveTurns { return &liveTurns{turns: map[string]liveTurn{}} }

// take reports whether l is newer than what is shown, and notes it.
func (s *liveTurns) take(l bridge.Live, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.turns[l.Turn].seq >= l.Seq {
		return false
	}
	s.turns[l.Turn] = liveTurn{seq: l.Seq, seen: now}
	for id, t := range s.turns {
		if now.Sub(t.seen) > time.Hour {
			delete(s.turns, id)
		}
	}
	return true
}

func liveSlot(turn string) string     { return "live:" + turn }
func endSlot(turn string) string      { return "end:" + turn }
func queuedSlot(prompt string) string { return "queued:" + prompt }

// Live shows what a turn says while it says it. It may be called with old and with missing news.
func (b *Bot) Live(l bridge.Live) {
	chat, err := ParseChat(l.Chat)
	if err != nil || !b.live.take(l, time.Now()) {
		return
	}
	m := liveFace(l, time.Since(l.Since))
	b.cfg.Outbox.Live(liveSlot(l.Turn), Outgoing{
		Chat: chat, Kind: KindEdit, Slot: liveSlot(l.Turn), Text: m.Text, Entities: m.Entities, Buttons: b.stopButton(l.Turn),
	})
}

// stopButton needs no stored meaning: whoever may prompt may stop, and a turn that has ended cannot be stopped.
func (b *Bot) stopButton(turn string) [][]Button {
	data := doStop + ":" + turn
	if len(data) > 64 {
		return nil // /stop is still there
	}
	return [][]Button{{{Text: textStop, Data: data, Style: string(runner.StyleDanger)}}}
}

// liveFace is what a live turn looks like: how long it works and at what, its checklist, and what it says.
func liveFace(l bridge.Live, took time.Duration) formatting.Message {
	var m formatting.Builder
	m.Bold(textWorking).Text(" " + elapsed(took))
	if l.Steps > 0 {
		m.Text(" · " + plural(l.Steps, "step"))
	}
	if l.Doing != "" {
		m.Text("\n").Code(formatting.Inline(l.Doing, 200))
	}
	for _, s := range l.Plan[:min(len(l.Plan), 12)] {
		mark := "☐ "
		switch {
		case s.Done:
			mark = "☑ "
		case s.Now:
			mark = "▸ "
		}
		m.Text("\n" + mark + formatting.Inline(s.Text, 100))
	}
	if n := len(l.Plan) - 12; n > 0 {
		m.Text("\n… and " + plural(n, "more step"))
	}
	text := formatting.StripInternal(l.Text)
	room := min(maxStreaming, max(maxFace-m.Len(), 64))
	if parts := formatting.Render(text, formatting.Options{Stream: true, Limit: room}); len(parts) > 0 {
		m.Text("\n\n").Append(parts[len(parts)-1])
	}
	return m.Split()[0]
}
