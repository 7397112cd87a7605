package bot

import (
	"strconv"
	"strings"

	"drawbridge/runner"
)

const (
	textSkip     = "Skip"
	textOptional = "This may be left out."
	textNumber   = "a number"
	textInteger  = "a whole number"
	textEmail    = "an email address"
	textURI      = "a whole address, such as https://example.com"
	textDate     = "a date, such as 2026-12-31"
	textDateTime = "a date and a time, such as 2026-12-31T18:30:00Z"
	textWords    = "text"
	textAgain    = " Reply to the question again."
)

// formHint says what an answer to a field of a form has to be; nothing where anything is taken.
func formHint(q runner.Query) string {
	if q.Form == nil {
		return ""
	}
	var parts []string
	switch {
	case q.Multiple:
		if n := bounds(q.Form.Min, q.Form.Max); n != "" {
			parts = append(parts, "Choose "+n+".")
		}
	case len(q.Options) > 0:
	default:
		if what := formWords(*q.Form); what != textWords {
			parts = append(parts, "The answer is "+what+".")
		}
	}
	if q.Form.Optional {
		parts = append(parts, textOptional)
	}
	return strings.Join(parts, " ")
}

// formWords are what a field takes.
func formWords(f runner.Form) string {
	what, limits := textWords, bounds(f.Min, f.Max)
	switch {
	case f.Integer:
		what = textInteger
	case f.Number:
		what = textNumber
	default:
		switch f.Format {
		case runner.FormatEmail:
			what = textEmail
		case runner.FormatURI:
			what = textURI
		case runner.FormatDate:
			what = textDate
		case runner.FormatDateTime:
			what = textDateTime
		}
		if limits = lengths(f); limits != "" {
			limits = strings.TrimPrefix(limits, "from ") + " characters"
		}
	}
	switch {
	case limits == "":
		return what
	case strings.HasPrefix(limits, "from "):
		return what + " " + limits
	}
	return what + " of " + limits
}

// bounds are limits in words.
func bounds(least, most *float64) string {
	number := func(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }
	switch {
	case least != nil && most != nil && *least == *most:
		return "exactly " + number(*least)
	case least != nil && most != nil:
		return "from " + number(*least) + " to " + number(*most)
	case least != nil:
		return "at least " + number(*least)
	case most != nil:
		return "at most " + number(*most)
	}
	return ""
}

func lengths(f runner.Form) string {
	least, most := float64(f.MinLength), float64(f.MaxLength)
	switch {
	case f.MinLength > 0 && f.MaxLength > 0:
		return bounds(&least, &most)
	case f.MinLength > 0:
		return bounds(&least, nil)
	case f.MaxLength > 0:
		return bounds(nil, &most)
	}
	return ""
}

// faultWords say what is wrong with an answer to a field of a form.
func faultWords(q runner.Query, f runner.Fault) string {
	switch f {
	case runner.FaultChoices:
		return "Choose " + bounds(q.Form.Min, q.Form.Max) + "."
	case runner.FaultNumber, runner.FaultInteger, runner.FaultRange, runner.FaultLength, runner.FaultFormat:
	}
	return "This has to be " + formWords(*q.Form) + "." + textAgain
}
