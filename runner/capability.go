package runner

import (
	"slices"

	"drawbridge/policy"
)

// State is what is known of a runtime on a host.
type State string

// The states of a Capability.
const (
	Checking State = "checking"
	Failed   State = "failed"
	Ready    State = "ready"
)

// Cause is why a runtime is Failed, in one word. Problem has the whole sentence.
type Cause string

// The causes. An unknown one, or none, counts as CauseProbe.
const (
	CauseMissing Cause = "missing"            // the program is not there
	CauseOld     Cause = "too_old"            // older than Oldest
	CauseVersion Cause = "version_unreadable" // it does not say its version
	CauseLogin   Cause = "not_logged_in"
	CauseUnheld  Cause = "unheld" // it does not let its actions be decided
	CauseProbe   Cause = "probe_failed"
)

// Final reports whether nothing can be run while it is so. After a probe that merely failed a turn may still be tried.
func (c Cause) Final() bool {
	switch c {
	case CauseMissing, CauseOld, CauseVersion, CauseLogin, CauseUnheld:
		return true
	case CauseProbe:
	}
	return false
}

// Capability is what a runtime can do on a host. For each "no" there is a reason in Why, under the name of the field in
// JSON, of the mode, or one of the names beside Difference, in words that can be shown to a person.
type Capability struct {
	State   State  `json:"state"`
	Version string `json:"version,omitempty"` // of the program, as it says; empty where there is none or it can't be read
	// Problem says, for Failed, what is wrong and what to do about it; Cause says it in a word.
	Problem string `json:"problem,omitempty"`
	Cause   Cause  `json:"cause,omitempty"`
	// Modes holds the effective mode for each mode that can be asked for; never a looser one.
	Modes     map[policy.Mode]policy.Mode `json:"modes,omitempty"`
	Plan      bool                        `json:"plan"`
	Questions bool                        `json:"questions"`
	Steer     bool                        `json:"steer"`
	Rewind    bool                        `json:"rewind"`
	// Sandbox says that a sandbox of the runtime's own was seen to keep a command from writing.
	Sandbox bool              `json:"sandbox,omitempty"`
	Why     map[string]string `json:"why,omitempty"`
	// Models are those that can be chosen, MaxModels at most; empty where the runtime has no list.
	Models []Model `json:"models,omitempty"`
	// Reviewer names, for people, the runtime's own reviewer, where the owner has chosen it and it can be used.
	Reviewer string `json:"reviewer,omitempty"`
	// Looser names the cells of the table in which the runtime is looser than it; there is no unnamed one.
	Looser []Difference `json:"looser,omitempty"`
	// Stricter names those in which it asks or refuses more.
	Stricter []Difference `json:"stricter,omitempty"`
}

// MaxModels bounds Capability.Models: some endpoints have hundreds.
const MaxModels = 200

// Model is one that a runtime can use, as its program or endpoint lists it.
type Model struct {
	ID   string `json:"id"`             // what Input.Model takes
	Name string `json:"name,omitempty"` // for people, where it is not the id
	// Default says that it is used where none is chosen.
	Default bool `json:"default,omitempty"`
	// Efforts are the efforts that it takes, lowest first; Effort is the one that it has where none is chosen.
	Efforts []string `json:"efforts,omitempty"`
	Effort  string   `json:"effort,omitempty"`
}

// Model returns the model of an id, or for an empty one the one that is used then; false if it is not listed.
func (c Capability) Model(id string) (Model, bool) {
	i := slices.IndexFunc(c.Models, func(m Model) bool { return m.ID == id || id == "" && m.Default })
	if i < 0 {
		return Model{}, false
	}
	return c.Models[i], true
}

// Cell is what becomes of an action of a category with this runtime, and whether one of its tools does such actions: what
// the table says, except where Looser or Stricter name a difference.
func (c Capability) Cell(m policy.Mode, i policy.Interaction, of policy.Category) (v policy.Verdict, reached bool) {
	if c.Why[string(of)] != "" {
		return policy.Deny, false
	}
	v = policy.Decide(m, i, of)
	for _, d := range c.Stricter {
		if !d.Covers(m, i, of) {
			continue
		}
		if d.To != "" {
			v = d.To
		} else if v == policy.Allow {
			v = policy.Ask
		}
	}
	for _, d := range c.Looser { // behind the others: a deed that is let through counts more than one that is not
		if !d.Covers(m, i, of) {
			continue
		}
		if d.To != "" {
			v = looserOf(v, d.To)
		} else {
			v = policy.Allow
		}
	}
	return v, true
}

func looserOf(a, b policy.Verdict) policy.Verdict {
	order := []policy.Verdict{policy.Allow, policy.Review, policy.Ask, policy.Deny}
	return order[min(slices.Index(order, a), slices.Index(order, b))]
}
