package native_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"drawbridge/internal/modeltest"
	"drawbridge/runner"
	"drawbridge/runner/native"
)

// TestSessionsOfAFolder: what was begun elsewhere, is empty or cannot be read is left out, and an open one is said to be.
func TestSessionsOfAFolder(t *testing.T) {
	t.Parallel()
	data, folder := t.TempDir(), t.TempDir()
	model := serve(t, modeltest.Config{Script: modeltest.Follow(modeltest.Hands{})})
	r, err := native.New(native.Config{Name: "native", BaseURL: model.URL(), Model: "m", Data: data, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	list := func() []runner.SessionInfo {
		t.Helper()
		s, err := r.Sessions(t.Context(), folder, 10)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	if s := list(); len(s) != 0 {
		t.Errorf("before anything: %+v", s)
	}
	gate := runner.GateFunc(func(context.Context, runner.Question) (runner.Answer, error) { return runner.Answer{}, nil })
	for in, text := range map[string]string{folder: "say first\nsay more", t.TempDir(): "say elsewhere"} {
		s, err := r.Open(t.Context(), runner.Options{Folder: in, Gate: gate})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Turn(t.Context(), runner.Input{Text: text}); err != nil {
			t.Fatal(err)
		}
		if in == folder {
			if all := list(); len(all) != 1 || !all[0].Busy {
				t.Errorf("while it is open: %+v", all)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{"notes.txt": "x", "AAAAAAAAAAAAAAAAAAAAAAAAAA.jsonl": "{broken"} {
		if err := os.WriteFile(filepath.Join(data, "sessions", name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	all := list()
	if len(all) != 1 || all[0].Title != "say first" || all[0].Busy || len(all[0].Last) < 2 || all[0].Used.IsZero() {
		t.Fatalf("sessions %+v", all)
	}
	s, err := r.Open(t.Context(), runner.Options{Folder: folder, Resume: all[0].Token, Gate: gate})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}
