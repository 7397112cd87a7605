package formatting

import (
	"bytes"
	"sync"
	"unicode"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// markdown is the one parser; it is built at first use and never changed. HTML is not parsed: generics, JSX and
// `<details>` are text that a reader wants to see. Footnotes stay where they are written, and mathematics is code.
var markdown = sync.OnceValue(func() parser.Parser {
	p := parser.NewParser(
		parser.WithBlockParsers(
			util.Prioritized(parser.NewSetextHeadingParser(), 100),
			util.Prioritized(parser.NewThematicBreakParser(), 200),
			util.Prioritized(parser.NewListParser(), 300),
			util.Prioritized(parser.NewListItemParser(), 400),
			util.Prioritized(parser.NewCodeBlockParser(), 500),
			util.Prioritized(parser.NewATXHeadingParser(), 600),
			util.Prioritized(parser.NewFencedCodeBlockParser(), 700),
			util.Prioritized(parser.NewBlockquoteParser(), 800),
			util.Prioritized(footnoteParser{extension.NewFootnoteBlockParser()}, 900),
			util.Prioritized(parser.NewParagraphParser(), 1000),
		),
		parser.WithInlineParsers(
			util.Prioritized(mathParser{}, 90),
			util.Prioritized(parser.NewCodeSpanParser(), 100),
			util.Prioritized(footnoteRefParser{}, 150),
			util.Prioritized(parser.NewLinkParser(), 200),
			util.Prioritized(parser.NewAutoLinkParser(), 300),
			util.Prioritized(starParser{}, 500),
			util.Prioritized(strikeParser{}, 500),
		),
		parser.WithParagraphTransformers(parser.DefaultParagraphTransformers()...),
	)
	goldmark.New(goldmark.WithParser(p), goldmark.WithExtensions(
		extension.Table, extension.TaskList, extension.Linkify))
	return p
})

// footnoteParser leaves a footnote's text where it is written, whether or not something refers to it: goldmark's own
// moves it to the end of the document and drops the unused.
type footnoteParser struct{ parser.BlockParser }

// notesKey holds the labels of a document's footnotes, a map[string]bool, in its parser's context.
var notesKey = parser.NewContextKey()

func (footnoteParser) Close(n ast.Node, _ text.Reader, pc parser.Context) {
	notes, _ := pc.Get(notesKey).(map[string]bool)
	if notes == nil {
		notes = make(map[string]bool)
		pc.Set(notesKey, notes)
	}
	if f, ok := n.(*extast.Footnote); ok {
		notes[string(f.Ref)] = true
	}
}

// mathNode is a formula, with its delimiters. Its source is shown as code: messages have no mathematics, and the source
// is what a reader can copy.
type mathNode struct {
	ast.BaseInline
	source []byte
}

var (
	kindMath        = ast.NewNodeKind("DrawbridgeMath")
	kindFootnoteRef = ast.NewNodeKind("DrawbridgeFootnoteRef")
)

func (n *mathNode) Kind() ast.NodeKind            { return kindMath }
func (n *mathNode) Dump(source []byte, level int) { ast.DumpHelper(n, source, level, nil, nil) }

// footnoteRefNode is `[^label]`.
type footnoteRefNode struct {
	ast.BaseInline
	label string
}

func (n *footnoteRefNode) Kind() ast.NodeKind            { return kindFootnoteRef }
func (n *footnoteRefNode) Dump(source []byte, level int) { ast.DumpHelper(n, source, level, nil, nil) }

type footnoteRefParser struct{}

func (footnoteRefParser) Trigger() []byte { return []byte{'['} }

func (footnoteRefParser) Parse(_ ast.Node, block text.Reader, _ parser.Context) ast.Node {
	line, _ := block.PeekLine()
	if len(line) < 4 || line[1] != '^' {
		return nil
	}
	end := bytes.IndexAny(line[2:min(len(line), 100)], "[] \t\n")
	if end <= 0 || line[2+end] != ']' {
		return nil
	}
	block.Advance(end + 3)
	return &footnoteRefNode{label: string(line[2 : 2+end])}
}

// mathReach is how far a formula may reach, in bytes: beyond it an opening delimiter is taken as text, which also keeps
// many of them from costing the square of their number.
const mathReach = 1024

// mathMarks are what tells a formula from prose: `\[x\]` is an escaped bracket.
const mathMarks = `\^_=+<>{}`

type mathParser struct{}

func (mathParser) Trigger() []byte { return []byte{'$', '\\'} }

func (mathParser) Parse(_ ast.Node, block text.Reader, _ parser.Context) ast.Node {
	line, _ := block.PeekLine()
	switch {
	case bytes.HasPrefix(line, []byte(`\(`)):
		return formula(block, 2, `\)`)
	case bytes.HasPrefix(line, []byte(`\[`)):
		return formula(block, 2, `\]`)
	case bytes.HasPrefix(line, []byte("$$")):
		return formula(block, 2, "$$")
	case line[0] == '$':
		end := dollarEnd(line)
		if end < 0 {
			return nil
		}
		block.Advance(end)
		return &mathNode{source: bytes.Clone(line[:end])}
	}
	return nil
}

// dollarEnd is the length of a `$formula$` at the front of a line, or -1: money and shell variables are no formulas.
func dollarEnd(line []byte) int {
	if len(line) < 3 || unicode.IsSpace(rune(line[1])) {
		return -1
	}
	n := bytes.IndexByte(line[1:min(len(line), mathReach)], '$')
	if n < 1 {
		return -1
	}
	inner, after := line[1:1+n], byte(' ')
	if 2+n < len(line) {
		after = line[2+n]
	}
	if c := inner[n-1]; c == ' ' || c == '\t' || c == '\\' || wordByte(after) || bytes.IndexByte(inner, '`') >= 0 {
		return -1
	}
	if n > 1 && !bytes.ContainsAny(inner, mathMarks) {
		return -1
	}
	return n + 2
}

// formula reads up to closer, over line ends if need be.
func formula(block text.Reader, opener int, closer string) ast.Node {
	var source []byte
	for skip := opener; len(source) < mathReach; skip = 0 {
		line, _ := block.PeekLine()
		if line == nil || len(line) < skip {
			return nil
		}
		line = line[:min(len(line), mathReach)]
		if end := bytes.Index(line[skip:], []byte(closer)); end >= 0 {
			source = append(source, line[:skip+end+len(closer)]...)
			inner := source[opener : len(source)-len(closer)]
			if !bytes.ContainsAny(inner, mathMarks) || bytes.IndexByte(inner, '`') >= 0 {
				return nil
			}
			block.Advance(skip + end + len(closer))
			return &mathNode{source: source}
		}
		source = append(source, line...)
		block.AdvanceLine()
	}
	return nil
}
