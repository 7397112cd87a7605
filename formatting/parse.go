package formatting

import (
	"bytes"
	"sync"
	"unicode"
	"unicode/utf8"

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
		),
		parser.WithParagraphTransformers(parser.DefaultParagraphTransformers()...),
	)
	goldmark.New(goldmark.WithParser(p), goldmark.WithExtensions(
		extension.Table, extension.Strikethrough, extension.TaskList, extension.Linkify))
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
	if n > 1 && bytes.IndexAny(inner, mathMarks) < 0 {
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
		if end := bytes.Index(line[skip:], []byte(closer)); end >= 0 {
			source = append(source, line[:skip+end+len(closer)]...)
			inner := source[opener : len(source)-len(closer)]
			if bytes.IndexAny(inner, mathMarks) < 0 || bytes.IndexByte(inner, '`') >= 0 {
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

// starParser reads runs of `*` and `_`. For stars it is stricter than CommonMark, which pairs the stars of
// `*args, *.go, 2**10` and eats them.
type starParser struct{}

func (starParser) Trigger() []byte { return []byte{'*', '_'} }

type starProcessor struct{}

func (starProcessor) IsDelimiter(b byte) bool { return b == '*' || b == '_' }

func (starProcessor) CanOpenCloser(opener, closer *parser.Delimiter) bool {
	return opener.Char == closer.Char
}

func (starProcessor) OnMatch(consumes int) ast.Node { return ast.NewEmphasis(consumes) }

func (starParser) Parse(_ ast.Node, block text.Reader, pc parser.Context) ast.Node {
	before := block.PrecendingCharacter()
	line, segment := block.PeekLine()
	node := parser.ScanDelimiter(line, before, 1, starProcessor{})
	if node == nil {
		return nil
	}
	if node.Char == '*' {
		source := block.Source()
		judgeStars(node, source[:segment.Start], before, line[node.OriginalLength:])
	}
	node.Segment = segment.WithStop(segment.Start + node.OriginalLength)
	block.Advance(node.OriginalLength)
	pc.PushDelimiter(node)
	return node
}

// starReach is how far a word with stars around it may reach, in bytes.
const starReach = 256

// judgeStars narrows what a run of stars may do. A run opens emphasis after a space or an opening mark, and closes it
// before a space or a closing mark; a run that touches a word, dot or slash on the wrong side does so only if its partner
// stands around the same word (`**API**s`, `**src/**`), unless that word looks like part of a path pattern
// (`**/vendor/**`).
func judgeStars(d *parser.Delimiter, before []byte, prev rune, after []byte) {
	next, _ := utf8.DecodeRune(after)
	if len(after) == 0 {
		next = ' '
	}
	if d.CanOpen && (asciiWord(prev) || prev == '/' || prev == '.' || next == '/' || next == '.') {
		d.CanOpen = !asciiWord(prev) && wordPartner(after, d.OriginalLength, false)
	}
	if !d.CanClose {
		return
	}
	pattern := (next == '.' || next == '/') && len(after) > 1 && !unicode.IsSpace(rune(after[1]))
	if asciiWord(next) || prev == '/' || pattern || prev == '.' && !sentenceDot(before) {
		d.CanClose = !unicode.IsDigit(next) && wordPartner(before, d.OriginalLength, true)
	}
}

// wordPartner reports whether a run of n stars stands at the other end of the word that text begins with or, looking
// back, ends with.
func wordPartner(text []byte, n int, back bool) bool {
	var word []byte
	run := 0
	if back {
		text = text[max(0, len(text)-starReach):]
		i := bytes.LastIndexByte(text, '*')
		if i < 0 {
			return false
		}
		for word = text[i+1:]; i-run >= 0 && text[i-run] == '*'; {
			run++
		}
	} else {
		text = text[:min(len(text), starReach)]
		i := bytes.IndexByte(text, '*')
		if i < 0 {
			return false
		}
		for word = text[:i]; i+run < len(text) && text[i+run] == '*'; {
			run++
		}
	}
	if run != n || len(word) == 0 || bytes.ContainsAny(word, " \t\n") {
		return false
	}
	path := func(c byte) bool { return c == '/' || c == '.' }
	return !path(word[0]) || !path(word[len(word)-1])
}

// sentenceDot reports whether the dot at the end of text follows a word, so that it ends a sentence.
func sentenceDot(text []byte) bool {
	if len(text) < 2 {
		return false
	}
	c := text[len(text)-2]
	return c > ' ' && c != '(' && c != '['
}

func asciiWord(r rune) bool { return r < utf8.RuneSelf && wordByte(byte(r)) }

func wordByte(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_'
}
