package runnertest

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"drawbridge/policy"
	"drawbridge/runner"
)

// Record is whether files that keep what was seen are rewritten.
var Record = flag.Bool("record", false, "rewrite what is kept of the conformance suite's table, and docs/runtimes.md")

// document is what the suite saw of a runtime, by its name.
type document struct {
	name   string
	report Report
}

// The lines of docs/runtimes.md between which the tables stand.
const (
	docsBegin = "<!-- What follows is generated: go test ./runner/runnertest -run Document -record -->"
	docsEnd   = "<!-- The end of what is generated. -->"
)

// kept is what was seen of the runtimes, in the order of the document. One that was never recorded is left out.
func kept(t *testing.T) []document {
	t.Helper()
	var list []document
	for _, name := range []string{"native", "codex", "claude"} {
		file := filepath.Join("..", name, "testdata", "table.json")
		b, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		d := document{name: name}
		if err == nil {
			err = json.Unmarshal(b, &d.report)
		}
		if err != nil || d.report.V != reportVersion {
			t.Fatalf("%s: version %d, %v", file, d.report.V, err)
		}
		list = append(list, d)
	}
	return list
}

func TestTheDocumentSaysWhatTheSuiteSaw(t *testing.T) {
	t.Parallel()
	file := filepath.Join("..", "..", "docs", "runtimes.md")
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(b), docsBegin)
	_, after, ok2 := strings.Cut(rest, docsEnd)
	seen := kept(t)
	if !ok || !ok2 || len(seen) == 0 {
		t.Fatalf("%s has no place for the tables, or none of %d runtimes was recorded", file, len(seen))
	}
	want := before + docsBegin + "\n\n" + tables(seen) + docsEnd + after
	switch {
	case *Record:
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	case want != string(b):
		t.Errorf("%s is not what the suite saw; the flag -record rewrites it", file)
	}
}

// docColumn is a column of a table in the document: an interaction and the modes that it is for.
type docColumn struct {
	title       string
	interaction policy.Interaction
	modes       []policy.Mode
}

func docColumns() []docColumn {
	list := []docColumn{{"plan", policy.Plan, policy.Modes()}}
	for _, m := range policy.Modes() {
		list = append(list, docColumn{string(m), policy.Default, []policy.Mode{m}})
	}
	return list
}

func tables(seen []document) string {
	var b strings.Builder
	b.WriteString(`### The table

What policy.Decide says of an action: it runs without anybody being asked (ran), a reviewer may answer (reviewed), a person
has to (asked), or it is refused without anybody being asked (refused). Without a reviewer, reviewed is asked.

`)
	head(&b)
	for _, c := range columns() {
		cells := []string{string(c)}
		for _, col := range docColumns() {
			cells = append(cells, string(outcomeOf(policy.Decide(col.modes[0], col.interaction, c))))
		}
		row(&b, cells)
	}
	for _, d := range seen {
		d.write(&b)
	}
	reviewers(&b, seen)
	return b.String()
}

func head(b *strings.Builder) {
	titles := []string{"category"}
	for _, col := range docColumns() {
		titles = append(titles, col.title)
	}
	row(b, titles)
	row(b, slices.Repeat([]string{"---"}, len(titles)))
}

func row(b *strings.Builder, cells []string) {
	b.WriteString("| " + strings.Join(cells, " | ") + " |\n")
}

// write is a runtime's table: of each category what was seen of the deed that got furthest.
func (d document) write(b *strings.Builder) {
	r := d.report
	fmt.Fprintf(b, "\n### %s: what was seen\n\n", d.name)
	if strings.Contains(r.Version, ".") { // the native runtime's is its model's name
		fmt.Fprintf(b, "Version %s. ", r.Version)
	}
	b.WriteString("A cell in bold is not what the table says, which stands behind it.\n\n")
	head(b)
	for _, c := range columns() {
		cells := []string{string(c)}
		for _, col := range docColumns() {
			cells = append(cells, r.words(c, col))
		}
		row(b, cells)
	}
	list := func(title string, differences []runner.Difference) {
		if len(differences) == 0 {
			return
		}
		b.WriteString("\n" + title + "\n\n")
		for _, x := range differences {
			fmt.Fprintf(b, "- %s, in %s: %s\n", x.Category, places(x), x.What)
		}
	}
	if len(r.Looser) == 0 {
		b.WriteString("\nThere is no cell in which it is looser than the table.\n")
	}
	list("Looser than the table:", r.Looser)
	list("Stricter than the table:", r.Stricter)
	if len(r.Unreached) > 0 {
		b.WriteString("\nNot reached by any of its tools:\n\n")
		for _, u := range r.Unreached {
			fmt.Fprintf(b, "- %s: %s\n", u.Category, u.Why)
		}
	}
}

// words is a cell. In plan, the modes may differ.
func (r Report) words(c policy.Category, col docColumn) string {
	var words []string
	for _, m := range col.modes {
		seen, ok := r.cell(c, m, col.interaction)
		word := "–"
		if want := outcomeOf(policy.Decide(m, col.interaction, c)); ok && seen == want {
			word = string(seen)
		} else if ok {
			word = fmt.Sprintf("**%s** (%s)", seen, want)
		}
		if !slices.Contains(words, word) {
			words = append(words, word)
		}
	}
	return strings.Join(words, " / ")
}

func places(d runner.Difference) string {
	var list []string
	if d.Plan {
		list = append(list, "plan")
	}
	for _, m := range d.Modes {
		list = append(list, string(m))
	}
	if len(d.Modes) == len(policy.Modes()) {
		list = append(list[:len(list)-len(d.Modes)], "every mode")
	}
	return strings.Join(list, ", ")
}

// reviewers says by which frame each state of a reviewer is told.
func reviewers(b *strings.Builder, seen []document) {
	b.WriteString("\n### Reviewers\n\n")
	row(b, []string{"runtime", "source", "state", "told by"})
	row(b, slices.Repeat([]string{"---"}, 4))
	row(b, []string{"each", runner.ReviewerOurs, "each", "Drawbridge, which asks the reviewer itself"})
	for _, d := range seen {
		if len(d.report.Reviews) == 0 {
			row(b, []string{d.name, "its own", "none", "it has no reviewer of its own"})
		}
		for _, s := range d.report.Reviews {
			by := "`" + s.Frame + "`"
			if s.Frame == "" {
				by = "impossible: " + s.Impossible
			}
			row(b, []string{d.name, "its own", s.State, by})
		}
	}
	b.WriteString("\n")
}
