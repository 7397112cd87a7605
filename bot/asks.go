package bot

import (
	"strconv"
	"strings"
	"time"

	"drawbridge/formatting"
	"drawbridge/internal/store"
)

// doAsks changes where tasks of a chat ask and for how long, by what /asks would be given.
const doAsks = "asks"

// Bounds of how long a task waits for an answer.
const (
	minPatience = time.Minute
	maxPatience = 24 * time.Hour
)

// asksCommand shows or changes whom the tasks of this chat ask, and how long they wait for an answer.
func (b *Bot) asksCommand(t *store.Txn, s author, args string) error {
	set, err := b.cfg.Tasks.Settings(t, s.chat.Key())
	if err != nil {
		return err
	}
	switch word := strings.ToLower(strings.TrimSpace(args)); word {
	case "":
	case "here":
		set.Card = ""
	case "me":
		if set.Card = (ChatRef{ID: s.ID}).Key(); set.Card == s.chat.Key() {
			set.Card = ""
		}
	case "usual":
		set.Patience = 0
	default:
		d, err := time.ParseDuration(word)
		if err != nil || d < minPatience || d > maxPatience {
			return b.say(t, s.chat, s.message, textAsksHelp)
		}
		set.Patience = d
	}
	if args != "" {
		if err := b.cfg.Tasks.SetSettings(t, s.chat.Key(), set); err != nil {
			return err
		}
	}
	var m formatting.Builder
	m.Text(textAsksHere)
	if set.Card != "" {
		who, err := b.asked(t, set.Card)
		if err != nil {
			return err
		}
		m = formatting.Builder{}
		m.Text(textAsksPrivate + who)
	}
	if set.Patience > 0 {
		m.Text(textAsksWait + elapsed(set.Patience) + textAsksThen)
	} else {
		m.Text(textAsksUsual)
	}
	if set.Card != "" {
		m.Text(textAsksStart)
	}
	one := func(now bool, label, word string) option {
		if now {
			label = "• " + label
		}
		return option{Label: label, choice: choice{Do: doAsks, Args: []string{word}}}
	}
	rows := [][]option{{one(set.Patience == 0, "Usual time", "usual"), one(set.Patience == time.Hour, "1 hour", "1h"), one(set.Patience == 8*time.Hour, "8 hours", "8h")}}
	if !s.chat.Private() {
		rows = append([][]option{{one(set.Card == "", "Ask here", "here"), one(set.Card != "", "Ask me in private", "me")}}, rows...)
	}
	return b.respond(t, s, m.Message(), rows...)
}

// asked names the person in whose private chat tasks ask. Who lost their role can't answer there, and that is said.
func (b *Bot) asked(t *store.Txn, card string) (string, error) {
	id, err := strconv.ParseInt(card, 10, 64)
	if err != nil {
		return textAsksSomebody, nil //nolint:nilerr // a chat of another kind
	}
	role, err := b.cfg.People.Role(t, id)
	if err != nil || !role.CanTap() {
		return textAsksSomebody + textAsksNobody, err
	}
	return textAsksSomebody, nil
}
