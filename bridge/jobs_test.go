package bridge

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"drawbridge/internal/store"
	"drawbridge/runner"
	"drawbridge/runner/runnertest"
)

// begins is a script that begins the jobs which its prompt names, and then ends its turn, or waits where it is told to. It
// hands itself out, for what comes later.
func begins(out chan<- *runnertest.Scripted) hostOption {
	return withTurn(func(ctx context.Context, s *runnertest.Scripted, in runner.Input) (runner.Result, error) {
		for title := range strings.FieldsSeq(in.Text) {
			switch title {
			case "wait":
				out <- s
				<-ctx.Done()
				return runner.Result{}, ctx.Err()
			case "nothing":
			default:
				s.Emit(job(title, false))
			}
		}
		select {
		case out <- s:
		default:
		}
		return runner.Result{Outcome: runner.Completed}, nil
	})
}

func job(title string, ended bool) runner.Event {
	return runner.Event{Kind: runner.BackgroundEvent, Background: &runner.Background{
		ID: "id " + title, Title: title, Started: time.Unix(1_700_000_000, 0), Ended: ended,
	}}
}

func (h *house) jobs(chat string) (all []Job, more int) {
	h.t.Helper()
	h.update(func(t *store.Txn) (err error) {
		all, more, err = h.chats.Jobs(t, chat)
		return err
	})
	return all, more
}

// runs waits until the titles of what goes on in the background of a chat are these.
func (h *house) runs(chat, titles string) []Job {
	h.t.Helper()
	deadline := time.Now().Add(60 * time.Second)
	for {
		all, _ := h.jobs(chat)
		var got []string
		for _, j := range all {
			got = append(got, j.Title)
		}
		if strings.Join(got, " ") == titles {
			return all
		}
		if time.Now().After(deadline) {
			h.t.Fatalf("in the background of %s run %q, want %q", chat, got, titles)
		}
		<-time.After(beat)
	}
}

// TestWhatGoesOnInTheBackgroundIsKept: what began in a turn is known behind it, what ends between turns is not known any
// more, and a new session, a stop of the session, or the next run of the host leaves nothing.
func TestWhatGoesOnInTheBackgroundIsKept(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	scripts := make(chan *runnertest.Scripted, 1)
	_, crash := h.hostWithCrash("laptop", begins(scripts), func(c *HostConfig) { c.SessionIdle = beat })
	h.prompt("7", "u:1", "a b")
	h.shown.ended(t, "t.u:1")
	all := h.runs("7", "a b")
	if j := all[0]; j.Host != "laptop" || j.Runtime != "script" || j.Session != h.chat("7").Session || j.Chat != "7" || j.Started.Unix() != 1_700_000_000 {
		t.Errorf("a job is %+v", j)
	}
	s := <-scripts
	s.Emit(job("c", false)) // between two turns
	h.runs("7", "a b c")
	s.Emit(job("a", true))
	h.runs("7", "b c")
	<-time.After(10 * beat) // the session is idle for long, and yet stays, since it works
	h.runs("7", "b c")
	h.prompt("7", "u:2", "nothing")
	h.shown.ended(t, "t.u:2")
	h.runs("7", "b c")
	h.update(func(tx *store.Txn) error { return h.chats.New(tx, "7") })
	h.runs("7", "")

	h.prompt("7", "u:3", "d")
	h.runs("7", "d")
	h.update(func(tx *store.Txn) error {
		done, err := h.chats.Stop(tx, "7", time.Time{}, true)
		if done.Jobs != 1 {
			t.Errorf("the stop is %+v", done)
		}
		return err
	})
	h.runs("7", "")

	h.prompt("7", "u:4", "e")
	h.runs("7", "e")
	crash()
	h.host("laptop")
	h.runs("7", "")
}

// TestAStopEndsWhatGoesOnInTheBackground: also where no turn runs, and where one does.
func TestAStopEndsWhatGoesOnInTheBackground(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	scripts := make(chan *runnertest.Scripted, 1)
	h.host("laptop", begins(scripts))
	stop := func() (done Stopped) {
		h.update(func(tx *store.Txn) (err error) {
			done, err = h.chats.Stop(tx, "7", time.Time{}, false)
			return err
		})
		return done
	}
	h.prompt("7", "u:1", "a b")
	h.shown.ended(t, "t.u:1")
	h.runs("7", "a b")
	if done := stop(); done != (Stopped{Jobs: 2}) {
		t.Errorf("the stop is %+v", done)
	}
	h.runs("7", "")
	<-scripts
	h.prompt("7", "u:2", "c wait")
	<-scripts
	h.runs("7", "c")
	if done := stop(); done != (Stopped{Turn: true, Jobs: 1}) {
		t.Errorf("the stop is %+v", done)
	}
	if r := h.shown.ended(t, "t.u:2"); r.Outcome != runner.Interrupted {
		t.Errorf("the turn ended as %+v", r)
	}
	h.runs("7", "")
	before := h.chat("7").CloseSeq
	if done := stop(); done != (Stopped{}) || h.chat("7").CloseSeq != before {
		t.Errorf("a stop of nothing is %+v", done)
	}
}

// TestJobsOfALaneAreTheChats and not more than can be shown.
func TestJobsOfALaneAreTheChats(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.host("laptop", begins(nil))
	h.prompt("7", "u:1", "own")
	h.shown.ended(t, "t.u:1")
	h.runs("7", "own")
	var lane Chat
	h.update(func(tx *store.Txn) (err error) {
		lane, err = h.chats.Lane(tx, Lane{Name: "work", Of: "7", Host: "laptop", Project: "demo", Runtime: "script"})
		return err
	})
	h.prompt(lane.ID, "u:2", "theirs")
	h.shown.ended(t, "t.u:2")
	all := h.runs("7", "own theirs")
	if all[1].Chat != lane.ID {
		t.Errorf("the lane's job is %+v", all[1])
	}
	h.update(func(tx *store.Txn) error {
		done, err := h.chats.Stop(tx, "7", time.Time{}, false)
		if done.Jobs != 1 {
			t.Errorf("the chat's stop is %+v", done)
		}
		return err
	})
	h.runs("7", "theirs")
	h.update(func(tx *store.Txn) error { return h.chats.Retire(tx, lane.ID, false) })
	h.runs("7", "")

	var many []string
	for i := range maxJobs + 3 {
		many = append(many, fmt.Sprintf("%03d%s", i, strings.Repeat("ü", maxJobTitle)))
	}
	h.prompt("8", "u:3", strings.Join(many, " "))
	h.shown.ended(t, "t.u:3")
	deadline := time.Now().Add(60 * time.Second)
	for {
		all, more := h.jobs("8")
		if len(all) == maxJobs && more == 3 {
			if n := len(all[0].Title); n > maxJobTitle || !strings.HasPrefix(all[0].Title, "000ü") {
				t.Errorf("a title of %d bytes", n)
			}
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d jobs and %d more", len(all), more)
		}
		<-time.After(beat)
	}
}

// TestRecordsOfJobsThatAreOddAreRead: a damaged one hides only itself, and one of another form gives what it holds.
func TestRecordsOfJobsThatAreOddAreRead(t *testing.T) {
	t.Parallel()
	h := newHouseLogging(t, silent())
	h.host("laptop")
	h.host("box")
	h.update(func(tx *store.Txn) error {
		tx.PutBytes(jobsKey("laptop", "7"), []byte(`{"v":1,"jobs":[{"id":7`))
		tx.PutBytes(jobsKey("box", "7"), []byte(`{"v":9,"later":true,"jobs":[{"id":"x","title":"make","started":"2026-12-01T10:00:00Z","more":{}}]}`))
		return nil
	})
	all := h.runs("7", "make")
	if j := all[0]; j.Host != "box" || j.Chat != "7" {
		t.Errorf("the job is %+v", j)
	}
	h.update(func(tx *store.Txn) error { _, err := h.chats.Stop(tx, "7", time.Time{}, false); return err })
}
