package bot

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	tg "github.com/go-telegram/bot"
)

// Fault is what a failed call means for whoever made it. Telegram's errors are classified here and nowhere else.
type Fault string

// The faults.
const (
	FaultRetryAfter   Fault = "retry_after"  // too fast: wait for Error.RetryAfter
	FaultNotModified  Fault = "not_modified" // the edit changes nothing: a success
	FaultGone         Fault = "gone"         // the chat, topic or message does not exist (any more)
	FaultForbidden    Fault = "forbidden"    // blocked, kicked, not a member, may not write
	FaultMigrated     Fault = "migrated"     // the group became the supergroup Error.MigrateTo
	FaultConflict     Fault = "conflict"     // somebody else polls with the token, or a webhook is set
	FaultUnauthorized Fault = "unauthorized" // the token is wrong or was revoked
	FaultBadEntities  Fault = "bad_entities" // the formatting is refused, the text may not be
	FaultTooOld       Fault = "too_old"      // a tap can't be answered any more
	FaultRejected     Fault = "rejected"     // refused for good for another reason
	FaultTransient    Fault = "transient"    // network, 5xx, an answer that is not one: try again
)

// Error is a failed call. It never holds the token.
type Error struct {
	Method      string
	Fault       Fault
	Code        int    // Telegram's error code; 0 if it gave none
	Description string // Telegram's words, or the network's
	RetryAfter  time.Duration
	MigrateTo   int64
	cause       error // a context's end, for errors.Is
}

func (e *Error) Error() string {
	return "bot: " + e.Method + ": " + string(e.Fault) + ": " + e.Description
}

func (e *Error) Unwrap() error { return e.cause }

// FaultOf is the fault of err: FaultTransient for errors that are not an *Error, and "" for nil.
func FaultOf(err error) Fault {
	if err == nil {
		return ""
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Fault
	}
	return FaultTransient
}

// Classify turns an error of the library or of net/http into an *Error; nil stays nil.
func (a *API) Classify(method string, err error) error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	// The library's typed errors answer wrongly to errors.Is, and its own predicates miss wrapped ones.
	text := a.mask(err.Error())
	if e, ok := errors.AsType[*tg.TooManyRequestsError](err); ok {
		return newError(method, http.StatusTooManyRequests, text, e.RetryAfter, 0)
	}
	if e, ok := errors.AsType[*tg.MigrateError](err); ok {
		return newError(method, http.StatusBadRequest, text, 0, int64(e.MigrateToChatID))
	}
	for sentinel, code := range map[error]int{
		tg.ErrorBadRequest: http.StatusBadRequest, tg.ErrorForbidden: http.StatusForbidden, tg.ErrorConflict: http.StatusConflict,
		tg.ErrorUnauthorized: http.StatusUnauthorized, tg.ErrorNotFound: http.StatusNotFound,
	} {
		if errors.Is(err, sentinel) {
			return newError(method, code, text, 0, 0)
		}
	}
	e := newError(method, 0, text, 0, 0)
	for _, end := range []error{context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, end) {
			e.cause = end
		}
	}
	return e
}

func newError(method string, code int, description string, retryAfter int, migrateTo int64) *Error {
	e := &Error{Method: method, Code: code, Description: description, MigrateTo: migrateTo, Fault: FaultTransient}
	switch code {
	case http.StatusTooManyRequests:
		e.Fault, e.RetryAfter = FaultRetryAfter, time.Duration(max(retryAfter, 1))*time.Second
	case http.StatusUnauthorized, http.StatusNotFound: // a token that never existed is answered with 404
		e.Fault = FaultUnauthorized
	case http.StatusForbidden:
		e.Fault = FaultForbidden
	case http.StatusConflict:
		e.Fault = FaultConflict
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge:
		e.Fault = badRequest(description)
		if migrateTo != 0 {
			e.Fault = FaultMigrated
		}
	}
	return e
}

// badRequest knows Telegram's words (td's Client.cpp): the code alone says nothing.
func badRequest(description string) Fault {
	d := strings.ToLower(description)
	has := func(words ...string) bool {
		for _, w := range words {
			if strings.Contains(d, w) {
				return true
			}
		}
		return false
	}
	switch {
	case has("message is not modified"):
		return FaultNotModified
	case has("query is too old", "query id is invalid"):
		return FaultTooOld
	case has("can't parse entities", "can't parse messageentity", "entity begin", "receive an entity"):
		return FaultBadEntities
	case has("not enough rights", "need administrator rights", "chat_write_forbidden", "topic_closed", "have no rights"):
		return FaultForbidden
	case has("chat not found", "thread not found", "message to edit not found", "message can't be edited",
		"message to delete not found", "message can't be deleted", "topic_deleted", "message_id_invalid", "peer_id_invalid",
		"group chat was deactivated", "no text in the message to edit"):
		return FaultGone
	}
	return FaultRejected
}
