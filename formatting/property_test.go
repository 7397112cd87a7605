package formatting

import (
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// markup is text of the kind that breaks renderers: every marker, in any order, closed or not.
func markup() *rapid.Generator[string] {
	piece := rapid.SampledFrom([]string{
		"word", "naïve", "日本語", "שלום", "👩‍👩‍👧‍👦", "🇺🇦", "e\u0301", " ", " ", " ", "\n", "\n", "\n\n", "\n\n", "  \n", "\\\n",
		"*", "**", "***", "_", "__", "~~", "`", "``", "\n```\n", "\n~~~\n", "\n    ", "\n\t", "\n- ", "\n  - ", "\n* ", "\n+ ", "\n   ",
		"\n1. ", "\n2) ", "\n> ", "\n> > ", "\n>", "\n# ", "\n### ", "\n===\n", "\n---\n", "\n***\n", "\n- [ ] ", "||", "$", "$$", "\\(", "\\)", "\\", "&", "&amp;", "<", ">", "<b>", "[", "]", "(", ")", "!", "*.go", "**/", "foo_bar", "2**10",
		".", ":", "\r\n", "\x1b[31m", "\x1b[0m", "\u200d", "\u202e", "\x00", "-", "=",
	})
	return rapid.Map(rapid.SliceOfN(piece, 0, 80), func(s []string) string { return strings.Join(s, "") })
}

// hides matches markup that takes text out of sight: the address of a link, a definition, the info string of a fence.
var hides = regexp.MustCompile("\\]\\(|\\]:|(```|~~~)[`~]*[^`\n]*[^\\s`~]")

func judgeAll(t interface {
	Helper()
	Fatalf(string, ...any)
}, ms []Message, limit int,
) {
	t.Helper()
	for i, m := range ms {
		if err := judge(m); err != nil {
			t.Fatalf("message %d of %d: %v\n%s", i, len(ms), err, show(ms))
		}
		if n := Len(m.Text); n > limit {
			t.Fatalf("message %d has %d units, limit %d", i, n, limit)
		}
	}
}

// No rendering is refused, and none loses, doubles or moves a letter, wherever it is cut.
func TestRenderKeepsLetters(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		source := markup().Draw(t, "source")
		limit := rapid.SampledFrom([]int{64, 65, 100, 1000, MaxLength}).Draw(t, "limit")
		got := Render(source, Options{Limit: limit})
		judgeAll(t, got, limit)
		want := letters(strings.ReplaceAll(strings.ReplaceAll(strings.ReplaceAll(source, "\x1b[31m", ""), "\x1b[0m", ""), "&amp;", "&"))
		have := letters(strings.ReplaceAll(visible(got), "&amp;", "&"))
		if want != have && !hides.MatchString(source) {
			t.Fatalf("letters of %q\nare  %s\nwant %s", source, have, want)
		}
		judgeAll(t, Render(source, Options{Limit: limit, Stream: true}), limit)
	})
}

// A stream, cut and looked at anywhere, ends as the rendering of the whole, and never takes back a settled message.
func TestStreamIsRender(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var source string
		for range rapid.IntRange(1, 4).Draw(t, "sections") {
			source += markup().Draw(t, "source") + rapid.SampledFrom([]string{"", "\n", "\n\n", "\n\nNext\n\n"}).Draw(t, "between")
		}
		limit := rapid.SampledFrom([]int{64, 100, 300}).Draw(t, "limit")
		s := NewStream(Options{Limit: limit})
		s.r.partial = rapid.SampledFrom([]int{1, 30, 100, partSize}).Draw(t, "partial")
		var settled []Message
		for rest := source; rest != ""; {
			n := rapid.IntRange(1, min(len(rest), 40)).Draw(t, "piece")
			s.Append(rest[:n])
			rest = rest[n:]
			if rapid.Bool().Draw(t, "look") {
				shot := s.Snapshot()
				settled = shot.Settled
				judgeAll(t, shot.Tail, limit)
			}
		}
		defines := s.r.defines
		got := s.Finish()
		want := Render(source, Options{Limit: limit})
		if show(got) != show(want) {
			t.Fatalf("source %q\n%s", source, Diff(show(want), show(got), DiffOptions{Old: "render", New: "stream", Context: 20}))
		}
		if !defines && !s.r.defines && (len(settled) > len(got) || show(settled) != show(got[:len(settled)])) {
			t.Fatalf("source %q: settled\n%sended as\n%s", source, show(settled), show(got))
		}
	})
}

func FuzzRender(f *testing.F) {
	for _, c := range cases(f) {
		f.Add(c.input(f))
	}
	f.Fuzz(func(t *testing.T, source string) {
		judgeAll(t, Render(source, Options{}), MaxLength)
		judgeAll(t, Render(source, Options{Stream: true, Limit: 64}), 64)
	})
}

func FuzzStream(f *testing.F) {
	for i, c := range cases(f) {
		if input := c.input(f); len(input) < 3000 {
			f.Add(input, uint8(7+i))
		}
	}
	f.Fuzz(func(t *testing.T, source string, piece uint8) {
		s := NewStream(Options{Limit: 100})
		s.r.partial = 1 + int(piece%50)
		for rest := source; rest != ""; {
			n := min(len(rest), 1+int(piece))
			s.Append(rest[:n])
			rest = rest[n:]
			judgeAll(t, s.Snapshot().Tail, 100)
		}
		got, want := show(s.Finish()), show(Render(source, Options{Limit: 100}))
		if got != want {
			t.Fatalf("stream differs from render:\n%s", Diff(want, got, DiffOptions{Old: "render", New: "stream"}))
		}
	})
}
