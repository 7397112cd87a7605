//go:build runtimes

package codex_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"drawbridge/internal/modeltest"
	"drawbridge/runner"
)

// spawning is a script that gives what stands behind "spawn" in a prompt to a sub-agent, and goes on with the next line.
func spawning(ctx context.Context, r modeltest.Request) modeltest.Reply {
	prompt, at := "", 0
	for i, m := range r.Messages {
		if m.Role == "user" {
			prompt, at = m.Content, i
		}
	}
	first, rest, _ := strings.Cut(prompt, "\n")
	task, spawns := strings.CutPrefix(first, "spawn ")
	if !spawns {
		return modeltest.Follow(hands())(ctx, r)
	}
	later := r.Messages[at+1:]
	if len(later) == 0 {
		return modeltest.Reply{Calls: []modeltest.Call{modeltest.CallOf("multi_agent_v1/spawn_agent", map[string]string{"message": task})}}
	}
	for i, m := range later {
		if m.Role == "tool" {
			r.Messages = append([]modeltest.Message{{Role: "user", Content: rest}}, later[i+1:]...)
			break
		}
	}
	return modeltest.Follow(hands())(ctx, r)
}

// TestRealSubAgentAsks lets a sub-agent work behind the end of the turn that it was begun in.
func TestRealSubAgentAsks(t *testing.T) {
	t.Parallel()
	folder, ended := data(t), make(chan struct{})
	asked := make(chan runner.Question, 1)
	c := open(t, installed(t, realConfig(t, data(t), model(t, modeltest.Config{Script: spawning}))), opening{
		folder: folder, answer: func(ctx context.Context, q runner.Question) (runner.Answer, error) {
			asked <- q
			select {
			case <-ended:
			case <-ctx.Done():
			}
			return yes(ctx, q)
		},
	})
	if r := c.turn("spawn run touch child", "say spawned"); r.Outcome != runner.Completed || !strings.Contains(c.said(), "spawned") {
		t.Fatalf("the turn ended as %+v, and said %q", r, c.said())
	}
	q := <-asked
	if q.Command != "touch child" || q.Item == "" {
		t.Errorf("it was asked as %+v", q)
	}
	close(ended)
	c.until(func() bool {
		all := c.kinds(runner.BackgroundEvent)
		return len(all) == 2 && all[1].Background.Ended && all[0].Background.ID == all[1].Background.ID
	})
	if !exists(filepath.Join(folder, "child")) {
		t.Error("what was allowed was not done")
	}
}

// TestRealSubAgentEndsWithTheTurn interrupts a turn whose sub-agent waits for an answer, and then closes a session in the
// same state.
func TestRealSubAgentEndsWithTheTurn(t *testing.T) {
	t.Parallel()
	folder := data(t)
	asked, withdrawn := make(chan struct{}, 1), make(chan struct{}, 1)
	c := open(t, installed(t, realConfig(t, data(t), model(t, modeltest.Config{Script: spawning}))), opening{
		folder: folder, answer: func(ctx context.Context, q runner.Question) (runner.Answer, error) {
			if strings.Contains(q.Command, "sleep") {
				return yes(ctx, q)
			}
			asked <- struct{}{}
			<-ctx.Done()
			withdrawn <- struct{}{}
			return yes(ctx, q)
		},
	})
	ctx, cancel := contextOf(t)
	defer cancel()
	done := make(chan runner.Result, 1)
	go func() {
		r, _ := c.Turn(ctx, runner.Input{Turn: "turn", Text: "spawn run touch child\nrun sleep 600"})
		done <- r
	}()
	<-asked
	cancel()
	<-withdrawn
	if r := <-done; r.Outcome != runner.Interrupted {
		t.Errorf("the turn ended as %+v", r)
	}
	c.turn("spawn run touch child", "say spawned")
	<-asked
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	<-withdrawn
	if exists(filepath.Join(folder, "child")) {
		t.Error("a withdrawn question was answered")
	}
}

// TestRealSubAgentLeavesNothingRunning lets a sub-agent end before its command does, and then stops the next turn: the
// command ends, although nothing but the sub-agent had to do with it.
func TestRealSubAgentLeavesNothingRunning(t *testing.T) {
	t.Parallel()
	folder, held := data(t), make(chan struct{}, 1)
	c := open(t, installed(t, realConfig(t, data(t), model(t, modeltest.Config{Script: spawning}))), opening{
		folder: folder, answer: func(ctx context.Context, q runner.Question) (runner.Answer, error) {
			if q.Command == "touch asked" {
				held <- struct{}{}
				<-ctx.Done()
			}
			return yes(ctx, q)
		},
	})
	c.turn("spawn background touch begun; sleep 8; touch late", "say spawned")
	running := func(ended bool) bool {
		for _, e := range c.kinds(runner.BackgroundEvent) {
			if strings.Contains(e.Background.Title, "touch late") && e.Background.Ended == ended {
				return true
			}
		}
		return false
	}
	c.until(func() bool { return running(false) })
	ctx, cancel := contextOf(t)
	defer cancel()
	done := make(chan runner.Result, 1)
	go func() {
		r, _ := c.Turn(ctx, runner.Input{Turn: "next", Text: "run touch asked"})
		done <- r
	}()
	<-held
	cancel()
	if r := <-done; r.Outcome != runner.Interrupted {
		t.Errorf("the turn ended as %+v", r)
	}
	c.until(func() bool { return running(true) })
	if !exists(filepath.Join(folder, "begun")) || exists(filepath.Join(folder, "late")) {
		t.Error("the command was not begun, or not ended")
	}
}
