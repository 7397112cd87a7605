package bot

import (
	"context"
	"strings"
	"testing"

	"drawbridge/policy"
	"drawbridge/runner"
	"drawbridge/runner/runnertest"
)

// planning is an agent that answers with a plan while it plans, and says under which mode it works otherwise.
func planning(_ context.Context, s *runnertest.Scripted, in runner.Input) (runner.Result, error) {
	p := s.Policy()
	if p.Interaction == policy.Plan {
		return runner.Result{Outcome: runner.Completed, Plan: "# Steps\n\n1. look\n2. **do** it\n\n> " + strings.ReplaceAll(in.Text, "\n", "\n> ")}, nil
	}
	s.Say("works under " + string(p.Mode) + ": " + in.Text)
	return runner.Result{Outcome: runner.Completed}, nil
}

func TestPlanIsReadInFullRevisedAndImplemented(t *testing.T) {
	t.Parallel()
	k := newTalk(t, talkOptions{turn: planning})
	p := k.say(ada, ada, "/plan make it faster")
	card := k.reads(ada, p, "Carry out this plan?", "Steps", "1. look", "2. do it", "make it faster", textPlanRevise)
	if got := card.labels(); strings.Join(got, ", ") != "Implement, Reject" {
		t.Errorf("buttons %q", got)
	}
	k.none(ada, p, textNoAnswer) // the plan is the answer

	k.reply(ada, ada, card.ID, "leave the tests alone")
	if m := k.becomes(ada, card.ID, "Revise"); strings.Contains(m.Text, textPlanRevise) {
		t.Errorf("the plan that is over still says how to revise it: %q", m.Text)
	}
	second := k.reads(ada, card.ID, "Carry out this plan?", "leave the tests alone")
	k.tap(ada, ada, second.ID, "Implement")
	k.becomes(ada, second.ID, "Implement")
	k.reads(ada, second.ID, "works under approval-required", "The plan is approved", "2. do it")
	if c := k.record(ChatRef{ID: ada}); c.Interaction != policy.Default || c.Mode != policy.ApprovalRequired {
		t.Errorf("after the plan the chat is in %s, %s", c.Mode, c.Interaction)
	}
}

func TestPlanIsImplementedUnderAHigherModeOnlyByName(t *testing.T) {
	t.Parallel()
	k := newTalk(t, talkOptions{turn: planning, mode: policy.FullAccess})
	k.reads(ada, k.say(ada, ada, "/plan"), textPlanOn)
	p := k.say(ada, ada, "one")
	card := k.reads(ada, p, "Carry out this plan?")
	if got := strings.Join(card.labels(), ", "); got != "Implement, Implement with full-access, Reject" {
		t.Errorf("buttons %s", got)
	}
	k.tap(ada, ada, card.ID, "Implement")
	k.reads(ada, card.ID, textPlanLeft)
	k.reads(ada, card.ID, "works under auto-accept-edits")

	k.reads(ada, k.say(ada, ada, "/plan"), textPlanOn)
	p = k.say(ada, ada, "two")
	card = k.reads(ada, p, "Carry out this plan?")
	k.tap(ada, ada, card.ID, "Implement with full-access")
	confirm := k.reads(ada, card.ID, textPlanConfirm)
	k.none(ada, card.ID, "works under full-access")
	k.tap(ada, ada, confirm.ID, textPlanSure)
	k.reads(ada, card.ID, "works under full-access")
	k.becomes(ada, card.ID, "Implement with full-access")
}

func TestRejectedPlanStartsNothing(t *testing.T) {
	t.Parallel()
	k := newTalk(t, talkOptions{turn: planning})
	k.say(ada, ada, "/plan")
	p := k.say(ada, ada, "one")
	card := k.reads(ada, p, "Carry out this plan?")
	k.tap(ada, ada, card.ID, "Reject")
	k.becomes(ada, card.ID, "Reject")
	k.none(ada, card.ID, "works under")
	if c := k.record(ChatRef{ID: ada}); c.Interaction != policy.Plan {
		t.Errorf("the chat is in %s", c.Interaction)
	}
	k.reads(ada, k.say(ada, ada, "/plan off"), textPlanOff)
}

// TestLongPlanIsAFileWithTheButtons: 60,000 characters are read in full without being asked for.
func TestLongPlanIsAFileWithTheButtons(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("- a step of the plan\n", 3000)
	k := newTalk(t, talkOptions{turn: func(_ context.Context, s *runnertest.Scripted, _ runner.Input) (runner.Result, error) {
		if s.Policy().Interaction == policy.Plan {
			return runner.Result{Outcome: runner.Completed, Plan: long}, nil
		}
		s.Say("implemented")
		return runner.Result{Outcome: runner.Completed}, nil
	}})
	p := k.say(ada, ada, "/plan all of it")
	doc := k.reads(ada, p, textWhole)
	if got := k.content(ada, doc.ID); got != long {
		t.Errorf("the file has %d bytes of %d", len(got), len(long))
	}
	k.tap(ada, ada, doc.ID, "Implement")
	k.reads(ada, doc.ID, "implemented")
}
