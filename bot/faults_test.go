package bot

import (
	"strings"
	"testing"
	"time"

	"drawbridge/approvals"
	"drawbridge/bridge"
	"drawbridge/internal/store"
	"drawbridge/runner"
)

// TestACardThatNobodySawIsShownAgain when somebody writes: a chat that had blocked the bot must not keep an agent waiting
// for an answer that nobody can give.
func TestACardThatNobodySawIsShownAgain(t *testing.T) {
	t.Parallel()
	k := newTalk(t, talkOptions{})
	k.say(ada, ada, "say hello")
	k.reads(ada, 0, "hello")
	k.idle()
	k.fault(object{"method": "sendMessage", "times": -1, "error_code": 403, "description": "Forbidden: bot was blocked by the user"})
	p := k.say(ada, ada, "run touch ran")
	k.open(ada)
	until(t, "the drop", func() bool { return k.size(droppedIndex) > 1 && k.size(outboxIndex) == 0 })
	k.sim("POST", "faults", object{"clear": true}, nil)
	k.say(ada, ada, "say are you there?")
	card := k.reads(ada, p, "Run this command?", "Run this command?\ntouch ran")
	k.tap(ada, ada, card.ID, "Allow")
	k.becomes(ada, card.ID, "Allowed by Ada")
	k.idle()
	if !k.exists("ran") {
		t.Error("what was allowed did not run")
	}
	if lines := strings.Join(k.tape.all(), "\n"); !strings.Contains(lines, "a card did not reach its chat") {
		t.Error("nothing was logged")
	}
}

// TestAFileThatWasDroppedCanBeShownAgain, or else nobody could ever allow it.
func TestAFileThatWasDroppedCanBeShownAgain(t *testing.T) {
	t.Parallel()
	k := newTalk(t, talkOptions{})
	card := k.reads(ada, k.say(ada, ada, "run echo "+strings.Repeat("x", 4050)), textTooLong)
	k.fault(object{"method": "sendDocument", "times": -1, "error_code": 400, "description": "Bad Request: file is broken"})
	k.tap(ada, ada, card.ID, textShowFirst)
	until(t, "the drop", func() bool { return k.size(droppedIndex) > 0 })
	k.sim("POST", "faults", object{"clear": true}, nil)
	if got := k.tap(ada, ada, card.ID, textShowFirst); got.Text != tapShown {
		t.Errorf("the second Show first was answered with %+v", got)
	}
	shown := k.reads(ada, card.ID, textWhole)
	k.tap(ada, ada, shown.ID, "Deny")
	k.becomes(ada, card.ID, "Denied by Ada")
	k.idle()
}

func TestCardsAreFoundByTheirSlots(t *testing.T) {
	t.Parallel()
	for _, host := range []string{"box", "box.local", "a:b"} {
		id := approvals.NewID(host)
		c := card{Posts: 12}
		if got, isFile, ok := cardOf(c.slot(id)); got != id || isFile || !ok {
			t.Errorf("%s is %q %v %v", c.slot(id), got, isFile, ok)
		}
		if got, isFile, ok := cardOf(c.fileSlot(id)); got != id || !isFile || !ok {
			t.Errorf("%s is %q %v %v", c.fileSlot(id), got, isFile, ok)
		}
	}
	for _, slot := range []string{"", "live:t.1", "card", "card:", "card:x"} {
		if id, _, ok := cardOf(slot); ok {
			t.Errorf("%q is the card %q", slot, id)
		}
	}
}

// TestWhatCannotBeShownIsSaid: an entry whose approval is damaged is set aside, the chat is told, and goes on.
func TestWhatCannotBeShownIsSaid(t *testing.T) {
	t.Parallel()
	k := newTalk(t, talkOptions{})
	k.say(ada, ada, "say hello")
	k.reads(ada, 0, "hello")
	k.idle()
	k.tape.mu.Lock()
	k.tape.tolerate = true // the line that a human has to look at
	k.tape.mu.Unlock()
	id := approvals.NewID("box")
	k.update(func(t *store.Txn) error {
		t.PutBytes(approvals.AskKey(id), []byte("{"))
		return nil
	})
	opened := runner.Event{Kind: runner.RequestOpened, Request: &runner.Request{ID: string(id)}}
	if err := bridge.NewLog(k.db, "box").Append(t.Context(), bridge.Entry{Chat: "1001", Event: opened}); err != nil {
		t.Fatal(err)
	}
	k.reads(ada, 0, textOmitted)
	k.reads(ada, k.say(ada, ada, "say it goes on"), "it goes on")
	k.idle()
}

func TestTheStoreWasAway(t *testing.T) {
	t.Parallel()
	k := newTalk(t, talkOptions{})
	k.reads(grace, k.say(grace, grace, "/mode auto-accept-edits"), textModeSet)
	p := k.say(ada, ada, "run touch ran")
	card := k.reads(ada, p, "Run this command?\ntouch ran")
	k.idleTaps()
	k.bot.tellOutage(t.Context(), 95*time.Second)
	k.reads(ada, p, "The store was away for 1 min 35 s. What you sent is kept. A question that the agent had in that time may have been refused.")
	k.tap(ada, ada, card.ID, "Deny")
	k.idle()
	for _, m := range k.rig.chat(grace) {
		if strings.Contains(m.Text, textOutage) {
			t.Error("a chat in which nothing ran was told")
		}
	}
}
