package runner

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"drawbridge/policy"
)

// ProposeTool is the name of the tool by which an agent proposes a task or a schedule. A person makes it, or nothing is
// made.
const ProposeTool = "propose_task"

// ToolHost is the name under which a program knows the tools that Drawbridge itself hosts, where it wants a name. No other
// server may have it.
const ToolHost = "drawbridge"

// Bounds of a Proposal.
const (
	maxProposedTitle = 120     // bytes
	maxProposedSteps = 20      // prompts
	maxProposedStep  = 8 << 10 // bytes of each
	maxProposedTime  = 200     // bytes
)

// Proposal is a task, or a schedule, that an agent proposes: the whole of what would be made.
type Proposal struct {
	Title string   `json:"title"`
	Steps []string `json:"steps"` // prompts, in order
	// When says what Time means; empty is for once, now. The zone is the chat's.
	When ProposedWhen `json:"when,omitempty"`
	Time string       `json:"time,omitempty"`
	// Mode is what it is to be held to at most; empty for the mode of whoever proposes it.
	Mode policy.Mode `json:"mode,omitempty"`
}

// ProposedWhen is the kind of a proposal's time.
type ProposedWhen string

// The kinds.
const (
	ProposedCron  ProposedWhen = "cron"  // five fields
	ProposedAt    ProposedWhen = "at"    // a time of day, or a date and one
	ProposedIn    ProposedWhen = "in"    // how long from now
	ProposedEvery ProposedWhen = "every" // an interval, and until when
)

// ErrProposal says that a proposal is none; what stands behind it is for the agent.
var ErrProposal = errors.New("this is no proposal")

// ProposalSchema is the JSON schema of the tool's arguments.
func ProposalSchema() json.RawMessage {
	return json.RawMessage(`{"type":"object","additionalProperties":false,"properties":{` +
		`"title":{"type":"string","description":"What it is, in a few words on one line."},` +
		`"steps":{"type":"array","minItems":1,"maxItems":20,"items":{"type":"string"},"description":"The prompts that an agent is given for it, in order, each after the one before it has ended. It has this project and not this conversation: say all that it has to know."},` +
		`"when":{"type":"string","description":"When it is done, in the user's time zone. Leave it out for once, now. Else one of these forms: \"cron 0 9 * * 1-5\", \"at 18:30\", \"at 2026-12-24 18:30\", \"in 20m\", \"every 2h\", \"every 2h until 22:00\"."},` +
		`"mode":{"type":"string","enum":["approval-required","auto-accept-edits","auto","full-access"],"description":"What it is held to at most. Leave it out for the user's present mode; a looser one than that is not given."}` +
		`},"required":["title","steps"]}`)
}

// ProposalDescription says what the tool is for.
const ProposalDescription = "Propose work to be done later, at certain times, or beside this conversation: a task, or a schedule if it says when. " +
	"The user sees it and decides; nothing is made before that. Only for what the user has asked for or would want; not for steps of your present work."

// ParseProposal reads the tool's arguments. The error is a sentence for the agent.
func ParseProposal(arguments json.RawMessage) (Proposal, error) {
	fail := func(format string, args ...any) (Proposal, error) {
		return Proposal{}, fmt.Errorf("%w: "+format, append([]any{ErrProposal}, args...)...)
	}
	if !utf8.Valid(arguments) {
		return fail("its text is not UTF-8")
	}
	var in struct {
		Title string   `json:"title"`
		Steps []string `json:"steps"`
		When  string   `json:"when"`
		Mode  string   `json:"mode"`
	}
	d := json.NewDecoder(bytes.NewReader(arguments))
	d.DisallowUnknownFields()
	if err := d.Decode(&in); err != nil {
		return fail("the arguments do not fit: %s", strings.TrimPrefix(err.Error(), "json: "))
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return fail("something stands behind the arguments")
	}
	p := Proposal{Title: strings.TrimSpace(in.Title), Mode: policy.Mode(in.Mode)}
	for _, step := range in.Steps {
		p.Steps = append(p.Steps, strings.TrimSpace(step))
	}
	if when := strings.TrimSpace(in.When); when != "" {
		kind, rest, _ := strings.Cut(when, " ")
		p.When, p.Time = ProposedWhen(kind), strings.TrimSpace(rest)
	}
	return p, p.Check()
}

// Check says, in words for the agent, what is wrong with a proposal as far as it can be known without the chat.
func (p Proposal) Check() error {
	fail := func(format string, args ...any) error {
		return fmt.Errorf("%w: "+format, append([]any{ErrProposal}, args...)...)
	}
	switch {
	case p.Title == "":
		return fail("it has no title")
	case len(p.Title) > maxProposedTitle:
		return fail("the title has %d bytes; at most %d", len(p.Title), maxProposedTitle)
	case strings.ContainsAny(p.Title, "\n\r"):
		return fail("the title is longer than a line")
	case len(p.Steps) == 0:
		return fail("it has no steps")
	case len(p.Steps) > maxProposedSteps:
		return fail("it has %d steps; at most %d", len(p.Steps), maxProposedSteps)
	case p.Mode != "" && !p.Mode.Valid():
		return fail("there is no such mode")
	case !slices.Contains([]ProposedWhen{"", ProposedCron, ProposedAt, ProposedIn, ProposedEvery}, p.When):
		return fail(`"when" begins with cron, at, in or every`)
	case p.When != "" && p.Time == "":
		return fail(`"when" has no time behind %q`, p.When)
	case p.When == "" && p.Time != "":
		return fail(`the time does not say what it means`)
	case len(p.Time) > maxProposedTime:
		return fail(`"when" is longer than %d bytes`, maxProposedTime)
	}
	for i, step := range p.Steps {
		switch {
		case step == "":
			return fail("step %d is empty", i+1)
		case len(step) > maxProposedStep:
			return fail("step %d has %d bytes; at most %d", i+1, len(step), maxProposedStep)
		}
	}
	if !utf8.ValidString(p.Title + p.Time + strings.Join(p.Steps, "")) {
		return fail("its text is not UTF-8")
	}
	return nil
}

// Question is what a person is asked about a proposal. That a person makes it, and nothing else does, is its category's
// doing: what is human-only is decided by no rule, grant or reviewer.
func (p Proposal) Question() Question {
	return Question{
		Kind: KindProposal, Title: p.Title, Proposal: &p, Categories: []policy.Category{policy.Question},
		Actions: []Action{
			{ID: ActionMake, Label: "Make it", Style: StyleSuccess, Allows: true},
			{ID: ActionDeny, Label: "Deny", Style: StyleDanger},
		},
	}
}

// Told is what the agent is told of the answer.
func (p Proposal) Told(a Answer) string {
	if !a.Allows() {
		return "Not made. " + a.Describe()
	}
	s := "Made: the user agreed to this task"
	after := " It is done by itself, beside this conversation; do not do its work here."
	if p.When != "" {
		s = "Made: the user agreed to this schedule"
		after = " It begins by itself when its time comes; do not do its work here."
	}
	if a.Made != "" {
		s += ", and its id is " + a.Made
	}
	return s + "." + after
}
