package runner

import (
	"encoding/json"
	"fmt"

	"drawbridge/policy"
)

// Elicited is what an MCP server wants of a person, as an agent's program passes it on: a form that is to be filled in, or a
// page that is to be visited.
type Elicited struct {
	Server, Message string
	Mode            string // "form" or "url"
	URL             string
	Schema          json.RawMessage // of the form
}

// ElicitedAnswer is what such a server is told, in the protocol's words.
type ElicitedAnswer struct {
	Action  string `json:"action"` // accept, decline or cancel
	Content any    `json:"content,omitempty"`
}

// The labels of the one option that a page to visit, and a form without fields, has.
const (
	wordYes  = "Yes"
	wordDone = "Done"
)

// Question is what a person is asked, without an item and a folder, and what becomes of the answer: that a person declined is
// told as that, that nobody answered as a cancellation. What can't be asked is an error.
func (e Elicited) Question() (Question, func(Answer) ElicitedAnswer, error) {
	title := e.Server + ": " + e.Message
	q := Question{Kind: KindQuestion, Title: title, Categories: []policy.Category{policy.Question}}
	var form Elicitation
	switch e.Mode {
	case "url":
		q.Queries = []Query{{
			ID: "url", Text: e.Server + " asks to open " + e.URL + "\n" + e.Message, Options: []Option{{Label: wordDone}},
		}}
	case "form":
		var err error
		if form, err = ParseElicitation(e.Schema); err != nil {
			return Question{}, nil, fmt.Errorf("its form can't be asked: %w", err)
		}
		if q.Queries = form.Queries(); len(q.Queries) == 0 {
			q.Queries = []Query{{ID: "confirm", Text: title, Options: []Option{{Label: wordYes}}}}
		} else {
			q.Queries[0].Text = title + "\n" + q.Queries[0].Text
		}
	default:
		return Question{}, nil, fmt.Errorf("the mode %q is unknown", e.Mode)
	}
	return q, func(a Answer) ElicitedAnswer {
		content, whole := form.Content(a.Answers)
		switch {
		case a.Allows() && whole:
			return ElicitedAnswer{Action: "accept", Content: content}
		case !a.Allows() && a.Source == SourceUser:
			return ElicitedAnswer{Action: "decline"}
		}
		return ElicitedAnswer{Action: "cancel"}
	}, nil
}
