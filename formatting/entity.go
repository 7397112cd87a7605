package formatting

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Telegram's limits on one message. The server counts the text in code points; capping UTF-16 units, the unit of
// entity offsets, satisfies it as well, since no text has fewer units than code points.
const (
	// MaxLength is the most UTF-16 units that a message of this package holds.
	MaxLength = 4096
	// MaxEntities is the number of entities after which the server silently drops the rest.
	MaxEntities = 100
)

// Types of entities that this package makes, by Telegram's names.
const (
	TypeBold          = "bold"
	TypeItalic        = "italic"
	TypeUnderline     = "underline"
	TypeStrikethrough = "strikethrough"
	TypeSpoiler       = "spoiler"
	TypeCode          = "code"
	TypePre           = "pre"
	TypeTextLink      = "text_link"
	TypeBlockquote    = "blockquote"
	TypeExpandable    = "expandable_blockquote"
	TypeDateTime      = "date_time"
)

// Entity marks a stretch of a message's text. Its JSON form is Telegram's MessageEntity.
type Entity struct {
	Type   string `json:"type"`
	Offset int    `json:"offset"` // UTF-16 units from the start of the text
	Length int    `json:"length"` // UTF-16 units, never 0
	// URL is the target of a text_link.
	URL string `json:"url,omitempty"`
	// Language is the language of a pre, empty if unknown.
	Language string `json:"language,omitempty"`
	// UnixTime is the moment that a date_time shows, in seconds since 1970.
	UnixTime int64 `json:"unix_time,omitempty"`
	// DateTimeFormat says how a date_time is shown: `r|w?[dD]?[tT]?`, empty for the text as it stands.
	DateTimeFormat string `json:"date_time_format,omitempty"`
}

func (e Entity) end() int { return e.Offset + e.Length }

// quote reports whether the entity is a quote of either kind.
func (e Entity) quote() bool { return e.Type == TypeBlockquote || e.Type == TypeExpandable }

// verbatim reports whether the entity shows its text in a fixed-width face and so may hold no other entity.
func (e Entity) verbatim() bool { return e.Type == TypeCode || e.Type == TypePre }

// Message is the text of one message and its entities, ordered by offset and, at the same offset, the longer first.
type Message struct {
	Text     string   `json:"text"`
	Entities []Entity `json:"entities,omitempty"`
}

// Len is the length of s in UTF-16 units, the unit of every offset and limit of this package. An invalid byte counts as
// one, as the replacement character that it becomes.
func Len(s string) int {
	n := 0
	for _, r := range s {
		n += units(r)
	}
	return n
}

// units is the number of UTF-16 units of one code point.
func units(r rune) int {
	if r >= 0x10000 {
		return 2
	}
	return 1
}

// Blank reports whether a reader would see nothing of s. Telegram refuses such a text as empty: it counts not only white
// space but also the characters that have no shape, such as U+200B or U+3164.
func Blank(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return !invisible(r) }) < 0
}

func invisible(r rune) bool {
	if r < utf8.RuneSelf {
		return r <= ' ' || r == 0x7f
	}
	switch r {
	case 0x034f, 0x115f, 0x1160, 0x17b4, 0x17b5, 0x2800, 0x3164, 0xffa0, 0xfffc:
		return true
	}
	return unicode.IsSpace(r) || unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Cc, r) || unicode.Is(unicode.Zs, r) ||
		(r >= 0xfe00 && r <= 0xfe0f) || (r >= 0xe0100 && r <= 0xe01ef)
}
