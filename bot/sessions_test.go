package bot

import (
	"testing"
	"time"

	"drawbridge/bridge"
	"drawbridge/internal/store"
	"drawbridge/runner"
)

// TestSessionsAreListedShownAndContinued: a session is recognised by its last words before it is continued.
func TestSessionsAreListedShownAndContinued(t *testing.T) {
	t.Parallel()
	k := newTalk(t, talkOptions{})
	p := k.say(ada, ada, "/sessions")
	k.reads(ada, p, "The runtime script does not list its sessions.")
	k.none(ada, p, textSessionsLook) // one message says both, one after the other

	k.update(func(tx *store.Txn) error {
		return k.bot.errandDone(tx, ChatRef{ID: ada}, bridge.ErrandResult{Kind: bridge.ErrandSessions, Runtime: "script", Sessions: []runner.SessionInfo{
			{Token: "one", Title: "fix the \u202eparser", Used: time.Unix(1_790_000_000, 0), Busy: true, Command: "agent --resume one", Last: []runner.SessionLine{
				{Text: "fix the parser"}, {Agent: true, Text: "It is **fixed**.\n\n- all of it"},
			}},
			{Token: "two"},
		}})
	})
	list := k.reads(ada, p, textSessions, "1. fix the ⟨U+202E⟩parser", textSessionBusy, "2. "+textSessionUntold)
	k.tap(ada, ada, list.ID, list.labels()[0])
	one := k.reads(ada, list.ID, textSessionYou+"fix the parser", textSessionAgent+"It is fixed.\n\n• all of it", textSessionInUse)
	if !one.has(textSessionCopy) {
		t.Errorf("buttons %q", one.labels())
	}
	k.tap(ada, ada, one.ID, textSessionHere)
	k.reads(ada, one.ID, textSessionTaken)
	if c := k.record(ChatRef{ID: ada}); c.Resume != "one" || c.Session == "" {
		t.Errorf("the chat goes on with %q in %q", c.Resume, c.Session)
	}

	session := k.record(ChatRef{ID: ada}).Session
	if n := k.tap(ada, ada, one.ID, textSessionHere); n.Text != textSessionIsHere || k.record(ChatRef{ID: ada}).Session != session {
		t.Errorf("the second tap says %q, and the chat is in another session", n.Text)
	}
	n, err := func() (n notice, err error) {
		k.update(func(tx *store.Txn) error {
			n, err = k.bot.sessionTap(tx, ChatRef{ID: ada}, "script", `{"Token":"one","token":"one","Busy":true}`)
			return err
		})
		return n, err
	}()
	if err != nil {
		t.Fatal(n, err)
	}
	if m := k.reads(ada, one.ID, textSessionIsHere); m.has(textSessionHere) {
		t.Errorf("the chat's own session has the buttons %q", m.labels())
	}

	k.update(func(tx *store.Txn) error {
		return k.bot.errandDone(tx, ChatRef{ID: ada}, bridge.ErrandResult{Kind: bridge.ErrandSessions})
	})
	k.reads(ada, p, textSessionsNone)
}
