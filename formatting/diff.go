package formatting

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// DiffOptions say how a diff is written. The zero value gives three lines of context and no file header.
type DiffOptions struct {
	// Old and New are the names in the header, which is left out if both are empty. /dev/null stands for no file.
	Old, New string
	// Context is the number of unchanged lines around a change; 0 means 3, a negative number none.
	Context int
}

// Diff is the unified diff between two texts, empty if they are equal. It is exact, and applying it to old gives new; it
// is also the shortest unless the texts differ in more than about a thousand lines, when a stretch is shown as replaced as
// a whole rather than searched for longer. Memory is proportional to the texts.
func Diff(old, new string, o DiffOptions) string {
	if old == new {
		return ""
	}
	d := differ{a: lines(old), b: lines(new), budget: diffBudget}
	d.compare(0, len(d.a), 0, len(d.b))
	var b strings.Builder
	if o.Old != "" || o.New != "" {
		fmt.Fprintf(&b, "--- %s\n+++ %s\n", headerName(cmp.Or(o.Old, o.New)), headerName(cmp.Or(o.New, o.Old)))
	}
	context := max(cmp.Or(o.Context, 3), 0)
	for i := 0; i < len(d.changes); {
		j := i + 1
		for j < len(d.changes) && d.changes[j].a0-d.changes[j-1].a1 <= 2*context {
			j++
		}
		d.hunk(&b, d.changes[i:j], context)
		i = j
	}
	return b.String()
}

// headerName quotes a name, as git does, that would otherwise not stay within its line or end before its end.
func headerName(name string) string {
	if strings.ContainsFunc(name, unicode.IsControl) || strings.HasPrefix(name, `"`) {
		return strconv.Quote(name)
	}
	return name
}

// diffBudget bounds the steps of one comparison.
const diffBudget = 1 << 20

// change says that lines a0 to a1 of the old text became lines b0 to b1 of the new one.
type change struct{ a0, a1, b0, b1 int }

type differ struct {
	a, b    []string
	changes []change
	budget  int
	forward []int
	reverse []int
}

func lines(s string) []string {
	var out []string
	for line := range strings.Lines(s) {
		out = append(out, line)
	}
	return out
}

// compare finds the changes between two stretches by Myers' divide and conquer ("An O(ND) difference algorithm", 4b),
// which needs memory for two rows only.
func (d *differ) compare(a0, a1, b0, b1 int) {
	for a0 < a1 && b0 < b1 && d.a[a0] == d.b[b0] {
		a0, b0 = a0+1, b0+1
	}
	for a0 < a1 && b0 < b1 && d.a[a1-1] == d.b[b1-1] {
		a1, b1 = a1-1, b1-1
	}
	if a0 == a1 && b0 == b1 {
		return
	}
	if a0 < a1 && b0 < b1 {
		if x, y, ok := d.middle(a0, a1, b0, b1); ok {
			d.compare(a0, x, b0, y)
			d.compare(x, a1, y, b1)
			return
		}
	}
	if n := len(d.changes); n > 0 && d.changes[n-1].a1 == a0 && d.changes[n-1].b1 == b0 {
		d.changes[n-1].a1, d.changes[n-1].b1 = a1, b1
		return
	}
	d.changes = append(d.changes, change{a0, a1, b0, b1})
}

// middle finds a point on a shortest path between the corners of a stretch, other than the corners. It reports false if
// the stretches have nothing in common or the budget is spent.
func (d *differ) middle(a0, a1, b0, b1 int) (x, y int, ok bool) {
	n, m := a1-a0, b1-b0
	delta, odd := n-m, (n-m)%2 != 0
	half := (n + m + 1) / 2
	if size := 2*half + 2; len(d.forward) < size {
		d.forward, d.reverse = make([]int, size), make([]int, size)
	}
	f, r := d.forward, d.reverse
	at := func(k int) int { return k + half }
	f[at(1)], r[at(1)] = 0, 0
	for step := 0; step <= half; step++ {
		if d.budget -= 2 * (step + 1); d.budget < 0 {
			return 0, 0, false
		}
		for k := -step; k <= step; k += 2 {
			i := furthest(f, at(k), k == -step, k == step)
			for i < n && i-k < m && i-k >= 0 && d.a[a0+i] == d.b[b0+i-k] {
				i++
			}
			f[at(k)] = i
			if c := delta - k; odd && c > -step && c < step && i+r[at(c)] >= n {
				return d.inner(a0, a1, b0, b1, a0+i, b0+i-k)
			}
		}
		for k := -step; k <= step; k += 2 {
			i := furthest(r, at(k), k == -step, k == step)
			for i < n && i-k < m && i-k >= 0 && d.a[a1-1-i] == d.b[b1-1-i+k] {
				i++
			}
			r[at(k)] = i
			if c := delta - k; !odd && c >= -step && c <= step && i+f[at(c)] >= n {
				return d.inner(a0, a1, b0, b1, a1-i, b1-i+k)
			}
		}
	}
	return 0, 0, false
}

// furthest is where a diagonal goes on from its neighbours.
func furthest(v []int, k int, lowest, highest bool) int {
	if lowest || !highest && v[k-1] < v[k+1] {
		return v[k+1]
	}
	return v[k-1] + 1
}

// inner accepts a point that divides a stretch into two smaller ones.
func (d *differ) inner(a0, a1, b0, b1, x, y int) (int, int, bool) {
	if x < a0 || x > a1 || y < b0 || y > b1 || x == a0 && y == b0 || x == a1 && y == b1 {
		return 0, 0, false
	}
	return x, y, true
}

// hunk writes changes that share their context.
func (d *differ) hunk(b *strings.Builder, changes []change, context int) {
	first, last := changes[0], changes[len(changes)-1]
	before := min(context, first.a0)
	after := min(context, len(d.a)-last.a1)
	a0, a1 := first.a0-before, last.a1+after
	b0, b1 := first.b0-before, last.b1+after
	fmt.Fprintf(b, "@@ -%s +%s @@\n", span(a0, a1), span(b0, b1))
	at := a0
	for _, c := range changes {
		put(b, ' ', d.a[at:c.a0])
		put(b, '-', d.a[c.a0:c.a1])
		put(b, '+', d.b[c.b0:c.b1])
		at = c.a1
	}
	put(b, ' ', d.a[at:a1])
}

// span is a range of lines as a hunk's header names it: an empty one by the line before it.
func span(from, to int) string {
	switch to - from {
	case 0:
		return fmt.Sprintf("%d,0", from)
	case 1:
		return fmt.Sprint(from + 1)
	}
	return fmt.Sprintf("%d,%d", from+1, to-from)
}

func put(b *strings.Builder, mark byte, lines []string) {
	for _, line := range lines {
		b.WriteByte(mark)
		b.WriteString(line)
		if !strings.HasSuffix(line, "\n") {
			b.WriteString("\n\\ No newline at end of file\n")
		}
	}
}

// Stat is how much of one file a diff changes.
type Stat struct {
	Path    string `json:"path"`
	Added   int    `json:"added"`
	Removed int    `json:"removed"`
}

// DiffStat counts the lines that a unified diff, of one file or of many, adds and removes, in the order of the files. A
// file without changed lines (renamed, binary) is listed with zeros. What is not a diff has no files.
func DiffStat(diff string) []Stat {
	var out []Stat
	var old string
	a, b := 0, 0 // lines that the hunk still has
	current := func() *Stat {
		if len(out) == 0 {
			out = append(out, Stat{})
		}
		return &out[len(out)-1]
	}
	for line := range strings.Lines(diff) {
		line = strings.TrimRight(line, "\r\n")
		switch {
		case a > 0 && strings.HasPrefix(line, "-"):
			current().Removed++
			a--
		case b > 0 && strings.HasPrefix(line, "+"):
			current().Added++
			b--
		case a > 0 && b > 0 && (line == "" || line[0] == ' '):
			a, b = a-1, b-1
		case strings.HasPrefix(line, "diff --git "):
			_, path, _ := strings.Cut(line, " b/")
			out = append(out, Stat{Path: path})
			a, b = 0, 0
		case strings.HasPrefix(line, "--- "):
			old, a, b = path(line[4:]), 0, 0
		case strings.HasPrefix(line, "+++ "):
			name := path(line[4:])
			if name == "/dev/null" {
				name = old
			}
			if last := len(out) - 1; last < 0 || out[last].Path != name {
				out = append(out, Stat{Path: name})
			}
		case strings.HasPrefix(line, "@@ "):
			a, b = hunkSize(line)
		}
	}
	return out
}

// path is the name in a header line, without git's prefix and a time stamp.
func path(s string) string {
	s, _, _ = strings.Cut(s, "\t")
	if name, err := strconv.Unquote(s); err == nil && strings.HasPrefix(s, `"`) {
		s = name
	}
	if strings.HasPrefix(s, "a/") || strings.HasPrefix(s, "b/") {
		return s[2:]
	}
	return s
}

func hunkSize(line string) (a, b int) {
	read := func(s string) int {
		var from int
		n := 1
		if _, err := fmt.Sscanf(s, "%d,%d", &from, &n); err != nil {
			return 1
		}
		return max(n, 0)
	}
	fields := strings.Fields(line)
	if len(fields) < 3 {
		return 0, 0
	}
	return read(strings.TrimPrefix(fields[1], "-")), read(strings.TrimPrefix(fields[2], "+"))
}
