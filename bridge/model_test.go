package bridge

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"drawbridge/internal/store"
	"drawbridge/runner"
	"drawbridge/runner/runnertest"
)

// modelled is a scripted runtime with a list of models that can be changed. It says what it was asked to use.
type modelled struct {
	*runnertest.Runtime

	mu         sync.Mutex
	capability runner.Capability
	looks      int
}

func newModelled(name string) *modelled {
	r := runnertest.New(name, func(_ context.Context, s *runnertest.Scripted, in runner.Input) (runner.Result, error) {
		s.Say("model " + in.Model + ", effort " + in.Effort + ".")
		return runner.Result{Outcome: runner.Completed}, nil
	})
	l := &modelled{Runtime: r, capability: r.Capability}
	l.list(runner.Model{ID: "plain", Default: true, Efforts: []string{"low", "high"}, Effort: "low"}, runner.Model{ID: "other", Efforts: []string{"high"}})
	return l
}

func (l *modelled) list(models ...runner.Model) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.capability.Models = models
}

func (l *modelled) become(c runner.Capability) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.capability = c
}

func (l *modelled) Probe(context.Context) (runner.Capability, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.looks++
	return l.capability, nil
}

// TestAModelIsTheChats: it is chosen from the runtime's list, goes with the next order, and ends with the runtime.
func TestAModelIsTheChats(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.host("laptop", func(c *HostConfig) { c.Runtimes = []runner.Runtime{newModelled("script"), newModelled("second")} })
	h.turn("7", "u:0") // the runtime was looked at
	set := func(model, effort string) (c Chat, err error) {
		h.t.Helper()
		h.update(func(tx *store.Txn) error {
			if model != "" {
				c, err = h.chats.SetModel(tx, "7", model)
			}
			if err == nil && effort != "-" {
				c, err = h.chats.SetEffort(tx, "7", effort)
			}
			return nil
		})
		return c, err
	}
	if _, err := set("gone", "-"); !errors.Is(err, ErrNoModel) {
		t.Errorf("a model that is not listed: %v", err)
	}
	if _, err := set("", "low"); err != nil { // of the default
		t.Error(err)
	}
	if got := h.turn("7", "u:1"); got != "model , effort low." {
		t.Errorf("the turn has %q", got)
	}
	if c, err := set("other", "-"); err != nil || c.Model != "other" || c.Effort != "" {
		t.Errorf("a model that does not take the effort keeps it: %+v, %v", c, err)
	}
	if _, err := set("", "low"); !errors.Is(err, ErrNoModel) {
		t.Errorf("an effort that the model does not take: %v", err)
	}
	if _, err := set("", "high"); err != nil {
		t.Error(err)
	}
	if got := h.turn("7", "u:2"); got != "model other, effort high." {
		t.Errorf("the turn has %q", got)
	}
	if got := h.turn("8", "u:3"); got != "model , effort ." {
		t.Errorf("another chat has %q", got)
	}
	h.update(func(tx *store.Txn) error { _, err := h.chats.SetRuntime(tx, "7", "second"); return err })
	if got := h.turn("7", "u:4"); got != "model , effort ." {
		t.Errorf("another runtime has %q", got)
	}
}

// turn runs a prompt and returns what the agent says.
func (h *house) turn(chat, id string) string {
	h.t.Helper()
	if p := h.prompt(chat, id, "go"); !p.Started {
		h.t.Fatalf("the prompt was not handed out: %+v", p)
	}
	if r := h.shown.ended(h.t, "t."+id); r.Outcome != runner.Completed {
		h.t.Fatalf("the turn ended as %+v", r)
	}
	return said(h.shown.until(h.t, "the turn", func([]Entry) bool { return true }), "t."+id)
}

// TestAModelThatIsGone: what the runtime does not list any more is not sent to it; the chat is told, and the default is
// used.
func TestAModelThatIsGone(t *testing.T) {
	t.Parallel()
	listed := runner.Capability{Models: []runner.Model{{ID: "plain", Default: true, Efforts: []string{"low"}, Effort: "low"}, {ID: "other"}}}
	for name, c := range map[string]struct {
		capability            runner.Capability
		model, effort         string
		wantModel, wantEffort string
		told                  int
	}{
		"nothing chosen":     {listed, "", "", "", "", 0},
		"listed":             {listed, "other", "", "other", "", 0},
		"model gone":         {listed, "gone", "", "plain", "", 1},
		"effort gone":        {listed, "plain", "max", "plain", "low", 1},
		"effort of default":  {listed, "", "low", "", "low", 0},
		"both gone":          {listed, "gone", "max", "plain", "low", 2},
		"gone, effort stays": {listed, "gone", "low", "plain", "low", 1},
		"no list":            {runner.Capability{}, "other", "high", "", "", 2},
	} {
		m, e, told := chosen("codex", c.capability, c.model, c.effort)
		if m != c.wantModel || e != c.wantEffort || len(told) != c.told {
			t.Errorf("%s: %q, %q, told %q", name, m, e, told)
		}
	}

	h := newHouse(t)
	l := newModelled("script")
	offer := func(c *HostConfig) { c.Runtimes = []runner.Runtime{l} }
	stop := h.host("laptop", offer)
	h.turn("7", "u:1")
	h.update(func(tx *store.Txn) error { _, err := h.chats.SetModel(tx, "7", "other"); return err })
	stop()
	l.list(runner.Model{ID: "plain", Default: true})
	h.host("laptop", offer)
	if got := h.turn("7", "u:2"); got != "model plain, effort ." {
		t.Errorf("the turn has %q", got)
	}
	h.shown.until(t, "the word on the model", func(es []Entry) bool {
		return slices.ContainsFunc(es, func(e Entry) bool {
			return e.Event.Kind == runner.Notice && strings.Contains(e.Event.Text, "does not list the model other any more")
		})
	})
}

// TestARemovedCauseRestoresTheAbility: a runtime is looked at before each session, so that what kept it from working counts
// neither shorter nor longer than it is there. What was only not found out is tried all the same.
func TestARemovedCauseRestoresTheAbility(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	l := newModelled("script")
	good := l.capability
	causes := []runner.Cause{runner.CauseMissing, runner.CauseOld, runner.CauseVersion, runner.CauseLogin, runner.CauseUnheld}
	l.become(runner.Capability{State: runner.Failed, Cause: causes[0], Problem: "It says missing."})
	h.host("laptop", func(c *HostConfig) { c.Runtimes = []runner.Runtime{l} })
	known := func() (c runner.Capability) {
		t.Helper()
		h.update(func(tx *store.Txn) error {
			hello, _, err := h.chats.Hello(tx, "laptop")
			c = hello.Runtimes["script"]
			return err
		})
		return c
	}
	for i, cause := range causes {
		problem := "It says " + string(cause) + "."
		l.become(runner.Capability{State: runner.Failed, Cause: cause, Problem: problem})
		id := "u:" + string(cause)
		h.prompt("7", id, "go")
		if r := h.shown.ended(t, "t."+id); r.Outcome != runner.Broken || !strings.Contains(r.Reason, problem) {
			t.Errorf("%d, %s: the turn ended as %+v", i, cause, r)
		}
		if c := known(); c.Cause != cause || c.Problem != problem {
			t.Errorf("%s: gateways know %+v", cause, c)
		}
	}
	l.become(runner.Capability{State: runner.Failed, Cause: runner.CauseProbe, Problem: "It did not answer."})
	h.turn("7", "u:unsure")
	l.become(good)
	h.update(func(tx *store.Txn) error { return h.chats.New(tx, "7") })
	h.turn("7", "u:good")
	if c := known(); c.State != runner.Ready || c.Problem != "" || c.Cause != "" {
		t.Errorf("gateways know %+v", c)
	}
	l.mu.Lock()
	looks := l.looks
	l.mu.Unlock()
	h.turn("7", "u:more") // in the same session
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.looks != looks {
		t.Error("a session that is open was looked at again")
	}
}
