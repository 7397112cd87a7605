package bot

import (
	"context"
	"fmt"
	"strings"

	"drawbridge/approvals"
	"drawbridge/formatting"
	"drawbridge/internal/store"
	"drawbridge/policy"
	"drawbridge/runner"
)

// What the buttons of cards do, as choice.Do.
const (
	doDecide = "decide" // approval, action
	doAnswer = "answer" // approval, query, label
	doPicked = "picked" // approval, query
	doShow   = "show"   // approval
)

// card is where an approval stands in its chat, under cardKey.
type card struct {
	V     int    `json:"v"`
	Chat  string `json:"chat"`
	Posts int    `json:"posts"`           // how often it was posted; only the last one has buttons
	Shown bool   `json:"shown,omitempty"` // the whole of it was sent as a file, which has the buttons that allow
	// Under says, for people, under which mode it is really asked, and why, where that is not the chat's.
	Under string `json:"under,omitempty"`
	// Answers are those to the first queries of a question with several; Picked is chosen so far of the next one.
	Answers map[string][]string `json:"answers,omitempty"`
	Picked  []string            `json:"picked,omitempty"`
	// Zone is the one in which the times of a proposal are shown, and Held the mode to which it would be held.
	Zone string      `json:"zone,omitempty"`
	Held policy.Mode `json:"held,omitempty"`
	// Edited is where the plan stands that is implemented instead of the agent's.
	Edited string `json:"edited,omitempty"`
}

func cardKey(id approvals.ID) string { return "g:card:" + string(id) }

// slot names the message of a card's latest posting.
func (c card) slot(id approvals.ID) string { return slotOf(id, c.Posts) }

func (c card) fileSlot(id approvals.ID) string { return c.slot(id) + fileSuffix }

const (
	slotPrefix = "card:"
	fileSuffix = ":all"
)

func slotOf(id approvals.ID, posting int) string {
	return fmt.Sprintf("%s%s:%d", slotPrefix, id, posting)
}

// cardOf is the inverse of slot and fileSlot.
func cardOf(slot string) (id approvals.ID, isFile, ok bool) {
	rest, ok := strings.CutPrefix(slot, slotPrefix)
	rest, isFile = strings.CutSuffix(rest, fileSuffix)
	colon := strings.LastIndexByte(rest, ':')
	if !ok || colon < 0 {
		return "", false, false
	}
	return approvals.ID(rest[:colon]), isFile, true
}

// postCard puts an approval into its chat, below everything else. An earlier posting of it points there.
func (b *Bot) postCard(t *store.Txn, r approvals.Record) error {
	chat, err := ParseChat(r.Chat)
	if err != nil {
		return err
	}
	c, known, err := store.Get[card](t, cardKey(r.ID))
	if err != nil {
		return err
	}
	if impossible, err := b.propose(t, r, &c); err != nil || impossible {
		return err
	}
	if known {
		if err := b.closePosting(t, chat, r, c, closing{words: textMoved}); err != nil {
			return err
		}
	}
	now, err := t.Now()
	if err != nil {
		return err
	}
	t.Add(meaningsIndex, cardKey(r.ID), store.Micros(now)) // forgotten with its buttons
	c.V, c.Chat, c.Shown = Version, r.Chat, false
	if c.Under, err = b.under(t, r); err != nil {
		return err
	}
	c.Posts++
	if err := store.Put(t, cardKey(r.ID), c); err != nil {
		return err
	}
	if err := b.putCard(t, chat, r, c, Outgoing{Kind: KindSend, Silent: r.Silent}); err != nil {
		return err
	}
	if r.Question.Kind != runner.KindPlan || openFace(r, c).whole {
		return nil
	}
	_, err = b.showCard(t, r) // a plan is there to be read, not to be asked for
	return err
}

// under says under which mode an approval is really asked, where that is not the chat's: its work may be bound to a
// stricter one, and its runtime may not work under it. Empty where they do not differ.
func (b *Bot) under(t *store.Txn, r approvals.Record) (string, error) {
	c, err := b.cfg.Chats.Get(t, r.Chat)
	if err != nil {
		return "", err
	}
	hello, _, err := b.cfg.Chats.Hello(t, c.Host)
	if err != nil {
		return "", err
	}
	words := ""
	if a := c.Active; c.Mode.Looser(r.Mode) && (r.Background || a != nil && a.Turn == r.Turn && a.Prompt.Limit != "") {
		words = "this work is bound to it; the chat's is " + string(c.Mode)
	}
	if eff, why := (agent{Capability: hello.Runtimes[r.Runtime]}).effective(r.Mode); eff != r.Mode {
		if words != "" {
			words += "; "
		}
		words += "effective with " + formatting.Inline(r.Runtime, 60) + ": " + string(eff)
		if why != "" {
			words += ", because " + why
		}
	}
	return words, nil
}

// putCard sends or edits the latest posting of an open card.
func (b *Bot) putCard(t *store.Txn, chat ChatRef, r approvals.Record, c card, out Outgoing) error {
	f := openFace(r, c)
	buttons, err := b.buttons(t, chat, cardRows(r, c, f)...)
	if err != nil {
		return err
	}
	out.Chat, out.Slot, out.Text, out.Entities, out.Buttons = chat, c.slot(r.ID), f.Text, f.Entities, buttons
	return b.cfg.Outbox.Put(t, out)
}

// maxInline is how many bytes of a document are kept in the outbox itself; a larger one is made again when it is sent.
const maxInline = 256 << 10

// showCard sends the whole of what is asked as a file, with the buttons that allow it. It reports false if that was done
// before.
func (b *Bot) showCard(t *store.Txn, r approvals.Record) (bool, error) {
	chat, err := ParseChat(r.Chat)
	if err != nil {
		return false, err
	}
	c, ok, err := store.Get[card](t, cardKey(r.ID))
	if err != nil || !ok || c.Shown {
		return false, err
	}
	name, content := wholeFile(r.Question)
	if content == "" {
		return false, nil
	}
	c.Shown = true
	if err := store.Put(t, cardKey(r.ID), c); err != nil {
		return false, err
	}
	buttons, err := b.buttons(t, chat, cardRows(r, c, face{whole: true})...)
	if err != nil {
		return false, err
	}
	var m formatting.Builder
	m.Bold(cardTitle(r.Question)).Text("\n" + textWhole + " " + textDocumentHas + "\n" + sizeOf(content))
	if end := lastPart(content, 500); end != content {
		m.Text("\n"+textEnding+"\n").Pre("", end)
	}
	doc := &Document{Name: name, Bytes: []byte(content)}
	if len(content) > maxInline {
		doc = &Document{Name: name, Blob: string(r.ID)}
	}
	return true, b.cfg.Outbox.Put(t, Outgoing{
		Chat: chat, Kind: KindDocument, Slot: c.fileSlot(r.ID), ReplyToSlot: c.slot(r.ID), Text: m.Message().Text, Entities: m.Message().Entities,
		Buttons: buttons, Document: doc,
	})
}

// Blob is OutboxConfig.Blob: the whole of what an approval asks, by its id.
func (b *Bot) Blob(ctx context.Context, name string) ([]byte, error) {
	r, _, err := b.cfg.Approvals.Get(ctx, approvals.ID(name))
	if err != nil {
		return nil, err
	}
	if r.ID == "" {
		return nil, fmt.Errorf("bot: file of approval %s: it is forgotten", name)
	}
	_, content := wholeFile(r.Question)
	return []byte(content), nil
}

// settleCard makes a card say how its approval stands, and takes its buttons away unless it is open.
func (b *Bot) settleCard(t *store.Txn, r approvals.Record, d *approvals.Decision) error {
	stand := approvals.Standing(r, d)
	if stand.Word == approvals.StandsOpen {
		return nil
	}
	chat, err := ParseChat(r.Chat)
	if err != nil {
		return err
	}
	c, ok, err := store.Get[card](t, cardKey(r.ID))
	if err != nil || !ok {
		return err
	}
	if len(c.Answers) > 0 || len(c.Picked) > 0 { // the decision has them; a secret one must not stay here
		c.Answers, c.Picked = nil, nil
		if err := store.Put(t, cardKey(r.ID), c); err != nil {
			return err
		}
	}
	end := closingOf(r, stand)
	if c.Edited != "" {
		end.words += textPlanAsEdited
	}
	if end.buttons, err = b.resumeRow(t, chat, r, stand); err != nil {
		return err
	}
	return b.closePosting(t, chat, r, c, end)
}

// closing is what a closed card says.
type closing struct {
	words string // what came of it
	// decision is by whom and when; nil if nobody decided.
	decision *approvals.Decision
	buttons  [][]Button
}

func closingOf(r approvals.Record, s approvals.Stand) closing {
	words := cardOutcome(r.Question, s)
	if r.Kept && s.Word == approvals.StandsHandingOver {
		words += textKeptWait
	}
	return closing{words: words, decision: s.Decision}
}

func (b *Bot) closePosting(t *store.Txn, chat ChatRef, r approvals.Record, c card, end closing) error {
	f := closedFace(r, end)
	if err := b.cfg.Outbox.Put(t, Outgoing{Chat: chat, Kind: KindEdit, Slot: c.slot(r.ID), Text: f.Text, Entities: f.Entities, Buttons: end.buttons}); err != nil {
		return err
	}
	if !c.Shown {
		return nil
	}
	return b.cfg.Outbox.Put(t, Outgoing{Chat: chat, Kind: KindButtons, Slot: c.fileSlot(r.ID)})
}

// cardRows are a card's buttons. A button that allows stands only where every byte is shown.
func cardRows(r approvals.Record, c card, f face) [][]option {
	var rows [][]option
	if !f.whole && !f.empty && !c.Shown {
		// Looking comes before refusing.
		rows = append(rows, []option{{Label: textShowFirst, Style: string(runner.StylePrimary), choice: choice{Do: doShow, Args: []string{string(r.ID)}}}})
	}
	if r.Question.Kind == runner.KindQuestion {
		return append(rows, questionRows(r, c)...)
	}
	var row []option
	var grants [][]option
	for _, a := range r.Actions() {
		if a.Reply || a.Allows && !f.whole {
			continue
		}
		o := option{Label: buttonLabel(a.Label), Style: string(a.Style), choice: choice{Do: doDecide, Args: []string{string(r.ID), a.ID}}}
		if a.Grant != "" {
			grants = append(grants, []option{o})
			continue
		}
		row = append(row, o)
	}
	for len(row) > 3 {
		rows, row = append(rows, row[:2]), row[2:]
	}
	if len(row) > 0 {
		rows = append(rows, row)
	}
	return append(rows, grants...)
}

// buttonLabel is a label that somebody else chose, as short as a button has to be.
func buttonLabel(s string) string { return formatting.Inline(s, 48) }

// unseen are the approvals whose card never reached a chat, under unseenKey: it was blocked, for one.
type unseen struct {
	V   int            `json:"v"`
	IDs []approvals.ID `json:"ids"`
}

func unseenKey(chat string) string { return "g:unseen:" + chat }

// Dropped is OutboxConfig.OnDropped. A card that could not be sent is shown when somebody writes in its chat again, and a
// file that could not be sent can be asked for again: an approval must not wait where nobody can see it.
func (b *Bot) Dropped(t *store.Txn, m Outgoing, reason string) error {
	id, isFile, ok := cardOf(m.Slot)
	if !ok || m.Kind != KindSend && m.Kind != KindDocument {
		return nil
	}
	c, known, err := store.Get[card](t, cardKey(id))
	if err != nil || !known || (m.Slot != c.slot(id) && m.Slot != c.fileSlot(id)) {
		return err
	}
	b.cfg.Logger.Warn("a card did not reach its chat", "approval", string(id), "chat", c.Chat, "reason", reason)
	if isFile {
		c.Shown = false
		return store.Put(t, cardKey(id), c)
	}
	u, _, err := store.Get[unseen](t, unseenKey(c.Chat))
	if err != nil {
		return err
	}
	u.V, u.IDs = Version, append(u.IDs, id)
	return store.Put(t, unseenKey(c.Chat), u)
}

// showUnseen posts the cards that did not reach a chat and still wait.
func (b *Bot) showUnseen(t *store.Txn, chat ChatRef) error {
	u, ok, err := store.Get[unseen](t, unseenKey(chat.Key()))
	if err != nil || !ok {
		return err
	}
	t.Delete(unseenKey(chat.Key()))
	for _, id := range u.IDs {
		r, known, err := store.Get[approvals.Record](t, approvals.AskKey(id))
		if err != nil {
			return err
		}
		_, decided, err := store.Get[approvals.Decision](t, approvals.DecisionKey(id))
		if err != nil {
			return err
		}
		if !known || decided || r.State != approvals.Open {
			continue
		}
		if err := b.postCard(t, r); err != nil {
			return err
		}
	}
	return nil
}
