package modeltest

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// Check is what the endpoint's safety check says of the calls of an answer, where the client asks for it (Claude's auto
// mode, body field "safeguards"). The zero value finds nothing wrong with any of them.
type Check string

// The answers of the safety check.
const (
	CheckPasses      Check = ""
	CheckFlags       Check = "flagged"     // each call is dangerous
	CheckSkips       Check = "skipped"     // each call was held not to need a check
	CheckFails       Check = "unavailable" // no verdict, for each call
	CheckUnsupported Check = "unsupported" // the model has no check
	CheckDisabled    Check = "disabled"    // switched off
	CheckAbsent      Check = "absent"      // a gateway dropped the field
	CheckRefused     Check = "refused"     // HTTP 400 for a request that asks for it
)

// anthropicBlock is one block of a message's content, in either direction.
type anthropicBlock struct {
	Type      string          `json:"type"`
	Text      string          `json:"text,omitempty"`
	Thinking  string          `json:"thinking,omitempty"`
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Input     json.RawMessage `json:"input,omitempty"`
	ToolUseID string          `json:"tool_use_id,omitempty"`
	Content   json.RawMessage `json:"content,omitempty"`
}

// anthropicBlocks is a content: a plain string or a list of blocks.
type anthropicBlocks []anthropicBlock

// UnmarshalJSON takes both forms.
func (b *anthropicBlocks) UnmarshalJSON(raw []byte) error {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		*b = anthropicBlocks{{Type: "text", Text: s}}
		return nil
	}
	return json.Unmarshal(raw, (*[]anthropicBlock)(b))
}

func (b anthropicBlocks) text() string {
	var parts []string
	for _, one := range b {
		if one.Type == "text" {
			parts = append(parts, one.Text)
		}
	}
	return strings.Join(parts, "\n")
}

// decodeAnthropic reads a request of the Messages API. A block of text of a user is a message of its own; what the
// program puts around people's words (in system-reminder tags, or to say that it was interrupted) has the role system.
func decodeAnthropic(r io.Reader) (Request, error) {
	var body struct {
		Model    string          `json:"model"`
		Stream   bool            `json:"stream"`
		System   anthropicBlocks `json:"system"`
		Messages []struct {
			Role    string          `json:"role"`
			Content anthropicBlocks `json:"content"`
		} `json:"messages"`
		Tools []struct {
			Name string `json:"name"`
		} `json:"tools"`
		Safeguards []struct {
			Type string `json:"type"`
		} `json:"safeguards"`
		Output struct {
			Effort string `json:"effort"`
		} `json:"output_config"`
	}
	if err := json.NewDecoder(r).Decode(&body); err != nil {
		return Request{}, fmt.Errorf("the body is not JSON: %w", err)
	}
	req := Request{Model: body.Model, Effort: body.Output.Effort, Stream: body.Stream, Checked: len(body.Safeguards) > 0}
	if req.Model == "" || len(body.Messages) == 0 {
		return Request{}, errors.New("messages: at least one message is required")
	}
	for _, t := range body.Tools {
		req.Tools = append(req.Tools, t.Name)
	}
	if len(body.System) > 0 {
		req.Messages = append(req.Messages, Message{Role: "system", Content: body.System.text()})
	}
	for i, m := range body.Messages {
		switch m.Role {
		case "assistant":
			req.Messages = append(req.Messages, spoken(m.Content))
		case "user", "system":
			list, err := heard(m.Role, m.Content)
			if err != nil {
				return Request{}, fmt.Errorf("messages.%d: %w", i, err)
			}
			req.Messages = append(req.Messages, list...)
		default:
			return Request{}, fmt.Errorf("messages.%d: unknown role %q", i, m.Role)
		}
	}
	return req, matched(req.Messages)
}

// spoken is a message of the model.
func spoken(blocks anthropicBlocks) Message {
	m := Message{Role: "assistant", Content: blocks.text()}
	for _, b := range blocks {
		switch b.Type {
		case "thinking":
			m.Reasoning += b.Thinking
		case "tool_use":
			m.Calls = append(m.Calls, Call{ID: b.ID, Name: b.Name, Arguments: string(b.Input)})
		}
	}
	return m
}

// heard are the messages that a user's message stands for: the results of calls, which come first, and the texts.
func heard(role string, blocks anthropicBlocks) ([]Message, error) {
	var list []Message
	texts := false
	for _, b := range blocks {
		switch b.Type {
		case "tool_result":
			if texts {
				return nil, errors.New("tool_result blocks must come before text")
			}
			var content anthropicBlocks
			if len(b.Content) > 0 {
				if err := json.Unmarshal(b.Content, &content); err != nil {
					return nil, fmt.Errorf("content of a tool_result: %w", err)
				}
			}
			list = append(list, Message{Role: "tool", ToolCallID: b.ToolUseID, Content: content.text()})
		case "text":
			texts = true
			m := Message{Role: role, Content: b.Text}
			if t := strings.TrimSpace(b.Text); strings.HasPrefix(t, "<system-reminder>") || strings.HasPrefix(t, "[Request interrupted by user") {
				m.Role = "system"
			}
			list = append(list, m)
		}
	}
	return list, nil
}

// anthropicAuthorised reports whether a request has the key, in either of the two headers, and answers it if not.
func (s *Server) anthropicAuthorised(w http.ResponseWriter, r *http.Request) bool {
	if s.config.Key == "" || r.Header.Get("X-Api-Key") == s.config.Key || r.Header.Get("Authorization") == "Bearer "+s.config.Key {
		return true
	}
	anthropicFail(w, http.StatusUnauthorized, "authentication_error", "invalid x-api-key")
	return false
}

func anthropicFail(w http.ResponseWriter, status int, kind, message string) {
	respond(w, status, map[string]any{"type": "error", "error": map[string]any{"type": kind, "message": message}})
}

// anthropicMessages answers POST /v1/messages.
func (s *Server) anthropicMessages(w http.ResponseWriter, r *http.Request) {
	if !s.anthropicAuthorised(w, r) {
		return
	}
	req, err := decodeAnthropic(http.MaxBytesReader(w, r.Body, 64<<20))
	if err != nil {
		anthropicFail(w, http.StatusBadRequest, "invalid_request_error", err.Error())
		return
	}
	if !s.has(req.Model) {
		anthropicFail(w, http.StatusNotFound, "not_found_error", "model: "+req.Model)
		return
	}
	s.mu.Lock()
	req.N = len(s.requests) + 1
	s.requests = append(s.requests, req)
	s.mu.Unlock()

	tokens := req.tokens()
	if s.config.Window > 0 && tokens > s.config.Window {
		anthropicFail(w, http.StatusBadRequest, "invalid_request_error",
			fmt.Sprintf("prompt is too long: %d tokens > %d maximum", tokens, s.config.Window))
		return
	}
	reply := s.config.Script(r.Context(), req)
	if reply.Usage == (Usage{}) {
		reply.Usage = Usage{Input: int64(tokens), Output: int64(len(reply.Text)/4 + 1)}
	}
	for i := range reply.Calls {
		if reply.Calls[i].ID == "" {
			reply.Calls[i].ID = "toolu_" + strconv.Itoa(req.N) + "_" + strconv.Itoa(i+1)
		}
	}
	if reply.Finish == "" {
		reply.Finish = "end_turn"
		if len(reply.Calls) > 0 {
			reply.Finish = "tool_use"
		}
	}
	s.anthropicAnswer(w, r, req, reply)
}

// anthropicAnswer sends a reply, or what goes wrong with it.
func (s *Server) anthropicAnswer(w http.ResponseWriter, r *http.Request, req Request, reply Reply) {
	f := reply.Fault
	switch {
	case f.Silence:
		<-r.Context().Done()
	case req.Checked && reply.Check == CheckRefused:
		anthropicFail(w, http.StatusBadRequest, "invalid_request_error", "safeguards: Extra inputs are not permitted")
	case f.Status != 0 && f.Status != http.StatusOK:
		if f.RetryAfter != "" {
			w.Header().Set("Retry-After", f.RetryAfter)
		}
		if f.Body != "" {
			w.WriteHeader(f.Status)
			_, _ = w.Write([]byte(f.Body)) // the client may be gone
			return
		}
		anthropicFail(w, f.Status, cmp.Or(f.Code, "api_error"), cmp.Or(f.Error, http.StatusText(f.Status)))
	case f.Body != "":
		_, _ = w.Write([]byte(f.Body))
	case f.Whole || !req.Stream:
		respond(w, http.StatusOK, anthropicWhole(req, reply))
	default:
		(&anthropicStream{stream{server: s, w: w, r: r, model: req.Model}, req}).send(reply)
	}
}

// anthropicCount answers POST /v1/messages/count_tokens.
func (s *Server) anthropicCount(w http.ResponseWriter, r *http.Request) {
	if !s.anthropicAuthorised(w, r) {
		return
	}
	req, err := decodeAnthropic(http.MaxBytesReader(w, r.Body, 64<<20))
	if err != nil {
		anthropicFail(w, http.StatusBadRequest, "invalid_request_error", err.Error())
		return
	}
	respond(w, http.StatusOK, map[string]any{"input_tokens": req.tokens()})
}

// anthropicModels answers GET /v1/models for clients of the Messages API.
func (s *Server) anthropicModels(w http.ResponseWriter, r *http.Request) {
	if !s.anthropicAuthorised(w, r) {
		return
	}
	list := []map[string]any{}
	for _, m := range s.config.Models {
		list = append(list, map[string]any{"type": "model", "id": m, "display_name": m, "created_at": "2026-01-01T00:00:00Z"})
	}
	respond(w, http.StatusOK, map[string]any{"data": list, "has_more": false})
}
