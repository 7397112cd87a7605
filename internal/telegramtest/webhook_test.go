package telegramtest_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
)

// receiver is a webhook that passes on what it gets and answers with the statuses that it is given.
type receiver struct {
	url      string
	got      chan update
	statuses chan int
	secret   string
}

func newReceiver(t *testing.T, secret string) *receiver {
	t.Helper()
	r := &receiver{got: make(chan update, 100), statuses: make(chan int, 100), secret: secret}
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		var u update
		if err != nil || json.Unmarshal(body, &u) != nil || req.Header.Get("Content-Type") != "application/json" {
			t.Errorf("webhook got %q, %v", body, err)
		}
		if got := req.Header.Get("X-Telegram-Bot-Api-Secret-Token"); got != r.secret {
			t.Errorf("secret %q, want %q", got, r.secret)
		}
		select {
		case status := <-r.statuses:
			w.WriteHeader(status)
		default:
		}
		r.got <- u
	}))
	t.Cleanup(h.Close)
	r.url = h.URL + "/hook"
	return r
}

func TestWebhookGetsUpdatesInOrderAndAgain(t *testing.T) {
	t.Parallel()
	w := started(t)
	hook := newReceiver(t, "s3cret_-")
	for _, status := range []int{500, 302, 200} {
		hook.statuses <- status
	}
	w.say(ada, ada, "before the webhook")
	w.ok("setWebhook", fields{"url": hook.url, "secret_token": "s3cret_-"})
	w.say(ada, ada, "after it")
	var texts []string
	for range 4 {
		texts = append(texts, (<-hook.got).Message.Text)
	}
	for i, want := range []string{"before the webhook", "before the webhook", "before the webhook", "after it"} {
		if texts[i] != want {
			t.Errorf("delivery %d is %q, want %q", i, texts[i], want)
		}
	}
	info := decode[struct {
		URL       string `json:"url"`
		LastError string `json:"last_error_message"`
	}](t, w.ok("getWebhookInfo", nil).Result)
	if info.URL != hook.url || info.LastError != "Wrong response from the webhook: 302 Found" {
		t.Errorf("info: %+v", info)
	}
	w.until(func() bool {
		return decode[struct {
			Pending int `json:"pending_updates"`
		}](t, w.get("bot")).Pending == 0
	})
}

func TestPollsAreRefusedWhileAWebhookIsSet(t *testing.T) {
	t.Parallel()
	w := started(t)
	polled := async(func() answer { return w.call("getUpdates", fields{"timeout": 40}) })
	w.until(func() bool { return decode[struct{ Polling bool }](t, w.get("bot")).Polling })
	w.ok("setWebhook", fields{"url": newReceiver(t, "").url, "allowed_updates": []string{"message"}})
	if a := <-polled; a.status != 409 || a.Description != "Conflict: terminated by setWebhook request" {
		t.Errorf("the poll: %d %q", a.status, a.Description)
	}
	w.refused(409, "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first",
		"getUpdates", fields{})
	w.ok("deleteWebhook", nil)
	w.say(ada, ada, "polled again")
	if got := w.updates(fields{}); len(got) != 1 {
		t.Errorf("after deleteWebhook: %v", ids(got))
	}
	w.ok("deleteWebhook", fields{"drop_pending_updates": true})
	if got := w.updates(fields{}); len(got) != 0 {
		t.Errorf("after drop_pending_updates: %v", ids(got))
	}
}
