// Package runner is the vocabulary that runtimes speak: what a runtime is, what it tells (events), and what it asks
// (questions). It is a leaf: the standard library and policy.
//
// A runtime promises to ask its Gate before each action, as far as it can be made to, and to follow the answer. The
// conformance suite in runnertest tries each runtime on that. What a runtime cannot promise it says in Probe.
package runner

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"time"

	"drawbridge/policy"
)

var (
	// ErrNoSession says that the resume token is not valid (any more): a new session has to begin, and the chat is told.
	ErrNoSession = errors.New("runner: no such session")
	// ErrClosed says that the session was closed.
	ErrClosed = errors.New("runner: session closed")
	// ErrUnsupported says that the runtime cannot do what was asked, by its nature or in this version.
	ErrUnsupported = errors.New("runner: unsupported")
)

// Runtime is a way to run an agent. It is safe for concurrent use.
type Runtime interface {
	// Name is the runtime's name as people type it: "codex", "native:glm", "acp:opencode".
	Name() string
	// Probe tells what the runtime can do on this host, by looking, within a few seconds. The error is for a probe that
	// could not be made; a runtime that is missing or broken is a Capability in state failed.
	Probe(ctx context.Context) (Capability, error)
	// Open begins a session, or resumes the one of Options.Resume (ErrNoSession if that is not known any more). The
	// session lives until Close; ctx bounds only the opening.
	Open(ctx context.Context, o Options) (Session, error)
}

// Options is what a session is opened with.
type Options struct {
	Folder string // the workspace, absolute
	Resume string // a resume token, or empty for a new session
	Gate   Gate
	Sink   Sink
	// Policy is asked afresh at each question and each turn; it must not be kept.
	Policy func() Policy
	// PublishIsOrdinary is the owner's word that publishing from this workspace is not human-only; see policy.Workspace.
	PublishIsOrdinary bool
}

// Policy is what the chat allows at this moment.
type Policy struct {
	Mode        policy.Mode        `json:"mode"`
	Interaction policy.Interaction `json:"interaction"`
}

// Session is one conversation of a runtime. Events and questions may come at any time while it is open, also outside a
// turn (background commands, sub-agents), in order, and never after Close has returned.
type Session interface {
	// Turn sends one prompt and returns when the agent says that it is done with all of it. Cancelling ctx interrupts
	// the turn; Turn then still waits until the agent has stopped, and returns a Result with Interrupted. An error means
	// that the turn could not be carried out and says why; a failure that the agent reports itself is a Result with
	// OutcomeFailed. One turn at a time.
	Turn(ctx context.Context, in Input) (Result, error)
	// Close ends the session; nothing of it still runs when it returns. It may be called more than once.
	Close() error
	// ResumeToken is what Options.Resume takes. It may change with each turn and is empty while there is nothing to resume.
	ResumeToken() string
}

// Steerer is a Session that takes input into a running turn.
type Steerer interface {
	// Steer reports false when no turn was running that could take it; the input was not taken then.
	Steer(ctx context.Context, in Input) (bool, error)
}

// PolicySetter is a Session whose program holds a policy of its own for the length of a turn, so that it has to be told
// when the chat's becomes stricter. A Session without it asks the gate before each action, and is strict by that alone.
type PolicySetter interface {
	// SetPolicy makes p the policy of the running turn. It reports false when the program cannot be tightened before the
	// turn ends; the turn is interrupted then, and offered to be continued.
	SetPolicy(ctx context.Context, p Policy) (bool, error)
}

// Input is one prompt.
type Input struct {
	Turn  string `json:"turn"` // id of the turn
	Text  string `json:"text"`
	Files []File `json:"files,omitempty"`
	// Model and Effort are of Capability.Models; empty for the runtime's own. Whoever gives them has looked them up there.
	Model  string `json:"model,omitempty"`
	Effort string `json:"effort,omitempty"`
}

// File is an attachment, already on this host.
type File struct {
	Name string `json:"name"`
	Path string `json:"path"` // absolute
}

// Outcome is how a turn ended.
type Outcome string

// The outcomes of a turn.
const (
	Completed   Outcome = "completed"
	Interrupted Outcome = "interrupted"
	Broken      Outcome = "failed"
)

// Result is the end of a turn.
type Result struct {
	Outcome Outcome `json:"outcome"`
	Reason  string  `json:"reason,omitempty"` // for people: why it failed or was interrupted
	Usage   Usage   `json:"usage"`
	Next    *Input  `json:"next,omitempty"` // a follow-up turn that the runtime asks for
	// Plan is the plan, in Markdown, with which a turn in plan has ended. A person decides what becomes of it, in their own
	// time; nothing waits for that.
	Plan string `json:"plan,omitempty"`
	// Deferred is the call, by the Item of its question, that the program has kept for when the session is resumed; see
	// Deferrer.
	Deferred string `json:"deferred,omitempty"`
}

// Usage counts tokens. Zero means not known.
type Usage struct {
	Input   int64 `json:"input,omitempty"`
	Cached  int64 `json:"cached,omitempty"` // part of Input
	Output  int64 `json:"output,omitempty"`
	Context int64 `json:"context,omitempty"` // tokens that stand in the context now
	Window  int64 `json:"window,omitempty"`  // size of the context window
	// Cost is what the runtime says it cost, in millionths of a US dollar; zero if it says nothing.
	Cost int64 `json:"cost,omitempty"`
}

// Plus is what was used in both, u first: the context is that of the latter, unless it says nothing of it.
func (u Usage) Plus(o Usage) Usage {
	return Usage{
		Input: u.Input + o.Input, Cached: u.Cached + o.Cached, Output: u.Output + o.Output, Cost: u.Cost + o.Cost,
		Context: cmp.Or(o.Context, u.Context), Window: cmp.Or(o.Window, u.Window),
	}
}

// Sink takes a session's events. It is called in order by one goroutine at a time and must not block for long.
type Sink func(Event)

// EventKind names what an Event tells.
type EventKind string

// The kinds of events.
const (
	SessionStarted  EventKind = "session.started"
	TurnStarted     EventKind = "turn.started"
	TurnEnded       EventKind = "turn.ended"
	ItemStarted     EventKind = "item.started"
	ContentDelta    EventKind = "content.delta"
	ItemCompleted   EventKind = "item.completed"
	PlanUpdated     EventKind = "plan.updated"
	RequestOpened   EventKind = "request.opened"
	RequestResolved EventKind = "request.resolved"
	ReviewChanged   EventKind = "review"
	PolicyChanged   EventKind = "policy.changed"
	BackgroundEvent EventKind = "background"
	UsageUpdated    EventKind = "usage"
	Notice          EventKind = "notice"
)

// Event is one fact of a session's life. Only the field that belongs to the kind is set.
type Event struct {
	Kind EventKind `json:"kind"`
	Turn string    `json:"turn,omitempty"`
	// Item is set for item.* and content.delta; for a delta its Text holds only what was added.
	Item       *Item       `json:"item,omitempty"`
	Result     *Result     `json:"result,omitempty"`     // turn.ended
	Plan       []Step      `json:"plan,omitempty"`       // plan.updated: the whole checklist
	Request    *Request    `json:"request,omitempty"`    // request.*
	Review     *Review     `json:"review,omitempty"`     // review
	Policy     *Effective  `json:"policy,omitempty"`     // policy.changed
	Background *Background `json:"background,omitempty"` // background
	Usage      *Usage      `json:"usage,omitempty"`      // usage
	Text       string      `json:"text,omitempty"`       // notice, for people; session.started: the resume token
}

// ItemKind names what an Item is.
type ItemKind string

// The kinds of items.
const (
	ItemMessage    ItemKind = "message"
	ItemReasoning  ItemKind = "reasoning"
	ItemCommand    ItemKind = "command"
	ItemFileChange ItemKind = "file_change"
	ItemToolCall   ItemKind = "tool_call"
	ItemPlan       ItemKind = "plan"
	ItemQuestion   ItemKind = "question"
)

// ItemStatus is how an item stands.
type ItemStatus string

// The states of an item.
const (
	ItemRunning ItemStatus = "running"
	ItemDone    ItemStatus = "done"
	ItemFailed  ItemStatus = "failed"
	ItemRefused ItemStatus = "refused" // not run, because it was not allowed
)

// Item is a thing within a turn.
type Item struct {
	ID      string       `json:"id"`
	Kind    ItemKind     `json:"kind"`
	Status  ItemStatus   `json:"status,omitempty"`
	Title   string       `json:"title,omitempty"` // one line: "Read main.go", the tool's name
	Text    string       `json:"text,omitempty"`  // message, reasoning, plan: the text; a tool call: its result
	Command string       `json:"command,omitempty"`
	Output  string       `json:"output,omitempty"` // bounded; the end of it where it was longer
	Exit    *int         `json:"exit,omitempty"`
	Files   []FileChange `json:"files,omitempty"`
}

// FileChange is what happens to one file.
type FileChange struct {
	Path    string `json:"path"` // as the agent named it
	Op      FileOp `json:"op"`
	Diff    string `json:"diff,omitempty"` // unified, whole
	Added   int    `json:"added,omitempty"`
	Removed int    `json:"removed,omitempty"`
}

// FileOp is what is done to a file.
type FileOp string

// The operations on files.
const (
	FileCreate FileOp = "create"
	FileEdit   FileOp = "edit"
	FileDelete FileOp = "delete"
	FileMove   FileOp = "move"
)

// Step is one line of a checklist.
type Step struct {
	Text string `json:"text"`
	Done bool   `json:"done,omitempty"`
	Now  bool   `json:"now,omitempty"` // being worked on
}

// Effective is what mode is really in force, and why it is not the one that was asked for.
type Effective struct {
	Asked     Policy `json:"asked"`
	Effective Policy `json:"effective"`
	Why       string `json:"why,omitempty"`
}

// Background is work that outlives a turn.
type Background struct {
	ID      string    `json:"id"`
	Title   string    `json:"title"`
	Ended   bool      `json:"ended,omitempty"`
	Started time.Time `json:"started"`
}

// The states of a Review. ReviewUnavailable and ReviewTimeout say that there is no verdict.
const (
	ReviewRequested   = "requested"
	ReviewApproved    = "approved"
	ReviewDenied      = "denied"
	ReviewUnavailable = "unavailable"
	ReviewTimeout     = "timeout"
)

// ReviewerOurs is the Source of a Review that is not a runtime's own.
const ReviewerOurs = "ours"

// Review is a step of a reviewer.
type Review struct {
	State  string `json:"state"`  // requested, approved, denied, unavailable, timeout
	Source string `json:"source"` // ours, or the runtime's name
	Item   string `json:"item,omitempty"`
	// Title is what it is about, in one line, as the agent names it.
	Title string `json:"title,omitempty"`
	// Reason is the reviewer's, or why it gave no verdict; for people.
	Reason string `json:"reason,omitempty"`
	// Asked says that a person is asked instead. Without it, what was not approved is refused.
	Asked bool `json:"asked,omitempty"`
}

// Request tells of an approval in the timeline: opened with its question, resolved with its answer.
type Request struct {
	ID       string    `json:"id"`
	Question *Question `json:"question,omitempty"`
	Answer   *Answer   `json:"answer,omitempty"`
}

// RawArguments is a tool call's arguments as the agent sent them.
type RawArguments = json.RawMessage
