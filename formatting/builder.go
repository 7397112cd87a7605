package formatting

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// Builder composes a message from pieces and keeps the offsets right. The zero value is ready. Text that is given to it
// is shown as it stands: nothing in it is parsed, so it is safe for file names, commands and model text alike. Control
// characters are dropped and invalid UTF-8 becomes U+FFFD, since the server would refuse or move them; where hidden
// characters matter, pass the text through [Visible] first.
//
// A Builder is not safe for concurrent use.
type Builder struct {
	text     []byte
	units    int
	entities []Entity
	open     []frame
	afterBox bool // the last piece was a block, so what follows starts on a line of its own
}

// frame is an entity that has begun. One that is already in force further out, or cannot stand here, is mute.
type frame struct {
	entity Entity
	mute   bool
	from   int // where it begins in bytes
}

// Len is the length of the text so far in UTF-16 units.
func (b *Builder) Len() int { return b.units }

// Text appends plain text.
func (b *Builder) Text(s string) *Builder {
	b.apart(s)
	b.write(s)
	return b
}

// Bold appends bold text.
func (b *Builder) Bold(s string) *Builder { return b.styled(Entity{Type: TypeBold}, s) }

// Italic appends italic text.
func (b *Builder) Italic(s string) *Builder { return b.styled(Entity{Type: TypeItalic}, s) }

// Strike appends text that is struck through.
func (b *Builder) Strike(s string) *Builder { return b.styled(Entity{Type: TypeStrikethrough}, s) }

// Link appends a label that opens url, or the label followed by the address where Telegram would not take it as a link.
func (b *Builder) Link(label, url string) *Builder {
	if !linkable(url) {
		b.Text(label)
		if url != "" && url != label {
			b.write(" (" + url + ")")
		}
		return b
	}
	return b.styled(Entity{Type: TypeTextLink, URL: url}, label)
}

// DateTime appends a moment that clients show in the reader's own time zone. format is Telegram's
// `r|w?[dD]?[tT]?` ("r" counts down or up); fallback is what older clients show instead and must not be blank.
func (b *Builder) DateTime(unix int64, format, fallback string) *Builder {
	return b.styled(Entity{Type: TypeDateTime, UnixTime: unix, DateTimeFormat: format}, fallback)
}

// Code appends a piece of code within a line.
func (b *Builder) Code(s string) *Builder {
	b.apart(s)
	b.code(s)
	return b
}

// Pre appends a block of code on lines of its own. language may be empty.
func (b *Builder) Pre(language, s string) *Builder {
	s = strings.TrimRight(s, "\n")
	if Blank(s) {
		return b
	}
	b.ownLine()
	b.pre(language, s)
	b.afterBox = true
	return b
}

// Quote appends a quoted block on lines of its own.
func (b *Builder) Quote(s string) *Builder { return b.quoted(TypeBlockquote, s) }

// Expandable appends a quoted block of which clients show the first lines until it is tapped.
func (b *Builder) Expandable(s string) *Builder { return b.quoted(TypeExpandable, s) }

// Append appends a finished message with its entities.
func (b *Builder) Append(m Message) *Builder {
	b.apart(m.Text)
	base, before := b.units, len(b.text)
	b.write(m.Text)
	if string(b.text[before:]) == m.Text {
		for _, e := range m.Entities {
			e.Offset += base
			b.entities = append(b.entities, e)
			b.afterBox = b.afterBox || e.end() == b.units && (e.Type == TypePre || e.quote())
		}
	}
	return b
}

// Message returns the whole as one message, whatever its length: the caller knows that it is short, or uses Split.
func (b *Builder) Message() Message {
	return Message{Text: string(b.text), Entities: b.sorted()}
}

// Split returns the whole as messages that Telegram accepts, none if nothing is visible.
func (b *Builder) Split() []Message { return split(string(b.text), b.sorted(), MaxLength) }

func (b *Builder) styled(e Entity, s string) *Builder {
	b.apart(s)
	if Blank(s) {
		b.write(s)
		return b
	}
	b.begin(e)
	b.write(s)
	b.end()
	return b
}

func (b *Builder) quoted(kind, s string) *Builder {
	s = strings.Trim(s, "\n")
	if Blank(s) {
		return b
	}
	b.ownLine()
	b.begin(Entity{Type: kind})
	b.write(s)
	b.end()
	b.afterBox = true
	return b
}

// apart keeps text off the last line of a block before it.
func (b *Builder) apart(s string) {
	if b.afterBox && s != "" {
		b.afterBox = false
		if s[0] != '\n' {
			b.write("\n")
		}
	}
}

func (b *Builder) ownLine() {
	b.afterBox = false
	if n := len(b.text); n > 0 && b.text[n-1] != '\n' {
		b.write("\n")
	}
}

// tab is how a tab is shown. Telegram's server makes one blank of it, and code would lose its indentation.
const tab = "    "

// write appends text under the open styles.
func (b *Builder) write(s string) {
	for i := 0; i < len(s); {
		if c := s[i]; c < utf8.RuneSelf {
			switch {
			case c == '\t':
				b.text = append(b.text, tab...)
				b.units += len(tab)
			case c >= ' ' && c != 0x7f || c == '\n':
				b.text = append(b.text, c)
				b.units++
			}
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		i += size
		if r >= 0x80 && r < 0xa0 {
			continue
		}
		b.text = utf8.AppendRune(b.text, r)
		b.units += units(r)
	}
}

// code appends text as code. Code may stand in nothing but a quote, so the styles around it end before and resume after
// it; in a link the link wins, since an address that is lost cannot be guessed.
func (b *Builder) code(s string) {
	if Blank(s) || slices.ContainsFunc(b.open, func(f frame) bool { return f.entity.Type == TypeTextLink && !f.mute }) {
		b.write(s)
		return
	}
	b.verbatim(Entity{Type: TypeCode}, s)
}

func (b *Builder) pre(language, s string) { b.verbatim(Entity{Type: TypePre, Language: language}, s) }

func (b *Builder) verbatim(e Entity, s string) {
	for i := range b.open {
		if f := &b.open[i]; !f.entity.quote() {
			b.closeFrame(*f)
		}
	}
	e.Offset = b.units
	b.write(s)
	if e.Length = b.units - e.Offset; e.Length > 0 {
		b.entities = append(b.entities, e)
	}
	for i := range b.open {
		if f := &b.open[i]; !f.entity.quote() {
			f.entity.Offset, f.from = b.units, len(b.text)
		}
	}
}

// extend appends to the code that ends the text.
func (b *Builder) extend(s string) {
	from := b.units
	b.write(s)
	b.entities[len(b.entities)-1].Length += b.units - from
}

// begin opens an entity; end closes the one opened last.
func (b *Builder) begin(e Entity) {
	mute := slices.ContainsFunc(b.open, func(f frame) bool {
		return !f.mute && (f.entity.Type == e.Type || f.entity.quote() && e.quote())
	})
	e.Offset = b.units
	b.open = append(b.open, frame{e, mute, len(b.text)})
}

func (b *Builder) end() {
	last := len(b.open) - 1
	b.closeFrame(b.open[last])
	b.open = b.open[:last]
}

func (b *Builder) closeFrame(f frame) {
	e := f.entity
	e.Length = b.units - e.Offset
	if !f.mute && !Blank(string(b.text[f.from:])) {
		b.entities = append(b.entities, e)
	}
}

func (b *Builder) sorted() []Entity {
	e := slices.Clone(b.entities)
	slices.SortStableFunc(e, func(x, y Entity) int {
		if x.Offset != y.Offset {
			return x.Offset - y.Offset
		}
		return y.Length - x.Length
	})
	// A quote of the same extent as what it holds stands outside of it.
	for i := 1; i < len(e); i++ {
		for j := i; j > 0 && e[j].quote() && e[j-1].Offset == e[j].Offset && e[j-1].Length == e[j].Length; j-- {
			e[j], e[j-1] = e[j-1], e[j]
		}
	}
	return e
}

// Code is a message that holds nothing but a block of code, which must be short enough for one message.
func Code(text, language string) Message {
	var b Builder
	b.Pre(language, text)
	return b.Message()
}
