package bot

import (
	"errors"
	"strconv"
	"strings"

	"drawbridge/approvals"
	"drawbridge/bridge/task"
	"drawbridge/formatting"
	"drawbridge/internal/store"
	"drawbridge/runner"
)

// propose notes, on the card of a proposal, in which zone its times are shown and to which mode it would be held. One that
// can't be made is not asked at all: it is refused at once, and the agent is told why. It reports whether that is so.
func (b *Bot) propose(t *store.Txn, r approvals.Record, c *card) (impossible bool, err error) {
	if r.Question.Kind != runner.KindProposal {
		return false, nil
	}
	p, err := b.cfg.Tasks.Proposed(t, r, c.Zone)
	if err == nil {
		c.Zone, c.Held = p.Zone, p.Mode
		return false, nil
	}
	why, err := b.unmade(t, r, c.Zone, err)
	if err != nil {
		return false, err
	}
	_, err = b.cfg.Approvals.RefuseIn(t, r.ID, why)
	return true, err
}

// unmade is why a proposal can't be made, in words. What is not the agent's mistake stays an error.
func (b *Bot) unmade(t *store.Txn, r approvals.Record, zone string, err error) (string, error) {
	if errors.Is(err, task.ErrNotFound) {
		return textProposerGone, nil
	}
	if zone == "" {
		set, err := b.cfg.Tasks.Settings(t, r.Chat)
		if err != nil {
			return "", err
		}
		zone = set.Zone
	}
	return workFault(zone, err)
}

// Make is approvals.Config.Make of a gateway: the task or the schedule is made in the commit that decides it.
func (b *Bot) Make(t *store.Txn, r approvals.Record, d approvals.Decision) (problem string, err error) {
	c, _, err := store.Get[card](t, cardKey(r.ID))
	if err != nil {
		return "", err
	}
	if err := b.cfg.Tasks.MakeProposed(t, r, d, c.Zone); err != nil {
		return b.unmade(t, r, c.Zone, err)
	}
	return "", nil
}

// proposalHead says what would be made, when, where and under what.
func proposalHead(m *formatting.Builder, r approvals.Record, c card) {
	p := r.Question.Proposal
	if r.Question.Kind != runner.KindProposal || p == nil {
		return
	}
	m.Bold(oneLine(p.Title)).Text("\n")
	spec, err := task.ProposedSpec(*p, c.Zone, r.Created)
	loc, zoneErr := task.Zone(c.Zone)
	switch {
	case err != nil || zoneErr != nil: // then it is refused, and not shown
		m.Text(strings.TrimPrefix(proposedTime(*p), ", "))
	case spec == nil:
		m.Text(textNow)
	default:
		m.Text(upper(specWords(*spec, loc)) + " (" + loc.String() + ")" + proposedTime(*p))
		m.Text("\n" + textNext + coming(spec.Times(loc, r.Created, comingTimes), loc))
	}
	m.Text("\n" + textProject).Code(oneLine(r.Project))
	if c.Held != "" {
		m.Text(textHeld).Bold(string(c.Held))
	}
	m.Text("\n")
}

// proposedTime is the time of a proposal as the agent wrote it.
func proposedTime(p runner.Proposal) string {
	if p.When == "" {
		return ""
	}
	return ", written as “" + oneLine(string(p.When)+" "+p.Time) + "”"
}

// proposalSteps are the prompts that the task's agent would be given, in full.
func proposalSteps(m *formatting.Builder, q runner.Question) {
	if q.Proposal == nil {
		return
	}
	for i, step := range q.Proposal.Steps {
		if len(q.Proposal.Steps) > 1 {
			m.Text("Step " + strconv.Itoa(i+1) + ":\n")
		}
		m.Pre("", formatting.Visible(step)).Text("\n")
	}
}

// wholeProposal is all of a proposal as a text.
func wholeProposal(q runner.Question) string {
	p := q.Proposal
	if p == nil {
		return ""
	}
	var s strings.Builder
	s.WriteString(oneLine(p.Title) + "\n")
	if p.When != "" {
		s.WriteString(oneLine(string(p.When)+" "+p.Time) + "\n")
	}
	if p.Mode != "" {
		s.WriteString(textMode + string(p.Mode) + "\n")
	}
	for i, step := range p.Steps {
		s.WriteString("\nStep " + strconv.Itoa(i+1) + ":\n" + formatting.Visible(step) + "\n")
	}
	return s.String()
}

// proposalOutcome is what came of a proposal; empty where it is what comes of any question. What was made is made whatever
// became of the agent that had proposed it.
func proposalOutcome(q runner.Question, d *approvals.Decision, who string) string {
	switch {
	case q.Kind != runner.KindProposal || d == nil:
		return ""
	case d.Decision == runner.Allowed && d.Source == runner.SourceUser:
		return "Made by " + who + ": " + formatting.Inline(q.Title, 120)
	case d.Source == runner.SourceRuntime:
		return textNotMade + formatting.Inline(d.Reason, 300)
	}
	return ""
}
