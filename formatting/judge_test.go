package formatting

import (
	"fmt"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// judge says what Telegram would refuse or silently change about a message, and nil if nothing. It is written from the
// server's rules alone and shares no code with the renderer.
func judge(m Message) error {
	if !utf8.ValidString(m.Text) {
		return fmt.Errorf("text is not UTF-8")
	}
	if n := utf8.RuneCountInString(m.Text); n > 4096 {
		return fmt.Errorf("text has %d code points", n)
	}
	seen := false
	for _, r := range m.Text {
		if r < ' ' && r != '\n' && r != '\t' || r == 0x7f {
			return fmt.Errorf("text holds control character %U", r)
		}
		seen = seen || unicode.IsGraphic(r) && !unicode.IsSpace(r) && !strings.ContainsRune("\u2800\u3164\u115f\u1160\uffa0\ufffc\u034f\u17b4\u17b5", r) && !unicode.Is(unicode.Variation_Selector, r)
	}
	if !seen {
		return fmt.Errorf("text is empty: %q", m.Text)
	}
	wide := utf16.Encode([]rune(m.Text))
	if len(wide) > 4096 {
		return fmt.Errorf("text has %d units", len(wide))
	}
	if len(m.Entities) > 100 {
		return fmt.Errorf("%d entities", len(m.Entities))
	}
	for i, e := range m.Entities {
		if err := judgeEntity(e, wide); err != nil {
			return fmt.Errorf("entity %d %+v: %w", i, e, err)
		}
		if i > 0 && m.Entities[i-1].Offset > e.Offset {
			return fmt.Errorf("entity %d begins before the one before it", i)
		}
		for j, o := range m.Entities[:i] {
			if err := judgePair(o, e); err != nil {
				return fmt.Errorf("entities %d %+v and %d %+v: %w", j, o, i, e, err)
			}
		}
	}
	return nil
}

func judgeEntity(e Entity, wide []uint16) error {
	if e.Offset < 0 || e.Length <= 0 || e.Offset+e.Length > len(wide) {
		return fmt.Errorf("outside of the text's %d units", len(wide))
	}
	for _, at := range []int{e.Offset, e.Offset + e.Length} {
		if at > 0 && at < len(wide) && utf16.IsSurrogate(rune(wide[at])) && wide[at] >= 0xdc00 && utf16.IsSurrogate(rune(wide[at-1])) && wide[at-1] < 0xdc00 {
			return fmt.Errorf("begins or ends in the middle of a UTF-16 symbol")
		}
	}
	switch e.Type {
	case "bold", "italic", "underline", "strikethrough", "spoiler", "code", "pre", "blockquote", "expandable_blockquote", "date_time":
		if e.URL != "" {
			return fmt.Errorf("has an address")
		}
	case "text_link":
		u, err := url.Parse(e.URL)
		if err != nil || u.Scheme != "tg" && (!strings.HasPrefix(u.Scheme, "http") || !strings.ContainsAny(u.Host, ".:")) {
			return fmt.Errorf("address is none")
		}
	default:
		return fmt.Errorf("unknown type")
	}
	if e.Language != "" && (e.Type != "pre" || strings.ContainsFunc(e.Language, unicode.IsSpace)) {
		return fmt.Errorf("bad language")
	}
	if text := string(utf16.Decode(wide[e.Offset : e.Offset+e.Length])); strings.TrimSpace(text) == "" {
		return fmt.Errorf("covers nothing but white space")
	}
	return nil
}

func judgePair(o, e Entity) error {
	oEnd, eEnd := o.Offset+o.Length, e.Offset+e.Length
	if e.Offset >= oEnd || o.Offset >= eEnd {
		return nil
	}
	if !(o.Offset <= e.Offset && eEnd <= oEnd || e.Offset <= o.Offset && oEnd <= eEnd) {
		return fmt.Errorf("overlap without nesting")
	}
	quote := func(t string) bool { return t == "blockquote" || t == "expandable_blockquote" }
	fixed := func(t string) bool { return t == "code" || t == "pre" }
	switch {
	case o.Type == e.Type, quote(o.Type) && quote(e.Type):
		return fmt.Errorf("nest in their own kind")
	case fixed(o.Type):
		return fmt.Errorf("code holds an entity")
	case fixed(e.Type) && !quote(o.Type):
		return fmt.Errorf("code stands in something other than a quote")
	case quote(e.Type):
		return fmt.Errorf("a quote stands in something")
	}
	return nil
}

// covered is the text that an entity covers.
func covered(m Message, e Entity) string {
	return string(utf16.Decode(utf16.Encode([]rune(m.Text))[e.Offset : e.Offset+e.Length]))
}

// letters are the letters of a text, in order: what no rendering may lose, double or move.
func letters(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) {
			return r
		}
		return -1
	}, s)
}

// visible is the text of all messages.
func visible(ms []Message) string {
	var b strings.Builder
	for _, m := range ms {
		b.WriteString(m.Text + "\n")
	}
	return b.String()
}
