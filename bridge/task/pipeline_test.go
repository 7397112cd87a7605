package task

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"drawbridge/internal/store"
	"drawbridge/policy"
	"drawbridge/runner"
)

// answers ends the turn that runs with the agent's last words.
func (w *world) answers(said string) {
	for _, t := range w.running() {
		t.sink(runner.Event{Kind: runner.ItemStarted, Item: &runner.Item{ID: "m", Kind: runner.ItemMessage}})
		t.sink(runner.Event{Kind: runner.ItemCompleted, Item: &runner.Item{ID: "m", Kind: runner.ItemMessage, Text: said}})
	}
	w.finish(completed())
}

// passes lets the time go by in which what is due is looked at.
func (w *world) passes() {
	time.Sleep(2 * pace) //nolint:forbidigo // in a bubble
	synctest.Wait()
}

func (w *world) task(id string) (task Task) {
	k := w.keeper()
	w.update(func(t *store.Txn) (err error) { task, err = k.tasks.Task(t, id); return err })
	return task
}

func (w *world) person(do func(s *Service, t *store.Txn) (Task, bool, error)) (won bool) {
	k := w.keeper()
	w.update(func(t *store.Txn) (err error) { _, won, err = do(k.tasks, t); return err })
	synctest.Wait()
	return won
}

// diary is what hooks did, in order.
type diary struct {
	mu    sync.Mutex
	lines []string
}

func (d *diary) add(line string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines = append(d.lines, line)
}

func (d *diary) read() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.lines)
}

// withHooks runs f in a bubble whose gateway has a command for each event; each takes 20 seconds.
func withHooks(t *testing.T, m policy.Mode, f func(w *world, d *diary)) {
	synctest.Test(t, func(t *testing.T) {
		w, d := newWorld(t), &diary{}
		for _, e := range HookEvents() {
			w.hooks = append(w.hooks, Hook{Event: e, Command: []string{"do", string(e)}})
		}
		w.call = func(ctx context.Context, h Hook, k Task) error {
			d.add(h.Command[1] + " begins, " + string(k.State))
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(20 * time.Second):
			}
			d.add(h.Command[1] + " ends")
			return nil
		}
		defer w.down()
		w.host("h1")
		w.gateway(0)
		synctest.Wait()
		time.Sleep(time.Second)
		w.settle("h1", m)
		f(w, d)
	})
}

func (w *world) wants(d *diary, want ...string) {
	w.t.Helper()
	if got := d.read(); !slices.Equal(got, want) {
		w.t.Errorf("the hooks did\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
}

// TestHooksOfAutoComeInOrder: approved, then follow-ups, and only when they are made the pipeline is completed; each begins
// when what is before it has ended.
func TestHooksOfAutoComeInOrder(t *testing.T) {
	t.Parallel()
	withHooks(t, policy.AutoAcceptEdits, func(w *world, d *diary) {
		id := w.add(policy.AutoAcceptEdits, Work{Execution: Auto})
		w.answers("done")
		w.wants(d, "task_auto_approved begins, done")
		if n := len(w.running()); n != 0 {
			t.Fatalf("%d turns run while a hook does", n)
		}
		time.Sleep(21 * time.Second)
		w.passes()
		w.wants(d, "task_auto_approved begins, done", "task_auto_approved ends")
		if n := len(w.running()); n != 1 || !strings.Contains(w.running()[0].in.Text, `{"tasks":[`) {
			t.Fatalf("%d turns run; want the one that looks for follow-ups", n)
		}
		w.answers(`{"tasks":[{"title":"next","steps":["a","b"]}]}`)
		time.Sleep(21 * time.Second)
		synctest.Wait()
		w.wants(d, "task_auto_approved begins, done", "task_auto_approved ends", "pipeline_completed begins, done", "pipeline_completed ends")
		if task := w.task(id); task.Pipeline != nil || task.State != Done {
			t.Errorf("it stands at %+v", task)
		}
		if e := w.told(FollowedUp); len(e) != 1 || len(e[0].Made) != 1 || e[0].Made[0].Title != "next" || e[0].Made[0].Parent != id {
			t.Errorf("told of follow-ups: %+v", e)
		}
	})
}

// TestHooksOfReview: the pipeline is completed when the result waits; follow-ups are for what was approved.
func TestHooksOfReview(t *testing.T) {
	t.Parallel()
	withHooks(t, policy.AutoAcceptEdits, func(w *world, d *diary) {
		id := w.add(policy.AutoAcceptEdits, Work{})
		w.answers("done")
		time.Sleep(21 * time.Second)
		w.passes()
		w.wants(d, "pipeline_completed begins, review", "pipeline_completed ends")
		if len(w.running()) != 0 {
			t.Fatal("follow-ups were looked for before anybody approved")
		}
		if !w.person(func(s *Service, t *store.Txn) (Task, bool, error) { return s.Approve(t, id, "Ada") }) {
			t.Fatal("not approved")
		}
		w.passes()
		if len(w.running()) != 1 {
			t.Fatal("no follow-ups were looked for")
		}
		w.answers(`{"tasks":[]}`)
		w.passes()
		w.wants(d, "pipeline_completed begins, review", "pipeline_completed ends")
		if task := w.task(id); task.Pipeline != nil || len(w.tasks()) != 1 || len(w.told(FollowedUp)) != 0 {
			t.Errorf("it stands at %+v, told %+v", task, w.told(FollowedUp))
		}
	})
}

// TestTheHookBeforeARetry ends before the step is done once more, and a person may stop it until then.
func TestTheHookBeforeARetry(t *testing.T) {
	t.Parallel()
	for _, stopped := range []bool{false, true} {
		withHooks(t, policy.AutoAcceptEdits, func(w *world, d *diary) {
			id := w.add(policy.AutoAcceptEdits, Work{Execution: Auto})
			w.refused()
			w.finish(completed())
			w.wants(d, "task_permission_retry begins, in_progress")
			if stopped {
				w.person(func(s *Service, t *store.Txn) (Task, bool, error) { return s.Cancel(t, id, "Ada") })
			}
			time.Sleep(21 * time.Second)
			w.passes()
			w.wants(d, "task_permission_retry begins, in_progress", "task_permission_retry ends")
			if n := len(w.running()); n != map[bool]int{false: 1, true: 0}[stopped] {
				t.Fatalf("stopped %v: %d turns run", stopped, n)
			}
			if task := w.task(id); !stopped && (task.State != InProgress || task.Run.Tried != 1) {
				t.Errorf("it stands at %+v", task)
			}
		})
	}
}

// TestAHookIsRunOnce: by one of three gateways; one whose gateway died is given up and never run again; one that fails or
// takes too long keeps nothing from going on.
func TestAHookIsRunOnce(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		call  func(ctx context.Context) error
		limit time.Duration
		kill  bool
		why   Reason
	}{
		"it ends well":       {func(context.Context) error { return nil }, 0, false, ""},
		"it fails":           {func(context.Context) error { return errors.New("exit status 3") }, 0, false, WhyFailed},
		"it takes too long":  {func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, time.Second, false, WhyTooLong},
		"its gateway stops":  {func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, time.Hour, true, WhyInterrupted},
		"it is never heard ": {nil, time.Minute, false, WhyUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w, d := newWorld(t), &diary{}
				w.hooks = []Hook{
					{Event: PipelineCompleted, Command: []string{"first"}, Limit: c.limit},
					{Event: PipelineCompleted, Message: "{title} is in {state}"},
					{Event: PipelineCompleted, Project: "another", Message: "not this one's"},
				}
				block := make(chan struct{})
				w.call = func(ctx context.Context, h Hook, _ Task) error {
					d.add(h.Command[0])
					if c.call == nil { // as if the process had gone
						<-block
						return nil
					}
					return c.call(ctx)
				}
				defer w.down()
				defer close(block)
				w.host("h1")
				for i := range 3 {
					w.gateway(i)
				}
				synctest.Wait()
				time.Sleep(time.Second)
				w.settle("h1", policy.AutoAcceptEdits)
				id := w.add(policy.AutoAcceptEdits, Work{Title: "tidy"})
				w.answers("done")
				w.passes()
				if c.kill {
					for i := range 3 {
						w.gateways[i].stop()
						w.gateway(i)
					}
				}
				time.Sleep(time.Hour)
				synctest.Wait()
				w.wants(d, "first")
				failed, hooked := w.told(HookFailed), w.told(Hooked)
				if c.why == "" && len(failed) != 0 || c.why != "" && (len(failed) != 1 || failed[0].Why != c.why || failed[0].Hook != PipelineCompleted) {
					t.Errorf("told of failures: %+v", failed)
				}
				if len(hooked) != 1 || hooked[0].Words != "tidy is in review" {
					t.Errorf("the message behind it: %+v", hooked)
				}
				if task := w.task(id); task.Pipeline != nil || task.State != InReview {
					t.Errorf("it stands at %+v", task)
				}
			})
		})
	}
}

// TestFollowUps lets an agent answer in every way.
func TestFollowUps(t *testing.T) {
	t.Parallel()
	many := `{"tasks":[` + strings.TrimSuffix(strings.Repeat(`{"title":"t","steps":["s"]},`, 7), ",") + `]}`
	one := func(more string) string { return `{"tasks":[{"title":"t","steps":["s"]` + more + `}]}` }
	for name, c := range map[string]struct {
		said   string
		made   int
		left   int
		why    Reason
		mode   policy.Mode
		review bool
	}{
		"one":                {one(""), 1, 0, "", policy.AutoAcceptEdits, false},
		"in a fence":         {"```json\n" + one("") + "\n```", 1, 0, "", policy.AutoAcceptEdits, false},
		"stricter":           {one(`,"mode":"approval-required"`), 1, 0, "", policy.ApprovalRequired, false},
		"asks for more":      {one(`,"mode":"full-access"`), 1, 0, "", policy.AutoAcceptEdits, true},
		"none":               {`{"tasks":[]}`, 0, 0, "", "", false},
		"too many":           {many, 5, 2, "", policy.AutoAcceptEdits, false},
		"words around it":    {"Here you are: " + one(""), 0, 0, WhyForm, "", false},
		"words behind it":    {one("") + " That is all.", 0, 0, WhyForm, "", false},
		"another field":      {one(`,"execution":"auto"`), 0, 0, WhyForm, "", false},
		"an unknown mode":    {one(`,"mode":"yolo"`), 0, 0, WhyForm, "", false},
		"no steps":           {`{"tasks":[{"title":"t","steps":[]}]}`, 0, 0, WhyForm, "", false},
		"an empty step":      {`{"tasks":[{"title":"t","steps":[" "]}]}`, 0, 0, WhyForm, "", false},
		"another object":     {`{"answer":42}`, 0, 0, WhyForm, "", false},
		"an empty object":    {`{}`, 0, 0, WhyForm, "", false},
		"a list":             {`[]`, 0, 0, WhyForm, "", false},
		"nothing":            {``, 0, 0, WhyForm, "", false},
		"half of an object":  {`{"tasks":[{"title":"t"`, 0, 0, WhyForm, "", false},
		"a step as a number": {`{"tasks":[{"title":"t","steps":[1]}]}`, 0, 0, WhyForm, "", false},
		"a step that is too long": {
			`{"tasks":[{"title":"t","steps":["` + strings.Repeat("x", MaxText+1) + `"]}]}`, 0, 0, WhyForm, "", false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, policy.AutoAcceptEdits, func(w *world) {
				k := w.keeper()
				w.update(func(t *store.Txn) error {
					return k.tasks.SetProjectSettings(t, "h1", project, ProjectSettings{Execution: Auto})
				})
				id := w.add(policy.AutoAcceptEdits, Work{})
				w.answers("done")
				w.passes()
				if len(w.running()) != 1 {
					t.Fatal("nobody looks for follow-ups")
				}
				w.answers(c.said)
				var made []Task
				for _, one := range w.tasks() {
					if one.Parent == id {
						made = append(made, one)
					}
				}
				if len(made) != c.made {
					t.Fatalf("%d were made, want %d", len(made), c.made)
				}
				for _, one := range made {
					if one.Mode != c.mode || one.Origin != OriginFollowUp || one.By != ada || (one.Execution == Review) != c.review || !c.review && one.Execution != "" {
						t.Errorf("made %+v", one)
					}
				}
				e := w.told(FollowedUp)
				if want := c.made+c.left > 0 || c.why != ""; (len(e) == 1) != want {
					t.Fatalf("told %+v", e)
				}
				if len(e) == 1 && (e[0].Why != c.why || e[0].Left != c.left || len(e[0].Made) != c.made) {
					t.Errorf("told %+v", e[0])
				}
				// What follows makes nothing of its own.
				for range 2 * c.made {
					w.passes()
					w.answers(`{"tasks":[{"title":"again","steps":["s"]}]}`)
				}
				w.passes()
				if n := len(w.tasks()); n != 1+c.made || len(w.running()) != 0 {
					t.Errorf("%d tasks, %d turns: follow-ups are followed", n, len(w.running()))
				}
			})
		})
	}
}

// TestFollowUpsAreMadeUnderWhatTheChatIsInThen, whatever the task was made under.
func TestFollowUpsAreMadeUnderWhatTheChatIsInThen(t *testing.T) {
	t.Parallel()
	for _, made := range policy.Modes() {
		for _, now := range policy.Modes() {
			inWorld(t, made, func(w *world) {
				id := w.add(made, Work{Execution: Auto})
				w.answers("done")
				w.passes()
				w.mode(now)
				asked := ""
				if made.Looser(policy.ApprovalRequired) {
					w.running()[0].ask("write", []policy.Category{policy.Write}, func(a runner.Answer) {
						asked = fmt.Sprint(a.Allows())
					})
					synctest.Wait()
					if asked != "false" {
						t.Errorf("the run for follow-ups may write: %q", asked)
					}
					if p, err := w.gateways[0].approvals.Pending(t.Context(), home); err != nil || len(p) != 0 {
						t.Errorf("somebody is asked: %v, %v", p, err)
					}
				}
				w.answers(`{"tasks":[{"title":"t","steps":["s"],"mode":"full-access"}]}`)
				for _, one := range w.tasks() {
					if one.Parent == id && one.Mode != made.AtMost(now) {
						t.Errorf("made under %s, the chat in %s: the follow-up is in %s", made, now, one.Mode)
					}
				}
			})
		}
	}
}

// TestWhereNoFollowUpsAreLookedFor.
func TestWhereNoFollowUpsAreLookedFor(t *testing.T) {
	t.Parallel()
	for name, begin := range map[string]func(w *world){
		"switched off for the project": func(w *world) {
			k := w.keeper()
			w.update(func(t *store.Txn) error {
				return k.tasks.SetProjectSettings(t, "h1", project, ProjectSettings{Execution: Auto, NoFollowUps: true})
			})
			w.add(policy.AutoAcceptEdits, Work{Follow: FollowOn})
		},
		"switched off for the task": func(w *world) { w.add(policy.AutoAcceptEdits, Work{Execution: Auto, Follow: FollowOff}) },
		"in the chat":               func(w *world) { w.add(policy.AutoAcceptEdits, Work{Execution: Auto, InChat: true}) },
		"a firing": func(w *world) {
			w.schedule(policy.AutoAcceptEdits, Spec{At: time.Now().Add(time.Minute)}, Work{Execution: Auto})
			time.Sleep(5 * time.Minute)
			synctest.Wait()
		},
		"nothing of the budget is left": func(w *world) { w.add(policy.AutoAcceptEdits, Work{Execution: Auto, Budget: 10}) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, policy.AutoAcceptEdits, func(w *world) {
				begin(w)
				if len(w.running()) != 1 {
					t.Fatalf("%d turns run", len(w.running()))
				}
				w.finish(runner.Result{Outcome: runner.Completed, Usage: runner.Usage{Output: 10}})
				w.passes()
				if n := len(w.running()); n != 0 {
					t.Errorf("%d turns run", n)
				}
				if task := w.tasks()[0]; task.State != Done || task.Pipeline != nil {
					t.Errorf("it stands at %+v", task)
				}
			})
		})
	}
}

// TestRerunEndsTheLookForFollowUps.
func TestRerunEndsTheLookForFollowUps(t *testing.T) {
	t.Parallel()
	for name, do := range map[string]func(s *Service, t *store.Txn, id string) (Task, bool, error){
		"rerun":  func(s *Service, t *store.Txn, id string) (Task, bool, error) { return s.Rerun(t, id, false, "Ada") },
		"cancel": func(s *Service, t *store.Txn, id string) (Task, bool, error) { return s.Cancel(t, id, "Ada") },
	} {
		inWorld(t, policy.AutoAcceptEdits, func(w *world) {
			id := w.add(policy.AutoAcceptEdits, Work{Execution: Auto})
			w.answers("done")
			w.passes()
			follow := w.running()[0].id
			if !w.person(func(s *Service, t *store.Txn) (Task, bool, error) { return do(s, t, id) }) {
				t.Fatalf("%s did nothing", name)
			}
			w.passes()
			for _, turn := range w.running() {
				if turn.id == follow {
					t.Errorf("%s: it still runs", name)
				}
			}
			if n := len(w.running()); n != map[string]int{"rerun": 1}[name] {
				t.Errorf("%s: %d turns run", name, n)
			}
			if len(w.tasks()) != 1 {
				t.Errorf("%s: follow-ups were made", name)
			}
		})
	}
}

// TestWhatWasNotAllowedIsSomebodysToDo: auto asks nobody, so a step that was refused becomes a task for a person; what is
// chosen there or at the task itself is chosen once, for both.
func TestWhatWasNotAllowedIsSomebodysToDo(t *testing.T) {
	t.Parallel()
	byHand := func(s *Service, t *store.Txn, id string) (Task, bool, error) { return s.ByHand(t, id, "Ada") }
	skip := func(s *Service, t *store.Txn, id string) (Task, bool, error) { return s.Skip(t, id, "Ada") }
	rerun := func(s *Service, t *store.Txn, id string) (Task, bool, error) { return s.Rerun(t, id, true, "Ada") }
	for name, c := range map[string]struct {
		do    func(s *Service, t *store.Txn, id string) (Task, bool, error)
		steps []string
		state State // of the task
		other State // of the task for a person
		says  string
	}{
		"by hand":                  {byHand, []string{"a"}, Done, Done, ""},
		"by hand, with more steps": {byHand, []string{"a", "b", "c"}, InProgress, Done, "A person did the step before this one by hand:\n> a\n\nGo on with:\nb"},
		"left out":                 {skip, []string{"a"}, Done, Cancelled, ""},
		"left out, with more":      {skip, []string{"a", "b"}, InProgress, Cancelled, "The step before this one was left out:\n> a\n\nGo on with:\nb"},
		"run again":                {rerun, []string{"a", "b"}, InProgress, Cancelled, "a"},
	} {
		for _, there := range []bool{false, true} { // at the task for a person
			t.Run(fmt.Sprint(name, " there ", there), func(t *testing.T) {
				t.Parallel()
				inWorld(t, policy.ApprovalRequired, func(w *world) {
					id := w.add(policy.ApprovalRequired, Work{Execution: Auto, Steps: c.steps, Follow: FollowOff})
					w.refused()
					w.finish(completed())
					task := w.task(id)
					if task.State != Blocked || task.Why != WhyPermission || task.ByHand == "" {
						t.Fatalf("it stands at %+v", task)
					}
					other := w.task(task.ByHand)
					if other.State != Blocked || other.Why != WhyByHand || other.Parent != id || other.Origin != OriginPending || !slices.Equal(other.Steps, []string{"a"}) || other.Words != "write" {
						t.Fatalf("the task for a person is %+v", other)
					}
					at := id
					if there {
						at = other.ID
					}
					do := func(s *Service, t *store.Txn) (Task, bool, error) { return c.do(s, t, at) }
					if !w.person(do) {
						t.Fatal("nothing was done")
					}
					w.passes()
					if task, other = w.task(id), w.task(other.ID); task.State != c.state || other.State != c.other || task.ByHand != "" {
						t.Errorf("they stand at %s and %s", task.State, other.State)
					}
					if len(w.running()) > 1 || len(w.running()) == 1 && w.running()[0].in.Text != c.says || (c.says == "") != (len(w.running()) == 0) {
						t.Errorf("%d turns run, %+v", len(w.running()), w.running())
					}
					if w.person(func(s *Service, t *store.Txn) (Task, bool, error) { return c.do(s, t, other.ID) }) {
						t.Error("it was done twice")
					}
				})
			})
		}
	}
}

// TestAStepIsLeftOutInReview: what was done before it waits for a person.
func TestAStepIsLeftOutInReview(t *testing.T) {
	t.Parallel()
	inWorld(t, policy.ApprovalRequired, func(w *world) {
		id := w.add(policy.ApprovalRequired, Work{Steps: []string{"a", "b"}})
		w.finish(completed())
		w.refused()
		w.finish(completed())
		task := w.task(id)
		if task.State != Blocked || task.ByHand != "" || len(w.tasks()) != 1 {
			t.Fatalf("it stands at %+v", task)
		}
		if !w.person(func(s *Service, t *store.Txn) (Task, bool, error) { return s.Skip(t, id, "Ada") }) {
			t.Fatal("not left out")
		}
		if task = w.task(id); task.State != InReview {
			t.Errorf("it stands at %s", task.State)
		}
	})
}

func FuzzFollowUps(f *testing.F) {
	f.Add(`{"tasks":[{"title":"t","steps":["s"],"mode":"auto"}]}`)
	f.Add("```json\n{\"tasks\":[]}\n```")
	f.Fuzz(func(t *testing.T, said string) {
		got, err := parseFollowUps(said)
		if err != nil && (got != nil || !errors.Is(err, errForm)) {
			t.Errorf("%v, %v", got, err)
		}
		for _, p := range got {
			if p.Title == "" || len(p.Steps) == 0 || len(p.Steps) > MaxSteps || p.Mode != "" && !policy.Mode(p.Mode).Valid() {
				t.Errorf("let through %+v", p)
			}
		}
	})
}
