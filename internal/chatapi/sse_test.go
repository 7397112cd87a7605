package chatapi

import (
	"encoding/json"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"
)

// parsed are the events of a stream, and whether it could be read to its end.
func parsed(r io.Reader) (list []string, whole bool) {
	whole = true
	for data, err := range events(r) {
		if err != nil {
			whole = false
		} else {
			list = append(list, string(data))
		}
	}
	return list, whole
}

func TestEvents(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		stream string
		want   []string
	}{
		{"", nil},
		{"data: a\n\ndata:b\n\n", []string{"a", "b"}},
		{"data: a\r\n\r\ndata: b\r\n\r\n", []string{"a", "b"}},
		{"data: a\rdata: b\r\r", []string{"a\nb"}},
		{"data: a\ndata: b\n\n", []string{"a\nb"}},
		{"data: a\r\ndata: b\r\n\r\n", []string{"a\nb"}},
		{": comment\nevent: x\nid: 1\nretry: 2\ndata: a\n\n: ping\n\n", []string{"a"}},
		{"data\ndata: a\n\n\n\n", []string{"a"}},
		{"data: a\n\ndata: unfinished", []string{"a", "unfinished"}},
		{"data:  two blanks\n\n", []string{" two blanks"}},
	} {
		for name, r := range map[string]io.Reader{
			"at once": strings.NewReader(c.stream), "byte by byte": iotest.OneByteReader(strings.NewReader(c.stream)),
		} {
			if got, whole := parsed(r); !slices.Equal(got, c.want) || !whole {
				t.Errorf("%q %s: %q, want %q", c.stream, name, got, c.want)
			}
		}
	}
	if got, whole := parsed(io.MultiReader(strings.NewReader("data: a\n\ndata: b"), iotest.ErrReader(io.ErrUnexpectedEOF))); whole || !slices.Equal(got, []string{"a"}) {
		t.Errorf("a broken stream: %q, %v", got, whole)
	}
}

func FuzzEvents(f *testing.F) {
	for _, s := range []string{"data: a\n\n", "data: a\r\n\r\ndata: b", "\r\r\n\ndata:\n\n", "data: {\"choices\":[]}\n\ndata: [DONE]\n\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		once, _ := parsed(strings.NewReader(s))
		slowly, _ := parsed(iotest.OneByteReader(strings.NewReader(s)))
		if !slices.Equal(once, slowly) {
			t.Errorf("at once %q, byte by byte %q", once, slowly)
		}
		for _, e := range once {
			if strings.ContainsRune(e, '\r') {
				t.Errorf("an event holds a line end: %q", e)
			}
		}
	})
}

func FuzzChunk(f *testing.F) {
	for _, s := range []string{
		`{"choices":[{"index":0,"delta":{"content":"x"}}]}`, `{"error":null}`, `{"error":{"message":1}}`, `{"error":[]}`,
		`{"choices":[{"delta":{"tool_calls":[{"index":9,"id":"a","function":{"name":"n","arguments":{"a":1}}}]}}]}`,
		`{"choices":[{"delta":{"content":[{"text":"a"}],"reasoning":null},"finish_reason":null}],"usage":{"prompt_tokens":1}}`,
		`null`, `[]`, `{"choices":null,"usage":null}`,
	} {
		f.Add(s, s)
	}
	f.Fuzz(func(t *testing.T, first, second string) {
		var told strings.Builder
		a := &assembly{watch: Watch{Text: func(d string) { told.WriteString(d) }}}
		for _, s := range []string{first, second} {
			if e := a.chunk([]byte(s)); e != nil {
				if strings.ContainsAny(e.Advice(), "\n\r\x00\x1b") || !utf8.ValidString(e.Advice()) || len(e.Advice()) > 2000 {
					t.Errorf("advice %q", e.Advice())
				}
			}
		}
		r, _ := a.end()
		if r.Message.Content != told.String() {
			t.Errorf("told %q, kept %q", told.String(), r.Message.Content)
		}
		b, err := json.Marshal(r.Message)
		if err != nil {
			t.Fatal(err)
		}
		var back Message
		if err := json.Unmarshal(b, &back); err != nil {
			t.Errorf("the message does not come back: %v", err)
		}
	})
}
