//go:build runtimes

package codex_test

import (
	"context"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"drawbridge/internal/modeltest"
	"drawbridge/runner"
	"drawbridge/runner/codex"
	"drawbridge/runner/runnertest"
)

// TestRealServersAreNotSeen: what a server is given stands neither on a command line nor in a file of ours, and its tools
// work from the first turn on.
func TestRealServersAreNotSeen(t *testing.T) {
	t.Parallel()
	const secret = "very-secret-of-a-server"
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	folder := data(t)
	config := realConfig(t, folder, model(t, modeltest.Config{Script: modeltest.Follow(hands())}))
	config.Servers = map[string]codex.Server{runnertest.ToolServer: {Command: self, Environment: map[string]string{toolsVariable: "1", "BANK": secret}}}
	r := installed(t, config)
	work := data(t)
	c := open(t, r, opening{folder: work, answer: yes})
	c.turn("tool mystery " + filepath.Join(work, "made"))
	if _, questions := c.seen(); len(questions) != 1 || questions[0].Tool != "suite/mystery" {
		t.Errorf("asked %+v", questions)
	}
	if _, err := os.Stat(filepath.Join(work, "made")); err != nil {
		t.Error(err)
	}
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(r.Data(), func(path string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			lines = append(lines, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range lines {
		if b, err := os.ReadFile(file); err == nil && strings.Contains(string(b), secret) {
			t.Errorf("%s holds it", file)
		}
	}
}

// TestRealServerAtAnAddress: a server is reached by HTTP, with its headers, and its tools are asked.
func TestRealServerAtAnAddress(t *testing.T) {
	t.Parallel()
	served := httptest.NewServer(runnertest.HandleTools("Bearer t"))
	t.Cleanup(served.Close)
	config := realConfig(t, data(t), model(t, modeltest.Config{Script: modeltest.Follow(hands())}))
	config.Servers = map[string]codex.Server{runnertest.ToolServer: {URL: served.URL, Headers: map[string]string{"Authorization": "Bearer t"}}}
	for _, allowed := range []bool{false, true} {
		work, answer := data(t), no
		if allowed {
			answer = yes
		}
		c := open(t, installed(t, config), opening{folder: work, answer: answer})
		c.turn("tool pay " + filepath.Join(work, "made"))
		_, questions := c.seen()
		if _, err := os.Stat(filepath.Join(work, "made")); len(questions) != 1 || (err == nil) != allowed {
			t.Errorf("allowed %v: made %v, asked %+v", allowed, err == nil, questions)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestRealResourcesAreReadUnasked measures what Probe names as looser than the table: codex has no question for a resource of a
// server.
func TestRealResourcesAreReadUnasked(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	config := realConfig(t, data(t), model(t, modeltest.Config{Script: func(_ context.Context, r modeltest.Request) modeltest.Reply {
		if last := r.Messages[len(r.Messages)-1]; last.Role == "tool" {
			return modeltest.Reply{Text: last.Content}
		}
		return modeltest.Reply{Calls: []modeltest.Call{modeltest.CallOf("read_mcp_resource", map[string]any{"server": runnertest.ToolServer, "uri": "file:///x"})}}
	}}))
	config.Servers = map[string]codex.Server{runnertest.ToolServer: {Command: self, Environment: map[string]string{toolsVariable: "1"}}}
	r := installed(t, config)
	c := open(t, r, opening{answer: no})
	if _, err := c.Turn(t.Context(), runner.Input{Turn: "t", Text: "read it"}); err != nil {
		t.Fatal(err)
	}
	// The suite's server has no resources, and says so when it is asked for one.
	if _, questions := c.seen(); len(questions) != 0 || !strings.Contains(c.said(), "resources/read failed") {
		t.Errorf("codex asks now, or says %q: tell so in probe.go; asked %+v", c.said(), questions)
	}
	named := func(c runner.Capability) bool {
		return slices.ContainsFunc(c.Looser, func(d runner.Difference) bool { return d.Part && strings.Contains(d.What, "resource") })
	}
	if probed := looked(t, r); !named(probed) {
		t.Errorf("the probe says nothing of it: %+v", probed)
	}
	config.Data, config.Servers = data(t), nil
	if probed := looked(t, installed(t, config)); named(probed) {
		t.Errorf("the probe says so where there is no server: %+v", probed)
	}
}
