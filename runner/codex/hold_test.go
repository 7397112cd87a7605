package codex_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"drawbridge/policy"
	"drawbridge/runner"
	"drawbridge/runner/codex"
)

// TestOptionsOnTheWire holds what codex is told in each mode and interaction to golden files: when a session begins, when
// it is resumed, and after codex was started anew.
func TestOptionsOnTheWire(t *testing.T) {
	t.Parallel()
	type wire struct {
		mode        policy.Mode
		interaction policy.Interaction
		reviewer    bool
	}
	list := []wire{{policy.Auto, policy.Default, true}, {policy.Auto, policy.Plan, true}, {policy.FullAccess, policy.Default, true}}
	for _, m := range policy.Modes() {
		list = append(list, wire{m, policy.Default, false}, wire{m, policy.Plan, false})
	}
	for _, w := range list {
		m, i, name := w.mode, w.interaction, string(w.mode)+"-"+string(w.interaction)
		if w.reviewer {
			name += "-reviewer"
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			record, folder := filepath.Join(t.TempDir(), "record"), data(t)
			if err := os.WriteFile(filepath.Join(folder, ".env"), []byte("KEY=1"), 0o600); err != nil {
				t.Fatal(err)
			}
			r := imitate(t, imitation{Record: record}, func(c *codex.Config) { c.Reviewer = w.reviewer })
			p := runner.Policy{Mode: m, Interaction: i}
			c := open(t, r, opening{folder: folder, policy: p})
			var got strings.Builder
			phase := func(name string) {
				t.Helper()
				got.WriteString(name + "\n")
				for _, f := range sentFrames(t, record) {
					switch f["method"] {
					case "thread/start", "thread/resume", "thread/settings/update", "turn/start":
					default:
						continue
					}
					b, err := json.Marshal(frame{"method": f["method"], "params": f["params"]})
					if err != nil {
						t.Fatal(err)
					}
					got.Write(append(b, '\n'))
				}
				if err := os.Truncate(record, 0); err != nil {
					t.Fatal(err)
				}
			}
			c.turn("say it")
			phase("begun")
			if _, err := c.Turn(t.Context(), runner.Input{Turn: "turn", Text: "crash"}); err == nil {
				t.Fatal("a crash is no error")
			}
			phase("again")
			c.turn("say it")
			phase("after a crash")
			token := c.ResumeToken()
			if err := c.Close(); err != nil {
				t.Fatal(err)
			}
			phase("closed")
			again := open(t, r, opening{folder: folder, policy: p, resume: token})
			again.turn("say it")
			phase("resumed")
			golden(t, "wire/"+name+".txt", []byte(neutral(t, got.String(), folder, r.Data())))
		})
	}
}

// neutral replaces the folders of a test.
func neutral(t *testing.T, s, folder, data string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if self, err = filepath.EvalSymlinks(self); err != nil {
		t.Fatal(err)
	}
	return strings.NewReplacer(folder, "$FOLDER", data, "$DATA", filepath.Dir(self), "$PROGRAM").Replace(s)
}

// TestEcho tries each thing that codex can say it is held to, for each policy.
func TestEcho(t *testing.T) {
	t.Parallel()
	const (
		starts  = "the turn starts"
		tighter = "the turn starts, and the chat is told that it is stricter"
		refused = "the turn is not started"
	)
	full := runner.Policy{Mode: policy.FullAccess, Interaction: policy.Default}
	edits := runner.Policy{Mode: policy.AutoAcceptEdits, Interaction: policy.Default}
	plan := runner.Policy{Mode: policy.FullAccess, Interaction: policy.Plan}
	auto := runner.Policy{Mode: policy.Auto, Interaction: policy.Default}
	for _, c := range []struct {
		echo     string
		policy   runner.Policy
		want     string
		reviewer bool
	}{
		{"", auto, starts, true},
		{"no reviewer", auto, tighter, true},
		{"another reviewer", edits, refused, true},
		{"another reviewer", plan, refused, true},
		{"another reviewer", full, refused, true},
		{"another reviewer", auto, refused, false},
		{"granular", auto, refused, true},
		{"", approvalRequired(), starts, false},
		{"", edits, starts, false},
		{"", full, starts, false},
		{"", plan, starts, false},
		{"none", approvalRequired(), refused, false},
		{"none", full, refused, false},
		{"another reviewer", edits, refused, false},
		{"another folder", edits, refused, false},
		{"never asks", edits, refused, false},
		{"never asks", full, refused, false},
		{"granular", edits, refused, false},
		{"no sandbox", approvalRequired(), refused, false},
		{"no sandbox", plan, refused, false},
		{"no sandbox", full, starts, false},
		{"the network", approvalRequired(), refused, false},
		{"its own sandbox", approvalRequired(), refused, false},
		{"an older version's", approvalRequired(), refused, false},
		{"an older version's", full, starts, false},
		{"another profile", edits, refused, false},
		{"editing", approvalRequired(), refused, false},
		{"editing", plan, refused, false},
		{"editing", edits, starts, false},
		{"reading", approvalRequired(), starts, false},
		{"reading", edits, tighter, false},
		{"reading", full, tighter, false},
		{"asks always", approvalRequired(), tighter, false},
		{"another interaction", plan, refused, false},
	} {
		t.Run(fmt.Sprintf("%s for %s %s, reviewer %v", c.echo, c.policy.Mode, c.policy.Interaction, c.reviewer), func(t *testing.T) {
			t.Parallel()
			record := filepath.Join(t.TempDir(), "record")
			s := open(t, imitate(t, imitation{Echo: c.echo, Record: record}, func(r *codex.Config) {
				r.Reviewer = c.reviewer
				if c.echo == "none" {
					r.Pace.Echo = 100 * time.Millisecond
				}
			}), opening{policy: c.policy})
			_, err := s.Turn(t.Context(), runner.Input{Turn: "turn", Text: "say it"})
			told := s.kinds(runner.PolicyChanged)
			started := false
			for _, f := range sentFrames(t, record) {
				started = started || f["method"] == "turn/start"
			}
			got := starts
			switch {
			case err != nil && !started && strings.Contains(err.Error(), "not started"):
				got = refused
			case err != nil || !started:
				got = "something else: " + err.Error()
			case len(told) == 1 && !told[0].Policy.Effective.Mode.Looser(c.policy.Mode) && told[0].Policy.Asked == c.policy && told[0].Policy.Why != "":
				got = tighter
			case len(told) > 0:
				got = "something else is told"
			}
			if got != c.want {
				t.Errorf("%s, want: %s (%v)", got, c.want, err)
			}
		})
	}
}

// TestEchoLoosensARunningTurn takes a turn that codex says is not held any more.
func TestEchoLoosensARunningTurn(t *testing.T) {
	t.Parallel()
	c := open(t, imitate(t, imitation{}), opening{})
	r := c.turn("loosen")
	if r.Outcome != runner.Interrupted || !strings.Contains(r.Reason, "never") {
		t.Errorf("the turn ended as %+v", r)
	}
}

// TestSetPolicy tells a turn that is bound by the gate from one whose sandbox lets it do what the new mode does not.
func TestSetPolicy(t *testing.T) {
	t.Parallel()
	at := func(m policy.Mode, i policy.Interaction) runner.Policy { return runner.Policy{Mode: m, Interaction: i} }
	for _, c := range []struct {
		from, to runner.Policy
		want     bool
	}{
		{at(policy.FullAccess, policy.Default), at(policy.ApprovalRequired, policy.Default), true},
		{at(policy.FullAccess, policy.Default), at(policy.FullAccess, policy.Plan), true},
		{at(policy.Auto, policy.Default), at(policy.AutoAcceptEdits, policy.Default), true},
		{at(policy.Auto, policy.Default), at(policy.ApprovalRequired, policy.Default), false},
		{at(policy.AutoAcceptEdits, policy.Default), at(policy.AutoAcceptEdits, policy.Plan), false},
		{at(policy.AutoAcceptEdits, policy.Default), at(policy.FullAccess, policy.Default), false},
		{at(policy.ApprovalRequired, policy.Default), at(policy.FullAccess, policy.Default), true},
		{at(policy.ApprovalRequired, policy.Default), at(policy.ApprovalRequired, policy.Plan), false},
		{at(policy.FullAccess, policy.Plan), at(policy.ApprovalRequired, policy.Default), true},
	} {
		t.Run(string(c.from.Mode)+" "+string(c.from.Interaction)+" to "+string(c.to.Mode)+" "+string(c.to.Interaction), func(t *testing.T) {
			t.Parallel()
			s := open(t, imitate(t, imitation{}), opening{policy: c.from})
			setter, ok := s.Session.(runner.PolicySetter)
			if !ok {
				t.Fatal("a session takes no policy")
			}
			if got, err := setter.SetPolicy(t.Context(), c.to); err != nil || !got {
				t.Errorf("without a turn: %v, %v", got, err)
			}
			ctx, stop := contextOf(t)
			done := make(chan runner.Result, 1)
			go func() {
				r, _ := s.Turn(ctx, runner.Input{Turn: "turn", Text: "hang"})
				done <- r
			}()
			s.await(runner.ItemStarted)
			if got, err := setter.SetPolicy(t.Context(), c.to); err != nil || got != c.want {
				t.Errorf("in a turn: %v, %v, want %v", got, err, c.want)
			}
			stop()
			if r := <-done; r.Outcome != runner.Interrupted {
				t.Errorf("the turn ended as %+v", r)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if _, err := setter.SetPolicy(t.Context(), c.to); err == nil {
				t.Error("a closed session takes a policy")
			}
		})
	}
}
