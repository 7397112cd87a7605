package config

import (
	"reflect"
	"testing"
)

func TestAgents(t *testing.T) {
	t.Parallel()
	file := "[[runtime]]\nname = \"codex:work\"\nprogram = \"/opt/codex\"\nlogin = \"~/second/auth.json\"\nmodel = \"gpt-5\"\nreviewer = true\nkey_env = \"WORK_KEY\"\n" +
		"[[runtime]]\nname = \"claude\"\nlogin = \"\"\nreviewer = true\n"
	c, _, err := load(t, file, "DRAWBRIDGE_AGENTS=codex, claude:home", "WORK_KEY=k")
	if err != nil {
		t.Fatal(err)
	}
	want := []Runtime{
		{Name: "codex", Kind: KindCodex, Program: "codex", Login: "/home/ada/.codex/auth.json"},
		{Name: "claude:home", Kind: KindClaude, Program: "claude", Login: "/home/ada/.claude"},
		{Name: "codex:work", Kind: KindCodex, Program: "/opt/codex", Login: "/home/ada/second/auth.json", Model: "gpt-5", Reviewer: true, Key: NewSecret("k")},
		{Name: "claude", Kind: KindClaude, Program: "claude", Reviewer: true},
	}
	if len(c.Runtimes) != len(want) {
		t.Fatalf("runtimes %v", c.Runtimes)
	}
	for i, r := range c.Runtimes {
		if !reflect.DeepEqual(r, want[i]) {
			t.Errorf("runtime %d:\n got %+v\nwant %+v", i, r, want[i])
		}
	}
	if c.DefaultRuntime != "codex" {
		t.Errorf("default runtime %q", c.DefaultRuntime)
	}
}

// The variable replaces the file's runtime of the same name and leaves the others.
func TestAgentsOfTheEnvironmentWin(t *testing.T) {
	t.Parallel()
	c, _, err := load(t, "[[runtime]]\nname = \"codex\"\nprogram = \"/opt/codex\"\n", "DRAWBRIDGE_AGENTS=codex")
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Runtimes) != 1 || c.Runtimes[0].Program != "codex" {
		t.Errorf("runtimes %+v", c.Runtimes)
	}
}
