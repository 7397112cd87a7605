package formatting

import (
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestBuilder(t *testing.T) {
	t.Parallel()
	var b Builder
	b.Text("🔐 ").Bold("Run this?").Text("\nIn ").Code("~/a_b").Pre("sh", "echo *hi*\n").Text("Expires ").DateTime(1790000000, "r", "in 10 min").
		Quote("why\nnot").Expandable("long").Link("docs", "https://example.org/").Text(" ").Link("here", "./x.md").Text("\n").Pre("", "  last")
	got := b.Message()
	want := "🔐 Run this?\nIn ~/a_b\necho *hi*\nExpires in 10 min\nwhy\nnot\nlong\ndocs here (./x.md)\n  last"
	if got.Text != want {
		t.Fatalf("text\n%s\nwant\n%s", got.Text, want)
	}
	if err := judge(got); err != nil {
		t.Error(err)
	}
	if b.Len() != Len(want) {
		t.Errorf("length %d, want %d", b.Len(), Len(want))
	}
	for _, w := range []wanted{
		{"bold", "Run this?", ""},
		{"code", "~/a_b", ""},
		{"pre", "echo *hi*", "sh"},
		{"date_time", "in 10 min", ""},
		{"blockquote", "why\nnot", ""},
		{"expandable_blockquote", "long", ""},
		{"text_link", "docs", "https://example.org/"},
		{"pre", "  last", ""},
	} {
		if !find([]Message{got}, w) {
			t.Errorf("no %+v", w)
		}
	}
	if len(got.Entities) != 8 {
		t.Errorf("%d entities, want 8: %+v", len(got.Entities), got.Entities)
	}
	j, err := json.Marshal(got.Entities[3])
	if err != nil || string(j) != `{"type":"date_time","offset":40,"length":9,"unix_time":1790000000,"date_time_format":"r"}` {
		t.Errorf("JSON %s, %v", j, err)
	}
}

func TestBuilderEmpty(t *testing.T) {
	t.Parallel()
	var b Builder
	b.Bold("").Pre("go", "\n\n").Quote("  ").Text("\u200b")
	if got := b.Split(); len(got) != 0 {
		t.Errorf("got %+v, want nothing", got)
	}
	if got := Code("x := 1\n", "go"); got.Text != "x := 1" || len(got.Entities) != 1 || got.Entities[0].Language != "go" {
		t.Errorf("Code gives %+v", got)
	}
}

func TestBuilderAppend(t *testing.T) {
	t.Parallel()
	var b Builder
	b.Text("🧪 ").Append(Render("**a** `b`", Options{})[0]).Pre("", "x").Append(Code("y", "go")).Text("z")
	want := "=== message 1\n🧪 a b\nx\ny\nz\n--- bold 3+1 \"a\"\n--- code 5+1 \"b\"\n--- pre 7+1 \"x\"\n--- pre 9+1 go \"y\"\n"
	if got := show(b.Split()); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// Whatever pieces a message is made of, Telegram accepts what Split makes of it and no letter is lost.
func TestBuilderSplit(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var b Builder
		var want strings.Builder
		for range rapid.IntRange(0, 40).Draw(t, "pieces") {
			s := strings.Repeat(rapid.SampledFrom([]string{"", " ", "\n", "a ", "日本\n", "👩‍👩‍👧‍👦", "x\x00\xffy", " b", "line\n\n"}).Draw(t, "text"), rapid.SampledFrom([]int{1, 2, 30, 300}).Draw(t, "times"))
			want.WriteString(s)
			rapid.SampledFrom([]func(string) *Builder{
				b.Text, b.Bold, b.Italic, b.Strike, b.Code, b.Quote, b.Expandable,
				func(s string) *Builder { return b.Pre("go", s) },
				func(s string) *Builder { return b.Link(s, "https://example.org/") },
				func(s string) *Builder { return b.DateTime(1, "r", s) },
			}).Draw(t, "kind")(s)
		}
		got := b.Split()
		judgeAll(t, got, MaxLength)
		if have := letters(visible(got)); have != letters(want.String()) {
			t.Fatalf("letters differ: %d, want %d", len(have), len(letters(want.String())))
		}
	})
}

func TestSplitKeepsClustersWhole(t *testing.T) {
	t.Parallel()
	family := "👩‍👩‍👧‍👦"
	got := Render(strings.Repeat(family, 1000), Options{})
	if len(got) < 3 {
		t.Fatalf("%d messages", len(got))
	}
	for i, m := range got {
		if strings.ReplaceAll(m.Text, family, "") != "" {
			t.Errorf("message %d is cut within a family", i)
		}
	}
	for i, m := range Render("a"+strings.Repeat("\u0301", 9000), Options{}) {
		if err := judge(m); err != nil && i == 0 {
			t.Errorf("message %d: %v", i, err)
		}
	}
}

func TestCloseOpen(t *testing.T) {
	t.Parallel()
	tests := []struct{ in, want string }{
		{"Hello **bold te", "Hello **bold te**"},
		{"Hello **bold ", "Hello **bold**"},
		{"Hello **", "Hello "},
		{"a **b** c", "a **b** c"},
		{"**b**", "**b**"},
		{"**b*", "**b**"},
		{"x `co", "x `co`"},
		{"x ``co`d", "x ``co`d``"},
		{"x `", "x "},
		{"x `a` b", "x `a` b"},
		{"~~go", "~~go~~"},
		{"**b ~~s", "**b ~~s~~**"},
		{"**b `c", "**b `c`**"},
		{"a *it", "a *it"},
		{"f(**kw", "f(**kw**"},
		{`\**x`, `\**x`},
		{"[label](https://exa", "label"},
		{"a ![alt](htt", "a alt"},
		{"[label](https://example.org)", "[label](https://example.org)"},
		{"[label", "[label"},
		{"para **x\n\n- new", "para **x\n\n- new"},
		{"para **x\n- new", "para **x\n- new"},
		{"- a **b", "- a **b**"},
		{"```go\n**x", "```go\n**x"},
		{"```go\nx\n``", "```go\nx\n"},
		{"```go\nx\n```\n**y", "```go\nx\n```\n**y**"},
		{"~~~\n`x", "~~~\n`x"},
		{"", ""},
	}
	for _, tt := range tests {
		if got := closeOpen(tt.in); got != tt.want {
			t.Errorf("%q becomes %q, want %q", tt.in, got, tt.want)
		}
	}
}
