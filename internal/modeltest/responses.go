package modeltest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// responsesTools are the tools of a request of the Responses API that are not plain functions.
type responsesTools struct {
	custom     map[string]bool   // those that take plain text
	namespaces map[string]string // the namespace of a tool that has one
}

// responsesText is a content or an output: a plain string or a list of parts.
type responsesText string

// UnmarshalJSON takes both forms.
func (t *responsesText) UnmarshalJSON(raw []byte) error {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		*t = responsesText(s)
		return nil
	}
	var parts []struct {
		Text string `json:"text"`
	}
	if err := json.Unmarshal(raw, &parts); err != nil {
		return err
	}
	var texts []string
	for _, p := range parts {
		texts = append(texts, p.Text)
	}
	*t = responsesText(strings.Join(texts, "\n"))
	return nil
}

// decodeResponses reads a request of the Responses API. What an agent's program puts around people's words, in tags or in
// messages of its developer, has the role system. A developer's message that says why a call was refused is put before
// the result of that call, after the words "Not done.".
func decodeResponses(r io.Reader) (Request, responsesTools, error) {
	tools := responsesTools{custom: map[string]bool{}, namespaces: map[string]string{}}
	var body struct {
		Model        string `json:"model"`
		Stream       bool   `json:"stream"`
		Instructions string `json:"instructions"`
		Reasoning    struct {
			Effort string `json:"effort"`
		} `json:"reasoning"`
		Input []struct {
			Type      string        `json:"type"`
			Role      string        `json:"role"`
			Content   responsesText `json:"content"`
			CallID    string        `json:"call_id"`
			Name      string        `json:"name"`
			Arguments string        `json:"arguments"`
			Input     string        `json:"input"`
			Output    responsesText `json:"output"`
		} `json:"input"`
		Tools []struct {
			Type  string `json:"type"`
			Name  string `json:"name"`
			Tools []struct {
				Name string `json:"name"`
			} `json:"tools"`
		} `json:"tools"`
	}
	if err := json.NewDecoder(r).Decode(&body); err != nil {
		return Request{}, tools, fmt.Errorf("the body is not JSON: %w", err)
	}
	req := Request{Model: body.Model, Effort: body.Reasoning.Effort, Stream: body.Stream}
	if req.Model == "" || len(body.Input) == 0 {
		return Request{}, tools, errors.New("you must provide a model and input")
	}
	for _, t := range body.Tools {
		req.Tools = append(req.Tools, t.Name)
		tools.custom[t.Name] = t.Type == "custom"
		for _, inner := range t.Tools {
			req.Tools = append(req.Tools, inner.Name)
			tools.namespaces[inner.Name] = t.Name
		}
	}
	if body.Instructions != "" {
		req.Messages = append(req.Messages, Message{Role: "system", Content: body.Instructions})
	}
	open := map[string]bool{}
	for i, in := range body.Input {
		switch in.Type {
		case "message", "":
			content := string(in.Content)
			switch {
			case in.Role == "user" && !framed(content), in.Role == "assistant":
				req.Messages = append(req.Messages, Message{Role: in.Role, Content: content})
			case strings.HasPrefix(content, refusedAction):
				refuse(req.Messages, content)
			case in.Role == "user", in.Role == "developer", in.Role == "system":
				req.Messages = append(req.Messages, Message{Role: "system", Content: content})
			default:
				return Request{}, tools, fmt.Errorf("input[%d]: unknown role %q", i, in.Role)
			}
		case "function_call", "custom_tool_call":
			if in.CallID == "" || in.Name == "" || open[in.CallID] {
				return Request{}, tools, fmt.Errorf("input[%d]: a tool call without a name or an id of its own", i)
			}
			open[in.CallID] = true
			req.Messages = append(req.Messages, Message{Role: "assistant", Calls: []Call{{in.CallID, in.Name, in.Arguments + in.Input}}})
		case "function_call_output", "custom_tool_call_output":
			if !open[in.CallID] {
				return Request{}, tools, fmt.Errorf("no tool call found for function call output with call_id %s", in.CallID)
			}
			delete(open, in.CallID)
			req.Messages = append(req.Messages, Message{Role: "tool", Content: string(in.Output), ToolCallID: in.CallID})
		}
	}
	for id := range open {
		return Request{}, tools, fmt.Errorf("no tool output found for function call %s", id)
	}
	return req, tools, nil
}

// framed reports whether a user's message was made by the program: its context stands in tags, the project's
// instructions under a heading.
func framed(content string) bool {
	return strings.HasPrefix(content, "<") || strings.HasPrefix(content, "# AGENTS.md instructions")
}

// refusedAction begins a message that says why a call was refused.
const refusedAction = "<refused_action>"

// noAnswers is the result of a question to a person that was not answered.
const noAnswers = `{"answers":{}}`

// refuse puts a reason before the first result since the last prompt that says "rejected", or that there is no answer, and
// has none yet.
func refuse(messages []Message, reason string) {
	from := 0
	for i, m := range messages {
		if m.Role == "user" {
			from = i
		}
	}
	for i := from; i < len(messages); i++ {
		m := &messages[i]
		if m.Role == "tool" && !strings.HasPrefix(m.Content, RefusedResult) &&
			(strings.Contains(m.Content, "rejected") || m.Content == noAnswers) {
			m.Content = RefusedResult + " " + reason + "\n" + m.Content
			return
		}
	}
}

// RefusedResult begins the result of a call that was refused with a reason, in requests of the Responses API.
const RefusedResult = "Not done."

func (s *Server) responses(w http.ResponseWriter, r *http.Request) {
	if !s.authorised(w, r) {
		return
	}
	req, tools, err := decodeResponses(http.MaxBytesReader(w, r.Body, 64<<20))
	if err != nil {
		fail(w, http.StatusBadRequest, "invalid_request_error", err.Error())
		return
	}
	if !s.has(req.Model) {
		fail(w, http.StatusNotFound, "model_not_found", "The model `"+req.Model+"` does not exist.")
		return
	}
	s.mu.Lock()
	req.N = len(s.requests) + 1
	s.requests = append(s.requests, req)
	s.mu.Unlock()

	tokens := req.tokens()
	if s.config.Window > 0 && tokens > s.config.Window {
		fail(w, http.StatusBadRequest, "context_length_exceeded",
			fmt.Sprintf("Your input of %d tokens exceeds the context window of this model.", tokens))
		return
	}
	reply := s.config.Script(r.Context(), req)
	if reply.Usage == (Usage{}) {
		reply.Usage = Usage{Input: int64(tokens), Output: int64(len(reply.Text)/4 + 1)}
	}
	for i := range reply.Calls {
		if reply.Calls[i].ID == "" {
			reply.Calls[i].ID = "call_" + strconv.Itoa(req.N) + "_" + strconv.Itoa(i+1)
		}
	}
	stream := &responsesStream{stream: stream{server: s, w: w, r: r, model: req.Model}, tools: tools, id: "resp_" + strconv.Itoa(req.N)}
	switch f := reply.Fault; {
	case f.Silence:
		<-r.Context().Done()
	case f.Status != 0 && f.Status != http.StatusOK:
		if f.RetryAfter != "" {
			w.Header().Set("Retry-After", f.RetryAfter)
		}
		if f.Body == "" {
			fail(w, f.Status, f.Code, http.StatusText(f.Status))
			return
		}
		w.WriteHeader(f.Status)
		_, _ = w.Write([]byte(f.Body))
	case f.Body != "":
		_, _ = w.Write([]byte(f.Body))
	case f.Whole || !req.Stream:
		respond(w, http.StatusOK, stream.whole(reply))
	default:
		stream.send(reply)
	}
}
