package bot

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"drawbridge/approvals"
	"drawbridge/policy"
	"drawbridge/runner"
	"drawbridge/runner/runnertest"
)

func TestEditedPlanIsImplementedAfterATap(t *testing.T) {
	t.Parallel()
	k := newTalk(t, talkOptions{turn: planning, mode: policy.FullAccess})
	k.reads(ada, k.say(ada, ada, "/plan"), textPlanOn)
	card := k.reads(ada, k.say(ada, ada, "one"), "Carry out this plan?", textPlanOrEdit)
	sent := k.post(object{
		"chat": ada, "from": ada, "reply_to": card.ID, "text": "and hurry", "document": file("plan.md", []byte("\ufeff# Mine\r\n\r\n1. only \u202ethis\r\n")),
	})
	confirm := k.reads(ada, sent, textPlanEdited, "22 characters, 3 lines", textPlanHidden, textPlanWith+"and hurry", textPlanEditedFor)
	if confirm.ReplyTo != sent || strings.Join(confirm.labels(), ", ") != textPlanThis {
		t.Errorf("it stands under %d with the buttons %q", confirm.ReplyTo, confirm.labels())
	}
	k.none(ada, sent, "works under")
	if c := k.record(ChatRef{ID: ada}); c.Interaction != policy.Plan {
		t.Errorf("before the tap the chat is in %s", c.Interaction)
	}

	k.tap(ada, ada, confirm.ID, textPlanThis)
	got := k.reads(ada, sent, "works under auto-accept-edits", "1. only", "Besides, I said:", "and hurry")
	if strings.Contains(got.Text, "1. look") {
		t.Errorf("the agent's own plan was implemented: %q", got.Text)
	}
	k.becomes(ada, card.ID, "“Implement” chosen by Ada"+textPlanAsEdited)
	k.becomes(ada, confirm.ID, textPlanThisGoes)
	if c := k.record(ChatRef{ID: ada}); c.Interaction != policy.Default || c.Mode != policy.FullAccess {
		t.Errorf("after the plan the chat is in %s, %s", c.Mode, c.Interaction)
	}
}

// TestEditedPlanIsOneDecision: of the plan's own button and those of any number of versions, the first tap decides.
func TestEditedPlanIsOneDecision(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("- a step of the plan\n", 3000)
	k := newTalk(t, talkOptions{turn: func(_ context.Context, s *runnertest.Scripted, in runner.Input) (runner.Result, error) {
		if s.Policy().Interaction == policy.Plan {
			return runner.Result{Outcome: runner.Completed, Plan: long}, nil
		}
		s.Say("implemented " + lastPart(in.Text, 40))
		return runner.Result{Outcome: runner.Completed}, nil
	}})
	doc := k.reads(ada, k.say(ada, ada, "/plan all of it"), textWhole)
	first := k.post(object{"chat": ada, "from": ada, "reply_to": doc.ID, "text": "", "document": file("plan.md", []byte("the first"))})
	one := k.reads(ada, first, textPlanEdited)
	second := k.post(object{"chat": ada, "from": ada, "reply_to": doc.ID, "text": "", "document": file("PLAN.TXT", []byte(strings.Repeat("step\n", 5000)+"the second"))})
	two := k.reads(ada, second, textPlanEdited, "5001 lines")
	k.tap(ada, ada, two.ID, textPlanThis)
	k.reads(ada, second, "implemented", "the second")
	if got := k.tap(ada, ada, one.ID, textPlanThis); !got.Alert || !strings.Contains(got.Text, "chosen by Ada") {
		t.Errorf("whoever taps the other one sees %+v", got)
	}
	k.none(ada, second, "the first")
}

// TestEditedPlanIsNotTheOneThatWasTapped: a version that waits does not change what the plan's own button means.
func TestEditedPlanIsNotTheOneThatWasTapped(t *testing.T) {
	t.Parallel()
	k := newTalk(t, talkOptions{turn: planning})
	card := k.reads(ada, k.say(ada, ada, "/plan one"), "Carry out this plan?")
	sent := k.post(object{"chat": ada, "from": ada, "reply_to": card.ID, "text": "", "document": file("plan.md", []byte("mine"))})
	k.reads(ada, sent, textPlanEdited)
	k.tap(ada, ada, card.ID, "Implement")
	k.reads(ada, sent, "works under approval-required", "1. look")
	if m := k.becomes(ada, card.ID, "“Implement” chosen by Ada"); strings.Contains(m.Text, textPlanAsEdited) {
		t.Errorf("the card says %q", m.Text)
	}
}

func TestOddEditedPlansRunNothing(t *testing.T) {
	t.Parallel()
	k := newTalk(t, talkOptions{turn: planning})
	card := k.reads(ada, k.say(ada, ada, "/plan one"), "Carry out this plan?")
	for _, x := range []struct {
		name string
		sent object
		want string
	}{
		{"another kind of file", object{"document": file("plan.zip", []byte("PK"))}, textPlanNotText},
		{"no name's end", object{"document": file("plan", []byte("1. go"))}, textPlanNotText},
		{"a photo", object{"photo": file("a.jpg", []byte("jpg"))}, textPlanNotText},
		{"not UTF-8", object{"document": file("plan.md", []byte("1. \xff\xfe"))}, textPlanNotText},
		{"a zero byte", object{"document": file("plan.md", []byte("1. \x00"))}, textPlanNotText},
		{"nothing to see", object{"document": file("plan.md", []byte(" \n\u200b\n"))}, textPlanEmpty},
		{"too large", object{"document": file("plan.md", []byte(strings.Repeat("x", maxEdited+1)))}, textPlanTooLarge},
	} {
		x.sent["chat"], x.sent["from"], x.sent["reply_to"], x.sent["text"] = ada, ada, card.ID, ""
		sent := k.post(x.sent)
		if m := k.reads(ada, sent, x.want); len(m.Buttons) != 0 {
			t.Errorf("%s: the buttons %q", x.name, m.labels())
		}
	}
	k.none(ada, card.ID, "works under")
	largest := k.post(object{"chat": ada, "from": ada, "reply_to": card.ID, "text": "", "document": file("plan.md", []byte(strings.Repeat("x", maxEdited)))})
	k.reads(ada, largest, textPlanEdited, fmt.Sprintf("%d characters, 1 line", maxEdited))
	if r := k.open(ada); r.State != approvals.Open {
		t.Errorf("the plan is %s", r.State)
	}
}

// TestPlanThatIsWaitedForIsNotEdited: the agent itself goes on with its own plan there, so another one would not be what runs.
func TestPlanThatIsWaitedForIsNotEdited(t *testing.T) {
	t.Parallel()
	for want, revise := range map[string]bool{textPlanNotHere: true, textPlanFixed: false} {
		k := newTalk(t, talkOptions{turn: func(_ context.Context, s *runnertest.Scripted, _ runner.Input) (runner.Result, error) {
			q := runner.Question{Kind: runner.KindPlan, Plan: "1. go", Actions: []runner.Action{
				{ID: runner.ActionAllow, Label: "Carry it out", Allows: true}, {ID: runner.ActionReject, Label: "Keep planning"},
			}}
			if revise {
				q.Actions = append(q.Actions, runner.Action{ID: runner.ActionRevise, Label: "Revise", Reply: true})
			}
			s.Say("told: " + string(s.Ask(q).Decision))
			return runner.Result{Outcome: runner.Completed}, nil
		}})
		card := k.reads(ada, k.say(ada, ada, "go"), "Carry out this plan?")
		if strings.Contains(card.Text, textPlanOrEdit) {
			t.Errorf("the card offers it: %q", card.Text)
		}
		sent := k.post(object{"chat": ada, "from": ada, "reply_to": card.ID, "text": "", "document": file("plan.md", []byte("mine"))})
		k.reads(ada, sent, want)
		k.tap(ada, ada, card.ID, "Keep planning")
		k.reads(ada, sent, "told: denied")
	}
}
