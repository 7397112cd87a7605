//go:build runtimes

package claude_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"drawbridge/runner"
	"drawbridge/runner/claude"
)

func (o *open) set(p runner.Policy) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.policy = p
}

func (o *open) asked() []runner.Question {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.questions)
}

// told are the events of a kind.
func (o *open) told(k runner.EventKind) []runner.Event {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(o.events), func(e runner.Event) bool { return e.Kind != k })
}

func (o *open) put(name, text string) {
	o.t.Helper()
	file := filepath.Join(o.folder, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		o.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o755); err != nil {
		o.t.Fatal(err)
	}
}

// looked is what a runtime says of itself. On a machine that is busy the look may take longer than people wait for it, so it is
// tried again.
func looked(t *testing.T, r *claude.Runtime) runner.Capability {
	t.Helper()
	for end := time.Now().Add(3 * time.Minute); ; {
		c, err := r.Probe(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if c.State != runner.Failed || c.Cause != runner.CauseProbe || time.Now().After(end) {
			return c
		}
	}
}
