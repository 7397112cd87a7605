package runnertest

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"

	"drawbridge/policy"
	"drawbridge/runner"
)

const reportVersion = 1

// Report is what the suite saw of a runtime.
type Report struct {
	V       int    `json:"v"`
	Version string `json:"version,omitempty"` // of the program
	Lines   []Line `json:"lines"`
	// Unreached are the categories that no tool of the runtime reaches.
	Unreached []Unreached         `json:"unreached,omitempty"`
	Looser    []runner.Difference `json:"looser,omitempty"`
	Stricter  []runner.Difference `json:"stricter,omitempty"`
	// Reviews are the states of the runtime's own reviewer.
	Reviews []ReviewState `json:"reviews,omitempty"`
}

// Line is what was seen of one deed.
type Line struct {
	Deed     string                                      `json:"deed"`
	Category policy.Category                             `json:"category"`
	Seen     map[policy.Interaction]map[policy.Mode]Seen `json:"seen"`
}

// Seen is what was seen of a deed in one cell.
type Seen struct {
	Outcome Outcome `json:"outcome"`
	By      string  `json:"by"` // "gate" if it was asked at all; else "runtime", which ran or refused by itself
}

// Unreached is a category that nothing of the runtime reaches.
type Unreached struct {
	Category policy.Category `json:"category"`
	Why      string          `json:"why"`
}

// ReviewState is a state of a runtime's own reviewer: the frame that tells it, or why nothing does.
type ReviewState struct {
	State      string `json:"state"`
	Frame      string `json:"frame,omitempty"`
	Impossible string `json:"impossible,omitempty"`
}

func (e *exam) reviewStates() []ReviewState {
	var list []ReviewState
	for _, r := range e.reviews {
		list = append(list, ReviewState{r.state, r.frame, r.impossible})
	}
	return list
}

// cell is the loosest outcome of all deeds of a category, and whether there is one.
func (r Report) cell(c policy.Category, m policy.Mode, i policy.Interaction) (Outcome, bool) {
	worst, found := Refused, false
	for _, l := range r.Lines {
		s, ok := l.Seen[i][m]
		if l.Category != c || !ok {
			continue
		}
		if found = true; s.Outcome.looser(worst) {
			worst = s.Outcome
		}
	}
	return worst, found
}

// looser reports whether a cell was seen to be looser than the table.
func (r Report) looser(c policy.Category, m policy.Mode, i policy.Interaction) bool {
	seen, ok := r.cell(c, m, i)
	return ok && seen.looser(outcomeOf(policy.Decide(m, i, c)))
}

// golden compares the report with the file that keeps it, or rewrites that.
func (e *exam) golden(r Report) {
	e.Helper()
	if e.file == "" {
		return
	}
	b, err := json.MarshalIndent(r, "", "\t")
	if err != nil {
		e.Fatalf("%v", err)
	}
	b = append(b, '\n')
	if e.record {
		if err := os.MkdirAll(filepath.Dir(e.file), 0o755); err != nil {
			e.Fatalf("%v", err)
		}
		if err := os.WriteFile(e.file, b, 0o644); err != nil {
			e.Fatalf("%v", err)
		}
		return
	}
	if kept, err := os.ReadFile(e.file); err != nil || !bytes.Equal(kept, b) {
		e.Errorf("%s (%v) is not what was seen; the tests' flag -record rewrites it:\n%s", e.file, err, b)
	}
}
