package bridge

import (
	"slices"
	"strings"
	"time"

	"drawbridge/runner"
)

const (
	maxRefusals = 20
	maxChanges  = 50
	maxSaid     = 8 << 10
)

// Summary is what a host has seen of a turn: counted by itself from the asks and the items, never read from the agent's
// words. It is bounded; the counts are not.
type Summary struct {
	Asked    int       `json:"asked,omitempty"`   // how often a person, a rule or a reviewer was needed; plain reads are not counted
	Allowed  int       `json:"allowed,omitempty"` // of those
	Refused  int       `json:"refused,omitempty"`
	Refusals []Refusal `json:"refusals,omitempty"` // the first of them
	Held     int       `json:"held,omitempty"`     // items that the runtime itself reports as refused
	Commands int       `json:"commands,omitempty"` // that were run
	Changed  int       `json:"changed,omitempty"`  // files, as the runtime reported them
	// Changes are the first of them, without their diffs.
	Changes []runner.FileChange `json:"changes,omitempty"`
	Said    string              `json:"said,omitempty"` // the end of the agent's last message
}

// Refusal is something that the agent was not allowed to do.
type Refusal struct {
	Kind   runner.QuestionKind `json:"kind"`
	What   string              `json:"what"` // the first line of it
	Source runner.Source       `json:"source"`
	By     string              `json:"by,omitempty"` // the person's name, for SourceUser
	// Withdrawn says that the question went with its turn.
	Withdrawn bool `json:"withdrawn,omitempty"`
}

// Lacking reports whether something was refused without a person having refused it: nobody answered, or the mode or the
// reviewer said no. What a person refused is decided.
func (s *Summary) Lacking() bool {
	if s == nil {
		return false
	}
	people := 0
	for _, r := range s.Refusals {
		// A proposal that is not made keeps nothing of the work from being done.
		if r.Source == runner.SourceUser || r.Withdrawn || r.Kind == runner.KindProposal {
			people++
		}
	}
	return s.Refused > people || s.Refused == 0 && s.Held > 0
}

// answered counts an answer that the agent got.
func (r *recorder) answered(q runner.Question, a runner.Answer, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen.answer(q, a, err)
}

func (s *Summary) answer(q runner.Question, a runner.Answer, err error) {
	if err == nil && a.Allows() {
		if a.Source != runner.SourceRule { // what the table allows was not asked of anybody
			s.Asked++
			s.Allowed++
		}
		return
	}
	s.Asked++
	s.Refused++
	if len(s.Refusals) >= maxRefusals {
		return
	}
	what := q.Command
	if what == "" {
		what = q.Title
	}
	if what == "" && len(q.Files) > 0 {
		what = q.Files[0].Path
	}
	if what == "" {
		what = q.Tool
	}
	what, _, _ = strings.Cut(strings.TrimSpace(what), "\n")
	s.Refusals = append(s.Refusals, Refusal{
		Kind: q.Kind, What: front(what, maxHint), Source: a.Source, By: a.By, Withdrawn: a.Decision == runner.Withdrawn,
	})
}

func (s *Summary) item(it runner.Item) {
	switch {
	case it.Status == runner.ItemRefused:
		s.Held++
	case it.Status == runner.ItemFailed && it.Kind == runner.ItemFileChange:
		// it has changed nothing
	case it.Kind == runner.ItemCommand:
		s.Commands++
	case it.Kind == runner.ItemFileChange:
		for _, f := range it.Files {
			s.Changed++
			if len(s.Changes) < maxChanges {
				s.Changes = append(s.Changes, runner.FileChange{Path: front(f.Path, maxHint), Op: f.Op, Added: f.Added, Removed: f.Removed})
			}
		}
	}
}

// summary is what was seen of the turn, once it has ended.
func (r *recorder) summary() *Summary {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.seen
	s.Said = tail(string(r.said), maxSaid)
	return &s
}

// Plus returns what was seen in both.
func (s *Summary) Plus(o Summary) Summary {
	out := *s
	return *out.add(o)
}

func (s *Summary) add(o Summary) *Summary {
	s.Asked, s.Allowed, s.Refused = s.Asked+o.Asked, s.Allowed+o.Allowed, s.Refused+o.Refused
	s.Held += o.Held
	s.Commands, s.Changed = s.Commands+o.Commands, s.Changed+o.Changed
	s.Refusals = append(slices.Clip(s.Refusals), o.Refusals[:min(len(o.Refusals), max(0, maxRefusals-len(s.Refusals)))]...)
	s.Changes = append(slices.Clip(s.Changes), o.Changes[:min(len(o.Changes), max(0, maxChanges-len(s.Changes)))]...)
	if o.Said != "" {
		s.Said = o.Said
	}
	return s
}

// Quiet is the part of the day in which asks of a task wait silently: from From to To, in minutes since midnight of Zone;
// over midnight if From is later than To.
type Quiet struct {
	From int    `json:"from"`
	To   int    `json:"to"`
	Zone string `json:"zone"` // as in the IANA database
}

// Until is when the quiet that rules at now ends, and false if none does. A zone that is not known is UTC.
func (q *Quiet) Until(now time.Time) (time.Time, bool) {
	if q == nil || q.From == q.To {
		return time.Time{}, false
	}
	loc, err := time.LoadLocation(q.Zone)
	if err != nil {
		loc = time.UTC
	}
	local := now.In(loc)
	at := local.Hour()*60 + local.Minute()
	within := at >= q.From && at < q.To
	day := 0
	if q.From > q.To {
		within = at >= q.From || at < q.To
		if at >= q.From {
			day = 1
		}
	}
	if !within {
		return time.Time{}, false
	}
	return time.Date(local.Year(), local.Month(), local.Day()+day, q.To/60, q.To%60, 0, 0, loc), true
}

// wait says until when a person has time for an ask of this work that is put at now, and whether it waits silently.
func (w Work) wait() func(now time.Time, usual time.Duration) (time.Time, bool) {
	return func(now time.Time, usual time.Duration) (time.Time, bool) {
		patience := w.Patience
		if patience <= 0 {
			patience = usual
		}
		if end, quiet := w.Quiet.Until(now); quiet && !w.Attended {
			return end.Add(patience), true
		}
		return now.Add(patience), false
	}
}
