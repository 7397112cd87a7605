package jsonl_test

import (
	"context"
	"io"
	"log/slog"
	"strings"
	"testing"

	"drawbridge/internal/jsonl"
)

// repeated is a program that says the same n times.
type repeated struct {
	frame string
	n     int
	rest  string
}

func (r *repeated) Read(b []byte) (int, error) {
	if r.rest == "" {
		if r.n == 0 {
			return 0, io.EOF
		}
		r.n--
		r.rest = r.frame
	}
	n := copy(b, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

type nowhere struct{}

func (nowhere) Write(b []byte) (int, error) { return len(b), nil }
func (nowhere) Close() error                { return nil }

// BenchmarkNotification measures a notification from the pipe to its handler.
func BenchmarkNotification(b *testing.B) {
	for name, size := range map[string]int{"80B": 80, "1MB": 1 << 20} {
		b.Run(name, func(b *testing.B) {
			frame := `{"method":"item/commandExecution/outputDelta","params":{"delta":"` + strings.Repeat("x", size) + `"}}` + "\n"
			b.SetBytes(int64(len(frame)))
			p := jsonl.NewPeer(jsonl.PeerConfig{
				Lines:   jsonl.NewLines(jsonl.LinesConfig{In: io.NopCloser(&repeated{frame: frame, n: b.N}), Out: nowhere{}}),
				Dialect: jsonl.RPC{}, Logger: slog.New(slog.DiscardHandler), QueueLimit: 1 << 40,
				Notification: func(context.Context, jsonl.Message) {},
			})
			b.ResetTimer()
			_ = p.Run(b.Context()) // the end of the program is the only one here
		})
	}
}
