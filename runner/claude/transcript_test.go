package claude

import (
	"testing"
	"unicode/utf8"
)

// FuzzTranscript reads a conversation of any bytes: what is shown of it is bounded text.
func FuzzTranscript(f *testing.F) {
	for _, seed := range []string{
		`{"type":"user","cwd":"/x","message":{"content":"hi <system-reminder>x</system-reminder>"}}` + "\n",
		`{"type":"assistant","message":{"content":[{"type":"text","text":"a\n"},{"type":"text","text":1}]}}` + "\n{",
		`{"type":"custom-title","customTitle":"\n t "}` + "\n" + `{"type":"summary","summary":"s"}`,
		"\n\x00\xff{}\nnull\n[]\n\"\"\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, lines []byte) {
		var s transcript
		s.add(lines, []string{"/x"})
		texts := []string{s.title()}
		if len(s.last) > shownLines {
			t.Errorf("%d messages", len(s.last))
		}
		for _, l := range s.last {
			if l.Text == "" {
				t.Error("a message without text")
			}
			texts = append(texts, l.Text)
		}
		for _, text := range texts {
			if len(text) > shownText+len("…") || !utf8.ValidString(text) {
				t.Errorf("text %q", text)
			}
		}
	})
}
