package bot

import (
	"slices"
	"strings"
	"testing"
	"time"

	"drawbridge/approvals"
	"drawbridge/bridge"
	"drawbridge/internal/store"
	"drawbridge/policy"
)

// listing sends /jobs until the answer holds the parts, and returns it: a host tells what it runs a moment later.
func (k *talk) listing(parts ...string) seen {
	k.t.Helper()
	limit := time.Now().Add(60 * time.Second)
	for {
		at := k.say(ada, ada, "/jobs")
		var answer seen
		until(k.t, "an answer to /jobs", func() bool {
			i := slices.IndexFunc(k.rig.chat(ada), func(m seen) bool { return m.ReplyTo == at })
			if i >= 0 {
				answer = k.rig.chat(ada)[i]
			}
			return i >= 0
		})
		if holds(answer.Text, parts...) {
			return answer
		}
		if time.Now().After(limit) {
			k.t.Fatalf("/jobs does not show %q; the chat reads\n%s", parts, strings.Join(texts(k.rig.chat(ada)), "\n---\n"))
		}
	}
}

// TestJobsAreListedAndStopped: what outlives its turn is listed as it is, /status counts it, and a button, /stop and /new
// each end it.
func TestJobsAreListedAndStopped(t *testing.T) {
	t.Parallel()
	k := newTalk(t, talkOptions{mode: policy.FullAccess})
	m := k.reads(ada, k.say(ada, ada, "/jobs")-1, textJobsNone)
	if len(m.Buttons) > 0 {
		t.Errorf("nothing runs, and there are the buttons %q", m.labels())
	}
	k.say(ada, ada, "background sleep 600 # über\nsay begun")
	m = k.listing(textJobs, "1. sleep 600 # über – script, since ", textJobsStopHow)
	if strings.Contains(m.Text, textJobsTasks) || strings.Contains(m.Text, textJobsEarlier) || !m.has(textJobsStop) {
		t.Errorf("it reads %q with %q", m.Text, m.labels())
	}
	k.reads(ada, k.say(ada, ada, "/status"), "1 background job, /jobs")
	k.tap(ada, ada, m.ID, textJobsStop)
	k.becomes(ada, m.ID, "Ending 1 background job. "+textSessionEnds)
	k.listing(textJobsNone)
	k.none(ada, k.say(ada, ada, "/status"), "background job")

	k.say(ada, ada, "background sleep 601\nbackground sleep 602")
	k.listing("sleep 601", "sleep 602")
	k.reads(ada, k.say(ada, ada, "/stop"), "Ending 2 background jobs.")
	k.listing(textJobsNone)
	k.reads(ada, k.say(ada, ada, "/stop"), textNothingRuns)

	k.say(ada, ada, "background sleep 603")
	k.listing("sleep 603")
	k.reads(ada, k.say(ada, ada, "/new"), textNewDone)
	k.listing(textJobsNone)
}

// TestJobsShowTheTasksThatRun: each with a button to it and one that cancels it, and what a task has begun beside them.
func TestJobsShowTheTasksThatRun(t *testing.T) {
	t.Parallel()
	k := newTalk(t, talkOptions{mode: policy.FullAccess})
	k.say(ada, ada, "/task new build it\nbackground sleep 604\nsleep 10m")
	m := k.listing(textJobs, "sleep 604 – script, of the task “build it”, since ", textJobsTasks, "1. build it – running", textJobsTaskEnd)
	if got := strings.Join(m.labels(), ", "); got != "1. build it, "+textCancelTask {
		t.Errorf("the buttons are %q", got)
	}
	k.tap(ada, ada, m.ID, "1. build it")
	until(t, "the task's page", func() bool { return holds(k.message(ada, m.ID).Text, textTaskSteps) })
	m = k.listing(textJobsTasks)
	k.tap(ada, ada, m.ID, textCancelTask)
	k.listing(textJobsNone)
}

// TestJobsOfAHostThatIsAwayAreNotVouchedFor.
func TestJobsOfAHostThatIsAwayAreNotVouchedFor(t *testing.T) {
	t.Parallel()
	k := newTalk(t, talkOptions{noHost: true})
	k.update(func(t *store.Txn) error {
		t.Add(approvals.HostsIndex, "attic", 1)
		t.PutBytes("from:attic:jobs:"+ChatRef{ID: ada}.Key(), []byte(`{"v":1,"jobs":[`+
			`{"id":"x","title":"","started":"2026-12-01T10:00:00Z","session":"s.old","runtime":"script"},`+
			`{"id":"y","title":"`+"a\u202eb "+strings.Repeat("make ", 100)+`","chat":"`+bridge.LaneID("gone")+`","started":"2026-12-01T10:00:00Z"}],"more":3}`))
		return nil
	})
	m := k.reads(ada, k.say(ada, ada, "/jobs"), "1. "+textBlankLabel+" – script"+textJobsEarlier, "2. a⟨U+202E⟩b make make", "… 3 more", "attic"+textJobsAway)
	if len(m.Text) > 1500 {
		t.Errorf("it reads %q", m.Text)
	}
}
