// Package policy holds what a chat's mode allows: the modes, the interactions, the categories of actions, the one table
// that turns them into a verdict, and the classification of commands, paths and tools into categories.
//
// It guarantees that the answer is never looser than the table: what is unknown, malformed or built at run time gets
// the strictest category that fits. It recognises; it does not contain: an unsandboxed command can do what none of its
// words says, which is why it is terminal whatever else it is. It imports nothing of ours and does no I/O but to resolve
// symbolic links and to see whether a file exists.
package policy

import (
	"errors"
	"fmt"
	"slices"
)

// Mode is the runtime mode of a chat or a task. Modes are ordered: each allows at least what the one before it allows.
// The zero value is not a mode; wherever a verdict is needed it counts as ApprovalRequired, with Ask in place of Allow.
type Mode string

// The four modes, strictest first. The strings are stored and typed by people.
const (
	ApprovalRequired Mode = "approval-required"
	AutoAcceptEdits  Mode = "auto-accept-edits"
	Auto             Mode = "auto"
	FullAccess       Mode = "full-access"
)

// ErrUnknownMode says that a string names none of the four modes.
var ErrUnknownMode = errors.New("policy: unknown mode")

// Modes returns the four modes, strictest first.
func Modes() []Mode { return []Mode{ApprovalRequired, AutoAcceptEdits, Auto, FullAccess} }

// ParseMode reads a mode exactly as it is written in Modes. Anything else is ErrUnknownMode, never a default.
func ParseMode(s string) (Mode, error) {
	if m := Mode(s); m.Valid() {
		return m, nil
	}
	return "", fmt.Errorf("policy: parse mode %q: %w", s, ErrUnknownMode)
}

// Valid reports whether m is one of the four.
func (m Mode) Valid() bool { return slices.Contains(Modes(), m) }

// AtMost returns the stricter of m and limit. It is the only way to combine two modes. If either is not a mode the
// result is ApprovalRequired.
func (m Mode) AtMost(limit Mode) Mode {
	i, j := slices.Index(Modes(), m), slices.Index(Modes(), limit)
	return Modes()[max(0, min(i, j))]
}

// Looser reports whether m allows more than other. A value that is not a mode counts as ApprovalRequired.
func (m Mode) Looser(other Mode) bool {
	return slices.Index(Modes(), m) > max(0, slices.Index(Modes(), other))
}

// Interaction is what the chat asks of the agent: to work, or only to plan. It is independent of the mode and always stronger.
type Interaction string

// The two interactions. Any other value counts as Plan, the stronger one, wherever a verdict is needed.
const (
	Default Interaction = "default"
	Plan    Interaction = "plan"
)

// Category is what an action does.
type Category string

// The categories: the columns of the table. Several columns of the table that share their verdicts are separate here,
// because people are told which one it is.
const (
	Read        Category = "read"         // reading in the workspace
	Secret      Category = "secret"       // reading or writing .env*, keys, credential stores, anywhere
	ReadOutside Category = "read-outside" // reading outside the workspace
	Write       Category = "write"        // writing in the workspace
	Protected   Category = "protected"    // git hooks and configuration, agents' configuration, CI, .env*, outside the workspace
	System      Category = "system"       // installing programs, services, settings
	Delete      Category = "delete"       // deleting in the workspace
	Terminal    Category = "terminal"     // a command without a sandbox
	Fetch       Category = "fetch"        // a GET by a tool that can do nothing else
	Network     Category = "network"      // anything else that reaches the network
	Credential  Category = "credential"   // using or changing credentials; human-only
	Publish     Category = "publish"      // git push, npm publish, releases, mail, messages; human-only
	Payment     Category = "payment"      // spending money; human-only
	Question    Category = "question"     // the agent asks a person; human-only
	Unknown     Category = "unknown"      // not known to be anything of the above
)

// Categories returns all of them.
func Categories() []Category {
	return []Category{
		Read, Secret, ReadOutside, Write, Protected, System, Delete, Terminal, Fetch, Network, Credential, Publish, Payment, Question, Unknown,
	}
}

// Verdict is what the policy says of an action.
type Verdict string

// The verdicts, loosest first.
const (
	Allow  Verdict = "allow"  // goes on without anyone being asked
	Review Verdict = "review" // the reviewer decides; without one it is Ask
	Ask    Verdict = "ask"    // a person decides
	Deny   Verdict = "deny"   // refused without anyone being asked
)
