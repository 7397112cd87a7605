package bench_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"drawbridge/bot"
	"drawbridge/policy"
	"drawbridge/runner"
	"drawbridge/runner/runnertest"
)

// prompts is how many turns make a run.
const prompts = 12

// thinking is how long a person waits before the next prompt: the chat's budget of messages is whole again by then.
const thinking = 4 * time.Second

// BenchmarkFirstText is what Drawbridge adds to an agent's own time, at the pace of real life: prompt is from the prompt's
// update leaving the Bot API to the agent having it, in a session that is open; words from the agent's first piece of
// text to the Bot API having it. One operation is 12 turns.
func BenchmarkFirstText(b *testing.B) { stores(b, benchmarkFirstText) }

func benchmarkFirstText(b *testing.B, redisURL string) {
	t := startTelegram(b)
	given, said, ended := make(chan time.Time, 1), make(chan time.Time, 1), make(chan struct{}, 1)
	agent := runnertest.New("scripted", func(_ context.Context, s *runnertest.Scripted, _ runner.Input) (runner.Result, error) {
		given <- time.Now()
		<-time.After(time.Second) // an agent thinks, and what the prompt itself causes is said by then
		said <- time.Now()
		s.Say(fmt.Sprint(marker, " of turn ", s.Turns()))
		ended <- struct{}{}
		return runner.Result{Outcome: runner.Completed}, nil
	})
	startApp(b, t.url, redisURL, agent, bot.DefaultPace())
	await(b, "a poll", t.polled)

	var prompt, words []time.Duration
	for b.Loop() {
		for range prompts {
			drain(t.prompted)
			drain(t.words)
			t.act("/sim/messages", map[string]any{"chat": ada, "from": ada, "text": "go"})
			left := await(b, "the prompt's update", t.prompted)
			prompt = append(prompt, await(b, "the turn", given).Sub(left))
			first := await(b, "the agent's text", said)
			words = append(words, await(b, "the text in the chat", t.words).Sub(first))
			await(b, "the turn's end", ended)
			<-time.After(thinking)
		}
	}
	report(b, "prompt-", prompt)
	report(b, "words-", words)
}

// asks is how many make a run of BenchmarkGate.
const asks = 500

// BenchmarkGate is a call that the table allows, from the agent's question to its answer. One operation is a turn with
// 500 of them.
func BenchmarkGate(b *testing.B) { stores(b, benchmarkGate) }

func benchmarkGate(b *testing.B, redisURL string) {
	t := startTelegram(b)
	done := make(chan []time.Duration, 1)
	agent := runnertest.New("scripted", func(_ context.Context, s *runnertest.Scripted, _ runner.Input) (runner.Result, error) {
		var took []time.Duration
		for i := range asks {
			began := time.Now()
			a := s.Ask(runner.Question{
				Kind: runner.KindTool, Title: "Read a file", Tool: "read", Arguments: fmt.Appendf(nil, `{"path":"file-%d.go"}`, i), Folder: s.Folder(),
				Categories: []policy.Category{policy.Read},
			})
			took = append(took, time.Since(began))
			if !a.Allows() {
				return runner.Result{Outcome: runner.Broken, Reason: a.Describe()}, nil
			}
		}
		done <- took
		return runner.Result{Outcome: runner.Completed}, nil
	})
	startApp(b, t.url, redisURL, agent, bot.DefaultPace().Faster(1e6))
	await(b, "a poll", t.polled)
	var took []time.Duration
	for b.Loop() {
		t.act("/sim/messages", map[string]any{"chat": ada, "from": ada, "text": "go"})
		took = append(took, await(b, "the turn", done)...)
	}
	report(b, "", took)
}
