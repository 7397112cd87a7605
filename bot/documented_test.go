package bot

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// TestCommandsAreDocumented: the documentation names each command.
func TestCommandsAreDocumented(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob(filepath.Join("..", "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	var all []byte
	for _, page := range append(pages, filepath.Join("..", "README.md")) {
		b, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, b...)
	}
	for _, c := range commands() {
		if !regexp.MustCompile("`/" + c.name + `\b`).Match(all) {
			t.Errorf("no page names /%s", c.name)
		}
	}
}
