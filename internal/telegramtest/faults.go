package telegramtest

import (
	"net/http"
	"strings"
	"time"
)

// fault is something that goes wrong on order with the next calls of a method.
type fault struct {
	Method       string `json:"method"` // "*" is any
	Times        int    `json:"times"`  // how many calls; 1 if zero, without end if negative
	Status       int    `json:"status,omitempty"`
	ErrorCode    int    `json:"error_code,omitempty"`
	Description  string `json:"description,omitempty"`
	RetryAfter   int    `json:"retry_after,omitempty"`
	DelayMS      int    `json:"delay_ms,omitempty"`
	LoseResponse bool   `json:"lose_response,omitempty"`
}

func (f *fault) delay() time.Duration { return time.Duration(f.DelayMS) * time.Millisecond }

// refusal is the answer that the fault puts in the place of the real one, nil if the call is carried out.
func (f *fault) refusal() error {
	switch {
	case f.RetryAfter > 0:
		return tooManyRequests(f.RetryAfter)
	case f.ErrorCode > 0:
		text := f.Description
		if text == "" {
			text = http.StatusText(f.ErrorCode)
		}
		return &refusal{code: f.ErrorCode, description: text}
	default:
		return nil
	}
}

// valid returns what is wrong with an order, empty if nothing.
func (f *fault) valid() string {
	ways := 0
	for _, given := range []bool{f.Status != 0, f.ErrorCode != 0, f.RetryAfter != 0, f.DelayMS != 0, f.LoseResponse} {
		if given {
			ways++
		}
	}
	switch {
	case f.Method == "":
		return `method is missing ("*" is any)`
	case ways == 0:
		return "one of status, error_code, retry_after, delay_ms and lose_response is needed"
	case ways > 1 && (f.DelayMS == 0 || ways > 2):
		return "only delay_ms can be combined with another fault"
	case f.Status != 0 && (f.Status < 400 || f.Status > 599), f.ErrorCode != 0 && (f.ErrorCode < 400 || f.ErrorCode > 599):
		return "status and error_code are between 400 and 599"
	case f.DelayMS < 0 || f.DelayMS > 600_000 || f.RetryAfter < 0:
		return "delay_ms is between 0 and 600000 and retry_after is positive"
	default:
		return ""
	}
}

// takeFault is the first ordered fault for a method, spent once. The caller holds mu.
func (s *Server) takeFault(method string) *fault {
	for i, f := range s.faults {
		if f.Method != "*" && !strings.EqualFold(f.Method, method) {
			continue
		}
		if f.Times > 0 {
			if f.Times--; f.Times == 0 {
				s.faults = append(s.faults[:i:i], s.faults[i+1:]...)
			}
		}
		return f
	}
	return nil
}
