package bot

import (
	"fmt"

	"drawbridge/approvals"
	"drawbridge/formatting"
	"drawbridge/runner"
)

// The catalogue of commands and replies: every text of theirs that a person sees. Cards and turns have theirs in
// catalogue_cards.go.

const (
	textAside     = "A message could not be handled and was not run. Please send it again."
	textStranger  = "This bot works only for the people on its list. Ask its owner to add you; your id is "
	textUnowned   = "Nobody owns this bot yet. If it is yours, send the /start line that the program printed when it started."
	textWrongCode = "That is not the code. Send the /start line as the program printed it."
	textLastCode  = "That is not the code either, and it does not count any more. Start the program again: it prints another."
	textPaired    = "You are the owner of this bot now. Send /help to see what it does, or just tell it what to do."
	textViewer    = "You can read here, but not give work or decide. An owner can change that."
	textWelcome   = "Tell me what to do, and I pass it to the agent. When it wants to do something that this chat's mode does not allow, I ask you here."
	textWatcher   = "You can read here what the agent does. Giving it work and deciding is for others; an owner can change that."
	groupNow      = "While it works"
	groupWith     = "What it works with"
	groupLater    = "While you are away"
	groupHere     = "This chat"

	textHelpDeny    = "To refuse with a reason, reply to a question with “deny” and the reason."
	textGroupOff    = "This group is not enabled. An owner can enable it with /enable; then everyone here reads what the agent does."
	textGroupOn     = "This group is enabled. The people on the list can give work here; everyone here reads it."
	textGroupGone   = "This group is not enabled any more."
	textOwnersOnly  = "Only an owner can do this."
	textUnknownWord = "I don't know this command. /help lists those that I know."
	textNotHere     = "This is for groups."

	textModeNow       = "Mode of this chat: "
	textModeAsk       = "Choose another:"
	textModeSame      = "This chat is in this mode already: "
	textModeSet       = "The mode is now "
	textModeNext      = "This counts from the next question on, also in a turn that runs."
	textModeWaiting   = "Still waiting for your answer: "
	textModeWrong     = "There is no such mode. The modes are: "
	textModeUnchanged = "Nothing was changed."
	textFullTitle     = "full-access: please confirm"
	textFullYes       = "Use full-access"
	textFullNo        = "Keep "
	textFullList      = "These wait now and would be allowed with it:"
	textFullKept      = "The mode was not changed."
	textLooser        = "Not held to the mode by "
	textStricter      = "Stricter than the mode with "
	textEffective     = "Effective with this runtime: "

	textNewDone     = "A new session begins with your next message. Mode and project stay."
	textNothingRuns = "Nothing runs here."
	textSessionEnds = "The agent's process is ended; your next message resumes its session."

	textProjectNow     = "Project: "
	textProjectNone    = "No project is chosen."
	textProjectWrong   = "There is no such project."
	textProjectList    = "Choose one:"
	textProjectMore    = "; write /project and the name."
	textProjectNoneAt  = "No host offers a project. Add one to the configuration, and check that its folder exists and that the host runs."
	textProjectSet     = "This chat now works in "
	textNoRuntime      = "No runtime is chosen."
	textNotRun         = "Your message was not run; send it again afterwards."
	textFreshSession   = "A new session begins with your next message."
	textQueueFull      = "Too many prompts wait here already. This one was not taken."
	textQueueEmpty     = "Nothing waits."
	textQueuedNext     = "Queued: it is next."
	textQueuedBehind   = "Queued: %d turns come before it."
	textQueuedFolder   = "Queued: another chat's turn works in this folder."
	textWaitsForFolder = "Another chat's turn works in this folder."
	textTakenBack      = "Taken back; it will not be run."
	textTooLate        = "It has begun already. /stop ends it."
	textStoppedFirst   = "Not run: it was stopped before it began."
	textFileLost       = "A file could not be fetched from Telegram, so nothing was run. Please send it again."
	textFileTooLarge   = "The file is too large: 20 MB is the most a bot may fetch. Nothing was run."
	textEmpty          = "There is nothing in this message that I could pass on."
	textGrantsNone     = "Nothing is granted in this chat; every question is asked."
	textGrants         = "Granted in this chat:"
	textGrantGone      = "Removed. It is asked about again."
	textGrantNot       = "It was removed before."
	textGrantsAgain    = "/grants shows what is left."
	textPendingNone    = "Nothing waits for an answer."
	textPendingMore    = " open. Answer these first, then send /pending again."
	textContinued      = "Continuing."
	textContinuePrompt = "Continue where you were interrupted. What you had begun may be half done; look before you repeat anything."

	textOutage     = "The store was away for "
	textOutageOver = ". What you sent is kept. A question that the agent had in that time may have been refused."

	textReplyHelp      = "A reply does not decide this: tap a button. To deny it with a reason, reply with “deny” and the reason."
	textDenied         = "Denied, and the agent is told why."
	textAnswered       = "Answered."
	textAnsweredBefore = "This was answered already."
	textBlankLabel     = "(no label)"

	tapStale       = "This button has no meaning here any more."
	tapNobody      = "You are not on the list of people who may do this."
	tapViewer      = "You can read here, but not decide."
	tapGroupOff    = "This group is not enabled."
	tapAllowed     = "Allowed"
	tapDenied      = "Denied"
	tapNotAnswered = "Not answered"
	tapPicked      = "Tap “Done” when you have chosen."
	tapNext        = "One more question."
	tapDone        = "Done"
	tapConfirm     = "Please confirm it."
	tapShown       = "Look at the file, then decide."
	tapShownTwice  = "It was shown already; see below."
)

// allowedWords says how many of those that were listed were allowed along with full-access.
func allowedWords(allowed, listed int) string {
	if allowed == listed {
		return plural(allowed, "question") + " allowed with it."
	}
	return fmt.Sprintf("%d of %d questions allowed with it; the others were over before.", allowed, listed)
}

// reviewWords says what a reviewer did that is told in the chat, nothing if it is not: what it allowed is there to see, and
// what is asked instead has a card that says why.
func reviewWords(r runner.Review) string {
	who := "the reviewer"
	if r.Source != runner.ReviewerOurs {
		who = formatting.Inline(r.Source, 60) + "'s reviewer"
	}
	var s string
	switch {
	case r.Asked:
		return ""
	case r.State == runner.ReviewDenied:
		s = "Refused by " + who
	case r.State == runner.ReviewUnavailable || r.State == runner.ReviewTimeout:
		s = "No verdict of " + who
		if r.Source == runner.ReviewerOurs {
			s += ", so it was refused"
		}
	default:
		return ""
	}
	if r.Title != "" {
		s += ": " + formatting.Inline(r.Title, 120)
	}
	if r.Reason != "" {
		s += " (" + formatting.Inline(r.Reason, 300) + ")"
	}
	return s
}

// reviewBefore is the line of a card that says why a person is asked in auto.
func reviewBefore(r *runner.Review) string {
	switch {
	case r == nil:
		return ""
	case r.State == runner.ReviewDenied && r.Reason == "":
		return "The reviewer refused this."
	case r.State == runner.ReviewDenied:
		return "The reviewer refused this: " + formatting.Inline(r.Reason, 300)
	}
	return "No reviewer's verdict: " + formatting.Inline(r.Reason, 300)
}

// refusal says to whoever tapped why nothing was decided.
func refusal(r approvals.Refusal) string {
	switch r {
	case approvals.RefusedUnknown:
		return "This approval is not known any more."
	case approvals.RefusedForbidden:
		return tapNobody
	case approvals.RefusedOwners:
		return "Only an owner may grant this for the project."
	case approvals.RefusedChat:
		return "This belongs to another chat."
	case approvals.RefusedAction:
		return "This approval has no such button."
	case approvals.RefusedAnswers:
		return "This is not one of the answers that were offered."
	case approvals.RefusedGone:
		return "The agent is gone. Nothing ran."
	case approvals.RefusedOverdue:
		return "Too late: the time to answer is over, and it was denied."
	case approvals.RefusedWithdrawn:
		return "This is not asked any more. Nothing ran."
	case approvals.RefusedChanged:
		return "The files have changed meanwhile; it is asked again below."
	case approvals.RefusedHumanOnly, approvals.RefusedNotAllowed:
		return "This has to be decided by itself."
	}
	return "This can't be decided any more."
}
