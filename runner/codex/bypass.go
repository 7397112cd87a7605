package codex

import (
	"drawbridge/policy"
	"drawbridge/runner"
)

// Words by which codex leaves its sandbox, stops asking or remembers an answer for good. They stand here and nowhere
// else, each with what it is used for; a test holds the rest of the package to that.
const (
	// wordFull turns the sandbox off. It is used for full-access alone, and only together with wordAskAlways, so that
	// every action is still asked and the table answers.
	wordFull = "dangerFullAccess"
	// wordNever stops all asking. It is never sent; an echo that holds it is looser than anything that was asked for.
	wordNever = "never"
	// wordAcceptSession, wordAmendment and wordNetworkAmendment are answers that codex remembers, the latter two in files
	// that hold for all sessions. They are never sent: grants are ours.
	wordAcceptSession    = "acceptForSession"
	wordAmendment        = "acceptWithExecpolicyAmendment"
	wordNetworkAmendment = "applyNetworkPolicyAmendment"
)

// neverSent are the words that must not be in any frame of ours.
func neverSent() []string {
	return []string{`"` + wordNever + `"`, wordAcceptSession, wordAmendment, wordNetworkAmendment, `"danger-full-access"`, `"persist"`}
}

// looserCells names the cells of the mode's table in which codex is looser than the table says. There is no other.
func looserCells() []runner.Difference {
	all := []policy.Mode{policy.ApprovalRequired, policy.AutoAcceptEdits, policy.Auto}
	editing := all[1:]
	return []runner.Difference{
		{Category: policy.Secret, Modes: all, What: "A command in Codex's sandbox reads any file of the workspace unasked, .env files and keys too."},
		{Category: policy.Delete, Modes: editing, What: "A command in Codex's sandbox deletes files of the workspace unasked; rm -f is asked."},
		{Category: policy.Protected, Modes: editing, What: "A protected file (CI definitions, instructions for agents, .env) is written unasked " +
			"where it was not there when the turn began, or lies more than three folders deep."},
		{Category: policy.Publish, Modes: all, Plan: true, What: "A command in Codex's sandbox that looks like publishing is run unasked; it has no network there."},
	}
}

// stricterCells names the cells in which codex asks or refuses more than the table.
func stricterCells() []runner.Difference {
	return []runner.Difference{
		{Category: policy.ReadOutside, Modes: policy.Modes()[:3], Plan: true, What: "Files outside of the workspace are not there for commands in the sandbox; reading them needs a command that leaves it."},
		{Category: policy.Fetch, Modes: policy.Modes(), Plan: true, What: "Codex has no tool that only fetches; its hosted search is switched off."},
	}
}
