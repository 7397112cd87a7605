package formatting

import (
	"bytes"
	"slices"
	"strings"

	"github.com/yuin/goldmark/ast"
)

// Stream renders Markdown that arrives in pieces. What can no longer change is rendered once: every top-level block that
// is followed by another, the finished items of a list, the lines of an open fence. So the cost of following a text is
// proportional to its length, however often it is looked at; a single paragraph, table, quote or list item that grows
// very large is looked at again only each time it has grown by an eighth.
//
// A definition (`[label]: address`, a footnote) can change text before it. A snapshot does not go back for that, Finish
// does.
//
// A Stream is not safe for concurrent use.
type Stream struct {
	limit   int
	raw     strings.Builder // all that was appended
	line    []byte          // raw: the line that has not ended
	open    string          // cleaned whole lines from the start of the last block on
	lines   strings.Builder // cleaned whole lines after open
	b       Builder         // what is rendered for good and not in settled
	r       renderer
	settled []Message
	cached  []Message // the tail as last rendered
	seen    int       // the length of open and line when cached was made
}

// Snapshot is a stream's rendering at one moment.
type Snapshot struct {
	// Settled are the messages that no further text will change, definitions apart. They only ever grow in number.
	Settled []Message
	// Tail are the messages after them, complete as if the text ended here: usually one or two. It is empty only if
	// nothing visible has come since the last settled message.
	Tail []Message
}

// NewStream starts a stream. o.Stream is implied until Finish.
func NewStream(o Options) *Stream {
	s := &Stream{limit: clampLimit(o.Limit), seen: -1}
	s.r.b, s.r.partial = &s.b, partSize
	return s
}

// Append adds to the text. A piece may end anywhere, within a character too.
func (s *Stream) Append(markdown string) {
	s.raw.WriteString(markdown)
	for {
		i := strings.IndexByte(markdown, '\n')
		if i < 0 {
			s.line = append(s.line, markdown...)
			return
		}
		s.line = append(s.line, markdown[:i+1]...)
		s.lines.WriteString(cleanLine(string(s.line)))
		s.line, markdown = s.line[:0], markdown[i+1:]
	}
}

// Snapshot renders what has come so far, with open inline markup closed.
func (s *Stream) Snapshot() Snapshot {
	if size := len(s.open) + s.lines.Len() + len(s.line); s.stale(size) {
		s.freeze()
		s.seen = len(s.open) + len(s.line)
		b := Builder{text: slices.Clone(s.b.text), units: s.b.units, entities: slices.Clone(s.b.entities)}
		r := s.r
		r.b = &b
		r.document(closeOpen(s.open+cleanLine(wholeRunes(string(s.line)))), true)
		s.cached = split(string(b.text), b.sorted(), s.limit)
	}
	return Snapshot{Settled: slices.Clip(s.settled), Tail: s.cached}
}

// largeTail is the size of an unfinished block, in bytes, from which on it is not rendered at every snapshot.
const largeTail = 16 << 10

// stale reports whether the tail has to be rendered again.
func (s *Stream) stale(size int) bool {
	if s.seen < largeTail {
		return size != s.seen
	}
	return size >= s.seen+s.seen/8
}

// Finish renders the whole text as finished: what Render returns for it. Nothing may be appended afterwards.
func (s *Stream) Finish() []Message {
	s.freeze()
	s.r.document(s.open+cleanLine(string(s.line)), true)
	if s.r.defines {
		return Render(s.raw.String(), Options{Limit: s.limit})
	}
	return append(s.settled, split(string(s.b.text), s.b.sorted(), s.limit)...)
}

// freeze renders what can no longer change and settles the messages that it fills.
func (s *Stream) freeze() {
	if s.lines.Len() == 0 {
		return
	}
	source := s.open + s.lines.String()
	s.lines.Reset()
	s.open = source[s.r.document(source, false):]
	s.open, s.r.fence = s.r.fence+s.open, ""
	if strings.Trim(s.open, " \t\n") == "" {
		s.r.lead = true
		s.open = s.open[:min(len(s.open), strings.LastIndexByte(s.open, '\n')+1)]
		s.open = s.open[max(0, len(s.open)-1):]
	}
	if s.b.units <= s.limit {
		return
	}
	rest := splitter{text: string(s.b.text), next: s.b.sorted(), limit: s.limit}
	for {
		m, ok := rest.cut(false)
		if !ok {
			break
		}
		if m.Text != "" {
			s.settled = append(s.settled, m)
		}
	}
	s.b = Builder{text: []byte(rest.text), units: s.b.units - rest.at}
	for _, e := range append(rest.carry, rest.next...) {
		from := max(e.Offset, rest.at)
		e.Offset, e.Length = from-rest.at, e.end()-from
		s.b.entities = append(s.b.entities, e)
	}
}

// partSize is the size of an unfinished list or fence, in bytes, from which on it is rendered in parts.
const partSize = 2 << 10

// part renders the finished parts of an unfinished block that begins at start, and returns the length of their source. It
// leaves the source so that the rest, read by itself, is the rest of the block.
func (r *renderer) part(n ast.Node, start int) int {
	if len(r.source)-start < r.partial || n.NextSibling() != nil {
		return 0
	}
	if fence, ok := n.(*ast.FencedCodeBlock); ok {
		return r.fencePart(fence, start)
	}
	list, ok := n.(*ast.List)
	if !ok || list.ChildCount() < 2 {
		return 0
	}
	last := list.LastChild()
	next := r.lineStart(last.Pos())
	if next <= start || list.IsOrdered() && list.Start == 0 && r.number == 0 {
		return 0
	}
	number := list.Start + list.ChildCount() - 1
	if r.number > 0 {
		number = r.number + list.ChildCount() - 1
	}
	list.RemoveChild(list, last)
	r.separate(r.lead)
	r.block(list)
	r.lead, r.number = false, number
	return next - start
}

// fencePart is part for a fence: it takes the lines before the last that is not blank.
func (r *renderer) fencePart(n *ast.FencedCodeBlock, start int) int {
	lines := n.Lines()
	last := lines.Len() - 1
	for last >= 0 {
		if s := lines.At(last); !Blank(string(s.Value(r.source))) {
			break
		}
		last--
	}
	var code strings.Builder
	for i := range max(last, 0) {
		s := lines.At(i)
		code.Write(s.Value(r.source))
	}
	if Blank(code.String()) {
		return 0
	}
	opener := string(r.source[start : start+bytes.IndexByte(r.source[start:], '\n')+1])
	if !r.goOn {
		r.separate(r.lead)
		r.preText(language(n, r.source), code.String())
		r.b.extend(newlines(code.String()))
	} else {
		r.b.extend(code.String())
	}
	r.fence, r.goOn = opener, true
	return r.lineStart(lines.At(last).Start) - start
}

// newlines is the run of line ends at the end of s.
func newlines(s string) string { return s[len(strings.TrimRight(s, "\n")):] }

// wholeRunes leaves out a character that has not fully arrived.
func wholeRunes(s string) string {
	for n := 1; n <= min(3, len(s)); n++ {
		c := s[len(s)-n]
		if c < 0x80 {
			return s
		}
		if c >= 0xc0 {
			if c >= 0xf0 && n < 4 || c >= 0xe0 && n < 3 || n < 2 {
				return s[:len(s)-n]
			}
			return s
		}
	}
	return s
}
