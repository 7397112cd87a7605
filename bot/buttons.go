package bot

import (
	"crypto/rand"
	"fmt"
	"strconv"
	"strings"
	"time"

	"drawbridge/internal/store"
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

// buttons stores what rows of options mean in a chat and returns the buttons to send.
func (b *Bot) buttons(t *store.Txn, chat ChatRef, rows ...[]option) ([][]Button, error) {
	now, err := t.Now()
	if err != nil {
		return nil, err
	}
	token := rand.Text()
	m := meaning{V: Version, Chat: chat.Key(), Created: now}
	var out [][]Button
	for _, row := range rows {
		var line []Button
		for _, o := range row {
			btn := Button{Text: o.Label, Style: o.Style, URL: o.URL, Copy: o.Copy, Disabled: o.Disabled}
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
