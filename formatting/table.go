package formatting

import (
	"slices"
	"strings"

	"github.com/rivo/uniseg"
	"github.com/yuin/goldmark/ast"
	extast "github.com/yuin/goldmark/extension/ast"
)

// maxTableWidth is how many columns of fixed-width text a table may take before it is shown as records: more would be
// folded on a phone and lose its alignment.
const maxTableWidth = 60

// table shows a table as an aligned block of code or, if that would be too wide, as one record a row.
func (r *renderer) table(n *extast.Table) {
	outer := r.inRow
	r.inRow = true
	defer func() { r.inRow = outer }()
	var rows [][]string
	var widths []int
	for row := n.FirstChild(); row != nil; row = row.NextSibling() {
		var cells []string
		for cell := row.FirstChild(); cell != nil; cell = cell.NextSibling() {
			text := strings.TrimSpace(strings.ReplaceAll(r.plain(cell), "\t", " "))
			if len(cells) == len(widths) {
				widths = append(widths, 0)
			}
			widths[len(cells)] = max(widths[len(cells)], uniseg.StringWidth(text))
			cells = append(cells, text)
		}
		rows = append(rows, cells)
	}
	total := 3 * (len(widths) - 1)
	for _, w := range widths {
		total += w
	}
	if total > maxTableWidth {
		r.records(n, rows)
		return
	}
	r.preText("", grid(rows, widths, n.Alignments))
}

// grid lays out rows, of which the first is the head, in columns.
func grid(rows [][]string, widths []int, alignments []extast.Alignment) string {
	var b strings.Builder
	for i, row := range rows {
		var line strings.Builder
		for j, cell := range row {
			if j > 0 {
				line.WriteString(" │ ")
			}
			space := widths[j] - uniseg.StringWidth(cell)
			left := 0
			if j < len(alignments) {
				switch alignments[j] {
				case extast.AlignRight:
					left = space
				case extast.AlignCenter:
					left = space / 2
				}
			}
			line.WriteString(strings.Repeat(" ", left) + cell + strings.Repeat(" ", space-left))
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
		if i > 0 {
			continue
		}
		for j, w := range widths {
			if j > 0 {
				b.WriteString("─┼─")
			}
			b.WriteString(strings.Repeat("─", w))
		}
		b.WriteString("\n")
	}
	return b.String()
}

// records shows each row as lines of "head: cell", the first of them bold. Empty cells are left out.
func (r *renderer) records(n *extast.Table, rows [][]string) {
	head := n.FirstChild()
	if !slices.ContainsFunc(rows[1:], func(cells []string) bool { return strings.Join(cells, "") != "" }) {
		r.record(head, nil, rows[0])
		return
	}
	i := 1
	for row := head.NextSibling(); row != nil; row = row.NextSibling() {
		if i > 1 {
			r.separate(true)
		}
		r.record(row, rows[0], rows[i])
		i++
	}
}

func (r *renderer) record(row ast.Node, heads, texts []string) {
	first := true
	j := 0
	for cell := row.FirstChild(); cell != nil; cell = cell.NextSibling() {
		text := texts[j]
		label := ""
		if j < len(heads) && heads[j] != "" {
			label = heads[j] + ": "
		}
		j++
		if text == "" {
			continue
		}
		if !first {
			r.separate(false)
		}
		r.start()
		if first {
			r.b.begin(Entity{Type: TypeBold})
		}
		r.text(label)
		r.inlines(cell)
		if first {
			r.b.end()
		}
		first = false
	}
}
