package telegramtest

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// spell writes entities as type:offset+length, for tables.
func spell(entities []Entity) string {
	var out []string
	for _, e := range entities {
		raw, err := json.Marshal([]int{e.Offset, e.Length})
		if err != nil {
			panic(err)
		}
		out = append(out, e.Type+string(raw))
	}
	return strings.Join(out, " ")
}

func TestFormatted(t *testing.T) {
	t.Parallel()
	link := func(from, n int) Entity {
		return Entity{Type: "text_link", URL: "https://example.com", Offset: from, Length: n}
	}
	of := func(kind string, from, n int) Entity { return Entity{Type: kind, Offset: from, Length: n} }
	for _, c := range []struct {
		name     string
		text     string
		entities []Entity
		want     string
		spelled  string
		err      string
	}{
		{"plain", "hello", nil, "hello", "", ""},
		{"blanks around go", "\n hello \n", nil, "hello", "", ""},
		{"entities move along", "  hello ", []Entity{of("bold", 2, 5)}, "hello", "bold[0,5]", ""},
		{"blanks before the first entity go", "  a hello", []Entity{of("bold", 4, 5)}, "a hello", "bold[2,5]", ""},
		{"entity of blanks goes", "a   b", []Entity{of("bold", 1, 3)}, "a   b", "", ""},
		{"entity begins with text", "a  bc", []Entity{of("bold", 1, 4)}, "a  bc", "bold[3,2]", ""},
		{"code keeps its blanks", "a  bc", []Entity{of("code", 1, 4)}, "a  bc", "code[1,4]", ""},
		{"link keeps its blanks", "a   b", []Entity{link(1, 3)}, "a   b", "text_link[1,3]", ""},
		{"control characters", "a\tb\x00c\r\nd", []Entity{of("bold", 6, 2)}, "a b c\nd", "bold[6,1]", ""},
		{"bidi controls vanish", "a\u202eb", []Entity{of("bold", 2, 1)}, "ab", "bold[1,1]", ""},
		{"units, not code points", "🙂x", []Entity{of("bold", 2, 1)}, "🙂x", "bold[2,1]", ""},
		{"begins within a pair", "🙂x", []Entity{of("bold", 1, 2)}, "", "", "Bad Request: entity begins in a middle of a UTF-16 symbol at byte offset 4"},
		{"ends within a pair", "x🙂", []Entity{of("bold", 0, 2)}, "", "", "Bad Request: entity beginning at UTF-16 offset 0 ends in a middle of a UTF-16 symbol at byte offset 5"},
		{"begins after the end", "hello", []Entity{of("bold", 100, 1)}, "", "", "Bad Request: entity begins after the end of the text at UTF-16 offset 100"},
		{"ends after the end", "hello", []Entity{of("bold", 0, 100)}, "", "", "Bad Request: entity beginning at UTF-16 offset 0 ends after the end of the text at UTF-16 offset 100"},
		{"begins at the end", "hello", []Entity{of("bold", 5, 1)}, "", "", "Bad Request: entity beginning at UTF-16 offset 5 ends after the end of the text at UTF-16 offset 6"},
		{"of no length", "hello", []Entity{of("bold", 9, 0)}, "hello", "", ""},

		{"bold in code is cut", "0123456789", []Entity{of("code", 0, 6), of("bold", 2, 2)}, "0123456789", "code[0,6]", ""},
		{"bold out of code is split", "0123456789", []Entity{of("pre", 2, 4), of("bold", 0, 8)}, "0123456789", "bold[0,2] pre[2,4] bold[6,2]", ""},
		{"code in a quote stays", "0123456789", []Entity{of("blockquote", 0, 9), of("code", 2, 2)}, "0123456789", "blockquote[0,9] code[2,2]", ""},
		{"code in a link goes", "0123456789", []Entity{link(0, 6), of("code", 2, 2)}, "0123456789", "text_link[0,6]", ""},
		{"quote in a quote goes", "0123456789", []Entity{of("blockquote", 0, 9), of("expandable_blockquote", 2, 2)}, "0123456789", "blockquote[0,9]", ""},
		{"link in a link goes", "0123456789", []Entity{link(0, 6), link(2, 2)}, "0123456789", "text_link[0,6]", ""},
		{"link over the edge of a quote goes", "0123456789", []Entity{of("blockquote", 0, 5), link(3, 4)}, "0123456789", "blockquote[0,5]", ""},
		{"bold around a link is split", "0123456789", []Entity{of("bold", 0, 10), link(2, 3)}, "0123456789", "bold[0,2] text_link[2,3] bold[2,3] bold[5,5]", ""},
		{"crossing styles are split", "0123456789", []Entity{of("bold", 0, 5), of("italic", 3, 5)}, "0123456789", "bold[0,3] italic[3,5] bold[3,2]", ""},
		{"touching pieces merge", "0123456789", []Entity{of("bold", 0, 5), of("bold", 5, 3)}, "0123456789", "bold[0,8]", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			text, entities, err := formatted(c.text, c.entities)
			if (err == nil) != (c.err == "") || (err != nil && err.Error() != "400 "+c.err) {
				t.Fatalf("error %v, want %q", err, c.err)
			}
			if text != c.want || spell(entities) != c.spelled {
				t.Errorf("got %q %q, want %q %q", text, spell(entities), c.want, c.spelled)
			}
		})
	}
}

func TestEntityParameter(t *testing.T) {
	t.Parallel()
	s := New(Config{})
	for _, c := range []struct{ raw, want, err string }{
		{``, "", ""},
		{`no array`, "", ""},
		{`[{"type":"bold","offset":0,"length":1}]`, "bold[0,1]", ""},
		{`[{"type":"bold","offset":"0","length":"1"}]`, "bold[0,1]", ""},
		{`[{"type":"url","offset":0,"length":1},{"type":"bot_command","offset":0,"length":1}]`, "", ""},
		{`[{"type":"invalid_type","offset":0,"length":1}]`, "", "can't parse MessageEntity: Unsupported type specified"},
		{`[{"offset":0,"length":1}]`, "", `can't parse MessageEntity: Can't find field "type"`},
		{`[{"type":"bold","length":1}]`, "", `can't parse MessageEntity: Can't find field "offset"`},
		{`[{"type":"bold","offset":0}]`, "", `can't parse MessageEntity: Can't find field "length"`},
		{`[{"type":"bold","offset":-1,"length":1}]`, "", "receive an entity with incorrect offset -1"},
		{`[{"type":"bold","offset":0,"length":-1}]`, "", "receive an entity with incorrect length -1"},
		{`[{"type":"bold","offset":0,"length":1000001}]`, "", "receive an entity with incorrect length 1000001"},
		{`[{"type":"text_link","offset":0,"length":1,"url":"not-a-url"}]`, "", "entity URL 'not-a-url' is invalid: Wrong HTTP URL"},
		{`[{"type":"text_link","offset":0,"length":1,"url":""}]`, "", "entity URL '' is invalid: URL host is empty"},
		{`[{"type":"custom_emoji","offset":0,"length":1,"custom_emoji_id":"x"}]`, "", `can't parse MessageEntity: Field "custom_emoji_id" must be a valid Number`},
		{`[{"type":"text_mention","offset":0,"length":1,"user":{"id":5}}]`, "", "user not found"},
		{`[7]`, "", "can't parse MessageEntity: expected an Object"},
	} {
		got, err := s.parseEntities(c.raw)
		if (err == nil) != (c.err == "") || (err != nil && err.Error() != "400 Bad Request: "+c.err) || spell(got) != c.want {
			t.Errorf("%s: %q, %v; want %q, %q", c.raw, spell(got), err, c.want, c.err)
		}
	}
}

func TestMoreThanAHundredEntitiesVanish(t *testing.T) {
	t.Parallel()
	var all []Entity
	for i := range 130 {
		all = append(all, Entity{Type: "bold", Offset: 2 * i, Length: 1})
	}
	for i := range 60 {
		all = append(all, Entity{Type: "code", Offset: 1000 + i, Length: 1})
	}
	kept := limitEntities(all)
	codes := 0
	for _, e := range kept {
		if e.Type == "code" {
			codes++
		}
	}
	if len(kept) != MaxEntities || codes != 60 || kept[39].Offset != 78 || kept[40].Type != "code" {
		t.Errorf("kept %d, %d of them code: %s", len(kept), codes, spell(kept))
	}
}

// whole reports what is wrong with the entities of a text that the server keeps, empty if nothing.
func whole(text string, entities []Entity) string {
	u := utf16.Encode([]rune(text))
	cut := func(i int) bool {
		return i > 0 && i < len(u) && utf16.IsSurrogate(rune(u[i-1])) && utf16.IsSurrogate(rune(u[i])) &&
			utf16.DecodeRune(rune(u[i-1]), rune(u[i])) != utf8.RuneError
	}
	for i, e := range entities {
		switch {
		case e.Offset < 0 || e.Length <= 0 || e.end() > len(u):
			return "out of the text: " + spell(entities)
		case cut(e.Offset) || cut(e.end()):
			return "within a pair: " + spell(entities)
		case i > 0 && entities[i-1].Offset > e.Offset:
			return "not sorted: " + spell(entities)
		}
		for _, other := range entities[:i] {
			if other.end() > e.Offset && other.end() < e.end() && (other.kind() != style || e.kind() != style) {
				return "crossing: " + spell(entities)
			}
			if other.kind() == pre && e.Offset < other.end() {
				return "within code: " + spell(entities)
			}
		}
	}
	return ""
}

func TestFormattedKeepsOnlyWhatTelegramKnows(t *testing.T) {
	t.Parallel()
	kinds := []string{"bold", "italic", "spoiler", "code", "pre", "blockquote", "expandable_blockquote", "text_link"}
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOf(rapid.RuneFrom([]rune("ab \n🙂я"))).Draw(t, "text")
		n := units(text)
		var entities []Entity
		for range rapid.IntRange(0, 8).Draw(t, "count") {
			from := rapid.IntRange(0, n).Draw(t, "from")
			entities = append(entities, Entity{
				Type: rapid.SampledFrom(kinds).Draw(t, "kind"), Offset: from, Length: rapid.IntRange(0, n-from).Draw(t, "length"),
			})
		}
		got, kept, err := formatted(text, entities)
		if err != nil {
			if !strings.Contains(err.Error(), "in a middle of a UTF-16 symbol") {
				t.Fatal(err)
			}
			return
		}
		if strings.TrimRight(got, " \n") != got {
			t.Fatalf("blanks at the end of %q", got)
		}
		if wrong := whole(got, kept); wrong != "" {
			t.Fatal(wrong)
		}
		again, same, err := formatted(got, kept)
		if err != nil || again != got || !slices.Equal(same, kept) {
			t.Fatalf("not stable: %q %s became %q %s, %v", got, spell(kept), again, spell(same), err)
		}
	})
}

func FuzzFormatted(f *testing.F) {
	f.Add("hello", `[{"type":"bold","offset":0,"length":5}]`)
	f.Add("🙂 x\r\n\u202e", `[{"type":"pre","offset":2,"length":3,"language":"go"},{"type":"italic","offset":0,"length":9}]`)
	f.Add("a", `[{"type":"text_link","offset":1e9,"length":null,"url":{}}]`)
	s := New(Config{})
	f.Fuzz(func(t *testing.T, text, raw string) {
		if !utf8.ValidString(text) {
			return
		}
		entities, err := s.parseEntities(raw)
		if err != nil {
			return
		}
		got, kept, err := formatted(text, entities)
		if err != nil {
			return
		}
		if wrong := whole(got, kept); wrong != "" {
			t.Fatalf("%q %s: %s", text, raw, wrong)
		}
	})
}
