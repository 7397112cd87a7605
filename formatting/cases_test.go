package formatting

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// aCase is a case of testdata/cases.json; testdata/README.md says what its fields mean.
type aCase struct {
	Name     string   `json:"name"`
	Contains []string `json:"contains"`
	Absent   []string `json:"absent"`
	Ents     []wanted `json:"ents"`
	NoEnts   []wanted `json:"noents"`
	Split    bool     `json:"split"`
	Stream   bool     `json:"stream"`
	Empty    bool     `json:"empty"`
	MayNone  bool     `json:"maynone"`
}

type wanted struct {
	Type string `json:"type"`
	Text string `json:"text"`
	Arg  string `json:"arg"`
}

func cases(t testing.TB) []aCase {
	t.Helper()
	var out []aCase
	for _, name := range []string{"cases.json", "more.json"} {
		b, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		var some []aCase
		if err := json.Unmarshal(b, &some); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		out = append(out, some...)
	}
	if len(out) < 27 {
		t.Fatalf("%d cases", len(out))
	}
	return out
}

func (c aCase) input(t testing.TB) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", "cases", c.Name+".md"))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func find(ms []Message, w wanted) bool {
	for _, m := range ms {
		for _, e := range m.Entities {
			if e.Type == w.Type && strings.Contains(covered(m, e), w.Text) && (w.Arg == "" || w.Arg == e.Language || w.Arg == e.URL) {
				return true
			}
		}
	}
	return false
}

func TestCases(t *testing.T) {
	t.Parallel()
	for _, c := range cases(t) {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			got := Render(c.input(t), Options{Stream: c.Stream})
			for i, m := range got {
				if err := judge(m); err != nil {
					t.Errorf("message %d: %v", i, err)
				}
			}
			text := visible(got)
			for _, s := range c.Contains {
				if !strings.Contains(text, s) {
					t.Errorf("text lacks %q", s)
				}
			}
			for _, s := range c.Absent {
				if strings.Contains(text, s) {
					t.Errorf("text holds %q", s)
				}
			}
			for _, w := range c.Ents {
				if !find(got, w) {
					t.Errorf("no entity %+v", w)
				}
			}
			for _, w := range c.NoEnts {
				if find(got, w) {
					t.Errorf("unwanted entity %+v", w)
				}
			}
			switch {
			case c.Empty && len(got) > 0:
				t.Errorf("%d messages, want none", len(got))
			case !c.Empty && !c.MayNone && len(got) == 0:
				t.Error("no message")
			case c.Split && len(got) < 2:
				t.Error("not split")
			}
			golden(t, filepath.Join("testdata", "golden", c.Name+".txt"), show(got))
		})
	}
}

// show is messages in a form that people can review.
func show(ms []Message) string {
	var b strings.Builder
	for i, m := range ms {
		fmt.Fprintf(&b, "=== message %d\n%s\n", i+1, m.Text)
		for _, e := range m.Entities {
			fmt.Fprintf(&b, "--- %s %d+%d", e.Type, e.Offset, e.Length)
			if extra := e.URL + e.Language; extra != "" {
				b.WriteString(" " + extra)
			}
			if text := covered(m, e); len(text) <= 60 && !strings.Contains(text, "\n") {
				fmt.Fprintf(&b, " %q", text)
			}
			b.WriteString("\n")
		}
	}
	return b.String()
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs (run with -update to rewrite):\n%s", name, Diff(string(want), got, DiffOptions{Old: "want", New: "got"}))
	}
}

// A rendering of any prefix, finished or not, is accepted, and is empty only if nothing visible was written.
func TestEveryPrefix(t *testing.T) {
	t.Parallel()
	for _, c := range cases(t) {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			input := c.input(t)
			step := max(1, len(input)/500*8) // every prefix of a short input, some hundred of a long one
			if len(input) > 3000 {
				step = len(input) / 60
			}
			for end := 0; end <= len(input); end += step {
				for _, o := range []Options{{}, {Stream: true}} {
					got := Render(input[:end], o)
					for i, m := range got {
						if err := judge(m); err != nil {
							t.Fatalf("%d bytes, %+v, message %d: %v", end, o, i, err)
						}
					}
					if len(got) == 0 && !o.Stream && letters(input[:end]) != "" && utf8.ValidString(input[:end]) && !c.Empty && !c.MayNone && !markupOnly(input[:end]) {
						t.Fatalf("%d bytes, %+v: nothing is shown of %q", end, o, input[:end])
					}
				}
			}
		})
	}
}

// markupOnly reports whether a text is nothing but the opening line of a fence.
func markupOnly(s string) bool {
	return strings.HasPrefix(s, "```") && strings.Count(strings.TrimSpace(s), "\n") == 0 ||
		strings.HasPrefix(s, "````") && strings.Count(s, "\n") <= 1 || strings.HasPrefix(s, "[r]:")
}
