package bot

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"drawbridge/internal/store"
	"drawbridge/policy"
	"drawbridge/runner"
	"drawbridge/runner/runnertest"
)

func TestATapLetsTheAgentGoOn(t *testing.T) {
	t.Parallel()
	k := newTalk(t, talkOptions{})
	p := k.say(ada, ada, "say first words\nrun touch one\nrun touch two\nsay it went on")
	card := k.reads(ada, p, "Run this command?", "Run this command?\ntouch one")
	if card.Text == "" || k.exists("one") {
		t.Error("it ran before anybody allowed it")
	}
	if got := k.tap(ada, ada, card.ID, "Allow"); got.Text != tapAllowed || got.Alert {
		t.Errorf("the tap was answered with %+v", got)
	}
	k.becomes(ada, card.ID, "Allowed by Ada\n", "Decided")
	second := k.reads(ada, card.ID, "Run this command?", "Run this command?\ntouch two")
	if got := k.tap(ada, ada, second.ID, "Deny"); got.Text != tapDenied {
		t.Errorf("the tap was answered with %+v", got)
	}
	k.becomes(ada, second.ID, "Denied by Ada\n")
	k.reads(ada, p, "it went on")
	k.idle()
	if !k.exists("one") || k.exists("two") {
		t.Errorf("one ran: %v, two ran: %v", k.exists("one"), k.exists("two"))
	}
}

// TestTwoPeopleOneDecision: of two who tap, one decides, and the other is told who decided what.
func TestTwoPeopleOneDecision(t *testing.T) {
	t.Parallel()
	k := newTalk(t, talkOptions{})
	k.enable(group)
	for range 5 {
		p := k.say(group, ada, "run echo once >> ran")
		card := k.reads(group, p, "echo once")
		var got [2]tapped
		var both sync.WaitGroup
		both.Go(func() { got[0] = k.tap(group, ada, card.ID, "Allow") })
		both.Go(func() { got[1] = k.tap(group, grace, card.ID, "Deny") })
		both.Wait()
		late := [2]string{"Denied by Grace", "Allowed by Ada"} // what Ada is told, and Grace, when the other one was first
		own := [2]string{tapAllowed, tapDenied}
		switch {
		case got[0].Text == own[0] && strings.HasPrefix(got[1].Text, late[1]) && got[1].Alert:
			k.becomes(group, card.ID, late[1])
		case got[1].Text == own[1] && strings.HasPrefix(got[0].Text, late[0]) && got[0].Alert:
			k.becomes(group, card.ID, late[0])
		default:
			t.Fatalf("Ada was told %+v, Grace %+v", got[0], got[1])
		}
		k.idle()
	}
}

// redelivered is a tap whose buttons are not there any more: a client that has not seen the change.
func (k *talk) redelivered(chat, from int64, message int, data string) notice {
	k.t.Helper()
	var n notice
	k.update(func(t *store.Txn) error {
		var err error
		n, err = k.bot.tapped(t, &Delivery{Chat: ChatRef{ID: chat}}, query(chat, from, message, data))
		return err
	})
	return n
}

func TestOldButtonsTellTheTruth(t *testing.T) {
	t.Parallel()
	k := newTalk(t, talkOptions{})
	p := k.say(ada, ada, "run touch one\nrun touch two")
	card := k.reads(ada, p, "Run this command?\ntouch one")
	allow := k.data(ada, card.ID, "Allow")
	k.tap(ada, ada, card.ID, "Deny")
	k.becomes(ada, card.ID, "Denied by Ada")
	if n := k.redelivered(ada, grace, card.ID, allow); n.text != "Denied by Ada" || !n.alert {
		t.Errorf("a tap on a decided card was answered with %+v", n)
	}
	second := k.reads(ada, card.ID, "Run this command?\ntouch two")
	allow = k.data(ada, second.ID, "Allow")
	for _, n := range []notice{
		k.redelivered(grace, ada, second.ID, allow), // from another chat
		k.redelivered(ada, ada, second.ID, "AAAAAAAAAAAAAAAAAAAAAAAAAA:0"),
		k.redelivered(ada, ada, second.ID, allow+"9"),
		k.redelivered(ada, ada, second.ID, "allow"),
		k.redelivered(ada, ada, second.ID, strings.Repeat("x", 65)),
	} {
		if n.text != tapStale {
			t.Errorf("a button that is none was answered with %+v", n)
		}
	}
	// The old posting points to the new one; its buttons still mean the same approval.
	k.say(ada, ada, "/pending")
	moved := k.becomes(ada, second.ID, textMoved)
	again := k.reads(ada, moved.ID, "Run this command?", "Run this command?\ntouch two")
	if !again.has("Allow") {
		t.Errorf("the card that was posted again has the buttons %q", again.labels())
	}
	if n := k.redelivered(ada, ada, second.ID, allow); n.text != tapAllowed {
		t.Errorf("a tap on the old posting was answered with %+v", n)
	}
	k.becomes(ada, again.ID, "Allowed by Ada")
	k.idle()
	if k.exists("one") || !k.exists("two") {
		t.Error("not what was decided was done")
	}
}

func TestRepliesToCards(t *testing.T) {
	t.Parallel()
	k := newTalk(t, talkOptions{})
	p := k.say(ada, ada, "run touch one\nrun touch two\nrun touch three")
	card := k.reads(ada, p, "Run this command?\ntouch one")
	for _, words := range []string{"yes", "Allow", "ok, do it", "/allow"} {
		if strings.HasPrefix(words, "/") {
			k.reads(ada, k.reply(ada, ada, card.ID, words), textUnknownWord)
			continue
		}
		k.reads(ada, k.reply(ada, ada, card.ID, words), textReplyHelp)
	}
	k.reads(ada, k.reply(ada, ada, card.ID, "Deny:\nuse the Makefile"), textDenied)
	k.becomes(ada, card.ID, "Denied by Ada")
	second := k.reads(ada, card.ID, "Run this command?", "Run this command?\ntouch two")
	k.say(ada, ada, "/pending")
	k.becomes(ada, second.ID, textMoved)
	k.reads(ada, k.reply(ada, ada, second.ID, "deny"), tapDenied) // a reply to the old posting
	third := k.reads(ada, second.ID, "Run this command?", "Run this command?\ntouch three")
	k.tap(ada, ada, third.ID, "Allow")
	k.idle()
	all := strings.Join(texts(k.rig.chat(ada)), "\n")
	if k.exists("one") || k.exists("two") || !k.exists("three") || !strings.Contains(all, "Reason: use the Makefile") {
		t.Errorf("the replies did not do what they said:\n%s", all)
	}
}

// TestAReplyFindsItsCardWithoutTheNumberOfItsMessage: somebody may answer before the number is stored, and a crash may lose
// it; the reply is an answer all the same and not a prompt, and the card is changed where it stands.
func TestAReplyFindsItsCardWithoutTheNumberOfItsMessage(t *testing.T) {
	t.Parallel()
	k := newTalk(t, talkOptions{})
	card := k.reads(ada, k.say(ada, ada, "run touch one"), "Run this command?\ntouch one")
	until(t, "the number is stored and forgotten", func() (forgot bool) {
		err := store.Update(t.Context(), k.db, func(t *store.Txn) error {
			forgot = false
			known, err := t.Range(messagesIndex, -store.MaxScore, store.MaxScore, 0)
			if err != nil {
				return err
			}
			for _, m := range known {
				sent, ok, err := SentAs(t, m.Member)
				if err != nil {
					return err
				}
				if ok && sent.MessageID == card.ID {
					t.Delete(messageKey(m.Member))
					forgot = true
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return forgot
	})
	k.reads(ada, k.reply(ada, ada, card.ID, "deny not here"), textDenied)
	k.becomes(ada, card.ID, "Denied by Ada")
	k.idle()
	if k.exists("one") {
		t.Error("what was denied was done")
	}
}

// TestShowFirst: what is too long for a message can be allowed only below a file that shows every byte of it.
func TestShowFirst(t *testing.T) {
	t.Parallel()
	long := "echo '" + strings.Repeat("line \u202e\u200b ⟨U+0041⟩\n", 300) + "' > ran; : the end"
	k := newTalk(t, talkOptions{turn: func(ctx context.Context, s *runnertest.Scripted, _ runner.Input) (runner.Result, error) {
		s.Run(long)
		s.Run(long)
		return runner.Result{Outcome: runner.Completed}, ctx.Err()
	}})
	p := k.say(ada, ada, "go")
	card := k.reads(ada, p, "Run this command?", textTooLong, "characters, 301 lines", "the end")
	if card.has("Allow") || !card.has(textShowFirst) || !card.has("Deny") {
		t.Fatalf("a card that does not show all has the buttons %q", card.labels())
	}
	if got := k.tap(ada, ada, card.ID, textShowFirst); got.Text != tapShown {
		t.Errorf("Show first was answered with %+v", got)
	}
	shown := k.reads(ada, card.ID, textWhole, textDocumentHas, "301 lines")
	if !shown.has("Allow") || shown.ReplyTo != card.ID || shown.Document == nil {
		t.Fatalf("the file has the buttons %q and answers %d", shown.labels(), shown.ReplyTo)
	}
	want := "echo '" + strings.Repeat("line ⟨U+202E⟩⟨U+200B⟩ ⟨U+27E8⟩U+0041⟨U+27E9⟩\n", 300) + "' > ran; : the end"
	if got := k.content(ada, shown.ID); got != want {
		t.Errorf("the file holds %d bytes, want %d:\n%.200s", len(got), len(want), got)
	}
	if got := k.tap(ada, ada, card.ID, textShowFirst); got.Text != tapShownTwice {
		t.Errorf("the second Show first was answered with %+v", got)
	}
	// Posted again, it has to be shown again, and the old file allows nothing any more on the screen.
	k.say(ada, ada, "/pending")
	k.becomes(ada, card.ID, textMoved)
	k.becomes(ada, shown.ID, textWhole)
	again := k.reads(ada, shown.ID, "Run this command?", textTooLong)
	if again.has("Allow") {
		t.Errorf("the card that was posted again has the buttons %q", again.labels())
	}
	k.tap(ada, ada, again.ID, textShowFirst)
	file := k.reads(ada, again.ID, textWhole)
	k.tap(ada, ada, file.ID, "Allow")
	k.becomes(ada, again.ID, "Allowed by Ada")
	k.becomes(ada, file.ID, textWhole)
	second := k.reads(ada, file.ID, "Run this command?", textTooLong)
	k.reads(ada, k.reply(ada, ada, second.ID, "deny enough"), textDenied)
	k.becomes(ada, second.ID, "Denied by Ada")
	k.idle()
	if !k.exists("ran") {
		t.Error("what was allowed did not run")
	}
}

// TestAFileTooLargeForTheOutboxIsMadeWhenItIsSent.
func TestAFileTooLargeForTheOutboxIsMadeWhenItIsSent(t *testing.T) {
	t.Parallel()
	long := "true " + strings.Repeat("\u200b", maxInline/3) + " end"
	k := newTalk(t, talkOptions{turn: func(ctx context.Context, s *runnertest.Scripted, _ runner.Input) (runner.Result, error) {
		s.Run(long)
		return runner.Result{Outcome: runner.Completed}, ctx.Err()
	}})
	card := k.reads(ada, k.say(ada, ada, "go"), textTooLong)
	k.tap(ada, ada, card.ID, textShowFirst)
	shown := k.reads(ada, card.ID, textWhole)
	if got, want := k.content(ada, shown.ID), "true "+strings.Repeat("⟨U+200B⟩", maxInline/3)+" end"; got != want {
		t.Errorf("the file holds %d bytes, want %d", len(got), len(want))
	}
	k.tap(ada, ada, shown.ID, "Deny")
	k.becomes(ada, card.ID, "Denied by Ada")
	k.idle()
}

func TestSilenceIsADenial(t *testing.T) {
	t.Parallel()
	k := newTalk(t, talkOptions{deadline: 300 * time.Millisecond})
	p := k.say(ada, ada, "run touch ran\nsay went on")
	card := k.reads(ada, p, "Run this command?\ntouch ran")
	k.becomes(ada, card.ID, "Nobody answered in time: denied")
	k.reads(ada, p, "went on")
	k.idle()
	if k.exists("ran") {
		t.Error("what nobody allowed ran")
	}
}

func TestGrants(t *testing.T) {
	t.Parallel()
	k := newTalk(t, talkOptions{})
	k.enable(group)
	p := k.say(group, grace, "run go test\nrun go test")
	card := k.reads(group, p, "go test", "without asking again, commands that begin with go test")
	if got := k.tap(group, grace, card.ID, "Allow for this project"); !strings.Contains(got.Text, "Only an owner") || !got.Alert {
		t.Errorf("an operator's grant for the project was answered with %+v", got)
	}
	k.tap(group, grace, card.ID, "Allow for this session")
	k.becomes(group, card.ID, "Allowed by Grace, for this session")
	k.reads(group, p, "Done in") // the second one was not asked
	list := k.reads(group, k.say(group, ada, "/grants"), "commands that begin with go test", "for the session, by Grace")
	k.tap(group, ada, list.ID, "Remove 1")
	k.reads(group, list.ID, textGrantGone)
	k.becomes(group, list.ID, textGrants)
	again := k.reads(group, k.say(group, ada, "run go test"), "Run this command?")
	k.tap(group, ada, again.ID, "Allow for this project")
	k.becomes(group, again.ID, "Allowed by Ada, for this project")
	k.idle()
	k.reads(group, k.say(group, ada, "/new"), textNewDone)
	p = k.say(group, ada, "run go test\nsay went on")
	k.reads(group, p, "went on")
	k.none(group, p, "Run this command?")
}

// TestAChangeOfModeAnswersNothing, unless the second button of the confirmation says so, and then only what it lists.
func TestAChangeOfModeAnswersNothing(t *testing.T) {
	t.Parallel()
	k := newTalk(t, talkOptions{})
	p := k.say(ada, ada, "together touch one || git push origin main\nrun touch later\nsay went on")
	card := k.reads(ada, p, "Run this command?\ntouch one")
	push := k.reads(ada, p, "git push", "It can use the network and publish")
	k.reads(ada, k.say(ada, ada, "/mode auto-accept-edits"), textModeWaiting+"2 questions")
	first := k.reads(ada, k.say(ada, ada, "/mode full-access"), textFullTitle, "It still asks about secrets, credentials, payments and publishing", textFullList, "touch one")
	if strings.Contains(first.Text, "git push") {
		t.Errorf("what is human-only is listed:\n%s", first.Text)
	}
	k.tap(ada, ada, first.ID, "Keep auto-accept-edits")
	k.becomes(ada, first.ID, textFullKept)
	menu := k.reads(ada, k.say(ada, ada, "/mode"), textModeAsk)
	if got := k.tap(ada, ada, menu.ID, "full-access"); got.Text != tapConfirm {
		t.Errorf("the tap on full-access was answered with %+v", got)
	}
	k.idleTaps()
	if got := k.record(ChatRef{ID: ada}); got.Mode != policy.AutoAcceptEdits || !k.message(ada, card.ID).has("Allow") {
		t.Errorf("one tap was enough for %s", got.Mode)
	}
	k.tap(ada, ada, menu.ID, "Use full-access and allow this one")
	k.becomes(ada, menu.ID, textModeSet+"full-access", "1 question allowed with it.")
	k.becomes(ada, card.ID, "Allowed by Ada")
	if m := k.message(ada, push.ID); !m.has("Allow") {
		t.Errorf("the human-only card became %q", m.Text)
	}
	k.tap(ada, ada, push.ID, "Deny")
	k.reads(ada, p, "went on")
	k.idle()
	if !k.exists("one") || !k.exists("later") {
		t.Error("not all of what full-access allows was done")
	}
}

// idleTaps waits until all updates are handled and all is sent, while a turn goes on.
func (k *talk) idleTaps() {
	k.t.Helper()
	until(k.t, "all updates", func() bool { return k.size(inboxIndex) == 0 && k.size(outboxIndex) == 0 })
}

// TestOnlyWhatWasListedIsAllowed: what is asked after the confirmation was shown is not allowed with it.
func TestOnlyWhatWasListedIsAllowed(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	k := newTalk(t, talkOptions{turn: func(ctx context.Context, s *runnertest.Scripted, _ runner.Input) (runner.Result, error) {
		var both sync.WaitGroup
		both.Go(func() { s.Run("touch listed") })
		both.Go(func() {
			select {
			case <-release:
				s.Run("touch unlisted")
			case <-ctx.Done():
			}
		})
		both.Wait()
		return runner.Result{Outcome: runner.Completed}, ctx.Err()
	}})
	p := k.say(ada, ada, "go")
	k.reads(ada, p, "Run this command?\ntouch listed")
	confirm := k.reads(ada, k.say(ada, ada, "/mode full-access"), textFullList, "touch listed")
	close(release)
	late := k.reads(ada, p, "Run this command?", "Run this command?\ntouch unlisted")
	k.tap(ada, ada, confirm.ID, "Use full-access and allow this one")
	until(t, "the listed one", func() bool { return k.exists("listed") })
	if m := k.message(ada, late.ID); !m.has("Allow") || k.exists("unlisted") {
		t.Errorf("the card that was not listed became %q", m.Text)
	}
	k.tap(ada, ada, late.ID, "Deny")
	k.becomes(ada, late.ID, "Denied by Ada")
	k.idle()
}

// TestADeadHostsCardSaysSo, and what it was doing can be continued once it is back, by one tap, once.
func TestADeadHostsCardSaysSo(t *testing.T) {
	t.Parallel()
	k := newTalk(t, talkOptions{})
	p := k.say(ada, ada, "run touch ran")
	card := k.reads(ada, p, "Run this command?\ntouch ran")
	allow := k.data(ada, card.ID, "Allow")
	k.stopHost()
	k.becomes(ada, card.ID, "nothing ran")
	if n := k.redelivered(ada, ada, card.ID, allow); n.text == tapAllowed || k.exists("ran") {
		t.Errorf("a tap on a dead card was answered with %+v", n)
	}
	end := k.reads(ada, p, "Interrupted after")
	if !end.has(textContinue) {
		t.Fatalf("the end of the turn has the buttons %q", end.labels())
	}
	again := k.data(ada, end.ID, textContinue)
	k.options.turn = nil
	k.host(talkOptions{})
	if got := k.tap(ada, ada, end.ID, textContinue); got.Text != textContinued {
		t.Errorf("Continue was answered with %+v", got)
	}
	k.reads(ada, end.ID, textContinuePrompt)
	k.idle()
	if n := k.redelivered(ada, ada, end.ID, again); n.text != tapStale {
		t.Errorf("the second Continue was answered with %+v", n)
	}
	k.idle()
	n := 0
	for _, m := range k.rig.chat(ada) {
		n += strings.Count(m.Text, textContinuePrompt)
	}
	if n != 1 || k.exists("ran") {
		t.Errorf("the turn was continued %d times", n)
	}
	if open, err := k.approvals.Pending(t.Context(), "1001"); err != nil || len(open) != 0 {
		t.Errorf("%d approvals are still open (%v)", len(open), err)
	}
}

// TestStopOfACopyOfALiveMessage: Telegram's response to the first live message was lost, so it was sent twice. The copy says
// that nothing runs once it is tapped, and keeps no button; the other one keeps its own.
func TestStopOfACopyOfALiveMessage(t *testing.T) {
	t.Parallel()
	k := newTalk(t, talkOptions{})
	k.sim("POST", "faults", object{"method": "sendMessage", "times": 1, "lose_response": true}, nil)
	p := k.say(ada, ada, "run touch one\nfail on purpose")
	k.tap(ada, ada, k.reads(ada, p, "Run this command?").ID, "Deny") // the live message is out by then
	k.reads(ada, p, "Failed after")
	k.idle()
	var copies []seen
	for _, m := range k.rig.chat(ada) {
		if m.ID > p && m.has(textStop) {
			copies = append(copies, m)
		}
	}
	if len(copies) != 1 {
		t.Fatalf("%d copies have a Stop button", len(copies))
	}
	if n := k.tap(ada, ada, copies[0].ID, textStop); n.Text != textNothingRuns {
		t.Errorf("the tap says %q", n.Text)
	}
	k.becomes(ada, copies[0].ID, textWorking)
	if m := k.reads(ada, p, "Failed after"); !m.has(textContinue) {
		t.Errorf("the turn's end has the buttons %q", m.labels())
	}
}
