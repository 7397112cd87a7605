package task

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"drawbridge/bridge"
	"drawbridge/internal/store"
	"drawbridge/policy"
	"drawbridge/runner"
)

// inWorld runs f in a bubble with a gateway, a host, and a chat in a mode.
func inWorld(t *testing.T, m policy.Mode, f func(w *world)) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.down()
		w.host("h1")
		w.gateway(0)
		synctest.Wait()
		time.Sleep(time.Second)
		w.settle("h1", m)
		f(w)
	})
}

func (w *world) told(kind EventKind) (out []Event) {
	w.update(func(t *store.Txn) error {
		out = nil
		n, _, err := store.Get[int](t, toldKey)
		for i := range n {
			e, _, err := store.Get[Event](t, fmt.Sprint(toldKey, ":", i))
			if err != nil {
				return err
			}
			if e.Kind == kind {
				out = append(out, e)
			}
		}
		return err
	})
	return out
}

// TestWhatBecomesOfATask lets the steps of a task end in every way and looks at where it stands then.
func TestWhatBecomesOfATask(t *testing.T) {
	t.Parallel()
	failed := runner.Result{Outcome: runner.Broken, Reason: "no model"}
	for name, c := range map[string]struct {
		work    Work
		refused bool
		results []runner.Result
		state   State
		why     Reason
	}{
		"review":               {Work{}, false, []runner.Result{completed()}, InReview, ""},
		"auto":                 {Work{Execution: Auto}, false, []runner.Result{completed()}, Done, ""},
		"both steps":           {Work{Execution: Auto, Steps: []string{"1", "2"}}, false, []runner.Result{completed(), completed()}, Done, ""},
		"fails":                {Work{Execution: Auto}, false, []runner.Result{failed}, Blocked, WhyFailed},
		"the first step fails": {Work{Steps: []string{"1", "2"}}, false, []runner.Result{failed}, Blocked, WhyFailed},
		"lacks permission":     {Work{}, true, []runner.Result{completed()}, Blocked, WhyPermission},
		"is tried again":       {Work{Execution: Auto}, true, []runner.Result{completed(), completed()}, Done, ""},
		"uses up its budget":   {Work{Budget: 10}, false, []runner.Result{{Outcome: runner.Completed, Usage: runner.Usage{Output: 11}}}, Blocked, WhyBudget},
		"nonsense as a choice": {Work{Execution: "yolo"}, false, []runner.Result{completed()}, InReview, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, policy.AutoAcceptEdits, func(w *world) {
				w.add(policy.AutoAcceptEdits, c.work)
				if c.refused {
					w.refused()
				}
				for _, r := range c.results {
					if len(w.running()) != 1 {
						t.Fatalf("%d turns run", len(w.running()))
					}
					w.finish(r)
				}
				task := w.tasks()[0]
				if task.State != c.state || task.Why != c.why {
					t.Errorf("it stands as %s, %s; want %s, %s", task.State, task.Why, c.state, c.why)
				}
				if n := len(w.told(Finished)); n != 1 {
					t.Errorf("%d reports", n)
				}
				if c.refused && (task.Run.Done.Refused != 1 || len(task.Run.Refusals()) != 1) {
					t.Errorf("the report says %+v", task.Run.Done)
				}
			})
		})
	}
}

// TestWhatKeepsWorkFromRunning takes away what a task and a schedule need: they do not run, and that is said once.
func TestWhatKeepsWorkFromRunning(t *testing.T) {
	t.Parallel()
	raw := func(w *world, chat string) {
		b := store.Batch{Rev: store.NewRev(), Put: map[string][]byte{"g:chat:" + home: []byte(chat)}}
		if err := w.db.Commit(context.Background(), b); err != nil {
			w.t.Fatal(err)
		}
	}
	for why, take := range map[Reason]func(w *world){
		WhyNoRight: func(w *world) { w.mu.Lock(); w.may = false; w.mu.Unlock() },
		WhyNoMode: func(w *world) {
			raw(w, `{"v":1,"id":"`+home+`","mode":"yolo","project":"demo","host":"h1","runtime":"script"}`)
		},
		WhyNoChat: func(w *world) {
			w.update(func(t *store.Txn) error { t.Delete("g:chat:" + home); return nil })
		},
		WhyNoHost: func(w *world) {
			w.update(func(t *store.Txn) error { t.Delete("from:h1:hello"); return nil })
		},
		WhyNoProject: func(w *world) {
			w.update(func(t *store.Txn) error {
				return store.Put(t, "from:h1:hello", bridge.Hello{V: 1, Host: "h1", Runtimes: map[string]runner.Capability{"script": {}}})
			})
		},
		WhyNoRuntime: func(w *world) {
			w.update(func(t *store.Txn) error {
				return store.Put(t, "from:h1:hello", bridge.Hello{V: 1, Host: "h1", Projects: []bridge.Project{{Name: project, Folder: w.folder}}})
			})
		},
	} {
		t.Run(string(why), func(t *testing.T) {
			t.Parallel()
			inWorld(t, policy.FullAccess, func(w *world) {
				w.schedule(policy.FullAccess, Spec{Every: time.Hour, From: time.Now()}, Work{})
				w.hosts["h1"].stop() // it would say again what it offers
				take(w)
				time.Sleep(5 * time.Hour)
				synctest.Wait()
				if n := len(w.running()); n != 0 {
					t.Errorf("%d turns run", n)
				}
				halted := w.told(Halted)
				if len(halted) != 1 || halted[0].Why != why || halted[0].Schedule.State != Paused {
					t.Errorf("told %+v", halted)
				}
			})
		})
	}
}

func TestTheSameIsNeverDoneTwiceAtATime(t *testing.T) {
	t.Parallel()
	inWorld(t, policy.FullAccess, func(w *world) {
		w.schedule(policy.FullAccess, Spec{Every: time.Hour, From: time.Now()}, Work{})
		time.Sleep(3*time.Hour + pace)
		synctest.Wait()
		if n := len(w.running()); n != 1 {
			t.Errorf("%d turns run", n)
		}
		told := w.told(Omitted)
		if len(told) != 2 || told[0].Why != WhyOverlap || told[0].Omission.Repeated || !told[1].Omission.Repeated {
			t.Errorf("told %+v", told)
		}
		w.finish(completed())
		time.Sleep(time.Hour)
		synctest.Wait()
		if n := len(w.running()); n != 1 {
			t.Errorf("%d turns run after the first has ended", n)
		}
	})
}

// TestALaneIsBesideTheConversation: the chat's own prompts do not wait for its tasks, unless both write in one folder.
func TestALaneIsBesideTheConversation(t *testing.T) {
	t.Parallel()
	inWorld(t, policy.FullAccess, func(w *world) {
		k := w.keeper()
		w.update(func(t *store.Txn) error { return k.chats.SetInteraction(t, home, policy.Plan) }) // nobody needs the folder
		w.add(policy.FullAccess, Work{})
		w.update(func(t *store.Txn) error {
			now, err := t.Now()
			if err != nil {
				return err
			}
			_, err = k.chats.Prompt(t, home, bridge.Prompt{ID: "u:1", Text: "hello", At: now})
			return err
		})
		synctest.Wait()
		if n := len(w.running()); n != 2 {
			t.Errorf("%d turns run", n)
		}
		all, err := k.chats.All(context.Background(), 0)
		if err != nil || !slices.Equal(all, []string{home}) {
			t.Errorf("the chats are %v, %v", all, err)
		}
	})
}

func TestARaisedChatRaisesNoTask(t *testing.T) {
	t.Parallel()
	inWorld(t, policy.ApprovalRequired, func(w *world) {
		k := w.keeper()
		id := w.add("", Work{})
		w.mode(policy.FullAccess)
		if m := w.running()[0].policy().Mode; m != policy.ApprovalRequired {
			t.Errorf("it is allowed %s", m)
		}
		w.update(func(tx *store.Txn) error {
			task, err := k.tasks.SetMode(tx, id, policy.FullAccess) // an owner's step; from the next step on
			if task.Mode != policy.FullAccess {
				t.Errorf("it is held to %s", task.Mode)
			}
			return err
		})
		w.mode(policy.AutoAcceptEdits)
		w.update(func(tx *store.Txn) error {
			if _, err := k.tasks.SetMode(tx, id, policy.FullAccess); err == nil {
				t.Error("it was raised above the chat")
			}
			if _, err := k.tasks.Add(tx, home, NewTask{Work: Work{Steps: []string{"x"}, Mode: policy.Auto}}); err == nil {
				t.Error("it was made under more than the chat's mode")
			}
			return nil
		})
	})
}

func TestStatesLeadWhereTheyShould(t *testing.T) {
	t.Parallel()
	arrows := map[State][]State{
		Pending: {InProgress, Blocked, Cancelled}, InProgress: {InReview, Done, Blocked, Cancelled}, InReview: {Done, Pending, Cancelled},
		Blocked: {Pending, InReview, Done, Cancelled}, Done: {Pending}, Cancelled: {Pending}, "nonsense": nil,
	}
	for from, to := range arrows {
		for _, st := range States() {
			if from.leadsTo(st) != slices.Contains(to, st) {
				t.Errorf("%s leads to %s: %v", from, st, from.leadsTo(st))
			}
		}
	}
}
