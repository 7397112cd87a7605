// Package chatapi is a client of OpenAI-compatible chat completions: OpenAI, GLM, DeepSeek, OpenRouter, vLLM, Ollama,
// llama.cpp and whatever else speaks it.
//
// It guarantees that a stream that was cut is never taken for a whole answer, that tool calls are put together however
// they were cut up, that what can be tried again is tried again as the server asks for, and that each failure is an
// *Error with a sentence that a person can act on. The key is never printed. What a server sends is bounded.
//
// It does not judge what the model says: a tool call's name and arguments are whatever came.
package chatapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Key is an API key. It never prints: every way to format, log or marshal it yields "***", or nothing when it is empty.
type Key string

func (k Key) masked() string {
	if k == "" {
		return ""
	}
	return "***"
}

// String masks the key.
func (k Key) String() string { return k.masked() }

// GoString masks the key.
func (k Key) GoString() string { return k.masked() }

// Format masks the key for every verb.
func (k Key) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(k.masked())) }

// LogValue masks the key.
func (k Key) LogValue() slog.Value { return slog.StringValue(k.masked()) }

// MarshalText masks the key, in JSON too.
func (k Key) MarshalText() ([]byte, error) { return []byte(k.masked()), nil }

// Config is what a Client is made from. Only BaseURL is required.
type Config struct {
	BaseURL string // up to and without "/chat/completions", such as "https://api.example.com/v1"
	Key     Key    // sent as a bearer token; empty sends none
	// Attempts is how often a request is sent at most, the first time included; 6 when 0.
	Attempts int
	// Backoff is the first wait before another attempt where the server names none; it doubles up to 30 times of it.
	// One second when 0.
	Backoff time.Duration
	// MaxWait is the longest wait that a server may ask for; when it asks for more, the request fails. 2 minutes when 0.
	MaxWait time.Duration
	// Idle is how long the server may send nothing at all; 5 minutes when 0, since a local model may read for long.
	Idle time.Duration
	// MaxBody is how many bytes of an answer are read at most; 64 MiB when 0.
	MaxBody int64
	// Transport is for tests and proxies; a copy of the standard one when nil.
	Transport http.RoundTripper
}

// Client sends requests to one endpoint. It is safe for concurrent use.
type Client struct {
	base     string
	key      Key
	attempts int
	backoff  time.Duration
	maxWait  time.Duration
	idle     time.Duration
	maxBody  int64
	http     *http.Client
}

// New makes a Client. The error says what is wrong with the address.
func New(c Config) (*Client, error) {
	u, err := url.Parse(c.BaseURL)
	if err != nil {
		return nil, fmt.Errorf("chatapi: base URL: %w", errors.New("it is not a URL")) // the cause would repeat it, with a password in it
	}
	if (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		return nil, errors.New("chatapi: base URL: it must be http://HOST/… or https://HOST/…, without a query")
	}
	t := c.Transport
	if t == nil {
		t = http.DefaultTransport.(*http.Transport).Clone() //nolint:forcetypeassert // it is documented to be one
	}
	return &Client{
		base: strings.TrimRight(c.BaseURL, "/"), key: c.Key,
		attempts: or(c.Attempts, 6), backoff: or(c.Backoff, time.Second), maxWait: or(c.MaxWait, 2*time.Minute),
		idle: or(c.Idle, 5*time.Minute), maxBody: or(c.MaxBody, 64<<20),
		http: &http.Client{
			Transport: t,
			// A redirected POST would lose its body or carry the conversation elsewhere.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}

func or[T int | int64 | time.Duration](v, fallback T) T {
	if v <= 0 {
		return fallback
	}
	return v
}

// Close closes connections that are not in use. The Client stays usable.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Role says who a message is from.
type Role string

// The roles.
const (
	System    Role = "system"
	User      Role = "user"
	Assistant Role = "assistant"
	ToolRole  Role = "tool"
)

// Message is one message of a conversation.
type Message struct {
	Role    Role   `json:"role"`
	Content string `json:"content"`
	// Reasoning is the model's, where it sent some. It is sent back as reasoning_content: some models with tools refuse a
	// conversation without it. Whoever keeps the conversation clears it where it is not wanted.
	Reasoning  string     `json:"reasoning_content,omitempty"`
	ToolCalls  []ToolCall `json:"tool_calls,omitempty"`   // of an assistant
	ToolCallID string     `json:"tool_call_id,omitempty"` // of a tool: the call that it answers
}

// ToolCall is a model's wish to use a tool. Arguments are what the model wrote, not necessarily JSON.
type ToolCall struct {
	ID        string
	Name      string
	Arguments string
}

type wireCall struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

// MarshalJSON writes the form that the protocol has.
func (t ToolCall) MarshalJSON() ([]byte, error) {
	w := wireCall{ID: t.ID, Type: "function"}
	w.Function.Name, w.Function.Arguments = t.Name, t.Arguments
	return json.Marshal(w)
}

// UnmarshalJSON reads what MarshalJSON writes.
func (t *ToolCall) UnmarshalJSON(b []byte) error {
	var w wireCall
	if err := json.Unmarshal(b, &w); err != nil {
		return fmt.Errorf("chatapi: tool call: %w", err)
	}
	*t = ToolCall{ID: w.ID, Name: w.Function.Name, Arguments: w.Function.Arguments}
	return nil
}

// Tool is what a model may call.
type Tool struct {
	Name        string
	Description string
	Parameters  json.RawMessage // JSON Schema of an object
}

// MarshalJSON writes the form that the protocol has.
func (t Tool) MarshalJSON() ([]byte, error) {
	type function struct {
		Name        string          `json:"name"`
		Description string          `json:"description,omitempty"`
		Parameters  json.RawMessage `json:"parameters,omitempty"`
	}
	return json.Marshal(struct {
		Type     string   `json:"type"`
		Function function `json:"function"`
	}{"function", function(t)})
}

// Request is one request for the next message of a conversation.
type Request struct {
	Model    string    `json:"model"`
	Messages []Message `json:"messages"`
	Tools    []Tool    `json:"tools,omitempty"`
	// MaxTokens bounds the answer; 0 leaves it to the server.
	MaxTokens int `json:"max_tokens,omitempty"`
}

// Usage counts tokens; zero means that the server did not say.
type Usage struct {
	Input  int64
	Cached int64 // part of Input
	Output int64
}

// Reply is a model's answer.
type Reply struct {
	Message Message
	// Finish is why it stopped, as the server says: "stop", "tool_calls", "length", "content_filter", …
	Finish string
	Usage  Usage
}

// Empty reports whether nothing at all was said.
func (r Reply) Empty() bool {
	return r.Message.Content == "" && r.Message.Reasoning == "" && len(r.Message.ToolCalls) == 0
}

// Watch is told of a request while it runs. Each function may be nil; they are called one at a time, by the goroutine of
// Complete.
type Watch struct {
	Text      func(delta string)
	Reasoning func(delta string)
	// Retry is called before each wait: attempt has failed because of why and is followed by another after wait.
	Retry func(attempt int, wait time.Duration, why *Error)
}

// Complete asks for the next message and streams it. Failures that may pass are tried again, as long as nothing of the
// answer was told to Watch. The error is an *Error, or ctx's own when ctx ended; with either, the Reply holds what had
// come by then.
func (c *Client) Complete(ctx context.Context, r Request, w Watch) (Reply, error) {
	body, err := json.Marshal(struct {
		Request
		Stream  bool `json:"stream"`
		Options any  `json:"stream_options"`
	}{r, true, map[string]bool{"include_usage": true}})
	if err != nil {
		return Reply{}, &Error{Kind: BadResponse, Message: "the request cannot be written", Err: err}
	}
	for attempt := 1; ; attempt++ {
		reply, err := c.attempt(ctx, body, w)
		if err == nil {
			return reply, nil
		}
		if ctx.Err() != nil {
			return reply, fmt.Errorf("chatapi: complete: %w", context.Cause(ctx))
		}
		wait := err.RetryAfter
		if wait == 0 {
			wait = c.pause(attempt)
		}
		if !err.Temporary() || !reply.Empty() || attempt >= c.attempts || err.RetryAfter > c.maxWait {
			return reply, err
		}
		if w.Retry != nil {
			w.Retry(attempt, wait, err)
		}
		t := time.NewTimer(wait)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return reply, fmt.Errorf("chatapi: complete: %w", context.Cause(ctx))
		}
	}
}

// pause doubles with each attempt and is blurred by a quarter, so that many clients do not come back at once.
func (c *Client) pause(attempt int) time.Duration {
	d := min(c.backoff<<min(attempt-1, 10), 30*c.backoff)
	return d - time.Duration(rand.Int64N(int64(d)/4+1)) //nolint:gosec // no secret hangs on it
}

// Models lists the models that the endpoint offers, by one request without another attempt.
func (c *Client) Models(ctx context.Context) ([]string, error) {
	res, err := c.send(ctx, http.MethodGet, "/models", nil)
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	var list struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if err := json.NewDecoder(http.MaxBytesReader(nil, res.Body, c.maxBody)).Decode(&list); err != nil {
		return nil, &Error{Kind: BadResponse, Message: "the list of models cannot be read", Err: err}
	}
	ids := make([]string, 0, len(list.Data))
	for _, m := range list.Data {
		ids = append(ids, m.ID)
	}
	return ids, nil
}
