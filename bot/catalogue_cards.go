package bot

import (
	"fmt"
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
	textFolder      = "Folder: "
	textMode        = "Mode: "
	textUntil       = "Answer by "
	textBackground  = "Asked in the background"
	textCan         = "This can: "
	textGrantsToo   = " also allow, without asking again: "
	textIn          = " in "
	textShowFirst   = "Show first"
	textTooLong     = "Too long to show here. Look at all of it before you allow it."
	textBeginning   = "It begins:"
	textEnding      = "It ends:"
	textWhole       = "All of it is in this file."
	textDocumentHas = "The file shows every byte; what cannot be seen is written out as ⟨U+…⟩."
	textMoved       = "This card stands again further down."
	textReplyAnswer = "Reply to this message to answer in your own words."
	textReplyReason = "Reply to this message to deny with a reason."
	textContinue    = "Continue"
	textStop        = "Stop"
	textWorking     = "Working…"
	textStopping    = "Stopping…"
	textNoAnswer    = "Done. There was nothing to say."
	textAnswerFile  = "The answer is long; all of it is in this file."
	textSteps       = "What happened"
	textTakeBack    = "Take back"
)

// cardTitle is the first line of a card.
func cardTitle(q runner.Question) string {
	switch q.Kind {
	case runner.KindCommand:
		return "Run this command?"
	case runner.KindFileChange:
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
	case runner.KindPlan:
		return "Carry out this plan?"
	case runner.KindQuestion:
		return "A question for you"
	}
	return "Allow this?"
}

// cardCategories names what an action can do, for people.
func cardCategories(cs []policy.Category) string {
	words := map[policy.Category]string{
		policy.Read: "read in the project", policy.Secret: "touch secrets", policy.ReadOutside: "read outside the project",
		policy.Write: "write in the project", policy.Protected: "change protected files or files outside the project",
		policy.System: "change the system", policy.Delete: "delete files", policy.Terminal: "do whatever a program on this machine can",
		policy.Fetch: "fetch a page", policy.Network: "use the network", policy.Credential: "use credentials",
		policy.Publish: "publish", policy.Payment: "spend money", policy.Unknown: "do something unknown",
	}
	var out []string
	for _, c := range cs {
		if w := words[c]; w != "" {
			out = append(out, w)
		} else if c != policy.Question {
			out = append(out, "do something unknown")
		}
	}
	return strings.Join(out, ", ")
}

// cardOutcome is the line that says how an approval stands.
func cardOutcome(s approvals.Stand) string {
	who := "somebody"
	if s.Decision != nil && s.Decision.Name != "" {
		who = formatting.Inline(s.Decision.Name, 64)
	}
	granted := ""
	if s.Decision != nil {
		switch s.Decision.Action {
		case runner.ActionAllowSession:
			granted = ", for this session"
		case runner.ActionAllowProject:
			granted = ", for this project"
		}
	}
	switch s.Word {
	case approvals.StandsOpen:
		return "Waiting for an answer"
	case approvals.StandsHandingOver:
		if s.Decision != nil && s.Decision.Decision != runner.Allowed {
			return "Denied by " + who + ", handing over"
		}
		return "Allowed by " + who + granted + ", handing over"
	case approvals.StandsAllowed:
		return "Allowed by " + who + granted
	case approvals.StandsDenied:
		if s.Decision == nil {
			return "Denied"
		}
		switch s.Decision.Source {
		case runner.SourceUser:
			return "Denied by " + who
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
		return "The agent took this back: nothing ran"
	case approvals.StandsExpired:
		return "Nobody answered in time: denied"
	case approvals.StandsChanged:
		return "The files have changed meanwhile; it is asked again below"
	case approvals.StandsGone:
		if s.Decision != nil && s.Decision.Decision == runner.Allowed && s.Decision.Source == runner.SourceUser {
			return "Allowed by " + who + ", but the agent was gone: nothing ran"
		}
		return "The agent is gone: nothing ran"
	}
	return "Closed"
}

// sizeOf names a size for people.
func sizeOf(text string) string {
	lines := strings.Count(text, "\n") + 1
	return plural(len([]rune(text)), "character") + ", " + plural(lines, "line")
}

func plural(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}

// turnEnd is the line that ends a live turn.
func turnEnd(r runner.Result, took time.Duration, steps int) string {
	tail := " " + elapsed(took)
	if steps > 0 {
		tail += " · " + plural(steps, "step")
	}
	switch r.Outcome {
	case runner.Completed:
		return "Done in" + tail
	case runner.Interrupted:
		if r.Reason == "" || r.Reason == "stopped" {
			return "Stopped after" + tail
		}
		return "Interrupted after" + tail + ": " + formatting.Inline(r.Reason, 500)
	case runner.Broken:
		return "Failed after" + tail + ": " + formatting.Inline(r.Reason, 1000)
	}
	return "Ended after" + tail
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
