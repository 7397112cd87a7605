package task

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"drawbridge/approvals"
	"drawbridge/bridge"
	"drawbridge/internal/store"
	"drawbridge/policy"
	"drawbridge/runner"
)

// asksFor is an approval of a proposal that is asked in the chat under a mode.
func asksFor(m policy.Mode, p runner.Proposal) approvals.Record {
	if p.Title == "" {
		p.Title, p.Steps = "proposed", []string{"do it"}
	}
	return approvals.Record{
		V: 1, ID: approvals.NewID("h1"), Chat: home, Project: project, Runtime: "script", Turn: "t.1", Question: p.Question(), Mode: m,
		Interaction: policy.Default, Created: time.Now(),
	}
}

func byAda(r approvals.Record) approvals.Decision {
	return approvals.Decision{ID: r.ID, Decision: runner.Allowed, Source: runner.SourceUser, By: 11, Name: "Ada"}
}

// proposed has a person make a proposal.
func (w *world) proposed(m policy.Mode, p runner.Proposal) {
	k, r := w.keeper(), asksFor(m, p)
	for range 2 { // the second time it is there already
		w.update(func(t *store.Txn) error { return k.tasks.MakeProposed(t, r, byAda(r), "") })
	}
	time.Sleep(pace) //nolint:forbidigo // in a bubble
	synctest.Wait()
}

// TestProposedWork: what a proposal becomes, under which mode, and why it is nothing.
func TestProposedWork(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.down()
		w.host("h1")
		w.gateway(0)
		synctest.Wait()
		time.Sleep(time.Second)
		w.settle("h1", policy.Auto)
		k := w.keeper()
		for name, c := range map[string]struct {
			asked, wish, want policy.Mode
		}{
			"the chat's":            {policy.Auto, "", policy.Auto},
			"stricter":              {policy.Auto, policy.ApprovalRequired, policy.ApprovalRequired},
			"no looser":             {policy.Auto, policy.FullAccess, policy.Auto},
			"lowered since":         {policy.FullAccess, "", policy.Auto},
			"of a task held to one": {policy.AutoAcceptEdits, policy.FullAccess, policy.AutoAcceptEdits},
			"unknown":               {"yolo", "", policy.ApprovalRequired},
		} {
			r := asksFor(c.asked, runner.Proposal{Title: "t", Steps: []string{"a"}, Mode: c.wish})
			w.update(func(tx *store.Txn) error {
				p, err := k.tasks.Proposed(tx, r, "")
				if err != nil || p.Mode != c.want || p.Chat != home || p.Host != "h1" || p.Project != project || p.Runtime != "script" || p.Spec != nil {
					t.Errorf("%s: %+v, %v", name, p, err)
				}
				return nil
			})
		}
		for name, c := range map[string]struct {
			change func(r *approvals.Record)
			want   error
		}{
			"a line that can't be read": {func(r *approvals.Record) { r.Question.Proposal.When, r.Question.Proposal.Time = "cron", "no" }, ErrSpec},
			"a word for it":             {func(r *approvals.Record) { r.Question.Proposal.When, r.Question.Proposal.Time = "soon", "x" }, ErrSpec},
			"too often":                 {func(r *approvals.Record) { r.Question.Proposal.When, r.Question.Proposal.Time = "every", "1s" }, ErrTooOften},
			"its time has passed since": {func(r *approvals.Record) {
				r.Created = r.Created.Add(-time.Hour)
				r.Question.Proposal.When, r.Question.Proposal.Time = "in", "20m"
			}, ErrPast},
			"no such project":  {func(r *approvals.Record) { r.Project = "other" }, bridge.ErrNoProject},
			"no such task":     {func(r *approvals.Record) { r.Turn = "t.task:gone:1:0:0" }, ErrNotFound},
			"what is too long": {func(r *approvals.Record) { r.Question.Proposal.Steps = make([]string, MaxSteps+1) }, ErrTooLong},
		} {
			r := asksFor(policy.Auto, runner.Proposal{})
			c.change(&r)
			w.update(func(tx *store.Txn) error {
				if _, err := k.tasks.Proposed(tx, r, ""); !errors.Is(err, c.want) {
					t.Errorf("%s: %v, want %v", name, err, c.want)
				}
				if err := k.tasks.MakeProposed(tx, r, byAda(r), ""); !errors.Is(err, c.want) {
					t.Errorf("%s: made, or %v", name, err)
				}
				return nil
			})
		}
		r := asksFor(policy.Auto, runner.Proposal{})
		for name, change := range map[string]func(*approvals.Decision){
			"denied":        func(d *approvals.Decision) { d.Decision = runner.Denied },
			"by a rule":     func(d *approvals.Decision) { d.Source = runner.SourceRule },
			"by a reviewer": func(d *approvals.Decision) { d.Source = runner.SourceReviewer },
			"by a grant":    func(d *approvals.Decision) { d.Source = runner.SourceGrant },
			"found dead":    func(d *approvals.Decision) { d.Gone = time.Now() },
		} {
			d := byAda(r)
			change(&d)
			w.update(func(tx *store.Txn) error { return k.tasks.MakeProposed(tx, r, d, "") })
			if all := w.tasks(); len(all) != 0 {
				t.Fatalf("%s: made %+v", name, all)
			}
		}
	})
}
