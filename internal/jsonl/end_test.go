package jsonl_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"drawbridge/internal/jsonl"
)

func TestTheEndOfTheProgramEndsAllAndSaysWhy(t *testing.T) {
	t.Parallel()
	tail := jsonl.NewTail()
	var last string
	c := converse(t, func(p *jsonl.PeerConfig, _ *jsonl.LinesConfig) {
		p.Tail = tail
		p.Notification = func(_ context.Context, m jsonl.Message) { last = m.Method }
		p.Request = func(ctx context.Context, _ jsonl.Message) (any, error) {
			<-ctx.Done()
			wantError(t, context.Cause(ctx), jsonl.ErrClosed)
			return nil, ctx.Err()
		}
	})
	done := c.async(t.Context(), "initialize", nil, nil)
	c.program.next()
	c.program.say(`{"id":1,"method":"pending"}`, `{"method":"last"}`)
	go tail.Drain(strings.NewReader("\x1b[31mError: model provider not found\x1b[0m\n"))
	c.program.exit()
	for _, err := range []error{<-done, <-c.ended, c.Call(t.Context(), "later", nil, nil)} {
		wantError(t, err, jsonl.ErrClosed)
		wantError(t, err, io.EOF)
		closed, ok := errors.AsType[*jsonl.ClosedError](err)
		if !ok || closed.Stderr != "Error: model provider not found" || !strings.Contains(err.Error(), "provider not found") {
			t.Errorf("error %v", err)
		}
	}
	if last != "last" {
		t.Error("what the program said last was not handled")
	}
	<-c.Over()
}

func TestAnAnswerJustBeforeTheEndCounts(t *testing.T) {
	t.Parallel()
	for range 50 {
		c := converse(t, nil)
		done := c.async(t.Context(), "x", nil, nil)
		c.program.next()
		c.program.say(`{"id":1,"result":{}}`)
		c.program.exit()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
}

func TestCloseEndsPendingCallsAndHandlers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		left := false
		c := converse(t, func(p *jsonl.PeerConfig, _ *jsonl.LinesConfig) {
			p.Tail = jsonl.NewTail() // never drained: the end waits for it for a moment only
			p.Request = func(ctx context.Context, _ jsonl.Message) (any, error) {
				<-ctx.Done()
				time.Sleep(time.Second)
				left = true
				return struct{}{}, nil
			}
		})
		done := c.async(t.Context(), "x", nil, nil)
		c.program.next()
		c.program.say(`{"id":1,"method":"x"}`)
		synctest.Wait()
		c.Close()
		c.Close()
		wantError(t, <-done, jsonl.ErrClosed)
		if err := <-c.ended; err != nil || !left {
			t.Errorf("Run returned %v while a handler ran: %v", err, !left)
		}
	})
}

func TestTheEndOfTheContextEndsRun(t *testing.T) {
	t.Parallel()
	_, lines := pipes(t)
	p := jsonl.NewPeer(jsonl.PeerConfig{Lines: jsonl.NewLines(lines), Dialect: jsonl.RPC{}})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx) }()
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	wantError(t, p.Call(t.Context(), "x", nil, nil), context.Canceled)
}

func TestCloseWriteLetsTheProgramHaveTheLastWord(t *testing.T) {
	t.Parallel()
	var said string
	c := converse(t, func(p *jsonl.PeerConfig, _ *jsonl.LinesConfig) {
		p.Notification = func(_ context.Context, m jsonl.Message) { said += m.Method }
	})
	if err := c.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if _, err := c.program.in.ReadByte(); !errors.Is(err, io.EOF) {
		t.Errorf("the program's input: %v", err)
	}
	c.program.say(`{"method":"bye"}`)
	c.program.exit()
	wantError(t, <-c.ended, io.EOF)
	if said != "bye" {
		t.Errorf("heard %q", said)
	}
}

func TestAProgramThatReadsNoMoreIsHeardOutAndThenLeft(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		heard := 0
		c := converse(t, func(p *jsonl.PeerConfig, l *jsonl.LinesConfig) {
			l.WriteTimeout = 5 * time.Second
			p.Notification = func(context.Context, jsonl.Message) { heard++ }
		})
		start := time.Now()
		done := c.async(t.Context(), "x", nil, nil)
		time.Sleep(6 * time.Second)
		c.program.say(`{"method":"still here"}`)
		err := <-done
		wantError(t, err, jsonl.ErrClosed)
		wantError(t, err, jsonl.ErrStuck)
		wantError(t, <-c.ended, jsonl.ErrStuck)
		if d := time.Since(start); d != 7*time.Second || heard != 1 {
			t.Errorf("ended after %s, heard %d frames", d, heard)
		}
	})
}

func TestACallToAProgramThatIsEndingSaysWhyItEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tail := jsonl.NewTail()
		var last string
		c := converse(t, func(p *jsonl.PeerConfig, _ *jsonl.LinesConfig) {
			p.Tail = tail
			p.Notification = func(_ context.Context, m jsonl.Message) { last = m.Method }
		})
		_ = c.program.inp.Close()
		done := c.async(t.Context(), "x", nil, nil)
		synctest.Wait()
		c.program.say(`{"method":"result"}`)
		tail.Drain(strings.NewReader("not logged in\n"))
		_ = c.program.out.Close()
		err := <-done
		wantError(t, err, jsonl.ErrClosed)
		if !strings.Contains(err.Error(), "not logged in") || last != "result" {
			t.Errorf("error %v, last frame %q", err, last)
		}
	})
}
