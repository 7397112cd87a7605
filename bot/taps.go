package bot

import (
	"context"
	"strconv"
	"strings"
	"time"

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
	if !role.CanTap() || !enabled {
		return notice{tapNobody, true}, nil
	}
	s := author{Person: approvals.Person{ID: q.From.ID, Name: personName(&q.From), Role: role}, chat: d.Chat}
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
	message := 0
	if q.Message.Message != nil {
		message = q.Message.Message.ID
	}
	return b.chosen(t, s, c, q.ID, message)
}

// chosen carries a choice out. The arity of c.Args was fixed when the button was made.
func (b *Bot) chosen(t *store.Txn, s author, c choice, token string, message int) (notice, error) {
	arg := func(i int) string {
		if i < len(c.Args) {
			return c.Args[i]
		}
		return ""
	}
	switch c.Do {
	case doDecide:
		return b.decideTap(t, s, approvals.Tap{ID: approvals.ID(arg(0)), Action: arg(1), Token: token}, message)
	case doAnswer:
		return b.decideTap(t, s, approvals.Tap{ID: approvals.ID(arg(0)), Answers: map[string][]string{arg(1): {arg(2)}}, Token: token}, message)
	case doShow:
		return b.showTap(t, s, approvals.ID(arg(0)))
	case doContinue:
		return b.continueTap(t, s, arg(0), message)
	case doUnqueue:
		return b.unqueueTap(t, s, arg(0), message)
	case doMode:
		return b.modeTap(t, s, arg(0), message)
	case doFull:
		return b.fullTap(t, s, c.Args, token, message)
	case doKeep:
		return notice{text: textFullKept}, b.rewrite(t, s.chat, message, formatting.Message{Text: textFullKept})
	case doProject:
		return notice{text: tapDone}, b.chooseProject(t, s.chat, 0, arg(0))
	case doRuntime:
		return notice{text: tapDone}, b.chooseRuntime(t, s.chat, 0, arg(0))
	case doRevoke:
		return b.revokeTap(t, s, arg(0), arg(1))
	}
	return notice{tapStale, false}, nil
}

// rewrite replaces a message that was tapped, and takes its buttons away.
func (b *Bot) rewrite(t *store.Txn, chat ChatRef, message int, m formatting.Message) error {
	if message == 0 {
		return nil
	}
	return b.cfg.Outbox.Put(t, Outgoing{Chat: chat, Kind: KindEdit, MessageID: message, Text: m.Text, Entities: m.Entities})
}

func (b *Bot) stopTap(t *store.Txn, s author, turn string) (notice, error) {
	c, err := b.cfg.Chats.Get(t, s.chat.Key())
	if err != nil {
		return notice{}, err
	}
	if c.Active == nil || c.Active.Turn != turn {
		return notice{text: textNothingRuns}, nil
	}
	done, err := b.cfg.Chats.Stop(t, s.chat.Key(), time.Time{}, false)
	return notice{text: stoppedWords(done)}, err
}

// decideTap makes the one decision, or says what stands. The card's message may have been sent without its number having
// been stored, in a crash: the tap names it.
func (b *Bot) decideTap(t *store.Txn, s author, tap approvals.Tap, message int) (notice, error) {
	tap.Chat, tap.Person = s.chat.Key(), s.Person
	if err := b.adopt(t, s.chat, tap.ID, message); err != nil {
		return notice{}, err
	}
	o, err := b.cfg.Approvals.DecideIn(t, tap)
	if err != nil {
		return notice{}, err
	}
	if err := b.closeStray(t, s.chat, o.Record, message); err != nil {
		return notice{}, err
	}
	switch {
	case o.Won && o.Decision.Decision == runner.Allowed && o.Record.Question.Kind == runner.KindQuestion:
		return notice{text: textAnswered}, nil
	case o.Won && o.Decision.Decision == runner.Allowed:
		return notice{text: tapAllowed}, nil
	case o.Won:
		return notice{text: tapDenied}, nil
	case o.Decision != nil:
		return notice{cardOutcome(approvals.Standing(o.Record, o.Decision)), true}, nil
	}
	return notice{refusal(o.Refused), true}, nil
}

func (b *Bot) adopt(t *store.Txn, chat ChatRef, id approvals.ID, message int) error {
	c, ok, err := store.Get[card](t, cardKey(id))
	if err != nil || !ok || message == 0 || c.Chat != chat.Key() || c.Shown {
		return err
	}
	if _, known, err := SentAs(t, c.slot(id)); err != nil || known {
		return err
	}
	_, err = b.cfg.Outbox.Adopt(t, c.slot(id), chat, message)
	return err
}

// closeStray takes the buttons from a copy of a card: a message that Telegram took and whose number was lost in a crash,
// so that the card was sent again. Nobody else knows of it, so its buttons would stand for ever.
func (b *Bot) closeStray(t *store.Txn, chat ChatRef, r approvals.Record, message int) error {
	c, ok, err := store.Get[card](t, cardKey(r.ID))
	if err != nil || !ok || message == 0 || c.Chat != chat.Key() {
		return err
	}
	for _, slot := range []string{c.slot(r.ID), c.fileSlot(r.ID)} {
		if sent, known, err := SentAs(t, slot); err != nil || known && sent.MessageID == message {
			return err
		}
	}
	if c.Shown { // it may be a copy of the file, which has no text to change
		return b.cfg.Outbox.Put(t, Outgoing{Chat: chat, Kind: KindButtons, MessageID: message})
	}
	f := cardFace(r, textMoved)
	return b.rewrite(t, chat, message, f.Message)
}

func (b *Bot) showTap(t *store.Txn, s author, id approvals.ID) (notice, error) {
	r, ok, err := store.Get[approvals.Record](t, approvals.AskKey(id))
	if err != nil {
		return notice{}, err
	}
	d, decided, err := store.Get[approvals.Decision](t, approvals.DecisionKey(id))
	if err != nil {
		return notice{}, err
	}
	switch {
	case !ok || r.Chat != s.chat.Key():
		return notice{tapStale, false}, nil
	case decided:
		return notice{cardOutcome(approvals.Standing(r, &d)), true}, nil
	case approvals.Standing(r, nil).Word != approvals.StandsOpen:
		return notice{cardOutcome(approvals.Standing(r, nil)), true}, nil
	}
	sent, err := b.showCard(t, r)
	if err != nil || sent {
		return notice{text: tapShown}, err
	}
	return notice{text: tapShownTwice}, nil
}

func (b *Bot) continueTap(t *store.Txn, s author, turn string, message int) (notice, error) {
	p := bridge.Prompt{
		ID: "c:" + strings.TrimPrefix(turn, "t."), Text: textContinuePrompt, By: strconv.FormatInt(s.ID, 10), Name: s.Name, At: time.Now(), Resume: true,
	}
	if message != 0 {
		if err := b.cfg.Outbox.Put(t, Outgoing{Chat: s.chat, Kind: KindButtons, MessageID: message}); err != nil {
			return notice{}, err
		}
	}
	return notice{text: textContinued}, b.enqueue(t, s.chat, message, p)
}

func (b *Bot) unqueueTap(t *store.Txn, s author, prompt string, message int) (notice, error) {
	ok, err := b.cfg.Chats.Unqueue(t, s.chat.Key(), prompt)
	if err != nil {
		return notice{}, err
	}
	if !ok {
		return notice{textTooLate, true}, nil
	}
	return notice{text: textTakenBack}, b.rewrite(t, s.chat, message, formatting.Message{Text: textTakenBack})
}

func (b *Bot) modeTap(t *store.Txn, s author, mode string, message int) (notice, error) {
	m, err := policy.ParseMode(mode)
	if err != nil {
		return notice{tapStale, false}, nil //nolint:nilerr // an older version's button
	}
	c, err := b.cfg.Chats.Get(t, s.chat.Key())
	if err != nil {
		return notice{}, err
	}
	if m != policy.FullAccess && m != c.Mode && message != 0 {
		if err := b.cfg.Outbox.Put(t, Outgoing{Chat: s.chat, Kind: KindButtons, MessageID: message}); err != nil {
			return notice{}, err
		}
	}
	return notice{text: tapDone}, b.chooseMode(t, s, c, m)
}

func (b *Bot) fullTap(t *store.Txn, s author, ids []string, token string, message int) (notice, error) {
	allowed, err := b.useFull(t, s, ids, token)
	if err != nil {
		return notice{}, err
	}
	var m formatting.Builder
	m.Text(textModeSet).Bold(string(policy.FullAccess)).Text(": " + modeMeans(policy.FullAccess) + ". " + textModeNext)
	if len(ids) > 0 {
		m.Text("\n" + plural(allowed, "question") + " allowed with it.")
	}
	return notice{text: tapDone}, b.rewrite(t, s.chat, message, m.Message())
}

func (b *Bot) revokeTap(t *store.Txn, s author, host, grant string) (notice, error) {
	ok, err := b.cfg.Approvals.RevokeIn(t, host, s.chat.Key(), grant)
	if err != nil {
		return notice{}, err
	}
	if !ok {
		return notice{textGrantNot, false}, nil
	}
	return notice{text: textGrantGone}, b.say(t, s.chat, 0, textGrantGone)
}

// replyToCard is a reply to an open card: the answer to a question, or a denial with a reason. It never allows anything.
// It reports whether m was such a reply.
func (b *Bot) replyToCard(t *store.Txn, s author, m *models.Message) (bool, error) {
	if m.ReplyToMessage.From == nil || m.ReplyToMessage.From.ID != b.cfg.API.ID() {
		return false, nil
	}
	open, err := b.cfg.Approvals.Pending(t.Context(), s.chat.Key())
	if err != nil {
		return false, err
	}
	for _, r := range open {
		c, _, err := store.Get[card](t, cardKey(r.ID))
		if err != nil {
			return false, err
		}
		for _, slot := range []string{c.slot(r.ID), c.fileSlot(r.ID)} {
			sent, ok, err := SentAs(t, slot)
			if err != nil {
				return false, err
			}
			if ok && sent.MessageID == m.ReplyToMessage.ID {
				return true, b.replied(t, s, r, m)
			}
		}
	}
	return false, nil
}

func (b *Bot) replied(t *store.Txn, s author, r approvals.Record, m *models.Message) error {
	tap := approvals.Tap{ID: r.ID, Chat: s.chat.Key(), Person: s.Person, Token: "m" + ref(m)}
	if r.Question.Kind == runner.KindQuestion {
		if len(r.Question.Queries) != 1 {
			return b.say(t, s.chat, s.message, refusal(approvals.RefusedAnswers))
		}
		tap.Answers = map[string][]string{r.Question.Queries[0].ID: {m.Text}}
	} else {
		word, reason, _ := strings.Cut(m.Text, " ")
		if !strings.EqualFold(strings.Trim(word, ".,:;!"), "deny") {
			return b.say(t, s.chat, s.message, textReplyHelp)
		}
		tap.Action, tap.Reason = denial(r), strings.TrimSpace(reason)
	}
	o, err := b.cfg.Approvals.DecideIn(t, tap)
	switch {
	case err != nil:
		return err
	case o.Won && r.Question.Kind == runner.KindQuestion:
		return b.say(t, s.chat, s.message, textAnswered)
	case o.Won:
		return b.say(t, s.chat, s.message, textDenied)
	case o.Decision != nil:
		return b.say(t, s.chat, s.message, cardOutcome(approvals.Standing(o.Record, o.Decision)))
	}
	return b.say(t, s.chat, s.message, refusal(o.Refused))
}

// denial is the action of a record that refuses.
func denial(r approvals.Record) string {
	for _, a := range r.Actions() {
		if !a.Allows {
			return a.ID
		}
	}
	return runner.ActionDeny
}
