package task

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"drawbridge/approvals"
	"drawbridge/bridge"
	"drawbridge/internal/store"
	"drawbridge/policy"
	"drawbridge/runner"
)

// What happens to a task while something follows its run.

func (w *world) places(host string) (p places) {
	w.update(func(t *store.Txn) (err error) { p, _, err = store.Get[places](t, placesKey(host)); return err })
	return p
}

// waits lets time go by.
func (w *world) waits(d time.Duration) {
	time.Sleep(d) //nolint:forbidigo // in a bubble
	synctest.Wait()
}

func (w *world) laneKnown(id string) (known bool) {
	w.update(func(t *store.Txn) (err error) {
		_, known, err = store.Get[bridge.Chat](t, "g:chat:"+bridge.LaneID(id))
		return err
	})
	return known
}

// TestApprovingEndsNoHook: who approves a result while the hooks of its end still run loses none of them, and follow-ups come
// behind them.
func TestApprovingEndsNoHook(t *testing.T) {
	t.Parallel()
	for name, wait := range map[string]time.Duration{"before it began": 0, "while it runs": pace + time.Second} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w, d := newWorld(t), &diary{}
				w.hooks = []Hook{
					{Event: PipelineCompleted, Command: []string{"first"}, Limit: time.Hour},
					{Event: PipelineCompleted, Message: "{title} is in {state}"},
				}
				w.call = func(ctx context.Context, h Hook, _ Task) error {
					d.add(h.Command[0] + " begins")
					select {
					case <-ctx.Done():
						return ctx.Err()
					case <-time.After(10 * pace):
					}
					d.add(h.Command[0] + " ends")
					return nil
				}
				defer w.down()
				w.host("h1")
				w.gateway(0)
				synctest.Wait()
				w.waits(time.Second)
				w.settle("h1", policy.AutoAcceptEdits)
				id := w.add(policy.AutoAcceptEdits, Work{Title: "tidy"})
				if wait == 0 { // no gateway begins it
					for _, turn := range w.running() {
						turn.end <- completed()
					}
				} else {
					w.answers("done")
					w.waits(wait)
				}
				synctest.Wait()
				won := false
				w.update(func(t *store.Txn) (err error) { _, won, err = w.gateways[0].tasks.Approve(t, id, "Ada"); return err })
				if !won {
					t.Fatal("not approved")
				}
				w.waits(2 * pace)
				if n := len(w.running()); n != 0 {
					t.Errorf("%d turns run while a hook does", n)
				}
				w.waits(15 * pace)
				w.wants(d, "first begins", "first ends")
				if hooked := w.told(Hooked); len(hooked) != 1 || hooked[0].Words != "tidy is in done" {
					t.Errorf("the message behind it: %+v", hooked)
				}
				if failed := w.told(HookFailed); len(failed) != 0 {
					t.Errorf("told of failures: %+v", failed)
				}
				if n := len(w.running()); n != 1 {
					t.Fatalf("%d turns look for follow-ups", n)
				}
				w.answers(`{"tasks":[]}`)
				w.passes()
				if task := w.task(id); task.Pipeline != nil || task.State != Done {
					t.Errorf("it stands at %+v", task)
				}
			})
		})
	}
}

// TestFollowUpsOfWhatRanInTheChat are looked for where the run was, not where the chat was when it was planned, and leave
// nothing behind: no place on any host, no lane once the task is forgotten.
func TestFollowUpsOfWhatRanInTheChat(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.down()
		w.host("h1")
		w.host("h2")
		w.gateway(0)
		synctest.Wait()
		w.waits(time.Second)
		w.settle("h1", policy.AutoAcceptEdits)
		k, id := w.keeper(), ""
		w.update(func(t *store.Txn) error {
			task, err := k.tasks.Add(t, home, NewTask{Work: Work{
				Steps: []string{"do it"}, Mode: policy.AutoAcceptEdits, By: ada, InChat: true, Follow: FollowOn, Execution: Auto,
			}})
			if err != nil {
				return err
			}
			id = task.ID
			_, err = k.chats.SetProject(t, home, project+"@h2")
			return err
		})
		w.passes()
		if r := w.running(); len(r) != 1 || r[0].host != "h2" {
			t.Fatalf("%d turns run", len(r))
		}
		w.answers("done")
		w.passes()
		if r := w.running(); len(r) != 1 || r[0].host != "h2" || !strings.Contains(r[0].in.Text, `{"tasks":[`) {
			t.Errorf("%d turns look for follow-ups, on %s", len(r), r[0].host)
		}
		w.answers(`{"tasks":[{"title":"next","steps":["s"]}]}`)
		made := w.told(FollowedUp)[0].Made
		if len(made) != 1 || made[0].Host != "h2" {
			t.Fatalf("made %+v", made)
		}
		w.passes()
		w.answers("done")
		w.passes()
		for _, host := range []string{"h1", "h2"} {
			if p := w.places(host); len(p.Tasks) != 0 {
				t.Errorf("places are taken on %s: %v", host, p.Tasks)
			}
		}
		w.waits(keep + time.Hour)
		if w.laneKnown(id) || w.laneKnown(made[0].ID) {
			t.Error("a lane is left of a task that is forgotten")
		}
	})
}

// TestFollowUpsDoNotWaitForAHostForEver, neither before the run for them is handed over nor behind that.
func TestFollowUpsDoNotWaitForAHostForEver(t *testing.T) {
	t.Parallel()
	for _, handed := range []bool{false, true} {
		t.Run(fmt.Sprint("handed over ", handed), func(t *testing.T) {
			t.Parallel()
			inWorld(t, policy.AutoAcceptEdits, func(w *world) {
				id := w.add(policy.AutoAcceptEdits, Work{Execution: Auto})
				k := w.keeper()
				if handed { // a prompt of the chat takes the folder before the look can
					w.update(func(t *store.Txn) error {
						now, err := t.Now()
						if err != nil {
							return err
						}
						_, err = k.chats.Prompt(t, home, bridge.Prompt{ID: "p1", Text: "x", At: now})
						return err
					})
					w.answers("done")
					w.passes()
					if task := w.task(id); task.Pipeline == nil || task.Pipeline.Prompt == "" || len(w.running()) != 1 {
						t.Fatalf("it stands at %+v", task)
					}
					w.hosts["h1"].stop()
				} else {
					for _, turn := range w.running() {
						turn.sink(runner.Event{Kind: runner.ItemStarted, Item: &runner.Item{ID: "m", Kind: runner.ItemMessage}})
						turn.end <- completed()
					}
					// The gateway is away when the turn ends, and the host when the gateway comes back.
					w.gateways[0].stop()
					synctest.Wait()
					w.hosts["h1"].stop()
					w.waits(time.Hour)
					w.gateway(0)
				}
				delete(w.hosts, "h1")
				w.waits(3 * time.Hour)
				if task := w.task(id); task.State != Done || task.Pipeline == nil {
					t.Fatalf("given up within hours: %+v", task)
				}
				w.waits(hostMost)
				if task := w.task(id); task.Pipeline != nil {
					t.Errorf("it still waits: %+v", task.Pipeline)
				}
				if e := w.told(FollowedUp); len(e) != 1 || e[0].Why != WhyHostAway {
					t.Errorf("told %+v", e)
				}
				if p := w.places("h1"); len(p.Tasks) != 0 {
					t.Errorf("places are taken: %v", p.Tasks)
				}
				// Nothing of it is run when the host comes back.
				w.host("h1")
				w.waits(time.Hour)
				for _, turn := range w.running() {
					if _, ofTask := OfTurn(turn.id); ofTask {
						t.Errorf("%s runs", turn.id)
					}
				}
			})
		})
	}
}

// TestALookForFollowUpsShowsNoPlan: a chat that goes into plan meanwhile is not asked about what the agent plans.
func TestALookForFollowUpsShowsNoPlan(t *testing.T) {
	t.Parallel()
	inWorld(t, policy.AutoAcceptEdits, func(w *world) {
		w.add(policy.AutoAcceptEdits, Work{Execution: Auto})
		w.answers("done")
		w.passes()
		k := w.keeper()
		w.update(func(t *store.Txn) error { return k.chats.SetInteraction(t, home, policy.Plan) })
		for _, kind := range []runner.QuestionKind{runner.KindPlan, runner.KindQuestion, runner.KindProposal} {
			q := runner.Question{Kind: kind, Title: "x", Plan: "x", Categories: []policy.Category{policy.Question}}
			if a, err := w.running()[0].gate.Ask(context.Background(), q); err == nil && a.Allows() {
				t.Errorf("%s was allowed", kind)
			}
		}
		w.finish(runner.Result{Outcome: runner.Completed, Plan: "1. Write it"})
		w.passes()
		if p, err := w.gateways[0].approvals.Pending(context.Background(), home); err != nil || len(p) != 0 {
			t.Errorf("somebody is asked: %+v, %v", p, err)
		}
	})
}

// TestABudgetBoundsTheLookForFollowUps as well.
func TestABudgetBoundsTheLookForFollowUps(t *testing.T) {
	t.Parallel()
	inWorld(t, policy.AutoAcceptEdits, func(w *world) {
		id := w.add(policy.AutoAcceptEdits, Work{Execution: Auto, Budget: 100})
		w.finish(runner.Result{Outcome: runner.Completed, Usage: runner.Usage{Output: 60}})
		w.passes()
		if len(w.running()) != 1 {
			t.Fatal("nobody looks for follow-ups")
		}
		w.running()[0].sink(runner.Event{Kind: runner.UsageUpdated, Usage: &runner.Usage{Output: 30}})
		w.passes()
		if len(w.running()) != 1 {
			t.Fatal("it was ended before the budget was used up")
		}
		w.running()[0].sink(runner.Event{Kind: runner.UsageUpdated, Usage: &runner.Usage{Output: 50}})
		w.passes()
		if n := len(w.running()); n != 0 {
			t.Errorf("%d turns run", n)
		}
		if e := w.told(FollowedUp); len(e) != 1 || e[0].Why != WhyBudget {
			t.Errorf("told %+v", e)
		}
		if task := w.task(id); task.Pipeline != nil || task.State != Done || len(w.places("h1").Tasks) != 0 {
			t.Errorf("it stands at %+v", task)
		}
	})
}

// TestPlacesOfWhatIsGoneAreFree: a task whose record is damaged or gone holds no place of its host.
func TestPlacesOfWhatIsGoneAreFree(t *testing.T) {
	t.Parallel()
	inWorld(t, policy.AutoAcceptEdits, func(w *world) {
		w.update(func(t *store.Txn) error {
			return store.Put(t, placesKey("h1"), places{V: Version, Tasks: []string{"gone", "damaged", "older", "oldest"}})
		})
		if err := store.Update(context.Background(), w.db, func(t *store.Txn) error {
			return store.Put(t, taskKey("damaged"), []string{"what is this"})
		}); err != nil {
			t.Fatal(err)
		}
		w.update(func(t *store.Txn) error {
			return store.Put(t, taskKey("older"), Task{V: Version, ID: "older", Chat: home, State: Done, Run: &Run{N: 1}})
		})
		w.add(policy.AutoAcceptEdits, Work{})
		w.waits(pace)
		w.passes()
		if n := len(w.running()); n != 1 {
			t.Fatalf("%d turns run", n)
		}
		if p := w.places("h1"); len(p.Tasks) != 1 {
			t.Errorf("places are taken by %v", p.Tasks)
		}
	})
}

// TestATaskForAPersonSaysWhatItsStepLacked, and nothing of the steps before it; its step is as it was written down, also
// where a person has passed the one before it.
func TestATaskForAPersonSaysWhatItsStepLacked(t *testing.T) {
	t.Parallel()
	inWorld(t, policy.ApprovalRequired, func(w *world) {
		id := w.add(policy.ApprovalRequired, Work{Execution: Auto, Steps: []string{"a", "b", "c"}, Follow: FollowOff})
		for i, step := range []string{"a", "b", "c"} {
			if r := w.running(); len(r) != 1 || !strings.HasSuffix(r[0].in.Text, step) || strings.Count(r[0].in.Text, "by hand") != min(i, 1) {
				t.Fatalf("step %s: %d turns run, %+v", step, len(r), r)
			}
			w.refused()
			w.finish(completed())
			other := w.task(w.task(id).ByHand)
			if !slices.Equal(other.Steps, []string{step}) || other.Words != "write" {
				t.Errorf("step %s: the task for a person is %q, %q", step, other.Steps, other.Words)
			}
			if !w.person(func(s *Service, t *store.Txn) (Task, bool, error) { return s.ByHand(t, other.ID, "Ada") }) {
				t.Fatal("not done by hand")
			}
			w.passes()
		}
		if task := w.task(id); task.State != Done {
			t.Errorf("it stands at %s", task.State)
		}
	})
}

// TestCancellingATaskWhoseChatHasMoved takes its prompt out of the queue under the key that the chat has now.
func TestCancellingATaskWhoseChatHasMoved(t *testing.T) {
	t.Parallel()
	inWorld(t, policy.AutoAcceptEdits, func(w *world) {
		k := w.keeper()
		w.update(func(t *store.Txn) error {
			now, err := t.Now()
			if err != nil {
				return err
			}
			_, err = k.chats.Prompt(t, home, bridge.Prompt{ID: "p1", Text: "x", At: now})
			return err
		})
		synctest.Wait()
		id := w.add(policy.AutoAcceptEdits, Work{InChat: true})
		w.passes()
		if task := w.task(id); task.State != InProgress || len(w.running()) != 1 {
			t.Fatalf("it stands at %+v", task)
		}
		w.update(func(t *store.Txn) error {
			if _, err := k.chats.Migrate(t, home, "-2"); err != nil {
				return err
			}
			if err := k.tasks.Migrate(t, home, "-2"); err != nil {
				return err
			}
			_, won, err := k.tasks.Cancel(t, id, "Ada")
			if !won {
				w.t.Error("not cancelled")
			}
			return err
		})
		w.passes()
		w.passes()
		for _, turn := range w.running() {
			if of, ok := OfTurn(turn.id); ok && of == id {
				t.Error("it is run although it was cancelled")
			}
		}
	})
}

// TestTheSameEndTwice changes nothing while the hooks before a retry run.
func TestTheSameEndTwice(t *testing.T) {
	t.Parallel()
	withHooks(t, policy.AutoAcceptEdits, func(w *world, d *diary) {
		id := w.add(policy.AutoAcceptEdits, Work{Execution: Auto})
		turn := w.running()[0].id
		w.refused()
		w.finish(completed())
		sum := bridge.Summary{Asked: 1, Refused: 1}
		again := bridge.Entry{
			Chat: bridge.LaneID(id), Turn: turn, Summary: &sum,
			Event: runner.Event{Kind: runner.TurnEnded, Turn: turn, Result: &runner.Result{Outcome: runner.Completed}},
		}
		w.update(func(t *store.Txn) error { return w.gateways[0].tasks.Project(t, again) })
		w.waits(21 * time.Second)
		w.passes()
		if task := w.task(id); task.State != InProgress || task.Run.Tried != 1 || task.Run.Done.Refused != 1 || len(w.running()) != 1 {
			t.Errorf("it stands at %+v", task)
		}
	})
}

// TestOfManyWhoDecideOneWins: at the task and at the one for a person that was made of it, at two gateways, all at once.
func TestOfManyWhoDecideOneWins(t *testing.T) {
	t.Parallel()
	type deed func(s *Service, t *store.Txn, id string) (Task, bool, error)
	deeds := []deed{
		func(s *Service, t *store.Txn, id string) (Task, bool, error) { return s.ByHand(t, id, "Ada") },
		func(s *Service, t *store.Txn, id string) (Task, bool, error) { return s.Skip(t, id, "Ada") },
		func(s *Service, t *store.Txn, id string) (Task, bool, error) { return s.Rerun(t, id, true, "Ada") },
		func(s *Service, t *store.Txn, id string) (Task, bool, error) { return s.Approve(t, id, "Ada") },
		func(s *Service, t *store.Txn, id string) (Task, bool, error) { return s.Reject(t, id, "no", "Ada") },
	}
	for name, work := range map[string]Work{
		"blocked":   {Execution: Auto, Steps: []string{"a", "b"}, Follow: FollowOff},
		"in review": {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for range 10 {
				inWorld(t, policy.ApprovalRequired, func(w *world) {
					w.gateway(1)
					synctest.Wait()
					ids := []string{w.add(policy.ApprovalRequired, work)}
					if name == "blocked" {
						w.refused()
					}
					w.finish(completed())
					was := w.task(ids[0])
					if was.ByHand != "" {
						ids = append(ids, was.ByHand)
					}
					var all sync.WaitGroup
					var wins atomic.Int32
					for _, g := range w.gateways {
						for _, id := range ids {
							for _, do := range deeds {
								all.Go(func() {
									won := false
									err := store.Update(context.Background(), w.db, func(t *store.Txn) (err error) {
										_, won, err = do(g.tasks, t, id)
										return err
									})
									if err != nil {
										w.t.Error(err)
									}
									if won {
										wins.Add(1)
									}
								})
							}
						}
					}
					all.Wait()
					// What was approved is done, and may be run again from there.
					if n := int(wins.Load()); n != 1 && (name == "blocked" || n != 2) {
						t.Errorf("%d won: %+v", n, w.task(ids[0]).Log)
					}
					w.passes()
					if n := len(w.running()); n > 1 {
						t.Errorf("%d turns run", n)
					}
					if len(ids) > 1 {
						if other := w.task(ids[1]); other.State == Blocked {
							t.Errorf("the task for a person still stands at %s, the task at %s", other.State, w.task(ids[0]).State)
						}
					}
				})
			}
		})
	}
}

// TestAStageOfAnotherVersion is left out, and what is behind it follows.
func TestAStageOfAnotherVersion(t *testing.T) {
	t.Parallel()
	inWorld(t, policy.AutoAcceptEdits, func(w *world) {
		id := w.add(policy.AutoAcceptEdits, Work{})
		w.answers("done")
		w.update(func(t *store.Txn) error {
			task, _, err := store.Get[Task](t, taskKey(id))
			if err != nil {
				return err
			}
			task.State = Done
			task.Pipeline = &Pipeline{Stages: []Stage{{Kind: "dance"}, {Kind: StageHooks, Event: "at_dawn"}, {Kind: StageFollowUps}}}
			t.Add(pipelineIndex, id, 1)
			return store.Put(t, taskKey(id), task)
		})
		w.passes()
		w.passes()
		if n := len(w.running()); n != 1 {
			t.Fatalf("%d turns look for follow-ups", n)
		}
		w.answers(`{"tasks":[]}`)
		if task := w.task(id); task.Pipeline != nil {
			t.Errorf("it stands at %+v", task.Pipeline)
		}
	})
}

// TestFollowUpsOfAChatWithTooManyTasks are counted, with why they were not made.
func TestFollowUpsOfAChatWithTooManyTasks(t *testing.T) {
	t.Parallel()
	inWorld(t, policy.AutoAcceptEdits, func(w *world) {
		w.add(policy.AutoAcceptEdits, Work{Execution: Auto})
		w.answers("done")
		w.passes()
		w.update(func(t *store.Txn) error {
			for i := range MaxOpen {
				one := Task{V: Version, ID: fmt.Sprint("open", i), Chat: home, State: Pending}
				t.Add(tasksIndex(home), one.ID, int64(i))
				if err := store.Put(t, taskKey(one.ID), one); err != nil {
					return err
				}
			}
			return nil
		})
		w.answers(`{"tasks":[{"title":"a","steps":["s"]},{"title":"b","steps":["s"]},{"title":"c","steps":["s"]}]}`)
		e := w.told(FollowedUp)
		if len(e) != 1 || len(e[0].Made) != 0 || e[0].Left != 3 || e[0].LeftWhy != WhyTooMany {
			t.Errorf("%d made, %d left: %s", len(e[0].Made), e[0].Left, e[0].LeftWhy)
		}
	})
}

// TestALookForFollowUpsUsesNoGrant: what was granted while the task ran, whose result somebody has looked at, changes nothing
// behind that.
func TestALookForFollowUpsUsesNoGrant(t *testing.T) {
	t.Parallel()
	for _, scope := range []string{approvals.ScopeSession, approvals.ScopeProject} {
		inWorld(t, policy.ApprovalRequired, func(w *world) {
			id := w.add(policy.ApprovalRequired, Work{Steps: []string{"a", "b"}})
			answers := map[string]runner.Answer{}
			asks := func(what string) {
				w.running()[0].ask(what, []policy.Category{policy.Write}, func(a runner.Answer) { answers[what] = a })
				w.waits(time.Second)
			}
			asks("first")
			pending, err := w.gateways[0].approvals.Pending(context.Background(), home)
			if err != nil || len(pending) != 1 {
				t.Fatalf("%d asks wait, %v", len(pending), err)
			}
			i := slices.IndexFunc(pending[0].Question.Actions, func(a runner.Action) bool { return a.Grant == scope })
			if i < 0 {
				t.Fatalf("nothing can be granted: %+v", pending[0].Question.Actions)
			}
			if _, err := w.gateways[0].approvals.Decide(context.Background(), approvals.Tap{
				ID: pending[0].ID, Chat: home, Person: approvals.Person{ID: 11, Name: "Ada", Role: approvals.Owner},
				Action: pending[0].Question.Actions[i].ID, Token: string(store.NewRev()),
			}); err != nil {
				t.Fatal(err)
			}
			w.passes()
			asks("granted")
			if a := answers["granted"]; a.Source != runner.SourceGrant {
				t.Fatalf("the grant did not serve the task: %+v", a)
			}
			w.answers("one")
			w.answers("two")
			if !w.person(func(s *Service, t *store.Txn) (Task, bool, error) { return s.Approve(t, id, "Ada") }) {
				t.Fatal("not approved")
			}
			w.passes()
			asks("behind it")
			if a, answered := answers["behind it"]; !answered || a.Allows() {
				t.Errorf("the look for follow-ups may write: %+v", a)
			}
		})
	}
}
