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
	editing := []policy.Mode{policy.AutoAcceptEdits, policy.Auto}
	confined := append([]policy.Mode{policy.ApprovalRequired}, editing...)
	return []runner.Difference{
		{Category: policy.Secret, Modes: confined, What: "A command in Codex's sandbox reads any file of the workspace unasked, .env files and keys too."},
		{Category: policy.Delete, Modes: editing, What: "A command in Codex's sandbox deletes files of the workspace unasked; rm -f is asked."},
		{Category: policy.Protected, Modes: editing, What: "A protected file (CI definitions, instructions for agents, .env) is written unasked " +
			"where it was not there when the turn began, or lies more than three folders deep."},
		{Category: policy.Publish, Modes: editing, What: "A command in Codex's sandbox that looks like publishing is run unasked; it has no network there."},
	}
}

// resourceCells names what is looser where MCP servers are configured.
func resourceCells() []runner.Difference {
	return []runner.Difference{{
		Category: policy.Unknown, Modes: policy.Modes(), Plan: true, Part: true,
		What: "What an MCP server offers as a resource is read unasked: Codex has no question for it. The server's tools are asked.",
	}}
}

// reviewedCells names those that are looser where the owner has chosen codex's own reviewer: the table leaves them to a
// person, and codex, which sends all its questions to one side, has them reviewed. Measured: a push that asks to leave the
// sandbox, patches outside, rm -f. What is read, written, deleted or published in the sandbox is not even reviewed, see
// looserCells.
func reviewedCells() []runner.Difference {
	var list []runner.Difference
	for _, c := range []policy.Category{
		policy.Credential, policy.Publish, policy.Payment, policy.Secret, policy.Protected, policy.System, policy.Delete, policy.Unknown,
	} {
		list = append(list, runner.Difference{
			Category: c, Modes: []policy.Mode{policy.Auto}, To: policy.Review,
			What: "Codex's own reviewer, which the owner has chosen, decides in a person's place about all that Codex would ask, also where it uses " +
				"credentials, publishes, spends money, reads secrets, deletes or changes the system: Codex cannot be made to ask a person about a part of it.",
		})
	}
	return list
}

// stricterCells names the cells in which codex asks or refuses more than the table.
func stricterCells() []runner.Difference {
	reading := []policy.Mode{policy.ApprovalRequired}
	editing := []policy.Mode{policy.AutoAcceptEdits, policy.Auto}
	confined := append([]policy.Mode{policy.ApprovalRequired}, editing...)
	const asks = " fails in Codex's sandbox, and is asked when the agent asks for it to leave the sandbox."
	return []runner.Difference{
		{Category: policy.ReadOutside, Modes: confined, Plan: true, To: policy.Deny, What: "A command that reads files outside of the workspace" + asks},
		{Category: policy.Network, Modes: confined, What: "A command that needs the network" + asks},
		{Category: policy.Write, Modes: reading, What: "A command that writes" + asks},
		{Category: policy.Delete, Modes: reading, What: "A command that deletes" + asks},
		{Category: policy.Protected, Modes: confined, What: "A command that writes protected files that are there" + asks},
		{Category: policy.Publish, Modes: reading, What: "A command that publishes" + asks},
	}
}
