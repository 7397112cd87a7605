package config

import (
	"fmt"
	"io"
	"log/slog"
)

// Mask stands wherever a secret would.
const Mask = "***"

// Secret is a text that no printing, logging or encoding shows: only Reveal does. It is kept behind a pointer, so that
// even a printer that goes through unexported fields, where it may not call methods, finds an address and not the text.
// The zero value is a secret that is not set.
type Secret struct{ text *string }

// NewSecret returns text as a secret; an empty text is one that is not set.
func NewSecret(text string) Secret {
	if text == "" {
		return Secret{}
	}
	return Secret{text: &text}
}

// Reveal returns the text itself; empty if it is not set.
func (s Secret) Reveal() string {
	if s.text == nil {
		return ""
	}
	return *s.text
}

// Set reports whether there is a text.
func (s Secret) Set() bool { return s.text != nil }

// String returns Mask, or nothing if the secret is not set.
func (s Secret) String() string {
	if s.text == nil {
		return ""
	}
	return Mask
}

// GoString returns the same as String.
func (s Secret) GoString() string { return s.String() }

// Format writes the same as String, whatever the verb: without it a verb that fits no text would print the field.
func (s Secret) Format(f fmt.State, _ rune) {
	// What a formatter cannot write is lost in any case: fmt.State has no place for an error.
	_, _ = io.WriteString(f, s.String())
}

// LogValue returns the same as String.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText returns the same as String, for JSON and others too.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
