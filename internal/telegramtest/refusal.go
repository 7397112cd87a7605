package telegramtest

import (
	"fmt"
	"net/http"
	"strconv"
)

// refusal is an answer with ok=false.
type refusal struct {
	code        int
	description string
	retryAfter  int   // seconds, on 429
	migrateTo   int64 // on 400 of a group that became a supergroup
}

func (r *refusal) Error() string { return strconv.Itoa(r.code) + " " + r.description }

// badRequest puts Telegram's prefix before a text. The server lowers the first letter of a sentence and leaves codes
// such as BUTTON_DATA_INVALID alone.
func badRequest(format string, args ...any) error {
	return &refusal{code: http.StatusBadRequest, description: "Bad Request: " + lowerFirst(fmt.Sprintf(format, args...))}
}

func forbidden(text string) error {
	return &refusal{code: http.StatusForbidden, description: "Forbidden: " + text}
}

func conflict(text string) error {
	return &refusal{code: http.StatusConflict, description: "Conflict: " + text}
}

func tooManyRequests(seconds int) error {
	return &refusal{
		code:        http.StatusTooManyRequests,
		description: "Too Many Requests: retry after " + strconv.Itoa(seconds),
		retryAfter:  seconds,
	}
}

func lowerFirst(s string) string {
	if len(s) < 2 || s[0] < 'A' || s[0] > 'Z' || s[1] == '_' || (s[1] >= 'A' && s[1] <= 'Z') {
		return s
	}
	return string(s[0]+'a'-'A') + s[1:]
}
