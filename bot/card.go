package bot

import (
	"fmt"
	"math"
	"strconv"
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
	doShow   = "show"   // approval
)

// card is where an approval stands in its chat, under cardKey.
type card struct {
	V     int    `json:"v"`
	Chat  string `json:"chat"`
	Posts int    `json:"posts"`           // how often it was posted; only the last one has buttons
	Shown bool   `json:"shown,omitempty"` // the whole of it was sent as a file, which has the buttons that allow
}

func cardKey(id approvals.ID) string { return "g:card:" + string(id) }

// slot names the message of a card's n-th posting.
func (c card) slot(id approvals.ID) string { return fmt.Sprintf("card:%s:%d", id, c.Posts) }

func (c card) fileSlot(id approvals.ID) string { return c.slot(id) + ":all" }

// face is what a card says: the message, and whether every byte that would be run or written stands in it.
type face struct {
	formatting.Message
	whole bool
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
	if known {
		if err := b.closePosting(t, chat, r, c, textMoved); err != nil {
			return err
		}
	}
	c.V, c.Chat, c.Shown = Version, r.Chat, false
	c.Posts++
	f := cardFace(r, "")
	rows := b.cardRows(r, f.whole)
	buttons, err := b.buttons(t, chat, rows...)
	if err != nil {
		return err
	}
	if err := store.Put(t, cardKey(r.ID), c); err != nil {
		return err
	}
	return b.cfg.Outbox.Put(t, Outgoing{Chat: chat, Kind: KindSend, Slot: c.slot(r.ID), Text: f.Text, Entities: f.Entities, Buttons: buttons})
}

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
	c.Shown = true
	if err := store.Put(t, cardKey(r.ID), c); err != nil {
		return false, err
	}
	buttons, err := b.buttons(t, chat, b.cardRows(r, true)...)
	if err != nil {
		return false, err
	}
	name, content := wholeFile(r.Question)
	var m formatting.Builder
	m.Bold(cardTitle(r.Question)).Text("\n" + textWhole + " " + textDocumentHas + "\n" + sizeOf(content))
	if end := lastPart(content, 500); end != content {
		m.Text("\n"+textEnding+"\n").Pre("", end)
	}
	return true, b.cfg.Outbox.Put(t, Outgoing{
		Chat: chat, Kind: KindDocument, Slot: c.fileSlot(r.ID), ReplyToSlot: c.slot(r.ID), Text: m.Message().Text, Entities: m.Message().Entities,
		Buttons: buttons, Document: &Document{Name: name, Bytes: []byte(content)},
	})
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
	return b.closePosting(t, chat, r, c, cardOutcome(stand))
}

func (b *Bot) closePosting(t *store.Txn, chat ChatRef, r approvals.Record, c card, outcome string) error {
	f := cardFace(r, outcome)
	if err := b.cfg.Outbox.Put(t, Outgoing{Chat: chat, Kind: KindEdit, Slot: c.slot(r.ID), Text: f.Text, Entities: f.Entities}); err != nil {
		return err
	}
	if !c.Shown {
		return nil
	}
	return b.cfg.Outbox.Put(t, Outgoing{Chat: chat, Kind: KindButtons, Slot: c.fileSlot(r.ID)})
}

// cardRows are a card's buttons. A button that allows stands only where every byte is shown.
func (b *Bot) cardRows(r approvals.Record, whole bool) [][]option {
	if r.Question.Kind == runner.KindQuestion {
		return questionRows(r)
	}
	var rows [][]option
	var row []option
	if !whole {
		rows = append(rows, []option{{Label: textShowFirst, Style: string(runner.StylePrimary), choice: choice{Do: doShow, Args: []string{string(r.ID)}}}})
	}
	for _, a := range r.Actions() {
		if a.Allows && !whole {
			continue
		}
		o := option{Label: buttonLabel(a.Label), Style: string(a.Style), choice: choice{Do: doDecide, Args: []string{string(r.ID), a.ID}}}
		if a.Grant != "" {
			rows = append(rows, []option{o})
			continue
		}
		row = append(row, o)
	}
	for len(row) > 3 {
		rows, row = append(rows, row[:2]), row[2:]
	}
	if len(row) > 0 {
		rows = append([][]option{row}, rows...)
		if !whole { // looking comes before refusing
			rows[0], rows[1] = rows[1], rows[0]
		}
	}
	return rows
}

// questionRows offers the options of a single question. Several questions, and such without options, are answered by
// replying.
func questionRows(r approvals.Record) [][]option {
	var rows [][]option
	if len(r.Question.Queries) == 1 {
		q := r.Question.Queries[0]
		for _, o := range q.Options {
			rows = append(rows, []option{{
				Label: buttonLabel(o.Label), choice: choice{Do: doAnswer, Args: []string{string(r.ID), q.ID, o.Label}},
			}})
		}
	}
	for _, a := range r.Question.Actions {
		rows = append(rows, []option{{Label: buttonLabel(a.Label), Style: string(a.Style), choice: choice{Do: doDecide, Args: []string{string(r.ID), a.ID}}}})
	}
	return rows
}

// buttonLabel is a label that somebody else chose, as short as a button has to be.
func buttonLabel(s string) string { return formatting.Inline(s, 48) }

// cardFace is the text of a card: first what is asked or what came of it, then all of it, then the small print. With an
// outcome the card is closed.
func cardFace(r approvals.Record, outcome string) face {
	q := r.Question
	var top, end formatting.Builder
	if outcome != "" {
		top.Bold(outcome).Text("\n")
		top.Text(cardTitle(q) + "\n")
	} else {
		top.Bold(cardTitle(q)).Text("\n")
	}
	smallPrint(&end, r, outcome == "")

	var full formatting.Builder
	full.Append(top.Message())
	cardBody(&full, q)
	full.Append(end.Message())
	// An entity too many would be dropped in silence, and a message too long be split.
	if messages := full.Split(); len(messages) == 1 && len(messages[0].Entities) < 90 {
		return face{messages[0], true}
	}
	var short formatting.Builder
	short.Append(top.Message())
	_, content := wholeFile(q)
	if outcome == "" {
		short.Text(textTooLong + "\n")
	}
	short.Text(sizeOf(content)+"\n"+textBeginning+"\n").Pre("", firstPart(content, 700))
	short.Text("\n"+textEnding+"\n").Pre("", lastPart(content, 700))
	short.Append(end.Message())
	return face{short.Split()[0], false}
}

// cardBody writes every byte that would be run or written.
func cardBody(m *formatting.Builder, q runner.Question) {
	if q.Title != "" && q.Kind != runner.KindCommand && q.Kind != runner.KindFileChange {
		m.Text(formatting.Inline(q.Title, 300) + "\n")
	}
	switch q.Kind {
	case runner.KindCommand:
		m.Pre("bash", formatting.Visible(q.Command)).Text("\n")
	case runner.KindFileChange:
		for _, f := range q.Files {
			m.Text(fileVerb(f.Op)).Code(oneLine(f.Path)).Text(fileSize(f) + "\n")
			if f.Diff != "" {
				m.Pre("diff", formatting.Visible(f.Diff)).Text("\n")
			}
		}
	case runner.KindTool:
		m.Text("Tool: ").Code(oneLine(q.Tool)).Text("\n")
		if len(q.Arguments) > 0 {
			m.Pre("json", formatting.Visible(string(q.Arguments))).Text("\n")
		}
	case runner.KindPlan:
		m.Text(formatting.Visible(q.Plan) + "\n")
	case runner.KindQuestion:
		for _, query := range q.Queries {
			m.Text(formatting.Visible(query.Text) + "\n")
			for _, o := range query.Options {
				m.Text("• ").Bold(formatting.Inline(o.Label, 300))
				if o.Description != "" {
					m.Text(" – " + formatting.Inline(o.Description, 500))
				}
				m.Text("\n")
			}
		}
		m.Text(textReplyAnswer + "\n")
	}
}

func smallPrint(m *formatting.Builder, r approvals.Record, open bool) {
	q := r.Question
	if q.Folder != "" {
		m.Text("\n" + textFolder).Code(oneLine(q.Folder))
	}
	if can := cardCategories(q.Categories); can != "" && open {
		m.Text("\n" + textCan + can)
	}
	mode := string(r.Mode)
	if r.Interaction == policy.Plan {
		mode += ", plan"
	}
	m.Text("\n" + textMode).Code(mode)
	if r.Background {
		m.Text("\n" + textBackground)
	}
	if !open {
		return
	}
	m.Text("\n"+textUntil).DateTime(r.Deadline.Unix(), "t", r.Deadline.UTC().Format("15:04 UTC"))
	if r.Grant == nil {
		return
	}
	var scopes []string
	for _, a := range r.Actions() {
		if a.Grant != "" {
			scopes = append(scopes, "“"+buttonLabel(a.Label)+"”")
		}
	}
	m.Text("\n" + strings.Join(scopes, " and ") + textGrantsToo)
	grantWords(m, *r.Grant)
}

// grantWords says exactly what a grant allows.
func grantWords(m *formatting.Builder, g approvals.Grant) {
	switch {
	case g.Prefix != "":
		m.Text("commands that begin with ").Code(oneLine(g.Prefix))
	case g.Command != "":
		if c := oneLine(g.Command); len(c) <= 200 {
			m.Text("exactly ").Code(c)
		} else {
			m.Text("exactly this command")
		}
	case g.Tool != "":
		m.Text("the tool ").Code(oneLine(g.Tool))
	case len(g.Paths) > 0:
		m.Text("changes of ")
		for i, p := range g.Paths {
			if i > 0 {
				m.Text(", ")
			}
			m.Code(oneLine(p))
		}
	}
	if g.Folder != "" {
		m.Text(textIn).Code(oneLine(g.Folder))
	}
}

func fileVerb(op runner.FileOp) string {
	switch op {
	case runner.FileCreate:
		return "New file "
	case runner.FileDelete:
		return "Delete "
	case runner.FileMove:
		return "Move "
	case runner.FileEdit:
	}
	return "File "
}

func fileSize(f runner.FileChange) string {
	if f.Added == 0 && f.Removed == 0 {
		return ""
	}
	return "  +" + strconv.Itoa(f.Added) + " −" + strconv.Itoa(f.Removed)
}

// wholeFile is everything that is asked, as a file that a person can open.
func wholeFile(q runner.Question) (name, content string) {
	switch q.Kind {
	case runner.KindCommand:
		return "command.txt", formatting.Visible(q.Command)
	case runner.KindFileChange:
		var s strings.Builder
		for _, f := range q.Files {
			s.WriteString(fileVerb(f.Op) + oneLine(f.Path) + fileSize(f) + "\n" + formatting.Visible(f.Diff) + "\n")
		}
		return "changes.diff.txt", s.String()
	case runner.KindTool:
		return "tool.txt", formatting.Visible(q.Tool) + "\n" + formatting.Visible(string(q.Arguments))
	case runner.KindPlan:
		return "plan.md", q.Plan
	case runner.KindQuestion:
	}
	var m formatting.Builder
	cardBody(&m, q)
	return "question.txt", m.Message().Text
}

// oneLine is all of a name, of which a line end is a part: it must not begin a line of the card.
func oneLine(s string) string { return formatting.Inline(s, math.MaxInt) }

func firstPart(s string, n int) string {
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	return string(r[:n]) + "…"
}

func lastPart(s string, n int) string {
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	return "…" + string(r[len(r)-n:])
}
