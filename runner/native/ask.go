package native

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"drawbridge/policy"
	"drawbridge/runner"
)

// What a question may hold, in characters. A person reads it on a phone; what is longer belongs into a message.
const (
	maxQueries     = 10
	maxQueryText   = 2000
	maxOptions     = 50 // what a card has buttons for
	maxLabel       = 300
	maxDescription = 500
)

// choice is an option as models write it: an object, or only its label.
type choice runner.Option

// UnmarshalJSON takes both forms.
func (c *choice) UnmarshalJSON(b []byte) error {
	if err := json.Unmarshal(b, &c.Label); err == nil {
		return nil
	}
	return json.Unmarshal(b, (*runner.Option)(c))
}

// asked is one question as the model writes it.
type asked struct {
	ID       string   `json:"id"`
	Question string   `json:"question"`
	Options  []choice `json:"options"`
	Multiple bool     `json:"multiple"`
	// Free is true unless the model says otherwise: the right answer may be one that it did not think of.
	Free   *bool `json:"free"`
	Secret bool  `json:"secret"`
}

func planAskUser(_ *turn, arguments json.RawMessage) (*action, error) {
	var in struct {
		Questions []asked `json:"questions"`
	}
	if err := decode(arguments, &in); err != nil {
		return nil, err
	}
	queries, err := queriesOf(in.Questions)
	if err != nil {
		return nil, nonsense{err}
	}
	return &action{
		item:       runner.Item{Kind: runner.ItemQuestion, Title: firstLine(queries[0].Text)},
		question:   runner.Question{Kind: runner.KindQuestion, Queries: queries},
		categories: []policy.Category{policy.Question},
		heard: func(a runner.Answer, item *runner.Item) string {
			if !a.Allows() {
				item.Status, item.Text = runner.ItemRefused, unanswered(a)
				return item.Text
			}
			item.Text = answered(queries, a.Answers, true)
			return answered(queries, a.Answers, false)
		},
	}, nil
}

// queriesOf makes questions that can be put to a person, each with an id of its own, or says what the model has to do
// better.
func queriesOf(list []asked) ([]runner.Query, error) {
	switch {
	case len(list) == 0:
		return nil, errors.New("there is no question; put at least one into \"questions\"")
	case len(list) > maxQueries:
		return nil, fmt.Errorf("these are %d questions; ask at most %d at a time", len(list), maxQueries)
	}
	taken := make(map[string]bool)
	for _, one := range list {
		taken[one.ID] = true
	}
	used := make(map[string]bool)
	var queries []runner.Query
	for i, one := range list {
		q := runner.Query{ID: one.ID, Text: strings.TrimSpace(one.Question), Secret: one.Secret}
		// The first of two that share an id keeps it, and so does any id that no other question has.
		if !sendable.MatchString(q.ID) || used[q.ID] {
			q.ID = freeID(i+1, taken)
			taken[q.ID] = true
		}
		used[q.ID] = true
		switch n := utf8.RuneCountInString(q.Text); {
		case n == 0:
			return nil, fmt.Errorf("question %d is empty", i+1)
		case n > maxQueryText:
			return nil, fmt.Errorf("question %d has %d characters; at most %d can be shown, so explain in a message and ask briefly", i+1, n, maxQueryText)
		}
		var err error
		if q.Options, err = optionsOf(one.Options); err != nil {
			return nil, fmt.Errorf("question %d: %w", i+1, err)
		}
		q.Multiple = one.Multiple && len(q.Options) > 0
		q.Free = len(q.Options) == 0 || one.Free == nil || *one.Free
		queries = append(queries, q)
	}
	return queries, nil
}

// freeID is an id that no question has.
func freeID(n int, taken map[string]bool) string {
	id := "q" + strconv.Itoa(n)
	for taken[id] {
		id += "x"
	}
	return id
}

func optionsOf(list []choice) ([]runner.Option, error) {
	if len(list) > maxOptions {
		return nil, fmt.Errorf("there are %d options; offer at most %d, or none to be answered in words", len(list), maxOptions)
	}
	var options []runner.Option
	for i, one := range list {
		o := runner.Option{Label: strings.TrimSpace(one.Label), Description: strings.TrimSpace(one.Description)}
		switch n := utf8.RuneCountInString(o.Label); {
		case n == 0:
			return nil, fmt.Errorf("option %d has no label", i+1)
		case n > maxLabel:
			return nil, fmt.Errorf("the label of option %d has %d characters; at most %d fit, so put the rest into its description", i+1, n, maxLabel)
		case utf8.RuneCountInString(o.Description) > maxDescription:
			return nil, fmt.Errorf("the description of option %d has more than %d characters; say the rest in a message", i+1, maxDescription)
		case slices.ContainsFunc(options, func(other runner.Option) bool { return strings.EqualFold(other.Label, o.Label) }):
			return nil, fmt.Errorf("options %d and another one have the same label %s", i+1, title(o.Label))
		}
		options = append(options, o)
	}
	return options, nil
}

// answered is what was answered, question by question. Where people can read it later, hidden leaves secrets out.
func answered(queries []runner.Query, answers map[string][]string, hidden bool) string {
	var b strings.Builder
	b.WriteString("The user answered:")
	for _, q := range queries {
		given := answers[q.ID]
		text := strings.Join(given, "; ")
		switch {
		case len(given) == 0:
			text = "(no answer)"
		case q.Secret && hidden:
			text = "(a secret)"
		}
		fmt.Fprintf(&b, "\n- %s (%s): %s", q.ID, firstLine(q.Text), text)
	}
	return b.String()
}

// unanswered tells the model that there is no answer, and why, in words that do not call a question refused.
func unanswered(a runner.Answer) string {
	s := "Not answered: the question could not be put to anybody."
	switch {
	case a.Decision == runner.Withdrawn:
		return "Not answered: the question was withdrawn."
	case a.Source == runner.SourceTimeout:
		s = "Nobody answered in time."
	case a.Source == runner.SourceUser:
		s = "Not answered: the user did not want to answer."
	}
	if r := strings.TrimSpace(a.Reason); r != "" {
		s += " Reason: " + r
	}
	return s + " Go on with what does not depend on it, and say what you assumed; if nothing is left, end your turn and say what you need to know."
}
