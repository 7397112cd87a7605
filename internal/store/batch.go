package store

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

const (
	// MaxName is the longest key, index, member or topic in bytes. Names may hold any bytes.
	MaxName = 8 << 10
	// MaxScore is the largest score, and -MaxScore the smallest: Redis keeps scores as doubles.
	MaxScore = 1 << 53
)

// ErrInvalid says that a Batch can't be stored by any engine: a programmer's error, found before anything was changed.
var ErrInvalid = errors.New("store: invalid batch")

// Check says whether every engine can store b, with ErrInvalid if not. Both engines call it first, so that neither takes
// what the other refuses.
func (b *Batch) Check() error {
	name := func(what, n string) error {
		if n == "" || len(n) > MaxName {
			return fmt.Errorf("%w: %s of %d bytes, allowed are 1 to %d", ErrInvalid, what, len(n), MaxName)
		}
		return nil
	}
	for k := range b.Guard {
		if err := name("key", k); err != nil {
			return err
		}
	}
	for k := range b.Put {
		if err := name("key", k); err != nil {
			return err
		}
	}
	for _, k := range b.Del {
		if err := name("key", k); err != nil {
			return err
		}
	}
	for _, i := range slices.Concat(b.Add, b.Drop) {
		if err := cmp.Or(name("index", i.Index), name("member", i.Member)); err != nil {
			return err
		}
		if i.Score > MaxScore || i.Score < -MaxScore {
			return fmt.Errorf("%w: score %d in index %q has more than 53 bits", ErrInvalid, i.Score, i.Index)
		}
	}
	for _, m := range b.Publish {
		if err := name("topic", m.Topic); err != nil {
			return err
		}
	}
	if len(b.Rev) > MaxName {
		return fmt.Errorf("%w: revision of %d bytes", ErrInvalid, len(b.Rev))
	}
	return nil
}

// Writes reports whether b changes anything, as opposed to only checking guards and publishing.
func (b *Batch) Writes() bool {
	return len(b.Put)+len(b.Del)+len(b.Add)+len(b.Drop) > 0
}
