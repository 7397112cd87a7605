package runner

import (
	"slices"

	"drawbridge/policy"
)

// Difference is a column of the table in which a runtime does not do what the table says.
type Difference struct {
	Category policy.Category `json:"category"`
	Modes    []policy.Mode   `json:"modes,omitempty"` // in which it is so while the interaction is default
	Plan     bool            `json:"plan,omitempty"`  // it is so in plan, too
	// To is what becomes of the action instead of what the table says, where that is always the same; what is looser runs
	// where it is empty.
	To policy.Verdict `json:"to,omitempty"`
	// Part says that it is so of only a part of what the category holds, which What names and the table of the suite has no row
	// for: the rest is done as the table says.
	Part bool `json:"part,omitempty"`
	// What says, for people, what is done unasked, or what is asked or refused although the table allows it.
	What string `json:"what"`
}

// Covers reports whether d speaks of a cell as a whole.
func (d Difference) Covers(m policy.Mode, i policy.Interaction, c policy.Category) bool {
	if d.Part {
		return false
	}
	if i != policy.Default {
		return d.Category == c && d.Plan
	}
	return d.Category == c && slices.Contains(d.Modes, m)
}

// What a runtime may not be able to do beside what has a field in Capability: the names under which Why says it. A
// category that no tool of the runtime reaches stands there under its own name.
const (
	WhyParallel   = "parallel"   // several questions open at the same time
	WhyMCP        = "mcp"        // tools of external MCP servers
	WhyBackground = "background" // work that outlives its turn
	WhyDaemons    = "daemons"    // ending what a command detached from itself
	WhyReview     = "review"     // a reviewer of the runtime's own
	WhySandbox    = "sandbox"    // a sandbox around commands
	WhyCrash      = "crash"      // a program of its own that could crash
	WhyFrames     = "frames"     // a program of its own that talks to us

	WhyAgents   = "agents"           // sub-agents
	WhyMultiple = "multiple"         // questions that take several of their options
	WhySecrets  = "secret_questions" // questions whose answer is a secret
	WhyProposes = "proposals"        // a tool by which the agent proposes tasks
)
