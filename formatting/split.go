package formatting

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rivo/uniseg"
)

// minLimit is the least length that a splitter accepts: below it a single emoji sequence would not fit.
const minLimit = 64

// split cuts a text into messages of at most limit units and MaxEntities entities. entities are ordered as in Message.
// It cuts, in this order of preference, between paragraphs, lines, words, grapheme clusters; white space at a cut is
// dropped, everything else is in exactly one message. Messages in which nothing is visible are left out.
func split(text string, entities []Entity, limit int) []Message {
	s := splitter{text: text, next: entities, limit: clampLimit(limit)}
	var out []Message
	for {
		m, ok := s.cut(true)
		if !ok {
			return out
		}
		if m.Text != "" {
			out = append(out, m)
		}
	}
}

func clampLimit(limit int) int {
	if limit <= 0 || limit > MaxLength {
		return MaxLength
	}
	return max(limit, minLimit)
}

// splitter takes messages off the front of a text. Its cost is proportional to what it takes.
type splitter struct {
	text  string   // what has not been taken
	at    int      // the offset of text in the units of the entities
	carry []Entity // entities that began before text or begin with it
	next  []Entity // entities that begin within text
	limit int
}

// cut takes one message off the front. It reports false if nothing is left, or, unless last says that no more text will
// follow, if the end of the message could still depend on what follows. A message with an empty text is one that no
// reader would see.
func (s *splitter) cut(last bool) (Message, bool) {
	s.skipSpace(last)
	if s.text == "" {
		return Message{}, false
	}
	window, size, whole := s.window()
	if whole && !last {
		return Message{}, false
	}
	if !whole {
		window, size = s.breakpoint(window, size)
	}
	return s.take(window, size), true
}

// skipSpace drops white space before the next message. Inside code it stays: there it is indentation.
func (s *splitter) skipSpace(last bool) {
	s.begin()
	if slices.ContainsFunc(s.carry, func(e Entity) bool { return e.verbatim() && !s.blankRest(e, last) }) {
		return
	}
	s.carry = slices.DeleteFunc(s.carry, Entity.verbatim)
	n := len(s.text) - len(strings.TrimLeft(s.text, " \t\n"))
	for _, e := range s.next {
		if e.Offset-s.at >= n {
			break
		}
		if e.verbatim() {
			n = e.Offset - s.at
			break
		}
	}
	s.text, s.at = s.text[n:], s.at+n
	s.begin()
	s.carry = slices.DeleteFunc(s.carry, func(e Entity) bool { return e.end() <= s.at })
}

// begin moves the entities that begin at or before the front of the text to carry.
func (s *splitter) begin() {
	n := 0
	for n < len(s.next) && s.next[n].Offset <= s.at {
		n++
	}
	s.carry, s.next = append(s.carry, s.next[:n]...), s.next[n:]
}

// blankRest reports whether what is left of an entity is white space only, and, unless last, cannot go on.
func (s *splitter) blankRest(e Entity, last bool) bool {
	at := s.at
	for i := 0; at < e.end(); i, at = i+1, at+1 {
		if i == len(s.text) {
			return last
		}
		if c := s.text[i]; c != ' ' && c != '\t' && c != '\n' {
			return false
		}
	}
	return last || at-s.at < len(s.text)
}

// window is the longest front of the text that fits: its bytes and units, and whether that is all of it.
func (s *splitter) window() (bytes, size int, whole bool) {
	limit := s.limit
	if room := MaxEntities - len(s.carry); len(s.next) > room {
		limit = min(limit, s.next[room].Offset-s.at)
	}
	for i, r := range s.text {
		if size+units(r) > limit {
			return i, size, false
		}
		size += units(r)
	}
	return len(s.text), size, true
}

// candidate is a place to cut: a position in bytes and in units.
type candidate struct{ byte, unit int }

// breakpoint chooses where to cut within a window that is shorter than the text.
func (s *splitter) breakpoint(window, size int) (int, int) {
	var paragraph, line, word candidate
	unit, entity, preEnd := 0, 0, 0
	for _, e := range s.carry {
		if e.Type == TypePre {
			preEnd = max(preEnd, e.end()-s.at)
		}
	}
	text := s.text[:window]
	for i, r := range text {
		unit += units(r)
		for entity < len(s.next) && s.next[entity].Offset-s.at < unit {
			if e := s.next[entity]; e.Type == TypePre {
				preEnd = max(preEnd, e.end()-s.at)
			}
			entity++
		}
		here := candidate{i + utf8.RuneLen(r), unit}
		switch {
		case r == '\n':
			line = here
			if i > 0 && text[i-1] == '\n' && unit > preEnd {
				paragraph = here
			}
		case (r == ' ' || r == '\t') && !s.extends(here.byte):
			word = here
		}
	}
	half := size / 2
	switch {
	case paragraph.unit > half:
		return paragraph.byte, paragraph.unit
	case line.unit > half:
		return line.byte, line.unit
	case paragraph.unit > size/4:
		return paragraph.byte, paragraph.unit
	case word.unit > half:
		return s.beforeEntity(word, half)
	case line.unit > size/8:
		return line.byte, line.unit
	case word.unit > size/8:
		return s.beforeEntity(word, half)
	}
	b, u := s.cluster(window, size)
	return s.beforeEntity(candidate{b, u}, half)
}

// extends reports whether the character at a position belongs to the one before it.
func (s *splitter) extends(at int) bool {
	r, _ := utf8.DecodeRuneInString(s.text[at:])
	return r == 0x200d || unicode.In(r, unicode.Mn, unicode.Me, unicode.Mc)
}

// beforeEntity moves a cut that falls inside a link, a piece of code or a date to the start of it, if that is past low.
func (s *splitter) beforeEntity(c candidate, low int) (int, int) {
	for _, e := range s.next {
		start := e.Offset - s.at
		if start >= c.unit {
			break
		}
		if start <= low || e.end()-s.at <= c.unit || e.Type != TypeCode && e.Type != TypeTextLink && e.Type != TypeDateTime {
			continue
		}
		unit := 0
		for i, r := range s.text {
			if unit == start {
				return i, start
			}
			unit += units(r)
		}
	}
	return c.byte, c.unit
}

// cluster is the last border between grapheme clusters in a window, or its end if one cluster fills it.
func (s *splitter) cluster(window, size int) (int, int) {
	from := window
	for from > 1 && (s.text[from-1] >= utf8.RuneSelf || s.text[from] >= utf8.RuneSelf) {
		from--
	}
	if from <= 1 {
		from = 0
	}
	// Between two ASCII characters there is always a border, so segmentation can start there.
	best, rest, state := from, s.text[from:min(len(s.text), window+utf8.UTFMax)], -1
	for at := from; rest != ""; {
		var cluster string
		cluster, rest, _, state = uniseg.FirstGraphemeClusterInString(rest, state)
		if at += len(cluster); at > window {
			break
		}
		best = at
	}
	if best == 0 {
		return window, size
	}
	return best, size - Len(s.text[best:window])
}

// take removes the front of the text and makes a message of it.
func (s *splitter) take(bytes, size int) Message {
	text := strings.TrimRight(s.text[:bytes], " \t\n")
	start, end := s.at, s.at+size-(bytes-len(text))
	m := Message{Text: text}
	var carry []Entity
	add := func(e Entity) {
		if e.end() > s.at+size {
			carry = append(carry, e)
		}
		from, to := max(e.Offset, start), min(e.end(), end)
		if from < to {
			e.Offset, e.Length = from-start, to-from
			m.Entities = append(m.Entities, e)
		}
	}
	for _, e := range s.carry {
		add(e)
	}
	n := 0
	for n < len(s.next) && s.next[n].Offset < s.at+size {
		add(s.next[n])
		n++
	}
	s.carry, s.next = carry, s.next[n:]
	s.text, s.at = s.text[bytes:], s.at+size
	if Blank(text) {
		return Message{}
	}
	return m
}
