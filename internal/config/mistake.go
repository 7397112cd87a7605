package config

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// mistakeError is one thing that is wrong, said in one line.
type mistakeError struct {
	// Key is what it is about, as the file spells it.
	Key string
	// Source is where the value stands: the file or the environment variable. Empty if there is no value.
	Source string
	// Value is what stands there, cut and quoted; Mask for a secret; empty where there is nothing to show.
	Value string
	// Allowed says what may stand there instead.
	Allowed string
}

// maxShown bounds the part of a wrong value that is shown.
const maxShown = 80

// Error returns the line.
func (m *mistakeError) Error() string {
	var b strings.Builder
	b.WriteString("config: ")
	if m.Source != "" {
		b.WriteString(oneLine(cut(m.Source)) + ": ")
	}
	if m.Key != m.Source {
		b.WriteString(oneLine(cut(m.Key)))
		if m.Value != "" {
			b.WriteString(" = ")
		} else {
			b.WriteString(": ")
		}
	}
	switch {
	case m.Value == Mask:
		b.WriteString(Mask + ": ")
	case m.Value != "":
		fmt.Fprintf(&b, "%q: ", cut(m.Value))
	}
	b.WriteString(oneLine(m.Allowed))
	return b.String()
}

func cut(s string) string {
	if utf8.RuneCountInString(s) <= maxShown {
		return s
	}
	return string([]rune(s)[:maxShown]) + "…"
}

// oneLine keeps a hostile key or path from looking like a second line.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || (r >= 0x80 && r < 0xa0) || r == 0x2028 || r == 0x2029 || r == utf8.RuneError {
			return '?'
		}
		return r
	}, s)
}
