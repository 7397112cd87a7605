package bot

import (
	"context"
	"slices"
	"sync"
	"time"

	"drawbridge/approvals"
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

// liveTick is how often a turn is shown anew that says nothing: whoever waits sees that it goes on. A group, whose limit is
// for all of its topics, gets every third.
const liveTick = 10 * time.Second

// liveTurns are the turns that stream at this moment. They are only what is on the screen: a restart forgets them, and
// the next hint of a turn brings it back.
type liveTurns struct {
	mu    sync.Mutex
	turns map[string]liveTurn
	ticks int
}

type liveTurn struct {
	last bridge.Live
	asks []approvals.ID // that wait for a person
	seen time.Time      // when there was news of it
}

func newLiveTurns() *liveTurns { return &liveTurns{turns: map[string]liveTurn{}} }

// take reports whether l is newer than what is shown, and notes it. It returns how many of the turn's questions wait.
func (s *liveTurns) take(l bridge.Live, now time.Time) (asks int, newer bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	was, known := s.turns[l.Turn]
	if known && was.last.Seq >= l.Seq {
		return 0, false
	}
	s.turns[l.Turn] = liveTurn{last: l, asks: was.asks, seen: now}
	for id, t := range s.turns {
		if now.Sub(t.seen) > time.Hour {
			delete(s.turns, id)
		}
	}
	return len(was.asks), true
}

// ask notes that a question of a turn waits, or does not any more. It reports false if that changes nothing that is shown.
func (s *liveTurns) ask(turn string, id approvals.ID, waits bool, now time.Time) (l bridge.Live, asks int, changed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, known := s.turns[turn]
	if !known || slices.Contains(t.asks, id) == waits {
		return bridge.Live{}, 0, false
	}
	rest := slices.DeleteFunc(slices.Clone(t.asks), func(other approvals.ID) bool { return other == id })
	if waits {
		rest = append(rest, id)
	}
	t.asks, t.seen = rest, now
	s.turns[turn] = t
	return t.last, len(rest), true
}

// end forgets a turn.
func (s *liveTurns) end(turn string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.turns, turn)
}

// quiet are the turns that go on and have said nothing for a tick.
func (s *liveTurns) quiet(now time.Time) []bridge.Live {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ticks++
	var out []bridge.Live
	for _, t := range s.turns {
		chat, err := ParseChat(t.last.Chat)
		if err == nil && len(t.asks) == 0 && now.Sub(t.seen) >= liveTick/2 && (chat.Private() || s.ticks%3 == 0) {
			out = append(out, t.last)
		}
	}
	return out
}

func liveSlot(turn string) string     { return "live:" + turn }
func endSlot(turn string) string      { return "end:" + turn }
func queuedSlot(prompt string) string { return "queued:" + prompt }

// Live shows what a turn says while it says it. It may be called with old and with missing news.
func (b *Bot) Live(l bridge.Live) {
	if asks, newer := b.live.take(l, time.Now()); newer {
		b.showLive(l, asks)
	}
}

// RunLive keeps turns that say nothing moving, for as long as this process speaks to Telegram.
func (b *Bot) RunLive(ctx context.Context) error {
	tick := time.NewTicker(liveTick)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case now := <-tick.C:
			for _, l := range b.live.quiet(now) {
				b.showLive(l, 0)
			}
		}
	}
}

// waits lets a turn say that it waits for an answer, or that it goes on. Like all that streams it may be lost.
func (b *Bot) waits(turn string, id approvals.ID, open bool) {
	if l, asks, changed := b.live.ask(turn, id, open, time.Now()); changed {
		b.showLive(l, asks)
	}
}

func (b *Bot) showLive(l bridge.Live, asks int) {
	chat, err := ParseChat(l.Chat)
	if err != nil {
		return
	}
	m := liveFace(l, time.Since(l.Since), asks)
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

// liveFace is what a live turn looks like: how long it works and at what, or for how many answers it waits, its checklist,
// and what it says.
func liveFace(l bridge.Live, took time.Duration, asks int) formatting.Message {
	var m formatting.Builder
	m.Bold(workingWords(asks))
	if asks == 0 && took >= time.Second {
		m.Text(" " + elapsed(took))
	}
	if l.Steps > 0 {
		m.Text(" · " + plural(l.Steps, "step"))
	}
	if l.Doing != "" && asks == 0 {
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
