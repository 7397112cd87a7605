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
	k.reads(ada, p, textSessionsLook)
	k.reads(ada, p, "The runtime script does not list its sessions.")

	k.update(func(tx *store.Txn) error {
		return k.bot.errandDone(tx, ChatRef{ID: ada}, bridge.ErrandResult{Kind: bridge.ErrandSessions, Runtime: "script", Sessions: []runner.SessionInfo{
			{Token: "one", Title: "fix the \u202eparser", Used: time.Unix(1_790_000_000, 0), Busy: true, Command: "agent --resume one", Last: []runner.SessionLine{
				{Text: "fix the parser"}, {Agent: true, Text: "It is fixed."},
			}},
			{Token: "two"},
		}})
	})
	list := k.reads(ada, p, textSessions, "1. fix the ⟨U+202E⟩parser", textSessionBusy, "2. "+textSessionUntold)
	k.tap(ada, ada, list.ID, list.labels()[0])
	one := k.reads(ada, list.ID, textSessionYou+"fix the parser", textSessionAgent+"It is fixed.", textSessionInUse)
	if !one.has(textSessionCopy) {
		t.Errorf("buttons %q", one.labels())
	}
	k.tap(ada, ada, one.ID, textSessionHere)
	k.reads(ada, one.ID, textSessionTaken)
	if c := k.record(ChatRef{ID: ada}); c.Resume != "one" || c.Session == "" {
		t.Errorf("the chat goes on with %q in %q", c.Resume, c.Session)
	}

	k.update(func(tx *store.Txn) error {
		return k.bot.errandDone(tx, ChatRef{ID: ada}, bridge.ErrandResult{Kind: bridge.ErrandSessions})
	})
	k.reads(ada, one.ID, textSessionsNone)
}
