package bot

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"drawbridge/bridge"
	"drawbridge/formatting"
	"drawbridge/policy"
	"drawbridge/runner"
	"drawbridge/runner/runnertest"
)

// TestEachNoHasItsOwnWords: no two reasons read alike, and none of them holds a version that nobody has told.
func TestEachNoHasItsOwnWords(t *testing.T) {
	t.Parallel()
	told := map[string]string{}
	for name, c := range map[string]runner.Capability{
		"ready":        {State: runner.Ready, Version: "1.2.3-rc.1"},
		"not known":    {},
		"checking":     {State: runner.Checking},
		"missing":      {State: runner.Failed, Cause: runner.CauseMissing, Problem: "P."},
		"too old":      {State: runner.Failed, Cause: runner.CauseOld, Version: "0.9.0", Problem: "P."},
		"no version":   {State: runner.Failed, Cause: runner.CauseVersion, Problem: "P."},
		"no login":     {State: runner.Failed, Cause: runner.CauseLogin, Problem: "P."},
		"unheld":       {State: runner.Failed, Cause: runner.CauseUnheld, Problem: "P."},
		"probe failed": {State: runner.Failed, Cause: runner.CauseProbe, Problem: "P."},
	} {
		word := standing(c)
		if other, twice := told[word]; twice {
			t.Errorf("%s and %s are both told as %q", name, other, word)
		}
		told[word] = name
		var m formatting.Builder
		agent{name: "codex", Capability: c}.describe(&m, bridge.Chat{})
		text := m.Message().Text
		if strings.Contains(text, "version ") != (c.Version != "" || c.Cause == runner.CauseVersion) || !strings.Contains(text, c.Version) ||
			!strings.Contains(text, word) || !strings.Contains(text, c.Problem) {
			t.Errorf("%s is told as\n%s", name, text)
		}
	}
	if standing(runner.Capability{State: runner.Failed}) != standing(runner.Capability{State: runner.Failed, Cause: "new"}) {
		t.Error("a cause that is not known is told as another than none")
	}
}

// TestRuntimeSaysWhatItCan: what the chat's runtime is, can and can't, each in its own words, and what it can't is marked and
// answers with its reason.
func TestRuntimeSaysWhatItCan(t *testing.T) {
	t.Parallel()
	k := newTalk(t, talkOptions{capable: func(c *runner.Capability) {
		c.Version, c.Sandbox, c.Reviewer = "1.2.3-rc.1", true, "Its own reviewer"
		c.Models = []runner.Model{{ID: "plain", Name: "Plain 5", Default: true, Efforts: []string{"low"}, Effort: "low"}}
		c.Modes[policy.FullAccess], c.Why["full-access"] = policy.Auto, "An administrator has ruled it out."
	}})
	m := k.reads(ada, k.say(ada, ada, "/runtime"), "Runtime: script, version 1.2.3-rc.1", "Model: Plain 5 (default), effort low (default)",
		"It can plan without changing anything and ask you questions.", textSandboxWorks, "In auto, Its own reviewer decides",
		textRuntimeCannot, "• A script takes no input into a running turn.", "• full-access works as auto: An administrator has ruled it out.", textRuntimeList)
	for label, want := range map[string]string{
		markCannot + "steer": "A script takes no input into a running turn.", markCannot + "rewind": "A script keeps no history.",
	} {
		if got := k.tap(ada, ada, m.ID, label); got.Text != want || !got.Alert {
			t.Errorf("%s answers %+v, want %q", label, got, want)
		}
	}
	k.tap(ada, ada, m.ID, "other")
	k.becomes(ada, m.ID, textRuntimeSet+"other")
}

// TestARuntimeThatCanNotBeUsed says why where it is offered, and lets another one be chosen. What only was not found out may
// still be tried.
func TestARuntimeThatCanNotBeUsed(t *testing.T) {
	t.Parallel()
	for cause, label := range map[runner.Cause]string{
		runner.CauseLogin: markCannot + "script – not logged in", runner.CauseOld: markCannot + "script – too old", runner.CauseProbe: "script – the look failed",
	} {
		t.Run(string(cause), func(t *testing.T) {
			t.Parallel()
			k := newTalk(t, talkOptions{capable: func(c *runner.Capability) {
				*c = runner.Capability{State: runner.Failed, Cause: cause, Problem: "It does not work, because."}
			}})
			m := k.reads(ada, k.say(ada, ada, "/runtime"), "Runtime: script – "+standing(runner.Capability{State: runner.Failed, Cause: cause}), "It does not work, because.")
			got := k.tap(ada, ada, m.ID, label)
			if final := cause.Final(); (got.Text == "It does not work, because." && got.Alert) != final {
				t.Errorf("the tap is answered with %+v", got)
			}
			if cause.Final() {
				prompt := k.say(ada, ada, "say hello")
				k.reads(ada, prompt, "script can't be used here: It does not work, because.")
				k.tap(ada, ada, m.ID, "other")
				k.becomes(ada, m.ID, textRuntimeSet+"other")
			}
		})
	}
}

// TestModelAndEffort chooses both with buttons and by name: they are the chat's, go with its next turn, and end with its
// runtime.
func TestModelAndEffort(t *testing.T) {
	t.Parallel()
	k := newTalk(t, talkOptions{
		turn: func(_ context.Context, s *runnertest.Scripted, in runner.Input) (runner.Result, error) {
			s.Say(fmt.Sprintf("This is %q, %q.", in.Model, in.Effort))
			return runner.Result{Outcome: runner.Completed}, nil
		},
		capable: func(c *runner.Capability) {
			c.Models = []runner.Model{
				{ID: "plain", Name: "Plain 5", Default: true, Efforts: []string{"low", "high"}, Effort: "low"},
				{ID: "big-1", Efforts: []string{"high"}},
				{ID: "dull"},
			}
		},
	})
	k.reads(ada, k.say(ada, ada, "go"), `This is "", "".`)
	menu := k.reads(ada, k.say(ada, ada, "/model"), "Model: Plain 5 (default), effort low (default)", textModelList)
	if labels := menu.labels(); !slices.Equal(labels, []string{"• Plain 5 (default)", "big-1", "dull"}) {
		t.Errorf("the menu offers %q", labels)
	}
	k.tap(ada, ada, menu.ID, "big-1")
	k.becomes(ada, menu.ID, textModelSet+"big-1")
	efforts := k.reads(ada, k.say(ada, ada, "/effort"), "Model: big-1", textModelList)
	if labels := efforts.labels(); !slices.Equal(labels, []string{"• default", "high"}) {
		t.Errorf("the menu offers %q", labels)
	}
	k.tap(ada, ada, efforts.ID, "high")
	k.becomes(ada, efforts.ID, textEffortSet+"high")
	k.reads(ada, k.say(ada, ada, "go"), `This is "big-1", "high".`)
	k.reads(ada, k.say(ada, ada, "/status"), "Model: big-1, effort high")
	k.reads(grace, k.say(grace, grace, "/status"), "Model: Plain 5 (default)")
	for _, c := range []struct{ say, reads string }{
		{"/model nothing", textModelWrong},
		{"/effort max", textEffortWrong},
		{"/model dull", "It does not take the effort high, so it uses its own."},
		{"/effort", textEffortNone},
		{"/effort low", textEffortNone},
		{"/model PLAIN 5", textModelSet + "Plain 5."},
		{"/effort HIGH", textEffortSet + "high"},
		{"/model default", textModelSet + "Plain 5."},
		{"/effort default", textEffortSet + textEffortOwn},
	} {
		k.reads(ada, k.say(ada, ada, c.say)-1, c.reads)
	}
	k.reads(ada, k.say(ada, ada, "go"), `This is "plain", "".`)
	k.reads(ada, k.say(ada, ada, "/runtime other"), textRuntimeSet+"other")
	k.reads(ada, k.say(ada, ada, "/model"), textModelNone)
	if got := k.record(ChatRef{ID: ada}); got.Model != "" || got.Effort != "" {
		t.Errorf("another runtime has %q, %q", got.Model, got.Effort)
	}
}

// TestAMenuOfAnotherRuntimeChangesNothing: the models of one mean nothing to another.
func TestAMenuOfAnotherRuntimeChangesNothing(t *testing.T) {
	t.Parallel()
	k := newTalk(t, talkOptions{capable: func(c *runner.Capability) {
		c.Models = []runner.Model{{ID: "plain", Default: true}, {ID: "big-1"}}
	}})
	menu := k.reads(ada, k.say(ada, ada, "/model"), textModelList)
	k.reads(ada, k.say(ada, ada, "/runtime other"), textRuntimeSet+"other")
	if got := k.tap(ada, ada, menu.ID, "big-1"); !strings.HasPrefix(got.Text, textModelElse) || !got.Alert {
		t.Errorf("the old menu answers %+v", got)
	}
	if got := k.record(ChatRef{ID: ada}); got.Model != "" || got.Runtime != "other" {
		t.Errorf("the chat is %+v", got)
	}
}
