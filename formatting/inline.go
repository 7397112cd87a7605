package formatting

import (
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/yuin/goldmark/ast"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/util"
)

func (r *renderer) inlines(parent ast.Node) {
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		r.inline(n)
	}
}

func (r *renderer) inline(n ast.Node) {
	switch n := n.(type) {
	case *ast.Text:
		r.text(unescape(n.Segment.Value(r.source)))
		if n.SoftLineBreak() || n.HardLineBreak() {
			r.text("\n")
		}
	case *ast.String:
		r.text(string(n.Value))
	case *ast.CodeSpan:
		r.code(r.codeText(n))
	case *mathNode:
		r.code(string(n.source))
	case *ast.Emphasis:
		if n.Level == 1 {
			r.styled(Entity{Type: TypeItalic}, n)
		} else {
			r.styled(Entity{Type: TypeBold}, n)
		}
	case *extast.Strikethrough:
		r.styled(Entity{Type: TypeStrikethrough}, n)
	case *ast.Link:
		r.link(n, unescape(n.Destination))
	case *ast.Image:
		r.link(n, unescape(n.Destination))
	case *ast.AutoLink:
		r.autoLink(n)
	case *extast.TaskCheckBox:
		if n.IsChecked {
			r.text("☑ ")
		} else {
			r.text("☐ ")
		}
	case *footnoteRefNode:
		if r.notes[n.label] {
			r.text("[" + n.label + "]")
		} else {
			r.text("[^" + n.label + "]")
		}
	default:
		r.inlines(n)
	}
}

// styled renders the children of a node under an entity.
func (r *renderer) styled(e Entity, n ast.Node) {
	if n.FirstChild() == nil {
		return
	}
	r.start()
	r.b.begin(e)
	r.inlines(n)
	r.b.end()
}

func (r *renderer) code(s string) {
	if s == "" {
		return
	}
	r.start()
	r.b.code(s)
}

// codeText is what a code span shows: its source with line ends as spaces.
func (r *renderer) codeText(n *ast.CodeSpan) string {
	var b strings.Builder
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		switch c := c.(type) {
		case *ast.Text:
			b.Write(c.Segment.Value(r.source))
		case *ast.String:
			b.Write(c.Value)
		}
	}
	return strings.ReplaceAll(b.String(), "\n", " ")
}

// link shows a link or an image. A target that Telegram would not open stays readable after the label.
func (r *renderer) link(n ast.Node, target string) {
	label := r.plain(n)
	ok := linkable(target)
	switch {
	case Blank(label) && target == "":
		r.inlines(n)
	case Blank(label) && !ok:
		r.code(target)
	case Blank(label):
		r.text(target)
	case ok && label != target:
		r.styled(Entity{Type: TypeTextLink, URL: target}, n)
	default:
		r.inlines(n)
		if !ok && target != "" && label != target && "mailto:"+label != target {
			r.text(" (")
			r.code(target)
			r.text(")")
		}
	}
}

// plain is the text of a node's children without entities.
func (r *renderer) plain(n ast.Node) string {
	var b Builder
	inner := renderer{b: &b, source: r.source, notes: r.notes, inRow: r.inRow}
	inner.inlines(n)
	return string(b.text)
}

// autoLink shows an address. Telegram makes links of addresses by itself. Angle brackets belong to the text unless what
// they hold is an address: `<std::string>` looks like one to CommonMark.
func (r *renderer) autoLink(n *ast.AutoLink) {
	label := string(n.Label(r.source))
	pos := n.Pos()
	bracketed := pos >= 0 && pos < len(r.source) && r.source[pos] == '<'
	if bracketed && n.AutoLinkType == ast.AutoLinkURL && !addressScheme(label) {
		label = "<" + label + ">"
	}
	r.text(label)
}

func addressScheme(s string) bool {
	scheme, _, _ := strings.Cut(s, ":")
	switch strings.ToLower(scheme) {
	case "http", "https", "ftp", "mailto", "tel", "tg":
		return true
	}
	return false
}

// linkable reports whether Telegram takes an address as the target of a text_link. It silently drops others, among them
// hosts without a dot.
func linkable(target string) bool {
	if len(target) > 2048 || strings.ContainsFunc(target, func(r rune) bool { return r <= ' ' || r == utf8.RuneError || r == 0x7f }) {
		return false
	}
	u, err := url.Parse(target)
	if err != nil {
		return false
	}
	switch strings.ToLower(u.Scheme) {
	case "http", "https":
		host := u.Hostname()
		return strings.Contains(strings.Trim(host, "."), ".") || strings.Contains(host, ":")
	case "tg":
		return u.Host != ""
	}
	return false
}

// unescape undoes backslash escapes and character references, once: `\&amp;` is `&amp;`.
func unescape(b []byte) string {
	s := string(b)
	if !strings.ContainsAny(s, `\&`) {
		return s
	}
	var out strings.Builder
	out.Grow(len(s))
	for i := 0; i < len(s); {
		switch {
		case s[i] == '\\' && i+1 < len(s) && util.IsPunct(s[i+1]):
			out.WriteByte(s[i+1])
			i += 2
		case s[i] == '&':
			text, n := reference(s[i:])
			out.WriteString(text)
			i += n
		default:
			out.WriteByte(s[i])
			i++
		}
	}
	return out.String()
}

// maxReference is the length of the longest name of a character reference and a little more.
const maxReference = 40

// reference decodes the character reference that s begins with; without one it returns the ampersand. References to
// characters that are not shown stay as they are written.
func reference(s string) (string, int) {
	end := strings.IndexByte(s[:min(len(s), maxReference)], ';')
	if end < 2 {
		return "&", 1
	}
	name := s[1:end]
	if name[0] != '#' {
		if e, ok := util.LookUpHTML5EntityByName(name); ok {
			return string(e.Characters), end + 1
		}
		return "&", 1
	}
	digits, base := name[1:], 10
	if len(digits) > 1 && (digits[0] == 'x' || digits[0] == 'X') {
		digits, base = digits[1:], 16
	}
	v, err := strconv.ParseUint(digits, base, 32)
	if err != nil || len(digits) > 7 {
		return "&", 1
	}
	r := rune(v)
	if v == 0 || v > utf8.MaxRune || !utf8.ValidRune(r) {
		return "\ufffd", end + 1
	}
	if r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 {
		return "&", 1
	}
	return string(r), end + 1
}
