package telegramtest_test

import (
	"net/http"
	"strings"
	"testing"
)

func TestFaults(t *testing.T) {
	t.Parallel()
	w := started(t)
	order := func(f fields) { w.post("faults", f) }
	hello := fields{"chat_id": ada, "text": "x"}

	order(fields{"method": "sendMessage", "times": 2, "retry_after": 7})
	for range 2 {
		if a := w.refused(429, "Too Many Requests: retry after 7", "sendMessage", hello); a.Parameters.RetryAfter != 7 {
			t.Errorf("retry_after %d", a.Parameters.RetryAfter)
		}
	}
	w.ok("sendMessage", hello)

	order(fields{"method": "sendMessage", "error_code": 400, "description": "Bad Request: chat not found"})
	w.ok("getMe", nil)
	w.refused(400, "Bad Request: chat not found", "sendMessage", hello)
	order(fields{"method": "*", "error_code": 500})
	w.refused(500, "Internal Server Error", "getMe", nil)
	w.ok("getMe", nil)

	order(fields{"method": "sendMessage", "status": 502})
	if a, err := w.do("sendMessage", hello); err == nil || a.status != 502 {
		t.Errorf("status 502: %+v, %v; want a page that is no JSON", a, err)
	}

	order(fields{"method": "getMe", "times": -1, "retry_after": 1})
	for range 5 {
		w.refused(429, "Too Many Requests: retry after 1", "getMe", nil)
	}
	order(fields{"clear": true})
	w.ok("getMe", nil)
}

func TestLostResponseIsCarriedOut(t *testing.T) {
	t.Parallel()
	w := started(t)
	w.post("faults", fields{"method": "sendmessage", "lose_response": true})
	if a, err := w.do("sendMessage", fields{"chat_id": ada, "text": "sent, but nobody heard"}); err == nil {
		t.Errorf("an answer arrived: %+v", a)
	}
	shown := decode[[]struct{ Text string }](t, w.get("chats/1001/messages"))
	if last := shown[len(shown)-1].Text; last != "sent, but nobody heard" {
		t.Errorf("the last message is %q", last)
	}
	calls := decode[[]struct {
		Method string
		OK     bool
	}](t, w.get("calls"))
	if last := calls[len(calls)-1]; last.Method != "sendMessage" || !last.OK {
		t.Errorf("the last call is %+v", last)
	}
}

func TestDelayedCallIsCarriedOutLater(t *testing.T) {
	t.Parallel()
	w := started(t)
	w.post("faults", fields{"method": "sendMessage", "delay_ms": 600_000})
	late := *w
	cancel := late.cancellable()
	ended := async(func() error {
		_, err := late.do("sendMessage", fields{"chat_id": ada, "text": "never"})
		return err
	})
	w.until(func() bool { return strings.Contains(string(w.get("calls?method=sendMessage")), "never") })
	w.send(fields{"chat_id": ada, "text": "overtakes"})
	cancel()
	if err := <-ended; err == nil {
		t.Error("the call was answered before its time")
	}
	w.post("faults", fields{"method": "sendMessage", "delay_ms": 1})
	w.send(fields{"chat_id": ada, "text": "late"})
	shown := decode[[]struct{ Text string }](t, w.get("chats/1001/messages"))
	if len(shown) != 3 || shown[1].Text != "overtakes" || shown[2].Text != "late" {
		t.Errorf("messages: %+v", shown)
	}
}

func TestImpossibleFaultsAreRefused(t *testing.T) {
	t.Parallel()
	w := started(t)
	for _, f := range []fields{
		{"retry_after": 1},
		{"method": "getMe"},
		{"method": "getMe", "status": 200},
		{"method": "getMe", "error_code": 42},
		{"method": "getMe", "status": 502, "retry_after": 1},
		{"method": "getMe", "delay_ms": -1},
		{"method": "getMe", "delay_ms": 1, "status": 502, "lose_response": true},
	} {
		if status, out := w.control(http.MethodPost, "faults", f); status != 400 {
			t.Errorf("%v: %d %s", f, status, out)
		}
	}
	w.ok("getMe", nil)
}
