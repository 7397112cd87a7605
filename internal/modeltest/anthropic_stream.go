package modeltest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
)

// anthropicStream sends a reply as the events of the Messages API.
type anthropicStream struct {
	stream
	request Request
}

func (s *anthropicStream) send(r Reply) {
	s.w.Header().Set("Content-Type", "text/event-stream")
	s.cut = r.Fault.Cut
	if err := s.all(r); err != nil {
		panic(http.ErrAbortHandler) // the only way to end a response so that the client sees it cut
	}
}

func (s *anthropicStream) all(r Reply) error {
	if s.cut < 0 {
		return errCut
	}
	if err := s.event("message_start", map[string]any{"message": anthropicMessage(s.request, r, []any{}, nil)}); err != nil {
		return err
	}
	index := 0
	block := func(start map[string]any, text string, delta func(piece string) map[string]any) error {
		if err := s.event("content_block_start", map[string]any{"index": index, "content_block": start}); err != nil {
			return err
		}
		err := s.texts(text, func(p string) map[string]any { return map[string]any{"index": index, "delta": delta(p)} })
		if err != nil {
			return err
		}
		index++
		return s.event("content_block_stop", map[string]any{"index": index - 1})
	}
	if r.Reasoning != "" {
		err := block(map[string]any{"type": "thinking", "thinking": "", "signature": ""}, r.Reasoning, func(p string) map[string]any {
			return map[string]any{"type": "thinking_delta", "thinking": p}
		})
		if err != nil {
			return err
		}
	}
	if r.Text != "" {
		err := block(map[string]any{"type": "text", "text": ""}, r.Text, func(p string) map[string]any {
			return map[string]any{"type": "text_delta", "text": p}
		})
		if err != nil {
			return err
		}
	}
	if r.Fault.Error != "" {
		return s.event("error", map[string]any{"error": map[string]any{"type": "overloaded_error", "message": r.Fault.Error}})
	}
	for _, c := range r.Calls {
		err := block(map[string]any{"type": "tool_use", "id": c.ID, "name": c.Name, "input": map[string]any{}}, c.Arguments, func(p string) map[string]any {
			return map[string]any{"type": "input_json_delta", "partial_json": p}
		})
		if err != nil {
			return err
		}
	}
	if s.cut > 0 {
		return errCut
	}
	delta := map[string]any{"stop_reason": r.Finish, "stop_sequence": nil}
	if s.request.Checked && r.Check != CheckAbsent {
		delta["safeguard_results"] = []any{map[string]any{"type": "dangerous_tool_use", "status": verdicts(r)}}
	}
	if err := s.event("message_delta", map[string]any{"delta": delta, "usage": anthropicUsage(r.Usage)}); err != nil {
		return err
	}
	return s.event("message_stop", map[string]any{})
}

// verdicts is what the safety check says of the calls.
func verdicts(r Reply) map[string]any {
	switch r.Check {
	case CheckUnsupported:
		return map[string]any{"type": "unsupported"}
	case CheckDisabled:
		return map[string]any{"type": "unavailable", "reason": "disabled"}
	case CheckPasses, CheckFlags, CheckSkips, CheckFails, CheckAbsent, CheckRefused:
	}
	calls := map[string]any{}
	for _, c := range r.Calls {
		switch r.Check {
		case CheckFlags:
			calls[c.ID] = map[string]any{"type": "evaluated", "outcome": "flagged", "explanation": "The script says that this is dangerous."}
		case CheckSkips:
			calls[c.ID] = map[string]any{"type": "skipped"}
		case CheckFails:
			calls[c.ID] = map[string]any{"type": "unavailable", "reason": "timeout"}
		default:
			calls[c.ID] = map[string]any{"type": "evaluated", "outcome": "not_flagged"}
		}
	}
	return map[string]any{"type": "available", "tool_uses": calls}
}

// texts sends a text piece by piece, each as a content_block_delta.
func (s *anthropicStream) texts(t string, delta func(piece string) map[string]any) error {
	rest := []rune(t)
	for len(rest) > 0 {
		if s.cut > 0 && s.pieces == s.cut {
			return errCut
		}
		s.pieces++
		if err := s.wait(); err != nil {
			return err
		}
		k := min(s.server.config.Piece, len(rest))
		if err := s.event("content_block_delta", delta(string(rest[:k]))); err != nil {
			return err
		}
		rest = rest[k:]
	}
	return nil
}

func (s *anthropicStream) event(kind string, e map[string]any) error {
	e["type"] = kind
	b, err := json.Marshal(e)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(s.w, "event: %s\ndata: %s\n\n", kind, b); err != nil {
		return err
	}
	return http.NewResponseController(s.w).Flush()
}

func anthropicUsage(u Usage) map[string]any {
	return map[string]any{
		"input_tokens": u.Input - u.Cached, "output_tokens": u.Output,
		"cache_read_input_tokens": u.Cached, "cache_creation_input_tokens": 0,
	}
}

func anthropicMessage(req Request, r Reply, content []any, finish any) map[string]any {
	return map[string]any{
		"id": "msg_" + strconv.Itoa(req.N), "type": "message", "role": "assistant", "model": req.Model,
		"content": content, "stop_reason": finish, "stop_sequence": nil, "usage": anthropicUsage(r.Usage),
	}
}

// anthropicWhole is the answer as one object.
func anthropicWhole(req Request, r Reply) map[string]any {
	content := []any{}
	if r.Reasoning != "" {
		content = append(content, map[string]any{"type": "thinking", "thinking": r.Reasoning, "signature": ""})
	}
	if r.Text != "" {
		content = append(content, map[string]any{"type": "text", "text": r.Text})
	}
	for _, c := range r.Calls {
		content = append(content, map[string]any{"type": "tool_use", "id": c.ID, "name": c.Name, "input": json.RawMessage(c.Arguments)})
	}
	m := anthropicMessage(req, r, content, r.Finish)
	if req.Checked && r.Check != CheckAbsent {
		m["safeguard_results"] = []any{map[string]any{"type": "dangerous_tool_use", "status": verdicts(r)}}
	}
	return m
}
