package bot

import (
	"errors"

	"drawbridge/bridge/task"
	"drawbridge/runner"
)

// What people read about work that is done without them.
const (
	textCronHelp = "Say when and what, for example:\n/cron add \"0 9 * * 1-5\" check the build\n/every 2h until 22:00 look for new issues\n" +
		"/at 18:30 run the tests\n/in 20m look at the deployment"
	textAtHelp    = "Say when and what, for example: /at 18:30 run the tests, or /at 2027-01-15 09:00 renew the certificate"
	textInHelp    = "Say how long from now and what, for example: /in 20m look at the deployment"
	textEveryHelp = "Say how often and what, for example: /every 2h until 22:00 look for new issues"
	textEditHelp  = "Say which, and what or when, for example:\n/cron edit a1b2c3 check the build and the tests\n" +
		"/cron edit a1b2c3 \"0 8 * * 1-5\"\n/cron edit a1b2c3 --at 18:30 run the tests\n/cron edit a1b2c3 --every 2h until 22:00"
	textFlagsHelp  = "I don't know this option: "
	textFlagsKnown = ".\nThere are:\n--here – in this chat's own session\n--project and a name, --runtime and a name – elsewhere\n" +
		"--mode and a mode – stricter than this chat's\n--budget and a number – of tokens\n--review, --auto – whether it waits for your approval\n" +
		"--follow, --no-follow – whether the agent is asked what should follow\n--skip – a missed time is not made up for"

	textScheduled     = "Scheduled: "
	textScheduleNone  = "Nothing is scheduled here.\n\n" + textCronHelp
	textScheduleAll   = "Scheduled here:"
	textScheduleGone  = "This schedule is not there any more."
	textScheduleEnded = "It has no further time."
	textScheduleAsks  = ". When it needs more, it asks."
	textNext          = "Next: "
	textThen          = "It would have meant: "
	textRunNow        = "Run now"
	textRunsAlready   = "It runs already."
	textRunStarted    = "It begins."
	textEdit          = "Copy “/cron edit”"
	textPause         = "Pause"
	textGoOn          = "Resume"
	textPaused        = "Paused"
	textDelete        = "Delete"
	textDeleted       = "Deleted."
	textBack          = "Back"
	textMissedTimes   = "Not run: "

	textTasksNone   = "There are no tasks here. /task new and a title begins one, /cron plans one."
	textTasksNoneOf = "No task is "
	textTaskHelp    = "Send /task and its id, or /task new, a title, and one step a line below it."
	textTaskNoSteps = "Write the steps below the title, one a line: the prompts, in order."
	textTaskGone    = "There is no such task here. /tasks lists them."
	textTaskAdded   = "The task begins as soon as there is a place for it: "
	textTaskSteps   = "Steps:"
	textTaskLog     = "What happened:"
	textAutopilot   = "autopilot"
	textApprove     = "Approve"
	textApproved    = "Approved."
	textRejectTask  = "Reject"
	textRejectHow   = "Reply to the report with what should be different. It goes back to the agent."
	textRejected    = "It goes back to the agent with your words."
	textRerun       = "Rerun"
	textRerunAsk    = "Run again and ask me"
	textByHand      = "Done by hand"
	textSkipStep    = "Leave this step out"
	textSkipped     = "Left out."
	textForAPerson  = "What was not allowed is a task for a person. What is chosen there or here is chosen for both."
	textTaskNotRun  = "A task was not run: "
	textNotPlanned  = "A schedule was paused: "
	textCancelTask  = "Cancel"
	textCancelled   = "Cancelled."
	textTooLateTask = "It does not stand there any more."
	textDetails     = "Details"
	textRaise       = "Raise to "
	textRaiseSure   = "This task would then do, without asking, what this mode allows: "
	textRaised      = "The task is now held to "
	textRaiseOwner  = "Only an owner can raise the mode of a task."
	textMakeAuto    = "Switch to autopilot"
	textMakeReview  = "Switch to review"

	textZoneNow    = "The time zone of this chat is "
	textZoneSet    = ". Schedules that are there keep theirs."
	textZoneWrong  = "I don't know this time zone. Names look like Europe/Vienna or UTC."
	textQuietNow   = "Quiet hours: "
	textQuietNone  = "There are no quiet hours. Set them with /quiet 22:00-07:00; what tasks ask in them arrives without a sound."
	textQuietOff   = "Quiet hours are over."
	textQuietWrong = "Write them as /quiet 22:00-07:00, or /quiet off."
	textExecution  = "Finished tasks of "
	textExecReview = "wait for your approval (review)."
	textExecAuto   = "are done without it (auto)."
	textExecHow    = "\nA task's own choice is stronger."
	textExecHelp   = "Write /execution review, /execution auto, /execution follow-ups on or /execution follow-ups off."

	textAsksHere     = "Tasks of this chat ask here"
	textAsksPrivate  = "Tasks of this chat ask "
	textAsksSomebody = "an owner in private"
	textAsksStart    = " I can write there once they have started me in private."
	textAsksNobody   = " (who may not answer any more: choose again)"
	textAsksWait     = " and wait "
	textAsksUsual    = " and wait for an answer as long as anything else that is asked. What nobody answers is denied."
	textAsksThen     = " for an answer. What nobody answers is denied."
	textAsksHelp     = "Write /asks here, /asks me (in private), /asks usual, or how long they wait, from 1m to 24h, for example /asks 2h."

	textFollowUpsOn   = " Then the agent is asked what should follow, and that becomes tasks."
	textFollowUpsOff  = " Nothing follows by itself."
	textFollowUpsOf   = "What follows from "
	textFollowUpsForm = " is not known: the agent's answer did not have the form. Nothing was made."
	textFollowUpsNot  = " was not looked for. "
	textFollowUpsNone = " could not be made. "
	textFollowUpsGone = "a task that is not kept any more"
	textAskedForMore  = ", waits for your approval because it asked for more"
	textOriginFollow  = "follows another task"
	textOriginEvent   = "came from outside"
	textOriginPending = "for a person"
	textOriginAgent   = "proposed by an agent"
	textHook          = "The hook "
	textHookFailed    = " did not end well"
	textHookStopped   = ". It was ended with the gateway."
	textTooMany       = "There are too many already. Delete some first."
	textNoSuchProject = "There is no project of that name. /project lists them."
	textNothingToDo   = "There is nothing to do in that: write what you want done behind it."
	textTooMuch       = "That is too long."
	textNotLooser     = "A task can't be held to a looser mode than this chat is in."
)

// specFault is why a time is refused.
func specFault(err error) string {
	switch {
	case errors.Is(err, task.ErrTooOften):
		return "That is more than once a minute, which is too often."
	case errors.Is(err, task.ErrPast):
		return "That time has passed."
	case errors.Is(err, task.ErrNever):
		return "That never comes."
	}
	return "I can't read that time."
}

// whyWords is the sentence for a reason; empty where there is nothing to say.
func whyWords(why task.Reason) string {
	switch why {
	case task.WhyPermission:
		return "It needed something that nobody allowed."
	case task.WhyFailed:
		return "The agent failed."
	case task.WhyInterrupted:
		return "It was interrupted."
	case task.WhyStopped:
		return "It was stopped before it began."
	case task.WhyBudget:
		return "Its budget of tokens is used up."
	case task.WhyNoChat, task.WhyChatRemoved:
		return "The chat is gone."
	case task.WhyNoMode:
		return "The mode is not known."
	case task.WhyNoRight:
		return "Whoever made it may not have work done here any more."
	case task.WhyNoHost:
		return "Its host is not known any more."
	case task.WhyHostAway:
		return "Its host did not answer for too long."
	case task.WhyNoProject:
		return "Its host does not offer the project any more."
	case task.WhyNoRuntime:
		return "Its host does not have the agent any more."
	case task.WhyOverlap:
		return "The one before it had not ended."
	case task.WhyAway:
		return "Drawbridge was not running."
	case task.WhyPaused:
		return "It was paused."
	case task.WhyAsked:
		return "Somebody asked for it."
	case task.WhyRejected:
		return "The result was rejected."
	case task.WhyRetry:
		return "A step is done once more, with writing allowed."
	case task.WhyTooLong:
		return "It took too long and was ended."
	case task.WhyUnknown:
		return "Nobody knows whether it came to its end. It is not run again."
	case task.WhyForm:
		return "The agent's answer did not have the form."
	case task.WhyByHand:
		return "A person has to do this, or has done it."
	case task.WhySkipped:
		return "The step was left out."
	case task.WhyTooMany:
		return "Too many tasks wait here already."
	case task.WhyUnreadable:
		return "Its record can't be read."
	}
	return ""
}

// stateWords names a state.
func stateWords(s task.State) string {
	switch s {
	case task.Pending:
		return "waiting"
	case task.InProgress:
		return "running"
	case task.InReview:
		return "in review"
	case task.Done:
		return "done"
	case task.Blocked:
		return "blocked"
	case task.Cancelled:
		return "cancelled"
	}
	return "unknown"
}

// refusedBy says who or what did not allow something.
func refusedBy(source runner.Source, by string, withdrawn bool) string {
	switch {
	case withdrawn:
		return "taken back"
	case source == runner.SourceUser && by != "":
		return by + " said no"
	case source == runner.SourceUser:
		return "you said no"
	case source == runner.SourceTimeout:
		return "nobody answered"
	case source == runner.SourceReviewer, source == runner.SourceRuntime:
		return "the reviewer said no"
	case source == runner.SourceShutdown:
		return "the host stopped"
	}
	return "the mode says no"
}
