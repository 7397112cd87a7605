package bot

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"time"

	"drawbridge/approvals"
	"drawbridge/formatting"
	"drawbridge/policy"
	"drawbridge/runner"
)

// face is what a card says: the message, and whether every byte that would be run or written stands in it.
type face struct {
	formatting.Message

	whole bool
	empty bool // there is nothing to show: the agent did not say what it would do
}

// openFace is the text of an open card: what is asked, all of it, and the small print.
func openFace(r approvals.Record, c card) face {
	var top, end formatting.Builder
	top.Bold(cardTitle(r.Question)).Text("\n")
	if can := cardCategories(r.Question); can != "" {
		top.Text(textCan + can + "\n")
	}
	proposalHead(&top, r, c)
	smallPrint(&end, r)
	if c.Under != "" {
		end.Text(" (" + c.Under + ")")
	}
	end.Text(" · "+textUntil).DateTime(r.Deadline.Unix(), dateFormat(r), r.Deadline.UTC().Format("2 Jan 15:04 UTC"))
	if r.Background {
		end.Text("\n" + textBackground)
	}
	if r.Kept {
		end.Text("\n" + textKept)
	}
	if why := reviewBefore(r.Review); why != "" {
		end.Text("\n" + why)
	}
	grantPrint(&end, r)
	_, content := wholeFile(r.Question)
	empty := formatting.Blank(content)
	if empty {
		top.Text(textNotSaid + "\n")
	}
	f := compose(r.Question, top.Message(), end.Message(), func(m *formatting.Builder) { cardBody(m, r.Question, &c) }, textTooLong+"\n")
	if empty {
		f.whole, f.empty = false, true
	}
	return f
}

// closedFace is the text of a card that is closed: what came of it, what it was about, and when.
func closedFace(r approvals.Record, end closing) face {
	var top, small formatting.Builder
	top.Bold(end.words).Text("\n" + cardTitle(r.Question) + "\n")
	smallPrint(&small, r)
	if d := end.decision; d != nil {
		small.Text(" · "+textDecidedAt).DateTime(d.At.Unix(), "dt", d.At.UTC().Format("2 Jan 15:04 UTC"))
	}
	return compose(r.Question, top.Message(), small.Message(), func(m *formatting.Builder) { closedBody(m, r.Question, end.decision) }, "")
}

// maxCardEntities leaves room below Telegram's limit: an entity too many would be dropped in silence.
const maxCardEntities = 90

// compose puts a card together: with all of its body if that finds room in one message, else with its two ends and a hint.
// A closed card has no hint, and keeps of a long body what tells it from others.
func compose(q runner.Question, top, end formatting.Message, body func(*formatting.Builder), hint string) face {
	var full formatting.Builder
	full.Append(top)
	body(&full)
	full.Append(end)
	if messages := full.Split(); len(messages) == 1 && len(messages[0].Entities) < maxCardEntities {
		return face{Message: messages[0], whole: true}
	}
	var short formatting.Builder
	short.Append(top).Text(hint)
	_, content := wholeFile(q)
	if q.Kind == runner.KindFileChange && (len(q.Files) > 1 || hint == "") {
		listFiles(&short, q.Files)
	}
	if hint == "" { // it is over: what it was about is enough, and the file has all of it
		if short.Text(sizeOf(content) + "\n"); q.Kind != runner.KindFileChange {
			short.Pre("", firstPart(content, 200)).Text("\n")
		}
		short.Append(end)
		return face{Message: short.Split()[0]}
	}
	short.Text(sizeOf(content)+"\n"+textBeginning+"\n").Pre("", firstPart(content, 600))
	short.Text("\n"+textEnding+"\n").Pre("", lastPart(content, 600)).Text("\n")
	short.Append(end)
	return face{Message: short.Split()[0]}
}

// maxFiles is how many files the short form of a card names.
const maxFiles = 10

func listFiles(m *formatting.Builder, files []runner.FileChange) {
	for _, f := range files[:min(len(files), maxFiles)] {
		m.Text(fileVerb(f.Op)).Code(formatting.Inline(f.Path, 80)).Text(fileSize(f) + "\n")
	}
	if n := len(files) - maxFiles; n > 0 {
		m.Text("… and " + plural(n, "more file") + "\n")
	}
}

// cardBody writes every byte that would be run or written. c is nil where the card is closed.
func cardBody(m *formatting.Builder, q runner.Question, c *card) {
	if q.Title != "" && q.Kind == runner.KindTool {
		m.Text(formatting.Inline(q.Title, 300) + "\n")
	}
	switch q.Kind {
	case runner.KindCommand:
		if q.Command != "" {
			m.Pre("bash", formatting.Visible(q.Command)).Text("\n")
		}
		if strings.Contains(strings.TrimSpace(q.Command), "\n") {
			m.Text(sizeOf(q.Command) + "\n")
		}
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
			m.Pre("json", formatting.Visible(arguments(q.Arguments))).Text("\n")
		}
	case runner.KindProposal:
		if c == nil && q.Proposal != nil { // else it stands at the head
			m.Text(oneLine(q.Proposal.Title) + proposedTime(*q.Proposal) + "\n")
		}
		proposalSteps(m, q)
	case runner.KindPlan:
		planBody(m, q, c != nil)
	case runner.KindQuestion:
		questionBody(m, q, c)
	}
}

func closedBody(m *formatting.Builder, q runner.Question, d *approvals.Decision) {
	if q.Kind == runner.KindQuestion {
		answeredBody(m, q, d)
		return
	}
	cardBody(m, q, nil)
}

// oneLine shows a name so that it stays on its line, whatever it holds and however long it is.
func oneLine(s string) string { return formatting.Inline(s, math.MaxInt) }

// arguments are a tool's, laid out for reading. Only blanks between the tokens are added: every byte that means something
// stays as the agent sent it.
func arguments(raw []byte) string {
	var laid bytes.Buffer
	if err := json.Indent(&laid, raw, "", "  "); err != nil {
		return string(raw)
	}
	return laid.String()
}

// smallPrint is what stands at the end of every card.
func smallPrint(m *formatting.Builder, r approvals.Record) {
	if f := r.Question.Folder; f != "" {
		m.Text("\n" + textFolder).Code(oneLine(f))
	}
	if r.Question.Terminal != "" { // the chat's mode is none of its business
		m.Text("\n" + textTerminal).Code(oneLine(r.Question.Terminal))
		return
	}
	mode := string(r.Mode)
	if r.Interaction == policy.Plan {
		mode += ", plan"
	}
	m.Text("\n" + textMode).Code(mode)
}

// dateFormat shows the day as well where the deadline is not today's business.
func dateFormat(r approvals.Record) string {
	if r.Deadline.Sub(r.Created) > 12*time.Hour {
		return "dt"
	}
	return "t"
}

// grantPrint says what the buttons that grant would also allow, exactly.
func grantPrint(m *formatting.Builder, r approvals.Record) {
	if r.Grant == nil {
		return
	}
	var scopes []string
	for _, a := range r.Actions() {
		if a.Grant != "" {
			scopes = append(scopes, "“"+buttonLabel(a.Label)+"”")
		}
	}
	if len(scopes) == 0 {
		return
	}
	also := textGrantsAlso
	if len(scopes) == 1 {
		also = textGrantAlso
	}
	m.Text("\n" + strings.Join(scopes, " and ") + also)
	g := *r.Grant
	if g.Folder == r.Question.Folder {
		g.Folder = "" // it stands above
	}
	grantWords(m, g)
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
			m.Text("exactly the command ").Code(formatting.Inline(g.Command, 160))
		}
	case g.Tool != "":
		m.Text("the tool ").Code(oneLine(g.Tool))
	case len(g.Paths) > 0:
		m.Text("changes of ")
		for i, p := range g.Paths[:min(len(g.Paths), maxFiles)] {
			if i > 0 {
				m.Text(", ")
			}
			m.Code(oneLine(p))
		}
		if n := len(g.Paths) - maxFiles; n > 0 {
			m.Text(" and " + plural(n, "more file"))
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
	return "Change "
}

func fileSize(f runner.FileChange) string {
	switch {
	case f.Added == 0 && f.Removed == 0:
		return ""
	case f.Op == runner.FileCreate && f.Removed == 0:
		return "  +" + strconv.Itoa(f.Added)
	}
	return "  +" + strconv.Itoa(f.Added) + " −" + strconv.Itoa(f.Removed)
}

// wholeFile is everything that is asked, as a file that a person can open; its content is empty if nothing is.
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
		if q.Tool == "" && len(q.Arguments) == 0 {
			return "tool.txt", ""
		}
		return "tool.txt", oneLine(q.Tool) + "\n" + formatting.Visible(arguments(q.Arguments))
	case runner.KindProposal:
		return "task.txt", wholeProposal(q)
	case runner.KindPlan:
		return "plan.md", formatting.Visible(q.Plan)
	case runner.KindQuestion:
	}
	var m formatting.Builder
	for i := range q.Queries {
		queryBody(&m, q.Queries[i])
	}
	return "question.txt", m.Message().Text
}

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
