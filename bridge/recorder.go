package bridge

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"drawbridge/internal/store"
	"drawbridge/runner"
)

const (
	// maxText is how much of a message is kept back at the most before it is committed.
	maxText = 24_000
	// maxItem bounds each text of a committed item; the end of longer output is kept, since that is where the error is.
	maxItem = 32 << 10
	// maxLive bounds the text that streams: about what one message of a messenger can show.
	maxLive = 8 << 10
	// maxDoing bounds what is said of the item that runs.
	maxDoing = 400
	// maxPending is how many entries may wait for the store before the agent has to wait too.
	maxPending = 1_000
)

// recorder takes the events of one turn, commits what is to stay into the host's log and keeps what streams.
type recorder struct {
	log    *Log
	logger *slog.Logger
	base   Entry // chat, turn, session

	mu      sync.Mutex
	changed *sync.Cond // pending grew or shrank, or the recorder was closed
	pending []Entry
	closed  bool
	message runner.Item     // the message that is being written: id and kind
	text    strings.Builder // what of it is not pending yet
	cut     int             // bytes of it that were made pending before its end
	said    []byte          // the end of the open message, trimmed when it is twice maxLive
	live    Live
	dirty   bool

	used     runner.Usage // the runtime's last word on what the turn took
	reviewed runner.Usage // what reviews of ours took, of which the runtime does not know
	seen     Summary
}

func newRecorder(l *Log, logger *slog.Logger, base Entry, now time.Time) *recorder {
	r := &recorder{log: l, logger: logger, base: base, live: Live{Chat: base.Chat, Turn: base.Turn, Since: now}}
	r.changed = sync.NewCond(&r.mu)
	return r
}

// take is the session's sink while the turn runs.
func (r *recorder) take(e runner.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(r.pending) >= maxPending && !r.closed {
		r.changed.Wait()
	}
	e.Turn = r.base.Turn
	switch e.Kind {
	case runner.ContentDelta:
		r.delta(e)
	case runner.ItemStarted:
		if e.Item != nil && e.Item.Kind != runner.ItemMessage && e.Item.Kind != runner.ItemReasoning {
			r.settle()
			r.live.Doing, r.dirty = doing(*e.Item), true
		}
	case runner.ItemCompleted:
		r.completed(e)
	case runner.PlanUpdated:
		r.live.Plan, r.dirty = e.Plan, true
		r.add(e)
	case runner.SessionStarted, runner.TurnStarted, runner.TurnEnded, runner.RequestOpened, runner.RequestResolved:
		// the host writes these itself
	case runner.UsageUpdated:
		if e.Usage != nil {
			r.used = *e.Usage
			r.addUsage()
		}
	case runner.Notice: // a request that is tried again, say: else nobody would know why nothing happens
		r.live.Doing, r.dirty = front(e.Text, maxDoing), true
		r.add(e)
	case runner.ReviewChanged, runner.PolicyChanged, runner.BackgroundEvent:
		r.add(e)
	default:
		r.logger.Warn("event of an unknown kind skipped", "kind", string(e.Kind))
	}
}

// doing says what an item does while it runs: a command speaks for itself.
func doing(it runner.Item) string {
	if it.Kind == runner.ItemCommand && it.Command != "" {
		return front(it.Command, maxDoing)
	}
	return front(it.Title, maxDoing)
}

func (r *recorder) delta(e runner.Event) {
	if e.Item == nil || e.Item.Kind != runner.ItemMessage {
		return
	}
	if r.message.ID != e.Item.ID {
		r.settle()
		r.message = runner.Item{ID: e.Item.ID, Kind: runner.ItemMessage}
		r.cut, r.said = 0, nil
	}
	r.text.WriteString(e.Item.Text)
	r.said = append(r.said, e.Item.Text...)
	if len(r.said) > 2*maxLive {
		r.said = []byte(tail(string(r.said), maxLive))
	}
	r.live.Doing, r.dirty = "", true
	if r.text.Len() >= maxText {
		r.settle()
	}
}

// settle makes what was said of the open message an entry.
func (r *recorder) settle() {
	if r.text.Len() == 0 {
		return
	}
	it := r.message
	it.Text = r.text.String()
	r.cut += r.text.Len()
	r.text.Reset()
	r.add(runner.Event{Kind: runner.ContentDelta, Turn: r.base.Turn, Item: &it})
}

func (r *recorder) completed(e runner.Event) {
	if e.Item == nil {
		return
	}
	it := *e.Item
	if it.Kind == runner.ItemMessage {
		if it.ID == r.message.ID && r.cut+r.text.Len() > 0 {
			// The pieces carry the text; the end of the item repeats nothing.
			rest := ""
			if len(it.Text) > r.cut+r.text.Len() {
				rest = it.Text[r.cut+r.text.Len():]
			}
			r.text.WriteString(rest)
			it.Text = r.text.String()
			r.text.Reset()
		}
		r.message, r.cut = runner.Item{}, 0
		r.said, r.dirty = []byte(tail(e.Item.Text, maxLive)), true
		for _, piece := range pieces(it.Text, maxText) {
			p := it
			p.Text = piece
			r.add(runner.Event{Kind: runner.ContentDelta, Turn: r.base.Turn, Item: &p})
		}
		it.Text = ""
		r.add(runner.Event{Kind: runner.ItemCompleted, Turn: r.base.Turn, Item: &it})
		return
	}
	r.settle()
	r.seen.item(it)
	it.Text, it.Output, it.Command = tail(it.Text, maxItem), tail(it.Output, maxItem), front(it.Command, maxItem)
	for i := range it.Files {
		it.Files[i].Diff = front(it.Files[i].Diff, maxItem/len(it.Files))
	}
	r.live.Doing, r.dirty = "", true
	r.live.Steps++
	r.add(runner.Event{Kind: runner.ItemCompleted, Turn: r.base.Turn, Item: &it})
}

// cost counts what a review took.
func (r *recorder) cost(u runner.Usage) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reviewed = r.reviewed.Plus(u)
	if !r.closed {
		r.addUsage()
	}
}

// total adds what reviews took to what the runtime says of the turn. The context is the agent's alone.
func (r *recorder) total(u runner.Usage) runner.Usage {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.with(u)
}

func (r *recorder) with(u runner.Usage) runner.Usage {
	context, window := u.Context, u.Window
	u = u.Plus(r.reviewed)
	u.Context, u.Window = context, window
	return u
}

func (r *recorder) addUsage() {
	u := r.with(r.used)
	r.add(runner.Event{Kind: runner.UsageUpdated, Turn: r.base.Turn, Usage: &u})
}

func (r *recorder) add(e runner.Event) {
	entry := r.base
	entry.Event = e
	r.pending = append(r.pending, entry)
	r.changed.Broadcast()
}

// snapshot returns what streams, with a fresh number, if it changed since the last one.
func (r *recorder) snapshot() (Live, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.dirty || r.closed {
		return Live{}, false
	}
	r.dirty = false
	r.live.Seq++
	r.live.Text = tail(string(r.said), maxLive)
	return r.live, true
}

// write commits what becomes pending until the recorder is closed and nothing is left, or ctx ends. A store that is away
// is waited for: what the agent did must not be lost.
func (r *recorder) write(ctx context.Context) {
	stop := context.AfterFunc(ctx, func() { r.mu.Lock(); r.changed.Broadcast(); r.mu.Unlock() })
	defer stop()
	for ctx.Err() == nil {
		r.mu.Lock()
		for len(r.pending) == 0 && !r.closed && ctx.Err() == nil {
			r.changed.Wait()
		}
		batch := r.pending[:min(len(r.pending), 64)]
		done := len(batch) == 0
		r.mu.Unlock()
		if done {
			return
		}
		if err := r.log.Append(ctx, batch...); err != nil {
			if errors.Is(err, store.ErrClosed) {
				r.abandon()
				return
			}
			r.logger.Warn("cannot write the log; trying again", "err", err)
			select {
			case <-ctx.Done():
			case <-time.After(500 * time.Millisecond):
			}
			continue
		}
		r.mu.Lock()
		r.pending = r.pending[len(batch):]
		r.changed.Broadcast()
		r.mu.Unlock()
	}
}

// abandon lets go of those who wait, when nothing can be written any more.
func (r *recorder) abandon() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed, r.pending = true, nil
	r.changed.Broadcast()
}

// flush returns once everything that was taken before is committed.
func (r *recorder) flush(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { r.mu.Lock(); r.changed.Broadcast(); r.mu.Unlock() })
	defer stop()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.settle()
	for len(r.pending) > 0 && ctx.Err() == nil {
		r.changed.Wait()
	}
	return context.Cause(ctx)
}

// close ends the recording: what comes later is dropped, what is pending is still written.
func (r *recorder) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.settle()
	r.closed = true
	r.changed.Broadcast()
}

// tail returns the last n bytes of s at the most, cut between characters.
func tail(s string, n int) string {
	if len(s) <= n {
		return s
	}
	s = s[len(s)-n:]
	for len(s) > 0 && !utf8.RuneStart(s[0]) {
		s = s[1:]
	}
	return s
}

// front returns the first n bytes of s at the most, cut between characters.
func front(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// pieces cuts s into parts of at most n bytes, between characters.
func pieces(s string, n int) []string {
	var out []string
	for len(s) > n {
		p := front(s, n)
		out, s = append(out, p), s[len(p):]
	}
	if s != "" {
		out = append(out, s)
	}
	return out
}
