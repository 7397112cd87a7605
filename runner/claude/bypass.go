package claude

import (
	"slices"
	"strings"
)

// The words by which Claude Code skips its questions stand in this file only. None of them is ever sent; they are known
// so that the program is not used when it says that one of them is in force, and so that no configuration brings one in.

// The program's modes, as they stand on the wire. Others exist; these are the only ones that a session may be in.
const (
	modeDefault = "default"
	modePlan    = "plan"
	// modeAuto lets the program's own reviewer decide. It is no bypass, as long as the hook answers what the reviewer may
	// not decide.
	modeAuto = "auto"
)

// loosens reports whether a mode of the program may skip questions that the gate has not answered: acceptEdits (which
// also runs rm and mv unasked), bypassPermissions, and whatever is not known here. dontAsk, which refuses everything, is
// not looser, but a session in it is of no use.
func loosens(mode string) bool {
	return !slices.Contains([]string{modeDefault, modePlan, modeAuto}, mode)
}

// bypassWords are parts of options and of names in the environment that skip questions or loosen what is asked.
func bypassWords() []string {
	return []string{
		"dangerously", "DANGEROUSLY", "skip-permissions", "SKIP_PERMISSIONS", "bypassPermissions", "acceptEdits", "--allowedTools",
		"--allowed-tools", "IS_SANDBOX", "permission-prompts",
	}
}

// bypasses reports whether a word of a command line or of an environment is one that skips questions.
func bypasses(word string) bool {
	return slices.ContainsFunc(bypassWords(), func(w string) bool { return strings.Contains(word, w) })
}

// reserved reports whether a name of the environment is decided here and by nobody else: where the program looks for its
// configuration, and what loosens it.
func reserved(name string) bool {
	switch name {
	case "HOME", "CLAUDE_CONFIG_DIR", "TMPDIR", "CLAUDE_CODE_TMPDIR", "CLAUDECODE", "CLAUDE_CODE_CHILD_SESSION", "NODE_OPTIONS":
		return true
	}
	return bypasses(name)
}
