package task

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"drawbridge/approvals"
	"drawbridge/internal/store"
	"drawbridge/policy"
	"drawbridge/runner"
)

// OriginProposal is that of a task that an agent proposed and a person made.
const OriginProposal Origin = "proposal"

// Proposed is what an agent's proposal becomes if a person makes it at this moment.
type Proposed struct {
	Chat string // whose it is: where it is asked may be another one
	Work
	Spec   *Spec // nil for a task that begins at once
	Zone   string
	parent string
}

// Proposed says what the proposal of an approval would become now, or why it can't be made. Its mode is the strictest of
// what the proposal says, of the mode in which it was asked, and of the chat's. Times that are meant from now on are meant
// from when it was asked on. zone is in which they were shown; empty for the chat's. Errors as AddSchedule, and ErrNotFound
// where the task that proposes it is gone.
func (s *Service) Proposed(t *store.Txn, r approvals.Record, zone string) (Proposed, error) {
	p := r.Question.Proposal
	if p == nil {
		return Proposed{}, fmt.Errorf("task: proposal of %s: there is none", r.ID)
	}
	out := Proposed{Chat: r.Chat}
	if id, ofTask := OfTurn(r.Turn); ofTask {
		task, err := s.Task(t, id)
		if err != nil {
			return Proposed{}, err
		}
		out.Chat, out.parent = task.Chat, task.ID
	}
	set, err := s.Settings(t, out.Chat)
	if err != nil {
		return Proposed{}, err
	}
	if out.Zone = zone; zone == "" {
		out.Zone = set.Zone
	}
	c, err := s.cfg.Chats.Get(t, out.Chat)
	if err != nil {
		return Proposed{}, err
	}
	out.Work, err = s.prepared(t, out.Chat, Work{
		Title: p.Title, Steps: p.Steps, Host: r.ID.Host(), Project: r.Project, Runtime: r.Runtime, Mode: proposedMode(r).AtMost(c.Mode),
	})
	if err != nil {
		return Proposed{}, err
	}
	now, err := t.Now()
	if err != nil {
		return Proposed{}, err
	}
	if out.Spec, err = ProposedSpec(*p, out.Zone, r.Created); err != nil {
		return Proposed{}, err
	}
	if out.Spec == nil {
		open, err := s.Tasks(t, out.Chat, Filter{States: []State{Pending, InProgress}})
		if err == nil && len(open) >= MaxOpen {
			err = ErrTooMany
		}
		return out, err
	}
	loc, err := Zone(out.Zone)
	if err != nil {
		return Proposed{}, err
	}
	if err := out.Spec.Check(loc, now); err != nil {
		return Proposed{}, err
	}
	items, err := t.Range(schedulesIndex(out.Chat), 0, maxScore, MaxSchedules)
	if err == nil && len(items) >= MaxSchedules {
		err = ErrTooMany
	}
	return out, err
}

// proposedMode is the loosest mode that a proposal is made under.
func proposedMode(r approvals.Record) policy.Mode {
	if m := r.Question.Proposal.Mode; m != "" {
		return r.Mode.AtMost(m)
	}
	return r.Mode
}

// ProposedSpec reads the time of a proposal that was made at a moment; nil for one that is done at once. Errors as those of
// ParseCron.
func ProposedSpec(p runner.Proposal, zone string, at time.Time) (*Spec, error) {
	var spec Spec
	var err error
	switch p.When {
	case "":
		return nil, nil //nolint:nilnil // a task has no times
	case runner.ProposedCron:
		spec, err = ParseCron(p.Time, zone, at)
	case runner.ProposedAt:
		spec, err = ParseAt(p.Time, zone, at)
	case runner.ProposedIn:
		spec, err = ParseIn(p.Time, at)
	case runner.ProposedEvery:
		every, until, _ := strings.Cut(p.Time, " until ")
		spec, err = ParseEvery(strings.TrimSpace(every), strings.TrimSpace(until), zone, at)
	default:
		err = &SpecError{Err: ErrSpec}
	}
	return &spec, err
}

// MakeProposed makes what an approval proposes, in the commit of the decision that allows it. Its id is the approval's, so
// that it is made once; who decided has made it. Errors as Proposed.
func (s *Service) MakeProposed(t *store.Txn, r approvals.Record, d approvals.Decision, zone string) error {
	if d.Decision != runner.Allowed || d.Source != runner.SourceUser || !d.Gone.IsZero() {
		return nil
	}
	p, err := s.Proposed(t, r, zone)
	if err != nil {
		return err
	}
	p.By, p.Name = strconv.FormatInt(d.By, 10), d.Name
	if p.Spec != nil {
		_, err = s.AddSchedule(t, p.Chat, NewSchedule{ID: r.ID.Made(), Work: p.Work, Spec: *p.Spec, Zone: p.Zone})
		return err
	}
	_, err = s.Add(t, p.Chat, NewTask{ID: r.ID.Made(), Work: p.Work, Parent: p.parent, Origin: OriginProposal})
	return err
}
