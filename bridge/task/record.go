package task

import (
	"crypto/rand"
	"errors"
	"strconv"
	"strings"
	"time"

	"drawbridge/bridge"
	"drawbridge/policy"
	"drawbridge/runner"
)

// Version is the version of the records of this package as they are written.
const Version = 1

var (
	// ErrNotFound says that there is no schedule or task of that id.
	ErrNotFound = errors.New("task: not found")
	// ErrMode says that a task would be held to a looser mode than its chat is in.
	ErrMode = errors.New("task: looser than the chat")
	// ErrTooMany says that a chat has MaxSchedules or MaxOpen already.
	ErrTooMany = errors.New("task: too many")
	// ErrEmpty says that there is nothing to do: no text.
	ErrEmpty = errors.New("task: nothing to do")
	// ErrTooLong says that a text or a list is longer than MaxText or MaxSteps.
	ErrTooLong = errors.New("task: too long")
)

// Bounds.
const (
	MaxSchedules = 200     // of one chat
	MaxOpen      = 200     // tasks of one chat that are pending or in progress
	MaxSteps     = 20      // of one task
	MaxText      = 8 << 10 // bytes of a step
	maxTitle     = 120
	maxLog       = 40
)

// Work is what a schedule and a task have in common: what is done, where, and under which bounds. It is copied from a
// schedule to each of its tasks.
type Work struct {
	Title string   `json:"title,omitempty"`
	Steps []string `json:"steps"` // prompts, in order
	// Host, Project and Runtime are where it is done. With InChat they are the chat's at the time.
	Host    string `json:"host,omitempty"`
	Project string `json:"project,omitempty"`
	Runtime string `json:"runtime,omitempty"`
	// InChat runs it in the chat's own session, as a prompt of the chat, in place of a session of its own.
	InChat bool `json:"in_chat,omitempty"`
	// Mode is what it was made under. At each ask the stricter of it and the chat's mode at that moment is in force.
	Mode policy.Mode `json:"mode"`
	// Careful begins under approval-required, whatever Mode says; only a retry for lack of permission leaves that.
	Careful bool `json:"careful,omitempty"`
	// Execution is what becomes of a finished task; empty for the project's.
	Execution Execution `json:"execution,omitempty"`
	// Follow says whether follow-ups are looked for when it is done.
	Follow Follow `json:"follow,omitempty"`
	// Budget bounds the tokens of one run; zero for no bound.
	Budget int64  `json:"budget,omitempty"`
	By     string `json:"by,omitempty"`   // who made it, as bridge.Prompt.By
	Name   string `json:"name,omitempty"` // their name
}

// Execution says what becomes of a task when its steps are done.
type Execution string

// The executions. An unknown one counts as Review.
const (
	Review Execution = "review" // it waits for Approve, Reject or Rerun
	Auto   Execution = "auto"   // it is done
)

// Schedule starts a task at times, under scheduleKey. Only gateways write it.
type Schedule struct {
	V    int    `json:"v"`
	ID   string `json:"id"`
	Chat string `json:"chat"`
	Work
	Spec   Spec          `json:"spec"`
	Zone   string        `json:"zone"`             // in which Spec is meant
	Missed Missed        `json:"missed,omitempty"` // what becomes of a planned time that has passed
	State  ScheduleState `json:"state"`
	Why    Reason        `json:"why,omitempty"` // of Paused
	// Next is the planned time that comes; zero for none.
	Next time.Time `json:"next,omitzero"`
	// Last is the planned time that was fired last, and Task what it started.
	Last time.Time `json:"last,omitzero"`
	Task string    `json:"task,omitempty"`
	// Fired and Omitted count planned times that were fired, and that were reported as missed.
	Fired   int       `json:"fired,omitempty"`
	Omitted int       `json:"omitted,omitempty"`
	Created time.Time `json:"created"`
}

// Missed says what becomes of planned times that have passed, because no gateway was there.
type Missed string

// The choices. An unknown one counts as Late.
const (
	Late Missed = "late" // the last of them is fired, once
	Skip Missed = "skip" // they are reported
)

// ScheduleState is how a schedule stands.
type ScheduleState string

// The states of a schedule.
const (
	Active ScheduleState = "active"
	Paused ScheduleState = "paused"
	Over   ScheduleState = "over" // it has no further time
)

// Task is work with steps and a state, under taskKey. Only gateways write it.
type Task struct {
	V    int    `json:"v"`
	ID   string `json:"id"`
	Chat string `json:"chat"`
	Work
	State State  `json:"state"`
	Why   Reason `json:"why,omitempty"`
	// Words are what people are told besides Why: an agent's, a runtime's or a person's.
	Words string `json:"words,omitempty"`
	// Schedule and Planned say which firing it is of; Parent of which task it follows up; Ref is the messenger's.
	Schedule string    `json:"schedule,omitempty"`
	Planned  time.Time `json:"planned,omitzero"`
	Parent   string    `json:"parent,omitempty"`
	Origin   Origin    `json:"origin,omitempty"`
	Ref      string    `json:"ref,omitempty"`
	// Run is the present run, or the last one; nil before the first.
	Run *Run `json:"run,omitempty"`
	// Again says how the next run begins, while the task is pending.
	Again *Again `json:"again,omitempty"`
	// Pipeline is what still follows by itself; nil for nothing.
	Pipeline *Pipeline `json:"pipeline,omitempty"`
	// ByHand is the task for a person that was made of the step that blocks this one; empty for none.
	ByHand  string    `json:"by_hand,omitempty"`
	Log     []Line    `json:"log,omitempty"`
	Created time.Time `json:"created"`
	Updated time.Time `json:"updated"`
}

// Again is how a further run begins.
type Again struct {
	Attended bool   `json:"attended,omitempty"` // the person who asked for it sits in front of it
	Words    string `json:"words,omitempty"`    // it goes on in the same session with these, in place of the steps
	// Steps are what is left, if it goes on in the same session behind a step that Passed says what became of.
	Steps  []string `json:"steps,omitempty"`
	Passed string   `json:"passed,omitempty"`
}

// Run is one execution of a task's steps.
type Run struct {
	N int `json:"n"` // from 1
	// Execution was read when the run began, and stays.
	Execution Execution `json:"execution"`
	Attended  bool      `json:"attended,omitempty"`
	Steps     []string  `json:"steps"` // the prompts of this run
	Step      int       `json:"step"`  // that is being done, from 0
	Tried     int       `json:"tried"` // how often that one was begun again
	// Passed stands before the first of them: what became of the step before it.
	Passed string `json:"passed,omitempty"`
	Prompt string `json:"prompt"` // that is queued or runs; a turn of another one is not this run's
	Chat   string `json:"chat"`   // where: a lane, or the chat itself
	Host   string `json:"host"`
	// Writing says that a retry for lack of permission was granted; it holds for the steps that follow.
	Writing bool           `json:"writing,omitempty"`
	Done    bridge.Summary `json:"done"`
	Usage   runner.Usage   `json:"usage"`
	Over    bool           `json:"over,omitempty"` // the budget was used up
	Started time.Time      `json:"started"`
	Ended   time.Time      `json:"ended,omitzero"`
}

// Line is one line of a task's log.
type Line struct {
	At    time.Time `json:"at"`
	State State     `json:"state"`
	Why   Reason    `json:"why,omitempty"`
	By    string    `json:"by,omitempty"` // the name of a person
	Run   int       `json:"run,omitempty"`
}

// Reason is why something stands as it does, in one word; the messenger has the sentence.
type Reason string

// The reasons.
const (
	WhyPermission  Reason = "permission"   // something was refused that nobody had refused in person
	WhyFailed      Reason = "failed"       // the turn failed; Words says how
	WhyInterrupted Reason = "interrupted"  // the turn was stopped, or its host was lost
	WhyStopped     Reason = "stopped"      // its prompt was taken out of the queue
	WhyBudget      Reason = "budget"       // the budget is used up
	WhyNoChat      Reason = "no-chat"      // the chat is gone
	WhyNoMode      Reason = "no-mode"      // the mode of the chat or of the task is not known
	WhyNoRight     Reason = "no-right"     // who made it may not any more
	WhyNoHost      Reason = "no-host"      // the host is not known
	WhyHostAway    Reason = "host-away"    // the host was not there for too long
	WhyNoProject   Reason = "no-project"   // the host does not offer the project
	WhyNoRuntime   Reason = "no-runtime"   // the host does not have the runtime
	WhyOverlap     Reason = "overlap"      // the schedule's task before it had not ended
	WhyAway        Reason = "away"         // no gateway was there
	WhyPaused      Reason = "paused"       // the schedule was paused
	WhyAsked       Reason = "asked"        // a person asked for it
	WhyRejected    Reason = "rejected"     // a person rejected the result; Words says why
	WhyRetry       Reason = "retry"        // a step is done once more, writing allowed
	WhyUnreadable  Reason = "unreadable"   // its record is damaged
	WhyTooLong     Reason = "too-long"     // a hook's time was up
	WhyUnknown     Reason = "unknown"      // a hook was begun, and nobody knows whether it ended
	WhyForm        Reason = "form"         // an agent's answer did not have the form of follow-ups
	WhyByHand      Reason = "by-hand"      // a person does a step, or did
	WhySkipped     Reason = "skipped"      // a step was left out
	WhyChatRemoved Reason = "chat-removed" // the messenger lost the chat
	WhyTooMany     Reason = "too-many"     // the chat has MaxOpen tasks
)

func newID() string { return strings.ToLower(rand.Text()[:10]) }

// firingID names the task of one planned time of a schedule: a second gateway makes the same one.
func firingID(schedule string, planned time.Time) string {
	return schedule + "-" + strconv.FormatInt(planned.Unix(), 36)
}

// Keys. All are the gateways'.

const (
	dueIndex     = "g:due"           // active schedules, by Next
	pendingIndex = "g:tasks:pending" // tasks that wait to be begun, by when to look at them
	runningIndex = "g:tasks:running" // tasks in progress, by when to look whether their prompt still stands
	// pipelineIndex has tasks with something that follows by itself, by when to look at them.
	pipelineIndex = "g:tasks:pipeline"
	oldIndex      = "g:tasks:old" // tasks and schedules that have ended, by when; forgotten after keep
	topic         = "g:tasks"     // something is due
)

func scheduleKey(id string) string        { return "g:schedule:" + id }
func taskKey(id string) string            { return "g:task:" + id }
func placesKey(host string) string        { return "g:tasks:host:" + host }
func settingsKey(chat string) string      { return "g:tasks:chat:" + chat }
func projectKey(host, name string) string { return "g:tasks:project:" + host + ":" + name }
func schedulesIndex(chat string) string   { return "g:schedules:" + chat }
func tasksIndex(chat string) string       { return "g:tasks:of:" + chat }

// promptID names one try of one step of one run.
func promptID(t Task) string {
	return "task:" + t.ID + ":" + strconv.Itoa(t.Run.N) + ":" + strconv.Itoa(t.Run.Step) + ":" + strconv.Itoa(t.Run.Tried)
}

// followUpsID names the prompt of the look for follow-ups behind a run.
func followUpsID(t Task) string { return "task:" + t.ID + ":" + strconv.Itoa(t.Run.N) + ":follow-ups" }

// OfTurn is the task of a turn, and false if it is of none.
func OfTurn(turn string) (id string, ok bool) {
	p, ok := strings.CutPrefix(bridge.PromptOf(turn), "task:")
	if !ok {
		return "", false
	}
	id, _, ok = strings.Cut(p, ":")
	return id, ok
}
