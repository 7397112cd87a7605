package e2e_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// newDemo starts the demonstration for programs and returns it, its world, and the line by which it said where that is.
// Its project is the folder shop.
func newDemo(t *testing.T) (p *program, w *world, first string) {
	t.Helper()
	dir := folder(t)
	p = start(t, "demo", []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "TMPDIR=" + dir, goCache(t)},
		"demo", "--headless", "--listen", "127.0.0.1:0", "--folder", dir)
	first = p.out.line(p, "")
	url, ok := strings.CutPrefix(first, "ready ")
	if !ok || !strings.HasPrefix(url, "http://127.0.0.1:") {
		t.Fatalf("the first line is %q, want ready http://127.0.0.1:…", first)
	}
	return p, &world{sim: sim{t: t, url: url}, dir: dir, project: filepath.Join(dir, "shop")}, first
}

// goCache sets the Go build cache of whoever runs the tests, as a person's demo has theirs.
func goCache(t *testing.T) string {
	t.Helper()
	cache, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	return "GOCACHE=" + strings.TrimSpace(string(cache))
}

// TestDemoFixesTheFailingTest: one command, and "Fix the failing test" leads to cards, taps on Allow, a really changed
// file, really run tests and a formatted answer.
func TestDemoFixesTheFailingTest(t *testing.T) {
	t.Parallel()
	p, w, first := newDemo(t)
	file := w.path("price/price.go")
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}

	me := w.private(ada)
	prompt := me.say("Fix the failing test")
	edit := me.card(prompt, "Change this file?")
	if now, err := os.ReadFile(file); err != nil || !bytes.Equal(now, before) {
		t.Errorf("the file was changed before anybody allowed it (%v)", err)
	}
	for _, want := range []string{"- return cents - cents/100*percent", "+ return cents - cents*percent/100"} {
		if words := strings.Join(strings.Fields(edit.Text), " "); !strings.Contains(words, want) {
			t.Errorf("the card does not show %q:\n%s", want, edit.Text)
		}
	}
	if seen := me.tap(edit.ID, "Allow"); seen.Text != "Allowed" {
		t.Errorf("the tap was answered with %q", seen.Text)
	}
	tests := me.card(edit.ID, "go test ./...")
	me.turns(edit.ID, "Allowed by Ada")
	if m := me.message(edit.ID); len(m.Buttons) > 0 {
		t.Errorf("the decided card still has the buttons %q", m.labels())
	}
	me.tap(tests.ID, "Allow")

	answer := me.hears(tests.ID, "All tests pass")
	if strings.Contains(answer.Text, "**") || strings.Contains(answer.Text, "`") {
		t.Errorf("raw Markdown in the answer:\n%s", answer.Text)
	}
	kinds := map[string]bool{}
	for _, e := range answer.Entities {
		kinds[e.Type] = true
	}
	for _, kind := range []string{"bold", "code", "pre"} {
		if !kinds[kind] {
			t.Errorf("the answer has no entity %s: %+v", kind, answer.Entities)
		}
	}
	after, err := os.ReadFile(file)
	if err != nil || !strings.Contains(string(after), "return cents - cents*percent/100") {
		t.Errorf("the file was not changed (%v):\n%s", err, after)
	}
	me.ends(prompt, "Done in")
	p.stop()
	if got := p.out.String(); got != first+"\n" {
		t.Errorf("standard output holds more than its one line:\n%s", got)
	}
}
