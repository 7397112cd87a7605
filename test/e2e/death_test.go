package e2e_test

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestGatewayKilledWhileACardIsOpen: kill -9 of the gateway, a restart, a tap, and the agent that waits on its host goes on.
func TestGatewayKilledWhileACardIsOpen(t *testing.T) {
	t.Parallel()
	w := newWorld(t, on{redis: true})
	host, gateway := w.start("host"), w.start("gateway")
	me := w.private(ada)
	prompt := me.say("run echo one >> ran\nsay it went on")
	card := me.card(prompt, "echo one >> ran")
	gateway.kill()
	gateway = w.start("gateway")
	if seen := me.tap(card.ID, "Allow"); seen.Text != "Allowed" {
		t.Errorf("the tap was answered with %q", seen.Text)
	}
	w.comes("ran", "one\n")
	me.decided(card, "Allowed by Ada")
	me.hears(card.ID, "it went on")
	me.ends(prompt, "Done in")
	gateway.stop()
	host.stop()
}

// TestTapWhileTheGatewayIsDown: a tap that Telegram still holds counts when a gateway is back.
func TestTapWhileTheGatewayIsDown(t *testing.T) {
	t.Parallel()
	w := newWorld(t, on{redis: true})
	w.start("host")
	gateway := w.start("gateway")
	me := w.private(ada)
	card := me.card(me.say("run echo one >> ran"), "echo one >> ran")
	gateway.kill()
	w.post("/sim/taps", map[string]any{"chat": ada, "from": ada, "message_id": card.ID, "button": "Allow", "wait": 0}, nil)
	w.start("gateway")
	w.comes("ran", "one\n")
	me.decided(card, "Allowed by Ada")
}

// TestHostKilledWhileACardIsOpen keeps the real pace: within 10 seconds the card says that the agent is gone and can't be
// tapped; who taps a card that has not been redrawn yet is told the truth.
func TestHostKilledWhileACardIsOpen(t *testing.T) {
	t.Parallel()
	w := newWorld(t, on{redis: true, real: true})
	host := w.start("host")
	w.start("gateway")
	me := w.private(ada)
	prompt := me.say("run echo one >> ran")
	card := me.card(prompt, "echo one >> ran")
	host.kill()
	killed := time.Now()
	closed := me.turns(card.ID, "The agent")
	if took := time.Since(killed); took > 10*time.Second {
		t.Errorf("the card said so after %s, more than 10 s", took)
	}
	if !strings.Contains(closed.Text, "nothing ran") || strings.Join(closed.labels(), " ") != "Resume" {
		t.Errorf("the card of a dead host says %q and has the buttons %q", closed.Text, closed.labels())
	}
	if status := w.try(http.MethodPost, "/sim/taps", map[string]any{"chat": ada, "from": ada, "message_id": card.ID, "button": "Allow"}, nil); status != http.StatusNotFound {
		t.Errorf("a tap on the closed card has status %d, want 404: there is no such button", status)
	}
	end := me.ends(prompt, "Interrupted after")
	if !end.has("Continue") {
		t.Errorf("the interrupted turn has the buttons %q, want Continue", end.labels())
	}
	w.holds("ran", "")
}

// TestOldCardOfADeadHost: a card that could not be redrawn still has its buttons; they decide nothing any more.
func TestOldCardOfADeadHost(t *testing.T) {
	t.Parallel()
	w := newWorld(t, on{redis: true})
	host := w.start("host")
	w.start("gateway")
	me := w.private(ada)
	prompt := me.say("run echo one >> ran")
	card := me.card(prompt, "echo one >> ran")
	w.fault(map[string]any{"method": "editMessageText", "times": -1, "status": 502})
	host.kill()
	soon(t, "the gateway closes the approval of the dead host", func() bool {
		return strings.Contains(w.audit("gateway"), `"source":"shutdown"`)
	})
	if seen := me.tap(card.ID, "Allow"); !strings.Contains(seen.Text, "nothing ran") && !strings.Contains(seen.Text, "Nothing ran") || !seen.Alert {
		t.Errorf("the old card's button says %+v, want that nothing ran", seen)
	}
	w.start("host")
	she := w.private(grace)
	she.tap(she.card(she.say("run echo hers > hers"), "hers").ID, "Allow")
	w.comes("hers", "hers\n") // the host is back, and has looked at what it was given
	w.holds("ran", "")
}

// TestRedisKilledAndRestarted: kill -9 of redis-server and its restart lose no prompt, no decision and no setting, and
// close no living card.
func TestRedisKilledAndRestarted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, on{redis: true})
	w.start("host")
	w.start("gateway")
	me, she := w.private(ada), w.private(grace)

	me.hears(me.say("/mode auto-accept-edits"), "The mode is now auto-accept-edits")
	she.hears(she.say("/project web"), "This chat now works in web")
	open := she.card(she.say("run echo hers > "+w.path("hers")+"\nsay hers went on"), "hers")
	prompt := me.say("run echo mine > mine")
	card := me.card(prompt, "echo mine > mine")
	queued := me.say("run echo queued > queued")
	me.hears(queued, "Queued")

	if seen := me.tap(card.ID, "Allow"); seen.Text != "Allowed" {
		t.Fatalf("the tap was answered with %q", seen.Text)
	}
	w.redis.Kill() // the decision was acknowledged, so it stands
	late := she.say("say came while the store was away")
	w.redis.Restart()

	w.comes("mine", "mine\n")
	me.decided(card, "Allowed by Ada")
	next := me.card(queued, "echo queued > queued")
	me.tap(next.ID, "Allow")
	w.comes("queued", "queued\n")

	if m := she.message(open.ID); !m.has("Allow") || strings.Contains(m.Text, "gone") {
		t.Errorf("the living card became %q with the buttons %q", m.Text, m.labels())
	}
	if seen := she.tap(open.ID, "Allow"); seen.Text != "Allowed" {
		t.Errorf("the tap on the card that survived was answered with %q", seen.Text)
	}
	w.comes("hers", "hers\n")
	she.hears(open.ID, "hers went on")
	she.hears(late, "came while the store was away")
	if m := me.hears(me.say("/mode"), "Mode of this chat: "); !strings.HasPrefix(m.Text, "Mode of this chat: auto-accept-edits") {
		t.Errorf("the mode was lost: %q", m.Text)
	}
}
