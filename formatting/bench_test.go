package formatting

import (
	"fmt"
	"strings"
	"testing"
)

// answer is a typical long answer of at least size bytes.
func answer(size int) string {
	var b strings.Builder
	for i := 0; b.Len() < size; i++ {
		fmt.Fprintf(&b, "## Step %d\n\nThe **parser** in `internal/parse_%d.go` drops *every* second token; see [the notes](https://example.org/%d).\n\n", i, i, i)
		b.WriteString("1. Read the file\n2. Fix `next()`\n   - keep the order\n   - run `go test ./...`\n\n")
		fmt.Fprintf(&b, "```go\nfunc step%d(in []string) (out []string) {\n\tfor _, s := range in {\n\t\tout = append(out, s+\"x\")\n\t}\n\treturn out\n}\n```\n\n", i)
		b.WriteString("| test | time |\n|:--|--:|\n| parse | 1.2 ms |\n| render 日本 | 10 ms |\n\n> Mind the **order** of `a || b`.\n\n")
	}
	return b.String()
}

func BenchmarkRender64K(b *testing.B) {
	source := answer(64 << 10)
	b.SetBytes(int64(len(source)))
	b.ReportAllocs()
	for b.Loop() {
		Render(source, Options{})
	}
}

// BenchmarkStream follows an answer with a snapshot every 64 bytes; the throughput is the same for every size.
func BenchmarkStream(b *testing.B) {
	long := "```text\n" + strings.Repeat("a line of output that goes on and on\n", 8<<10)
	list := strings.Repeat("- an item with `code` and **bold**\n", 8<<10)
	for _, kind := range []struct {
		name string
		text func(int) string
	}{
		{"answer", answer},
		{"fence", func(n int) string { return long[:n] }},
		{"list", func(n int) string { return list[:n] }},
	} {
		for _, kb := range []int{16, 64, 256} {
			source := kind.text(kb << 10)
			b.Run(fmt.Sprintf("%s/%dK", kind.name, kb), func(b *testing.B) {
				b.SetBytes(int64(len(source)))
				for b.Loop() {
					s := NewStream(Options{})
					for rest := source; rest != ""; {
						n := min(64, len(rest))
						s.Append(rest[:n])
						s.Snapshot()
						rest = rest[n:]
					}
					s.Finish()
				}
			})
		}
	}
}

func BenchmarkStripInternal64K(b *testing.B) {
	source := answer(64 << 10)
	b.SetBytes(int64(len(source)))
	for b.Loop() {
		StripInternal(source)
	}
}
