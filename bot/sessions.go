package bot

import (
	"encoding/json"
	"errors"
	"fmt"

	"drawbridge/bridge"
	"drawbridge/formatting"
	"drawbridge/internal/store"
	"drawbridge/runner"
)

// What the buttons of sessions do, as choice.Do.
const (
	doSession = "session" // runtime, the session as JSON
	doAdopt   = "adopt"   // runtime, token
)

const (
	textSessionsLook  = "Looking for sessions…"
	textSessionsNone  = "There are no sessions in this project."
	textSessions      = "Sessions in this project, the latest first:"
	textSessionBusy   = " (in use elsewhere)"
	textSessionOurs   = " (this chat's)"
	textSessionUntold = "without a title"
	textSessionHere   = "Continue here"
	textSessionCopy   = "Copy the command for a terminal"
	textSessionInUse  = "Another program has this session open. Close it there before you continue here."
	textSessionTaken  = "Your next message continues that session."
	textSessionIsHere = "This chat is in that session: your next message continues it."
	textSessionYou    = "You: "
	textSessionAgent  = "Agent: "
)

// maxCopied is what a button can put on the clipboard (Bot API, CopyTextButton).
const maxCopied = 256

func (b *Bot) sessionsCommand(t *store.Txn, s author, _ string) error {
	err := b.cfg.Chats.Send(t, s.chat.Key(), bridge.ErrandSessions, "")
	if errors.Is(err, bridge.ErrNoProject) {
		return b.say(t, s.chat, s.message, textProjectNone)
	}
	if err != nil {
		return err
	}
	return b.send(t, s.chat, s.message, sessionsSlot(s.chat), formatting.Message{Text: textSessionsLook})
}

// sessionsSlot names the message that becomes the list.
func sessionsSlot(chat ChatRef) string { return "sessions:" + chat.Key() }

// listed puts what was found in the place of the message that says that it is looked for.
func (b *Bot) listed(t *store.Txn, chat ChatRef, m formatting.Message, rows ...[]option) error {
	buttons, err := b.buttons(t, chat, rows...)
	if err != nil {
		return err
	}
	return b.cfg.Outbox.Put(t, Outgoing{
		Chat: chat, Kind: KindEdit, Slot: sessionsSlot(chat), Upsert: true, Text: m.Text, Entities: m.Entities, Buttons: buttons,
	})
}

// errandDone shows what a host has found.
func (b *Bot) errandDone(t *store.Txn, chat ChatRef, r bridge.ErrandResult) error {
	switch {
	case r.Problem != "":
		return b.listed(t, chat, formatting.Message{Text: formatting.Inline(r.Problem, 500)})
	case r.Kind != bridge.ErrandSessions:
		return nil
	case len(r.Sessions) == 0:
		return b.listed(t, chat, formatting.Message{Text: textSessionsNone})
	}
	ours, err := b.cfg.Chats.Continues(t, chat.Key())
	if err != nil {
		return err
	}
	var m formatting.Builder
	m.Text(textSessions)
	var rows [][]option
	for i, s := range r.Sessions {
		whole, err := json.Marshal(s)
		if err != nil {
			return fmt.Errorf("bot: encode a session: %w", err)
		}
		m.Text(fmt.Sprintf("\n%d. ", i+1)).Bold(sessionTitle(s))
		if !s.Used.IsZero() {
			m.Text(", ").DateTime(s.Used.Unix(), "r", s.Used.UTC().Format("2 Jan 15:04 UTC"))
		}
		switch {
		case s.Token == ours:
			m.Text(textSessionOurs)
		case s.Busy:
			m.Text(textSessionBusy)
		}
		rows = append(rows, []option{{
			Label: fmt.Sprintf("%d. %s", i+1, buttonLabel(sessionTitle(s))), choice: choice{Do: doSession, Args: []string{r.Runtime, string(whole)}},
		}})
	}
	return b.listed(t, chat, m.Split()[0], rows...)
}

func sessionTitle(s runner.SessionInfo) string {
	if title := formatting.Inline(s.Title, 60); title != "" {
		return title
	}
	return textSessionUntold
}

// sessionTap shows the last messages of a session, so that a person knows what they continue.
func (b *Bot) sessionTap(t *store.Txn, chat ChatRef, runtime, whole string) (notice, error) {
	var s runner.SessionInfo
	if err := json.Unmarshal([]byte(whole), &s); err != nil {
		return notice{tapStale, false}, nil //nolint:nilerr // an older version's button
	}
	var m formatting.Builder
	m.Bold(sessionTitle(s))
	for _, line := range s.Last {
		who := textSessionYou
		if line.Agent {
			who = textSessionAgent
		}
		m.Text("\n").Quote(who + spoken(line.Text))
	}
	ours, err := b.cfg.Chats.Continues(t, chat.Key())
	if err != nil {
		return notice{}, err
	}
	var rows [][]option
	switch {
	case s.Token == ours:
		m.Text("\n" + textSessionIsHere)
	case s.Busy:
		m.Text("\n" + textSessionInUse)
		fallthrough
	default:
		rows = append(rows, []option{{Label: textSessionHere, choice: choice{Do: doAdopt, Args: []string{runtime, s.Token}}}})
	}
	switch {
	case s.Command == "":
	case len([]rune(s.Command)) <= maxCopied:
		rows = append(rows, []option{{Label: textSessionCopy, Copy: s.Command}})
	default:
		m.Text("\n").Code(formatting.Visible(s.Command))
	}
	return notice{text: tapDone}, b.send(t, chat, 0, "", m.Split()[0], rows...)
}

// spoken is the beginning of what somebody said in a session, without its Markdown.
func spoken(text string) string {
	parts := formatting.Render(text, formatting.Options{})
	if len(parts) == 0 {
		return ""
	}
	return formatting.Visible(firstPart(parts[0].Text, 400))
}

// adoptTap makes a session the chat's. A second tap changes nothing, and what was said since stays in it.
func (b *Bot) adoptTap(t *store.Txn, chat ChatRef, runtime, token string) (notice, error) {
	if ours, err := b.cfg.Chats.Continues(t, chat.Key()); err != nil || ours == token {
		return notice{text: textSessionIsHere}, err
	}
	if err := b.cfg.Chats.Adopt(t, chat.Key(), runtime, token); err != nil {
		return notice{}, err
	}
	return notice{text: textSessionTaken}, b.say(t, chat, 0, textSessionTaken)
}
