package config

import (
	"os"
	"strings"
	"testing"
)

const page = "../../docs/configuration.md"

// The page names every key with its variable and default, and its example is one that is accepted.
func TestPageIsTrue(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(text), "\n")
	for _, k := range newLoader(base).keys() {
		row := ""
		for _, line := range lines {
			if strings.HasPrefix(line, "| `"+k.name+"` | `"+k.env+"` |") {
				row = line
			}
		}
		if row == "" {
			t.Errorf("%s has no row for %s and %s", page, k.name, k.env)
			continue
		}
		if computed := k.name == "host_name" || k.name == "data_dir"; !computed && k.def != "" && !strings.Contains(row, "| `"+k.def+"` |") {
			t.Errorf("the row of %s does not name its default %s", k.name, k.def)
		}
	}
	for _, name := range []string{projectsEnv, modelURLEnv, modelEnv, modelKeyEnv, modelContextEnv, agentsEnv, fileEnv, reviewerURLEnv, reviewerModelEnv, reviewerKeyEnv, reviewerTimeoutEnv} {
		if !strings.Contains(string(text), "`"+name+"`") {
			t.Errorf("%s does not name %s", page, name)
		}
	}

	_, example, _ := strings.Cut(string(text), "```toml\n")
	example, _, found := strings.Cut(example, "```")
	if !found {
		t.Fatal("there is no example")
	}
	c, _, err := load(t, example, "GLM_KEY=k", "REVIEWER_KEY=k", "TRACKER_AUTH=k", "BUILD_SECRET=0123456789abcdef", "NOTIFY_KEY=k")
	if err != nil || len(c.Projects) != 2 || len(c.Runtimes) != 3 || len(c.People.Owners) != 1 || c.Reviewer == nil ||
		len(c.Servers) != 2 || len(c.Tools) != 3 || len(c.Hooks) != 1 || len(c.On) != 2 || len(c.Warnings()) != 0 || !c.Projects[1].Trusted {
		t.Errorf("the example gives %v, %v", c.Values(), err)
	}
}
