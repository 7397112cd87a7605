package bot

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"drawbridge/approvals"
	"drawbridge/bridge"
	"drawbridge/formatting"
	"drawbridge/internal/store"
	"drawbridge/policy"
	"drawbridge/runner"

	"github.com/go-telegram/bot/models"
)

// notice is what whoever tapped sees.
type notice struct {
	text  string
	alert bool // to be closed by hand, for what must not be overlooked
}

// tap is a button that was tapped. What it causes is committed first; then the tap is acknowledged, on a lane of its own.
func (b *Bot) tap(t *store.Txn, d *Delivery, q *models.CallbackQuery) error {
	n, err := b.tapped(t, d, q)
	if err != nil {
		return err
	}
	id := q.ID
	d.After(func(context.Context) { b.cfg.Acker.Answer(id, firstPart(n.text, 190), n.alert) })
	return nil
}

func (b *Bot) tapped(t *store.Txn, d *Delivery, q *models.CallbackQuery) (notice, error) {
	role, err := b.cfg.People.Role(t, q.From.ID)
	if err != nil {
		return notice{}, err
	}
	enabled, err := b.cfg.People.enabled(t, d.Chat)
	if err != nil {
		return notice{}, err
	}
	switch {
	case role == approvals.Viewer:
		return notice{tapViewer, true}, nil
	case !role.CanTap():
		return notice{tapNobody, true}, nil
	case !enabled:
		return notice{tapGroupOff, true}, nil
	}
	s := author{Person: approvals.Person{ID: q.From.ID, Name: personName(&q.From), Role: role}, chat: d.Chat}
	if m := q.Message.Message; m != nil {
		s.tapped = m.ID
	}
	if turn, ok := strings.CutPrefix(q.Data, doStop+":"); ok {
		return b.stopTap(t, s, turn)
	}
	c, ok, err := b.meant(t, d.Chat, q.Data)
	if err != nil {
		return notice{}, err
	}
	if !ok {
		return notice{tapStale, false}, nil
	}
	return b.chosen(t, s, c, q)
}

// chosen carries a choice out. The arity of c.Args was fixed when the button was made.
func (b *Bot) chosen(t *store.Txn, s author, c choice, q *models.CallbackQuery) (notice, error) {
	arg := func(i int) string {
		if i < len(c.Args) {
			return c.Args[i]
		}
		return ""
	}
	switch c.Do {
	case doDecide:
		if arg(1) == runner.ActionImplementMode && arg(2) != sure {
			if asked, err := b.confirmPlan(t, s, arg(0)); err != nil || asked {
				return notice{text: tapPlanConfirm}, err
			}
		}
		return b.decideTap(t, s, approvals.Tap{ID: approvals.ID(arg(0)), Action: arg(1), Token: q.ID})
	case doAnswer:
		return b.answerTap(t, s, approvals.ID(arg(0)), arg(1), arg(2), q.ID)
	case doPicked:
		return b.answerTap(t, s, approvals.ID(arg(0)), arg(1), "", q.ID)
	case doEdited:
		return b.editedTap(t, s, approvals.ID(arg(0)), arg(1), q.ID)
	case doShow:
		return b.showTap(t, s, approvals.ID(arg(0)))
	case doContinue:
		b.spend(t, q.Data) // a turn is continued once, however often the button is tapped
		return b.continueTap(t, s, arg(0))
	case doTryAgain:
		b.spend(t, q.Data)
		return b.tryAgainTap(t, s, arg(0), arg(1))
	case doUnqueue:
		return b.unqueueTap(t, s, arg(0), arg(1) != "")
	case doMode:
		return b.modeTap(t, s, arg(0))
	case doFull:
		return b.fullTap(t, s, c.Args, q.ID)
	case doKeep:
		return notice{text: textFullKept}, b.respond(t, s, formatting.Message{Text: textFullKept})
	case doKeepPlan:
		return notice{text: textPlanBackDone}, b.respond(t, s, formatting.Message{Text: textPlanBackDone})
	case doSession:
		return b.sessionTap(t, s.chat, arg(0), arg(1))
	case doAdopt:
		return b.adoptTap(t, s.chat, arg(0), arg(1))
	case doProject:
		return notice{text: tapDone}, b.chooseProject(t, s, arg(0))
	case doRuntime:
		return notice{text: tapDone}, b.chooseRuntime(t, s, arg(0))
	case doWhy:
		return b.whyTap(t, s, arg(0), arg(1))
	case doModel:
		return b.modelTap(t, s, arg(0), func() error { return b.chooseModel(t, s, arg(1)) })
	case doEffort:
		return b.modelTap(t, s, arg(0), func() error { return b.chooseEffort(t, s, cmp.Or(arg(1), wordOwn)) })
	case doSchedules:
		return notice{text: tapDone}, b.showSchedules(t, s)
	case doSchedule, doScheduleRun, doSchedulePause, doScheduleGo, doScheduleDrop:
		return b.scheduleTap(t, s, c.Do, arg(0))
	case doTasks, doTask, doTaskApprove, doTaskReject, doTaskRerun, doTaskHand, doTaskCancel, doTaskMode, doTaskExec, doTaskSkip, doTaskDrop:
		return b.taskTap(t, s, c)
	case doJobsStop, doJobsCancel:
		return b.jobsTap(t, s, c.Do, arg(0))
	case doExecution, doAsks:
		if !s.Role.IsOwner() {
			return notice{textOwnersOnly, true}, nil
		}
		if c.Do == doAsks {
			return notice{text: tapDone}, b.asksCommand(t, s, arg(0))
		}
		return notice{text: tapDone}, b.execution(t, s, arg(0))
	case doRevoke:
		return b.revokeTap(t, s, arg(0), arg(1))
	}
	return notice{tapStale, false}, nil
}

func (b *Bot) stopTap(t *store.Txn, s author, turn string) (notice, error) {
	c, err := b.cfg.Chats.Get(t, s.chat.Key())
	if err != nil {
		return notice{}, err
	}
	if c.Active == nil || c.Active.Turn != turn {
		live, _, err := SentAs(t, liveSlot(turn))
		if err != nil || s.tapped == 0 || live.MessageID == s.tapped {
			return notice{text: textNothingRuns}, err
		}
		// A copy of the live message, sent twice by a lost response: nobody else would ever change it.
		return notice{text: textNothingRuns}, b.cfg.Outbox.Put(t, Outgoing{Chat: s.chat, Kind: KindButtons, MessageID: s.tapped})
	}
	done, err := b.stop(t, s.chat, time.Time{}, false)
	return notice{text: stoppedWords(done)}, err
}

// decideTap makes the one decision, or says what stands.
func (b *Bot) decideTap(t *store.Txn, s author, tap approvals.Tap) (notice, error) {
	tap.Chat, tap.Person = s.chat.Key(), s.Person
	if err := b.adopt(t, s, tap.ID); err != nil {
		return notice{}, err
	}
	o, err := b.cfg.Approvals.DecideIn(t, tap)
	return decided(o), err
}

// decided is what whoever tried to decide is told.
func decided(o approvals.Outcome) notice {
	q := o.Record.Question
	switch {
	case o.Won && q.Kind == runner.KindProposal:
		return notice{cardOutcome(q, approvals.Standing(o.Record, o.Decision)), o.Decision.Source != runner.SourceUser}
	case o.Won && o.Decision.Decision != runner.Allowed && q.Kind == runner.KindQuestion:
		return notice{text: tapNotAnswered}
	case o.Won && o.Decision.Decision != runner.Allowed && usual(o.Decision.Action):
		return notice{text: tapDenied}
	case o.Won && q.Kind == runner.KindQuestion:
		return notice{text: textAnswered}
	case o.Won && usual(o.Decision.Action):
		return notice{text: tapAllowed}
	case o.Won:
		return notice{text: actionLabel(q, o.Decision.Action)}
	case o.Decision != nil:
		return notice{cardOutcome(q, approvals.Standing(o.Record, o.Decision)), true}
	case o.Refused != "" && q.Terminal != "":
		return notice{terminalRefusal(o.Refused), true}
	case o.Refused != "":
		return notice{refusal(o.Refused), true}
	}
	return notice{text: tapNext} // an answer of several
}

// adopt notes the message that a tap came from, if it is not known where the card stands: it may have been sent without
// its number having been stored, in a crash. If it is known and this is another message, this is a copy, which nobody
// would ever change: its buttons go.
func (b *Bot) adopt(t *store.Txn, s author, id approvals.ID) error {
	c, ok, err := store.Get[card](t, cardKey(id))
	if err != nil || !ok || s.tapped == 0 || c.Chat != s.chat.Key() {
		return err
	}
	for posting := 1; posting < c.Posts; posting++ {
		old, _, err := SentAs(t, slotOf(id, posting))
		if err != nil || old.MessageID == s.tapped {
			return err // the card stands again further down, whether that has arrived there or not
		}
	}
	sent, known, err := SentAs(t, c.slot(id))
	if err != nil {
		return err
	}
	file, shown, err := SentAs(t, c.fileSlot(id))
	switch {
	case err != nil || known && sent.MessageID == s.tapped || shown && file.MessageID == s.tapped || c.Shown && !shown:
		return err
	case known:
		return b.cfg.Outbox.Put(t, Outgoing{Chat: s.chat, Kind: KindButtons, MessageID: s.tapped})
	}
	_, err = b.cfg.Outbox.Adopt(t, c.slot(id), s.chat, s.tapped)
	return err
}

func (b *Bot) showTap(t *store.Txn, s author, id approvals.ID) (notice, error) {
	if err := b.adopt(t, s, id); err != nil {
		return notice{}, err
	}
	r, stand, ok, err := b.stands(t, s.chat, id)
	switch {
	case err != nil:
		return notice{}, err
	case !ok:
		return notice{tapStale, false}, nil
	case stand.Word != approvals.StandsOpen:
		return notice{cardOutcome(r.Question, stand), true}, nil
	}
	sent, err := b.showCard(t, r)
	if err != nil || sent {
		return notice{text: tapShown}, err
	}
	return notice{text: tapShownTwice}, nil
}

// continueTap hands the interrupted turn's successor over. It counts as written right after the latest stop: Telegram's
// clock, by which prompts and stops are ordered, says nothing of taps.
func (b *Bot) continueTap(t *store.Txn, s author, turn string) (notice, error) {
	c, err := b.cfg.Chats.Get(t, s.chat.Key())
	if err != nil {
		return notice{}, err
	}
	p := bridge.Prompt{
		ID: "c:" + strings.TrimPrefix(turn, "t."), Text: textContinuePrompt, By: strconv.FormatInt(s.ID, 10), Name: s.Name,
		At: c.Stopped.Add(time.Nanosecond), Resume: true,
	}
	if s.tapped != 0 {
		if err := b.cfg.Outbox.Put(t, Outgoing{Chat: s.chat, Kind: KindButtons, MessageID: s.tapped}); err != nil {
			return notice{}, err
		}
	}
	return notice{text: textContinued}, b.enqueue(t, s.chat, s.tapped, p)
}

// unqueueTap takes a waiting prompt back. listed says that the button stood in a list, which is shown without it then.
func (b *Bot) unqueueTap(t *store.Txn, s author, prompt string, listed bool) (notice, error) {
	c, err := b.cfg.Chats.Get(t, s.chat.Key())
	if err != nil {
		return notice{}, err
	}
	ok, err := b.cfg.Chats.Unqueue(t, s.chat.Key(), prompt)
	if err != nil {
		return notice{}, err
	}
	n := notice{text: textTakenBack}
	if !ok {
		n = notice{textTooLate, true}
	}
	for _, p := range c.Queue {
		if p.ID != prompt {
			continue
		}
		if err := b.closeQueued(t, s.chat, p, textTakenBack); err != nil {
			return notice{}, err
		}
	}
	switch {
	case listed:
		return n, b.showQueue(t, s)
	case !ok && s.tapped != 0:
		return n, b.cfg.Outbox.Put(t, Outgoing{Chat: s.chat, Kind: KindButtons, MessageID: s.tapped})
	}
	return n, nil
}

func (b *Bot) modeTap(t *store.Txn, s author, mode string) (notice, error) {
	m, err := policy.ParseMode(mode)
	if err != nil {
		return notice{tapStale, false}, nil //nolint:nilerr // an older version's button
	}
	c, err := b.cfg.Chats.Get(t, s.chat.Key())
	if err != nil {
		return notice{}, err
	}
	text := tapDone
	switch {
	case m == c.Mode:
		return notice{text: textModeSame + string(m)}, nil
	case m == policy.FullAccess:
		text = tapConfirm
	}
	return notice{text: text}, b.chooseMode(t, s, c, m)
}

func (b *Bot) fullTap(t *store.Txn, s author, ids []string, token string) (notice, error) {
	allowed, err := b.useFull(t, s, ids, token)
	if err != nil {
		return notice{}, err
	}
	_, a, err := b.chatAgent(t, s)
	if err != nil {
		return notice{}, err
	}
	var m formatting.Builder
	modeIsSet(&m, policy.FullAccess, a)
	if len(ids) > 0 {
		m.Text("\n" + allowedWords(allowed, len(ids)))
	}
	return notice{text: tapDone}, b.respond(t, s, m.Message())
}

func (b *Bot) revokeTap(t *store.Txn, s author, host, grant string) (notice, error) {
	ok, err := b.cfg.Approvals.RevokeIn(t, host, s.chat.Key(), grant)
	if err != nil {
		return notice{}, err
	}
	n := notice{text: textGrantGone}
	if !ok {
		n = notice{textGrantNot, false}
	}
	if s.tapped == 0 {
		return n, nil
	}
	// The list was true when it was asked for; without its buttons nothing in it can be mistaken.
	if err := b.cfg.Outbox.Put(t, Outgoing{Chat: s.chat, Kind: KindButtons, MessageID: s.tapped}); err != nil {
		return n, err
	}
	return n, b.say(t, s.chat, s.tapped, n.text+" "+textGrantsAgain)
}

// replyToCard is a reply to an open card: the answer to a question, or a denial with a reason. It never allows anything.
// It reports whether m was such a reply.
func (b *Bot) replyToCard(t *store.Txn, d *Delivery, s author, m *models.Message) (bool, error) {
	if m.ReplyToMessage.From == nil || m.ReplyToMessage.From.ID != b.cfg.API.ID() {
		return false, nil
	}
	open, err := b.cfg.Approvals.Pending(t.Context(), s.chat.Key())
	if err != nil {
		return false, err
	}
	named, err := b.names(t, s.chat, m.ReplyToMessage, doDecide, doShow, doAnswer, doPicked)
	if err != nil {
		return false, err
	}
	for _, r := range open {
		if slices.Contains(named, string(r.ID)) {
			at := s
			at.tapped = m.ReplyToMessage.ID
			if err := b.adopt(t, at, r.ID); err != nil {
				return false, err
			}
			return true, b.replied(t, d, s, r, m)
		}
		c, _, err := store.Get[card](t, cardKey(r.ID))
		if err != nil {
			return false, err
		}
		for posting := c.Posts; posting > 0; posting-- { // the older ones are still there to be replied to
			for _, slot := range []string{slotOf(r.ID, posting), slotOf(r.ID, posting) + fileSuffix} {
				sent, ok, err := SentAs(t, slot)
				if err != nil {
					return false, err
				}
				if ok && sent.MessageID == m.ReplyToMessage.ID {
					return true, b.replied(t, d, s, r, m)
				}
			}
		}
	}
	return false, nil
}

// names returns what the buttons under a message of ours are about, of those that do one of do: whoever answers a card at
// once may be faster than the commit that stores the number of its message, and a crash may lose the number for good.
func (b *Bot) names(t *store.Txn, chat ChatRef, m *models.Message, do ...string) ([]string, error) {
	if m.ReplyMarkup == nil {
		return nil, nil
	}
	var about []string
	for _, row := range m.ReplyMarkup.InlineKeyboard {
		for _, button := range row {
			c, ok, err := b.meant(t, chat, button.CallbackData)
			if err != nil {
				return nil, err
			}
			if ok && len(c.Args) > 0 && slices.Contains(do, c.Do) {
				about = append(about, c.Args[0])
			}
		}
	}
	return about, nil
}

func (b *Bot) replied(t *store.Txn, d *Delivery, s author, r approvals.Record, m *models.Message) error {
	words, token := m.Text, "m"+ref(m)
	switch {
	case !s.Role.CanTap():
		return b.say(t, s.chat, s.message, textViewer)
	case r.Question.Kind == runner.KindQuestion:
		return b.answerReply(t, s, r, words, token)
	case r.Question.Kind == runner.KindPlan && words == "":
		return b.editedReply(t, d, s, r, m)
	}
	if action, ok := replyAction(r); ok {
		o, err := b.cfg.Approvals.DecideIn(t, approvals.Tap{
			ID: r.ID, Chat: s.chat.Key(), Person: s.Person, Action: action, Reason: words, Token: token,
		})
		if err != nil || o.Won {
			return err // the turn that follows speaks for itself
		}
		return b.say(t, s.chat, s.message, decided(o).text)
	}
	word, reason := words, ""
	if i := strings.IndexFunc(words, unicode.IsSpace); i >= 0 {
		word, reason = words[:i], strings.TrimSpace(words[i:])
	}
	if !strings.EqualFold(strings.Trim(word, ".,:;!"), "deny") {
		return b.say(t, s.chat, s.message, textReplyHelp)
	}
	o, err := b.cfg.Approvals.DecideIn(t, approvals.Tap{
		ID: r.ID, Chat: s.chat.Key(), Person: s.Person, Action: denial(r), Reason: reason, Token: token,
	})
	switch {
	case err != nil:
		return err
	case o.Won && reason != "":
		return b.say(t, s.chat, s.message, textDenied)
	}
	return b.say(t, s.chat, s.message, decided(o).text)
}

// denial is the action of a record that refuses.
func denial(r approvals.Record) string {
	for _, a := range r.Actions() {
		if !a.Allows && !a.Reply {
			return a.ID
		}
	}
	return runner.ActionDeny
}
