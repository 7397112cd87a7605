package codex

import (
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"drawbridge/internal/jsonl"
	"drawbridge/runner"
)

// FuzzFrames feeds a session with frames that no codex would send: in the middle of a turn, for its own thread and for one
// of a sub-agent. Whatever they hold, items are begun before they are completed, and completed once.
func FuzzFrames(f *testing.F) {
	files, err := filepath.Glob("testdata/turns/*.jsonl")
	if err != nil || len(files) == 0 {
		f.Fatal(files, err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(b))
	}
	f.Add(`{"frame":{"method":"turn/completed","params":null}}` + "\n" + `{"frame":{"method":"item/started","params":{"item":{"type":7}}}}`)
	f.Fuzz(func(t *testing.T, lines string) {
		state := map[string]int{}
		r, err := New(Config{Program: "codex", Data: t.TempDir(), Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		s := newSession(r, runner.Options{Folder: t.TempDir(), Sink: func(e runner.Event) {
			switch e.Kind {
			case runner.ItemStarted:
				if state[e.Item.ID]++; state[e.Item.ID] != 1 {
					state[e.Item.ID] = 1 // the same name again is another item
				}
			case runner.ContentDelta:
				if state[e.Item.ID] != 1 {
					t.Errorf("a delta of %q, which does not run", e.Item.ID)
				}
			case runner.ItemCompleted:
				if state[e.Item.ID] != 1 {
					t.Errorf("%q is completed and does not run", e.Item.ID)
				}
				state[e.Item.ID] = 2
			default:
			}
		}})
		s.thread = "01a22e9d-46e3-7292-8da1-abf7e1530ca7"
		running, err := s.begin(runner.Input{Turn: "turn"})
		if err != nil {
			t.Fatal(err)
		}
		running.abort, running.sent = func() {}, true
		s.server = &server{over: make(chan struct{}), sessions: map[string]*session{}}
		close(s.server.over) // there is nobody to be told anything
		for line := range strings.Lines(lines) {
			var one struct {
				Frame struct {
					Method string          `json:"method"`
					Params json.RawMessage `json:"params"`
				} `json:"frame"`
			}
			if json.Unmarshal([]byte(line), &one) != nil {
				continue
			}
			var to route
			if json.Unmarshal(one.Frame.Params, &to) != nil {
				to = route{ThreadID: s.thread}
			}
			if one.Frame.Method == "turn/started" && to.ThreadID == s.thread && running.id != "" {
				continue // a stray turn is interrupted, for which there is nobody here
			}
			_, _ = s.hear(one.Frame.Method, to, one.Frame.Params)
			_, _ = s.understand(jsonl.Message{ID: "1", Method: one.Frame.Method, Params: one.Frame.Params}, to)
		}
		s.server = nil
		s.finish(running)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		for id, n := range state {
			if n != 2 {
				t.Errorf("%q was not completed", id)
			}
		}
	})
}
