package claude

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os/exec"
	"strings"
	"time"

	"drawbridge/internal/jsonl"
	"drawbridge/runner"
)

// What goes wrong, in words by which a person can act.
const (
	notLoggedIn = "Claude Code is not logged in, or its login or key is refused. Run `claude` on the host and log in with /login, or set a valid API key."
	noQuota     = "The account's quota or credit is used up. Wait until it is renewed, or add credit."
	noModel     = "The model is not available to this account, or does not exist. Choose another one."
)

func tooOld(v runner.Version) string {
	return fmt.Sprintf("Claude Code %s is older than %s, the oldest version that Drawbridge was tested with. Update it: npm install -g @anthropic-ai/claude-code", v, oldest())
}

// missing says that there is no such program. What the system said of it helps nobody.
type missing struct {
	name string
	err  error
}

func (m *missing) Error() string {
	return m.name + " is not installed, or not where it is looked for. Install it (npm install -g @anthropic-ai/claude-code), or set the program of this runtime to its path."
}

func (m *missing) Unwrap() error { return m.err }

// explainStart says why the program could not be started.
func explainStart(name string, err error) error {
	switch {
	case errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist):
		return &missing{name, err}
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%s may not be run: %w", name, err)
	}
	return fmt.Errorf("%s cannot be started: %w", name, err)
}

// explainEnd says why the program ended when it should not have. said is what it told itself.
func explainEnd(said string, err error) error {
	if said = line(said); said != "" {
		return fmt.Errorf("claude: the program ended: %s", said)
	}
	if closed, ok := errors.AsType[*jsonl.ClosedError](err); ok {
		if closed.Stderr != "" {
			return fmt.Errorf("claude: the program ended; its last words: %s", line(closed.Stderr))
		}
		return fmt.Errorf("claude: the program ended without a word: %w", err)
	}
	return fmt.Errorf("claude: the program: %w", err)
}

// explain says why a turn failed.
func (r *result) explain() string {
	text := cmp.Or(r.Result, strings.Join(r.Errors, "; "))
	status := 0
	if r.APIStatus != nil {
		status = *r.APIStatus
	}
	if why := explainAPI(status, text); why != "" {
		return why
	}
	switch r.Terminal {
	case "max_turns":
		return "The turn took more steps than the program allows."
	case "prompt_too_long":
		return "The conversation is too long for the model. Begin a new session."
	}
	if text == "" {
		return "The program failed and does not say why."
	}
	return line(text)
}

// explainAPI says what is wrong with an answer of the endpoint, as far as that is known.
func explainAPI(status int, text string) string {
	low := strings.ToLower(text)
	has := func(words ...string) bool {
		for _, w := range words {
			if strings.Contains(low, w) {
				return true
			}
		}
		return false
	}
	switch {
	case status == http.StatusUnauthorized || status == http.StatusForbidden || has("not logged in", "invalid api key", "invalid x-api-key", "oauth token", "/login"):
		return notLoggedIn
	case has("credit balance", "usage limit", "quota", "limit reached", "out of extra usage"):
		return noQuota
	case status == http.StatusNotFound || has("issue with the selected model", "model not found"):
		return noModel
	case status == http.StatusTooManyRequests:
		return "The endpoint limits requests at the moment. Try again in a while."
	case has("unable to connect", "connection refused", "econnrefused", "enotfound", "getaddrinfo", "connection error"):
		return "The model's endpoint cannot be reached. Look at the host's network."
	case status >= http.StatusInternalServerError:
		return "The model's endpoint is overloaded or out of order. Try again in a while."
	}
	return ""
}

// retried tells that a request to the model failed and is sent again. What another try cannot mend ends the turn: the
// program would go on for minutes. mu is held.
func (c *conn) retried(f frame) {
	status := 0
	if f.ErrorStatus != nil {
		status = *f.ErrorStatus
	}
	switch {
	case f.Attempt < 2: // a token that has just expired is renewed by the program
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		c.fail(notLoggedIn)
		return
	case status == http.StatusPaymentRequired:
		c.fail(noQuota)
		return
	case status == http.StatusNotFound:
		c.fail(noModel)
		return
	}
	why := "the endpoint answers with " + fmt.Sprint(status)
	switch {
	case status == 0:
		why = "the endpoint cannot be reached or did not answer"
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		why = "the endpoint refuses the login"
	case status == http.StatusTooManyRequests:
		why = "the endpoint limits requests"
	case status >= http.StatusInternalServerError:
		why = "the endpoint is overloaded or out of order"
	}
	wait := time.Duration(f.RetryDelay) * time.Millisecond
	c.notice(fmt.Sprintf("A request to the model failed: %s. Try %d follows in %s.", why, f.Attempt+1, wait.Round(100*time.Millisecond)))
}

// limited tells how the subscription's limit stands, where that matters. mu is held.
func (c *conn) limited(f frame) {
	if f.Rate == nil || f.Rate.Status == c.rate {
		return
	}
	c.rate = f.Rate.Status
	when := ""
	if f.Rate.Resets > 0 {
		when = " It is renewed at " + time.Unix(f.Rate.Resets, 0).UTC().Format("15:04 UTC on 2 January") + "."
	}
	switch f.Rate.Status {
	case "allowed_warning":
		c.notice("The account's limit is nearly reached." + when)
	case "rejected":
		c.notice("The account's limit is reached." + when)
	}
}
