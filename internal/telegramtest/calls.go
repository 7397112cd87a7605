package telegramtest

import (
	"encoding/json"
	"slices"
	"time"
)

// Limits of what is remembered of calls. Beyond either, the oldest quarter is forgotten.
const (
	maxCalls     = 20_000
	maxCallBytes = 64 << 20
)

// record is one call as /sim/calls shows it. Times are Unix seconds of the server's clock with milliseconds.
type record struct {
	Seq         int             `json:"seq"`
	Method      string          `json:"method"`
	Parameters  map[string]any  `json:"parameters"`
	Time        float64         `json:"time"`
	Ended       float64         `json:"ended,omitempty"`
	OK          bool            `json:"ok"`
	Result      json.RawMessage `json:"result"`
	ErrorCode   int             `json:"error_code,omitempty"`
	Description string          `json:"description,omitempty"`
	RetryAfter  int             `json:"retry_after,omitempty"`
	size        int
}

type calls struct {
	seq   int
	all   []*record
	bytes int
}

func (c *calls) begin(name string, p params, now time.Time) *record {
	c.seq++
	r := &record{Seq: c.seq, Method: name, Parameters: p.record(), Time: seconds(now)}
	for _, v := range p.values {
		r.size += len(v)
	}
	c.bytes += r.size
	c.all = append(c.all, r)
	if len(c.all) > maxCalls || c.bytes > maxCallBytes {
		c.forget(len(c.all) / 4)
	}
	return r
}

// forget drops the first n calls.
func (c *calls) forget(n int) {
	for _, r := range c.all[:n] {
		c.bytes -= r.size
	}
	c.all = slices.Clone(c.all[n:])
}

func (c *calls) end(r *record, a answer, now time.Time) {
	r.Ended = seconds(now)
	if len(c.all) > 0 && r.Seq >= c.all[0].Seq {
		c.bytes += len(a.Result)
		r.size += len(a.Result)
	}
	r.OK, r.Result, r.ErrorCode, r.Description = a.OK, a.Result, a.ErrorCode, a.Description
	if a.Parameters != nil {
		r.RetryAfter = a.Parameters.RetryAfter
	}
}

func seconds(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }
