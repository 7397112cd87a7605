package jsonl_test

import (
	"fmt"
	"strings"
	"testing"

	"drawbridge/internal/jsonl"
)

func TestATailIsTheLastLinesAsText(t *testing.T) {
	t.Parallel()
	numbers := func(from, to int) (s []string) {
		for i := from; i <= to; i++ {
			s = append(s, fmt.Sprint("line ", i))
		}
		return s
	}
	for _, c := range []struct {
		name, text string
		want       []string
	}{
		{"nothing", "", nil},
		{"the last 20", strings.Join(numbers(1, 300), "\n") + "\n", numbers(281, 300)},
		{"a last line without an end", "a\n\n  \nb", []string{"a", "b"}},
		{"colours and titles", "\x1b[31mERROR\x1b[0m: \x1b]0;title\x07no \x1b]8;;http://x\x1b\\login\n", []string{"ERROR: no login"}},
		{"progress", "10 %\r50 %\rdone\r\n", []string{"done"}},
		{"control characters", "a\x00b\x07\tc\u0085\n", []string{"ab c"}},
		{"invalid text", "a\xffb\n", []string{"a\ufffdb"}},
		{"a line that was cut is left out", strings.Repeat("x", 20_000) + "\nend\n", []string{"end"}},
		{"one line too long", strings.Repeat("x", 20_000), []string{strings.Repeat("x", 8<<10)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for _, size := range []int{1, 7, 1 << 20} {
				tail := jsonl.NewTail()
				for rest := c.text; rest != ""; {
					n := min(size, len(rest))
					if k, err := tail.Write([]byte(rest[:n])); k != n || err != nil {
						t.Fatal(k, err)
					}
					rest = rest[n:]
				}
				if got := tail.Lines(); fmt.Sprintf("%q", got) != fmt.Sprintf("%q", c.want) {
					t.Errorf("in pieces of %d: %q, want %q", size, got, c.want)
				}
			}
		})
	}
}

func TestDrainReadsToTheEnd(t *testing.T) {
	t.Parallel()
	tail := jsonl.NewTail()
	tail.Drain(strings.NewReader(strings.Repeat("noise\n", 1_000_000) + "the reason\n"))
	<-tail.Drained()
	if lines := tail.Lines(); len(lines) != 20 || lines[19] != "the reason" {
		t.Errorf("%q", lines)
	}
}
