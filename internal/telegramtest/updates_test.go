package telegramtest_test

import (
	"testing"
	"time"

	"drawbridge/internal/telegramtest"
)

func ids(updates []update) []int64 {
	out := []int64{}
	for _, u := range updates {
		out = append(out, u.UpdateID)
	}
	return out
}

func TestUpdatesComeAgainUntilConfirmed(t *testing.T) {
	t.Parallel()
	w := started(t)
	for _, text := range []string{"one", "two", "three"} {
		w.say(ada, ada, text)
	}
	first := w.updates(fields{})
	if len(first) != 3 || first[1].UpdateID != first[0].UpdateID+1 || first[2].UpdateID != first[0].UpdateID+2 {
		t.Fatalf("updates %v are not three in sequence", ids(first))
	}
	if again := w.updates(fields{"offset": first[0].UpdateID}); len(again) != 3 {
		t.Errorf("an offset that confirms nothing left %v", ids(again))
	}
	if limited := w.updates(fields{"limit": 1}); len(limited) != 1 || limited[0].UpdateID != first[0].UpdateID {
		t.Errorf("limit 1: %v", ids(limited))
	}
	if rest := w.updates(fields{"offset": first[1].UpdateID + 1}); len(rest) != 1 || rest[0].UpdateID != first[2].UpdateID {
		t.Errorf("after confirming two: %v", ids(rest))
	}
	if rest := w.updates(fields{}); len(rest) != 1 {
		t.Errorf("what was confirmed came back: %v", ids(rest))
	}
	if none := w.updates(fields{"offset": first[2].UpdateID + 1}); len(none) != 0 {
		t.Errorf("after confirming all: %v", ids(none))
	}
}

func TestNegativeOffsetForgetsAllButTheLast(t *testing.T) {
	t.Parallel()
	w := started(t)
	for range 3 {
		w.say(ada, ada, "x")
	}
	all := w.updates(fields{})
	if last := w.updates(fields{"offset": -1}); len(last) != 1 || last[0].UpdateID != all[2].UpdateID {
		t.Errorf("offset -1: %v of %v", ids(last), ids(all))
	}
	if left := w.updates(fields{}); len(left) != 1 {
		t.Errorf("kept %v", ids(left))
	}
}

func TestUpdatesAreKeptForADay(t *testing.T) {
	t.Parallel()
	w := started(t)
	w.say(ada, ada, "old")
	w.advance(24*time.Hour - time.Second)
	w.say(ada, ada, "young")
	if got := w.updates(fields{}); len(got) != 2 {
		t.Errorf("before a day has passed: %v", ids(got))
	}
	w.advance(time.Second)
	if got := w.updates(fields{}); len(got) != 1 || got[0].Message.Text != "young" {
		t.Errorf("after a day: %v", ids(got))
	}
}

// After a quiet week ids start anywhere, also below the offset that the client has in hand, which must not swallow them.
func TestUpdateIDsJumpAfterAQuietWeek(t *testing.T) {
	t.Parallel()
	w := started(t)
	lower := false
	for range 20 {
		w.say(ada, ada, "before")
		before := w.drain()
		offset := before[0].UpdateID + 1
		w.advance(7*24*time.Hour - time.Second)
		w.say(ada, ada, "still in sequence")
		if got := w.drain(); got[0].UpdateID != offset {
			t.Fatalf("id %d after six days, want %d", got[0].UpdateID, offset)
		}
		w.advance(7 * 24 * time.Hour)
		w.say(ada, ada, "after")
		got := w.updates(fields{"offset": offset + 1})
		if len(got) != 1 || got[0].UpdateID == offset+1 {
			t.Fatalf("after a week: %v with offset %d", ids(got), offset+1)
		}
		lower = lower || got[0].UpdateID < offset
		w.updates(fields{"offset": got[0].UpdateID + 1})
	}
	if !lower {
		t.Error("no sequence of twenty began below the one before")
	}
}

func TestAllowedUpdatesAreRemembered(t *testing.T) {
	t.Parallel()
	w := started(t)
	happen := func() []string {
		id := w.say(ada, ada, "a message")
		w.post("edits", fields{"chat": ada, "from": ada, "message_id": id, "text": "an edited message"})
		w.post("reactions", fields{"chat": ada, "from": ada, "message_id": id, "emoji": "👍"})
		var kinds []string
		for _, u := range w.drain() {
			for k := range u.Raw {
				if k != "update_id" {
					kinds = append(kinds, k)
				}
			}
		}
		return kinds
	}
	check := func(name string, want ...string) {
		t.Helper()
		got := happen()
		if len(got) != len(want) {
			t.Errorf("%s: %v, want %v", name, got, want)
			return
		}
		for i := range got {
			if got[i] != want[i] {
				t.Errorf("%s: %v, want %v", name, got, want)
			}
		}
	}
	check("by default", "message", "edited_message")
	w.updates(fields{"allowed_updates": []string{"message_reaction", "edited_message"}})
	check("as set", "edited_message", "message_reaction")
	w.updates(fields{})
	check("as set, after a call without the parameter", "edited_message", "message_reaction")
	w.updates(fields{"allowed_updates": []string{}})
	check("reset by an empty list", "message", "edited_message")
	w.refused(400, "Bad Request: can't parse allowed_updates JSON object", "getUpdates", fields{"allowed_updates": "message"})
}

func TestOlderPollLosesToTheNewer(t *testing.T) {
	t.Parallel()
	w := started(t)
	polls := func() bool { return decode[struct{ Polling bool }](t, w.get("bot")).Polling }
	older := async(func() answer { return w.call("getUpdates", fields{"timeout": 40}) })
	w.until(polls)
	newer := async(func() answer { return w.call("getUpdates", fields{"timeout": 40}) })
	a := <-older
	if a.OK || a.status != 409 || a.Description != "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running" {
		t.Errorf("the older poll: %d %q", a.status, a.Description)
	}
	w.say(ada, ada, "for the newer one")
	if got := decode[[]update](t, (<-newer).Result); len(got) != 1 {
		t.Errorf("the newer poll got %v", ids(got))
	}
	w.until(func() bool { return !polls() })
}

func TestPollEndsWithItsClient(t *testing.T) {
	t.Parallel()
	w := started(t)
	polls := func() bool { return decode[struct{ Polling bool }](t, w.get("bot")).Polling }
	gone := *w
	stop := gone.cancellable()
	ended := async(func() error {
		_, err := gone.do("getUpdates", fields{"timeout": 40})
		return err
	})
	w.until(polls)
	stop()
	if err := <-ended; err == nil {
		t.Error("a cancelled poll has an answer")
	}
	w.until(func() bool { return !polls() })
	w.say(ada, ada, "not lost")
	if got := w.updates(fields{}); len(got) != 1 {
		t.Errorf("after the poll was cut: %v", ids(got))
	}
}

func TestPollWaitsAndTimesOut(t *testing.T) {
	t.Parallel()
	w := started(t)
	if got := w.updates(fields{"timeout": 1}); len(got) != 0 {
		t.Errorf("got %v", ids(got))
	}
}

func TestPrivacyHidesGroupMessages(t *testing.T) {
	t.Parallel()
	w := newWorld(t, telegramtest.Config{Bot: telegramtest.Bot{Privacy: true}, Rates: telegramtest.Rates{Off: true}})
	mine := w.send(fields{"chat_id": group, "text": "hello"})
	w.say(group, ada, "hidden")
	w.say(group, ada, "/seen")
	w.say(group, ada, "seen @Drawbridge_demo_bot")
	w.post("messages", fields{"chat": group, "from": ada, "text": "seen as a reply", "reply_to": mine.MessageID})
	w.say(forum, ada, "seen: the bot is an administrator here")
	var texts []string
	for _, u := range w.drain() {
		texts = append(texts, u.Message.Text)
	}
	if len(texts) != 4 || texts[0] != "/seen" {
		t.Errorf("seen: %q", texts)
	}
}
