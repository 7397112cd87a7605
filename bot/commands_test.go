package bot

import (
	"testing"
)

func TestSmoke(t *testing.T) {
	t.Parallel()
	k := newTalk(t, talkOptions{})
	p := k.say(ada, ada, "run touch one\nsay it went on")
	card := k.reads(ada, p, "Run this command?")
	if seen := k.tap(ada, ada, card.ID, "Allow"); seen.Text != "Allowed" {
		t.Error(seen)
	}
	k.becomes(ada, card.ID, "Allowed by Ada")
	k.reads(ada, card.ID, "it went on")
	k.idle()
	if !k.exists("one") {
		t.Error("not run")
	}
	for _, m := range k.rig.chat(ada) {
		t.Log(m.Text)
	}
}
