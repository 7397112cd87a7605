package formatting

import (
	"strings"
	"unicode/utf8"
)

// clean makes text out of what a terminal program wrote: escape sequences and control characters are gone, text that a
// carriage return overwrote is gone, invalid UTF-8 is U+FFFD. Each line is cleaned by itself, so the result for a text is
// the results for its lines.
func clean(s string) string {
	if !dirty(s) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	for line := range strings.Lines(s) {
		b.WriteString(cleanLine(line))
	}
	return b.String()
}

// dirty reports whether cleaning would change s.
func dirty(s string) bool {
	for i := 0; i < len(s); {
		if c := s[i]; c < utf8.RuneSelf {
			if c < ' ' && c != '\n' && c != '\t' || c == 0x7f {
				return true
			}
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && size == 1 || r < 0xa0 {
			return true
		}
		i += size
	}
	return false
}

// cleanLine cleans one line, with or without its line end.
func cleanLine(line string) string {
	if !dirty(line) {
		return line
	}
	text, hasEnd := strings.CutSuffix(line, "\n")
	text = strings.TrimRight(text, "\r")
	out := make([]byte, 0, len(line))
	start := 0 // where the text after the last carriage return begins
	returned := false
	put := func(p string) {
		if returned {
			out, returned = out[:start], false
		}
		out = append(out, p...)
	}
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		switch {
		case r == 0x1b || r == 0x9b || r == 0x9d || r == 0x90:
			i += escapeLen(text[i:])
			continue
		case r == '\r':
			returned = true
		case r == '\b':
			if !returned && len(out) > start {
				_, n := utf8.DecodeLastRune(out)
				out = out[:len(out)-n]
			}
		case r < ' ' && r != '\t' || r >= 0x7f && r < 0xa0:
		default:
			put(string(r))
		}
		i += size
	}
	if hasEnd {
		out = append(out, '\n')
	}
	return string(out)
}

// escapeLen is the length of the escape sequence that s begins with (ECMA-48: CSI, OSC and other strings, and the short
// ones). One that does not end within s reaches to its end, except that a lone ESC is only itself.
func escapeLen(s string) int {
	r, n := utf8.DecodeRuneInString(s)
	kind := byte(0)
	switch r {
	case 0x9b:
		kind = '['
	case 0x9d, 0x90:
		kind = ']'
	default:
		if n == len(s) {
			return n
		}
		kind = s[n]
		n++
	}
	switch kind {
	case '[':
		for ; n < len(s); n++ {
			if c := s[n]; c >= 0x40 && c <= 0x7e {
				return n + 1
			} else if c < 0x20 || c > 0x7e {
				return n
			}
		}
		return n
	case ']', 'P', 'X', '^', '_':
		for ; n < len(s); n++ {
			switch {
			case s[n] == '\a':
				return n + 1
			case s[n] == 0x1b && n+1 < len(s) && s[n+1] == '\\':
				return n + 2
			case strings.HasPrefix(s[n:], "\u009c"):
				return n + 2
			}
		}
		return n
	}
	for ; n <= len(s) && kind >= 0x20 && kind <= 0x2f; n++ {
		if n == len(s) {
			return n
		}
		kind = s[n]
	}
	if kind >= utf8.RuneSelf || kind < ' ' {
		return 1
	}
	return n
}
