package bot

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"drawbridge/formatting"
	"drawbridge/internal/store"
	"drawbridge/internal/telegramtest"
)

func TestMessagesArriveInTheirChatsOrder(t *testing.T) {
	t.Parallel()
	r := newRig(t, off)
	r.meet(ada, grace)
	o := r.outbox()
	// Ada's chat is slow from its first message on.
	r.fault(object{"method": "sendMessage", "times": 1, "delay_ms": 400})
	r.put(o, send(ada, "a0"))
	r.run(o.Run)
	until(t, "the slow call", func() bool { return len(r.calls("sendMessage")) == 1 })
	var wantA, wantG []string
	wantA = append(wantA, "a0")
	for n := range 20 {
		r.put(o, send(ada, fmt.Sprint("a", n+1)), send(grace, fmt.Sprint("g", n)))
		wantA, wantG = append(wantA, fmt.Sprint("a", n+1)), append(wantG, fmt.Sprint("g", n))
	}
	until(t, "the quick chat", func() bool { return len(r.chat(grace)) == 20 })
	if n := len(r.chat(ada)); n > 1 {
		t.Logf("the slow chat was not slow: %d", n)
	}
	until(t, "the slow chat", func() bool { return len(r.chat(ada)) == 21 })
	if got := texts(r.chat(ada)); !slices.Equal(got, wantA) {
		t.Errorf("order: %v", got)
	}
	if got := texts(r.chat(grace)); !slices.Equal(got, wantG) {
		t.Errorf("order: %v", got)
	}
	until(t, "an empty outbox", func() bool { return r.size(outboxIndex) == 0 })
}

func TestEveryFieldArrives(t *testing.T) {
	t.Parallel()
	r := newRig(t, off)
	question := r.say(group, ada, "/start@drawbridge_bot")
	o := r.outbox()
	r.put(o, Outgoing{
		Chat: ChatRef{ID: group}, Kind: KindSend, Slot: "card", Text: "run it?", Silent: true, ReplyTo: question,
		Entities: []formatting.Entity{{Type: "code", Offset: 0, Length: 3}},
		Buttons:  [][]Button{{{Text: "Allow", Data: "a", Style: "success"}, {Text: "Docs", URL: "https://example.org/"}}, {{Text: "Copy", Copy: "x"}, {Text: "No", Disabled: true}}},
	}, Outgoing{
		Chat: ChatRef{ID: group}, Kind: KindDocument, Text: "the log", ReplyToSlot: "card",
		Document: &Document{Name: "log.txt", Bytes: []byte("hello")},
	})
	r.run(o.Run)
	until(t, "both messages", func() bool { return len(r.chat(group)) == 2 })
	got := r.chat(group)
	if m := got[0]; m.Text != "run it?" || !m.Silent || m.ReplyTo != question || len(m.Buttons) != 2 || m.Buttons[1][1].Text != "No" {
		t.Errorf("card: %+v", m)
	}
	if m := got[1]; m.Document == nil || m.Document.Name != "log.txt" || m.Document.Size != 5 || m.ReplyTo != got[0].ID {
		t.Errorf("document: %+v", m)
	}
	p := r.calls("sendMessage")[0].Parameters
	if preview, _ := p["link_preview_options"].(map[string]any); preview["is_disabled"] != true {
		t.Errorf("link previews are on: %v", p)
	}
}

func TestEditToASlotWhoseSendStillWaits(t *testing.T) {
	t.Parallel()
	r := newRig(t, off)
	r.meet(ada)
	o := r.outbox()
	r.put(o, send(ada, "before"), slotted(ada, "s", "first"), send(ada, "between"))
	r.put(o, edit(ada, "s", "second"))
	r.put(o, edit(ada, "s", "third"))
	r.run(o.Run)
	until(t, "an empty outbox", func() bool { return r.size(outboxIndex) == 0 })
	if got := texts(r.chat(ada)); !slices.Equal(got, []string{"before", "third", "between"}) {
		t.Errorf("chat: %q", got)
	}
	if n := len(r.calls("editMessageText")); n != 0 {
		t.Errorf("%d edits of what was not sent yet", n)
	}
	// It is known now, and its edits are edits.
	r.put(o, edit(ada, "s", "fourth"))
	until(t, "the edit", func() bool { return texts(r.chat(ada))[1] == "fourth" })
}

func TestNewerTextTakesThePlaceOfWhatIsBeingSent(t *testing.T) {
	t.Parallel()
	r := newRig(t, off)
	r.meet(ada)
	o := r.outbox()
	r.fault(object{"method": "sendMessage", "times": 1, "delay_ms": 300})
	r.put(o, slotted(ada, "s", "first"))
	r.run(o.Run)
	until(t, "the call", func() bool { return len(r.calls("sendMessage")) == 1 })
	r.put(o, edit(ada, "s", "second"))
	until(t, "the newer text", func() bool { return slices.Equal(texts(r.chat(ada)), []string{"second"}) })
	until(t, "an empty outbox", func() bool { return r.size(outboxIndex) == 0 })
	if n := len(r.calls("sendMessage")); n != 1 {
		t.Errorf("sent %d times", n)
	}
}

func TestButtonsAndDeletion(t *testing.T) {
	t.Parallel()
	r := newRig(t, off)
	r.meet(ada)
	o := r.outbox()
	r.run(o.Run)
	card := slotted(ada, "s", "card")
	card.Buttons = [][]Button{{{Text: "Allow", Data: "a"}}}
	r.put(o, card)
	until(t, "the card", func() bool { return len(r.chat(ada)) == 1 })
	r.put(o, Outgoing{Chat: ChatRef{ID: ada}, Kind: KindButtons, Slot: "s"})
	until(t, "a card without buttons", func() bool { c := r.chat(ada); return len(c) == 1 && len(c[0].Buttons) == 0 && c[0].Text == "card" })
	r.put(o, Outgoing{Chat: ChatRef{ID: ada}, Kind: KindDelete, Slot: "s"})
	until(t, "an empty chat", func() bool { return len(r.chat(ada)) == 0 })
	// A second deletion and a deletion of nothing end, too.
	r.put(o, Outgoing{Chat: ChatRef{ID: ada}, Kind: KindDelete, Slot: "s"}, Outgoing{Chat: ChatRef{ID: ada}, Kind: KindDelete, MessageID: 99999})
	until(t, "an empty outbox", func() bool { return r.size(outboxIndex) == 0 })
}

func TestLostSlot(t *testing.T) {
	t.Parallel()
	r := newRig(t, off)
	r.meet(ada)
	d := &drops{}
	o := r.outbox(func(c *OutboxConfig) { c.OnDropped = d.on })
	r.run(o.Run)
	again := edit(ada, "never", "as a new one")
	again.Upsert = true
	r.put(o, edit(ada, "nowhere", "lost"), again)
	until(t, "the upserted edit", func() bool { return slices.Equal(texts(r.chat(ada)), []string{"as a new one"}) })
	if got := d.all(); !slices.Equal(got, []string{"lost: no_message"}) {
		t.Errorf("dropped: %q", got)
	}
	// The person deletes it: the next edit is a new message again.
	id := r.chat(ada)[0].ID
	if _, err := r.api.Post(t.Context(), &Outgoing{Chat: ChatRef{ID: ada}, Kind: KindDelete}, id, 0, nil); err != nil {
		t.Fatal(err)
	}
	again.Text = "once more"
	r.put(o, again)
	until(t, "the message again", func() bool { return slices.Equal(texts(r.chat(ada)), []string{"once more"}) })
}

// drops records what was dropped, from within the commits.
type drops struct {
	mu   sync.Mutex
	list []string
}

func (d *drops) on(_ *store.Txn, m Outgoing, reason string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.list = append(d.list, m.Text+": "+reason)
	return nil
}

func (d *drops) all() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.list)
}

func TestRetryAfterIsHonouredExactly(t *testing.T) {
	t.Parallel()
	r := newRig(t, off)
	r.meet(ada, grace)
	o := r.outbox()
	r.fault(object{"method": "sendMessage", "times": 1, "retry_after": 2})
	r.put(o, send(ada, "patient"))
	r.run(o.Run)
	until(t, "the refusal", func() bool { return len(r.calls("sendMessage")) == 1 })
	r.put(o, send(grace, "not concerned"))
	until(t, "both", func() bool { return len(r.chat(ada)) == 1 && len(r.chat(grace)) == 1 })
	calls := r.calls("sendMessage")
	if len(calls) != 3 {
		t.Fatalf("%d calls", len(calls))
	}
	first, last := calls[0], calls[2]
	if last.Parameters["text"] != "patient" {
		t.Errorf("the other chat waited too: %v", calls)
	}
	// A lower bound only: what was asked for is that nobody comes earlier.
	if d := last.Time - first.Time; d < 2 {
		t.Errorf("came back after %.2f s", d)
	}
}

func TestSecondFloodedChatSilencesAll(t *testing.T) {
	t.Parallel()
	r := newRig(t, off)
	o := r.outbox()
	flood := func(chat int64) {
		o.flooded(chat, &Error{Fault: FaultRetryAfter, RetryAfter: time.Hour})
	}
	flood(1)
	if !o.all.blocked.IsZero() {
		t.Error("one chat silenced all")
	}
	flood(1)
	if !o.all.blocked.IsZero() {
		t.Error("one chat, twice, silenced all")
	}
	flood(2)
	if o.all.blocked.IsZero() {
		t.Error("the second chat was taken for a chance")
	}
}

func TestFinalTextSurvivesAFlood(t *testing.T) {
	t.Parallel()
	r := newRig(t, off)
	r.meet(ada)
	o := r.outbox()
	r.put(o, slotted(ada, "live", "thinking"))
	r.run(o.Run)
	until(t, "the live message", func() bool { return len(r.chat(ada)) == 1 })
	r.fault(object{"method": "editMessageText", "times": 2, "retry_after": 1})
	for n := range 200 {
		o.Live("live", edit(ada, "live", fmt.Sprint("working ", n)))
	}
	until(t, "the flood", func() bool { return len(r.calls("editMessageText")) > 0 })
	final := edit(ada, "live", "the answer")
	final.Final = true
	r.put(o, final)
	for n := range 200 {
		o.Live("live", edit(ada, "live", fmt.Sprint("late ", n)))
	}
	until(t, "an empty outbox", func() bool { return r.size(outboxIndex) == 0 })
	o.Live("live", edit(ada, "live", "far too late"))
	r.put(o, send(ada, "next"))
	until(t, "the next message", func() bool { return len(r.chat(ada)) == 2 })
	if got := texts(r.chat(ada)); got[0] != "the answer" {
		t.Errorf("the final text is gone: %q", got)
	}
}

func TestServerErrorsAndLostResponses(t *testing.T) {
	t.Parallel()
	r := newRig(t, off)
	r.meet(ada)
	o := r.outbox()
	r.fault(object{"method": "sendMessage", "times": 2, "status": 502})
	r.fault(object{"method": "sendMessage", "times": 1, "error_code": 500})
	r.put(o, send(ada, "one"), send(ada, "two"))
	r.run(o.Run)
	until(t, "both", func() bool { return slices.Equal(texts(r.chat(ada)), []string{"one", "two"}) })
	if n := len(r.calls("sendMessage")); n != 5 {
		t.Errorf("%d calls", n)
	}
	// Delivered, but the answer is lost: nobody can know, so it comes again and nothing is missing.
	r.fault(object{"method": "sendMessage", "times": 1, "lose_response": true})
	r.put(o, send(ada, "three"), send(ada, "four"))
	until(t, "the rest", func() bool {
		return slices.Equal(slices.Compact(texts(r.chat(ada))), []string{"one", "two", "three", "four"})
	})
}

func TestNotModifiedIsASuccess(t *testing.T) {
	t.Parallel()
	r := newRig(t, off)
	r.meet(ada)
	d := &drops{}
	o := r.outbox(func(c *OutboxConfig) { c.OnDropped = d.on })
	stop := r.run(o.Run)
	r.put(o, slotted(ada, "s", "same"))
	until(t, "the message", func() bool { return len(r.chat(ada)) == 1 && r.size(outboxIndex) == 0 })
	r.put(o, edit(ada, "s", "same"))
	until(t, "an empty outbox", func() bool { return r.size(outboxIndex) == 0 })
	if n := len(r.calls("editMessageText")); n != 0 {
		t.Errorf("%d edits that change nothing", n)
	}
	stop()
	r.run(r.outbox(func(c *OutboxConfig) { c.OnDropped = d.on }).Run) // has never seen the message
	r.put(o, edit(ada, "s", "same"), send(ada, "next"))
	until(t, "the next message", func() bool { return len(r.chat(ada)) == 2 })
	if n := len(r.calls("editMessageText")); n != 1 || len(d.all()) != 0 {
		t.Errorf("%d edits, dropped %v", n, d.all())
	}
}

func TestBlockedChatDropsWithItsReason(t *testing.T) {
	t.Parallel()
	r := newRig(t, off)
	r.meet(ada, grace)
	d := &drops{}
	o := r.outbox(func(c *OutboxConfig) { c.OnDropped = d.on })
	r.sim("POST", "blocks", object{"from": ada, "blocked": true}, nil)
	r.put(o, send(ada, "unwanted"), send(grace, "wanted"), Outgoing{Chat: ChatRef{ID: forum, Topic: 4242}, Kind: KindSend, Text: "no such topic"})
	r.run(o.Run)
	until(t, "an empty outbox", func() bool { return r.size(outboxIndex) == 0 })
	got := d.all()
	slices.Sort(got)
	if !slices.Equal(got, []string{"no such topic: gone", "unwanted: forbidden"}) || len(r.chat(grace)) != 1 || r.size(droppedIndex) != 2 {
		t.Errorf("dropped %q, recorded %d", got, r.size(droppedIndex))
	}
	if len(r.chat(forum)) != 0 {
		t.Error("a message to a topic landed in General")
	}
}

func TestMigratedGroupKeepsItsMessages(t *testing.T) {
	t.Parallel()
	r := newRig(t, off)
	var from, to atomic.Int64
	o := r.outbox(func(c *OutboxConfig) {
		c.OnMigrated = func(t *store.Txn, a, b int64) error {
			from.Store(a)
			to.Store(b)
			return store.Put(t, "g:test:migrated", b)
		}
	})
	r.say(group, ada, "/start")
	r.put(o, send(group, "one"), send(group, "two"))
	r.sim("POST", "migrations", object{"chat": group}, nil)
	r.run(o.Run)
	until(t, "an empty outbox", func() bool { return r.size(outboxIndex) == 0 && to.Load() != 0 })
	if got := texts(r.chat(to.Load())); from.Load() != group || !slices.Equal(got, []string{"one", "two"}) {
		t.Errorf("from %d to %d: %q", from.Load(), to.Load(), got)
	}
}

func TestRefusedFormsBecomePlainer(t *testing.T) {
	t.Parallel()
	r := newRig(t, off)
	r.meet(ada)
	d := &drops{}
	o := r.outbox(func(c *OutboxConfig) { c.OnDropped = d.on })
	bad := send(ada, "😀 text")
	bad.Entities = []formatting.Entity{{Type: "bold", Offset: 1, Length: 3}} // begins in a surrogate pair
	wrong := send(ada, "odd button")
	wrong.Buttons = [][]Button{{{Text: "x", URL: "nonsense://%%"}}}
	r.put(o, bad, wrong, send(ada, strings.Repeat("y", 5000)), send(ada, "last"))
	r.run(o.Run)
	until(t, "an empty outbox", func() bool { return r.size(outboxIndex) == 0 })
	got := r.chat(ada)
	if len(got) != 4 || got[0].Text != "😀 text" || got[1].Text != "odd button" || got[3].Text != "last" {
		t.Fatalf("chat: %q, dropped %q", texts(got), d.all())
	}
	if f := got[2].Document; f == nil || f.Size != 5000 {
		t.Errorf("the text that is too long: %+v", got[2])
	}
}

func TestCrashBetweenSendAndCommitLosesNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t, off)
	r.meet(ada)
	db := &flaky{DB: r.db}
	o := r.outbox(func(c *OutboxConfig) { c.DB = db; c.Grace = time.Millisecond })
	r.fault(object{"method": "sendMessage", "times": 1, "delay_ms": 200})
	r.put(o, slotted(ada, "s", "one"), send(ada, "two"))
	stop := r.run(o.Run)
	until(t, "the call", func() bool { return len(r.calls("sendMessage")) == 1 })
	db.down.Store(true) // the process is as good as dead
	until(t, "the message", func() bool { return len(r.chat(ada)) == 1 })
	stop()
	r.run(r.outbox().Run)
	until(t, "the rest", func() bool { return r.size(outboxIndex) == 0 })
	if got := slices.Compact(texts(r.chat(ada))); !slices.Equal(got, []string{"one", "two"}) {
		t.Errorf("chat: %q", got)
	}
	// The tap comes from the first copy, whose id nobody kept.
	first := r.chat(ada)[0].ID
	err := store.Update(t.Context(), r.db, func(t *store.Txn) error {
		before, err := o.Adopt(t, "s", ChatRef{ID: ada}, first)
		if err == nil && before == first {
			err = errors.New("nothing to adopt: the test lost its point")
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	r.put(o, edit(ada, "s", "decided"))
	until(t, "the edit of the adopted message", func() bool { return r.chat(ada)[0].Text == "decided" })
}

func TestUnreadableEntryDoesNotStopItsChat(t *testing.T) {
	t.Parallel()
	r := newRig(t, off)
	r.meet(ada)
	o := r.outbox()
	broken, missing := send(ada, "broken"), send(ada, "missing")
	broken.ID, missing.ID = "b", "m"
	r.put(o, broken, missing, send(ada, "last"))
	err := store.Update(t.Context(), r.db, func(t *store.Txn) error {
		t.PutBytes(outKey("b"), []byte("not ours"))
		t.Delete(outKey("m"))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	r.run(o.Run)
	until(t, "an empty outbox", func() bool { return r.size(outboxIndex) == 0 })
	if got := texts(r.chat(ada)); !slices.Equal(got, []string{"last"}) {
		t.Errorf("chat: %q", got)
	}
}

func TestStopFlushesWithinItsGrace(t *testing.T) {
	t.Parallel()
	r := newRig(t, off)
	r.meet(ada)
	o := r.outbox(func(c *OutboxConfig) { c.Pace.Private = []Rate{{N: 1, Per: 30 * time.Millisecond}} })
	var ms []Outgoing
	for n := range 10 {
		ms = append(ms, send(ada, fmt.Sprint(n)))
	}
	r.put(o, ms...)
	r.run(o.Run)() // starts and stops at once
	if n := len(r.chat(ada)); n != 10 {
		t.Errorf("%d of 10 were sent before the end", n)
	}
}

func TestLostLeaseStopsTheOutboxAtOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t, off)
	r.meet(ada)
	o := r.outbox(func(c *OutboxConfig) { c.Grace = time.Hour; c.Pace.Private = []Rate{{N: 1, Per: time.Hour}} })
	r.put(o, send(ada, "one"), send(ada, "two"))
	ctx, end := context.WithCancelCause(t.Context())
	done := make(chan error, 1)
	go func() { done <- o.Run(ctx) }()
	until(t, "the first message", func() bool { return len(r.chat(ada)) == 1 })
	end(ErrLeaseLost)
	if err := <-done; err != nil {
		t.Error(err)
	}
	if r.size(outboxIndex) != 1 {
		t.Error("the second message is gone")
	}
}

func TestRefusedTokenEndsTheOutbox(t *testing.T) {
	t.Parallel()
	r := newRig(t, off)
	api, err := NewAPI(APIConfig{Token: "1:wrong", URL: r.url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(api.Close)
	o := r.outbox(func(c *OutboxConfig) { c.API = api })
	r.put(o, send(ada, "one"))
	err = o.Run(t.Context())
	if FaultOf(err) != FaultUnauthorized || strings.Contains(err.Error(), "wrong") {
		t.Errorf("error: %v", err)
	}
	if e, ok := errors.AsType[*Error](err); !ok || e.Code != http.StatusUnauthorized {
		t.Errorf("error: %#v", err)
	}
	if r.size(outboxIndex) != 1 {
		t.Error("the message is gone")
	}
}

func TestRealPaceIsNeverRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t, telegramtest.Rates{})
	r.meet(ada, grace)
	o := r.outbox(func(c *OutboxConfig) { c.Pace = Pace{} })
	r.put(o, slotted(ada, "s", "live"))
	for n := range 6 {
		r.put(o, send(ada, fmt.Sprint(n)), send(group, fmt.Sprint(n)), Outgoing{Chat: ChatRef{ID: forum}, Kind: KindSend, Text: fmt.Sprint(n)})
	}
	r.run(o.Run)
	for n := range 100 {
		o.Live("s", edit(ada, "s", fmt.Sprint("live ", n)))
	}
	until(t, "everything", func() bool { return r.size(outboxIndex) == 0 })
	for _, method := range []string{"sendMessage", "editMessageText"} {
		for _, c := range r.calls(method) {
			if !c.OK {
				t.Errorf("%s refused: %d", method, c.ErrorCode)
			}
		}
	}
}
