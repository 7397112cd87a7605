package chatapi

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"
)

var (
	errIdle    = errors.New("the server fell silent")
	errTooMuch = errors.New("the answer is too large")
)

// maxErrorBody is how many bytes of a failure's body are read.
const maxErrorBody = 64 << 10

// send makes one request and returns a response with status 200; everything else is an *Error.
func (c *Client) send(ctx context.Context, method, path string, body []byte) (*http.Response, *Error) {
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(body))
	if err != nil {
		return nil, &Error{Kind: Refused, Message: "the request cannot be made", Err: err}
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set("Accept", "text/event-stream, application/json")
	req.Header.Set("User-Agent", "drawbridge")
	if c.key != "" {
		req.Header.Set("Authorization", "Bearer "+string(c.key))
	}
	res, err := c.http.Do(req)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return nil, &Error{Kind: Network, Message: words(err.Error(), c.key), Err: err}
	}
	if res.StatusCode == http.StatusOK {
		return res, nil
	}
	defer func() { _ = res.Body.Close() }()
	b, _ := io.ReadAll(io.LimitReader(res.Body, maxErrorBody)) // half of the words are better than none
	e := c.failure(res.StatusCode, b)
	e.RetryAfter = retryAfter(res.Header, time.Now())
	return nil, e
}

// failure reads the body of a response that is not 200.
func (c *Client) failure(status int, b []byte) *Error {
	var body struct {
		Error   *apiError       `json:"error"`
		Message string          `json:"message"`
		Detail  json.RawMessage `json:"detail"`
	}
	a := apiError{}
	switch err := json.Unmarshal(b, &body); {
	case err == nil && body.Error != nil:
		a = *body.Error
	case err == nil && body.Message != "":
		a.Message = body.Message
	case err == nil && body.Detail != nil:
		a.Message = strings.Trim(string(body.Detail), `"`)
	case !bytes.HasPrefix(bytes.TrimSpace(b), []byte("<")): // a proxy's page helps nobody
		a.Message = string(b)
	}
	e := &Error{Kind: classify(status, a), Status: status, Message: words(a.Message, c.key)}
	if status >= 300 && status < 400 {
		e.Kind, e.Message = BadResponse, "the endpoint redirects elsewhere; use the address it redirects to"
	}
	return e
}

// attempt sends the request once.
func (c *Client) attempt(ctx context.Context, body []byte, w Watch) (Reply, *Error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silence := time.AfterFunc(c.idle, func() { cancel(errIdle) })
	defer silence.Stop()

	res, e := c.send(ctx, http.MethodPost, "/chat/completions", body)
	if e != nil {
		return Reply{}, e
	}
	defer func() { _ = res.Body.Close() }()
	if strings.HasPrefix(res.Header.Get("Content-Type"), "text/html") {
		return Reply{}, &Error{Kind: BadResponse, Status: res.StatusCode, Message: "a web page came instead of an answer"}
	}
	r := bufio.NewReader(&watched{r: res.Body, heard: func() { silence.Reset(c.idle) }, left: c.maxBody})

	a := &assembly{watch: w, key: c.key}
	if whole, err := startsWithObject(r); err != nil {
		return Reply{}, c.broken(ctx, err)
	} else if whole {
		return a.whole(r)
	}
	for data, err := range events(r) {
		if err != nil {
			return a.reply(), c.broken(ctx, err)
		}
		if string(bytes.TrimSpace(data)) == "[DONE]" {
			a.done = true
			break
		}
		if e := a.chunk(data); e != nil {
			return a.reply(), e
		}
	}
	return a.end()
}

// broken is the failure of a stream that could not be read on.
func (c *Client) broken(ctx context.Context, err error) *Error {
	switch cause := context.Cause(ctx); {
	case errors.Is(err, errTooMuch), errors.Is(err, errEventTooLong):
		return &Error{Kind: BadResponse, Message: err.Error(), Err: err}
	case errors.Is(cause, errIdle):
		return &Error{Kind: Network, Message: cause.Error(), Err: cause}
	}
	return &Error{Kind: Cut, Err: err}
}

// watched counts what is read and tells that something was heard.
type watched struct {
	r     io.Reader
	heard func()
	left  int64
}

func (w *watched) Read(b []byte) (int, error) {
	n, err := w.r.Read(b)
	if n > 0 {
		w.heard()
	}
	if w.left -= int64(n); w.left < 0 {
		return n, errTooMuch
	}
	return n, err
}

// startsWithObject looks whether the body is one JSON object instead of a stream: some servers ignore "stream".
func startsWithObject(r *bufio.Reader) (bool, error) {
	for {
		b, err := r.Peek(1)
		if errors.Is(err, io.EOF) {
			return false, nil
		} else if err != nil {
			return false, err
		}
		switch b[0] {
		case ' ', '\t', '\n', '\r':
			_, _ = r.Discard(1)
		default:
			return b[0] == '{', nil
		}
	}
}

// fragment is a part of a message, or a whole one.
type fragment struct {
	Content          text       `json:"content"`
	ReasoningContent text       `json:"reasoning_content"` // GLM, DeepSeek, vLLM
	Reasoning        text       `json:"reasoning"`         // OpenRouter, Ollama
	ToolCalls        []callPart `json:"tool_calls"`
}

type callPart struct {
	Index    *int   `json:"index"`
	ID       string `json:"id"`
	Function struct {
		Name      string `json:"name"`
		Arguments text   `json:"arguments"`
	} `json:"function"`
}

type completion struct {
	Error   *apiError `json:"error"`
	Choices []struct {
		Index   int      `json:"index"`
		Delta   fragment `json:"delta"`
		Message fragment `json:"message"`
		Finish  string   `json:"finish_reason"`
	} `json:"choices"`
	Usage *struct {
		Input   int64 `json:"prompt_tokens"`
		Output  int64 `json:"completion_tokens"`
		Hit     int64 `json:"prompt_cache_hit_tokens"` // DeepSeek
		Details struct {
			Cached int64 `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
	} `json:"usage"`
}

// text is a string where servers also send null, parts ([{"type":"text","text":…}]) or, for arguments, an object.
type text string

// UnmarshalJSON takes each of the forms; what is none of them is kept as it is written.
func (t *text) UnmarshalJSON(b []byte) error {
	var s string
	var parts []struct {
		Text string `json:"text"`
	}
	switch {
	case json.Unmarshal(b, &s) == nil: // also null
	case json.Unmarshal(b, &parts) == nil:
		for _, p := range parts {
			s += p.Text
		}
	default:
		s = string(b)
	}
	*t = text(s)
	return nil
}

// assembly puts an answer together.
type assembly struct {
	watch     Watch
	key       Key
	text      strings.Builder
	reasoning strings.Builder
	calls     []*call
	finish    string
	usage     Usage
	done      bool // the server said [DONE]
	any       bool // something of the protocol came
}

type call struct {
	index     *int
	id, name  string
	arguments strings.Builder
}

// chunk takes one event's data.
func (a *assembly) chunk(data []byte) *Error {
	if len(bytes.TrimSpace(data)) == 0 {
		return nil
	}
	var c completion
	if err := json.Unmarshal(data, &c); err != nil {
		return &Error{Kind: BadResponse, Message: "an event of the stream is not JSON of the protocol", Err: err}
	}
	return a.take(c)
}

func (a *assembly) take(c completion) *Error {
	if c.Error != nil {
		status := c.Error.number()
		kind := classify(status, *c.Error)
		if kind == Refused && status == 0 {
			kind = Unavailable // in the middle of an answer, only the server can be the reason
		}
		return &Error{Kind: kind, Status: status, Message: words(c.Error.Message, a.key)}
	}
	a.any = a.any || c.Choices != nil || c.Usage != nil
	if u := c.Usage; u != nil {
		a.usage = Usage{Input: u.Input, Output: u.Output, Cached: max(u.Details.Cached, u.Hit)}
	}
	for _, ch := range c.Choices {
		if ch.Index != 0 {
			continue // only one was asked for
		}
		a.fragment(ch.Delta)
		a.fragment(ch.Message)
		if ch.Finish != "" {
			a.finish = ch.Finish
		}
	}
	return nil
}

func (a *assembly) fragment(f fragment) {
	reasoning := f.ReasoningContent
	if reasoning == "" {
		reasoning = f.Reasoning
	}
	if reasoning != "" {
		a.reasoning.WriteString(string(reasoning))
		if a.watch.Reasoning != nil {
			a.watch.Reasoning(string(reasoning))
		}
	}
	if f.Content != "" {
		a.text.WriteString(string(f.Content))
		if a.watch.Text != nil {
			a.watch.Text(string(f.Content))
		}
	}
	for _, p := range f.ToolCalls {
		c := a.call(p)
		if c.id == "" {
			c.id = p.ID
		}
		// Some servers repeat the whole name in each part, some cut it up.
		if p.Function.Name != c.name {
			c.name += p.Function.Name
		}
		c.arguments.WriteString(string(p.Function.Arguments))
	}
}

// call finds the call that a part belongs to: by index; where the index is missing, or the same for all of them, a
// new id begins a new call, and a part without an id goes on with the last.
func (a *assembly) call(p callPart) *call {
	for _, c := range slices.Backward(a.calls) {
		if p.Index != nil && (c.index == nil || *c.index != *p.Index) {
			continue
		}
		if p.ID == "" || c.id == "" || p.ID == c.id {
			return c
		}
		if p.Index == nil {
			continue // an earlier one may have this id
		}
	}
	c := &call{index: p.Index}
	a.calls = append(a.calls, c)
	return c
}

// whole takes an answer that is no stream.
func (a *assembly) whole(r io.Reader) (Reply, *Error) {
	var c completion
	if err := json.NewDecoder(r).Decode(&c); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return Reply{}, &Error{Kind: Cut, Err: err}
		}
		return Reply{}, &Error{Kind: BadResponse, Message: "the answer is not JSON of the protocol", Err: err}
	}
	if e := a.take(c); e != nil {
		return a.reply(), e
	}
	a.done = true
	return a.end()
}

// end judges whether the answer is whole.
func (a *assembly) end() (Reply, *Error) {
	r := a.reply()
	switch {
	case a.finish == "" && !a.done && (a.any || r.Empty()):
		return r, &Error{Kind: Cut}
	case !a.any:
		return r, &Error{Kind: BadResponse, Message: "there is no answer in it"}
	}
	return r, nil
}

func (a *assembly) reply() Reply {
	r := Reply{Finish: a.finish, Usage: a.usage}
	r.Message = Message{Role: Assistant, Content: a.text.String(), Reasoning: a.reasoning.String()}
	for _, c := range a.calls {
		r.Message.ToolCalls = append(r.Message.ToolCalls, ToolCall{ID: c.id, Name: c.name, Arguments: c.arguments.String()})
	}
	return r
}
