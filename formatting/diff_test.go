package formatting

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestDiff(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, old, new string
		o              DiffOptions
		want           string
	}{
		{"equal", "a\n", "a\n", DiffOptions{}, ""},
		{"created", "", "a\nb\n", DiffOptions{Old: "/dev/null", New: "b/x"}, "--- /dev/null\n+++ b/x\n@@ -0,0 +1,2 @@\n+a\n+b\n"},
		{"emptied", "a\n", "", DiffOptions{}, "@@ -1 +0,0 @@\n-a\n"},
		{"no newline", "a", "a\n", DiffOptions{}, "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a\n"},
		{
			"context", "1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\nx\n6\n7\n8\n9\n",
			DiffOptions{Context: 1},
			"@@ -4,3 +4,3 @@\n 4\n-5\n+x\n 6\n",
		},
		{
			"two hunks", "1\n2\n3\n4\n5\n6\n", "x\n2\n3\n4\n5\ny\n",
			DiffOptions{Context: -1},
			"@@ -1 +1 @@\n-1\n+x\n@@ -6 +6 @@\n-6\n+y\n",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := Diff(tt.old, tt.new, tt.o); got != tt.want {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
		})
	}
}

// Applying a diff to the old text gives the new one, also when the search is cut short.
func TestDiffApplies(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.Map(rapid.SliceOfN(rapid.SampledFrom([]string{"a\n", "b\n", "c\n", "\n", "-- x\n"}), 0, 60), func(s []string) string {
			return strings.Join(s, "")
		})
		old, updated := text.Draw(t, "old"), text.Draw(t, "new")+rapid.SampledFrom([]string{"", "tail"}).Draw(t, "tail")
		diff := Diff(old, updated, DiffOptions{Old: "a/f", New: "b/f", Context: rapid.IntRange(-1, 4).Draw(t, "context")})
		if got := apply(t, old, diff); got != updated {
			t.Fatalf("applying\n%s\nto %q gives %q, want %q", diff, old, got, updated)
		}
		d := differ{a: lines(old), b: lines(updated), budget: rapid.IntRange(0, 200).Draw(t, "budget")}
		d.compare(0, len(d.a), 0, len(d.b))
		var rebuilt strings.Builder
		at := 0
		for _, c := range d.changes {
			rebuilt.WriteString(strings.Join(d.a[at:c.a0], ""))
			rebuilt.WriteString(strings.Join(d.b[c.b0:c.b1], ""))
			at = c.a1
		}
		rebuilt.WriteString(strings.Join(d.a[at:], ""))
		if rebuilt.String() != updated {
			t.Fatalf("changes %v rebuild %q, want %q", d.changes, rebuilt.String(), updated)
		}
	})
}

// apply is a patch program that trusts nothing but the hunks' headers and lines.
func apply(t *rapid.T, old, diff string) string {
	source, out, at := lines(old), []string{}, 0
	for line := range strings.Lines(diff) {
		switch {
		case strings.HasPrefix(line, "--- a/f"), strings.HasPrefix(line, "+++ b/f"):
		case strings.HasPrefix(line, "@@ "):
			var from int
			head := strings.Fields(line)[1]
			first, count, counted := strings.Cut(strings.TrimPrefix(head, "-"), ",")
			for _, c := range first {
				from = from*10 + int(c-'0')
			}
			if !counted || count != "0" {
				from--
			}
			for at < from {
				out, at = append(out, source[at]), at+1
			}
		case strings.HasPrefix(line, `\`):
			out[len(out)-1] = strings.TrimSuffix(out[len(out)-1], "\n")
		case strings.HasPrefix(line, "+"):
			out = append(out, line[1:])
		default:
			if at >= len(source) || strings.TrimSuffix(source[at], "\n") != strings.TrimSuffix(line[1:], "\n") {
				t.Fatalf("line %q does not match the old text at line %d", line, at+1)
			}
			if line[0] == ' ' {
				out = append(out, source[at])
			}
			at++
		}
	}
	return strings.Join(append(out, source[at:]...), "")
}

func TestDiffShortest(t *testing.T) {
	t.Parallel()
	got := Diff("a\nb\nc\na\nb\nb\na\n", "c\nb\na\nb\na\nc\n", DiffOptions{})
	if n := strings.Count(got, "\n-") + strings.Count(got, "\n+"); n != 5 {
		t.Errorf("%d changed lines, want the 5 of Myers' example:\n%s", n, got)
	}
}

func TestDiffHuge(t *testing.T) {
	t.Parallel()
	old := strings.Repeat("left\nother\n", 20000)
	updated := strings.Repeat("right\nother\nthird\n", 20000)
	stats := DiffStat(Diff(old, updated, DiffOptions{Old: "a/f", New: "b/f"}))
	if len(stats) != 1 || stats[0].Added-stats[0].Removed != 20000 {
		t.Errorf("got %+v, want 20000 lines more", stats)
	}
}

func TestDiffStat(t *testing.T) {
	t.Parallel()
	diff := "diff --git a/x.go b/x.go\nindex 1..2 100644\n--- a/x.go\n+++ b/x.go\n@@ -1,3 +1,3 @@\n a\n--- not a header\n+++ nor this\n c\n" +
		"diff --git a/old b/new\nsimilarity index 100%\nrename from old\nrename to new\n" +
		"diff --git a/gone b/gone\ndeleted file mode 100644\n--- a/gone\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-a\n-b\n"
	want := []Stat{{"x.go", 1, 1}, {"new", 0, 0}, {"gone", 0, 2}}
	got := DiffStat(diff)
	if len(got) != len(want) {
		t.Fatalf("got %+v, want %+v", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("file %d: got %+v, want %+v", i, got[i], want[i])
		}
	}
	if got := DiffStat("no diff\n+ at all\n"); len(got) != 0 {
		t.Errorf("prose gives %+v", got)
	}
}

// TestDiffNamesStayInTheirLine: the name of a file cannot forge lines of a diff.
func TestDiffNamesStayInTheirLine(t *testing.T) {
	t.Parallel()
	const name = "b/x\n+++ b/y\tz"
	diff := Diff("", "text\n", DiffOptions{Old: "/dev/null", New: name})
	if want := "--- /dev/null\n+++ \"b/x\\n+++ b/y\\tz\"\n@@ -0,0 +1 @@\n+text\n"; diff != want {
		t.Errorf("Diff = %q, want %q", diff, want)
	}
	if got := DiffStat(diff); len(got) != 1 || got[0].Path != name[2:] {
		t.Errorf("DiffStat = %+v, want the one file %q", got, name[2:])
	}
}
