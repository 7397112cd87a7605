// Package docs checks what the documentation says about the tree: that the tests it names exist, and that its links lead
// somewhere.
package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const root = "../.."

// pages are the documents for people.
func pages(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	paths, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range append(paths, filepath.Join(root, "README.md"), filepath.Join(root, "CHANGELOG.md")) {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		found[path] = string(b)
	}
	return found
}

func TestNamedTestsExist(t *testing.T) {
	t.Parallel()
	declared := map[string]bool{}
	declaration := regexp.MustCompile(`(?m)^func (Test\w+|Fuzz\w+)\(`)
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		b, err := os.ReadFile(path)
		for _, m := range declaration.FindAllSubmatch(b, -1) {
			declared[string(m[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(declared) < 100 {
		t.Fatalf("only %d tests were found", len(declared))
	}
	named := regexp.MustCompile("`((?:Test|Fuzz)[A-Z]\\w+)`")
	count := 0
	for path, text := range pages(t) {
		for _, m := range named.FindAllStringSubmatch(text, -1) {
			count++
			if !declared[m[1]] {
				t.Errorf("%s names %s, which does not exist", path, m[1])
			}
		}
	}
	if count < 50 {
		t.Errorf("only %d tests are named in the documentation", count)
	}
}

// TestEveryPromiseHasTests: each of the thirteen promises has a heading, and at least one test below it.
func TestEveryPromiseHasTests(t *testing.T) {
	t.Parallel()
	sections := regexp.MustCompile(`(?m)^## (\d+)\. `).Split(pages(t)[filepath.Join(root, "docs", "invariants.md")], -1)
	if len(sections) != 14 {
		t.Fatalf("%d promises, want 13", len(sections)-1)
	}
	for i, text := range sections[1:] {
		if !strings.Contains(text, "`Test") {
			t.Errorf("promise %d names no test", i+1)
		}
	}
}

func TestLinksLeadSomewhere(t *testing.T) {
	t.Parallel()
	link := regexp.MustCompile(`\]\(([^)#:\s]+)(?:#[^)]*)?\)`)
	for path, text := range pages(t) {
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(path), m[1])); err != nil {
				t.Errorf("%s links to %s, which is not there", path, m[1])
			}
		}
	}
}
