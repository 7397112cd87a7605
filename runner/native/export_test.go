package native

import (
	"context"
	"log/slog"

	"drawbridge/internal/chatapi"
	"drawbridge/runner"
)

// TryCall carries out one tool call in a session that has no model.
func TryCall(data, folder string, gate runner.Gate, c chatapi.ToolCall) string {
	r, err := New(Config{Name: "x", BaseURL: "http://127.0.0.1:1", Model: "m", Data: data, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err.Error()
	}
	opened, err := r.Open(context.Background(), runner.Options{Folder: folder, Gate: gate})
	if err != nil {
		return err.Error()
	}
	s := opened.(*session)
	defer s.Close() //nolint:errcheck // nothing is asserted of it
	t := &turn{session: s, conversation: &conversation{}, id: "t"}
	result, _ := t.call(s.life, c)
	return result
}
