package codex

import (
	"encoding/json"
	"log/slog"
	"strconv"
	"strings"
	"testing"

	"drawbridge/runner"
)

// turnOf begins a turn of a session that no codex stands behind.
func turnOf(tb testing.TB, sink runner.Sink) *session {
	tb.Helper()
	r, err := New(Config{Program: "codex", Data: tb.TempDir(), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		tb.Fatal(err)
	}
	s := newSession(r, runner.Options{Folder: tb.TempDir(), Sink: sink})
	s.thread = "thread"
	t, err := s.begin(runner.Input{Turn: "turn"})
	if err != nil {
		tb.Fatal(err)
	}
	s.started(t, "codex's")
	tb.Cleanup(func() {
		s.finish(t)
		if err := s.Close(); err != nil {
			tb.Error(err)
		}
	})
	return s
}

func (s *session) told(tb testing.TB, method, params string) {
	tb.Helper()
	if _, err := s.hear(method, route{ThreadID: "thread", TurnID: "codex's"}, json.RawMessage(params)); err != nil {
		tb.Fatal(err)
	}
}

// BenchmarkDelta is from a piece of text in codex's words to the sink.
func BenchmarkDelta(b *testing.B) {
	heard := make(chan struct{}, 1)
	s := turnOf(b, func(e runner.Event) {
		if e.Kind == runner.ContentDelta {
			heard <- struct{}{}
		}
	})
	s.told(b, "item/started", `{"threadId":"thread","turnId":"codex's","item":{"type":"agentMessage","id":"m"}}`)
	b.ResetTimer()
	for range b.N {
		s.told(b, "item/agentMessage/delta", `{"threadId":"thread","turnId":"codex's","itemId":"m","delta":"word "}`)
		<-heard
	}
}

// BenchmarkSixtyThousandLines is a command that puts out so many, of which codex tells a mebibyte in one frame.
func BenchmarkSixtyThousandLines(b *testing.B) {
	s := turnOf(b, func(runner.Event) {})
	output, err := json.Marshal(strings.Repeat("a line of output\n", 60_000))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.ResetTimer()
	for n := range b.N {
		s.told(b, "item/completed", `{"threadId":"thread","turnId":"codex's","item":{"type":"commandExecution","id":"`+strconv.Itoa(n)+
			`","command":"yes","status":"completed","aggregatedOutput":`+string(output)+`}}`)
	}
}
