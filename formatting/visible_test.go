package formatting

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestVisible(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, in, want string }{
		{"ascii", "rm -rf ./x && echo \"done\" | tee a\tb\n", "rm -rf ./x && echo \"done\" | tee a\tb\n"},
		{"letters", "héllo мир 日本語 שלום e\u0301", "héllo мир 日本語 שלום e\u0301"},
		{"override", "a\u202eb\u2066c\u2069", "a⟨U+202E⟩b⟨U+2066⟩c⟨U+2069⟩"},
		{"zero width", "r\u200bm\u200d\ufeff\u00ad", "r⟨U+200B⟩m⟨U+200D⟩⟨U+FEFF⟩⟨U+00AD⟩"},
		{"controls", "a\x00\r\x1b[2Kb\x7f\u0085", "a⟨U+0000⟩⟨U+000D⟩⟨U+001B⟩[2Kb⟨U+007F⟩⟨U+0085⟩"},
		{"spaces that are none", "a\u00a0b\u3000c\u2028d\u3164e\u2800", "a⟨U+00A0⟩b⟨U+3000⟩c⟨U+2028⟩d⟨U+3164⟩e⟨U+2800⟩"},
		{"variation and tags", "x\ufe0f\U000e0041", "x⟨U+FE0F⟩⟨U+E0041⟩"},
		{"invalid", "a\xff\xc3(", "a⟨0xFF⟩⟨0xC3⟩("},
		{"replacement character itself", "\ufffd", "\ufffd"},
		{"brackets", "⟨U+202E⟩", "⟨U+27E8⟩U+202E⟨U+27E9⟩"},
		{"indentation", strings.Repeat(" ", 40) + "x", strings.Repeat(" ", 40) + "x"},
		{"pushed aside", "a" + strings.Repeat(" ", 9) + "; rm", "a⟨9 spaces⟩; rm"},
		{"deep indentation", "a\n" + strings.Repeat(" ", 41) + "x", "a\n⟨41 spaces⟩x"},
		{"tabs", "a" + strings.Repeat("\t", 30) + "b", "a⟨30 tabs⟩b"},
		{"mixed blanks", "a \t" + strings.Repeat(" ", 10) + "b", "a⟨12 blanks, 1 of them tabs⟩b"},
		{"few blank lines", "a\n\n\n\nb", "a\n\n\n\nb"},
		{"many blank lines", "a" + strings.Repeat("\n", 301) + "b", "a\n⟨300 blank lines⟩\nb"},
		{"blank lines with spaces", "a" + strings.Repeat("\n  ", 100) + "b", "a\n⟨99 blank lines with 198 blanks⟩\n  b"},
		{"trailing", "a" + strings.Repeat(" ", 100), "a⟨100 spaces⟩"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := Visible(tt.in); got != tt.want {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
		})
	}
}

func TestInline(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, in string
		limit    int
		want     string
	}{
		{"short", "ls -l", 10, "ls -l"},
		{"exact", "12345", 5, "12345"},
		{"cut", "1234567890", 4, "1234… (+6 characters)"},
		{"lines", "a\nb\n\nc", 20, "a⏎b⏎⏎c"},
		{"sign itself", "a⏎b", 20, "a⟨U+23CE⟩b"},
		{"tab", "a\tb", 20, "a⟨U+0009⟩b"},
		{"escape is whole", "ab\u202ecd", 5, "ab… (+3 characters)"},
		{"blank lines", "a" + strings.Repeat("\n", 9) + "b", 40, "a⏎⟨8 blank lines⟩⏎b"},
		{"counted run cut", "a" + strings.Repeat(" ", 50) + "b", 5, "a… (+51 characters)"},
		{"nothing fits", "abc", 0, "… (+3 characters)"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := Inline(tt.in, tt.limit); got != tt.want {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
		})
	}
}

// bare reports whether a text holds nothing that hides or moves text.
func bare(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool {
		return r != '\n' && r != '\t' && (unicode.In(r, unicode.C, unicode.Z) && r != ' ' || unicode.Is(unicode.Variation_Selector, r))
	})
}

// Every character is shown as itself or accounted for by an escape or a count, and none of what comes out can hide.
func TestVisibleAccountsForAll(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		piece := rapid.SampledFrom([]string{
			"a", "é", " ", "  ", strings.Repeat(" ", 30), "\t", "\n", "\n\n\n\n", "\u202e", "\u200b", "\xff", "\xf0\x9f", "⟨", "⟩", "\x00", "\r", "\u3000", "🧪", "\U000e0020",
		})
		s := strings.Join(rapid.SliceOfN(piece, 0, 40).Draw(t, "pieces"), "")
		inline := rapid.Bool().Draw(t, "inline")
		total := 0
		for p, n := range pieces(s, inline) {
			if !bare(p) || inline && strings.ContainsAny(p, "\n\t") {
				t.Fatalf("%q is shown as %q", s, p)
			}
			total += n
		}
		if want := utf8.RuneCountInString(s); total != want {
			t.Fatalf("%q: %d of %d characters are accounted for", s, total, want)
		}
	})
}

func FuzzVisible(f *testing.F) {
	f.Add("a\u202eb\xff\n\n\n\n\n\n\n   \t   ⟨x⟩", 7)
	f.Fuzz(func(t *testing.T, s string, limit int) {
		got := Visible(s)
		if !bare(got) {
			t.Fatalf("%q is shown as %q", s, got)
		}
		line := Inline(s, limit)
		if !bare(line) || strings.ContainsAny(line, "\n\t") {
			t.Fatalf("%q inline is %q", s, line)
		}
		if body, _, cut := strings.Cut(line, "… (+"); cut && !strings.Contains(s, "…") && utf8.RuneCountInString(body) > max(limit, 0) {
			t.Fatalf("%q inline is %q, longer than %d", s, line, limit)
		}
	})
}
