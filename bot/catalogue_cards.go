package bot

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"drawbridge/approvals"
	"drawbridge/formatting"
	"drawbridge/policy"
	"drawbridge/runner"
)

// The catalogue of cards, live turns and answers: every text of theirs that a person sees. Commands have theirs in
// catalogue.go.

const (
	textFolder       = "Folder: "
	textMode         = "Mode: "
	textUntil        = "Answer by "
	textDecidedAt    = "Decided "
	textBackground   = "Asked in the background"
	textCan          = "It can "
	textGrantsAlso   = " also allow, without asking again, "
	textGrantAlso    = " also allows, without asking again, "
	textIn           = " in "
	textShowFirst    = "Show first"
	textTooLong      = "Too long to show here. Look at all of it before you allow it."
	textBeginning    = "It begins:"
	textEnding       = "It ends:"
	textWhole        = "All of it is in this file."
	textDocumentHas  = "The file shows every byte; what cannot be seen is written out as ⟨U+…⟩."
	textNotSaid      = "The agent did not say what it would do, so this can only be denied."
	textMoved        = "This card stands again further down."
	textReplyAnswer  = "Reply to this message to answer in your own words."
	textPicked       = "Done"
	textNotAnswer    = "Don't answer"
	textSecretAnswer = "(secret)"
	textContinue     = "Continue"
	textStop         = "Stop"
	textWorking      = "Working…"
	textNoAnswer     = "Done. There was nothing to say."
	textAnswerFile   = "The answer is long; all of it is in this file."
	textAnswerPart   = "The answer is long; this is part %d of %d of it."
	textTakeBack     = "Take back"
	textOmitted      = "Something that the agent did could not be shown here; the gateway's log says why."

	// What an agent proposes.
	textNow          = "Once, as soon as there is a place for it"
	textProject      = "Project: "
	textHeld         = ", held to "
	textProposerGone = "The task that proposes this is gone."
	textNotMade      = "Not made: "

	// An edited plan.
	textPlanEdited    = "Implement this version of the plan?"
	textPlanEditedFor = "It is implemented like the agent's own: under auto-accept-edits at most. Nothing runs before you tap."
	textPlanHidden    = "It holds characters that cannot be seen."
	textPlanWith      = "With your words: "
	textPlanThis      = "Implement this version"
	textPlanThisGoes  = "This version is implemented."
	textPlanAsEdited  = ", as edited"
	textPlanNotText   = "An edited plan has to be a text file: Markdown or plain text, in UTF-8. Nothing was run; the plan waits."
	textPlanTooLarge  = "An edited plan may have 256 KiB at most. Nothing was run; the plan waits."
	textPlanEmpty     = "There is nothing in this file. Nothing was run; the plan waits."
	textPlanNotHere   = "This plan can't be edited here; reply in words to have it changed."
	textPlanFixed     = "This plan can't be edited here; tap a button."
)

func questionNumber(n, of int) string { return fmt.Sprintf("Question %d of %d:", n, of) }

// cardTitle is the first line of a card.
func cardTitle(q runner.Question) string {
	switch q.Kind {
	case runner.KindCommand:
		return "Run this command?"
	case runner.KindFileChange:
		if len(q.Files) == 0 {
			return "Change files?"
		}
		if len(q.Files) == 1 {
			switch q.Files[0].Op {
			case runner.FileCreate:
				return "Create this file?"
			case runner.FileDelete:
				return "Delete this file?"
			case runner.FileMove:
				return "Move this file?"
			case runner.FileEdit:
			}
			return "Change this file?"
		}
		return fmt.Sprintf("Change these %d files?", len(q.Files))
	case runner.KindTool:
		return "Use this tool?"
	case runner.KindProposal:
		if q.Proposal != nil && q.Proposal.When != "" {
			return "Proposed schedule"
		}
		return "Proposed task"
	case runner.KindPlan:
		return "Carry out this plan?"
	case runner.KindQuestion:
		return "A question for you"
	}
	return "Allow this?"
}

// cardCategories names, for people, what an action can do beyond what the card shows plainly: empty if that is nothing.
func cardCategories(q runner.Question) string {
	words := map[policy.Category]string{
		policy.Read: "read in the project", policy.Secret: "touch secrets", policy.ReadOutside: "read outside the project",
		policy.Write: "write in the project", policy.Protected: "change protected files or files outside the project",
		policy.System: "change the system", policy.Delete: "delete files", policy.Terminal: "do whatever a program on this machine can",
		policy.Fetch: "fetch a page", policy.Network: "use the network", policy.Credential: "use credentials",
		policy.Publish: "publish", policy.Payment: "spend money", policy.Unknown: "do something unknown",
	}
	var out []string
	for _, c := range q.Categories {
		w := words[c]
		switch {
		case plainly(q, c):
			continue
		case w == "" && c != policy.Question:
			w = words[policy.Unknown]
		case w == "":
			continue
		}
		if !slices.Contains(out, w) {
			out = append(out, w)
		}
	}
	if n := len(out); n > 1 {
		return strings.Join(out[:n-1], ", ") + " and " + out[n-1]
	}
	return strings.Join(out, "")
}

// usual reports whether an action is one of those that every card has; what another one means, its label says.
func usual(action string) bool {
	switch action {
	case "", runner.ActionAllow, runner.ActionAllowSession, runner.ActionAllowProject, runner.ActionDeny:
		return true
	}
	return false
}

func actionLabel(q runner.Question, action string) string {
	for _, a := range q.Actions {
		if a.ID == action {
			return buttonLabel(a.Label)
		}
	}
	return buttonLabel(action)
}

// cardOutcome is the line that says how an approval stands.
func cardOutcome(q runner.Question, s approvals.Stand) string {
	who := "somebody"
	if s.Decision != nil && s.Decision.Name != "" {
		who = formatting.Inline(s.Decision.Name, 64)
	}
	allowed, denied := "Allowed by "+who, "Denied by "+who
	if d := s.Decision; d != nil {
		switch {
		case q.Kind == runner.KindQuestion && d.Action == runner.ActionDeny:
			denied = "Not answered: declined by " + who
		case !usual(d.Action):
			allowed = "“" + actionLabel(q, d.Action) + "” chosen by " + who
			denied = allowed
		case q.Kind == runner.KindQuestion:
			allowed = "Answered by " + who
		case d.Action == runner.ActionAllowSession:
			allowed += ", for this session"
		case d.Action == runner.ActionAllowProject:
			allowed += ", for this project"
		}
	}
	if words := proposalOutcome(q, s.Decision, who); words != "" {
		return words
	}
	if q.Terminal != "" {
		if words, ok := terminalOutcome(s, allowed); ok {
			return words
		}
	}
	switch s.Word {
	case approvals.StandsOpen:
		return "Waiting for an answer"
	case approvals.StandsHandingOver:
		return allowed + ", handing over"
	case approvals.StandsAllowed:
		return allowed
	case approvals.StandsDenied:
		if s.Decision == nil {
			return "Denied"
		}
		switch s.Decision.Source {
		case runner.SourceUser:
			return denied
		case runner.SourceRule, runner.SourceGrant:
			return "Refused by the chat's mode"
		case runner.SourceReviewer:
			return "Refused by the reviewer"
		case runner.SourceRuntime:
			return "Refused by the agent's own rules"
		case runner.SourceTimeout:
			return "Nobody answered in time: denied"
		case runner.SourceShutdown:
			return "The agent was gone: nothing ran"
		}
		return "Denied"
	case approvals.StandsWithdrawn:
		return "Not asked any more: nothing ran"
	case approvals.StandsExpired:
		return "Nobody answered in time: denied"
	case approvals.StandsChanged:
		return "The files have changed meanwhile; it is asked again below"
	case approvals.StandsGone:
		if s.Decision != nil && s.Decision.Decision == runner.Allowed && s.Decision.Source == runner.SourceUser {
			return allowed + ", but the agent was gone: nothing ran"
		}
		return "The agent is gone: nothing ran"
	}
	return "Closed"
}

// sizeOf names a size for people.
func sizeOf(text string) string {
	lines := strings.Count(strings.TrimSuffix(text, "\n"), "\n") + 1
	return plural(len([]rune(text)), "character") + ", " + plural(lines, "line")
}

func plural(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}

// stopped reports whether a turn ended because somebody in the chat stopped it.
func stopped(r runner.Result) bool {
	return r.Outcome == runner.Interrupted && (r.Reason == "" || r.Reason == "stopped")
}

// unasked reports whether a turn ended in a way that nobody in the chat expects.
func unasked(r runner.Result) bool { return r.Outcome != runner.Completed && !stopped(r) }

// turnEnd is the line that ends a live turn.
func turnEnd(r runner.Result, took time.Duration, steps int) string {
	tail := " " + elapsed(max(took, time.Second)) // “in 0 s” says nothing
	if steps > 0 {
		tail += " · " + plural(steps, "step")
	}
	switch r.Outcome {
	case runner.Completed:
		return "Done in" + tail
	case runner.Interrupted:
		if stopped(r) {
			return "Stopped after" + tail
		}
		return "Interrupted after" + tail + ": " + formatting.Inline(r.Reason, 500)
	case runner.Broken:
		return "Failed after" + tail + ": " + formatting.Inline(r.Reason, 1000)
	}
	return "Ended after" + tail
}

// turnWords is turnEnd where nothing more is known.
func turnWords(r runner.Result) string {
	switch r.Outcome {
	case runner.Completed:
		return "Done"
	case runner.Interrupted:
		return "Interrupted"
	case runner.Broken:
	}
	return "Failed"
}

// workingWords is the head of a live turn, of which so many questions wait.
func workingWords(asks int) string {
	switch asks {
	case 0:
		return textWorking
	case 1:
		return "Waiting for an answer"
	}
	return "Waiting for " + plural(asks, "answer")
}

// elapsed is a duration for people: "8 s", "3 min 5 s", "2 h 10 min".
func elapsed(d time.Duration) string {
	d = max(d, 0).Round(time.Second)
	h, m, s := int(d.Hours()), int(d.Minutes())%60, int(d.Seconds())%60
	switch {
	case h > 0 && m > 0:
		return fmt.Sprintf("%d h %d min", h, m)
	case h > 0:
		return fmt.Sprintf("%d h", h)
	case m > 0 && s > 0:
		return fmt.Sprintf("%d min %d s", m, s)
	case m > 0:
		return fmt.Sprintf("%d min", m)
	}
	return fmt.Sprintf("%d s", s)
}

// itemLine is one step of a turn.
func itemLine(it runner.Item) string {
	line := it.Title
	if it.Kind == runner.ItemCommand && it.Command != "" {
		line = it.Command
	}
	line = formatting.Inline(line, 160)
	switch it.Status {
	case runner.ItemFailed:
		if it.Exit != nil {
			return fmt.Sprintf("%s (failed, exit %d)", line, *it.Exit)
		}
		return line + " (failed)"
	case runner.ItemRefused:
		return line + " (not allowed)"
	case runner.ItemRunning, runner.ItemDone:
	}
	return line
}
