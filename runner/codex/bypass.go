package codex

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

// Looser names the cells of the mode's table in which codex is looser than the table says, in words for people. There is
// no other.
func Looser() []string {
	return []string{
		"A command in the sandbox reads any file of the workspace without being asked, .env files and keys too.",
		"In auto-accept-edits and auto, a command in the sandbox deletes files of the workspace without being asked (rm -f is asked).",
		"In auto-accept-edits and auto, files that the table protects by their name alone, below the workspace's root, are " +
			"changed without being asked. Those at its root, .git and the agents' folders are asked.",
		"A command in the sandbox that is named like publishing (git push) is run without being asked; it has no network there.",
	}
}
