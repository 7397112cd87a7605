package telegramtest

import (
	"math"
	"time"
)

// Rates says how strictly floods are refused. The zero value is Telegram's FAQ: about one message a second in a chat
// with short bursts, 20 a minute in a group, 30 a second in all. Telegram publishes no exact numbers, and nothing on
// drafts; drafts have a bucket of their own here.
type Rates struct {
	// Off lets everything pass.
	Off bool
	// Scale multiplies every rate and burst; 1 if zero.
	Scale float64
}

// bucket holds up to burst tokens and gains rate of them a second.
type bucket struct {
	tokens float64
	at     time.Time
}

type allowance struct{ rate, burst float64 }

var (
	perChat  = allowance{rate: 1, burst: 5}
	perGroup = allowance{rate: 20.0 / 60, burst: 20}
	overall  = allowance{rate: 30, burst: 30}
	perDraft = allowance{rate: 5, burst: 20}
)

type limits struct {
	rates   Rates
	buckets map[int64]*bucket // by chat
	drafts  map[int64]*bucket
	all     bucket
}

func newLimits(r Rates) limits {
	if r.Scale <= 0 {
		r.Scale = 1
	}
	return limits{rates: r, buckets: map[int64]*bucket{}, drafts: map[int64]*bucket{}}
}

// take spends a token of the chat and one of the whole, or returns how many seconds the caller has to wait.
func (l *limits) take(c *chat, draft bool, now time.Time) (wait int) {
	if l.rates.Off {
		return 0
	}
	set, allowed := l.buckets, perChat
	switch {
	case draft:
		set, allowed = l.drafts, perDraft
	case c.kind != Private:
		allowed = perGroup
	}
	if set[c.id] == nil {
		set[c.id] = &bucket{}
	}
	own := set[c.id]
	own.fill(allowed, l.rates.Scale, now)
	if draft {
		if own.tokens < 1 {
			return own.wait(allowed, l.rates.Scale)
		}
		own.tokens--
		return 0
	}
	l.all.fill(overall, l.rates.Scale, now)
	if own.tokens < 1 || l.all.tokens < 1 {
		return max(own.wait(allowed, l.rates.Scale), l.all.wait(overall, l.rates.Scale))
	}
	own.tokens--
	l.all.tokens--
	return 0
}

func (b *bucket) fill(a allowance, scale float64, now time.Time) {
	full := math.Max(1, a.burst*scale)
	if b.at.IsZero() {
		b.tokens = full
	} else if d := now.Sub(b.at); d > 0 {
		b.tokens = math.Min(full, b.tokens+d.Seconds()*a.rate*scale)
	}
	b.at = now
}

// wait is the time until a token is there, in whole seconds and at least one where there is none.
func (b *bucket) wait(a allowance, scale float64) int {
	if b.tokens >= 1 {
		return 0
	}
	return max(1, int(math.Ceil((1-b.tokens)/(a.rate*scale))))
}
