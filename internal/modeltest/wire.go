package modeltest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

type wireMessage struct {
	Role       string     `json:"role"`
	Content    *string    `json:"content,omitempty"`
	Reasoning  string     `json:"reasoning_content,omitempty"`
	ToolCalls  []wireCall `json:"tool_calls,omitempty"`
	ToolCallID string     `json:"tool_call_id,omitempty"`
}

type wireCall struct {
	Index    *int   `json:"index,omitempty"`
	ID       string `json:"id,omitempty"`
	Type     string `json:"type,omitempty"`
	Function struct {
		Name      string `json:"name,omitempty"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

// decode reads a request as strictly as the endpoints do that are strict.
func decode(r io.Reader) (Request, error) {
	var body struct {
		Model    string        `json:"model"`
		Stream   bool          `json:"stream"`
		Messages []wireMessage `json:"messages"`
		Tools    []struct {
			Type     string `json:"type"`
			Function struct {
				Name       string          `json:"name"`
				Parameters json.RawMessage `json:"parameters"`
			} `json:"function"`
		} `json:"tools"`
	}
	if err := json.NewDecoder(r).Decode(&body); err != nil {
		return Request{}, fmt.Errorf("the body is not JSON: %w", err)
	}
	req := Request{Model: body.Model, Stream: body.Stream}
	if req.Model == "" || len(body.Messages) == 0 {
		return Request{}, errors.New("you must provide a model and messages")
	}
	for _, t := range body.Tools {
		var schema struct {
			Type string `json:"type"`
		}
		if err := json.Unmarshal(t.Function.Parameters, &schema); err != nil || schema.Type != "object" || t.Type != "function" {
			return Request{}, fmt.Errorf("invalid schema for function %q", t.Function.Name)
		}
		req.Tools = append(req.Tools, t.Function.Name)
	}
	for _, m := range body.Messages {
		n := Message{Role: m.Role, Reasoning: m.Reasoning, ToolCallID: m.ToolCallID}
		if m.Content != nil {
			n.Content = *m.Content
		}
		for _, c := range m.ToolCalls {
			n.Calls = append(n.Calls, Call{ID: c.ID, Name: c.Function.Name, Arguments: c.Function.Arguments})
		}
		req.Messages = append(req.Messages, n)
	}
	return req, matched(req.Messages)
}

// matched checks that each tool call is answered, once, right after the message that made it.
func matched(messages []Message) error {
	open := map[string]bool{}
	for i, m := range messages {
		switch m.Role {
		case "tool":
			if !open[m.ToolCallID] {
				return fmt.Errorf("messages[%d]: a tool message must follow the call %q", i, m.ToolCallID)
			}
			delete(open, m.ToolCallID)
			continue
		case "system", "user", "assistant":
		default:
			return fmt.Errorf("messages[%d]: unknown role %q", i, m.Role)
		}
		if len(open) > 0 {
			return fmt.Errorf("messages[%d]: %d tool calls have no result", i, len(open))
		}
		for _, c := range m.Calls {
			if c.ID == "" || c.Name == "" || open[c.ID] {
				return fmt.Errorf("messages[%d]: a tool call without a name or an id of its own", i)
			}
			open[c.ID] = true
		}
	}
	if len(open) > 0 {
		return fmt.Errorf("%d tool calls have no result", len(open))
	}
	return nil
}

// tokens are counted as if each had four characters.
func (r Request) tokens() int {
	n := 0
	for _, m := range r.Messages {
		n += len(m.Content) + len(m.Reasoning)
		for _, c := range m.Calls {
			n += len(c.Name) + len(c.Arguments)
		}
	}
	return n / 4
}

func usage(u Usage) map[string]any {
	return map[string]any{
		"prompt_tokens": u.Input, "completion_tokens": u.Output, "total_tokens": u.Input + u.Output,
		"prompt_tokens_details": map[string]any{"cached_tokens": u.Cached},
	}
}

// whole is the answer as one object.
func whole(req Request, r Reply) map[string]any {
	m := wireMessage{Role: "assistant", Content: &r.Text, Reasoning: r.Reasoning}
	for _, c := range r.Calls {
		w := wireCall{ID: c.ID, Type: "function"}
		w.Function.Name, w.Function.Arguments = c.Name, c.Arguments
		m.ToolCalls = append(m.ToolCalls, w)
	}
	return map[string]any{
		"object": "chat.completion", "model": req.Model, "usage": usage(r.Usage),
		"choices": []any{map[string]any{"index": 0, "message": m, "finish_reason": r.Finish}},
	}
}

// stream sends a reply in pieces.
type stream struct {
	server *Server
	w      http.ResponseWriter
	r      *http.Request
	model  string
	pieces int
	cut    int
}

// errCut ends a stream early.
var errCut = errors.New("cut")

func (s *stream) send(r Reply) {
	s.w.Header().Set("Content-Type", "text/event-stream")
	s.cut = r.Fault.Cut
	if err := s.all(r); err != nil {
		panic(http.ErrAbortHandler) // the only way to end a response so that the client sees it cut
	}
}

func (s *stream) all(r Reply) error {
	if s.cut < 0 {
		return errCut
	}
	if err := s.texts(r.Reasoning, func(p string) any { return map[string]any{"reasoning_content": p} }); err != nil {
		return err
	}
	if err := s.texts(r.Text, func(p string) any { return map[string]any{"content": p} }); err != nil {
		return err
	}
	if r.Fault.Error != "" {
		return s.event(map[string]any{"error": map[string]any{"message": r.Fault.Error, "code": "server_error"}})
	}
	for i, c := range r.Calls {
		w := wireCall{Index: &i, ID: c.ID, Type: "function"}
		w.Function.Name = c.Name
		if err := s.delta(map[string]any{"tool_calls": []wireCall{w}}); err != nil {
			return err
		}
		err := s.texts(c.Arguments, func(p string) any {
			w := wireCall{Index: &i}
			w.Function.Arguments = p
			return map[string]any{"tool_calls": []wireCall{w}}
		})
		if err != nil {
			return err
		}
	}
	if s.cut > 0 {
		return errCut
	}
	last := map[string]any{"choices": []any{map[string]any{"index": 0, "delta": map[string]any{}, "finish_reason": r.Finish}}}
	if err := s.event(last); err != nil {
		return err
	}
	if err := s.event(map[string]any{"choices": []any{}, "usage": usage(r.Usage)}); err != nil {
		return err
	}
	_, err := io.WriteString(s.w, "data: [DONE]\n\n")
	return err
}

// texts sends a text piece by piece.
func (s *stream) texts(t string, delta func(piece string) any) error {
	rest := []rune(t)
	for len(rest) > 0 {
		k := min(s.server.config.Piece, len(rest))
		if err := s.delta(delta(string(rest[:k]))); err != nil {
			return err
		}
		rest = rest[k:]
	}
	return nil
}

func (s *stream) delta(d any) error {
	if s.cut > 0 && s.pieces == s.cut {
		return errCut
	}
	s.pieces++
	if err := s.wait(); err != nil {
		return err
	}
	return s.event(map[string]any{"choices": []any{map[string]any{"index": 0, "delta": d}}})
}

// wait keeps the pace between two pieces.
func (s *stream) wait() error {
	p := s.server.config.Pace
	if p <= 0 {
		return nil
	}
	t := time.NewTimer(p)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-s.r.Context().Done():
		return s.r.Context().Err()
	}
}

func (s *stream) event(e map[string]any) error {
	e["object"], e["model"] = "chat.completion.chunk", s.model
	b, err := json.Marshal(e)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(s.w, "data: %s\n\n", b); err != nil {
		return err
	}
	return http.NewResponseController(s.w).Flush()
}
