package runner

import (
	"context"
	"slices"
	"strings"

	"drawbridge/policy"
)

// Gate is what a runtime asks before an action. An error means no, whatever its text; so does an Answer that does not
// allow. Ask may take as long as a person takes; when ctx ends the question is withdrawn.
type Gate interface {
	Ask(ctx context.Context, q Question) (Answer, error)
}

// GateFunc is a function as a Gate.
type GateFunc func(ctx context.Context, q Question) (Answer, error)

// Ask calls f.
func (f GateFunc) Ask(ctx context.Context, q Question) (Answer, error) { return f(ctx, q) }

// QuestionKind names what a Question is about.
type QuestionKind string

// The kinds of questions; they are the kinds of approvals.
const (
	KindCommand    QuestionKind = "command"
	KindFileChange QuestionKind = "file_change"
	KindTool       QuestionKind = "tool"
	KindPlan       QuestionKind = "plan"
	KindQuestion   QuestionKind = "question"
	// KindProposal is a task that the agent proposes. A gateway that does not know the kind has nothing to show of it, and so
	// no button that allows it.
	KindProposal QuestionKind = "proposal"
)

// Question is what a runtime asks. It holds every byte that is to be run or written; the digest of a Question is taken
// over all that would be carried out.
type Question struct {
	Kind    QuestionKind `json:"kind"`
	Turn    string       `json:"turn,omitempty"`
	Item    string       `json:"item,omitempty"` // the item that waits for the answer
	Title   string       `json:"title,omitempty"`
	Command string       `json:"command,omitempty"` // KindCommand: exactly what will be run
	Folder  string       `json:"folder,omitempty"`  // where it will be run; absolute
	Files   []FileChange `json:"files,omitempty"`   // KindFileChange: each file with its diff
	Tool    string       `json:"tool,omitempty"`    // KindTool: its name
	// Arguments are the tool call's, as the agent sent them.
	Arguments RawArguments `json:"arguments,omitempty"`
	Plan      string       `json:"plan,omitempty"`    // KindPlan: Markdown
	Queries   []Query      `json:"queries,omitempty"` // KindQuestion
	// Proposal is what would be made: KindProposal.
	Proposal *Proposal `json:"proposal,omitempty"`
	// Actions are the buttons; empty means the usual ones for the kind (see UsualActions).
	Actions []Action `json:"actions,omitempty"`
	// Categories say what the action does. Empty means unknown.
	Categories []policy.Category `json:"categories,omitempty"`
	// Background says that the asker is not the turn that a person waits for.
	Background bool `json:"background,omitempty"`
	// Terminal names the session that asks where it is a person's own, in a terminal, and no turn of a chat: there it can
	// be answered as well. Nothing but a person answers such a question here.
	Terminal string `json:"terminal,omitempty"`
	// Check returns the digest of the files that the action touches as they are now. The gate calls it when the question
	// is published and again before it answers; a difference means that the question is asked again. Nil means that
	// nothing needs to be checked.
	Check func() (string, error) `json:"-"`
}

// Query is one question to a person.
type Query struct {
	ID       string   `json:"id"`
	Text     string   `json:"text"`
	Options  []Option `json:"options,omitempty"`
	Multiple bool     `json:"multiple,omitempty"`
	Free     bool     `json:"free,omitempty"`   // an answer in the person's own words is taken
	Secret   bool     `json:"secret,omitempty"` // never logged, deleted from the chat once taken
	Form     *Form    `json:"form,omitempty"`   // what the answer has to be; nil for anything that fits the rest
}

// Option is one answer that a Query offers.
type Option struct {
	Label       string `json:"label"`
	Description string `json:"description,omitempty"`
}

// Style is how an action's button looks.
type Style string

// The styles; the zero value is a plain button.
const (
	StylePrimary Style = "primary"
	StyleSuccess Style = "success"
	StyleDanger  Style = "danger"
)

// Action is one button of an approval. Its ID is what an Answer carries.
type Action struct {
	ID    string `json:"id"`
	Label string `json:"label"`
	Style Style  `json:"style,omitempty"`
	// Allows says that choosing it lets the action be carried out; such a button stands only on a message that shows
	// every byte.
	Allows bool `json:"allows,omitempty"`
	// Grant is what choosing it also gives: "session" or "project"; empty for nothing.
	Grant string `json:"grant,omitempty"`
	// Reply says that it is chosen by replying in one's own words and has no button; the words are the Answer's Reason.
	Reply bool `json:"reply,omitempty"`
}

// The usual actions' ids.
const (
	ActionAllow        = "allow"
	ActionAllowSession = "allow-session"
	ActionAllowProject = "allow-project"
	ActionDeny         = "deny"
)

// ActionMake makes what was proposed.
const ActionMake = "make"

// The ids of a plan's actions.
const (
	ActionImplement     = "implement"      // at most auto-accept-edits for that turn
	ActionImplementMode = "implement-mode" // under the chat's own mode, which is higher
	ActionReject        = "reject"
	ActionRevise        = "revise" // with the words of a reply, staying in plan
)

// UsualActions are the buttons of an approval that brings none: allow and deny for anything that can be carried out,
// none for a question (its options and replies answer it).
func UsualActions(kind QuestionKind) []Action {
	switch kind {
	case KindQuestion:
		return nil
	case KindCommand, KindFileChange, KindTool, KindPlan, KindProposal:
	}
	return []Action{
		{ID: ActionAllow, Label: "Allow", Style: StyleSuccess, Allows: true},
		{ID: ActionDeny, Label: "Deny", Style: StyleDanger},
	}
}

// Source says where a decision came from.
type Source string

// The sources of a decision.
const (
	SourceUser     Source = "user"
	SourceRule     Source = "rule" // the table
	SourceGrant    Source = "grant"
	SourceReviewer Source = "reviewer"
	SourceRuntime  Source = "runtime"
	SourceTimeout  Source = "timeout"
	SourceShutdown Source = "shutdown"
)

// Decision is what an Answer comes to.
type Decision string

// The decisions.
const (
	Allowed   Decision = "allowed"
	Denied    Decision = "denied"
	Withdrawn Decision = "withdrawn" // the agent took the question back, or its turn ended
	Deferred  Decision = "deferred"  // the host stops, and the question is kept: only a Deferrer's named question gets it
)

// Answer is the outcome of a Question. The zero value is a denial.
type Answer struct {
	Decision Decision `json:"decision"`
	Action   string   `json:"action,omitempty"` // id of the action that was chosen
	// Reason is for the agent: the person's words, or why nobody could be asked.
	Reason string `json:"reason,omitempty"`
	// Answers are by the id of the Query.
	Answers map[string][]string `json:"answers,omitempty"`
	Source  Source              `json:"source"`
	By      string              `json:"by,omitempty"` // the person's name, for SourceUser
	// Made is the id of what a proposal has become.
	Made string `json:"made,omitempty"`
}

// Allows reports whether the action may be carried out.
func (a Answer) Allows() bool { return a.Decision == Allowed }

// Describe is the sentence that tells the agent why it may not: who refused, and the reason if there is one.
func (a Answer) Describe() string {
	var s string
	switch a.Source {
	case SourceUser:
		s = "The user refused this."
	case SourceRule, SourceGrant:
		s = "The chat's mode does not allow this."
	case SourceReviewer:
		s = "The reviewer refused this."
	case SourceTimeout:
		s = "Nobody answered in time, so this is refused."
	case SourceShutdown, SourceRuntime:
		s = "This could not be asked, so it is refused."
	default:
		s = "This is refused."
	}
	if a.Decision == Withdrawn {
		s = "The question was withdrawn, so this was not done."
	}
	if a.Decision == Deferred {
		s = "This waits for a decision."
	}
	if r := strings.TrimSpace(a.Reason); r != "" {
		s += " Reason: " + r
	}
	return s
}

// Has reports whether q does anything of the categories.
func (q Question) Has(c ...policy.Category) bool {
	return slices.ContainsFunc(q.Categories, func(x policy.Category) bool { return slices.Contains(c, x) })
}
