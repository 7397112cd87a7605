package chatapi_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"drawbridge/internal/chatapi"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// endpoint is a server whose Nth request is answered by the Nth handler, and by the last one from then on.
type endpoint struct {
	*chatapi.Client
	requests atomic.Int64
}

func serve(t *testing.T, c chatapi.Config, handlers ...http.HandlerFunc) *endpoint {
	t.Helper()
	e := &endpoint{}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := int(e.requests.Add(1))
		handlers[min(n, len(handlers))-1](w, r)
	}))
	t.Cleanup(srv.Close)
	c.BaseURL = srv.URL + "/v1"
	if c.Backoff == 0 {
		c.Backoff = time.Millisecond
	}
	client, err := chatapi.New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	e.Client = client
	return e
}

// stream answers with events, each flushed on its own.
func stream(events ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, e := range events {
			_, _ = fmt.Fprintf(w, "data: %s\n\n", e)
			w.(http.Flusher).Flush()
		}
	}
}

// answer answers with a status, a body and headers.
func answer(status int, body string, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}
}

func delta(s string) string { return `{"choices":[{"index":0,"delta":` + s + `}]}` }

const (
	stop = `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`
	done = "[DONE]"
)

var request = chatapi.Request{Model: "m", Messages: []chatapi.Message{{Role: chatapi.User, Content: "hi"}}}

func TestAnswersArePutTogether(t *testing.T) {
	t.Parallel()
	call := func(id, name, arguments string) chatapi.ToolCall {
		return chatapi.ToolCall{ID: id, Name: name, Arguments: arguments}
	}
	for name, c := range map[string]struct {
		events    []string
		text      string
		reasoning string
		calls     []chatapi.ToolCall
	}{
		"text":                        {events: []string{delta(`{"role":"assistant","content":null}`), delta(`{"content":"Hel"}`), delta(`{"content":"lo"}`), stop, done}, text: "Hello"},
		"no DONE but a finish reason": {events: []string{delta(`{"content":"x"}`), stop}, text: "x"},
		"DONE but no finish reason":   {events: []string{delta(`{"content":"x"}`), done}, text: "x"},
		"parts":                       {events: []string{delta(`{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}`), stop}, text: "ab"},
		"reasoning":                   {events: []string{delta(`{"reasoning_content":"hm"}`), delta(`{"reasoning":"m"}`), delta(`{"content":"x"}`), stop}, text: "x", reasoning: "hmm"},
		"calls by index, mixed": {
			events: []string{
				delta(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"read","arguments":""}}]}`),
				delta(`{"tool_calls":[{"index":1,"id":"b","function":{"name":"list"}}]}`),
				delta(`{"tool_calls":[{"index":0,"function":{"arguments":"{\"p\":"}},{"index":1,"function":{"arguments":"{}"}}]}`),
				delta(`{"tool_calls":[{"index":0,"function":{"arguments":"1}"}}]}`), stop,
			},
			calls: []chatapi.ToolCall{call("a", "read", `{"p":1}`), call("b", "list", "{}")},
		},
		"late id and name": {
			events: []string{
				delta(`{"tool_calls":[{"index":0,"function":{"arguments":"{"}}]}`),
				delta(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"re","arguments":"}"}}]}`),
				delta(`{"tool_calls":[{"index":0,"function":{"name":"ad"}}]}`), stop,
			},
			calls: []chatapi.ToolCall{call("a", "read", "{}")},
		},
		"name and id repeated": {
			events: []string{
				delta(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"read","arguments":"{"}}]}`),
				delta(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"read","arguments":"}"}}]}`), stop,
			},
			calls: []chatapi.ToolCall{call("a", "read", "{}")},
		},
		"no index": {
			events: []string{
				delta(`{"tool_calls":[{"id":"a","function":{"name":"read","arguments":"{"}}]}`),
				delta(`{"tool_calls":[{"function":{"arguments":"}"}}]}`),
				delta(`{"tool_calls":[{"id":"b","function":{"name":"list","arguments":"{}"}}]}`), stop,
			},
			calls: []chatapi.ToolCall{call("a", "read", "{}"), call("b", "list", "{}")},
		},
		"the same index for all": {
			events: []string{
				delta(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"read","arguments":"{}"}},{"index":0,"id":"b","function":{"name":"list","arguments":"{}"}}]}`), stop,
			},
			calls: []chatapi.ToolCall{call("a", "read", "{}"), call("b", "list", "{}")},
		},
		"arguments as an object": {
			events: []string{delta(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"read","arguments":{"p":1}}}]}`), stop},
			calls:  []chatapi.ToolCall{call("a", "read", `{"p":1}`)},
		},
		"a foreign choice": {events: []string{`{"choices":[{"index":1,"delta":{"content":"other"}}]}`, delta(`{"content":"x"}`), stop}, text: "x"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var text, reasoning strings.Builder
			e := serve(t, chatapi.Config{}, stream(c.events...))
			r, err := e.Complete(t.Context(), request, chatapi.Watch{
				Text:      func(d string) { text.WriteString(d) },
				Reasoning: func(d string) { reasoning.WriteString(d) },
			})
			if err != nil {
				t.Fatal(err)
			}
			if r.Message.Content != c.text || r.Message.Reasoning != c.reasoning || fmt.Sprint(r.Message.ToolCalls) != fmt.Sprint(c.calls) {
				t.Errorf("the reply is %+v", r.Message)
			}
			if text.String() != c.text || reasoning.String() != c.reasoning {
				t.Errorf("told %q and %q", text.String(), reasoning.String())
			}
		})
	}
}

func TestAnswerWithoutAStreamIsTaken(t *testing.T) {
	t.Parallel()
	e := serve(t, chatapi.Config{}, answer(200, "\n "+`{"choices":[{"index":0,"finish_reason":"tool_calls","message":{"content":"x","tool_calls":[
		{"id":"a","type":"function","function":{"name":"read","arguments":"{}"}}]}}],
		"usage":{"prompt_tokens":10,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":4}}}`))
	r, err := e.Complete(t.Context(), request, chatapi.Watch{})
	if err != nil || r.Message.Content != "x" || len(r.Message.ToolCalls) != 1 || r.Finish != "tool_calls" ||
		r.Usage != (chatapi.Usage{Input: 10, Output: 2, Cached: 4}) {
		t.Errorf("reply %+v, error %v", r, err)
	}
}

func TestRequestsAreWhatTheProtocolWants(t *testing.T) {
	t.Parallel()
	var got map[string]any
	var header http.Header
	e := serve(t, chatapi.Config{Key: "sk-test"}, func(w http.ResponseWriter, r *http.Request) {
		header = r.Header
		if r.URL.Path != "/v1/chat/completions" {
			t.Errorf("path %s", r.URL.Path)
		}
		if err := json.NewDecoder(r.Body).Decode(&got); err != nil {
			t.Error(err)
		}
		stream(delta(`{"content":"x"}`), stop, `{"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":1,"prompt_cache_hit_tokens":3}}`, done)(w, r)
	})
	r, err := e.Complete(t.Context(), chatapi.Request{
		Model: "m", Tools: []chatapi.Tool{{Name: "t", Parameters: json.RawMessage(`{"type":"object"}`)}},
		Messages: []chatapi.Message{
			{Role: chatapi.User, Content: "u"},
			{Role: chatapi.Assistant, ToolCalls: []chatapi.ToolCall{{ID: "a", Name: "t", Arguments: "{}"}}},
			{Role: chatapi.ToolRole, ToolCallID: "a", Content: "r"},
		},
	}, chatapi.Watch{})
	if err != nil || r.Usage != (chatapi.Usage{Input: 7, Output: 1, Cached: 3}) {
		t.Errorf("reply %+v, error %v", r, err)
	}
	b, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"messages":[{"content":"u","role":"user"},` +
		`{"content":"","role":"assistant","tool_calls":[{"function":{"arguments":"{}","name":"t"},"id":"a","type":"function"}]},` +
		`{"content":"r","role":"tool","tool_call_id":"a"}],"model":"m","stream":true,"stream_options":{"include_usage":true},` +
		`"tools":[{"function":{"name":"t","parameters":{"type":"object"}},"type":"function"}]}`
	if string(b) != want {
		t.Errorf("the request is\n%s\nwant\n%s", b, want)
	}
	if header.Get("Authorization") != "Bearer sk-test" {
		t.Errorf("authorization %q", header.Get("Authorization"))
	}
}

func TestKeyNeverPrints(t *testing.T) {
	t.Parallel()
	const secret = "sk-very-secret"
	k := chatapi.Key(secret)
	var log strings.Builder
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "key", k, "config", chatapi.Config{Key: k})
	b, err := json.Marshal(struct{ Key chatapi.Key }{k})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{
		log.String(), string(b), k.String(), fmt.Sprint(k), fmt.Sprintf("%s %v %+v %#v %q %x %d", k, k, k, k, k, k, k),
		fmt.Sprintf("%+v %#v", chatapi.Config{Key: k}, chatapi.Config{Key: k}),
	} {
		if strings.Contains(s, secret) || strings.Contains(s, fmt.Sprintf("%x", secret)) {
			t.Errorf("it prints: %s", s)
		}
	}
	if fmt.Sprint(chatapi.Key("")) != "" {
		t.Error("an empty key prints as if there were one")
	}
	e := serve(t, chatapi.Config{Key: k}, answer(401, `{"error":{"message":"Incorrect API key provided: `+secret+`"}}`))
	_, err = e.Complete(t.Context(), request, chatapi.Watch{})
	var failure *chatapi.Error
	if !errors.As(err, &failure) || failure.Kind != chatapi.Auth || strings.Contains(err.Error()+failure.Advice(), secret) {
		t.Errorf("error %v", err)
	}
}

func TestAddressesAreChecked(t *testing.T) {
	t.Parallel()
	for _, base := range []string{"", "api.example.com/v1", "ftp://x/v1", "http://", "https://x/v1?key=1", "http://x/#a", "http://user:pass word@[::1/"} {
		if _, err := chatapi.New(chatapi.Config{BaseURL: base}); err == nil || strings.Contains(err.Error(), "pass") {
			t.Errorf("%q: error %v", base, err)
		}
	}
	if _, err := chatapi.New(chatapi.Config{BaseURL: "http://127.0.0.1:1/v1/"}); err != nil {
		t.Error(err)
	}
}

func TestModels(t *testing.T) {
	t.Parallel()
	e := serve(t, chatapi.Config{}, answer(200, `{"data":[{"id":"a"},{"id":"b"}]}`), answer(200, "nothing"), answer(401, "no"))
	if ids, err := e.Models(t.Context()); err != nil || strings.Join(ids, " ") != "a b" {
		t.Errorf("models %q, error %v", ids, err)
	}
	for _, want := range []chatapi.Kind{chatapi.BadResponse, chatapi.Auth} {
		_, err := e.Models(t.Context())
		var failure *chatapi.Error
		if !errors.As(err, &failure) || failure.Kind != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

func TestCancelEndsARequestAtOnce(t *testing.T) {
	t.Parallel()
	hang := func(w http.ResponseWriter, r *http.Request) {
		stream(delta(`{"content":"so far"}`))(w, r)
		<-r.Context().Done()
	}
	e := serve(t, chatapi.Config{}, hang)
	ctx, cancel := context.WithCancel(t.Context())
	r, err := e.Complete(ctx, request, chatapi.Watch{Text: func(string) { cancel() }})
	var failure *chatapi.Error
	if !errors.Is(err, context.Canceled) || errors.As(err, &failure) {
		t.Errorf("error %v, want the context's", err)
	}
	if r.Message.Content != "so far" {
		t.Errorf("the reply is %+v", r)
	}

	ctx, cancel = context.WithCancel(t.Context())
	e = serve(t, chatapi.Config{Backoff: time.Hour}, answer(503, ""))
	_, err = e.Complete(ctx, request, chatapi.Watch{Retry: func(int, time.Duration, *chatapi.Error) { cancel() }})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want the context's, without the wait", err)
	}
}
