package bot

import (
	"context"
	"math/rand/v2"
	"time"
)

// Rate allows N things in any stretch of time of length Per.
type Rate struct {
	N   int
	Per time.Duration
}

// Pace is how fast the outbox may go. The zero value of a field takes what DefaultPace has there.
type Pace struct {
	Private []Rate // in a private chat
	Group   []Rate // in a group, all its topics together
	All     []Rate // over all chats
	// Live and LiveGroup are the least time between two Live edits in a chat. They also count as messages, as Telegram
	// counts them, and leave a quarter of every rate to what is durable.
	Live, LiveGroup time.Duration
}

// DefaultPace keeps below the limits of Telegram's FAQ: about one message a second in a chat with short bursts, 20 a
// minute in a group, 30 a second in all. The exact limits are unpublished and change with the load; retry_after is
// honoured as well.
func DefaultPace() Pace {
	return Pace{
		Private: []Rate{{N: 4, Per: 4 * time.Second}},
		Group:   []Rate{{N: 4, Per: 4 * time.Second}, {N: 19, Per: time.Minute}},
		All:     []Rate{{N: 27, Per: time.Second}},
		Live:    1200 * time.Millisecond, LiveGroup: 4 * time.Second,
	}
}

func (p Pace) orDefault() Pace {
	d := DefaultPace()
	if p.Private == nil {
		p.Private = d.Private
	}
	if p.Group == nil {
		p.Group = d.Group
	}
	if p.All == nil {
		p.All = d.All
	}
	if p.Live == 0 {
		p.Live = d.Live
	}
	if p.LiveGroup == 0 {
		p.LiveGroup = d.LiveGroup
	}
	return p
}

// pacer hands out moments so that none of its rates is ever passed, first come, first served: it remembers the moments
// instead of counting tokens, and so never allows twice its rate around a boundary. It is not safe for concurrent use.
type pacer struct {
	rates   []Rate
	given   []time.Time // ascending, at most as many as the largest N
	blocked time.Time
}

// next is the first moment, not before now, that keeps every rate.
func (p *pacer) next(now time.Time) time.Time {
	at := now
	later := func(t time.Time) {
		if t.After(at) {
			at = t
		}
	}
	later(p.blocked)
	if n := len(p.given); n > 0 {
		later(p.given[n-1])
	}
	for _, r := range p.rates {
		if i := len(p.given) - r.N; i >= 0 {
			later(p.given[i].Add(r.Per))
		}
	}
	return at
}

// take books the moment at, which next returned.
func (p *pacer) take(at time.Time) {
	p.given = append(p.given, at)
	most := 0
	for _, r := range p.rates {
		most = max(most, r.N)
	}
	if over := len(p.given) - most; over > 0 {
		p.given = append(p.given[:0], p.given[over:]...)
	}
}

// spare reports whether there is room now with a quarter of each rate, but at least one, left for others.
func (p *pacer) spare(now time.Time) bool {
	if p.next(now).After(now) {
		return false
	}
	for _, r := range p.rates {
		used := 0
		for _, t := range p.given {
			if t.Add(r.Per).After(now) {
				used++
			}
		}
		if keep := max(1, r.N/4); r.N > 1 && used+1+keep > r.N {
			return false
		}
	}
	return true
}

// block lets nothing pass before until. Moments that were handed out for later stay handed out: whoever holds one asks
// again when it comes.
func (p *pacer) block(until time.Time) {
	if until.After(p.blocked) {
		p.blocked = until
	}
}

// backoff is how long to wait after the nth failure in a row, n from 1: doubling from first to most.
func backoff(n int, first, most time.Duration) time.Duration {
	d := first
	for range n - 1 {
		if d *= 2; d >= most {
			return most
		}
	}
	return d
}

// jitter is a random part of d, at least half of it, so that many who failed together do not come back together.
func jitter(d time.Duration) time.Duration {
	return d/2 + rand.N(d/2+1) //nolint:gosec // nobody gains by guessing it
}

// sleep waits for d or until ctx ends, and reports whether it was d.
func sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

// Faster is p with every stretch of time divided by factor: for tests and the demo, whose Telegram sets no limits.
func (p Pace) Faster(factor float64) Pace {
	p = p.orDefault()
	divide := func(d time.Duration) time.Duration { return time.Duration(float64(d) / factor) }
	rates := func(rs []Rate) []Rate {
		out := make([]Rate, len(rs))
		for i, r := range rs {
			out[i] = Rate{N: r.N, Per: divide(r.Per)}
		}
		return out
	}
	return Pace{
		Private: rates(p.Private), Group: rates(p.Group), All: rates(p.All), Live: divide(p.Live), LiveGroup: divide(p.LiveGroup),
	}
}
