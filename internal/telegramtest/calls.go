package telegramtest

import (
	"encoding/json"
	"time"
)

// maxCalls is how many calls are remembered; the oldest are forgotten.
const maxCalls = 20_000

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
}

type calls struct {
	seq int
	all []*record
}

func (c *calls) begin(name string, p params, now time.Time) *record {
	c.seq++
	r := &record{Seq: c.seq, Method: name, Parameters: p.record(), Time: seconds(now)}
	if len(c.all) >= maxCalls {
		c.all = append([]*record(nil), c.all[maxCalls/4:]...)
	}
	c.all = append(c.all, r)
	return r
}

func (c *calls) end(r *record, a answer, now time.Time) {
	r.Ended = seconds(now)
	r.OK, r.Result, r.ErrorCode, r.Description = a.OK, a.Result, a.ErrorCode, a.Description
	if a.Parameters != nil {
		r.RetryAfter = a.Parameters.RetryAfter
	}
}

func seconds(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }
