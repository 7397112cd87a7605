package config

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"text/tabwriter"
	"unicode"
)

// fromDefault is the Source of what nobody chose.
const fromDefault = "default"

// Value is one thing that is in force, ready to be shown.
type Value struct {
	// Key is the name in the file; within a table "project NAME KEY", "runtime NAME KEY" and the like.
	Key string
	// Text is the value with secrets masked; empty if it is not set.
	Text string
	// Source is "default", the name of the environment variable, or the path of the file.
	Source string
}

// Values returns everything that is in force, in a fixed order. No secret is in it.
func (c Config) Values() []Value { return slices.Clone(c.values) }

// Explain writes everything that is in force and where each value came from, a line each, as `drawbridge config` shows
// it. No secret is in it. The form is for people and may change.
func (c Config) Explain(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, v := range c.values {
		text := v.Text
		switch {
		case text == "":
			text = "not set"
		case !plain(text):
			text = strconv.Quote(text)
		}
		if _, err := fmt.Fprintf(t, "%s\t%s\t%s\n", oneLine(v.Key), text, oneLine(v.Source)); err != nil {
			return fmt.Errorf("config: explain: %w", err)
		}
	}
	if err := t.Flush(); err != nil {
		return fmt.Errorf("config: explain: %w", err)
	}
	return nil
}

// plain reports whether text looks on a terminal like what it is.
func plain(text string) bool {
	for _, r := range text {
		if !unicode.IsPrint(r) {
			return false
		}
	}
	return true
}
