package app

import (
	"bytes"
	"crypto/rand"
	"os"
	"path/filepath"
	"testing"
)

// TestACommandLeavesNothingBehind: what it starts, in whatever session, has ended when it is said to have.
func TestACommandLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	c, home, _ := commands(t)
	h := shell(`setsid sh -c 'echo $$ > daemon; sleep 1000' & (setsid sleep 1000 &) ; while ! test -s daemon; do sleep 0.01; done`)
	mark := rand.Text()
	h.Env = map[string]string{"HOOK_TEST_MARK": mark}
	if err := c.call(t.Context(), h, finished()); err != nil {
		t.Fatal(err)
	}
	if read(t, home, "daemon") == "" {
		t.Error("there was no daemon")
	}
	files, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if b, err := os.ReadFile(f); err == nil && bytes.Contains(b, []byte(mark)) {
			t.Errorf("%s still runs", filepath.Dir(f))
		}
	}
}
