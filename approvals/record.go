// Package approvals holds what waits for a person: the records, the grants, the one service through which every question
// is asked and every decision is made, and the audit log.
//
// It has two halves that meet only in the store. On a host, Service.Ask takes a question through plan, human-only,
// grants, the table and the reviewer, and if a person has to decide, publishes a record and waits. On a gateway,
// Service.Decide turns a tap into the one decision, and Service.Sweep closes what is overdue or whose host is dead.
//
// It guarantees that an action is allowed only by the table, a grant, a reviewer or a person, each under the mode in
// force at the moment of the ask; that of many who decide exactly one wins and all learn what stands; and that every
// doubt (an error, a lost store, a deadline, a dead host) is a denial. It does not show anything to anyone: it knows no
// messenger. It does not know what an action does beyond the categories that it is told.
package approvals

import (
	"crypto/rand"
	"maps"
	"strings"
	"time"

	"drawbridge/policy"
	"drawbridge/runner"
)

// Version is the version of the records of this package as they are written.
const Version = 1

// ID names an approval: the host that asks, a dot, and 26 random characters of base32. It cannot be guessed.
type ID string

// NewID returns a fresh id for an approval of host.
func NewID(host string) ID { return ID(host + "." + rand.Text()) }

// Host is the host that asks; empty if id is malformed.
func (id ID) Host() string {
	dot := strings.LastIndexByte(string(id), '.') // a host's name may hold dots, the rest never does
	if dot < 0 || dot == len(id)-1 {
		return ""
	}
	return string(id[:dot])
}

// Made is the id of what a proposal becomes that is made by this approval: the same one for everybody, so that it is made
// once.
func (id ID) Made() string {
	random := string(id[strings.LastIndexByte(string(id), '.')+1:])
	return "p" + strings.ToLower(random[:min(12, len(random))])
}

// Record is an approval as the host publishes it, under AskKey. Only the host writes it; what is asked never
// changes after it was published, only how it stands and who waits for it.
type Record struct {
	V           int    `json:"v"`
	ID          ID     `json:"id"`
	Incarnation string `json:"incarnation"` // of the host; another one means that the asker is gone
	Chat        string `json:"chat"`
	Project     string `json:"project,omitempty"`
	Session     string `json:"session,omitempty"` // ours, not the runtime's token
	Run         string `json:"run,omitempty"`     // what the limit of open approvals counts: a turn, or background work
	Turn        string `json:"turn,omitempty"`
	Runtime     string `json:"runtime,omitempty"`
	// Prompted is who wrote the prompt of the turn: the Telegram user id as a string, or a task's id.
	Prompted   string          `json:"prompted,omitempty"`
	Background bool            `json:"background,omitempty"`
	Silent     bool            `json:"silent,omitempty"` // asked in quiet hours: nobody is woken for it
	Question   runner.Question `json:"question"`
	// Mode and Interaction were in force when the question was asked.
	Mode        policy.Mode        `json:"mode"`
	Interaction policy.Interaction `json:"interaction"`
	// Grant is what the actions with a Grant would give, shown exactly before it is given; nil if nothing can be granted.
	Grant *Grant `json:"grant,omitempty"`
	// Review is what a reviewer said who was asked first and did not allow it; nil if there was none.
	Review   *runner.Review `json:"review,omitempty"`
	Digest   string         `json:"digest"` // of everything that is to be carried out, and of the files it touches
	Created  time.Time      `json:"created"`
	Deadline time.Time      `json:"deadline"`
	State    State          `json:"state"`
	Resolved time.Time      `json:"resolved,omitzero"`
	// Kept says that the host has stopped and the agent's program keeps the call: nobody waits, and a decision is carried out
	// by a turn that resumes the session; see kept.go.
	Kept bool `json:"kept,omitempty"`
	// Decision is set with State Handed: what the host has told the runtime. It is the one under DecisionKey, or a denial
	// of the host's own where the policy has become stricter meanwhile.
	Decision *Decision `json:"decision,omitempty"`
}

// State is how the asking host sees its approval.
type State string

// The states of a Record. Open leads to any other, Closing to any but Open; the others are final. Only Open can be decided
// by a person.
const (
	Open      State = "open"
	Closing   State = "closing"   // the deadline has come; a decision that was made before stands, none can be made any more
	Handed    State = "handed"    // the runtime was told the decision
	Withdrawn State = "withdrawn" // the agent took the question back, or its turn ended
	Expired   State = "expired"   // the deadline passed with nobody deciding
	Lost      State = "lost"      // the host started again: the asker is gone
	Changed   State = "changed"   // what it was about changed meanwhile; asked again under another id
)

// Decision is the one decision of an approval, under DecisionKey. Only gateways write it, and only once.
type Decision struct {
	V        int             `json:"v"`
	ID       ID              `json:"id"`
	Decision runner.Decision `json:"decision"` // allowed or denied
	Action   string          `json:"action,omitempty"`
	Source   runner.Source   `json:"source"`
	By       int64           `json:"by,omitempty"`   // Telegram user id, for SourceUser
	Name     string          `json:"name,omitempty"` // their name, as shown to others
	// Reason is the person's words; it goes to the agent and is never logged.
	Reason  string              `json:"reason,omitempty"`
	Answers map[string][]string `json:"answers,omitempty"`
	Digest  string              `json:"digest"` // of the Record that was decided; the host compares
	At      time.Time           `json:"at"`
	// Token names the tap, so that a tap that is delivered twice recognises its own decision.
	Token string `json:"token,omitempty"`
	// Gone is when it was found that the host died before it took an allowing decision: nothing ran. Sweep adds it, and
	// removes secret Answers once the host has left Open; nothing else of a decision ever changes.
	Gone time.Time `json:"gone,omitzero"`
}

// Grant is "do not ask for this again". Exactly one of Prefix, Command, Paths and Tool is set.
type Grant struct {
	V       int      `json:"v"`
	ID      string   `json:"id,omitempty"`
	Scope   string   `json:"scope,omitempty"`   // "session" or "project"; empty while it is only offered
	Session string   `json:"session,omitempty"` // for the scope session: ours, not the runtime's token
	Project string   `json:"project,omitempty"` // for the scope project
	Folder  string   `json:"folder,omitempty"`  // commands and files are granted for one folder only
	Prefix  string   `json:"prefix,omitempty"`
	Command string   `json:"command,omitempty"` // the exact whole command
	Paths   []string `json:"paths,omitempty"`   // exact files
	Tool    string   `json:"tool,omitempty"`    // exact name
	// Categories are those of the question that it was given for: what does more is asked about again. A file's folder may
	// have become a link to .git/hooks, for one. A grant without any serves whatever fits.
	Categories []policy.Category `json:"categories,omitempty"`
	// Background says that it was given on the card of a background ask, and only then it serves background work.
	Background bool        `json:"background,omitempty"`
	Mode       policy.Mode `json:"mode,omitempty"` // the chat's mode when it was given; a lower one ends it
	By         int64       `json:"by,omitempty"`
	Name       string      `json:"name,omitempty"`
	At         time.Time   `json:"at,omitzero"`
}

// Grants are a chat's grants on one host, under GrantsKey. Only gateways write them; hosts read them at each ask.
type Grants struct {
	V      int     `json:"v"`
	Grants []Grant `json:"grants"`
}

// Beat says that a host lives, under BeatKey.
type Beat struct {
	V           int       `json:"v"`
	Incarnation string    `json:"incarnation"`
	At          time.Time `json:"at"` // the store's clock
}

// Actions returns the buttons of r: those that it was published with, or the usual ones of its kind if an older host
// published it without any.
func (r Record) Actions() []runner.Action {
	if len(r.Question.Actions) > 0 {
		return r.Question.Actions
	}
	return runner.UsualActions(r.Question.Kind)
}

// withoutSecrets returns d without the answers to secret queries of q, and whether there were any.
func (d Decision) withoutSecrets(q runner.Question) (Decision, bool) {
	found := false
	for _, query := range q.Queries {
		if _, ok := d.Answers[query.ID]; ok && query.Secret {
			if !found {
				d.Answers, found = maps.Clone(d.Answers), true
			}
			delete(d.Answers, query.ID)
		}
	}
	return d, found
}

// Keys and indexes. See docs/store.md for who may write which.

// AskKey is where a host keeps an approval.
func AskKey(id ID) string { return "from:" + id.Host() + ":ask:" + string(id) }

// OpenIndex holds a host's open approvals by deadline.
func OpenIndex(host string) string { return "from:" + host + ":asks" }

// DecisionKey is where gateways put the decision.
func DecisionKey(id ID) string { return "to:" + id.Host() + ":decision:" + string(id) }

// GrantsKey holds the grants of a chat for a host.
func GrantsKey(host, chat string) string { return "to:" + host + ":grants:" + chat }

// BeatKey holds the beat of a host.
func BeatKey(host string) string { return "from:" + host + ":beat" }

// HostsIndex is the directory of hosts: their names by the time of the last beat. It is the only key that every host may
// write; it grants nothing, the beats do.
const HostsIndex = "hosts"

// ResolvedIndex holds a host's approvals that have left Open by when they did, until they are forgotten.
func ResolvedIndex(host string) string { return "from:" + host + ":asked" }

// DecisionsIndex holds the ids of decided approvals by when they were, until they are forgotten. Gateways write it.
const DecisionsIndex = "g:decisions"

// SecretsIndex holds the ids of decisions with secret answers until those are removed. Gateways write it.
const SecretsIndex = "g:secrets"

// AuditIndex holds the audit lines of gateways as members, by time. Hosts have HostAuditIndex.
const AuditIndex = "g:audit"

// HostAuditIndex holds the audit lines of a host.
func HostAuditIndex(host string) string { return "from:" + host + ":audit" }

// DecidedTopic carries the ids of decided approvals to a host.
func DecidedTopic(host string) string { return "to:" + host + ":decided" }
