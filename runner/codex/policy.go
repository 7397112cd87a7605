package codex

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"drawbridge/policy"
	"drawbridge/runner"
)

// The approval policies of codex that are used.
const (
	// askEscalations runs what the sandbox holds unasked, and asks for what is to leave it.
	askEscalations = "on-request"
	// askAlways asks for every command and every patch. Its accept may leave the sandbox.
	askAlways = "untrusted"
)

// Who codex sends its questions to.
const (
	reviewerUser = "user" // us
	// reviewerAuto is codex's own reviewer. It is used in the mode auto, and only where the owner chose it.
	reviewerAuto = "auto_review"
)

// The permission profiles, defined by start options so that nothing is written to anybody's configuration.
const (
	profilePlan = "botplan"
	profileRead = "botread"
	profileEdit = "botedit"
)

// held is what codex is told of a policy.
type held struct {
	approval string
	profile  string // empty for no sandbox
	reviewer string
	plan     bool
}

// heldTo translates a policy. What is unknown becomes the strictest. Plan is read-only in every mode, and what it would
// ask is answered by the gate. reviewed says that codex's own reviewer may be used.
func heldTo(p runner.Policy, reviewed bool) held {
	h := held{approval: askEscalations, profile: profileRead, reviewer: reviewerUser}
	if p.Interaction != policy.Default {
		h.profile, h.plan = profilePlan, true
		return h
	}
	switch p.Mode {
	case policy.AutoAcceptEdits:
		h.profile = profileEdit
	case policy.Auto:
		h.profile = profileEdit
		if reviewed {
			h.reviewer = reviewerAuto
		}
	case policy.FullAccess:
		h.approval, h.profile = askAlways, ""
	case policy.ApprovalRequired:
	}
	return h
}

// params is the policy in full.
func (h held) params(model, effort string) policyParams {
	p := policyParams{ApprovalPolicy: h.approval, ApprovalsReviewer: h.reviewer, Permissions: h.profile}
	if h.profile == "" {
		p.SandboxPolicy = &sandboxPolicy{Type: wordFull}
	}
	mode := "default"
	if h.plan {
		mode = "plan"
	}
	if model != "" {
		settings := collaborationSettings{Model: model}
		if effort != "" {
			settings.Effort = &effort // or else the mode of collaboration would take it away
		}
		p.Collaboration = &collaborationOut{Mode: mode, Settings: settings}
	}
	return p
}

// echo is what codex says a thread is held to.
type echo struct {
	cwd      string
	approval string // the JSON of it where it is no string
	reviewer string
	sandbox  string
	network  bool
	profile  string
	mode     string // of collaboration
}

func (o threadOpened) echo() echo {
	return newEcho(o.Cwd, o.ApprovalPolicy, o.ApprovalsReviewer, o.Sandbox, o.ActivePermissionProfile, o.Collaboration)
}

func (u settingsUpdated) echo() echo {
	s := u.ThreadSettings
	return newEcho(s.Cwd, s.ApprovalPolicy, s.ApprovalsReviewer, s.SandboxPolicy, s.ActivePermissionProfile, s.Collaboration)
}

func newEcho(cwd string, approval json.RawMessage, reviewer string, sandbox sandboxPolicy, profile *profileID, mode *collaborationIn) echo {
	e := echo{cwd: cwd, approval: string(approval), reviewer: reviewer, sandbox: sandbox.Type, network: sandbox.NetworkAccess}
	var word string
	if json.Unmarshal(approval, &word) == nil {
		e.approval = word
	}
	if len(sandbox.WritableRoots) > 0 {
		e.sandbox += " " + strings.Join(sandbox.WritableRoots, " ")
	}
	if profile != nil {
		e.profile = profile.ID
	}
	if mode != nil {
		e.mode = mode.Mode
	}
	return e
}

// comparison is what an echo is to what was asked for.
type comparison int

const (
	same comparison = iota
	stricter
	looser // or not comparable, which is as bad
)

// compare says what an echo is to h, for a thread in folder. Anything that is not known to be as strict is looser: a
// turn is not started under it. The sandbox's summary in the echo is not looked at where a profile stands, because it is
// made from the profile; without a profile it is.
func (h held) compare(e echo, folder string) comparison {
	if e.cwd != folder || e.reviewer != reviewerUser && e.reviewer != h.reviewer || e.network && e.sandbox != wordFull {
		return looser
	}
	got := held{approval: e.approval, profile: e.profile, reviewer: e.reviewer, plan: e.mode == "plan"}
	switch {
	case e.profile == "" && e.sandbox != wordFull, e.profile != "" && e.sandbox == wordFull:
		return looser // a sandbox of codex's own shows all files; a profile without a sandbox is none
	case got == h:
		return same
	case got.plan != h.plan:
		return looser // the mode of collaboration says what the agent is told; the other one is the wrong one
	case got.approval != askEscalations && got.approval != askAlways:
		return looser
	case h.approval == askAlways && got.approval != askAlways:
		return looser
	}
	order := []string{profilePlan, profileRead, profileEdit, ""}
	g, w := slices.Index(order, got.profile), slices.Index(order, h.profile)
	if g < 0 || g > w {
		return looser
	}
	return stricter
}

// describe is an echo in words for an error.
func (e echo) describe() string {
	where := e.profile
	if where == "" {
		where = e.sandbox
	}
	s := fmt.Sprintf("%s, %s, reviewer %s", e.approval, where, e.reviewer)
	if e.mode != "" {
		s += ", " + e.mode
	}
	if e.network {
		s += ", with network"
	}
	return s
}

// effective is the policy that a stricter echo comes to.
func (e echo) effective(asked runner.Policy) runner.Policy {
	p := asked
	switch e.profile {
	case profilePlan, profileRead:
		p.Mode = asked.Mode.AtMost(policy.ApprovalRequired)
	case profileEdit:
		p.Mode = asked.Mode.AtMost(policy.AutoAcceptEdits)
	}
	return p
}

// binds reports whether a turn that runs under h is also held to p: by its sandbox, because the gate answers the rest by
// the policy of the moment. A command that runs unasked in a sandbox that p would not give is the one thing that no
// answer of ours reaches.
func (h held) binds(p runner.Policy) bool {
	now := heldTo(p, true)
	if h.reviewer != now.reviewer && h.reviewer != reviewerUser {
		return false // what codex's own reviewer allows is not asked
	}
	return h.approval == askAlways || h.profile == now.profile || h.profile == profilePlan || h.profile == profileRead && !now.plan
}
