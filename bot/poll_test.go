package bot

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"drawbridge/internal/store"
	"drawbridge/internal/store/storetest"
)

func logged(r *rig, words string) int {
	n := 0
	for _, l := range r.tape.all() {
		if strings.Contains(l, words) {
			n++
		}
	}
	return n
}

func TestPollerTakesTurnsWithAnotherProgramAndIsNeverDeaf(t *testing.T) {
	t.Parallel()
	r := newRig(t, off)
	h := &ledger{}
	i := r.inbox(h)
	r.run(polling(r.poller(i)))
	r.run(i.Run)
	// Somebody else polls five times with the same token: each ends the poll of the first.
	other := r.newAPI()
	for range 5 {
		until(t, "a poll", func() bool {
			var bot struct {
				Polling bool `json:"polling"`
			}
			r.sim("GET", "bot", nil, &bot)
			return bot.Polling
		})
		if _, err := other.Updates(t.Context(), 0, 0, 1); err != nil {
			t.Fatal(err)
		}
	}
	until(t, "a conflict", func() bool { return logged(r, "another program uses the bot's token") > 0 })
	r.say(ada, ada, "still there?")
	until(t, "the message", func() bool { return r.effects("still there?") == 1 })
	if n := logged(r, "another program uses the bot's token"); n > 5 {
		t.Errorf("%d lines for 5 conflicts", n)
	}
}

func TestConflictInARowIsOneLine(t *testing.T) {
	t.Parallel()
	r := newRig(t, off)
	h := &ledger{}
	i := r.inbox(h)
	r.fault(object{"method": "getUpdates", "times": 6, "error_code": 409, "description": "Conflict: terminated by other getUpdates request"})
	r.run(polling(r.poller(i)))
	r.run(i.Run)
	r.say(ada, ada, "hello")
	until(t, "the message", func() bool { return r.effects("hello") == 1 })
	if n := logged(r, "another program uses the bot's token"); n != 1 {
		t.Errorf("%d lines", n)
	}
}

func TestPollerSurvivesEveryPassingFailure(t *testing.T) {
	t.Parallel()
	r := newRig(t, off)
	db := &flaky{DB: r.db}
	h := &ledger{}
	i := r.inbox(h, func(c *InboxConfig) { c.DB = db; c.Reread = 10 * time.Millisecond })
	r.say(ada, ada, "before the start") // pending at a cold start
	r.fault(object{"method": "getUpdates", "times": 2, "status": 502})
	r.fault(object{"method": "getUpdates", "times": 1, "retry_after": 1})
	r.fault(object{"method": "deleteWebhook", "times": 1, "error_code": 500})
	db.down.Store(true)
	r.run(polling(r.poller(i)))
	r.run(i.Run)
	until(t, "a refused commit", func() bool { return logged(r, "accept updates") > 0 })
	db.down.Store(false)
	until(t, "the pending message", func() bool { return r.effects("before the start") == 1 })
	until(t, "a report that it goes on", func() bool { return logged(r, "polling goes on") > 0 })
	for _, c := range r.calls("getUpdates") {
		if kinds, _ := c.Parameters["allowed_updates"].([]any); !slices.Contains(kinds, any("callback_query")) || !slices.Contains(kinds, any("stopped_message_generation")) {
			t.Fatalf("allowed_updates: %v", c.Parameters)
		}
	}
}

func TestRefusedTokenEndsThePoller(t *testing.T) {
	t.Parallel()
	r := newRig(t, off)
	api, err := NewAPI(APIConfig{Token: "12:sesame", URL: r.url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(api.Close)
	p := r.poller(r.inbox(&ledger{}))
	p.API = api
	err = p.Run(t.Context(), 0)
	if FaultOf(err) != FaultUnauthorized || strings.Contains(fmt.Sprintf("%v %+v %#v", err, err, err), "sesame") {
		t.Errorf("error: %v", err)
	}
}

func TestPollerTakesAWebhookAway(t *testing.T) {
	t.Parallel()
	r := newRig(t, off)
	h := &ledger{}
	i := r.inbox(h)
	hook := func() {
		if err := r.api.SetWebhook(t.Context(), "http://127.0.0.1:8443/none", "secret"); err != nil {
			t.Error(err)
		}
	}
	hook()
	r.run(polling(r.poller(i)))
	r.run(i.Run)
	r.say(ada, ada, "one")
	until(t, "the message", func() bool { return r.effects("one") == 1 })
	hook() // somebody sets one while polling goes on
	r.say(ada, ada, "two")
	until(t, "the next message", func() bool { return r.effects("two") == 1 })
}

// gateway is what one process runs: everything under the lease.
type gateway struct {
	lease *Lease
	inbox *Inbox
	poll  *Poller
	out   *Outbox
	act   atomic.Int64 // terms
}

func (r *rig) gateway(name string, db store.DB, h Handler) *gateway {
	i := r.inbox(h, func(c *InboxConfig) { c.DB = db })
	p := r.poller(i)
	p.API, p.Lease = r.newAPI(), "telegram"
	return &gateway{
		lease: &Lease{DB: db, Name: "telegram", Owner: name, TTL: 800 * time.Millisecond, Renew: 100 * time.Millisecond, Logger: r.log},
		inbox: i, poll: p, out: r.outbox(func(c *OutboxConfig) { c.DB = db; c.API = p.API }),
	}
}

func (g *gateway) run(ctx context.Context) error {
	return g.lease.Run(ctx, func(ctx context.Context, fence int64) error {
		g.act.Add(1)
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		var work sync.WaitGroup
		var fail error
		work.Go(func() { _ = g.inbox.Run(ctx) })
		work.Go(func() { _ = g.out.Run(ctx) })
		work.Go(func() {
			if fail = g.poll.Run(ctx, fence); fail != nil && !errors.Is(fail, ErrFenced) {
				cancel(fail)
			}
		})
		work.Wait()
		return nil
	})
}

// echo answers each message once, in the commit that handles it.
type echo struct {
	ledger

	out *Outbox
}

func (e *echo) Handle(t *store.Txn, d *Delivery) error {
	if err := e.ledger.Handle(t, d); err != nil {
		return err
	}
	return e.out.Put(t, Outgoing{Chat: d.Chat, Kind: KindSend, Text: "re " + words(d)})
}

func takeover(t *testing.T, db store.DB) {
	r := newRigOn(t, db, off)
	h := &echo{out: r.outbox()}
	cut := &flaky{DB: db}
	one, two := r.gateway("one", cut, h), r.gateway("two", db, h)
	r.run(one.run)
	until(t, "the first gateway", func() bool { return one.act.Load() == 1 })
	stopTwo := r.run(two.run)
	r.say(ada, ada, "a")
	until(t, "the first answer", func() bool { return slices.Equal(texts(r.chat(ada)), []string{"re a"}) })

	until(t, "an empty outbox", func() bool { return r.size(outboxIndex) == 0 }) // or the answer would rightly come twice

	// The holder loses the store: for all others it is dead, though it still runs.
	cut.down.Store(true)
	r.say(ada, ada, "b")
	until(t, "the other gateway's answer", func() bool { return slices.Contains(texts(r.chat(ada)), "re b") })
	if two.act.Load() != 1 {
		t.Error("who answered?")
	}

	// A clean stop hands over at once, while messages keep coming.
	cut.down.Store(false)
	for n := range 10 {
		r.say(ada, ada, fmt.Sprint("c", n))
		if n == 5 {
			stopTwo()
		}
	}
	until(t, "the last answer", func() bool { return slices.Contains(texts(r.chat(ada)), "re c9") })
	want := []string{"re a", "re b"}
	for n := range 10 {
		want = append(want, fmt.Sprint("re c", n))
	}
	if got := texts(r.chat(ada)); !slices.Equal(got, want) {
		t.Errorf("chat: %q", got)
	}
	for _, w := range want {
		if n := r.effects(strings.TrimPrefix(w, "re ")); n != 1 {
			t.Errorf("%s: %d times", w, n)
		}
	}
}

func TestTwoGatewaysOneSpeaks(t *testing.T) {
	t.Parallel()
	takeover(t, newRig(t, off).db)
}

func TestTwoGatewaysOneSpeaksOnRedis(t *testing.T) {
	t.Parallel()
	takeover(t, storetest.StartRedis(t, storetest.RedisOptions{}).Open(t, "db:{bot}:"))
}

func TestWebhookTakesOnlyTelegramsUpdates(t *testing.T) {
	t.Parallel()
	r := newRig(t, off)
	db := &flaky{DB: r.db}
	i := r.inbox(&ledger{}, func(c *InboxConfig) { c.DB = db })
	h, err := NewWebhook(i, "right-secret", r.log)
	if err != nil {
		t.Fatal(err)
	}
	const json = "application/json"
	good := string(rawMessage(1, ada, ada, "hi"))
	for name, c := range map[string]struct {
		method, secret, kind, body string
		down                       bool
		want                       int
	}{
		"good":             {"POST", "right-secret", json, good, false, 200},
		"with a charset":   {"POST", "right-secret", json + "; charset=utf-8", string(rawMessage(2, ada, ada, "ho")), false, 200},
		"no secret":        {"POST", "", json, good, false, 403},
		"wrong secret":     {"POST", "right-secreT", json, good, false, 403},
		"longer secret":    {"POST", "right-secret1", json, good, false, 403},
		"GET":              {"GET", "right-secret", json, good, false, 405},
		"GET unasked":      {"GET", "", json, good, false, 403},
		"a form":           {"POST", "right-secret", "application/x-www-form-urlencoded", good, false, 415},
		"no JSON":          {"POST", "right-secret", json, "{", false, 400},
		"too large":        {"POST", "right-secret", json, `"` + strings.Repeat("x", maxUpdate) + `"`, false, 413},
		"undecodable":      {"POST", "right-secret", json, `{"update_id":3,"message":7}`, false, 200},
		"store away":       {"POST", "right-secret", json, string(rawMessage(4, ada, ada, "later")), true, 503},
		"store back again": {"POST", "right-secret", json, string(rawMessage(4, ada, ada, "later")), false, 200},
	} {
		db.down.Store(c.down)
		req := httptest.NewRequestWithContext(t.Context(), c.method, "/hook", strings.NewReader(c.body))
		req.Header.Set("Content-Type", c.kind)
		if c.secret != "" {
			req.Header.Set("X-Telegram-Bot-Api-Secret-Token", c.secret)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, req)
		if w.Code != c.want {
			t.Errorf("%s: %d, want %d", name, w.Code, c.want)
		}
	}
	db.down.Store(false)
	if n := r.size(inboxIndex); n != 4 {
		t.Errorf("%d updates are kept", n)
	}
	for _, secret := range []string{"", "a b", strings.Repeat("x", 257)} {
		if _, err := NewWebhook(i, secret, r.log); err == nil {
			t.Errorf("secret %q was taken", secret)
		}
	}
}

func TestWebhookDeliversThroughTheInbox(t *testing.T) {
	t.Parallel()
	r := newRig(t, off)
	h := &ledger{}
	i := r.inbox(h)
	hook, err := NewWebhook(i, "s3cret", r.log)
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(hook)
	t.Cleanup(func() { srv.CloseClientConnections(); srv.Close() })
	if err := hook.Register(t.Context(), r.api, srv.URL); err != nil {
		t.Fatal(err)
	}
	r.run(i.Run)
	r.say(ada, ada, "by post")
	until(t, "the message", func() bool { return r.effects("by post") == 1 })
	c := r.calls("setWebhook")[0]
	if kinds, _ := c.Parameters["allowed_updates"].([]any); !slices.Contains(kinds, any("callback_query")) || c.Parameters["secret_token"] != "s3cret" {
		t.Errorf("setWebhook: %v", c.Parameters)
	}
}
