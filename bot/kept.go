package bot

import (
	"strconv"
	"time"

	"drawbridge/approvals"
	"drawbridge/bridge"
	"drawbridge/internal/store"
	"drawbridge/runner"
)

const (
	textKept     = "Drawbridge was stopped on that machine. This is kept: answer now or later, and the agent goes on when it is back."
	textKeptWait = "; the agent goes on when its host is back"
	textResume   = "Resume"
)

// goOnKept starts the turn that goes on with a kept call, in the commit that decides about it.
func (b *Bot) goOnKept(t *store.Txn, r approvals.Record, d approvals.Decision) error {
	if !r.Kept || d.Source != runner.SourceUser || !d.Gone.IsZero() {
		return nil
	}
	chat, err := ParseChat(r.Chat)
	if err != nil {
		return err
	}
	c, err := b.cfg.Chats.Get(t, r.Chat)
	if err != nil {
		return err
	}
	p := bridge.KeptPrompt(r)
	p.By, p.Name, p.At = strconv.FormatInt(d.By, 10), d.Name, c.Stopped.Add(time.Nanosecond)
	return b.enqueue(t, chat, 0, p)
}

// refreshCard says anew how an open approval waits, where its card stands. It reports false if it has no card yet.
func (b *Bot) refreshCard(t *store.Txn, r approvals.Record) (bool, error) {
	c, known, err := store.Get[card](t, cardKey(r.ID))
	if err != nil || !known {
		return false, err
	}
	chat, err := ParseChat(r.Chat)
	if err != nil {
		return false, err
	}
	return true, b.putCard(t, chat, r, c, Outgoing{Kind: KindEdit})
}

// resumeRow is the button of a card whose agent has gone: its turn can be continued.
func (b *Bot) resumeRow(t *store.Txn, chat ChatRef, r approvals.Record, s approvals.Stand) ([][]Button, error) {
	if s.Word != approvals.StandsGone || r.Turn == "" || r.Background || r.Question.Terminal != "" {
		return nil, nil
	}
	return b.buttons(t, chat, []option{{Label: textResume, choice: choice{Do: doContinue, Args: []string{r.Turn}}}})
}
