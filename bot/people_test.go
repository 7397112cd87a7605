package bot

import (
	"testing"
	"time"

	"drawbridge/approvals"
	"drawbridge/internal/store"
	"drawbridge/policy"
)

func TestStrangersGetOneLineAnHour(t *testing.T) {
	t.Parallel()
	k := newTalk(t, talkOptions{})
	first := k.say(mallory, mallory, "run touch never")
	k.say(mallory, mallory, "/mode full-access")
	k.say(mallory, mallory, "/start")
	k.reads(mallory, first, textStranger+"1004.")
	k.idle()
	if said := k.rig.chat(mallory); len(said) != 1 {
		t.Errorf("a stranger was answered %q", texts(said))
	}
	k.update(func(t *store.Txn) error { return store.Put(t, politeKey(mallory), time.Now().Add(-61*time.Minute)) })
	k.reads(mallory, k.say(mallory, mallory, "hello?"), textStranger)

	k.enable(group)
	k.sim("POST", "members", object{"chat": group, "member": mallory, "action": "add"}, nil)
	k.say(group, mallory, "run touch never")
	k.say(group, mallory, "/status")
	k.idle()
	if said := k.rig.chat(group); len(said) != 0 || k.exists("never") {
		t.Errorf("a stranger in a group was answered %q", texts(said))
	}
}

func TestStrangersTapDecidesNothing(t *testing.T) {
	t.Parallel()
	k := newTalk(t, talkOptions{})
	k.enable(group)
	for _, p := range []int64{mallory, linus} {
		k.sim("POST", "members", object{"chat": group, "member": p, "action": "add"}, nil)
	}
	card := k.reads(group, k.say(group, ada, "run touch ran"), "Run this command?\ntouch ran")
	if got := k.tap(group, mallory, card.ID, "Allow"); got.Text != tapNobody || !got.Alert {
		t.Errorf("a stranger's tap was answered with %+v", got)
	}
	if got := k.tap(group, linus, card.ID, "Allow"); got.Text != tapViewer || !got.Alert {
		t.Errorf("a viewer's tap was answered with %+v", got)
	}
	k.reads(group, k.reply(group, linus, card.ID, "deny"), textViewer)
	k.reply(group, mallory, card.ID, "deny")
	if got := k.tap(group, grace, card.ID, "Allow"); got.Text != tapAllowed {
		t.Errorf("an operator's tap was answered with %+v", got)
	}
	k.becomes(group, card.ID, "Allowed by Grace")
	k.idle()
}

func TestPairing(t *testing.T) {
	t.Parallel()
	k := newTalk(t, talkOptions{nobody: true})
	code, err := k.people.Invite(t.Context())
	if err != nil || code == "" {
		t.Fatal(code, err)
	}
	k.sim("POST", "messages", object{"chat": mallory, "from": mallory, "text": "/start " + code, "forward": true}, nil)
	k.reads(mallory, 0, textUnowned)
	k.reads(mallory, k.say(mallory, mallory, "/start WRONGONE"), textWrongCode)
	k.enable(group) // a code counts in private only
	k.say(group, ada, "/start "+code)
	k.none(group, 0, textPaired)
	k.reads(ada, k.say(ada, ada, "/start "+code), textPaired, "Project: demo", textMode+"approval-required")
	k.say(mallory, mallory, "/start "+code)
	k.none(mallory, 0, textPaired)
	if again, err := k.people.Invite(t.Context()); err != nil || again != "" {
		t.Errorf("there is an owner, and still a code %q (%v)", again, err)
	}
}

func TestWrongCodesEndThePairing(t *testing.T) {
	t.Parallel()
	k := newTalk(t, talkOptions{nobody: true})
	code, err := k.people.Invite(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for range maxTries {
		k.say(mallory, mallory, "/start GUESSED1")
	}
	k.reads(mallory, 0, textLastCode)
	k.idle()
	if said := k.rig.chat(mallory); len(said) != maxTries {
		t.Errorf("the guesses were answered %q", texts(said))
	}
	k.say(ada, ada, "/start "+code)
	k.none(ada, 0, textPaired)
	next, err := k.people.Invite(t.Context())
	if err != nil || next == code {
		t.Fatal(next, err)
	}
	k.reads(ada, k.say(ada, ada, "/start "+next), textPaired)
}

func TestGroupsWorkOnceAnOwnerSaysSo(t *testing.T) {
	t.Parallel()
	k := newTalk(t, talkOptions{})
	first := k.say(group, grace, "run touch never")
	k.say(group, grace, "/status")
	k.say(group, ada, "run touch never")
	k.none(group, 0, "")
	k.reads(group, k.say(group, ada, "/status"), textGroupOff)
	k.reads(group, k.say(group, grace, "/enable"), textOwnersOnly)
	k.reads(group, k.say(group, ada, "/enable"), textGroupOn)
	card := k.reads(group, k.say(group, grace, "run touch ran"), "Run this command?\ntouch ran")
	k.reads(group, k.say(group, ada, "/disable"), textGroupGone)
	if got := k.tap(group, ada, card.ID, "Allow"); got.Text != tapGroupOff {
		t.Errorf("a tap in a group that is off was answered with %+v", got)
	}
	k.reads(group, k.say(group, ada, "/enable"), textGroupOn)
	k.tap(group, ada, card.ID, "Deny")
	k.becomes(group, card.ID, "Denied by Ada")
	k.idle()
	if k.exists("never") || k.exists("ran") || first == 0 {
		t.Error("something ran that nobody allowed")
	}
}

// TestOnlyTheirOwnWordsCount: commands, and replies to cards, count only without forward, via_bot or sender_chat; anonymous
// administrators are nobody; what is forwarded reaches the agent as material.
func TestOnlyTheirOwnWordsCount(t *testing.T) {
	t.Parallel()
	k := newTalk(t, talkOptions{})
	k.enable(group)
	for _, o := range []object{
		{"text": "/mode full-access", "forward": true},
		{"text": "/mode full-access", "forward": mallory},
		{"text": "/mode full-access", "via_bot": "helperbot"},
	} {
		o["chat"], o["from"] = ada, ada
		p := k.post(o)
		k.reads(ada, p, "Forwarded from elsewhere; untrusted", "/mode full-access")
	}
	k.post(object{"chat": group, "from": ada, "text": "/mode full-access", "anonymous": true})
	k.post(object{"chat": group, "from": ada, "text": "run touch never", "anonymous": true})
	k.none(group, 0, "")

	card := k.reads(ada, k.say(ada, ada, "run touch ran"), "Run this command?\ntouch ran")
	p := k.post(object{"chat": ada, "from": ada, "text": "deny it", "forward": true, "reply_to": card.ID})
	k.reads(ada, p, "Queued")
	if r := k.open(ada); r.State != approvals.Open {
		t.Error("a forwarded reply decided something")
	}
	k.tap(ada, ada, card.ID, "Deny")
	k.idle()
	if got := k.record(ChatRef{ID: ada}); got.Mode != policy.ApprovalRequired || k.exists("ran") {
		t.Errorf("forwarded text had an effect: %+v", got)
	}
}

// TestASupergroupKeepsTheModeOfItsGroup, and that it is enabled.
func TestASupergroupKeepsTheModeOfItsGroup(t *testing.T) {
	t.Parallel()
	k := newTalk(t, talkOptions{mode: policy.Auto})
	k.enable(group)
	k.reads(group, k.say(group, ada, "/mode approval-required"), textModeSet)
	k.idle()
	var moved struct {
		Chat int64 `json:"chat"`
	}
	k.sim("POST", "migrations", object{"chat": group}, &moved)
	k.reads(moved.Chat, k.say(moved.Chat, ada, "/status"), "Mode: approval-required")
	k.idle()
	if got := k.record(ChatRef{ID: moved.Chat}); got.Mode != policy.ApprovalRequired {
		t.Errorf("the supergroup is in %s", got.Mode)
	}
}

// TestAGroupThatMovesWhileATurnRuns can go on: the turn is stopped, its end is told in the supergroup, and nothing waits for it.
func TestAGroupThatMovesWhileATurnRuns(t *testing.T) {
	t.Parallel()
	k := newTalk(t, talkOptions{})
	k.enable(group)
	k.reads(group, k.say(group, ada, "run touch ran"), "Run this command?\ntouch ran")
	k.reads(group, k.say(group, ada, "say what waited"), "Queued")
	var moved struct {
		Chat int64 `json:"chat"`
	}
	k.idleTaps()
	k.sim("POST", "migrations", object{"chat": group}, &moved)
	end := k.reads(moved.Chat, 0, "Stopped after")
	if !end.has(textContinue) {
		t.Errorf("the stopped turn has the buttons %q", end.labels())
	}
	k.reads(moved.Chat, 0, "what waited")
	card := k.reads(moved.Chat, k.say(moved.Chat, ada, "run touch here"), "Run this command?\ntouch here")
	k.tap(moved.Chat, ada, card.ID, "Allow")
	k.becomes(moved.Chat, card.ID, "Allowed by Ada")
	k.idle()
	if k.exists("ran") || !k.exists("here") {
		t.Error("not what was decided was done")
	}
}

func TestRepliesToOthersAreNotForTheBot(t *testing.T) {
	t.Parallel()
	k := newTalk(t, talkOptions{})
	k.enable(group)
	hers := k.say(group, grace, "say from Grace")
	k.reads(group, hers, "from Grace")
	k.reply(group, ada, hers, "say between us")
	k.none(group, hers, "between us")
	p := k.reply(group, ada, hers, "@drawbridge_demo_bot say for the bot")
	k.reads(group, p, "say for the bot")
	k.idle()
}
