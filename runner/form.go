package runner

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/mail"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Form says what the answer to a Query has to be where the query is a field of a form. The zero value takes any words.
type Form struct {
	// Number takes a number, Integer a whole one.
	Number  bool `json:"number,omitempty"`
	Integer bool `json:"integer,omitempty"`
	// Min and Max bound a number, or how many options are chosen where several may be.
	Min *float64 `json:"min,omitempty"`
	Max *float64 `json:"max,omitempty"`
	// MinLength and MaxLength bound words, in characters. A MaxLength of 0 is none.
	MinLength int `json:"min_length,omitempty"`
	MaxLength int `json:"max_length,omitempty"`
	// Format is "email", "uri", "date" or "date-time".
	Format string `json:"format,omitempty"`
	// Optional says that the field may be left out: an answer without words does that.
	Optional bool `json:"optional,omitempty"`
}

// Fault is what is wrong with an answer.
type Fault string

// The faults.
const (
	FaultNumber  Fault = "number"
	FaultInteger Fault = "integer"
	FaultRange   Fault = "range"  // below Min or above Max
	FaultLength  Fault = "length" // shorter than MinLength or longer than MaxLength
	FaultFormat  Fault = "format"
	FaultChoices Fault = "choices" // fewer than Min or more than Max
)

// The formats of MCP's forms.
const (
	FormatEmail    = "email"
	FormatURI      = "uri"
	FormatDate     = "date"
	FormatDateTime = "date-time"
)

// Check says what is wrong with the answers to a query that has this form; nothing for a nil Form.
func (f *Form) Check(q Query, answers []string) Fault {
	switch {
	case f == nil, f.Optional && len(answers) == 0:
		return ""
	case q.Multiple:
		n := float64(len(answers))
		if f.Min != nil && n < *f.Min || f.Max != nil && n > *f.Max {
			return FaultChoices
		}
		return ""
	case len(q.Options) > 0 || len(answers) != 1:
		return "" // one of the options, or none of a form's business
	}
	return f.check(answers[0])
}

func (f *Form) check(words string) Fault {
	if f.Number || f.Integer {
		n, err := strconv.ParseFloat(words, 64)
		switch {
		case err != nil || math.IsInf(n, 0) || math.IsNaN(n):
			return FaultNumber
		case f.Integer && (n != math.Trunc(n) || math.Abs(n) > 1<<53):
			return FaultInteger
		case f.Min != nil && n < *f.Min, f.Max != nil && n > *f.Max:
			return FaultRange
		}
		return ""
	}
	if n := utf8.RuneCountInString(words); n < f.MinLength || f.MaxLength > 0 && n > f.MaxLength {
		return FaultLength
	}
	var err error
	switch f.Format {
	case FormatEmail:
		var a *mail.Address
		if a, err = mail.ParseAddress(words); err == nil && a.Address != words {
			return FaultFormat
		}
	case FormatURI:
		var u *url.URL
		if u, err = url.Parse(words); err == nil && u.Scheme == "" {
			return FaultFormat
		}
	case FormatDate:
		_, err = time.Parse(time.DateOnly, words)
	case FormatDateTime:
		_, err = time.Parse(time.RFC3339, words)
	}
	if err != nil {
		return FaultFormat
	}
	return ""
}

// Elicitation is a form that an MCP server wants a person to fill in.
type Elicitation struct{ fields []field }

// field is one of an Elicitation, with what its options stand for.
type field struct {
	query  Query
	values []any // of the options, in their order
}

// The labels of a boolean.
const (
	labelYes = "Yes"
	labelNo  = "No"
)

// property is a field of the form's schema, as much of JSON Schema as MCP allows there.
type property struct {
	Type        string    `json:"type"`
	Title       string    `json:"title"`
	Description string    `json:"description"`
	Format      string    `json:"format"`
	Minimum     *float64  `json:"minimum"`
	Maximum     *float64  `json:"maximum"`
	MinLength   int       `json:"minLength"` //nolint:tagliatelle // the protocol's
	MaxLength   int       `json:"maxLength"` //nolint:tagliatelle // the protocol's
	MinItems    *float64  `json:"minItems"`  //nolint:tagliatelle // the protocol's
	MaxItems    *float64  `json:"maxItems"`  //nolint:tagliatelle // the protocol's
	Enum        []string  `json:"enum"`
	EnumNames   []string  `json:"enumNames"` //nolint:tagliatelle // the protocol's
	OneOf       []titled  `json:"oneOf"`     //nolint:tagliatelle // the protocol's
	AnyOf       []titled  `json:"anyOf"`     //nolint:tagliatelle // the protocol's
	Items       *property `json:"items"`
}

// titled is an option with a name of its own.
type titled struct {
	Const string `json:"const"`
	Title string `json:"title"`
}

var errForm = errors.New("runner: form")

// ParseElicitation reads the schema of a form; its fields keep their order. A field that can't be asked is an error.
func ParseElicitation(schema json.RawMessage) (Elicitation, error) {
	var in struct {
		Properties json.RawMessage `json:"properties"`
		Required   []string        `json:"required"`
	}
	if err := json.Unmarshal(schema, &in); err != nil {
		return Elicitation{}, fmt.Errorf("%w: %w", errForm, err)
	}
	var e Elicitation
	if len(in.Properties) == 0 {
		return e, nil
	}
	d := json.NewDecoder(bytes.NewReader(in.Properties))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return Elicitation{}, fmt.Errorf("%w: its properties are no object", errForm)
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return Elicitation{}, fmt.Errorf("%w: %w", errForm, err)
		}
		var p property
		if err := d.Decode(&p); err != nil {
			return Elicitation{}, fmt.Errorf("%w: %w", errForm, err)
		}
		id, _ := name.(string)
		one, err := p.field(id, slices.Contains(in.Required, id))
		if err != nil {
			return Elicitation{}, err
		}
		if slices.ContainsFunc(e.fields, func(f field) bool { return f.query.ID == id }) {
			return Elicitation{}, fmt.Errorf("%w: the field %q stands there twice", errForm, id)
		}
		e.fields = append(e.fields, one)
	}
	for _, name := range in.Required {
		if !slices.ContainsFunc(e.fields, func(f field) bool { return f.query.ID == name }) {
			return Elicitation{}, fmt.Errorf("%w: it requires the field %q, which it does not have", errForm, name)
		}
	}
	return e, nil
}

func (p property) field(name string, required bool) (field, error) {
	f := field{query: Query{ID: name, Text: name, Form: &Form{Optional: !required}}}
	q, form := &f.query, f.query.Form
	if p.Title != "" {
		q.Text = p.Title
	}
	if p.Description != "" {
		q.Text += ": " + p.Description
	}
	switch p.Type {
	case "boolean":
		q.Options, f.values = []Option{{Label: labelYes}, {Label: labelNo}}, []any{true, false}
	case "number", "integer":
		q.Free = true
		form.Number, form.Integer, form.Min, form.Max = p.Type == "number", p.Type == "integer", p.Minimum, p.Maximum
	case "string":
		if f.offer(p); len(q.Options) == 0 {
			q.Free = true
			form.MinLength, form.MaxLength, form.Format = p.MinLength, p.MaxLength, p.Format
		}
	case "array":
		if p.Items == nil {
			return f, fmt.Errorf("%w: the list %q has no options", errForm, name)
		}
		f.offer(*p.Items)
		q.Multiple, form.Min, form.Max = true, p.MinItems, p.MaxItems
		if len(q.Options) == 0 {
			return f, fmt.Errorf("%w: the list %q has no options", errForm, name)
		}
	default:
		return f, fmt.Errorf("%w: the field %q is of the type %q", errForm, name, p.Type)
	}
	if name == "" {
		return f, fmt.Errorf("%w: a field has no name", errForm)
	}
	return f, nil
}

// offer adds the options of a choice. Two with one label could not be told apart; then they are shown as they are.
func (f *field) offer(p property) {
	add := func(label, value string) {
		if label == "" || slices.ContainsFunc(f.query.Options, func(o Option) bool { return strings.EqualFold(o.Label, label) }) {
			label = value
		}
		f.query.Options, f.values = append(f.query.Options, Option{Label: label}), append(f.values, value)
	}
	for i, value := range p.Enum {
		label := ""
		if i < len(p.EnumNames) {
			label = p.EnumNames[i]
		}
		add(label, value)
	}
	for _, o := range slices.Concat(p.OneOf, p.AnyOf) {
		add(o.Title, o.Const)
	}
}

// Queries are the fields as questions.
func (e Elicitation) Queries() []Query {
	var list []Query
	for _, f := range e.fields {
		list = append(list, f.query)
	}
	return list
}

// Content is what was answered, as the form wants it; false if an answer is none, or one is missing.
func (e Elicitation) Content(answers map[string][]string) (map[string]any, bool) {
	content := map[string]any{}
	for i := range e.fields {
		f := &e.fields[i]
		given := answers[f.query.ID]
		switch {
		case f.query.Form.Check(f.query, given) != "":
			return nil, false
		case len(given) == 0 && !f.query.Form.Optional:
			return nil, false
		case len(given) == 0:
			continue
		}
		var list []any
		for _, words := range given {
			v, ok := f.value(words)
			if !ok {
				return nil, false
			}
			list = append(list, v)
		}
		content[f.query.ID] = list[0]
		if f.query.Multiple {
			content[f.query.ID] = list
		}
	}
	return content, true
}

func (f *field) value(words string) (any, bool) {
	if len(f.values) > 0 {
		i := slices.IndexFunc(f.query.Options, func(o Option) bool { return o.Label == words })
		if i < 0 {
			return nil, false
		}
		return f.values[i], true
	}
	if f.query.Form.Number || f.query.Form.Integer {
		n, err := strconv.ParseFloat(words, 64)
		if err != nil {
			return nil, false
		}
		if f.query.Form.Integer {
			return int64(n), true
		}
		return n, true
	}
	return words, true
}
