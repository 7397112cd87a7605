package formatting

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// closeOpen completes the inline markup that is open at the end of an unfinished text, for a preview: open code, bold and
// strikethrough end there, half a link is its label, and markers with nothing after them yet are left out. Fences need no
// help, except that half a closing fence is not yet shown as code.
func closeOpen(source string) string {
	fence, from := openFence(source)
	if fence != "" {
		last := strings.LastIndexByte(source, '\n') + 1
		if line := strings.TrimSpace(source[last:]); last > from && line != "" && strings.Trim(line, fence[:1]) == "" {
			return source[:last]
		}
		return source
	}
	start := from
	if i := strings.LastIndex(source[from:], "\n\n"); i >= 0 {
		start = from + i + 2
	}
	for i := start; i < len(source); {
		end := strings.IndexByte(source[i:], '\n')
		if blockLine(strings.TrimLeft(source[i:], " \t")) {
			start = i
		}
		if end < 0 {
			break
		}
		i += end + 1
	}
	return source[:start] + closeInline(source[start:])
}

// openFence returns the fence that is open at the end of a text, and where the text after the last fence line begins.
func openFence(source string) (fence string, after int) {
	at := 0
	for line := range strings.Lines(source) {
		at += len(line)
		text := strings.TrimLeft(line, " \t>")
		if fence == "" {
			text = strings.TrimLeft(text, "-+*0123456789.) \t")
		}
		n := len(text) - len(strings.TrimLeft(text, "`"))
		if n == 0 {
			n = len(text) - len(strings.TrimLeft(text, "~"))
		}
		rest := text[n:]
		switch {
		case n < 3:
		case fence == "" && (text[0] != '`' || !strings.Contains(rest, "`")):
			fence, after = text[:n], at
		case fence != "" && strings.HasPrefix(text[:n], fence) && strings.TrimSpace(rest) == "":
			fence, after = "", at
		}
	}
	return fence, after
}

// blockLine reports whether a line begins a block of its own, so that inline markup before it cannot reach into it.
func blockLine(line string) bool {
	if line == "" {
		return false
	}
	switch line[0] {
	case '#', '>', '|':
		return true
	case '-', '+', '*':
		return len(line) > 1 && line[1] == ' '
	}
	digits := len(line) - len(strings.TrimLeft(line, "0123456789"))
	return digits > 0 && digits < 10 && len(line) > digits+1 && strings.ContainsRune(".)", rune(line[digits])) && line[digits+1] == ' '
}

// closeInline completes the inline markup of the last lines of a text.
func closeInline(s string) string {
	var open []string // bold and strikethrough that have begun
	label := -1       // where the last label begins
	for i := 0; i < len(s); {
		c, run := s[i], 1
		if c == '`' || c == '*' || c == '~' {
			run = len(s[i:]) - len(strings.TrimLeft(s[i:], s[i:i+1]))
		}
		switch {
		case c == '\\':
			i += 2
			continue
		case c == '`':
			end := codeEnd(s[i+run:], run)
			if end < 0 {
				return closeCode(s, i, run, open)
			}
			i += run + end
			continue
		case c == '[':
			label = i
		case c == ']' && label >= 0 && strings.HasPrefix(s[i:], "]("):
			if !strings.ContainsAny(s[i:], ")\n") {
				head := strings.TrimSuffix(s[:label], "!")
				return closeInline(head + s[label+1:i])
			}
		case c == '*' && run >= 2 || c == '~' && run == 2:
			marker := s[i : i+2]
			prev, _ := utf8.DecodeLastRuneInString(s[:i])
			next, _ := utf8.DecodeRuneInString(s[i+run:])
			switch {
			case i+run == len(s) && (len(open) == 0 || open[len(open)-1] != marker):
				return finish(s[:i], open)
			case len(open) > 0 && open[len(open)-1] == marker && i > 0 && !unicode.IsSpace(prev):
				open = open[:len(open)-1]
			case run == 2 && !slices.Contains(open, marker) && !unicode.IsSpace(next) && (i == 0 || !wordRune(prev)):
				open = append(open, marker)
			}
		}
		i += run
	}
	if half := strings.TrimRight(s, "*~"); len(open) > 0 && len(half) == len(s)-1 {
		s = half
	}
	return finish(s, open)
}

func wordRune(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }

// codeEnd is where a run of n backticks ends in s, or -1.
func codeEnd(s string, n int) int {
	for i := 0; i < len(s); {
		if s[i] != '`' {
			i++
			continue
		}
		run := len(s[i:]) - len(strings.TrimLeft(s[i:], "`"))
		i += run
		if run == n {
			return i
		}
	}
	return -1
}

// closeCode completes code that begins with a run of backticks at a position.
func closeCode(s string, at, run int, open []string) string {
	body := strings.TrimRight(s[at+run:], "` \t\n")
	if body == "" {
		return finish(s[:at], open)
	}
	return finish(s[:at+run]+body+s[at:at+run], open)
}

// finish appends the closing markers of what is open.
func finish(s string, open []string) string {
	if len(open) == 0 {
		return s
	}
	s = strings.TrimRight(s, " \t\n")
	for _, o := range slices.Backward(open) {
		if rest, bare := strings.CutSuffix(s, o); bare {
			s = strings.TrimRight(rest, " \t\n")
			continue
		}
		s += o
	}
	return s
}
