package telegramtest

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
)

// Limits of texts. Telegram counts texts in code points and entities in UTF-16 code units.
const (
	MaxText    = 4096
	MaxCaption = 1024
	// MaxEntities is how many entities of one message are kept; the others vanish without an error.
	MaxEntities = 100
	// maxEntityField bounds offsets and lengths.
	maxEntityField = 1_000_000
)

// Entity is a MessageEntity object. Offset and Length are in UTF-16 code units.
type Entity struct {
	Type           string `json:"type"`
	Offset         int    `json:"offset"`
	Length         int    `json:"length"`
	URL            string `json:"url,omitempty"`
	User           *User  `json:"user,omitempty"`
	Language       string `json:"language,omitempty"`
	CustomEmojiID  string `json:"custom_emoji_id,omitempty"`
	UnixTime       int64  `json:"unix_time,omitempty"`
	DateTimeFormat string `json:"date_time_format,omitempty"`
}

func (e Entity) end() int { return e.Offset + e.Length }

// Kinds of entities, by how they may be nested (td/telegram/MessageEntity.cpp).
const (
	found      = iota // Telegram finds these by itself; given ones are ignored
	style             // bold and its like: split where another entity begins or ends
	quote             // block quotes: never within each other
	pre               // code: contains nothing and stands only in a quote
	continuous        // links and mentions: never within each other
)

func entityKind(kind string) (k int, known bool) {
	switch kind {
	case "mention", "hashtag", "cashtag", "bot_command", "url", "email", "phone_number", "bank_card_number":
		return found, true
	case "bold", "italic", "underline", "strikethrough", "spoiler":
		return style, true
	case "blockquote", "expandable_blockquote":
		return quote, true
	case "code", "pre":
		return pre, true
	case "text_link", "text_mention", "custom_emoji", "date_time":
		return continuous, true
	default:
		return 0, false
	}
}

// hidden entities carry more than their text shows and are kept on blanks.
func (e Entity) hidden() bool { return e.kind() == continuous || e.kind() == pre }

func (e Entity) kind() int { k, _ := entityKind(e.Type); return k }

// rank orders entities that cover the same text from the outer to the inner.
func (e Entity) rank() int {
	switch e.kind() {
	case quote:
		return 0
	case pre:
		return 10
	case continuous:
		if e.Type == "custom_emoji" {
			return 99
		}
		return 49
	default:
		return 90 + slices.Index([]string{"bold", "italic", "underline", "strikethrough", "spoiler"}, e.Type)
	}
}

// parseEntities reads the JSON of an entities parameter, as far as it can be judged without the text.
func (s *Server) parseEntities(raw string) ([]Entity, error) {
	if strings.TrimSpace(raw) == "" {
		return nil, nil
	}
	// What is no array is ignored by the server.
	var items []json.RawMessage
	_ = json.Unmarshal([]byte(raw), &items)
	var out []Entity
	for _, item := range items {
		e, err := s.parseEntity(item)
		if err != nil {
			return nil, err
		}
		if e.kind() != found {
			out = append(out, e)
		}
	}
	return limitEntities(out), nil
}

func (s *Server) parseEntity(raw json.RawMessage) (Entity, error) {
	bad := func(text string) (Entity, error) { return Entity{}, badRequest("can't parse MessageEntity: %s", text) }
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil || fields == nil {
		return bad("expected an Object")
	}
	var e Entity
	for _, f := range []struct {
		name string
		into *int
	}{{"offset", &e.Offset}, {"length", &e.Length}} {
		v, ok := fields[f.name]
		if !ok {
			return bad(`Can't find field "` + f.name + `"`)
		}
		n, err := strconv.Atoi(strings.Trim(string(v), `"`))
		if err != nil {
			return bad(`Field "` + f.name + `" must be a valid Number`)
		}
		*f.into = n
	}
	delete(fields, "offset")
	delete(fields, "length")
	rest, err := json.Marshal(fields)
	if err != nil {
		return bad("expected an Object")
	}
	if err := json.Unmarshal(rest, &e); err != nil {
		return bad("wrong type of a field")
	}
	kind, known := entityKind(e.Type)
	switch {
	case e.Type == "":
		return bad(`Can't find field "type"`)
	case !known:
		return bad("Unsupported type specified")
	case e.Type == "custom_emoji":
		if _, err := strconv.ParseInt(e.CustomEmojiID, 10, 64); err != nil {
			return bad(`Field "custom_emoji_id" must be a valid Number`)
		}
	case e.Type == "text_link":
		if err := checkURL("entity URL", e.URL); err != nil {
			return Entity{}, err
		}
	case e.Type == "text_mention":
		if e.User == nil || s.person(e.User.ID) == nil {
			return Entity{}, badRequest("user not found")
		}
		e.User = s.user(e.User.ID)
	}
	if kind == found {
		return e, nil
	}
	if e.Offset < 0 || e.Offset > maxEntityField {
		return Entity{}, badRequest("receive an entity with incorrect offset %d", e.Offset)
	}
	if e.Length < 0 || e.Length > maxEntityField {
		return Entity{}, badRequest("receive an entity with incorrect length %d", e.Length)
	}
	return e.only(), nil
}

// only clears the fields that do not belong to the entity's type.
func (e Entity) only() Entity {
	out := Entity{Type: e.Type, Offset: e.Offset, Length: e.Length}
	switch e.Type {
	case "text_link":
		out.URL = e.URL
	case "text_mention":
		out.User = e.User
	case "pre":
		out.Language = e.Language
	case "custom_emoji":
		out.CustomEmojiID = e.CustomEmojiID
	case "date_time":
		out.UnixTime, out.DateTimeFormat = e.UnixTime, e.DateTimeFormat
	}
	return out
}

// limitEntities keeps the first MaxEntities, counting styles after all others and custom emoji apart.
func limitEntities(all []Entity) []Entity {
	room := map[bool]int{false: MaxEntities, true: MaxEntities}
	keep := make([]bool, len(all))
	for _, styles := range []bool{false, true} {
		for i, e := range all {
			emoji := e.Type == "custom_emoji"
			if (e.kind() == style) == styles && room[emoji] > 0 {
				keep[i] = true
				room[emoji]--
			}
		}
	}
	var out []Entity
	for i, e := range all {
		if keep[i] {
			out = append(out, e)
		}
	}
	return out
}

// formatted checks and cleans a text and its entities as the server does: control characters become blanks, blanks
// around the text go, entities are moved along, and nesting that Telegram does not know is cut. An empty result is no
// error here.
func formatted(text string, entities []Entity) (string, []Entity, error) {
	entities = repair(slices.DeleteFunc(slices.Clone(entities), func(e Entity) bool { return e.Length == 0 }))
	units, entities, err := clean(text, entities)
	if err != nil {
		return "", nil, err
	}
	entities = shrink(units, entities)
	units, entities = trim(units, repair(entities))
	return string(utf16.Decode(units)), entities, nil
}

// clean replaces control characters, removes what Telegram removes (carriage returns, bidi controls, three combining
// marks) and moves entities along. It refuses entities that begin or end within a surrogate pair or after the text.
func clean(text string, entities []Entity) ([]uint16, []Entity, error) {
	var units []uint16
	moved := []int{} // from an offset in text to one in units; -1-byte within a pair
	at := func(old int) int { return moved[old] }
	for i, r := range text {
		moved = append(moved, len(units))
		if r > 0xffff {
			moved = append(moved, -1-(i+4))
		}
		switch {
		case r == '\r', r >= 0x202a && r <= 0x202e, r == 0x2028, r == 0x2029, r == 0x333, r == 0x33f, r == 0x30a:
		case r < ' ' && r != '\n':
			units = append(units, ' ')
		default:
			units = utf16.AppendRune(units, r)
		}
	}
	moved = append(moved, len(units))
	last := len(moved) - 1
	for _, e := range entities {
		if e.Offset <= last && at(e.Offset) < 0 {
			return nil, nil, badRequest("Entity begins in a middle of a UTF-16 symbol at byte offset %d", -1-at(e.Offset))
		}
		if e.end() <= last && at(e.end()) < 0 {
			return nil, nil, badRequest("Entity beginning at UTF-16 offset %d ends in a middle of a UTF-16 symbol at byte offset %d",
				e.Offset, -1-at(e.end()))
		}
	}
	for _, e := range entities {
		if e.Offset > last {
			return nil, nil, badRequest("Entity begins after the end of the text at UTF-16 offset %d", e.Offset)
		}
	}
	out := make([]Entity, 0, len(entities))
	for _, e := range slices.Backward(entities) {
		if e.end() > last {
			return nil, nil, badRequest("Entity beginning at UTF-16 offset %d ends after the end of the text at UTF-16 offset %d",
				e.Offset, e.end())
		}
	}
	for _, e := range entities {
		from, to := at(e.Offset), at(e.end())
		e.Offset, e.Length = from, to-from
		out = append(out, e)
	}
	return units, out, nil
}

func blank(u uint16) bool { return u == ' ' || u == '\n' }

// shrink lets entities begin with something visible and removes those that cover blanks only.
func shrink(units []uint16, entities []Entity) []Entity {
	var out []Entity
	holds := map[int]bool{} // offsets at which something begins that stays where it is
	for _, e := range entities {
		holds[e.Offset] = holds[e.Offset] || e.hidden()
	}
	for _, e := range entities {
		for e.Length > 0 && blank(units[e.Offset]) && !holds[e.Offset] {
			e.Offset++
			e.Length--
		}
		if e.Length > 0 {
			out = append(out, e)
		}
	}
	return out
}

// trim removes blanks at the end, and at the beginning up to the first entity.
func trim(units []uint16, entities []Entity) ([]uint16, []Entity) {
	end := len(units)
	for end > 0 && blank(units[end-1]) {
		end--
	}
	units = units[:end]
	var out []Entity
	for _, e := range entities {
		e.Length = min(e.end(), end) - e.Offset
		if e.Length > 0 {
			out = append(out, e)
		}
	}
	limit := end
	if len(out) > 0 {
		limit = out[0].Offset
	}
	begin := 0
	for begin < limit && blank(units[begin]) {
		begin++
	}
	for i := range out {
		out[i].Offset -= begin
	}
	sortEntities(out)
	return units[begin:], out
}

func sortEntities(e []Entity) {
	slices.SortStableFunc(e, func(a, b Entity) int {
		return cmp.Or(cmp.Compare(a.Offset, b.Offset), cmp.Compare(b.Length, a.Length), cmp.Compare(a.rank(), b.rank()))
	})
}
