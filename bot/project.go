package bot

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"drawbridge/approvals"
	"drawbridge/bridge"
	"drawbridge/formatting"
	"drawbridge/internal/store"
	"drawbridge/policy"
	"drawbridge/runner"
)

// turnNote is what the bot remembers of a turn, under turnNoteKey, until its answer is sent.
type turnNote struct {
	V       int           `json:"v"`
	Chat    string        `json:"chat"`
	Host    string        `json:"host"`
	First   int64         `json:"first"` // its first entry in the host's log
	Started time.Time     `json:"started"`
	Prompt  bridge.Prompt `json:"prompt"` // without its files
	// Attached says that there were some.
	Attached bool `json:"attached,omitempty"`
}

func turnNoteKey(turn string) string { return "g:turn:" + turn }

// Project shows an entry of a host's log in its chat; what it puts into t is in the commit that moves past the entry.
// An entry of a chat that is not ours is skipped.
func (b *Bot) Project(t *store.Txn, e bridge.Entry) error {
	chat, err := ParseChat(e.Chat)
	if err != nil {
		b.cfg.Logger.Warn("entry of an unknown chat skipped", "chat", e.Chat, "seq", e.Seq)
		return nil //nolint:nilerr // it would never be another
	}
	if e.Errand != nil {
		return b.errandDone(t, chat, *e.Errand)
	}
	switch e.Event.Kind {
	case runner.TurnStarted:
		return b.turnStarted(t, chat, e)
	case runner.TurnEnded:
		return b.turnEnded(t, chat, e)
	case runner.RequestOpened:
		return b.requestOpened(t, e)
	case runner.RequestResolved:
		return b.requestResolved(t, e)
	case runner.Notice:
		if e.Turn == "" { // one of a turn is told with its story
			return b.say(t, chat, 0, formatting.Inline(e.Event.Text, 1000))
		}
	case runner.PolicyChanged:
		return b.policyChanged(t, chat, e)
	case runner.ReviewChanged:
		return b.reviewChanged(t, chat, e)
	case runner.SessionStarted, runner.ItemStarted, runner.ContentDelta, runner.ItemCompleted, runner.PlanUpdated,
		runner.BackgroundEvent, runner.UsageUpdated:
		// told by the live turn, and by the answer
	}
	return nil
}

// Omitted is bridge.Omitter: the chat is told that something could not be shown, and a turn's live message does not stay.
func (b *Bot) Omitted(t *store.Txn, e bridge.Entry) error {
	chat, err := ParseChat(e.Chat)
	if err != nil {
		return nil //nolint:nilerr // nobody can be told
	}
	if e.Event.Kind != runner.TurnEnded {
		return b.say(t, chat, 0, textOmitted)
	}
	var r runner.Result
	if e.Event.Result != nil {
		r = *e.Event.Result
	}
	var m formatting.Builder
	m.Bold(turnWords(r)).Text("\n" + textOmitted)
	return b.cfg.Outbox.Put(t, Outgoing{
		Chat: chat, Kind: KindEdit, Slot: liveSlot(e.Turn), Upsert: true, Final: true, Text: m.Message().Text, Entities: m.Message().Entities,
	})
}

func (b *Bot) turnStarted(t *store.Txn, chat ChatRef, e bridge.Entry) error {
	c, err := b.cfg.Chats.Get(t, e.Chat)
	if err != nil {
		return err
	}
	if c.Active == nil || c.Active.Turn != e.Turn {
		return nil
	}
	p := c.Active.Prompt
	n := turnNote{V: Version, Chat: e.Chat, Host: e.Host, First: e.Seq, Started: e.At, Prompt: p}
	n.Prompt.Files, n.Attached = nil, len(p.Files) > 0
	if err := store.Put(t, turnNoteKey(e.Turn), n); err != nil {
		return err
	}
	t.Add(meaningsIndex, turnNoteKey(e.Turn), store.Micros(e.At))
	if p.Waited {
		if err := b.cfg.Outbox.Put(t, Outgoing{Chat: chat, Kind: KindDelete, Slot: queuedSlot(p.ID)}); err != nil {
			return err
		}
	}
	l := bridge.Live{Chat: e.Chat, Turn: e.Turn, Since: e.At}
	b.live.take(l, time.Now())
	m := liveFace(l, 0, 0)
	return b.cfg.Outbox.Put(t, Outgoing{
		Chat: chat, Kind: KindSend, Slot: liveSlot(e.Turn), Text: m.Text, Entities: m.Entities, Buttons: b.stopButton(e.Turn),
		ReplyTo: replyTo(p), Silent: true,
	})
}

func (b *Bot) turnEnded(t *store.Txn, chat ChatRef, e bridge.Entry) error {
	n, known, err := store.Get[turnNote](t, turnNoteKey(e.Turn))
	if err != nil {
		return err
	}
	var r runner.Result
	if e.Event.Result != nil {
		r = *e.Event.Result
	}
	var s story
	if known {
		last := e.Seq
		if last == 0 { // the host died: everything that it has written
			last = 1<<53 - 1
		}
		entries, err := bridge.TimelineIn(t, n.Host, n.Chat, n.First, last, 0)
		if err != nil {
			return err
		}
		s = tell(entries, e.Turn, r.Outcome)
		t.Delete(turnNoteKey(e.Turn))
		t.Drop(meaningsIndex, turnNoteKey(e.Turn))
	}
	took := time.Duration(0)
	if known {
		took = e.At.Sub(n.Started)
	}
	m := s.summary(turnEnd(r, took, s.count))
	var buttons [][]Button
	if known && r.Outcome != runner.Completed && n.Prompt.Text != "" {
		goOn, err := goOnButton(e.Turn, n, r, s)
		if err != nil {
			return err
		}
		if buttons, err = b.buttons(t, chat, []option{goOn}); err != nil {
			return err
		}
	}
	end := Outgoing{
		Chat: chat, Kind: KindEdit, Slot: liveSlot(e.Turn), Upsert: true, Final: true, Text: m.Text, Entities: m.Entities, Buttons: buttons,
	}
	if unasked(r) {
		// An edit makes no sound, and there may be no answer that does: what nobody expects is a message of its own.
		if err := b.cfg.Outbox.Put(t, Outgoing{Chat: chat, Kind: KindDelete, Slot: liveSlot(e.Turn)}); err != nil {
			return err
		}
		end.Kind, end.Slot, end.Upsert, end.Final, end.ReplyTo = KindSend, endSlot(e.Turn), false, false, replyTo(n.Prompt)
	}
	if err := b.cfg.Outbox.Put(t, end); err != nil {
		return err
	}
	b.live.end(e.Turn)
	if r.Plan != "" && strings.TrimSpace(s.answer) == "" {
		return nil // the plan is the answer, and has a card of its own
	}
	return b.sayAnswer(t, chat, e.Turn, n.Prompt, s.answer, r.Outcome)
}

// sayAnswer sends what the agent said at last: text and entities, in as many messages as it takes, or as files.
func (b *Bot) sayAnswer(t *store.Txn, chat ChatRef, turn string, p bridge.Prompt, text string, o runner.Outcome) error {
	messages := formatting.Render(text, formatting.Options{})
	if len(messages) == 0 {
		if o != runner.Completed {
			return nil // the summary says why
		}
		messages = []formatting.Message{{Text: textNoAnswer}}
	}
	long := len(messages) > maxAnswer
	if long {
		messages = messages[:1]
	}
	for i, m := range messages {
		out := Outgoing{Chat: chat, Kind: KindSend, Slot: fmt.Sprintf("answer:%s:%d", turn, i), Text: m.Text, Entities: m.Entities}
		if i == 0 {
			out.ReplyTo = replyTo(p)
		} else {
			out.Silent = true
		}
		if err := b.cfg.Outbox.Put(t, out); err != nil {
			return err
		}
	}
	if !long {
		return nil
	}
	parts := cutText(text, maxInline)
	for i, part := range parts {
		name, caption := "answer.md", textAnswerFile
		if len(parts) > 1 {
			name, caption = fmt.Sprintf("answer-%d.md", i+1), fmt.Sprintf(textAnswerPart, i+1, len(parts))
		}
		err := b.cfg.Outbox.Put(t, Outgoing{
			Chat: chat, Kind: KindDocument, Text: caption, Silent: true, Document: &Document{Name: name, Bytes: []byte(part)},
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// cutText cuts a text into parts of at most n bytes, between characters.
func cutText(s string, n int) []string {
	var out []string
	for len(s) > n {
		at := n
		for at > 0 && !utf8.RuneStart(s[at]) {
			at--
		}
		out, s = append(out, s[:at]), s[at:]
	}
	return append(out, s)
}

func (b *Bot) requestOpened(t *store.Txn, e bridge.Entry) error {
	r, d, err := b.approval(t, e)
	if err != nil || r.ID == "" {
		return err
	}
	if approvals.Standing(r, d).Word != approvals.StandsOpen {
		return nil // it was over before it could be shown
	}
	if known, err := b.refreshCard(t, r); err != nil || known {
		return err
	}
	b.waits(r.Turn, r.ID, r.Question.Kind != runner.KindPlan)
	return b.postCard(t, r)
}

func (b *Bot) requestResolved(t *store.Txn, e bridge.Entry) error {
	r, d, err := b.approval(t, e)
	if err != nil || r.ID == "" {
		return err
	}
	b.waits(r.Turn, r.ID, false)
	return b.settleCard(t, r, d)
}

// approval reads what an entry is about, and the decision if there is one. Its record is guarded: a card is shown for
// what stands at the time of the commit.
func (b *Bot) approval(t *store.Txn, e bridge.Entry) (approvals.Record, *approvals.Decision, error) {
	if e.Event.Request == nil {
		return approvals.Record{}, nil, nil
	}
	id := approvals.ID(e.Event.Request.ID)
	r, ok, err := store.Get[approvals.Record](t, approvals.AskKey(id))
	if err != nil || !ok || r.Chat != e.Chat {
		return approvals.Record{}, nil, err
	}
	d, decided, err := store.Get[approvals.Decision](t, approvals.DecisionKey(id))
	if err != nil || !decided {
		return r, nil, err
	}
	return r, &d, nil
}

// Decided is approvals.Config.Decided of a gateway: the card says what was decided in the commit that decides it.
func (b *Bot) Decided(t *store.Txn, r approvals.Record, d approvals.Decision) error {
	b.waits(r.Turn, r.ID, false)
	if err := b.settleCard(t, r, &d); err != nil {
		return err
	}
	if err := b.goOnKept(t, r, d); err != nil {
		return err
	}
	return b.goOn(t, r, d)
}

func (b *Bot) policyChanged(t *store.Txn, chat ChatRef, e bridge.Entry) error {
	p := e.Event.Policy
	if p == nil {
		return nil
	}
	if p.Asked == p.Effective { // the mode is kept, in another way than the owner has chosen: without a reviewer, say
		if p.Why == "" {
			return nil
		}
		return b.say(t, chat, 0, formatting.Inline(p.Why, 300))
	}
	var m formatting.Builder
	m.Text("This runtime works under ").Code(policyWords(p.Effective)).Text(" instead of ").Code(policyWords(p.Asked))
	if p.Why != "" {
		m.Text(": " + formatting.Inline(p.Why, 300))
	}
	return b.cfg.Outbox.Put(t, Outgoing{Chat: chat, Kind: KindSend, Text: m.Message().Text, Entities: m.Message().Entities, Silent: true})
}

// reviewChanged tells of what was refused between turns. Within one it is part of the turn's story.
func (b *Bot) reviewChanged(t *store.Txn, chat ChatRef, e bridge.Entry) error {
	if e.Event.Review == nil {
		return nil
	}
	words := reviewWords(*e.Event.Review)
	if words == "" {
		return nil
	}
	if _, runs, err := store.Peek[turnNote](t, turnNoteKey(e.Turn)); err != nil || runs {
		return err
	}
	var m formatting.Builder
	m.Text(words)
	return b.cfg.Outbox.Put(t, Outgoing{Chat: chat, Kind: KindSend, Text: m.Message().Text, Entities: m.Message().Entities, Silent: true})
}

func policyWords(p runner.Policy) string {
	if p.Interaction == policy.Plan {
		return string(p.Mode) + ", plan"
	}
	return string(p.Mode)
}
