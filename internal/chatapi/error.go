package chatapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// Kind is what a failure comes from.
type Kind string

// The kinds of failures.
const (
	Auth        Kind = "auth"         // the key is missing, wrong or not allowed to
	Quota       Kind = "quota"        // the account has nothing left; waiting does not help
	RateLimited Kind = "rate_limited" // too many requests; waiting helps
	NoModel     Kind = "no_model"     // the endpoint does not have the model, or is not where it was looked for
	TooLong     Kind = "too_long"     // the conversation does not fit into the model's context
	Refused     Kind = "refused"      // the endpoint does not take the request, for another reason
	Unavailable Kind = "unavailable"  // the endpoint says that it has a problem
	Network     Kind = "network"      // the endpoint could not be reached, or fell silent
	Cut         Kind = "cut"          // the answer stopped in the middle
	BadResponse Kind = "bad_response" // what came is not what the protocol says
)

// Error is a failed request.
type Error struct {
	Kind    Kind
	Status  int    // HTTP status; 0 where there was none
	Message string // the server's words, one bounded line without control characters; or ours
	// RetryAfter is how long the server wants to be left alone; 0 where it did not say.
	RetryAfter time.Duration
	Err        error
}

// Error says what happened, for logs.
func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "chatapi: %s", e.Kind)
	if e.Status != 0 {
		fmt.Fprintf(&b, " (HTTP %d)", e.Status)
	}
	if e.Message != "" {
		b.WriteString(": " + e.Message)
	}
	if e.Err != nil {
		fmt.Fprintf(&b, ": %v", e.Err)
	}
	return b.String()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Temporary reports whether another attempt may help.
func (e *Error) Temporary() bool {
	switch e.Kind {
	case RateLimited, Unavailable, Network, Cut:
		return true
	case Auth, Quota, NoModel, TooLong, Refused, BadResponse:
	}
	return false
}

// Advice is one or two sentences for a person: what is wrong and what can be done.
func (e *Error) Advice() string {
	var s string
	switch e.Kind {
	case Auth:
		s = "The model's endpoint does not accept the key. Check the runtime's key."
	case Quota:
		s = "The account at the model's endpoint has no quota left. Add credit, or choose another runtime."
	case RateLimited:
		s = "The model's endpoint takes no more requests for the moment."
		if e.RetryAfter > 0 {
			s += " It asks to wait for " + e.RetryAfter.Round(time.Second).String() + "."
		}
		s += " Try again later."
	case NoModel:
		s = "The model's endpoint does not have this model. Check the runtime's model and base URL."
	case TooLong:
		s = "The conversation is too long for the model. Begin a new session, or set the runtime's context window to the model's."
	case Refused:
		s = "The model's endpoint refused the request."
	case Unavailable:
		s = "The model's endpoint has a problem at the moment. Try again later."
	case Network:
		s = "The model's endpoint cannot be reached. Check the runtime's base URL and the network."
	case Cut:
		s = "The model's answer stopped in the middle. Try again."
	case BadResponse:
		s = "What the model's endpoint answers cannot be understood. Check that the runtime's base URL is an OpenAI-compatible one."
	default:
		s = "The request to the model failed."
	}
	if e.Message != "" {
		s += " It says: " + strings.TrimRight(e.Message, ". \n") + "."
	}
	return s
}

// apiError is what servers put into "error": an object, or just a string.
type apiError struct {
	Message string `json:"message"`
	Type    string `json:"type"`
	Code    any    `json:"code"` // a word or a number
}

// UnmarshalJSON takes what is there and never fails: whatever it is, it is an error.
func (a *apiError) UnmarshalJSON(b []byte) error {
	type plain apiError
	if json.Unmarshal(b, (*plain)(a)) != nil {
		*a = apiError{Message: strings.Trim(string(b), `"`)}
	}
	return nil
}

// classify finds the kind of a failure from the HTTP status and the server's words. The words are those of OpenAI, GLM,
// DeepSeek, OpenRouter, vLLM and llama.cpp; where they say nothing known, the status decides.
func classify(status int, a apiError) Kind {
	code := strings.ToLower(fmt.Sprint(a.Code) + " " + a.Type)
	text := strings.ToLower(a.Message)
	has := func(s string, words ...string) bool {
		for _, w := range words {
			if strings.Contains(s, w) {
				return true
			}
		}
		return false
	}
	switch {
	case has(code, "context_length", "exceed_context") ||
		has(text, "context length", "context_length", "maximum context", "context window", "context size", "too many tokens", "prompt is too long"):
		return TooLong
	case status == http.StatusUnauthorized || has(code, "invalid_api_key", "authentication"):
		return Auth
	case status == http.StatusPaymentRequired || has(code, "insufficient_quota", "insufficient_balance") || has(text, "insufficient balance"):
		return Quota
	case status == http.StatusTooManyRequests || has(code, "rate_limit"):
		return RateLimited
	case status == http.StatusForbidden:
		return Auth
	case status == http.StatusNotFound || has(code, "model_not_found"):
		return NoModel
	case status == http.StatusRequestTimeout || status == http.StatusTooEarly || status >= 500 || has(code, "server_error", "overloaded"):
		return Unavailable
	}
	return Refused
}

// number finds a status where a server sends one as the code of an error in the middle of a stream.
func (a apiError) number() int {
	n, err := strconv.Atoi(strings.TrimSuffix(fmt.Sprint(a.Code), ".0"))
	if err != nil || n < 400 || n > 599 {
		return 0
	}
	return n
}

// words makes a server's text one bounded line, without the key in it.
func words(s string, key Key) string {
	if key != "" {
		s = strings.ReplaceAll(s, string(key), key.masked())
	}
	s = strings.Join(strings.FieldsFunc(strings.ToValidUTF8(s, "\ufffd"), func(r rune) bool {
		return unicode.IsSpace(r) || !unicode.IsPrint(r)
	}), " ")
	const limit = 300
	if r := []rune(s); len(r) > limit {
		s = string(r[:limit]) + "…"
	}
	return s
}

// retryAfter reads how long a server wants to be left alone: Retry-After in seconds or as a date (RFC 9110, 10.2.3), or
// OpenAI's retry-after-ms. What cannot be read is 0.
func retryAfter(h http.Header, now time.Time) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil && ms > 0 && ms < 1e12 {
		return time.Duration(ms * float64(time.Millisecond))
	}
	v := h.Get("Retry-After")
	if s, err := strconv.ParseFloat(v, 64); err == nil && s > 0 && s < 1e9 {
		return time.Duration(s * float64(time.Second))
	}
	if t, err := http.ParseTime(v); err == nil && t.After(now) {
		return t.Sub(now)
	}
	return 0
}
