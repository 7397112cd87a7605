package bot

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"drawbridge/bridge/task"
	"drawbridge/internal/store"
	"drawbridge/runner"
	"drawbridge/runner/runnertest"
)

// proposing answers a look for follow-ups with words, and does what any other prompt says.
func proposing(words string) runnertest.TurnFunc {
	return func(ctx context.Context, s *runnertest.Scripted, in runner.Input) (runner.Result, error) {
		if strings.Contains(in.Text, "say what should be done next") {
			s.Say(words)
			return runner.Result{Outcome: runner.Completed}, ctx.Err()
		}
		return runnertest.Follow(ctx, s, in)
	}
}

// TestFollowUpsAreListedAndCancelled in the chat, and the switch for the project is on buttons.
func TestFollowUpsAreListedAndCancelled(t *testing.T) {
	t.Parallel()
	k := newTalk(t, talkOptions{turn: proposing(`{"tasks":[{"title":"look again","steps":["run touch later"]},{"title":"more","steps":["say x"],"mode":"full-access"}]}`)})
	at := k.say(ada, ada, "/task new greet\nsay hello")
	report := k.reads(ada, at, "In review: greet")
	k.tap(ada, ada, report.ID, textApprove)
	list := k.reads(ada, report.ID, textFollowUpsOf+"“greet”", "1. look again – waiting, approval-required", "run touch later", "2. more", textAskedForMore)
	card := k.reads(ada, list.ID, "Run this command?\ntouch later", textBackground)
	if n := k.tap(ada, ada, list.ID, textCancelTask); n.Text != textCancelled {
		t.Errorf("cancel says %q", n.Text)
	}
	k.becomes(ada, card.ID, "Not asked any more")
	k.shows(ada, list.ID, "1. look again – cancelled", "2. more – ")
	k.reads(ada, list.ID, "In review: more")
	page := k.reads(ada, k.say(ada, ada, "/tasks review"), "1. more", textOriginFollow)
	k.tap(ada, ada, page.ID, "1. more")
	k.shows(ada, page.ID, upper(textOriginFollow))

	menu := k.reads(ada, k.say(ada, ada, "/execution"), textExecution+"demo", "review", strings.TrimSpace(textFollowUpsOn))
	k.tap(ada, ada, menu.ID, "No follow-ups")
	k.shows(ada, menu.ID, textFollowUpsOff)
	k.tap(ada, ada, menu.ID, "Auto")
	k.shows(ada, menu.ID, textExecAuto, textFollowUpsOff)
	k.reads(ada, k.say(ada, ada, "/execution sometimes"), textExecHelp)
	k.reads(ada, k.say(ada, ada, "/task new again\nsay hello"), "Done: again")
	k.reads(ada, k.say(ada, ada, "/execution follow-ups on"), strings.TrimSpace(textFollowUpsOn))
}

func TestFollowUpsInAnotherForm(t *testing.T) {
	t.Parallel()
	k := newTalk(t, talkOptions{turn: proposing("I would look again tomorrow.")})
	report := k.reads(ada, k.say(ada, ada, "/task new greet\nsay hello"), "In review: greet")
	k.tap(ada, ada, report.ID, textApprove)
	k.reads(ada, report.ID, textFollowUpsForm)
}

// TestFollowUpsThatAreNotMade: the chat reads why, and so do the owners where it is theirs to know; no id stands for a title.
func TestFollowUpsThatAreNotMade(t *testing.T) {
	t.Parallel()
	k := newTalk(t, talkOptions{})
	at := k.say(ada, ada, "/status")
	k.reads(ada, at, "demo")
	here := ChatRef{ID: ada}.Key()
	of := task.Task{ID: "x", Chat: here, State: task.Done, Work: task.Work{Title: "greet"}}
	next := task.Task{ID: "x-f11", Chat: here, State: task.Pending, Parent: "x", Work: task.Work{Title: "next", Steps: []string{"say x"}, Mode: "auto"}}
	for _, c := range []struct {
		e    task.Event
		says []string
	}{
		{task.Event{Left: 3, LeftWhy: task.WhyTooMany}, []string{"What follows from “greet” could not be made. Too many tasks wait here already."}},
		{task.Event{Made: []task.Task{next}, Left: 2, LeftWhy: task.WhyTooMany}, []string{"1. next", "2 more could not be made. Too many tasks wait here already."}},
		{task.Event{Made: []task.Task{next}, Left: 2}, []string{"1. next", "2 more could not be made; 5 are the most."}},
		{task.Event{Why: task.WhyBudget}, []string{"What follows from “greet” was not looked for. Its budget of tokens is used up."}},
		{task.Event{Chat: ChatRef{ID: -100777}.Key(), Why: task.WhyNoRight}, []string{"What follows from greet was not looked for. Whoever made it"}},
	} {
		c.e.Kind, c.e.Task = task.FollowedUp, &of
		if c.e.Chat == "" {
			c.e.Chat = here
		}
		k.update(func(t *store.Txn) error { return k.bot.Worked(t, c.e) })
		at = k.reads(ada, at, c.says...).ID
	}
	k.update(func(t *store.Txn) error {
		made, err := k.bot.cfg.Tasks.Add(t, here, task.NewTask{
			ID: "y", Parent: "gone", Origin: task.OriginFollowUp, Work: task.Work{Title: "late", Steps: []string{"say x"}, By: strconv.FormatInt(ada, 10)},
		})
		if err != nil {
			return err
		}
		return k.bot.Worked(t, task.Event{Kind: task.FollowedUp, Chat: here, Task: &of, Made: []task.Task{made}})
	})
	list := k.reads(ada, at, "1. late")
	k.tap(ada, ada, list.ID, textCancelTask)
	k.shows(ada, list.ID, textFollowUpsOf+textFollowUpsGone, "1. late")
}

// TestAStepForAPerson: what auto was not allowed is a task for a person, and doing it there lets the rest go on.
func TestAStepForAPerson(t *testing.T) {
	t.Parallel()
	k := newTalk(t, talkOptions{deadline: 600 * time.Millisecond})
	at := k.say(ada, ada, "/task new --auto --no-follow build\nrun touch made\nsay the rest")
	report := k.reads(ada, at, "Blocked: build", textForAPerson, "Not allowed: touch made")
	if !report.has(textByHand) || !report.has(textRerunAsk) || !report.has(textSkipStep) {
		t.Errorf("the report has %q", report.labels())
	}
	list := k.reads(ada, k.say(ada, ada, "/tasks blocked"), textOriginPending, "build")
	k.tap(ada, ada, list.ID, "1. build")
	page := k.shows(ada, list.ID, whyWords(task.WhyByHand), "touch made")
	k.tap(ada, ada, page.ID, textByHand)
	k.reads(ada, list.ID, "Done: build", "the rest")
	if n := k.tap(ada, ada, report.ID, textSkipStep); n.Text != textTooLateTask {
		t.Errorf("the other card says %q", n.Text)
	}
	if k.exists("made") {
		t.Error("it was done though nobody allowed it")
	}
}

// TestHooksSpeakInTheChat: a message of the owner's, and one that failed.
func TestHooksSpeakInTheChat(t *testing.T) {
	t.Parallel()
	k := newTalk(t, talkOptions{})
	k.reads(ada, k.say(ada, ada, "/status"), "demo")
	one := task.Task{ID: "x", Chat: ChatRef{ID: ada}.Key(), Work: task.Work{Title: "greet"}}
	k.update(func(t *store.Txn) error {
		for _, e := range []task.Event{
			{Kind: task.Hooked, Chat: one.Chat, Task: &one, Words: "greet is \u202edone"},
			{Kind: task.HookFailed, Chat: one.Chat, Task: &one, Hook: task.PipelineCompleted, Why: task.WhyFailed, Words: "exit status 3"},
			{Kind: task.HookFailed, Chat: one.Chat, Task: &one, Hook: task.AutoApproved, Why: task.WhyUnknown},
		} {
			if err := k.bot.Worked(t, e); err != nil {
				return err
			}
		}
		return nil
	})
	k.reads(ada, 0, "greet is ⟨U+202E⟩done")
	k.reads(ada, 0, "The hook pipeline_completed (“greet”) did not end well: exit status 3")
	k.reads(ada, 0, "The hook task_auto_approved", "not run again")
}

// TestOwnersAreToldWhatIsNotRun, in private, where the chat may be gone or may not be theirs.
func TestOwnersAreToldWhatIsNotRun(t *testing.T) {
	t.Parallel()
	for _, why := range []task.Reason{task.WhyNoChat, task.WhyNoRight, task.WhyNoMode} {
		k := newTalk(t, talkOptions{})
		k.reads(ada, k.say(ada, ada, "/status"), "demo")
		k.update(func(t *store.Txn) error {
			gone := ChatRef{ID: -100777}.Key()
			return k.bot.Worked(t, task.Event{Kind: task.Finished, Chat: gone, Why: why, Task: &task.Task{ID: "x", Chat: gone, State: task.Blocked, Why: why, Work: task.Work{Title: "nightly"}}})
		})
		k.reads(ada, 0, textTaskNotRun+"nightly", whyWords(why))
	}
}

// TestTasksAskWhomTheOwnerChose: in private, and only an owner chooses it.
func TestTasksAskWhomTheOwnerChose(t *testing.T) {
	t.Parallel()
	k := newTalk(t, talkOptions{})
	k.reads(ada, k.say(ada, ada, "/status"), "demo")
	k.enable(group)
	k.sim("POST", "members", object{"chat": group, "member": grace, "action": "add"}, nil)
	k.reads(group, k.say(group, grace, "/asks me"), textOwnersOnly)
	menu := k.reads(group, k.say(group, ada, "/asks"), textAsksHere, strings.TrimSpace(textAsksUsual))
	if n := k.tap(group, grace, menu.ID, "Ask me in private"); n.Text != textOwnersOnly {
		t.Errorf("an operator is told %q", n.Text)
	}
	k.tap(group, ada, menu.ID, "Ask me in private")
	k.shows(group, menu.ID, textAsksPrivate+textAsksSomebody)
	k.tap(group, ada, menu.ID, "1 hour")
	k.shows(group, menu.ID, "wait 1 h")
	k.reads(group, k.say(group, ada, "/asks 3s"), textAsksHelp)
	k.say(group, ada, "/task new make\nrun touch made")
	card := k.reads(ada, 0, "Run this command?\ntouch made", textBackground)
	k.tap(ada, ada, card.ID, "Allow")
	k.reads(group, menu.ID, "In review: make")
	if !k.exists("made") {
		t.Error("what was allowed in private was not done")
	}
}
