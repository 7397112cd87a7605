package claude

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"drawbridge/policy"
	"drawbridge/runner"
)

// still is a session whose process does nothing.
func still(t *testing.T) *conn {
	t.Helper()
	folder, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	data, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	r := &Runtime{config: Config{Data: data, Tools: map[string]policy.Category{"shop/*": policy.Payment}}}
	if err := r.prepare(); err != nil {
		t.Fatal(err)
	}
	s := &session{runtime: r, token: newID(), attached: map[string]bool{"/attached/file.txt": true}, options: runner.Options{Folder: folder}}
	return &conn{session: s, calls: map[string]*call{}, tasks: map[string]*task{"agent1": {}}, past: map[string]bool{}}
}

func (c *conn) put(t *testing.T, path, text string) {
	t.Helper()
	if !filepath.IsAbs(path) {
		path = filepath.Join(c.session.options.Folder, path)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestEachToolCountsAsWhatItCanDo(t *testing.T) {
	t.Parallel()
	c := still(t)
	own := filepath.Join(c.session.runtime.temporary(), "1", "claude-0", "-w", c.session.token, "tasks", "a.output")
	other := filepath.Join(c.session.runtime.temporary(), "1", "claude-0", "-w", newID(), "tasks", "a.output")
	c.put(t, own, "x")
	c.put(t, other, "x")
	for _, one := range []struct {
		tool, input string
		want        []policy.Category
	}{
		{"Bash", `{"command":"ls"}`, []policy.Category{policy.Terminal}},
		{"Bash", `{"command":"git push"}`, []policy.Category{policy.Network, policy.Publish, policy.Terminal}},
		{"Bash", `{}`, []policy.Category{policy.Terminal, policy.Unknown}},
		{"Bash", `{"command":7}`, []policy.Category{policy.Terminal, policy.Unknown}},
		{"Monitor", `{"command":"tail -f x"}`, []policy.Category{policy.Terminal}},
		{"Read", `{"file_path":"a.txt"}`, []policy.Category{policy.Read}},
		{"Read", `{"file_path":".env"}`, []policy.Category{policy.Read, policy.Secret}},
		{"Read", `{"file_path":"/etc/hosts"}`, []policy.Category{policy.ReadOutside}},
		{"Read", `{"file_path":"../x"}`, []policy.Category{policy.ReadOutside}},
		{"Read", `{}`, []policy.Category{policy.ReadOutside, policy.Secret}},
		{"Read", `{"file_path":"/attached/file.txt"}`, []policy.Category{policy.Read}},
		{"Read", `{"file_path":"` + own + `"}`, []policy.Category{policy.Read}},
		{"Read", `{"file_path":"` + other + `"}`, []policy.Category{policy.ReadOutside}},
		{"Read", `{"file_path":"` + filepath.Dir(own) + `/../../x/../` + filepath.Base(own) + `"}`, []policy.Category{policy.ReadOutside}},
		{"Glob", `{"pattern":"**/*.go"}`, []policy.Category{policy.Read}},
		{"Glob", `{"pattern":"/etc/*"}`, []policy.Category{policy.ReadOutside}},
		{"Glob", `{"pattern":"../*"}`, []policy.Category{policy.ReadOutside}},
		{"Glob", `{"pattern":"*/../../*"}`, []policy.Category{policy.ReadOutside, policy.Secret}},
		{"Glob", `{"pattern":"*","path":"/etc"}`, []policy.Category{policy.ReadOutside}},
		{"Grep", `{"pattern":"x"}`, []policy.Category{policy.Read}},
		{"Grep", `{"pattern":"x","output_mode":"content"}`, []policy.Category{policy.Read, policy.Secret}},
		{"LS", `{"path":"/"}`, []policy.Category{policy.ReadOutside}},
		{"Write", `{"file_path":"a.txt"}`, []policy.Category{policy.Write}},
		{"Edit", `{"file_path":".git/hooks/x"}`, []policy.Category{policy.Protected}},
		{"MultiEdit", `{"file_path":"/etc/x"}`, []policy.Category{policy.Protected}},
		{"NotebookEdit", `{"notebook_path":"a.ipynb"}`, []policy.Category{policy.Write}},
		{"Write", `{}`, []policy.Category{policy.Protected, policy.Secret}},
		{"WebFetch", `{"url":"https://example.org"}`, []policy.Category{policy.Fetch}},
		{"WebSearch", `{"query":"x"}`, []policy.Category{policy.Network}},
		{"Agent", `{"prompt":"x"}`, []policy.Category{policy.Read}},
		{"Agent", `{"prompt":"x","isolation":"worktree"}`, []policy.Category{policy.Terminal}},
		{"SendMessage", `{"to":"agent1"}`, []policy.Category{policy.Read}},
		{"SendMessage", `{"to":"uds:/tmp/other"}`, []policy.Category{policy.Unknown}},
		{"TaskStop", `{"task_id":"x"}`, []policy.Category{policy.Read}},
		{"Skill", `{"skill":"x"}`, []policy.Category{policy.Unknown}},
		{"OfTomorrow", `{}`, []policy.Category{policy.Unknown}},
		{"mcp__shop__buy", `{}`, []policy.Category{policy.Payment}},
		{"mcp__files__Read", `{"file_path":"a.txt"}`, []policy.Category{policy.Unknown}},
	} {
		got := c.classify(one.tool, json.RawMessage(one.input))
		slices.Sort(got)
		if !slices.Equal(got, one.want) {
			t.Errorf("%s %s counts as %v, want %v", one.tool, one.input, got, one.want)
		}
	}
}

// TestAChangeThatCannotBeShownIsAskedWithAllOfItsArguments tries files whose change is in doubt.
func TestAChangeThatCannotBeShownIsAskedWithAllOfItsArguments(t *testing.T) {
	t.Parallel()
	c := still(t)
	c.put(t, "a.txt", "one\ntwo\none\n")
	c.put(t, "bom.txt", "\ufeffone\n")
	c.put(t, "binary", "\xff\xfe\x00")
	for _, input := range []string{
		`{"file_path":"a.txt","old_string":"none","new_string":"x"}`,
		`{"file_path":"a.txt","old_string":"one","new_string":"x"}`,
		`{"file_path":"a.txt","old_string":"","new_string":"x"}`,
		`{"file_path":"bom.txt","old_string":"one","new_string":"x"}`,
		`{"file_path":"binary","old_string":"one","new_string":"x"}`,
		`{"file_path":"nothing.txt","old_string":"one","new_string":"x"}`,
		`{"file_path":".","old_string":"one","new_string":"x"}`,
		`{"file_path":"a.txt","old_string":7}`,
		`{"file_path":"a.txt"}`,
		`{}`,
	} {
		q, expected := c.question("Edit", json.RawMessage(input))
		if q.Kind != runner.KindTool || string(q.Arguments) != input || expected != nil || !strings.Contains(q.Title, "cannot be shown") || q.Check == nil {
			t.Errorf("%s is asked as %+v", input, q)
		}
	}
	q, expected := c.question("Edit", json.RawMessage(`{"file_path":"a.txt","old_string":"one","new_string":"x","replace_all":true}`))
	if q.Kind != runner.KindFileChange || len(q.Files) != 1 || q.Files[0].Added != 2 || q.Files[0].Removed != 2 || expected.text != "x\ntwo\nx\n" {
		t.Errorf("a change of all is asked as %+v, expecting %+v", q, expected)
	}
	before, err := q.Check()
	if err != nil || expected.met() {
		t.Errorf("check: %v; the change is there before it was made: %v", err, expected.met())
	}
	c.put(t, "a.txt", "x\ntwo\nx\n")
	if after, err := q.Check(); err != nil || after == before || !expected.met() {
		t.Errorf("the changed file has the digest %q, before %q, %v; as expected: %v", after, before, err, expected.met())
	}
}

// TestOnlyThePlansOwnFileIsWrittenUnasked tries paths around it.
func TestOnlyThePlansOwnFileIsWrittenUnasked(t *testing.T) {
	t.Parallel()
	c := still(t)
	interaction := policy.Plan
	c.session.options.Policy = func() runner.Policy { return runner.Policy{Mode: policy.FullAccess, Interaction: interaction} }
	plans := filepath.Join(c.session.runtime.configuration(), "plans")
	c.put(t, filepath.Join(plans, "there.md"), "x")
	if err := os.Symlink(filepath.Join(c.session.options.Folder, "target"), filepath.Join(plans, "link.md")); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{
		plans + "/there.md": true, plans + "/fresh.md": true, plans + "/link.md": false, plans + "/../settings.md": false,
		plans + "/sub/x.md": false, plans + "/x.json": false, plans + "/./x.md": false, "plans/x.md": false, "": false,
	} {
		input, err := json.Marshal(map[string]string{"file_path": path, "content": "x"})
		if err != nil {
			t.Fatal(err)
		}
		if got := c.scratch("Write", input); got != want {
			t.Errorf("%q is written unasked: %v, want %v", path, got, want)
		}
		if c.scratch("Bash", input) {
			t.Errorf("%q: Bash is let through", path)
		}
	}
	interaction = policy.Default
	if c.scratch("Write", json.RawMessage(`{"file_path":"`+plans+`/there.md"}`)) {
		t.Error("the file is written unasked while the chat does not plan")
	}
}

func TestVersionIsReadFromWhatTheProgramSays(t *testing.T) {
	t.Parallel()
	if v, err := parseVersion("2.1.333-rc.1 (Claude Code)\n"); err != nil || v.String() != "2.1.333-rc.1" {
		t.Errorf("%s, %v", v, err)
	}
	for _, bad := range []string{"", "latest", "1.2 (Claude Code)", "v1.2.3", "Claude Code 1.2.3", "1.2.3rc"} {
		if v, err := parseVersion(bad); err == nil {
			t.Errorf("%q is the version %s", bad, v)
		}
	}
}

// FuzzFrames feeds what the program may say. Nothing of it may panic.
func FuzzFrames(f *testing.F) {
	for _, seed := range []string{
		`{"type":"stream_event","event":{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"x"}}}`,
		`{"type":"assistant","message":{"id":"m","content":[{"type":"tool_use","id":"c","name":"Edit","input":{"file_path":"x"}}]}}`,
		`{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"c","content":"Exit code 7"}]}}`,
		`{"type":"result","usage":{"input_tokens":1}}`, `{"type":"system","subtype":"task_started","task_id":"t"}`,
		`{"type":"system","subtype":"status","permissionMode":"auto"}`, `{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":1}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var one frame
		if json.Unmarshal(b, &one) != nil {
			return
		}
		c := &conn{session: &session{runtime: &Runtime{config: Config{Data: "/nowhere"}}, logger: quiet(), attached: map[string]bool{}}, calls: map[string]*call{}, tasks: map[string]*task{}, past: map[string]bool{}, greeted: true, mode: modeDefault, kill: func() {}}
		if one.Type == "user" {
			c.calls["c"] = &call{name: "Bash", asked: true, item: runner.Item{Kind: runner.ItemCommand}}
			for _, r := range one.ToolMeta {
				c.calls[r.ID] = c.calls["c"]
			}
		}
		c.take(one)
		c.running.Wait()
	})
}
