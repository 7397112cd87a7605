package bench_test

import (
	"context"
	"testing"
	"time"

	"drawbridge/internal/modeltest"
)

// BenchmarkOutput is a turn whose command puts out 60,000 lines: what `drawbridge serve` has in memory at its highest,
// above what it has idle. One operation is one turn.
func BenchmarkOutput(b *testing.B) { stores(b, benchmarkOutput) }

func benchmarkOutput(b *testing.B, redisURL string) {
	t := startTelegram(b)
	model := startScript(b, func(_ context.Context, r modeltest.Request) modeltest.Reply {
		if last := r.Messages[len(r.Messages)-1]; last.Role == "user" {
			return modeltest.Reply{Calls: []modeltest.Call{modeltest.CallOf("shell", map[string]any{
				"command": `i=0; while [ $i -lt 60000 ]; do echo "line $i of an output that nobody will read to its end"; i=$((i+1)); done`,
			})}}
		}
		return modeltest.Reply{Text: marker + ": that was long"}
	})
	env := append(settings(b, folder(b), t.url, model, redisURL), "DRAWBRIDGE_DEFAULT_MODE=full-access")
	p := serve(b, binary(b), env)
	await(b, "a poll", t.polled)
	<-time.After(settling)
	idle := resident(b, p.cmd.Process.Pid, "VmRSS:")
	for b.Loop() {
		drain(t.words)
		t.act("/sim/messages", map[string]any{"chat": ada, "from": ada, "text": "go"})
		await(b, "the turn's answer", t.words)
	}
	b.ReportMetric(resident(b, p.cmd.Process.Pid, "VmHWM:")-idle, "above-MB")
	p.stop()
}
