package jsonl

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
)

// Control is the dialect of Claude Code's stream-json: control_request, control_response and control_cancel_request
// with a request_id are requests, answers and withdrawals, whose method is the request's "subtype" and whose params are
// the request; every other frame is a notification, whose method is its "type" and whose params are the whole frame.
//
// To send such a frame, use Peer.Send. An error's Data is the "error_code" where there is one.
type Control struct{}

type controlFrame struct {
	Type      string           `json:"type"`
	RequestID json.RawMessage  `json:"request_id,omitempty"`
	Request   json.RawMessage  `json:"request,omitempty"`
	Response  *controlResponse `json:"response,omitempty"`
}

type controlResponse struct {
	Subtype   string          `json:"subtype"`
	RequestID json.RawMessage `json:"request_id"`
	Response  json.RawMessage `json:"response,omitempty"`
	Error     json.RawMessage `json:"error,omitempty"`
	ErrorCode json.RawMessage `json:"error_code,omitempty"`
}

// Decode understands a frame with a type. Success without a response is an empty one.
func (Control) Decode(frame json.RawMessage) (Message, error) {
	var kind struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(frame, &kind); err != nil {
		return Message{}, fmt.Errorf("jsonl: decode a frame: %w", err)
	}
	switch kind.Type {
	case "":
		return Message{}, errors.New("jsonl: a frame without a type")
	case "control_request", "control_response", "control_cancel_request":
	default:
		return Message{Kind: Notification, Method: kind.Type, Params: frame}, nil
	}
	var f controlFrame
	if err := json.Unmarshal(frame, &f); err != nil {
		return Message{}, fmt.Errorf("jsonl: decode a %s: %w", kind.Type, err)
	}
	raw := f.RequestID
	if kind.Type == "control_response" {
		if f.Response == nil {
			return Message{}, errors.New("jsonl: a control_response without a response")
		}
		raw = f.Response.RequestID
	}
	id, err := parseID(raw)
	if err != nil {
		return Message{}, fmt.Errorf("jsonl: decode a %s: %w", kind.Type, err)
	}
	switch kind.Type {
	case "control_cancel_request":
		return Message{Kind: Withdrawal, ID: id}, nil
	case "control_response":
		if f.Response.Subtype != "success" {
			e := parseError(f.Response.Error)
			if e.Data == nil {
				e.Data = f.Response.ErrorCode
			}
			return Message{Kind: Answer, ID: id, Error: e}, nil
		}
		if f.Response.Response == nil {
			f.Response.Response = json.RawMessage("{}")
		}
		return Message{Kind: Answer, ID: id, Result: f.Response.Response}, nil
	}
	var request struct {
		Subtype string `json:"subtype"`
	}
	if err := json.Unmarshal(f.Request, &request); err != nil {
		return Message{}, fmt.Errorf("jsonl: decode a control_request: %w", err)
	}
	return Message{Kind: Request, ID: id, Method: request.Subtype, Params: f.Request}, nil
}

// Encode makes a frame. The params of a request are an object without "subtype", which the method becomes.
func (Control) Encode(m Message) (any, error) {
	switch m.Kind {
	case Notification:
	case Request:
		request := map[string]json.RawMessage{}
		if m.Params != nil {
			if err := json.Unmarshal(m.Params, &request); err != nil {
				return nil, fmt.Errorf("jsonl: encode a control_request: %w", err)
			}
		}
		request["subtype"] = json.RawMessage(strconv.Quote(m.Method))
		b, err := json.Marshal(request)
		if err != nil {
			return nil, fmt.Errorf("jsonl: encode a control_request: %w", err)
		}
		return controlFrame{Type: "control_request", RequestID: json.RawMessage(m.ID), Request: b}, nil
	case Answer:
		r := &controlResponse{Subtype: "success", RequestID: json.RawMessage(m.ID), Response: m.Result}
		if m.Error != nil {
			text, err := json.Marshal(m.Error.Message)
			if err != nil {
				return nil, fmt.Errorf("jsonl: encode an error: %w", err)
			}
			r.Subtype, r.Response, r.Error = "error", nil, text
		}
		return controlFrame{Type: "control_response", Response: r}, nil
	case Withdrawal:
		return controlFrame{Type: "control_cancel_request", RequestID: json.RawMessage(m.ID)}, nil
	}
	return nil, errors.New("jsonl: this dialect has no notifications of one form: send the whole frame")
}

// ID is a string.
func (Control) ID(n int64) ID { return ID(`"drawbridge-` + strconv.FormatInt(n, 10) + `"`) }
