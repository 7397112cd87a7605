package modeltest

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"strings"
)

// responsesStream sends a reply as the events of the Responses API.
type responsesStream struct {
	stream
	tools responsesTools
	id    string
	items int
}

func (s *responsesStream) send(r Reply) {
	s.w.Header().Set("Content-Type", "text/event-stream")
	s.cut = r.Fault.Cut
	if err := s.all(r); err != nil {
		panic(http.ErrAbortHandler) // the only way to end a response so that the client sees it cut
	}
}

func (s *responsesStream) all(r Reply) error {
	if s.cut < 0 {
		return errCut
	}
	if err := s.event("response.created", map[string]any{"response": map[string]any{"id": s.id, "status": "in_progress"}}); err != nil {
		return err
	}
	if r.Reasoning != "" {
		item := map[string]any{
			"type": "reasoning", "id": s.item("rs"), "summary": []any{map[string]any{"type": "summary_text", "text": r.Reasoning}},
		}
		begun := map[string]any{"type": "reasoning", "id": item["id"], "summary": []any{}}
		if err := s.event("response.output_item.added", map[string]any{"item": begun}); err != nil {
			return err
		}
		if err := s.event("response.reasoning_summary_part.added", map[string]any{"item_id": item["id"], "summary_index": 0}); err != nil {
			return err
		}
		err := s.texts("response.reasoning_summary_text.delta", r.Reasoning, map[string]any{"item_id": item["id"], "summary_index": 0})
		if err != nil {
			return err
		}
		if err := s.event("response.output_item.done", map[string]any{"item": item}); err != nil {
			return err
		}
	}
	if r.Text != "" {
		item := message(s.item("msg"), r.Text)
		begun := map[string]any{"type": "message", "id": item["id"], "role": "assistant", "content": []any{}}
		if err := s.event("response.output_item.added", map[string]any{"item": begun}); err != nil {
			return err
		}
		err := s.texts("response.output_text.delta", r.Text, map[string]any{"item_id": item["id"], "content_index": 0})
		if err != nil {
			return err
		}
		if r.Fault.Error == "" && s.cut == 0 {
			if err := s.event("response.output_item.done", map[string]any{"item": item}); err != nil {
				return err
			}
		}
	}
	if r.Fault.Error != "" {
		return s.event("response.failed", map[string]any{"response": map[string]any{
			"id": s.id, "status": "failed", "error": map[string]any{"code": "server_error", "message": r.Fault.Error},
		}})
	}
	for _, c := range r.Calls {
		item := s.call(c)
		if err := s.event("response.output_item.added", map[string]any{"item": item}); err != nil {
			return err
		}
		if err := s.event("response.output_item.done", map[string]any{"item": item}); err != nil {
			return err
		}
	}
	if s.cut > 0 {
		return errCut
	}
	return s.event("response.completed", map[string]any{"response": s.whole(r)})
}

// whole is the answer as one object.
func (s *responsesStream) whole(r Reply) map[string]any {
	output := []any{}
	if r.Text != "" {
		output = append(output, message(s.item("msg"), r.Text))
	}
	for _, c := range r.Calls {
		output = append(output, s.call(c))
	}
	return map[string]any{
		"id": s.id, "object": "response", "status": "completed", "model": s.model, "output": output,
		"usage": map[string]any{
			"input_tokens": r.Usage.Input, "input_tokens_details": map[string]any{"cached_tokens": r.Usage.Cached},
			"output_tokens": r.Usage.Output, "output_tokens_details": map[string]any{"reasoning_tokens": 0},
			"total_tokens": r.Usage.Input + r.Usage.Output,
		},
	}
}

func message(id, text string) map[string]any {
	return map[string]any{
		"type": "message", "id": id, "role": "assistant", "status": "completed",
		"content": []any{map[string]any{"type": "output_text", "text": text}},
	}
}

// call is a tool call. A name with a slash is that of a tool in a namespace, listed or not: "mcp__server/tool".
func (s *responsesStream) call(c Call) map[string]any {
	if s.tools.custom[c.Name] {
		return map[string]any{"type": "custom_tool_call", "id": s.item("ctc"), "call_id": c.ID, "name": c.Name, "input": c.Arguments}
	}
	item := map[string]any{"type": "function_call", "id": s.item("fc"), "call_id": c.ID, "name": c.Name, "arguments": c.Arguments}
	if namespace, name, ok := strings.Cut(c.Name, "/"); ok {
		item["namespace"], item["name"] = namespace, name
	} else if n := s.tools.namespaces[c.Name]; n != "" {
		item["namespace"] = n
	}
	return item
}

func (s *responsesStream) item(kind string) string {
	s.items++
	return kind + "_" + s.id + "_" + strconv.Itoa(s.items)
}

// texts sends a text piece by piece.
func (s *responsesStream) texts(event, text string, with map[string]any) error {
	rest := []rune(text)
	for len(rest) > 0 {
		k := min(s.server.config.Piece, len(rest))
		if s.cut > 0 && s.pieces == s.cut {
			return errCut
		}
		s.pieces++
		if err := s.wait(); err != nil {
			return err
		}
		e := map[string]any{"delta": string(rest[:k])}
		maps.Copy(e, with)
		if err := s.event(event, e); err != nil {
			return err
		}
		rest = rest[k:]
	}
	return nil
}

func (s *responsesStream) event(kind string, e map[string]any) error {
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
