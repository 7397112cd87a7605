package bot

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"drawbridge/approvals"
	"drawbridge/bridge/task"
	"drawbridge/internal/store"
	"drawbridge/policy"
	"drawbridge/runner"
)

// made are the tasks and schedules of a chat.
func (k *talk) made(chat int64) (tasks []task.Task, schedules []task.Schedule) {
	k.t.Helper()
	k.update(func(t *store.Txn) (err error) {
		if tasks, err = k.tasks.Tasks(t, ChatRef{ID: chat}.Key(), task.Filter{}); err != nil {
			return err
		}
		schedules, err = k.tasks.Schedules(t, ChatRef{ID: chat}.Key())
		return err
	})
	return tasks, schedules
}

// TestAProposedTaskIsACardFirst proposes tasks and schedules in every mode: nothing is made before the tap, one thing by it,
// and nothing by a denial.
func TestAProposedTaskIsACardFirst(t *testing.T) {
	t.Parallel()
	for _, m := range policy.Modes() {
		t.Run(string(m), func(t *testing.T) {
			t.Parallel()
			k := newTalk(t, talkOptions{mode: m})
			at := k.say(ada, ada, `propose {"title":"Greet","steps":["say hello","say \u202eagain"]}`)
			card := k.reads(ada, at, "Proposed task", "Greet", textNow, textProject+"demo", textHeld+string(m), "say hello", "say ⟨U+202E⟩again")
			if !card.has("Make it") || !card.has("Deny") || len(card.labels()) != 2 {
				t.Errorf("the card has %q", card.labels())
			}
			if tasks, schedules := k.made(ada); len(tasks)+len(schedules) != 0 {
				t.Fatalf("made before anybody tapped: %+v, %+v", tasks, schedules)
			}
			if n := k.tap(ada, ada, card.ID, "Make it"); n.Text != "Made by Ada: Greet" || n.Alert {
				t.Errorf("the tap says %+v", n)
			}
			k.becomes(ada, card.ID, "Made by Ada: Greet")
			tasks, schedules := k.made(ada)
			if len(tasks) != 1 || len(schedules) != 0 {
				t.Fatalf("made %+v, %+v", tasks, schedules)
			}
			if one := tasks[0]; one.Mode != m || one.Title != "Greet" || len(one.Steps) != 2 || one.Name != "Ada" || one.Origin != task.OriginProposal || one.Project != "demo" {
				t.Errorf("made %+v", one)
			}
			k.reads(ada, at, "Made: the user agreed to this task, and its id is "+tasks[0].ID)
			k.reads(ada, card.ID, "In review: Greet", "again")

			at = k.say(ada, ada, `propose {"title":"Look","steps":["say looked"],"when":"cron 0 9 * * 1-5","mode":"approval-required"}`)
			card = k.reads(ada, at, "Proposed schedule", "Look", "At 09:00 on Monday to Friday (UTC), written as “cron 0 9 * * 1-5”", textNext, textHeld+"approval-required", "say looked")
			k.reply(ada, ada, card.ID, "deny not every day")
			k.becomes(ada, card.ID, "Denied by Ada")
			k.reads(ada, at, "Not made. The user refused this. Reason: not every day")
			if tasks, schedules := k.made(ada); len(tasks) != 1 || len(schedules) != 0 {
				t.Errorf("made although it was denied: %+v, %+v", tasks, schedules)
			}
			at = k.say(ada, ada, `propose {"title":"Look","steps":["say looked"],"when":"cron 0 9 * * 1-5","mode":"approval-required"}`)
			card = k.reads(ada, at, "Proposed schedule")
			k.tap(ada, ada, card.ID, "Make it")
			k.becomes(ada, card.ID, "Made by Ada: Look")
			if _, schedules = k.made(ada); len(schedules) != 1 || schedules[0].Mode != policy.ApprovalRequired || schedules[0].Spec.Cron != "0 9 * * 1-5" {
				t.Fatalf("made %+v", schedules)
			}
			k.reads(ada, k.say(ada, ada, "/cron"), "1. Look")
		})
	}
}

// TestAProposalThatCannotBeMadeIsNoCard: the agent is told why, and nobody is asked.
func TestAProposalThatCannotBeMadeIsNoCard(t *testing.T) {
	t.Parallel()
	k := newTalk(t, talkOptions{mode: policy.FullAccess})
	for when, why := range map[string]string{
		"cron 99 * * * *":       specFault(task.ErrSpec),
		"cron */5 * * * * *":    specFault(task.ErrTooOften),
		"cron 0 0 30 2 *":       specFault(task.ErrNever),
		"at 2020-01-01 10:00":   specFault(task.ErrPast),
		"every 2s":              specFault(task.ErrTooOften),
		"in the evening":        specFault(task.ErrSpec),
		"every 2h until 1 June": specFault(task.ErrSpec),
	} {
		at := k.say(ada, ada, `propose {"title":"Look","steps":["say looked"],"when":"`+when+`"}`)
		k.reads(ada, at, "Not made. This could not be asked, so it is refused. Reason: "+why)
		k.none(ada, at, "Proposed")
	}
	at := k.say(ada, ada, `propose {"title":"Look","steps":[],"hidden":true}`)
	k.reads(ada, at, runner.ErrProposal.Error())
	if tasks, schedules := k.made(ada); len(tasks)+len(schedules) != 0 {
		t.Errorf("made %+v, %+v", tasks, schedules)
	}
}

// TestAProposalIsBoundByTheModeOfItsTap lowers the chat between the card and the tap: what is made is held to the lower mode.
// Raised, it stays what the card said.
func TestAProposalIsBoundByTheModeOfItsTap(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ asked, tapped, want policy.Mode }{
		{policy.FullAccess, policy.ApprovalRequired, policy.ApprovalRequired},
		{policy.ApprovalRequired, policy.AutoAcceptEdits, policy.ApprovalRequired},
	} {
		k := newTalk(t, talkOptions{mode: c.asked})
		card := k.reads(ada, k.say(ada, ada, `propose {"title":"Look","steps":["say looked"],"when":"in 20m"}`), "Proposed schedule", textHeld+string(c.asked))
		k.update(func(t *store.Txn) error { _, err := k.chats.SetMode(t, ChatRef{ID: ada}.Key(), c.tapped); return err })
		k.tap(ada, ada, card.ID, "Make it")
		k.becomes(ada, card.ID, "Made by Ada: Look")
		r := k.schedule(ada)
		if r.Mode != c.want || r.Spec.At.Sub(r.Created) > 20*time.Minute {
			t.Errorf("%+v: made under %s, for %s, at %s", c, r.Mode, r.Spec.At, r.Created)
		}
	}
}

func (k *talk) schedule(chat int64) task.Schedule {
	k.t.Helper()
	_, schedules := k.made(chat)
	if len(schedules) != 1 {
		k.t.Fatalf("there are %d schedules", len(schedules))
	}
	return schedules[0]
}

// TestTwoGatewaysMakeOneProposal taps by two people at two gateways at once, and has the first tap delivered twice.
func TestTwoGatewaysMakeOneProposal(t *testing.T) {
	t.Parallel()
	k := newTalk(t, talkOptions{})
	other := approvals.New(approvals.Config{
		DB: k.db, Logger: k.log, Beat: talkBeat, DeadAfter: talkDead,
		Decided: func(t *store.Txn, r approvals.Record, d approvals.Decision) error { return k.bot.Decided(t, r, d) },
		Make: func(t *store.Txn, r approvals.Record, d approvals.Decision) (string, error) {
			return k.bot.Make(t, r, d)
		},
	})
	at := k.say(ada, ada, `propose {"title":"Greet","steps":["say hello"]}`)
	card := k.reads(ada, at, "Proposed task")
	r := k.open(ada)
	var won [4]bool
	var all sync.WaitGroup
	for i := range won {
		all.Go(func() {
			s, p := k.approvals, approvals.Person{ID: ada, Name: "Ada", Role: approvals.Owner}
			if i%2 == 1 {
				s, p = other, approvals.Person{ID: grace, Name: "Grace", Role: approvals.Operator}
			}
			o, err := s.Decide(context.WithoutCancel(t.Context()), approvals.Tap{ID: r.ID, Chat: r.Chat, Person: p, Action: runner.ActionMake, Token: p.Name})
			if err != nil {
				t.Error(err)
			}
			won[i] = o.Won
		})
	}
	all.Wait()
	if won[0] == won[1] || won[0] != won[2] || won[1] != won[3] {
		t.Errorf("won: %v", won)
	}
	k.becomes(ada, card.ID, "Made by ")
	if tasks, _ := k.made(ada); len(tasks) != 1 || tasks[0].ID != r.ID.Made() {
		t.Errorf("made %+v", tasks)
	}
}

// TestAProposalOfATaskIsAskedInTheBackground: it is a card like any other of a task; nobody answers, nothing is made, and the
// task is not blocked for it. Made, it knows what it came from.
func TestAProposalOfATaskIsAskedInTheBackground(t *testing.T) {
	t.Parallel()
	k := newTalk(t, talkOptions{deadline: 600 * time.Millisecond})
	at := k.say(ada, ada, "/task new first\n"+`propose {"title":"Second","steps":["say second"]}`)
	k.reads(ada, at, "Proposed task", textBackground)
	k.reads(ada, at, "In review: first", "nobody answered")
	tasks, _ := k.made(ada)
	if len(tasks) != 1 {
		t.Fatalf("made %+v", tasks)
	}
	k = newTalk(t, talkOptions{})
	at = k.say(ada, ada, "/task new first\n"+`propose {"title":"Second","steps":["say second"]}`)
	card := k.reads(ada, at, "Proposed task", textBackground)
	first, _ := k.made(ada)
	k.tap(ada, ada, card.ID, "Make it")
	k.reads(ada, card.ID, "In review: Second")
	tasks, _ = k.made(ada)
	if len(tasks) != 2 || len(first) != 1 || tasks[0].Parent+tasks[1].Parent != first[0].ID {
		t.Errorf("made %+v", tasks)
	}
}

// TestFacesOfProposals shows the cards, open and closed.
func TestFacesOfProposals(t *testing.T) {
	t.Parallel()
	now := runner.Proposal{Title: "Tidy \u202eup", Steps: []string{"Remove what nothing uses."}}.Question()
	later := runner.Proposal{
		Title: "Look after the build", Steps: []string{"Run the tests.", "Say what\nis broken."}, When: runner.ProposedEvery, Time: "2h until 22:00", Mode: policy.Auto,
	}.Question()
	c := card{Zone: "Europe/Vienna", Held: policy.ApprovalRequired}
	for name, q := range map[string]runner.Question{"now": now, "later": later} {
		r := asked(q)
		r.Project = "shop"
		f := openFace(r, c)
		made := approvals.Decision{ID: r.ID, Decision: runner.Allowed, Action: runner.ActionMake, Source: runner.SourceUser, Name: "Ada", At: r.Created}
		closed := closedFace(r, closingOf(r, approvals.Standing(r, &made)))
		golden(t, "card-proposal-"+name, drawn(f, cardRows(r, c, f))+"\n---\n"+drawn(closed, nil))
	}
	r := asked(now)
	for want, d := range map[string]approvals.Decision{
		"Made by Ada: Tidy ⟨U+202E⟩up":    {Decision: runner.Allowed, Source: runner.SourceUser, Name: "Ada", Gone: r.Created},
		"Denied by Ada":                   {Decision: runner.Denied, Source: runner.SourceUser, Name: "Ada", Action: runner.ActionDeny},
		"Not made: That time has passed.": {Decision: runner.Denied, Source: runner.SourceRuntime, Reason: "That time has passed."},
	} {
		if got := cardOutcome(now, approvals.Standing(r, &d)); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestMakeItStandsOnlyWhereEveryStepIsShown: a proposal that is too long for a message is looked at first.
func TestMakeItStandsOnlyWhereEveryStepIsShown(t *testing.T) {
	t.Parallel()
	q := runner.Proposal{Title: "Long", Steps: []string{strings.Repeat("x", 8000), "the end"}}.Question()
	r := asked(q)
	f := openFace(r, card{Zone: "UTC", Held: policy.ApprovalRequired})
	for _, row := range cardRows(r, card{}, f) {
		for _, o := range row {
			if o.Label == "Make it" {
				t.Error("it can be made unseen")
			}
		}
	}
	if _, content := wholeFile(q); !strings.Contains(content, q.Proposal.Steps[0]) || !strings.Contains(content, "the end") {
		t.Error("the file does not show all of it")
	}
	k := newTalk(t, talkOptions{})
	at := k.say(ada, ada, `propose {"title":"Long","steps":["say `+strings.Repeat(`\u202e`, 620)+`","say the end"]}`)
	short := k.reads(ada, at, "Proposed task", strings.TrimSpace(textTooLong))
	if short.has("Make it") {
		t.Fatalf("the card has %q", short.labels())
	}
	k.tap(ada, ada, short.ID, textShowFirst)
	whole := k.reads(ada, short.ID, textWhole)
	if content := k.content(ada, whole.ID); !strings.Contains(content, strings.Repeat("⟨U+202E⟩", 620)) || !strings.Contains(content, "say the end") {
		t.Errorf("the file reads %.100q", content)
	}
	k.tap(ada, ada, whole.ID, "Make it")
	k.becomes(ada, short.ID, "Made by Ada: Long")
}
