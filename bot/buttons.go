package bot

import (
	"crypto/rand"
	"fmt"
	"strconv"
	"strings"
	"time"

	"drawbridge/formatting"
	"drawbridge/internal/store"
	"drawbridge/runner"
)

// meaning is what the buttons of one message stand for, under meaningKey: what goes through Telegram is only a random
// token and a number, which nobody can guess and which mean nothing elsewhere.
type meaning struct {
	V       int       `json:"v"`
	Chat    string    `json:"chat"` // where they count
	Choices []choice  `json:"choices"`
	Created time.Time `json:"created"`
}

// choice is one button.
type choice struct {
	// Do names what it does; the router knows the names.
	Do string `json:"do"`
	// Args are for it: an approval's id and an action, a mode, a page.
	Args []string `json:"args,omitempty"`
}

// option is a button before it has a token.
type option struct {
	Label string
	Style string
	choice
	URL, Copy string
	Disabled  bool
}

const meaningsIndex = "g:buttons" // the keys of meanings, by when they were made

func meaningKey(token string) string { return "g:buttons:" + token }

// maxButtons is how many buttons Telegram takes under a message. Whoever has more to offer makes several messages.
const maxButtons = 100

// style is a button's style, none where it is not one of Telegram's: a keyboard with a fault is refused as a whole, and a
// card without buttons can't be answered.
func style(s string) string {
	switch runner.Style(s) {
	case runner.StylePrimary, runner.StyleSuccess, runner.StyleDanger:
		return s
	}
	return ""
}

// buttons stores what rows of options mean in a chat and returns the buttons to send. Whatever the labels and styles are,
// Telegram takes them.
func (b *Bot) buttons(t *store.Txn, chat ChatRef, rows ...[]option) ([][]Button, error) {
	now, err := t.Now()
	if err != nil {
		return nil, err
	}
	token := rand.Text()
	m := meaning{V: Version, Chat: chat.Key(), Created: now}
	var out [][]Button
	count := 0
	for _, row := range rows {
		var line []Button
		for _, o := range row {
			if count++; count > maxButtons {
				continue
			}
			btn := Button{Text: o.Label, Style: style(o.Style), URL: o.URL, Copy: o.Copy, Disabled: o.Disabled}
			if formatting.Blank(o.Label) {
				btn.Text = textBlankLabel
			}
			if o.Do != "" && !o.Disabled {
				btn.Data = token + ":" + strconv.Itoa(len(m.Choices))
				m.Choices = append(m.Choices, o.choice)
			}
			line = append(line, btn)
		}
		if len(line) > 0 {
			out = append(out, line)
		}
	}
	if len(m.Choices) == 0 {
		return out, nil
	}
	t.Add(meaningsIndex, meaningKey(token), store.Micros(now))
	return out, store.Put(t, meaningKey(token), m)
}

// meant returns what the button with data stands for in a chat; false if it stands for nothing there.
func (b *Bot) meant(t *store.Txn, chat ChatRef, data string) (choice, bool, error) {
	token, number, ok := strings.Cut(data, ":")
	n, err := strconv.Atoi(number)
	if !ok || err != nil || len(data) > 64 || n < 0 {
		return choice{}, false, nil //nolint:nilerr // data that we did not make
	}
	m, ok, err := store.Peek[meaning](t, meaningKey(token))
	if err != nil {
		return choice{}, false, fmt.Errorf("bot: read the meaning of a button: %w", err)
	}
	if !ok || m.Chat != chat.Key() || n >= len(m.Choices) {
		return choice{}, false, nil
	}
	return m.Choices[n], true, nil
}

// spend makes the button with data, and those beside it, mean nothing any more.
func (b *Bot) spend(t *store.Txn, data string) {
	token, _, _ := strings.Cut(data, ":")
	t.Delete(meaningKey(token))
	t.Drop(meaningsIndex, meaningKey(token))
}
