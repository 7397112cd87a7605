package jsonl

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
)

// ID names a request: the JSON text of what its sender chose, a number or a string, and so "7" and "\"7\"" are two.
// It is echoed as it came. Codex ignores the answer "0" to its request 0.
type ID string

// parseID takes numbers and strings. Null, which JSON-RPC forbids for requests that want an answer, is none.
func parseID(raw json.RawMessage) (ID, error) {
	if len(raw) > 0 && (raw[0] == '"' || raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9') {
		return ID(raw), nil
	}
	return "", errors.New("an id that is no number and no string")
}

// Kind is what a frame is.
type Kind int

// The kinds of frames.
const (
	Notification Kind = iota // wants no answer
	Request                  // wants one
	Answer                   // to a request
	Withdrawal               // the sender of a request does not want the answer any more
)

// Message is one frame as a Dialect understands it. Method and Params belong to requests and notifications, Result and
// Error to answers, ID to all but notifications.
type Message struct {
	Kind   Kind
	ID     ID
	Method string
	Params json.RawMessage // nil where there are none
	Result json.RawMessage
	Error  *Error
}

// Dialect is how a program writes its frames.
type Dialect interface {
	// Decode understands a line. An error says why it is no frame of this dialect, or no JSON at all.
	Decode(frame json.RawMessage) (Message, error)
	// Encode makes a frame for encoding/json.
	Encode(m Message) (any, error)
	// ID makes the id of our n-th request.
	ID(n int64) ID
}

// Codes of JSON-RPC 2.0 and of its common extensions.
const (
	CodeInvalidParams = -32602
	CodeNoMethod      = -32601
	CodeInternal      = -32603
	CodeOverloaded    = -32001
	CodeCancelled     = -32800 // LSP, taken over by ACP
)

// Error is the other side's "no" to a request, or ours to one of theirs.
type Error struct {
	Code    int64           `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

func (e *Error) Error() string {
	if e.Code == 0 {
		return e.Message
	}
	return fmt.Sprintf("%s (code %d)", e.Message, e.Code)
}

// parseError makes an Error of whatever stands where one belongs: a frame that says that a request failed must end the
// request, however it says so.
func parseError(raw json.RawMessage) *Error {
	var e Error
	if err := json.Unmarshal(raw, &e); err == nil && (e.Message != "" || e.Code != 0) {
		return &e
	}
	var text string
	if err := json.Unmarshal(raw, &text); err == nil && text != "" {
		return &Error{Message: text}
	}
	return &Error{Message: "the request failed", Data: raw}
}

// isNull tells absent and null members from others.
func isNull(raw json.RawMessage) bool { return len(raw) == 0 || string(raw) == "null" }

// RPC is JSON-RPC.
type RPC struct {
	// Version is the value of the member "jsonrpc": "2.0" for ACP, empty for codex, which does without it. What the other
	// side says is not looked at.
	Version string
}

type rpcFrame struct {
	Version string          `json:"jsonrpc,omitempty"`
	ID      json.RawMessage `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   json.RawMessage `json:"error,omitempty"`
}

// cancelRequest is ACP's notification that withdraws a request (an extension of JSON-RPC that LSP began).
const cancelRequest = "$/cancel_request"

// Decode understands requests, answers, notifications and $/cancel_request. An answer with neither result nor error is
// an error: a request must end.
func (r RPC) Decode(frame json.RawMessage) (Message, error) {
	var f rpcFrame
	if err := json.Unmarshal(frame, &f); err != nil {
		return Message{}, fmt.Errorf("jsonl: decode a frame: %w", err)
	}
	if f.Method == cancelRequest {
		var params struct {
			RequestID json.RawMessage `json:"requestId"` //nolint:tagliatelle // the protocol's
		}
		if err := json.Unmarshal(f.Params, &params); err != nil {
			return Message{}, fmt.Errorf("jsonl: decode a withdrawal: %w", err)
		}
		id, err := parseID(params.RequestID)
		if err != nil {
			return Message{}, fmt.Errorf("jsonl: decode a withdrawal: %w", err)
		}
		return Message{Kind: Withdrawal, ID: id}, nil
	}
	if f.ID == nil {
		if f.Method == "" {
			return Message{}, errors.New("jsonl: a frame with neither method nor id")
		}
		return Message{Kind: Notification, Method: f.Method, Params: f.Params}, nil
	}
	id, err := parseID(f.ID)
	switch {
	case err != nil:
		return Message{}, fmt.Errorf("jsonl: decode a frame: %w", err)
	case f.Method != "":
		return Message{Kind: Request, ID: id, Method: f.Method, Params: f.Params}, nil
	case !isNull(f.Error):
		return Message{Kind: Answer, ID: id, Error: parseError(f.Error)}, nil
	case f.Result == nil:
		return Message{Kind: Answer, ID: id, Error: &Error{Message: "an answer without a result"}}, nil
	}
	return Message{Kind: Answer, ID: id, Result: f.Result}, nil
}

// Encode makes a frame. Params that are nil are left out: give an empty struct where the other side wants {}.
func (r RPC) Encode(m Message) (any, error) {
	f := rpcFrame{Version: r.Version}
	switch m.Kind {
	case Notification:
		f.Method, f.Params = m.Method, m.Params
	case Request:
		f.ID, f.Method, f.Params = json.RawMessage(m.ID), m.Method, m.Params
	case Answer:
		f.ID, f.Result = json.RawMessage(m.ID), m.Result
		if f.Result == nil {
			f.Result = json.RawMessage("null")
		}
		if m.Error != nil {
			b, err := json.Marshal(m.Error)
			if err != nil {
				return nil, fmt.Errorf("jsonl: encode an error: %w", err)
			}
			f.Result, f.Error = nil, b
		}
	case Withdrawal:
		f.Method, f.Params = cancelRequest, json.RawMessage(`{"requestId":`+string(m.ID)+`}`)
	}
	return f, nil
}

// ID is a number.
func (RPC) ID(n int64) ID { return ID(strconv.FormatInt(n, 10)) }
