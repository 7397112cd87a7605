package bot

import (
	"strings"

	"drawbridge/approvals"
	"drawbridge/internal/store"
	"drawbridge/runner"
)

const (
	textDeskHere  = "What agents in your terminals ask comes here now; whoever answers first, here or in the terminal, decides. Everyone here who may tap can answer. To connect them, run “drawbridge hook install” on their machine; “/desk off” ends it."
	textDeskOff   = "What agents in your terminals ask is asked in the terminals alone now."
	textDeskNone  = "No host is known yet. Start one, then send this again."
	textDeskUsage = "“/desk” has what agents in your terminals ask come here, “/desk off” ends it."

	textTerminal        = "In the terminal: "
	textTerminalAnswers = "Answered or closed in the terminal"
	textTerminalAsks    = "Nobody answered here in time: it is left to the terminal"
	textTerminalAlone   = "Drawbridge was stopped meanwhile: it is left to the terminal"
	textTerminalFirst   = ", but too late: it was left to the terminal before"
)

// deskCommand chooses the chat for what agents ask that people run in terminals of their own.
func (b *Bot) deskCommand(t *store.Txn, s author, args string) error {
	chat, text := s.chat.Key(), textDeskHere
	switch {
	case strings.EqualFold(args, "off"):
		chat, text = "", textDeskOff
	case args != "" && !strings.EqualFold(args, "here"):
		return b.say(t, s.chat, s.message, textDeskUsage)
	}
	hosts, err := b.cfg.Chats.SetDesk(t, chat)
	if err != nil {
		return err
	}
	if hosts == 0 {
		text = textDeskNone
	}
	return b.say(t, s.chat, s.message, text)
}

// leaveDesk ends the desk in a group that is not enabled any more.
func (b *Bot) leaveDesk(t *store.Txn, group int64) error {
	return b.cfg.Chats.MoveDesk(t, func(chat string) bool {
		ref, err := ParseChat(chat)
		return err == nil && ref.ID == group
	}, "")
}

// terminalOutcome is the line that says how an approval stands that can be answered in a terminal as well; false where it
// stands as any other. allowed is that line for one that was allowed.
func terminalOutcome(s approvals.Stand, allowed string) (string, bool) {
	late := s.Decision != nil && s.Decision.Source == runner.SourceUser && s.Decision.Decision == runner.Allowed
	switch {
	case s.Word == approvals.StandsWithdrawn:
		return textTerminalAnswers, true
	case s.Word == approvals.StandsExpired, s.Word == approvals.StandsDenied && s.Decision != nil && s.Decision.Source == runner.SourceTimeout:
		return textTerminalAsks, true
	case s.Word == approvals.StandsGone && late:
		return allowed + textTerminalFirst, true
	case s.Word == approvals.StandsGone, s.Word == approvals.StandsDenied && s.Decision != nil && s.Decision.Source == runner.SourceShutdown:
		return textTerminalAlone, true
	}
	return "", false
}

// terminalRefusal is refusal where a terminal asks as well.
func terminalRefusal(r approvals.Refusal) string {
	switch r {
	case approvals.RefusedWithdrawn:
		return textTerminalAnswers + "."
	case approvals.RefusedOverdue:
		return "Too late: it is left to the terminal."
	case approvals.RefusedGone:
		return textTerminalAlone + "."
	case approvals.RefusedUnknown, approvals.RefusedForbidden, approvals.RefusedOwners, approvals.RefusedChat, approvals.RefusedAction,
		approvals.RefusedAnswers, approvals.RefusedChanged, approvals.RefusedHumanOnly, approvals.RefusedNotAllowed:
	}
	return refusal(r)
}
