package bench_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"drawbridge/bot"
	"drawbridge/internal/app"
	"drawbridge/internal/config"
	"drawbridge/policy"
	"drawbridge/runner"
	"drawbridge/runner/runnertest"
)

const (
	// taps is how many make a run: enough for a 99th percentile that is not just the slowest one.
	taps = 400
	// reading is how long the person looks at a card: by then everything that sending it causes has been committed.
	reading = 20 * time.Millisecond
)

// BenchmarkTap is the way of a tap: from its update leaving the Bot API to Ask returning on the host. One operation is a
// turn with 400 questions, each allowed by a person; ack is the time until the Bot API has the answer that ends the
// waiting sign on the button. On Redis the gateway and the host have stores, settings and folders of their own.
func BenchmarkTap(b *testing.B) { stores(b, benchmarkTap) }

func benchmarkTap(b *testing.B, redisURL string) {
	t := startTelegram(b)
	returned := make(chan time.Time, 1)
	agent := runnertest.New("scripted", func(_ context.Context, s *runnertest.Scripted, _ runner.Input) (runner.Result, error) {
		for i := range taps {
			a := s.Ask(runner.Question{
				Kind: runner.KindCommand, Title: "Run a command", Command: fmt.Sprintf("make step-%d", i), Folder: s.Folder(),
				Categories: []policy.Category{policy.Terminal},
			})
			at := time.Now()
			if !a.Allows() {
				return runner.Result{Outcome: runner.Broken, Reason: a.Describe()}, nil
			}
			returned <- at
		}
		return runner.Result{Outcome: runner.Completed}, nil
	})
	startApp(b, t.url, redisURL, agent, bot.DefaultPace().Faster(1e6))
	await(b, "a poll", t.polled)

	var ran, acked []time.Duration
	for b.Loop() {
		t.act("/sim/messages", map[string]any{"chat": ada, "from": ada, "text": "go"})
		for range taps {
			card := await(b, "a card", t.cards)
			<-time.After(reading)
			t.act("/sim/taps", map[string]any{"chat": ada, "from": ada, "message_id": card, "button": "Allow", "wait": 0})
			left := await(b, "the tap's update", t.tapped)
			ran = append(ran, await(b, "the end of Ask", returned).Sub(left))
			acked = append(acked, await(b, "the answer to the tap", t.acked).Sub(left))
		}
	}
	report(b, "", ran)
	report(b, "ack-", acked)
}

// startApp runs the whole program in this process until the benchmark ends: as one on bbolt, as two on Redis.
func startApp(b *testing.B, telegram, redisURL string, agent runner.Runtime, pace bot.Pace) {
	b.Helper()
	roles := []config.Role{config.RoleServe}
	if redisURL != "" {
		roles = []config.Role{config.RoleHost, config.RoleGateway}
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(b.Context()))
	var running sync.WaitGroup
	b.Cleanup(func() { cancel(); running.Wait() })
	for _, role := range roles {
		dir := folder(b)
		env := settings(b, dir, telegram, "http://127.0.0.1:1/v1", redisURL)
		c, err := config.Load(env, filepath.Join(dir, "drawbridge.toml"))
		if err == nil {
			c, err = c.For(role)
		}
		if err != nil {
			b.Fatal(err)
		}
		c.Runtimes, c.DefaultRuntime = nil, agent.Name()
		o := app.Options{
			Config: c, Role: role, Logger: errorsOnly(b), Pace: pace, Runtimes: []runner.Runtime{agent},
		}
		ready := make(chan struct{})
		o.Ready = func() { close(ready) }
		running.Go(func() {
			if err := app.Run(ctx, o); err != nil {
				b.Error(err)
			}
		})
		await(b, "the start", ready)
	}
}

// errorsOnly fails the benchmark on an Error line, and costs nothing before.
func errorsOnly(b *testing.B) *slog.Logger {
	b.Helper()
	return slog.New(slog.NewTextHandler(failing{b}, &slog.HandlerOptions{Level: slog.LevelError}))
}

type failing struct{ b *testing.B }

func (f failing) Write(line []byte) (int, error) {
	f.b.Errorf("an error was logged: %s", bytes.TrimSpace(line))
	return len(line), nil
}
