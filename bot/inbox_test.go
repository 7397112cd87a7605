package bot

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"drawbridge/internal/store"
	"drawbridge/internal/store/bolt"
	"drawbridge/internal/telegramtest"

	"github.com/go-telegram/bot/models"
)

var off = telegramtest.Rates{Off: true}

func rawMessage(id, chat, from int64, text string) json.RawMessage {
	return json.RawMessage(fmt.Sprintf(
		`{"update_id":%d,"message":{"message_id":%d,"date":1,"chat":{"id":%d,"type":"private"},"from":{"id":%d,"first_name":"x"},"text":%q}}`,
		id, id, chat, from, text))
}

func rawTap(id, chat, from int64, data string) json.RawMessage {
	return json.RawMessage(fmt.Sprintf(
		`{"update_id":%d,"callback_query":{"id":"q","from":{"id":%d,"first_name":"x"},"data":%q,"message":{"message_id":1,"date":1,"chat":{"id":%d,"type":"private"}}}}`,
		id, from, data, chat))
}

func accept(t *testing.T, i *Inbox, raws ...json.RawMessage) {
	t.Helper()
	if err := i.Accept(t.Context(), nil, raws...); err != nil {
		t.Fatal(err)
	}
}

func TestRedeliveredUpdateActsOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t, off)
	h := &ledger{}
	i := r.inbox(h)
	// The first answer with updates is lost on its way; later the offset's confirmation is.
	r.say(ada, ada, "one")
	r.fault(object{"method": "getUpdates", "times": 1, "lose_response": true})
	stop := r.run(polling(r.poller(i)))
	r.run(i.Run)
	until(t, "the first message", func() bool { return r.effects("one") == 1 })
	stop()

	// A crash between the commit and the confirmation: another process gets the same updates again.
	r.say(ada, ada, "two")
	raws, err := r.api.Updates(t.Context(), 0, 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	accept(t, i, raws...)
	other := r.inbox(h)
	r.run(polling(r.poller(other)))
	r.run(other.Run)
	r.say(ada, ada, "three")
	until(t, "the last message", func() bool { return r.effects("three") == 1 })
	until(t, "an empty inbox", func() bool { return r.size(inboxIndex) == 0 })
	for _, said := range []string{"one", "two", "three"} {
		if n := r.effects(said); n != 1 {
			t.Errorf("%q took effect %d times", said, n)
		}
	}
	if s := other.Stats(); s.Repeated == 0 {
		t.Error("nothing came twice: the test lost its point")
	}
}

func TestCommitWithLostAnswerActsOnceAndHasItsEffects(t *testing.T) {
	t.Parallel()
	r := newRig(t, off)
	lost := atomic.Int64{}
	db := &flaky{DB: r.db}
	db.after = func(b store.Batch) error {
		// Update repeats a commit three times; all of them stay without an answer.
		if _, ok := b.Put["g:test:hi"]; ok && lost.Add(1) <= 3 {
			return fmt.Errorf("test: %w", store.ErrUnavailable)
		}
		return nil
	}
	h := &ledger{}
	i := r.inbox(h, func(c *InboxConfig) { c.DB = db })
	accept(t, i, rawMessage(1, ada, ada, "hi"))
	r.run(i.Run)
	until(t, "the effect after the commit", func() bool { return len(h.in(ada)) == 1 })
	if n := r.effects("hi"); n != 1 || lost.Load() < 3 {
		t.Errorf("took effect %d times with %d lost answers", n, lost.Load())
	}
}

func TestPoisonUpdateIsSetAside(t *testing.T) {
	t.Parallel()
	r := newRig(t, off)
	h := &asideLedger{}
	i := r.inbox(h)
	secret := "sesame"
	accept(
		t, i,
		json.RawMessage(`{"update_id":7,"message":{"message_id":1,"date":1,"chat":{"id":5,"type":"private"},"from":{"id":5,"first_name":"x"},"forward_origin":{"type":"from_mars"},"text":"`+secret+`"}}`),
		json.RawMessage(`{"no":"id"}`),
		json.RawMessage(`{"update_id":"`+secret+`"}`),
		rawMessage(8, 5, 5, "after"),
	)
	err := store.Update(t.Context(), r.db, func(t *store.Txn) error {
		t.PutBytes(updateKey("9"), []byte("not ours"))
		t.Add(inboxIndex, "9", 1)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	r.run(i.Run)
	until(t, "the update behind the poison", func() bool { return r.effects("after") == 1 })
	until(t, "an empty inbox", func() bool { return r.size(inboxIndex) == 0 })
	until(t, "three updates aside and two handled", func() bool { return i.Stats().Aside == 3 && i.Stats().Handled == 2 })
	if h.aside.Load() != 3 || r.effects("aside 5") != 1 {
		t.Errorf("the handler was told of %d, of the chat's %d", h.aside.Load(), r.effects("aside 5"))
	}
	logged := strings.Join(r.tape.all(), "\n")
	if !strings.Contains(logged, "WARN update set aside update=7 chat=5") {
		t.Errorf("not logged with its id:\n%s", logged)
	}
	if strings.Contains(logged, secret) {
		t.Errorf("the text was logged:\n%s", logged)
	}
}

type asideLedger struct {
	ledger

	aside atomic.Int64
}

func (l *asideLedger) Aside(t *store.Txn, a Aside) error {
	l.aside.Add(1)
	return store.Put(t, "g:test:aside "+a.Chat.Key(), 1)
}

func TestQuietWeekIdsMayJump(t *testing.T) {
	t.Parallel()
	r := newRig(t, off)
	h := &ledger{}
	i := r.inbox(h)
	r.run(polling(r.poller(i)))
	r.run(i.Run)
	for n := range 8 { // each jump is random; half of them go down
		if n > 0 {
			r.sim("POST", "clock", object{"advance_ms": (8 * 24 * time.Hour).Milliseconds()}, nil)
		}
		said := fmt.Sprint("week ", n)
		r.say(ada, ada, said)
		until(t, said, func() bool { return r.effects(said) == 1 })
	}
}

func TestFailingHandlerIsTriedAgainThenSetAside(t *testing.T) {
	t.Parallel()
	r := newRig(t, off)
	var fails atomic.Int64
	h := &asideLedger{}
	h.before = func(_ *store.Txn, d *Delivery) error {
		switch {
		case words(d) == "never", words(d) == "twice" && fails.Add(1) <= 2:
			return errTest
		}
		return nil
	}
	i := r.inbox(h, func(c *InboxConfig) { c.Tries = 4 })
	accept(t, i, rawMessage(1, ada, ada, "never"), rawMessage(2, ada, ada, "twice"), rawMessage(3, grace, grace, "other chat"))
	r.run(i.Run)
	until(t, "the message behind", func() bool { return r.effects("twice") == 1 })
	if r.effects("never") != 0 || r.effects("other chat") != 1 || r.effects("aside "+ChatRef{ID: ada}.Key()) != 1 {
		t.Errorf("never %d, other chat %d, aside %d", r.effects("never"), r.effects("other chat"), r.effects("aside "+ChatRef{ID: ada}.Key()))
	}
}

func TestPanickingHandlerEndsNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t, off)
	r.tape.tolerate = true // a panic is an Error line, rightly
	h := &ledger{before: func(_ *store.Txn, d *Delivery) error {
		if words(d) == "boom" {
			panic("boom")
		}
		return nil
	}}
	i := r.inbox(h, func(c *InboxConfig) { c.Tries = 2 })
	accept(t, i, rawMessage(1, ada, ada, "boom"), rawMessage(2, ada, ada, "next"))
	r.run(i.Run)
	until(t, "the next message", func() bool { return r.effects("next") == 1 })
	if i.Stats().Aside != 1 {
		t.Errorf("set aside: %d", i.Stats().Aside)
	}
}

func TestStoreAwayCostsNoTries(t *testing.T) {
	t.Parallel()
	r := newRig(t, off)
	db := &flaky{DB: r.db}
	h := &ledger{}
	i := r.inbox(h, func(c *InboxConfig) { c.DB = db; c.Tries = 1; c.Reread = 10 * time.Millisecond })
	accept(t, i, rawMessage(1, ada, ada, "patience"))
	db.down.Store(true)
	r.run(i.Run)
	until(t, "a report that the store is away", func() bool {
		return slices.ContainsFunc(r.tape.all(), func(l string) bool { return strings.Contains(l, "inbox can't be read") })
	})
	db.down.Store(false)
	until(t, "the message", func() bool { return r.effects("patience") == 1 })
	if i.Stats().Aside != 0 {
		t.Error("set aside while the store was away")
	}
}

func TestChatsKeepTheirOrderAndWaitForNobody(t *testing.T) {
	t.Parallel()
	r := newRig(t, off)
	release := make(chan struct{})
	h := &ledger{before: func(_ *store.Txn, d *Delivery) error {
		if words(d) == "slow" {
			<-release
		}
		return nil
	}}
	i := r.inbox(h)
	raws := []json.RawMessage{rawMessage(1, ada, ada, "slow")}
	var want []string
	for n := range 50 {
		raws = append(raws, rawMessage(int64(100+n), grace, grace, fmt.Sprint(n)), rawMessage(int64(200+n), ada, ada, fmt.Sprint("a", n)))
		want = append(want, fmt.Sprint(n))
	}
	accept(t, i, raws...)
	r.run(i.Run)
	until(t, "the other chat", func() bool { return len(h.in(grace)) == 50 })
	if len(h.in(ada)) != 0 {
		t.Error("the slow chat was overtaken by itself")
	}
	close(release)
	until(t, "the slow chat", func() bool { return len(h.in(ada)) == 51 })
	if got := h.in(grace); !slices.Equal(got, want) {
		t.Errorf("order: %v", got)
	}
	if got := h.in(ada); got[0] != "slow" || got[1] != "a0" || got[50] != "a49" {
		t.Errorf("order of the slow chat: %v", got)
	}
}

func TestControlNeverWaitsBehindOrdinary(t *testing.T) {
	t.Parallel()
	r := newRig(t, off)
	release := make(chan struct{})
	h := &ledger{before: func(_ *store.Txn, d *Delivery) error {
		if d.Lane == LaneOrdinary {
			<-release
		}
		return nil
	}}
	i := r.inbox(h, func(c *InboxConfig) { c.Workers = 2 })
	var raws []json.RawMessage
	for n := range int64(6) { // more blocked chats than workers
		raws = append(raws, rawMessage(n+1, n+1, n+1, "slow"))
	}
	raws = append(raws, rawMessage(20, 1, 1, "/stop"), rawTap(21, 2, 2, "allow"))
	accept(t, i, raws...)
	r.run(i.Run)
	until(t, "the command and the tap", func() bool { return r.effects("/stop") == 1 && r.effects("tap allow") == 1 })
	if r.effects("slow") != 0 {
		t.Error("the slow ones were not slow")
	}
	close(release)
	until(t, "the rest", func() bool { return r.effects("slow") == 6 })
}

func TestFailingTapLetsOthersPass(t *testing.T) {
	t.Parallel()
	r := newRig(t, off)
	h := &ledger{before: func(_ *store.Txn, d *Delivery) error {
		if words(d) == "tap bad" {
			return errTest
		}
		return nil
	}}
	i := r.inbox(h, func(c *InboxConfig) { c.Retry = time.Hour })
	accept(t, i, rawTap(1, ada, ada, "bad"), rawTap(2, ada, ada, "good"))
	r.run(i.Run)
	until(t, "the second tap", func() bool { return r.effects("tap good") == 1 })
}

func TestPrepareRunsOnceBeforeTheCommit(t *testing.T) {
	t.Parallel()
	r := newRig(t, off)
	h := &preparing{}
	h.before = func(_ *store.Txn, d *Delivery) error {
		if d.Prepared != "fetched" {
			t.Errorf("prepared: %v", d.Prepared)
		}
		if h.calls.Load() == 1 {
			return errTest
		}
		return nil
	}
	i := r.inbox(h)
	accept(t, i, rawMessage(1, ada, ada, "photo"))
	r.run(i.Run)
	until(t, "the message", func() bool { return r.effects("photo") == 1 })
	if h.prepared.Load() != 1 {
		t.Errorf("prepared %d times", h.prepared.Load())
	}
}

type preparing struct {
	ledger

	prepared atomic.Int64
}

func (p *preparing) Prepare(context.Context, *Delivery) (any, error) {
	p.prepared.Add(1)
	return "fetched", nil
}

func TestHandledUpdatesAreForgottenAfterTwoDays(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db, err := bolt.Open(t.TempDir()+"/db", bolt.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = db.Close() }()
		r := &rig{t: t, db: db}
		r.tape = &tape{t: t}
		r.log = slog.New(r.tape)
		i := r.inbox(&ledger{})
		accept(t, i, rawMessage(1, ada, ada, "old"))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- i.Run(ctx) }()
		pass(47 * time.Hour)
		accept(t, i, rawMessage(1, ada, ada, "old"))
		if r.size(inboxOld) != 1 || r.size(inboxIndex) != 0 {
			t.Errorf("after 47 h: %d remembered, %d waiting", r.size(inboxOld), r.size(inboxIndex))
		}
		pass(2 * time.Hour)
		if r.size(inboxOld) != 0 {
			t.Error("still remembered after 49 h")
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		_, docs, err := db.Read(t.Context(), updateKey("1"))
		if err != nil || docs[0].Rev != "" {
			t.Errorf("tombstone still there: %s %v", docs[0].Value, err)
		}
	})
}

func TestTwoInboxesHandleEachUpdateOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t, off)
	h := &ledger{}
	one, two := r.inbox(h), r.inbox(h)
	r.run(one.Run)
	r.run(two.Run)
	const n = 60
	for k := range int64(n) {
		accept(t, one, rawMessage(k+1, k%5+1, 1, fmt.Sprint("m", k)))
	}
	until(t, "an empty inbox", func() bool { return r.size(inboxIndex) == 0 })
	for k := range n {
		if got := r.effects(fmt.Sprint("m", k)); got != 1 {
			t.Errorf("m%d took effect %d times", k, got)
		}
	}
}

func TestOriginOfUpdates(t *testing.T) {
	t.Parallel()
	person := &models.User{ID: 7}
	chat := models.Chat{ID: -5}
	for name, c := range map[string]struct {
		u      models.Update
		chat   string
		person int64
	}{
		"message":          {models.Update{Message: &models.Message{Chat: chat, From: person}}, "-5", 7},
		"topic":            {models.Update{Message: &models.Message{Chat: chat, From: person, MessageThreadID: 45, IsTopicMessage: true}}, "-5/45", 7},
		"reply in general": {models.Update{Message: &models.Message{Chat: chat, From: person, MessageThreadID: 45}}, "-5", 7},
		"general":          {models.Update{Message: &models.Message{Chat: chat, From: person, MessageThreadID: 1, IsTopicMessage: true}}, "-5", 7},
		"channel's voice":  {models.Update{Message: &models.Message{Chat: chat}}, "-5", 0},
		"tap on old":       {models.Update{CallbackQuery: &models.CallbackQuery{From: *person, Message: models.MaybeInaccessibleMessage{InaccessibleMessage: &models.InaccessibleMessage{Chat: chat}}}}, "-5", 7},
		"nothing":          {models.Update{}, "0", 0},
	} {
		got, who := Origin(&c.u)
		if got.Key() != c.chat || who != c.person {
			t.Errorf("%s: %s %d, want %s %d", name, got.Key(), who, c.chat, c.person)
		}
	}
}

func FuzzUpdate(f *testing.F) {
	f.Add([]byte(rawMessage(1, 2, 3, "hi")))
	f.Add([]byte(rawTap(1, 2, 3, "data")))
	f.Add([]byte(`{"update_id":1,"message":{"forward_origin":{"type":"?"}}}`))
	f.Add([]byte(`{"update_id":1,"my_chat_member":{"new_chat_member":{"status":"?"}}}`))
	f.Add([]byte(`{"update_id":-9223372036854775808}`))
	f.Add([]byte(`[]`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		id, n, ok := updateID(raw)
		if id == "" || ok != (id[0] != 'x') || ok && id != fmt.Sprint(n) {
			t.Errorf("id %q, number %d, %t", id, n, ok)
		}
		if len(updateKey(id)) > 64 {
			t.Errorf("key of %d bytes", len(updateKey(id)))
		}
		u, err := decodeUpdate(raw)
		if (u == nil) == (err == nil) {
			t.Fatalf("update %v, error %v", u, err)
		}
		if err != nil {
			salvage(raw)
			return
		}
		chat, _ := Origin(u)
		if chat.ID != 0 {
			if back, err := ParseChat(chat.Key()); err != nil || back != chat {
				t.Errorf("chat %v has the key %q, which reads as %v, %v", chat, chat.Key(), back, err)
			}
		}
		openEnded(u)
		continues(u, u)
	})
}
