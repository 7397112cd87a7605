package formatting

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/yuin/goldmark/ast"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

// Options say how Markdown is rendered. The zero value is right for a finished text.
type Options struct {
	// Stream says that the text is still being written: inline markers that are open at its end count as closed there,
	// and half a link shows its label.
	Stream bool
	// Limit is the most UTF-16 units a message may have, from 64 to MaxLength; 0 means MaxLength.
	Limit int
}

// Render turns Markdown into messages that Telegram accepts, none if nothing is visible. It is CommonMark with tables,
// strikethrough, task lists, bare links and footnotes, read the way that coding agents mean it: HTML stays text, `||` is
// text, stars in globs and argument lists are text, and soft line breaks are kept. Apart from markup that took effect,
// terminal sequences and text overwritten by a carriage return, no character is lost or doubled, whatever the split.
//
// The cost is proportional to the length. For a text that grows, see [Stream].
func Render(markdown string, o Options) []Message {
	source := clean(markdown)
	if o.Stream {
		source = closeOpen(source)
	}
	var b Builder
	r := renderer{b: &b}
	r.document(source, true)
	return split(string(b.text), b.sorted(), o.Limit)
}

// Layout of blocks.
const (
	// maxIndent is how many columns a nested block is set in at most; deeper ones stand at this depth.
	maxIndent = 24
	// expandLines and expandUnits are the sizes above which a quote is folded.
	expandLines, expandUnits = 8, 600
	rule                     = "──────────"
)

// renderer writes parsed Markdown into a Builder. Line ends between blocks are held back until something follows.
type renderer struct {
	b      *Builder
	source []byte
	notes  map[string]bool // the labels of footnotes
	indent string
	gap    int  // line ends due before the next text
	dirty  bool // something was written since gap was last reset
	inRow  bool // within a table's row line ends are spaces

	// What a document that is rendered in parts carries from one to the next.
	lead    bool   // the first block stands after an empty line
	defines bool   // there were definitions, which can change the text before them
	number  int    // the number that the list at the start goes on with, 0 for its own
	goOn    bool   // the fence at the start goes on with code that was written
	fence   string // the line that opens it, to be put before the rest of the source
	partial int    // the size of an unfinished block, in bytes, from which on its finished parts are taken off
}

// document renders a text that begins at the start of a top-level block. Unless it is the last part of a text, the last
// block is left out, since what follows may still change it. It returns where in the source that block begins.
func (r *renderer) document(source string, last bool) (open int) {
	r.source = []byte(source)
	pc := parser.NewContext()
	doc := markdown().Parse(text.NewReader(r.source), parser.WithContext(pc))
	r.notes, _ = pc.Get(notesKey).(map[string]bool)
	r.defines = r.defines || len(r.notes) > 0 || len(pc.References()) > 0
	var stop ast.Node
	if !last {
		stop = r.unfinished(doc)
	}
	before := -1
	for n := doc.FirstChild(); n != nil; n = n.NextSibling() {
		start := r.lineStart(n.Pos())
		empty := r.lead
		if start > 0 {
			empty = start != before && r.blankBefore(start)
		}
		if n == stop {
			r.lead = empty
			return start + r.part(n, start)
		}
		r.separate(empty)
		r.block(n)
		r.number, before = 0, start
	}
	return 0
}

// unfinished is the first of the blocks that more text could change: the last one and, since a table can come out of the
// end of a paragraph, those that begin where it does.
func (r *renderer) unfinished(doc ast.Node) ast.Node {
	n := doc.LastChild()
	for n != nil && n.PreviousSibling() != nil && r.lineStart(n.PreviousSibling().Pos()) >= r.lineStart(n.Pos()) {
		n = n.PreviousSibling()
	}
	return n
}

// lineStart is the start of the line that holds a position.
func (r *renderer) lineStart(pos int) int {
	return bytes.LastIndexByte(r.source[:max(0, min(pos, len(r.source)))], '\n') + 1
}

// blankBefore reports whether the line before the one that begins at start is blank.
func (r *renderer) blankBefore(start int) bool {
	before := bytes.TrimRight(r.source[:start], " \t")
	before = bytes.TrimSuffix(before, []byte("\n"))
	before = bytes.TrimRight(before, " \t")
	return len(before) == 0 || before[len(before)-1] == '\n'
}

// separate asks for a line end, or an empty line, before what follows.
func (r *renderer) separate(empty bool) {
	if !r.dirty {
		return
	}
	if empty {
		r.gap = 2
	} else {
		r.gap = max(r.gap, 1)
	}
}

// flush writes the line ends that are due, without indentation.
func (r *renderer) flush() bool {
	if r.gap == 0 {
		return false
	}
	r.b.write("\n\n"[:min(r.gap, 2)])
	r.gap = 0
	return true
}

// start readies the place for text.
func (r *renderer) start() {
	if r.flush() {
		r.b.write(r.indent)
	}
	r.dirty = true
}

// text writes text, indenting the lines that begin in it.
func (r *renderer) text(s string) {
	if s == "" {
		return
	}
	r.start()
	if r.inRow {
		s = strings.ReplaceAll(s, "\n", " ")
	} else if r.indent != "" && strings.Contains(s, "\n") {
		s = strings.ReplaceAll(s, "\n", "\n"+r.indent)
	}
	r.b.write(s)
}

func (r *renderer) blocks(parent ast.Node) {
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		if n.PreviousSibling() != nil {
			r.separate(n.HasBlankPreviousLines())
		}
		r.block(n)
	}
}

func (r *renderer) block(n ast.Node) {
	switch n := n.(type) {
	case *ast.Paragraph, *ast.TextBlock:
		r.inlines(n)
	case *ast.Heading:
		r.styled(Entity{Type: TypeBold}, n)
	case *ast.ThematicBreak:
		r.text(rule)
	case *ast.FencedCodeBlock:
		r.pre(language(n, r.source), n.Lines())
	case *ast.CodeBlock:
		r.pre("", n.Lines())
	case *ast.Blockquote:
		r.quote(n)
	case *ast.List:
		r.list(n)
	case *extast.Table:
		r.table(n)
	case *extast.Footnote:
		r.text("[" + string(n.Ref) + "] ")
		r.blocks(n)
	default:
		r.blocks(n)
	}
}

// language is the first word of a fence's info string.
func language(n *ast.FencedCodeBlock, source []byte) string {
	word := string(n.Language(source))
	word = strings.Trim(word, "{}.")
	word, _, _ = strings.Cut(word, ",")
	word, _, _ = strings.Cut(word, "{")
	return strings.ToValidUTF8(word, "")
}

func (r *renderer) pre(language string, lines *text.Segments) {
	var code strings.Builder
	for i := range lines.Len() {
		s := lines.At(i)
		code.Write(s.Value(r.source))
	}
	r.preText(language, code.String())
}

// preText writes a block of code on lines of its own and at the left margin.
func (r *renderer) preText(language, code string) {
	code = strings.TrimRight(code, "\n")
	if r.goOn {
		r.goOn = false
		r.b.extend(code)
		r.dirty, r.gap = true, 1
		return
	}
	if Blank(code) {
		return
	}
	if r.dirty {
		r.gap = max(r.gap, 1)
	}
	r.flush()
	r.b.pre(language, code)
	r.dirty, r.gap = true, 1
}

func (r *renderer) quote(n *ast.Blockquote) {
	outer := r.indent
	defer func() { r.indent = outer }()
	if r.quoted() {
		r.indent = deeper(outer, "│ ")
		if r.dirty {
			r.gap = max(r.gap, 1)
		} else {
			r.b.write(r.indent[len(outer):])
		}
		r.blocks(n)
		return
	}
	if r.dirty {
		r.gap = max(r.gap, 1)
	}
	r.flush()
	r.indent = ""
	from, began := len(r.b.text), r.b.units
	r.dirty = false
	r.b.begin(Entity{Type: TypeBlockquote})
	r.blocks(n)
	r.gap = 0
	if strings.Count(string(r.b.text[from:]), "\n") >= expandLines || r.b.units-began > expandUnits {
		r.b.open[len(r.b.open)-1].entity.Type = TypeExpandable
	}
	r.b.end()
	r.dirty, r.gap = true, 1
}

func (r *renderer) quoted() bool {
	for _, f := range r.b.open {
		if f.entity.quote() {
			return true
		}
	}
	return false
}

func deeper(indent, by string) string {
	if utf8.RuneCountInString(indent)+utf8.RuneCountInString(by) > maxIndent {
		return indent
	}
	return indent + by
}

func (r *renderer) list(n *ast.List) {
	number := n.Start
	if r.number > 0 {
		number, r.number = r.number, 0
	}
	for item := n.FirstChild(); item != nil; item = item.NextSibling() {
		if item.PreviousSibling() != nil {
			r.separate(false)
		}
		marker := "• "
		if n.Marker == '+' {
			marker = "+ " // more often a line of a diff than a bullet
		}
		if n.IsOrdered() {
			marker = strconv.Itoa(number) + string(n.Marker) + " "
			number++
		}
		if !n.IsOrdered() && isTask(item) {
			marker = ""
		}
		r.item(item, marker)
	}
}

// isTask reports whether an item begins with a box, which then stands for the bullet.
func isTask(item ast.Node) bool {
	first := item.FirstChild()
	if first == nil {
		return false
	}
	_, ok := first.FirstChild().(*extast.TaskCheckBox)
	return ok
}

func (r *renderer) item(item ast.Node, marker string) {
	outer := r.indent
	r.start()
	r.b.write(marker)
	r.indent = deeper(outer, "   "[:min(3, max(2, len(marker)-2))])
	r.blocks(item)
	r.indent = outer
}
