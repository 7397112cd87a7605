package bot

import (
	"slices"
	"strings"
	"testing"
	"time"

	"drawbridge/bridge/task"
	"drawbridge/policy"
)

func TestCronLinesAreTakenApart(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ in, line, rest string }{
		{`"0 9 * * 1-5" check the build`, "0 9 * * 1-5", "check the build"},
		{`“0 9 * * 1-5” check “the” build`, "0 9 * * 1-5", "check “the” build"},
		{`'@daily' x`, "@daily", "x"},
		{`0 9 * * 1-5 check`, "0 9 * * 1-5", "check"},
		{`@hourly look`, "@hourly", "look"},
		{`"0 9 * * *`, `"0 9 * * *`, ""},
		{``, "", ""},
		{`five`, "five", ""},
	} {
		if line, rest := cronLine(c.in); line != c.line || rest != c.rest {
			t.Errorf("%q = %q, %q; want %q, %q", c.in, line, rest, c.line, c.rest)
		}
	}
}

func TestCronLinesInWords(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"0 9 * * 1-5":       "at 09:00 on Monday to Friday",
		"30 18 * * *":       "at 18:30 every day",
		"*/5 * * * *":       "every 5 minutes",
		"* * * * *":         "every minute",
		"15 * * * *":        "at minute 15 of every hour",
		"0 */2 * * *":       "at minute 0 of every 2. hour",
		"0 8,20 * * *":      "at 08:00, 20:00",
		"0 0 1 1 *":         "at 00:00 on day 1 of the month in January",
		"0 7 1,15 * MON":    "at 07:00 on day 1, 15 of the month and on Monday",
		"*/10 8-17 * * 6,0": "every 10 minutes in the hours 8-17 on Saturday, Sunday",
		"@daily":            "daily",
	} {
		if got := cronWords(line); got != want {
			t.Errorf("%s is %q, want %q", line, got, want)
		}
	}
}

func TestOptionsOfWork(t *testing.T) {
	t.Parallel()
	w, missed, prompt, err := workOptions("--here —skip --mode auto --budget 5000 --auto --careful check --this")
	if err != nil || !w.InChat || missed != task.Skip || w.Mode != policy.Auto || w.Budget != 5000 || w.Execution != task.Auto || !w.Careful || prompt != "check --this" {
		t.Errorf("%+v %q %q %v", w, missed, prompt, err)
	}
	w, _, prompt, err = workOptions("--project shop@box --runtime claude --no-follow look")
	if err != nil || w.Project != "shop@box" || w.Runtime != "claude" || w.Follow != task.FollowOff || prompt != "look" {
		t.Errorf("%+v %q %v", w, prompt, err)
	}
	for _, bad := range []string{"--here --project shop x", "--yolo x", "--mode yolo x", "--budget -1 x", "--budget x"} {
		if _, _, _, err := workOptions(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

func TestSchedulesAreSaidBack(t *testing.T) {
	t.Parallel()
	k := newTalk(t, talkOptions{})
	k.reads(ada, k.say(ada, ada, "/timezone Europe/Vienna")-1, "Europe/Vienna")
	k.reads(ada, k.say(ada, ada, "/timezone Mars"), textZoneWrong)
	for _, c := range []struct {
		say   string
		parts []string
	}{
		{"/cron", []string{textScheduleNone}},
		{`/cron add “0 9 * * 1-5” check the build`, []string{"Scheduled: check the build\nAt 09:00 on Monday to Friday (Europe/Vienna)\nNext: ", "approval-required"}},
		{"/every 2h until 22:00 look for issues", []string{"Scheduled: look for issues\nEvery 2 h until "}},
		{"/at 18:30 run the tests", []string{"Scheduled: run the tests\nOnce, "}},
		{"/in 20m look", []string{"Scheduled: look\nOnce, "}},
		{"/cron add * * * * *", []string{textCronHelp}},
		{`/cron add "*/5 * * * * *" x`, []string{specFault(task.ErrTooOften), textThen}},
		{`/cron add "0 0 30 2 *" x`, []string{specFault(task.ErrNever)}},
		{"/at 2020-01-01 10:00 x", []string{specFault(task.ErrPast)}},
		{"/in soon x", []string{specFault(task.ErrSpec)}},
		{"/in 20m", []string{textInHelp}},
		{"/every 5s x", []string{specFault(task.ErrTooOften)}},
		{"/in 20m --mode full-access x", []string{textNotLooser}},
		{"/in 20m --yolo x", []string{textFlagsHelp + "--yolo"}},
		{"/cron", []string{textScheduleAll, "1. check the build", "4. look"}},
		{"/quiet", []string{textQuietNone}},
		{"/quiet 22:00-07:00", []string{"Quiet hours: 22:00–07:00 (Europe/Vienna)."}},
		{"/quiet 25:00-07:00", []string{textQuietWrong}},
		{"/quiet off", []string{textQuietOff}},
		{"/execution", []string{textExecReview}},
		{"/execution auto", []string{textExecAuto}},
		{"/tasks", []string{textTasksNone}},
		{"/task", []string{textTaskHelp}},
		{"/task nowhere", []string{textTaskGone}},
	} {
		k.reads(ada, k.say(ada, ada, c.say), c.parts...)
	}
}

func TestAScheduleHasButtons(t *testing.T) {
	t.Parallel()
	k := newTalk(t, talkOptions{})
	added := k.reads(ada, k.say(ada, ada, "/at 2099-01-01 00:00 x")-1, specFault(task.ErrNever))
	if added.has(textPause) {
		t.Errorf("what was refused has buttons: %q", added.labels())
	}
	m := k.reads(ada, k.say(ada, ada, `/cron add "0 9 * * *" say hello`)-1, textScheduled)
	k.tap(ada, ada, m.ID, textPause)
	k.shows(ada, m.ID, textPaused)
	k.tap(ada, ada, m.ID, textGoOn)
	k.shows(ada, m.ID, textNext)
	k.tap(ada, ada, m.ID, textRunNow)
	done := k.reads(ada, m.ID, "In review: say hello", "hello", "1 step")
	if !done.has(textApprove) || !done.has(textRejectTask) || !done.has(textRerun) {
		t.Errorf("the report has %q", done.labels())
	}
	k.tap(ada, ada, done.ID, textApprove)
	k.shows(ada, done.ID, "Done: say hello")
	if n := k.tap(ada, ada, m.ID, textDelete); n.Text != textDeleted {
		t.Errorf("delete says %q", n.Text)
	}
	k.reads(ada, k.say(ada, ada, "/cron"), textScheduleNone)
}

// TestAScheduleIsEdited: its times, its prompt or both, and what can't be read changes nothing.
func TestAScheduleIsEdited(t *testing.T) {
	t.Parallel()
	k := newTalk(t, talkOptions{})
	k.reads(ada, k.say(ada, ada, `/cron add "0 9 * * 1-5" say hello`)-1, "09:00 on Monday to Friday")
	list := k.reads(ada, k.say(ada, ada, "/cron"), textScheduleAll)
	k.tap(ada, ada, list.ID, "1. say hello")
	page := k.shows(ada, list.ID, "/cron edit ")
	if !page.has(textEdit) {
		t.Errorf("the page has %q", page.labels())
	}
	_, id, _ := strings.Cut(page.Text, "/cron edit ")
	for _, c := range [][]string{
		{`"0 8 * * *"`, "say hello", "08:00"},
		{"say goodbye", "say goodbye", "08:00"},
		{"--every 2h until 22:00 say again", "say again", "very 2 h until"},
		{"—at 2031-01-15 09:00", "say again", "nce, Wed 15 Jan 2031 09:00"},
	} {
		k.reads(ada, k.say(ada, ada, "/cron edit "+id+" "+c[0]), c[1], c[2], textNext)
	}
	k.reads(ada, k.say(ada, ada, "/cron edit "+id+` "* * * *"`), specFault(nil))
	k.reads(ada, k.say(ada, ada, "/cron edit "+id+" --at 2001-01-01 10:00 say never"), specFault(task.ErrPast))
	k.reads(ada, k.say(ada, ada, "/cron edit "+id), textEditHelp)
	k.reads(ada, k.say(ada, ada, "/cron"), "say again", "15 Jan 2031")
}

// TestWorkElsewhere: in another project than the chat's, and by a runtime that is there.
func TestWorkElsewhere(t *testing.T) {
	t.Parallel()
	k := newTalk(t, talkOptions{projects: []string{"other"}})
	report := k.reads(ada, k.say(ada, ada, "/task new --project other --no-follow greet\nsay hello"), "In review: greet")
	k.tap(ada, ada, report.ID, textDetails)
	k.shows(ada, report.ID, "other on box, script")
	k.reads(ada, k.say(ada, ada, "/in 5m --project nowhere say hello"), textNoSuchProject)
	k.reads(ada, k.say(ada, ada, "/in 5m --runtime nobody say hello"), textNoRuntime)
}

// TestATaskThatNobodyAnswers changes nothing, says so, and asks when it is run again with somebody there.
func TestATaskThatNobodyAnswers(t *testing.T) {
	t.Parallel()
	k := newTalk(t, talkOptions{deadline: 600 * time.Millisecond})
	at := k.say(ada, ada, "/task new make it\nrun touch made\nsay over")
	card := k.reads(ada, at, "Run this command?\ntouch made", textBackground)
	if !card.has("Allow") {
		t.Errorf("the card has %q", card.labels())
	}
	report := k.reads(ada, card.ID, "Not allowed: touch made – nobody answered", "Nothing was changed")
	if k.exists("made") {
		t.Fatal("it was done though nobody allowed it")
	}
	k.tap(ada, ada, report.ID, textRerunAsk)
	card = k.reads(ada, report.ID, "Run this command?\ntouch made")
	if strings.Contains(card.Text, textBackground) {
		t.Errorf("what somebody asked for is asked in the background:\n%s", card.Text)
	}
	k.tap(ada, ada, card.ID, "Allow")
	k.reads(ada, card.ID, "1 command run", "Asked once, allowed 1, refused 0.")
	if !k.exists("made") {
		t.Error("it was allowed and not done")
	}
}

func TestATaskIsRejectedByAReply(t *testing.T) {
	t.Parallel()
	k := newTalk(t, talkOptions{})
	report := k.reads(ada, k.say(ada, ada, "/task new greet\nsay hello"), "In review: greet")
	if n := k.tap(ada, ada, report.ID, textRejectTask); n.Text != textRejectHow {
		t.Errorf("Reject says %q", n.Text)
	}
	k.reply(ada, ada, report.ID, "say goodbye")
	k.reads(ada, report.ID, textRejected)
	k.reads(ada, report.ID, "In review: greet", "goodbye")
	list := k.reads(ada, k.say(ada, ada, "/tasks review"), "1. greet – in review")
	k.tap(ada, ada, list.ID, "1. greet")
	page := k.shows(ada, list.ID, textTaskSteps, "1. say hello", textTaskLog)
	if !page.has(textBack) || !page.has(textMakeAuto) {
		t.Errorf("the page has %q", page.labels())
	}
	k.tap(ada, ada, list.ID, textMakeAuto)
	k.shows(ada, list.ID, textAutopilot)
}

// TestATaskKeepsItsMode tries that raising the chat raises no task, and that only an owner raises one, on a second tap.
func TestATaskKeepsItsMode(t *testing.T) {
	t.Parallel()
	k := newTalk(t, talkOptions{})
	k.reads(ada, k.say(ada, ada, "/task new greet\nsay hello"), "In review: greet")
	k.reads(ada, k.say(ada, ada, "/mode auto-accept-edits"), textModeSet)
	list := k.reads(ada, k.say(ada, ada, "/tasks"), "greet")
	k.tap(ada, ada, list.ID, "1. greet")
	page := k.shows(ada, list.ID, "Mode: approval-required")
	k.tap(ada, ada, page.ID, textRaise+"auto-accept-edits")
	k.shows(ada, page.ID, textRaiseSure)
	k.tap(ada, ada, page.ID, textRaise+"auto-accept-edits")
	k.shows(ada, page.ID, "Mode: auto-accept-edits")
}

// shows waits until a message that has buttons has all the parts.
func (k *talk) shows(chat int64, id int, parts ...string) (m seen) {
	k.t.Helper()
	until(k.t, strings.Join(parts, " … "), func() bool {
		m = k.message(chat, id)
		return !slices.ContainsFunc(parts, func(p string) bool { return !strings.Contains(m.Text, p) })
	})
	return m
}
