package formatting

import (
	"fmt"
	"iter"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Sizes above which blanks are shown as a count: they could push what follows out of sight.
const (
	maxBlanks     = 8  // spaces and tabs within a line
	maxIndention  = 40 // spaces and tabs at the start of a line
	maxBlankLines = 3
)

// Visible shows a text so that nothing in it can hide. Printable ASCII stays as it is, and so do letters, marks and
// symbols of all scripts; everything that has no shape of its own or changes the order of what is shown (bidirectional,
// zero-width and control characters, spaces other than U+0020, unassigned and private ones) appears as `⟨U+202E⟩`, a byte
// that is not UTF-8 as `⟨0xFF⟩`, and long runs of blanks as `⟨300 spaces⟩` or `⟨300 blank lines⟩`. The brackets
// themselves are escaped, so an escape cannot be forged, and every byte of the text is accounted for.
//
// Letters that look alike (Latin and Cyrillic a) are not told apart.
func Visible(s string) string {
	var b strings.Builder
	for piece := range pieces(s, false) {
		b.WriteString(piece)
	}
	return b.String()
}

// Inline is Visible for a place within a line: line ends appear as ⏎, and what goes beyond about limit characters is
// replaced by its count, `… (+123 characters)`.
func Inline(s string, limit int) string {
	var b strings.Builder
	shown, taken := 0, 0
	for piece, source := range pieces(s, true) {
		size := utf8.RuneCountInString(piece)
		if shown+size > limit {
			fmt.Fprintf(&b, "… (+%d characters)", utf8.RuneCountInString(s)-taken)
			break
		}
		b.WriteString(piece)
		shown, taken = shown+size, taken+source
	}
	return b.String()
}

// pieces yields the visible forms of the parts of s, with the number of characters that each stands for.
func pieces(s string, inline bool) iter.Seq2[string, int] {
	return func(yield func(string, int) bool) {
		lineStart := true
		for i := 0; i < len(s); {
			if c := s[i]; c == ' ' || c == '\n' || c == '\t' {
				n := len(s[i:]) - len(strings.TrimLeft(s[i:], " \n\t"))
				if !blanks(s[i:i+n], lineStart, inline, yield) {
					return
				}
				i += n
				lineStart = false
				continue
			}
			r, size := utf8.DecodeRuneInString(s[i:])
			piece := s[i : i+size]
			switch {
			case r == utf8.RuneError && size == 1:
				piece = fmt.Sprintf("⟨0x%02X⟩", s[i])
			case hidden(r) || r == '⟨' || r == '⟩' || inline && r == '⏎':
				piece = fmt.Sprintf("⟨U+%04X⟩", r)
			}
			if !yield(piece, 1) {
				return
			}
			i += size
			lineStart = false
		}
	}
}

// hidden reports whether a character has no shape of its own or moves others.
func hidden(r rune) bool {
	return r != ' ' && (invisible(r) || !unicode.IsPrint(r)) || r == '\u2800' || unicode.Is(unicode.Variation_Selector, r)
}

// blanks yields the visible form of a run of spaces, tabs and line ends.
func blanks(run string, lineStart, inline bool, yield func(string, int) bool) bool {
	lines := strings.Count(run, "\n")
	last := strings.LastIndexByte(run, '\n') + 1
	if lines > maxBlankLines+1 {
		first := strings.IndexByte(run, '\n')
		if !spaces(run[:first], lineStart, inline, yield) {
			return false
		}
		inner := run[first:last]
		note := fmt.Sprintf("⟨%d blank lines⟩", lines-1)
		if other := len(inner) - lines; other > 0 {
			note = fmt.Sprintf("⟨%d blank lines with %d blanks⟩", lines-1, other)
		}
		if inline {
			note = "⏎" + note + "⏎"
		} else {
			note = "\n" + note + "\n"
		}
		if !yield(note, len(inner)) {
			return false
		}
		return spaces(run[last:], true, inline, yield)
	}
	for line := range strings.Lines(run) {
		text, end := strings.CutSuffix(line, "\n")
		if !spaces(text, lineStart, inline, yield) {
			return false
		}
		lineStart = end
		if !end {
			continue
		}
		piece := "\n"
		if inline {
			piece = "⏎"
		}
		if !yield(piece, 1) {
			return false
		}
	}
	return true
}

// spaces yields the visible form of a run of spaces and tabs.
func spaces(run string, lineStart, inline bool, yield func(string, int) bool) bool {
	limit := maxBlanks
	if lineStart && !inline {
		limit = maxIndention
	}
	if len(run) <= limit {
		for _, r := range run {
			piece := string(r)
			if inline && r == '\t' {
				piece = "⟨U+0009⟩"
			}
			if !yield(piece, 1) {
				return false
			}
		}
		return true
	}
	note := fmt.Sprintf("⟨%d spaces⟩", len(run))
	if tabs := strings.Count(run, "\t"); tabs == len(run) {
		note = fmt.Sprintf("⟨%d tabs⟩", tabs)
	} else if tabs > 0 {
		note = fmt.Sprintf("⟨%d blanks, %d of them tabs⟩", len(run), tabs)
	}
	return yield(note, len(run))
}
