package e2e_test

import (
	"strings"
	"testing"
	"time"
)

// TestStoreAway: the store is gone for some seconds. When it is back the chat is told once, what was sent is run, what
// was asked meanwhile was not allowed, and nothing is half-done.
func TestStoreAway(t *testing.T) {
	t.Parallel()
	w := newWorld(t, on{redis: true})
	w.start("host")
	w.start("gateway")
	me, she := w.private(ada), w.private(grace)
	she.hears(she.say("/project web"), "This chat now works in web")
	living := she.card(she.say("run echo hers > hers"), "echo hers")
	prompt := me.say("run echo begun > begun; sleep 2; echo one >> ran\nrun echo asked > asked\nsay it went on")
	me.tap(me.card(prompt, "echo begun").ID, "Allow")
	w.comes("begun", "begun\n")

	w.redis.Kill()
	away := me.say("say sent meanwhile")
	<-time.After(5 * time.Second) // the length of the outage is what this test is about
	w.redis.Restart()

	me.hears(away, "The store was away for ")
	w.comes("ran", "one\n")
	// The ask that fell into the outage was refused, or is asked now; it was never allowed.
	end := me.expect(prompt, "the turn goes on", func(m message) bool {
		return m.has("Deny") && strings.Contains(m.Text, "echo asked") || m.ReplyTo == prompt && strings.HasPrefix(m.Text, "Done in")
	})
	if end.has("Deny") {
		me.tap(end.ID, "Deny")
	}
	me.ends(prompt, "Done in")
	me.ends(away, "sent meanwhile")
	w.holds("asked", "")
	w.holds("ran", "one\n")
	for s, chat := range map[seat]string{me: "the chat whose turn ran", she: "the chat with the open card"} {
		n := 0
		for _, m := range s.bots(0) {
			if strings.Contains(m.Text, "The store was away for ") {
				n++
			}
		}
		if n != 1 {
			t.Errorf("%s was told %d times, want once:\n%s", chat, n, s.transcript())
		}
	}
	if seen := she.tap(living.ID, "Allow"); seen.Text != "Allowed" {
		t.Errorf("the card that lived through it was answered with %q", seen.Text)
	}
	w.comes("../web/hers", "hers\n")
}
