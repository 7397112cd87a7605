package bot

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"drawbridge/bridge"
	"drawbridge/internal/store"
	"drawbridge/runner"
)

const textTryAgain = "Try again"

// doTryAgain hands the prompt of a failed turn over once more, as choice.Do.
const doTryAgain = "again" // turn, the prompt as JSON

// goOnButton is what is offered after a turn that was not completed. One that failed before the agent said or did anything
// has nothing to be continued: the agent may not even have heard the prompt.
func goOnButton(turn string, n turnNote, r runner.Result, s story) (option, error) {
	if r.Outcome != runner.Broken || len(s.steps) > s.notices || s.answer != "" || n.Attached || n.Prompt.Resume || n.Prompt.Work != nil {
		return option{Label: textContinue, choice: choice{Do: doContinue, Args: []string{turn}}}, nil
	}
	whole, err := json.Marshal(n.Prompt)
	if err != nil {
		return option{}, fmt.Errorf("bot: encode a prompt: %w", err)
	}
	return option{Label: textTryAgain, choice: choice{Do: doTryAgain, Args: []string{turn, string(whole)}}}, nil
}

// tryAgainTap is continueTap for a prompt that is handed over once more.
func (b *Bot) tryAgainTap(t *store.Txn, s author, turn, whole string) (notice, error) {
	var p bridge.Prompt
	if err := json.Unmarshal([]byte(whole), &p); err != nil {
		return notice{tapStale, false}, nil //nolint:nilerr // an older version's button
	}
	c, err := b.cfg.Chats.Get(t, s.chat.Key())
	if err != nil {
		return notice{}, err
	}
	p.ID, p.At, p.Waited = "a:"+strings.TrimPrefix(turn, "t."), c.Stopped.Add(time.Nanosecond), false
	p.By, p.Name = strconv.FormatInt(s.ID, 10), s.Name
	if s.tapped != 0 {
		if err := b.cfg.Outbox.Put(t, Outgoing{Chat: s.chat, Kind: KindButtons, MessageID: s.tapped}); err != nil {
			return notice{}, err
		}
	}
	return notice{text: textContinued}, b.enqueue(t, s.chat, s.tapped, p)
}
