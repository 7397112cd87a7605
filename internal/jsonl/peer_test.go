package jsonl_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"drawbridge/internal/jsonl"
)

func TestAnswersMayComeInAnyOrder(t *testing.T) {
	t.Parallel()
	c := converse(t, nil)
	var first, second struct{ N int }
	a := c.async(t.Context(), "first", nil, &first)
	if got := c.program.next(); got != `{"id":1,"method":"first"}` {
		t.Errorf("sent %s", got)
	}
	b := c.async(t.Context(), "second", struct{}{}, &second)
	if got := c.program.next(); got != `{"id":2,"method":"second","params":{}}` {
		t.Errorf("sent %s", got)
	}
	c.program.say(`{"id":2,"result":{"n":22}}`, `{"id":1,"result":{"n":11}}`)
	if err := errors.Join(<-a, <-b); err != nil || first.N != 11 || second.N != 22 {
		t.Errorf("%v, %v, error %v", first, second, err)
	}
}

func TestAnErrorOfTheOtherSideIsTyped(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, answer string
		want         jsonl.Error
	}{
		{"as specified", `{"id":1,"error":{"code":-32001,"message":"busy","data":{"a":1}}}`, jsonl.Error{Code: -32001, Message: "busy", Data: json.RawMessage(`{"a":1}`)}},
		{"a text", `{"id":1,"error":"no"}`, jsonl.Error{Message: "no"}},
		{"a code of letters", `{"id":1,"error":{"code":"E1"}}`, jsonl.Error{Message: "the request failed", Data: json.RawMessage(`{"code":"E1"}`)}},
		{"neither result nor error", `{"id":1}`, jsonl.Error{Message: "an answer without a result"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			conv := converse(t, nil)
			done := conv.async(t.Context(), "x", nil, nil)
			conv.program.next()
			conv.program.say(c.answer)
			got, ok := errors.AsType[*jsonl.Error](<-done)
			if !ok || fmt.Sprint(*got) != fmt.Sprint(c.want) {
				t.Errorf("error %+v, want %+v", got, c.want)
			}
		})
	}
}

func TestIdsAreEchoedAsTheyCame(t *testing.T) {
	t.Parallel()
	c := converse(t, func(p *jsonl.PeerConfig, _ *jsonl.LinesConfig) {
		p.Request = func(_ context.Context, m jsonl.Message) (any, error) { return m.Params, nil }
	})
	for _, id := range []string{`0`, `"0"`, `12345678901234567890`, `"\u00e9<>"`, `-1`, `1.50`} {
		c.program.say(`{"id":` + id + `,"method":"x","params":["<b>"]}`)
		if got, want := c.program.next(), `{"id":`+id+`,"result":["<b>"]}`; got != want {
			t.Errorf("answered %s, want %s", got, want)
		}
	}
	// Nobody could tell whom these would answer.
	c.program.say(`{"id":null,"method":"x"}`, `{"id":{},"method":"x"}`, `{"id":7,"method":"x"}`)
	if got, want := c.program.next(), `{"id":7,"result":null}`; got != want {
		t.Errorf("answered %s, want %s", got, want)
	}
}

func TestWhatAHandlerReturnsBecomesTheAnswer(t *testing.T) {
	t.Parallel()
	for method, c := range map[string]struct {
		result any
		err    error
		want   string
	}{
		"result":  {map[string]any{"a": nil}, nil, `{"jsonrpc":"2.0","id":1,"result":{"a":null}}`},
		"nothing": {nil, nil, `{"jsonrpc":"2.0","id":1,"result":null}`},
		"no":      {nil, fmt.Errorf("wrapped: %w", &jsonl.Error{Code: 5, Message: "no"}), `{"jsonrpc":"2.0","id":1,"error":{"code":5,"message":"no"}}`},
		"unknown": {nil, jsonl.ErrMethod, `{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"method not found"}}`},
		"failed":  {nil, errors.New("the store at 10.0.0.1 is gone"), `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"internal error"}}`},
		"odd":     {func() {}, nil, `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"internal error"}}`},
	} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			conv := converse(t, func(p *jsonl.PeerConfig, _ *jsonl.LinesConfig) {
				p.Dialect = jsonl.RPC{Version: "2.0"}
				p.Request = func(context.Context, jsonl.Message) (any, error) { return c.result, c.err }
			})
			conv.program.say(`{"jsonrpc":"2.0","id":1,"method":"` + method + `"}`)
			if got := conv.program.next(); got != c.want {
				t.Errorf("answered %s, want %s", got, c.want)
			}
		})
	}
}

func TestAPanicOfAHandlerIsADenialAndNoCrash(t *testing.T) {
	t.Parallel()
	c := converse(t, func(p *jsonl.PeerConfig, _ *jsonl.LinesConfig) {
		p.Request = func(context.Context, jsonl.Message) (any, error) { panic("oh") }
	})
	c.journal.tolerate = true
	c.program.say(`{"id":1,"method":"x"}`)
	if got := c.program.next(); !strings.Contains(got, "-32603") || c.journal.count("request handler panicked") != 1 {
		t.Errorf("answered %s, logged %q", got, c.journal.lines)
	}
}

func TestARequestFollowsTheNotificationsBeforeItAndAnAnswerToo(t *testing.T) {
	t.Parallel()
	const n = 1000
	handled := 0
	c := converse(t, func(p *jsonl.PeerConfig, _ *jsonl.LinesConfig) {
		p.Notification = func(_ context.Context, m jsonl.Message) {
			if string(m.Params) != fmt.Sprint(handled) {
				t.Errorf("notification %s as the %d.", m.Params, handled)
			}
			handled++
		}
		p.Request = func(context.Context, jsonl.Message) (any, error) { return handled, nil }
	})
	done := c.async(t.Context(), "x", nil, nil)
	c.program.next()
	for i := range n {
		c.program.say(fmt.Sprintf(`{"method":"n","params":%d}`, i))
	}
	c.program.say(`{"id":"r","method":"r"}`)
	if got, want := c.program.next(), fmt.Sprintf(`{"id":"r","result":%d}`, n); got != want {
		t.Errorf("answered %s, want %s", got, want)
	}
	c.program.say(fmt.Sprintf(`{"method":"n","params":%d}`, n), `{"id":1,"result":{}}`)
	if err := <-done; err != nil || handled != n+1 {
		t.Errorf("the answer came after %d notifications, want %d; error %v", handled, n+1, err)
	}
}

func TestRequestsAmongThemselvesDoNotWait(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	c := converse(t, func(p *jsonl.PeerConfig, _ *jsonl.LinesConfig) {
		p.Request = func(_ context.Context, m jsonl.Message) (any, error) {
			if m.Method == "waits" {
				<-release
			}
			return m.Method, nil
		}
	})
	c.program.say(`{"id":1,"method":"waits"}`, `{"id":2,"method":"quick"}`)
	if got := c.program.next(); got != `{"id":2,"result":"quick"}` {
		t.Errorf("answered %s", got)
	}
	close(release)
	if got := c.program.next(); got != `{"id":1,"result":"waits"}` {
		t.Errorf("answered %s", got)
	}
}

func TestARequestThatIsOpenIsHandledOnce(t *testing.T) {
	t.Parallel()
	entered, release := make(chan struct{}, 10), make(chan struct{})
	c := converse(t, func(p *jsonl.PeerConfig, _ *jsonl.LinesConfig) {
		p.Request = func(context.Context, jsonl.Message) (any, error) {
			entered <- struct{}{}
			<-release
			return "ok", nil
		}
		p.Notification = func(context.Context, jsonl.Message) { close(release) }
	})
	c.program.say(`{"id":1,"method":"x"}`, `{"id":1,"method":"x"}`, `{"method":"go on"}`)
	if got := c.program.next(); got != `{"id":1,"result":"ok"}` {
		t.Errorf("answered %s", got)
	}
	// Once it is answered the id is free.
	c.program.say(`{"id":1,"method":"x"}`)
	if got := c.program.next(); got != `{"id":1,"result":"ok"}` || len(entered) != 2 {
		t.Errorf("answered %s, handled %d times", got, len(entered))
	}
}

func TestAWithdrawnRequestEndsItsHandler(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		dialect             jsonl.Dialect
		ask, withdraw, want string
	}{
		"acp": {
			jsonl.RPC{Version: "2.0"},
			`{"id":"a","method":"x"}`, `{"method":"$/cancel_request","params":{"requestId":"a"}}`,
			`{"jsonrpc":"2.0","id":"a","error":{"code":-32800,"message":"request cancelled"}}`,
		},
		"claude": {
			jsonl.Control{},
			`{"type":"control_request","request_id":"a","request":{"subtype":"x"}}`,
			`{"type":"control_cancel_request","request_id":"a"}`,
			`{"type":"control_response","response":{"subtype":"error","request_id":"a","error":"request cancelled"}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conv := converse(t, func(p *jsonl.PeerConfig, _ *jsonl.LinesConfig) {
				p.Dialect = c.dialect
				p.Request = func(ctx context.Context, _ jsonl.Message) (any, error) {
					<-ctx.Done()
					wantError(t, context.Cause(ctx), jsonl.ErrWithdrawn)
					return nil, ctx.Err()
				}
			})
			conv.program.say(c.ask, c.withdraw)
			if got := conv.program.next(); got != c.want {
				t.Errorf("answered %s, want %s", got, c.want)
			}
			if conv.Withdraw(`"a"`) {
				t.Error("a request that was answered was withdrawn")
			}
		})
	}
}

func TestTooManyRequestsAreRefused(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	c := converse(t, func(p *jsonl.PeerConfig, _ *jsonl.LinesConfig) {
		p.Request = func(context.Context, jsonl.Message) (any, error) {
			<-release
			return struct{}{}, nil
		}
	})
	for i := range 1000 {
		c.program.say(fmt.Sprintf(`{"id":%d,"method":"x"}`, i))
	}
	c.program.say(`{"id":"more","method":"x"}`)
	if got := c.program.next(); !strings.Contains(got, `"more","error":{"code":-32001`) {
		t.Errorf("answered %s", got)
	}
	close(release)
	for range 1000 {
		if got := c.program.next(); !strings.Contains(got, `"result":{}`) {
			t.Errorf("answered %s", got)
		}
	}
}

func TestEveryCallEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := converse(t, func(p *jsonl.PeerConfig, _ *jsonl.LinesConfig) { p.Timeout = 10 * time.Second })
		start := time.Now()
		done := c.async(t.Context(), "late", nil, nil)
		c.program.next()
		err := <-done
		wantError(t, err, jsonl.ErrNoAnswer)
		wantError(t, err, context.DeadlineExceeded)
		if d := time.Since(start); d != 10*time.Second {
			t.Errorf("ended after %s", d)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		done = c.async(ctx, "cancelled", nil, nil)
		c.program.next()
		reason := errors.New("the user is gone")
		cancel(reason)
		wantError(t, <-done, reason)
		// What comes for them later is for nobody, and is said once.
		c.program.say(`{"id":1,"result":{}}`, `{"id":2,"result":{}}`, `{"id":"x","result":{}}`)
		synctest.Wait()
		if n := c.journal.count("answer to no request that waits"); n != 1 {
			t.Errorf("logged %d times", n)
		}
	})
}

func TestWhatIsNotUnderstoodIsSkippedAndLogged(t *testing.T) {
	t.Parallel()
	c := converse(t, func(_ *jsonl.PeerConfig, l *jsonl.LinesConfig) { l.Limit = 1000 })
	done := c.async(t.Context(), "x", nil, nil)
	c.program.next()
	c.program.say(
		"Debugger attached.", `[]`, `null`, `17`, `{}`, `{"id":true}`, `{"method":7}`, `{"id":1,"result":`, strings.Repeat("x", 2000),
		`{"id":99,"method":"no/such/method"}`,
	)
	if got := c.program.next(); !strings.Contains(got, `"id":99,"error":{"code":-32601`) {
		t.Errorf("answered %s", got)
	}
	c.program.say(`{"id":1,"result":{}}`)
	if err := <-done; err != nil {
		t.Error(err)
	}
	if n := c.journal.count("frame skipped"); n < 5 {
		t.Errorf("logged %q", c.journal.lines)
	}
}

func TestAFrameOf40MegabytesIsHandled(t *testing.T) {
	t.Parallel()
	huge := `"` + strings.Repeat("0123456789abcdef", 40<<20/16) + `"`
	got := make(chan string, 1)
	c := converse(t, func(p *jsonl.PeerConfig, _ *jsonl.LinesConfig) {
		p.Notification = func(_ context.Context, m jsonl.Message) { got <- string(m.Params) }
	})
	c.program.say(`{"method":"item/completed","params":` + huge + `}`)
	if g := <-got; g != huge {
		t.Errorf("%d bytes, want %d", len(g), len(huge))
	}
}

func TestASlowConsumerNeitherBlocksTheProgramNorLosesAnything(t *testing.T) {
	t.Parallel()
	const n = 100_000
	release, handled := make(chan struct{}), 0
	c := converse(t, func(p *jsonl.PeerConfig, _ *jsonl.LinesConfig) {
		p.Notification = func(context.Context, jsonl.Message) {
			<-release
			handled++
		}
	})
	frame := `{"method":"item/commandExecution/outputDelta","params":{"delta":"one line of output\n"}}`
	for range n / 100 {
		c.program.say(strings.TrimSuffix(strings.Repeat(frame+"\n", 100), "\n"))
	}
	close(release) // only after the program could write all
	c.program.exit()
	wantError(t, <-c.ended, io.EOF)
	if handled != n {
		t.Errorf("%d handled, want %d", handled, n)
	}
}

func TestAConsumerThatStandsStillEndsTheConversationWithAWord(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	c := converse(t, func(p *jsonl.PeerConfig, _ *jsonl.LinesConfig) {
		p.QueueLimit = 100_000
		p.Notification = func(ctx context.Context, _ jsonl.Message) { <-ctx.Done() }
	})
	go func() {
		defer close(release)
		// It ends with the conversation.
		for {
			if _, err := io.WriteString(c.program.out, `{"method":"x"}`+"\n"); err != nil {
				return
			}
		}
	}()
	wantError(t, <-c.ended, jsonl.ErrOverflow)
	<-release
	wantError(t, c.Call(t.Context(), "x", nil, nil), jsonl.ErrOverflow)
}
