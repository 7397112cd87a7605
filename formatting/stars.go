package formatting

import (
	"bytes"
	"unicode"
	"unicode/utf8"

	"github.com/yuin/goldmark/ast"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

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

// strikeParser reads `~~`, and only that: a single tilde is a home folder or "about" (`~/.ssh`, `~5`).
type strikeParser struct{}

func (strikeParser) Trigger() []byte { return []byte{'~'} }

type strikeProcessor struct{}

func (strikeProcessor) IsDelimiter(b byte) bool { return b == '~' }

func (strikeProcessor) CanOpenCloser(opener, closer *parser.Delimiter) bool {
	return opener.Char == closer.Char && opener.Length == closer.Length
}

func (strikeProcessor) OnMatch(int) ast.Node { return extast.NewStrikethrough() }

func (strikeParser) Parse(_ ast.Node, block text.Reader, pc parser.Context) ast.Node {
	before := block.PrecendingCharacter()
	line, segment := block.PeekLine()
	node := parser.ScanDelimiter(line, before, 2, strikeProcessor{})
	if node == nil || node.OriginalLength != 2 || before == '~' {
		return nil
	}
	node.Segment = segment.WithStop(segment.Start + node.OriginalLength)
	block.Advance(node.OriginalLength)
	pc.PushDelimiter(node)
	return node
}
