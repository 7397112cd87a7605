package config

import (
	"strings"
	"time"
)

// The variables that stand for the table [reviewer]. If any of them is set, the file's table does not count: its key
// would go to an address that it was not given for.
const (
	reviewerURLEnv     = "DRAWBRIDGE_REVIEWER_URL"
	reviewerModelEnv   = "DRAWBRIDGE_REVIEWER_MODEL"
	reviewerKeyEnv     = "DRAWBRIDGE_REVIEWER_KEY"
	reviewerTimeoutEnv = "DRAWBRIDGE_REVIEWER_TIMEOUT"
)

const (
	reviewerTimeout    = "20s"
	minReviewerTimeout = time.Second
	maxReviewerTimeout = 2 * time.Minute
)

// Reviewer is the model that decides in place of a person what the mode auto leaves to it.
type Reviewer struct {
	// BaseURL is the endpoint's address up to and without /chat/completions, with no slash at its end.
	BaseURL string
	// Model is what the endpoint calls the model.
	Model string
	// Key is sent as a bearer token; unset where the endpoint wants none.
	Key Secret
	// Timeout is how long a review may take before a person is asked, already divided by the pace.
	Timeout time.Duration
}

// reviewer takes the reviewer over, from the environment or else from the file, and reports whether the file holds its
// key. Without either there is none.
func (l *loader) reviewer(c *Config) (keyInFile bool) {
	table := map[string]any{}
	from := map[string]string{}
	for env, key := range map[string]string{
		reviewerURLEnv: "base_url", reviewerModelEnv: "model", reviewerKeyEnv: "key", reviewerTimeoutEnv: "timeout",
	} {
		if l.env[env] != "" {
			table[key], from[key] = l.env[env], env
		}
	}
	if len(table) == 0 {
		raw, ok := l.table["reviewer"]
		if !ok {
			return false
		}
		if table, ok = raw.(map[string]any); !ok {
			l.mistake(mistakeError{Key: "reviewer", Source: l.file, Allowed: "one table, under the heading [reviewer]"})
			return false
		}
	}
	source := func(key string) string {
		switch {
		case from[key] != "":
			return from[key]
		case len(from) > 0:
			return "the " + strings.TrimSuffix(reviewerURLEnv, "URL") + " variables"
		}
		return l.file
	}
	e := entry{l: l, label: "reviewer", table: table, seen: map[string]bool{}, source: source}
	var r Reviewer
	r.BaseURL = strings.TrimRight(e.text("base_url", "", webAllowed+", up to and without /chat/completions", func(s string) bool {
		_, ok := webURL(s)
		return ok
	}), "/")
	r.Model = e.text("model", "", "what the endpoint calls the model", modelName)
	timeout := e.text("timeout", reviewerTimeout, "a duration from "+short(minReviewerTimeout)+" to "+short(maxReviewerTimeout)+", such as "+reviewerTimeout, func(s string) (ok bool) {
		d, err := time.ParseDuration(s)
		r.Timeout = d
		return err == nil && d >= minReviewerTimeout && d <= maxReviewerTimeout
	})
	keySource := source("key")
	if len(from) > 0 {
		r.Key = NewSecret(e.text("key", "", keyAllowed, func(s string) bool { return s == "" || printable(s) }))
	} else {
		r.Key, keySource = e.key()
		keyInFile = r.Key.Set() && keySource == l.file
	}
	e.done()
	c.Reviewer = &r
	timeoutSource := source("timeout")
	if table["timeout"] == nil {
		timeoutSource = fromDefault
	}
	c.values = append(c.values,
		Value{Key: "reviewer base_url", Text: r.BaseURL, Source: source("base_url")},
		Value{Key: "reviewer model", Text: r.Model, Source: source("model")},
		Value{Key: "reviewer timeout", Text: timeout, Source: timeoutSource},
	)
	if r.Key.Set() {
		c.values = append(c.values, Value{Key: "reviewer key", Text: r.Key.String(), Source: keySource})
	}
	return keyInFile
}
