package bot

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"drawbridge/internal/store"
)

func TestLiveShowsTheLatestAtItsPace(t *testing.T) {
	t.Parallel()
	r := newRig(t, off)
	r.meet(ada)
	o := r.outbox(func(c *OutboxConfig) { c.Pace.Live = 150 * time.Millisecond })
	r.put(o, slotted(ada, "s", "…"))
	r.run(o.Run)
	until(t, "the message", func() bool { return len(r.chat(ada)) == 1 && r.size(outboxIndex) == 0 })
	for n := range 100 {
		o.Live("s", edit(ada, "s", fmt.Sprint("text ", n)))
	}
	until(t, "the latest text", func() bool { return r.chat(ada)[0].Text == "text 99" })
	calls := r.calls("editMessageText")
	if len(calls) > 10 {
		t.Errorf("%d edits for 100 texts at once", len(calls))
	}
	for n := 1; n < len(calls); n++ {
		if d := calls[n].Time - calls[n-1].Time; d < 0.14 {
			t.Errorf("%.3f s between two edits", d)
		}
	}
	for range 20 { // what is shown already is not sent again
		o.Live("s", edit(ada, "s", "text 99"))
	}
	o.Live("s", edit(ada, "s", "last"))
	until(t, "the last text", func() bool { return r.chat(ada)[0].Text == "last" })
	if again := len(r.calls("editMessageText")) - len(calls); again != 1 {
		t.Errorf("%d edits for one change", again)
	}
}

func TestLiveWaitsForItsMessage(t *testing.T) {
	t.Parallel()
	r := newRig(t, off)
	r.meet(ada)
	o := r.outbox()
	r.fault(object{"method": "sendMessage", "times": 1, "delay_ms": 300})
	r.put(o, slotted(ada, "s", "…"))
	r.run(o.Run)
	until(t, "the call", func() bool { return len(r.calls("sendMessage")) == 1 })
	o.Live("s", edit(ada, "s", "early"))
	until(t, "the early text", func() bool { return slices.Equal(texts(r.chat(ada)), []string{"early"}) })
}

func TestDraftsInPrivateChats(t *testing.T) {
	t.Parallel()
	r := newRig(t, off)
	r.meet(ada)
	o := r.outbox()
	r.run(o.Run)
	until(t, "a running outbox", func() bool { o.mu.Lock(); defer o.mu.Unlock(); return o.running })
	o.Live("d", Outgoing{Chat: ChatRef{ID: ada}, Kind: KindDraft, Draft: 7, CanStop: true, Text: "so far"})
	until(t, "the draft", func() bool {
		var drafts []struct {
			Text string `json:"text"`
			Stop bool   `json:"can_stop"`
		}
		r.sim("GET", fmt.Sprintf("chats/%d/drafts", ada), nil, &drafts)
		return len(drafts) == 1 && drafts[0].Text == "so far" && drafts[0].Stop
	})
	r.put(o, slotted(ada, "d", "done"))
	until(t, "the message", func() bool { return len(r.chat(ada)) == 1 && r.size(outboxIndex) == 0 })
	before := len(r.calls("sendMessageDraft"))
	o.Live("d", Outgoing{Chat: ChatRef{ID: ada}, Kind: KindDraft, Draft: 7, Text: "too late"})
	r.put(o, send(ada, "next"))
	until(t, "the next message", func() bool { return len(r.chat(ada)) == 2 })
	until(t, "the end of the late draft", func() bool { o.mu.Lock(); defer o.mu.Unlock(); return len(o.live.pending)+len(o.live.flying) == 0 })
	if n := len(r.calls("sendMessageDraft")); n != before {
		t.Error("a draft came after its message")
	}
}

func TestNoisyTopicStarvesNobody(t *testing.T) {
	t.Parallel()
	r := newRig(t, off)
	o := r.outbox(func(c *OutboxConfig) { c.Pace.Group = []Rate{{N: 1, Per: 20 * time.Millisecond}} })
	topic := func(name string) ChatRef {
		var out struct {
			ID int `json:"topic"`
		}
		r.sim("POST", "topics", object{"chat": forum, "name": name, "from": ada}, &out)
		return ChatRef{ID: forum, Topic: out.ID}
	}
	noisy, calm := topic("noisy"), topic("calm")
	if noisy.Topic == 0 || calm.Topic == 0 {
		t.Fatal(noisy, calm)
	}
	var ms []Outgoing
	for n := range 50 {
		ms = append(ms, Outgoing{Chat: noisy, Kind: KindSend, Text: fmt.Sprint("noise ", n)})
	}
	r.put(o, ms...)
	r.put(o, Outgoing{Chat: calm, Kind: KindSend, Text: "word"})
	r.run(o.Run)
	until(t, "everything", func() bool { return len(r.chat(forum)) == 51 })
	at := slices.Index(texts(r.chat(forum)), "word")
	if at > 3 {
		t.Errorf("the calm topic came as number %d", at+1)
	}
	if m := r.chat(forum)[at]; m.Topic != calm.Topic {
		t.Errorf("landed in topic %d", m.Topic)
	}
}

func TestTapsAreAnsweredWhileTheOutboxWaits(t *testing.T) {
	t.Parallel()
	r := newRig(t, off)
	r.meet(ada)
	acker := NewAcker(AckerConfig{API: r.newAPI(), Logger: r.log})
	o := r.outbox(func(c *OutboxConfig) { c.Grace = time.Millisecond })
	i := r.inbox(HandlerFunc(func(_ *store.Txn, d *Delivery) error {
		if q := d.Update().CallbackQuery; q != nil {
			d.After(func(context.Context) { acker.Answer(q.ID, "noted", true) })
		}
		return nil
	}))
	card := slotted(ada, "s", "card")
	card.Buttons = [][]Button{{{Text: "Allow", Data: "token"}}}
	r.put(o, card)
	r.run(o.Run)
	r.run(i.Run)
	r.run(acker.Run)
	r.run(polling(r.poller(i)))
	until(t, "the card", func() bool { return len(r.chat(ada)) == 1 })
	r.fault(object{"method": "sendMessage", "times": 1, "retry_after": 3600})
	r.put(o, send(ada, "stuck"))
	r.fault(object{"method": "answerCallbackQuery", "times": 1, "status": 502}) // one more attempt is made
	var got struct {
		Answered bool   `json:"answered"`
		Text     string `json:"text"`
		Alert    bool   `json:"alert"`
	}
	r.sim("POST", "taps", object{"chat": ada, "from": ada, "message_id": r.chat(ada)[0].ID, "button": "Allow"}, &got)
	if !got.Answered || got.Text != "noted" || !got.Alert {
		t.Errorf("answer: %+v", got)
	}
	// Too late is final.
	before := len(r.calls("answerCallbackQuery"))
	acker.Answer("no such query", "", false)
	until(t, "the late answer", func() bool {
		return len(r.calls("answerCallbackQuery")) == before+1 && logged(r, "tap not answered") >= 2
	})
}

func TestDurableEditWaitsForTheLiveOneOnItsWay(t *testing.T) {
	t.Parallel()
	r := newRig(t, off)
	r.meet(ada)
	o := r.outbox()
	r.put(o, slotted(ada, "s", "…"))
	r.run(o.Run)
	until(t, "the message", func() bool { return len(r.chat(ada)) == 1 && r.size(outboxIndex) == 0 })
	r.fault(object{"method": "editMessageText", "times": 1, "delay_ms": 300}) // carried out only then
	o.Live("s", edit(ada, "s", "so far"))
	until(t, "the live edit's call", func() bool { return len(r.calls("editMessageText")) == 1 })
	r.put(o, edit(ada, "s", "the answer"))
	until(t, "both edits", func() bool { return r.size(outboxIndex) == 0 && r.chat(ada)[0].Edits == 2 })
	if got := r.chat(ada)[0].Text; got != "the answer" {
		t.Errorf("the older text arrived last: %q", got)
	}
}
