package task

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"drawbridge/bridge"
	"drawbridge/internal/store"
	"drawbridge/policy"
	"drawbridge/runner"
)

// policyOf is what an agent was told that it may, as a text.
func policyOf(p runner.Policy) string { return string(p.Mode) + " " + string(p.Interaction) }

// TestEveryWayToStartWorkEndsInTheSamePolicy starts work in every way there is, under each pair of modes, and looks at what
// the agent's host says is allowed: the stricter of the mode the work was made under and the chat's at that moment.
func TestEveryWayToStartWorkEndsInTheSamePolicy(t *testing.T) {
	t.Parallel()
	for way, start := range map[string]func(w *world, m policy.Mode){
		"a schedule": func(w *world, m policy.Mode) { w.schedule(m, Spec{Every: time.Hour, From: time.Now()}, Work{}) },
		"a delay":    func(w *world, m policy.Mode) { w.schedule(m, Spec{At: time.Now().Add(time.Hour)}, Work{}) },
		"a delay in the chat": func(w *world, m policy.Mode) {
			w.schedule(m, Spec{At: time.Now().Add(time.Hour)}, Work{InChat: true})
		},
		"now, of a schedule": func(w *world, m policy.Mode) {
			id := w.schedule(m, Spec{At: time.Now().Add(1000 * time.Hour)}, Work{})
			k := w.keeper()
			w.update(func(t *store.Txn) error { _, _, err := k.tasks.RunNow(t, id, "Ada"); return err })
		},
		"a task":             func(w *world, m policy.Mode) { w.add(m, Work{}) },
		"a task in the chat": func(w *world, m policy.Mode) { w.add(m, Work{InChat: true}) },
		"on another host":    func(w *world, m policy.Mode) { w.add(m, Work{Host: "h2", Project: project, Runtime: "script"}) },
		"the step after a step": func(w *world, m policy.Mode) {
			w.add(m, Work{Steps: []string{"one", "two"}})
			w.finish(completed())
		},
		"what a runtime goes on with": func(w *world, m policy.Mode) {
			w.add(m, Work{})
			w.finish(runner.Result{Outcome: runner.Completed, Next: &runner.Input{Text: "go on"}})
		},
		"a retry": func(w *world, m policy.Mode) {
			w.add(m, Work{Execution: Auto})
			w.refused()
			w.finish(completed())
		},
		"a careful retry": func(w *world, m policy.Mode) {
			w.add(m, Work{Execution: Auto, Careful: true})
			w.refused()
			w.finish(completed())
		},
		"a rejection": func(w *world, m policy.Mode) {
			id := w.add(m, Work{})
			w.finish(completed())
			k := w.keeper()
			w.update(func(t *store.Txn) error { _, _, err := k.tasks.Reject(t, id, "not so", "Ada"); return err })
		},
		"a further run": func(w *world, m policy.Mode) {
			id := w.add(m, Work{})
			w.finish(runner.Result{Outcome: runner.Broken})
			k := w.keeper()
			w.update(func(t *store.Txn) error { _, _, err := k.tasks.Rerun(t, id, false, "Ada"); return err })
		},
		"run again and ask me": func(w *world, m policy.Mode) {
			id := w.add(m, Work{})
			w.finish(completed())
			k := w.keeper()
			w.update(func(t *store.Txn) error { _, _, err := k.tasks.Rerun(t, id, true, "Ada"); return err })
		},
		"after a restart of its host": func(w *world, m policy.Mode) {
			id := w.add(m, Work{})
			w.hosts["h1"].stop()
			w.host("h1")
			synctest.Wait()
			k := w.keeper()
			w.update(func(t *store.Txn) error { _, _, err := k.tasks.Rerun(t, id, false, "Ada"); return err })
		},
		"a follow-up": func(w *world, m policy.Mode) {
			w.add(m, Work{Execution: Auto})
			w.answers("done")
			w.passes()
			w.answers(`{"tasks":[{"title":"next","steps":["do that"]}]}`)
		},
		"a follow-up that asks for more": func(w *world, m policy.Mode) {
			w.add(m, Work{Execution: Auto})
			w.answers("done")
			w.passes()
			w.answers(`{"tasks":[{"title":"next","steps":["do that"],"mode":"full-access"}]}`)
		},
		"behind a step that was left out": func(w *world, m policy.Mode) {
			id := w.add(m, Work{Steps: []string{"1", "2"}})
			w.finish(runner.Result{Outcome: runner.Broken})
			w.person(func(s *Service, t *store.Txn) (Task, bool, error) { return s.Skip(t, id, "Ada") })
		},
		"behind a step that was done by hand": func(w *world, m policy.Mode) {
			id := w.add(m, Work{Steps: []string{"1", "2"}})
			w.finish(runner.Result{Outcome: runner.Broken})
			w.person(func(s *Service, t *store.Txn) (Task, bool, error) { return s.ByHand(t, id, "Ada") })
		},
		"a delivery to a hook, twice": func(w *world, m policy.Mode) {
			k := w.keeper()
			for range 2 {
				w.update(func(t *store.Txn) error {
					_, err := k.tasks.Add(t, home, NewTask{ID: "hook-build-1", Origin: OriginEvent, Work: Work{Steps: []string{"do it"}, Mode: m, By: ada, Name: "hook build"}})
					return err
				})
				time.Sleep(pace) //nolint:forbidigo // in a bubble
				synctest.Wait()
			}
		},
		"a proposal": func(w *world, m policy.Mode) { w.proposed(m, runner.Proposal{}) },
		"a proposal of a looser": func(w *world, m policy.Mode) {
			w.proposed(m, runner.Proposal{Title: "t", Steps: []string{"a"}, Mode: policy.FullAccess})
		},
		"a proposed schedule": func(w *world, m policy.Mode) {
			w.proposed(m, runner.Proposal{Title: "t", Steps: []string{"a"}, When: runner.ProposedEvery, Time: "1h"})
		},
		"resumed by its task's id": func(w *world, m policy.Mode) {
			w.add(m, Work{})
			w.gateways[0].stop()
			w.gateway(0)
		},
	} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			for _, made := range policy.Modes() {
				for _, now := range policy.Modes() {
					synctest.Test(t, func(t *testing.T) {
						w := newWorld(t)
						defer w.down()
						w.host("h1")
						w.host("h2")
						w.gateway(0)
						synctest.Wait()
						time.Sleep(time.Second)
						w.settle("h1", made)
						start(w, made)
						for range 2 { // what waits for a place is looked at again, what is planned comes in an hour
							if synctest.Wait(); len(w.running()) == 0 {
								time.Sleep(time.Hour)
							}
						}
						if strings.HasSuffix(way, "retry") && !made.Looser(policy.ApprovalRequired) {
							if len(w.running()) != 0 {
								t.Error("tried again in a mode that allows no writing")
							}
							return
						}
						if len(w.running()) != 1 {
							t.Fatalf("%d turns run; tasks %+v", len(w.running()), w.tasks())
						}
						w.mode(now)
						if got, want := policyOf(w.running()[0].policy()), policyOf(runner.Policy{Mode: made.AtMost(now), Interaction: policy.Default}); got != want {
							t.Errorf("made under %s, the chat in %s: %s, want %s", made, now, got, want)
						}
						k := w.keeper()
						w.update(func(tx *store.Txn) error { return k.chats.SetInteraction(tx, home, policy.Plan) })
						if p := w.running()[0].policy(); p.Interaction != policy.Plan {
							t.Errorf("the chat is in plan, the task is not")
						}
					})
				}
			}
		})
	}
}

func (w *world) schedule(m policy.Mode, spec Spec, work Work) string {
	k := w.keeper()
	work.Mode, work.By, work.Name = m, ada, "Ada"
	if len(work.Steps) == 0 {
		work.Steps = []string{"do it"}
	}
	var sch Schedule
	w.update(func(t *store.Txn) (err error) {
		sch, err = k.tasks.AddSchedule(t, home, NewSchedule{Work: work, Spec: spec})
		return err
	})
	return sch.ID
}

func (w *world) add(m policy.Mode, work Work) string {
	k := w.keeper()
	work.Mode, work.By, work.Name = m, ada, "Ada"
	if len(work.Steps) == 0 {
		work.Steps = []string{"do it"}
	}
	var task Task
	w.update(func(t *store.Txn) (err error) { task, err = k.tasks.Add(t, home, NewTask{Work: work}); return err })
	time.Sleep(pace) //nolint:forbidigo // in a bubble
	synctest.Wait()
	return task.ID
}

// finish ends the turn that runs.
func (w *world) finish(r runner.Result) {
	for _, t := range w.running() {
		t.end <- r
	}
	synctest.Wait()
}

// refused lets the agent ask for something that nobody answers, because the chat is in plan for a moment.
func (w *world) refused() {
	k := w.keeper()
	w.update(func(t *store.Txn) error { return k.chats.SetInteraction(t, home, policy.Plan) })
	for _, t := range w.running() {
		t.ask("write", []policy.Category{policy.Write}, func(a runner.Answer) {
			if a.Allows() {
				w.t.Error("allowed in plan")
			}
		})
	}
	synctest.Wait()
	w.update(func(t *store.Txn) error { return k.chats.SetInteraction(t, home, policy.Default) })
}

// TestWorkThatHasLostItsModeIsHeldToTheStrictest is for older and damaged records.
func TestWorkThatHasLostItsModeIsHeldToTheStrictest(t *testing.T) {
	t.Parallel()
	for _, limit := range []policy.Mode{"", "yolo"} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			defer w.down()
			w.host("h1")
			w.gateway(0)
			synctest.Wait()
			time.Sleep(time.Second)
			w.settle("h1", policy.FullAccess)
			k := w.keeper()
			w.update(func(tx *store.Txn) error {
				now, err := tx.Now()
				if err != nil {
					return err
				}
				c, err := k.chats.Lane(tx, bridge.Lane{Name: "old", Of: home, Host: "h1", Project: project, Runtime: "script"})
				if err != nil {
					return err
				}
				_, err = k.chats.Prompt(tx, c.ID, bridge.Prompt{ID: "task:old:1:0:0", Text: "x", At: now, Limit: limit})
				return err
			})
			w.update(func(tx *store.Txn) error {
				now, err := tx.Now()
				if err != nil {
					return err
				}
				_, err = k.chats.Prompt(tx, home, bridge.Prompt{ID: "task:older:1:0:0", Text: "x", At: now, Limit: limit, Plan: true, Work: &bridge.Work{Task: "older"}})
				return err
			})
			synctest.Wait()
			if len(w.running()) != 2 {
				t.Fatalf("%d turns run", len(w.running()))
			}
			for _, turn := range w.running() {
				if m := turn.policy().Mode; m != policy.ApprovalRequired {
					t.Errorf("%s with the limit %q is allowed %s", turn.id, limit, m)
				}
			}
		})
	}
}
