package claude_test

import (
	"os"
	"path/filepath"
	"testing"

	"drawbridge/runner/claude"
)

// TestRecordedConversations plays each recording against the driver: it has to send the same answers, and tell the same.
func TestRecordedConversations(t *testing.T) {
	t.Parallel()
	for _, s := range scenarios() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			transcript, err := os.ReadFile(filepath.Join("testdata", s.name+".jsonl"))
			if err != nil {
				t.Fatal(err)
			}
			r, _ := faked(t, string(transcript), claude.Config{})
			o := begin(t, r, folder(t), s.policy, s.answer)
			s.run(o)
			golden(t, s.name+".golden", o.story())
		})
	}
}
