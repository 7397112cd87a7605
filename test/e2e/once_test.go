package e2e_test

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestTwoPeopleTwoGatewaysOneDecision: two people tap Allow and Deny at the same time, their taps enter through two
// gateways, twenty times over. One decides; the other is told who decided what; the command runs if and only if it was
// allowed. The same a thousand times at Decide itself is in approvals.
func TestTwoPeopleTwoGatewaysOneDecision(t *testing.T) {
	t.Parallel()
	const rounds = 20
	w := newWorld(t, on{redis: true, env: map[string]string{"DRAWBRIDGE_PACE": "4"}})
	door := newDoor(t, w, 2)
	w.start("host")
	for i := range 2 {
		w.env["DRAWBRIDGE_WEBHOOK_LISTEN"] = door.behind[i]
		w.start("gateway", fmt.Sprint(i))
	}
	me, she := w.in(group, ada), w.in(group, grace)
	me.hears(me.say("/enable"), "This group is enabled")
	var commands []string
	for i := range rounds {
		commands = append(commands, fmt.Sprintf("echo %02d > ran-%02d", i, i))
	}
	prompt := me.say("together " + strings.Join(commands, " || "))
	allowed := map[int]bool{}
	for i := range rounds {
		card := me.card(prompt, commands[i])
		labels := [2]string{"Allow", "Deny"}
		if i%2 == 1 {
			labels = [2]string{"Deny", "Allow"}
		}
		var seen [2]tapped
		var both sync.WaitGroup
		for k, s := range []seat{me, she} {
			both.Go(func() { seen[k] = s.tap(card.ID, labels[k]) })
		}
		both.Wait()
		names := [2]string{"Ada", "Grace"}
		words := map[string]string{"Allow": "Allowed", "Deny": "Denied"}
		won := 0
		if seen[1].Text == words[labels[1]] {
			won = 1
		}
		if seen[won].Text != words[labels[won]] || seen[won].Alert {
			t.Errorf("round %d: nobody won: %+v", i, seen)
		}
		if want := words[labels[won]] + " by " + names[won]; !strings.HasPrefix(seen[1-won].Text, want) || !seen[1-won].Alert {
			t.Errorf("round %d: the one who came second was told %+v, want that it was %s", i, seen[1-won], want)
		}
		allowed[i] = labels[won] == "Allow"
	}
	me.ends(prompt, "Done in")
	for i := range rounds {
		_, err := os.Stat(w.path(fmt.Sprintf("ran-%02d", i)))
		if ran := err == nil; ran != allowed[i] {
			t.Errorf("round %d: allowed %v, ran %v", i, allowed[i], ran)
		}
	}
	for i, n := range door.passed() {
		if n < rounds/2 {
			t.Errorf("only %d updates entered through gateway %d", n, i)
		}
	}
}

// TestRedeliveredUpdatesActOnce: Telegram delivers updates again whose receipt it did not hear of.
func TestRedeliveredUpdatesActOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, on{})
	w.start("serve")
	me := w.private(ada)
	w.fault(map[string]any{"method": "getUpdates", "times": 4, "lose_response": true})
	prompt := me.say("run echo one >> ran")
	card := me.card(prompt, "echo one")
	w.fault(map[string]any{"method": "getUpdates", "times": 2, "lose_response": true})
	me.tap(card.ID, "Allow")
	me.ends(prompt, "Done in")
	w.holds("ran", "one\n")
	if got := len(w.model.Requests()); got != 2 {
		t.Errorf("the model was asked %d times, want 2: before and after the command", got)
	}
}

// TestLostAnswersOfTelegram: what was sent may have arrived although no answer came. It is sent again, and the work is
// done once.
func TestLostAnswersOfTelegram(t *testing.T) {
	t.Parallel()
	w := newWorld(t, on{})
	w.start("serve")
	me := w.private(ada)
	w.fault(map[string]any{"method": "sendMessage", "times": 3, "lose_response": true})
	prompt := me.say("run echo one >> ran")
	card := me.card(prompt, "echo one")
	me.tap(card.ID, "Allow")
	w.fault(map[string]any{"method": "answerCallbackQuery", "times": 1, "lose_response": true})
	w.fault(map[string]any{"method": "editMessageText", "times": 2, "lose_response": true})
	w.comes("ran", "one\n")
	me.ends(prompt, "Done in")
	me.decided(card, "Allowed by Ada")
	w.holds("ran", "one\n")
}

// TestTelegramRefusesForAWhile: floods and errors of Telegram delay what is said and lose nothing of it; each answer is
// said once, in order.
func TestTelegramRefusesForAWhile(t *testing.T) {
	t.Parallel()
	w := newWorld(t, on{})
	w.start("serve")
	me := w.private(ada)
	w.fault(map[string]any{"method": "sendMessage", "times": 3, "retry_after": 1})
	w.fault(map[string]any{"method": "sendMessage", "times": 3, "status": 502})
	w.fault(map[string]any{"method": "editMessageText", "times": 3, "retry_after": 1})
	w.fault(map[string]any{"method": "getUpdates", "times": 3, "status": 500})
	prompts := map[int64]string{}
	for _, text := range []string{"first answer", "second answer", "third answer"} {
		prompts[me.say("say "+text)] = text
	}
	last := int64(0)
	for id, text := range prompts {
		me.ends(id, text)
		last = max(last, id)
	}
	me.ends(last, "Done in")
	var order []string
	for _, m := range me.bots(0) {
		if text := prompts[m.ReplyTo]; text != "" && m.Text == text {
			order = append(order, text)
		}
	}
	if got := strings.Join(order, ", "); got != "first answer, second answer, third answer" {
		t.Errorf("the answers are: %s", got)
	}
}

// TestPromptWhileEverythingIsDown: what Telegram holds is run when the program is back, once.
func TestPromptWhileEverythingIsDown(t *testing.T) {
	t.Parallel()
	w := newWorld(t, on{})
	me := w.private(ada)
	first := me.say("run echo first >> ran") // before it was ever started
	serve := w.start("serve")
	me.tap(me.card(first, "echo first").ID, "Allow")
	me.ends(first, "Done in")
	serve.stop()
	second := me.say("run echo second >> ran")
	serve = w.start("serve")
	me.tap(me.card(second, "echo second").ID, "Allow")
	me.ends(second, "Done in")
	w.holds("ran", "first\nsecond\n")
	serve.stop()
}

// TestAnotherGatewayTakesOver: of two gateways one speaks to Telegram, and the other takes its place within seconds when
// it is killed. Never do both poll for longer than a moment.
func TestAnotherGatewayTakesOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t, on{redis: true, real: true})
	w.start("host")
	first := w.start("gateway", "0")
	first.logs("lease taken")
	second := w.start("gateway", "1")
	me := w.private(ada)
	prompt := me.say("run echo one >> ran")
	card := me.card(prompt, "echo one")
	if strings.Contains(second.log.String(), "lease taken") {
		t.Error("the second gateway acts although the first one lives")
	}
	first.kill()
	killed := time.Now()
	second.logs("lease taken")
	if took := time.Since(killed); took > 8*time.Second {
		t.Errorf("the second gateway took over after %s", took)
	}
	me.tap(card.ID, "Allow")
	me.ends(prompt, "Done in")
	w.holds("ran", "one\n")

	// The first one comes back, and waits.
	w.start("gateway", "0")
	me.ends(me.say("say once more"), "once more")
	second.stop() // gives the lease back
	me.ends(me.say("say and again"), "and again")
	conflicts := 0
	for _, c := range w.calls("getUpdates") {
		if c.ErrorCode == 409 {
			conflicts++
		}
	}
	if conflicts > 2 {
		t.Errorf("two gateways polled at the same time %d times", conflicts)
	}
}

// TestUpdateIDsAfterAQuietWeek: after a week without updates Telegram's ids start anywhere, also below those before.
func TestUpdateIDsAfterAQuietWeek(t *testing.T) {
	t.Parallel()
	w := newWorld(t, on{})
	serve := w.start("serve")
	me := w.private(ada)
	for i := range 4 {
		text := fmt.Sprintf("week %d", i)
		me.ends(me.say("say "+text), text)
		w.post("/sim/clock", map[string]any{"advance_ms": (8 * 24 * time.Hour).Milliseconds()}, nil)
		if i == 2 {
			serve.stop()
			serve = w.start("serve")
		}
	}
	if got := len(w.model.Requests()); got != 4 {
		t.Errorf("the model was asked %d times, want 4", got)
	}
}
