package claude

import (
	"cmp"
	"encoding/json"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"drawbridge/policy"
	"drawbridge/runner"
)

// The tools that are questions to a person.
const (
	askTool  = "AskUserQuestion"
	planTool = "ExitPlanMode"
)

// input holds the fields of tools' inputs by which a call is classified and shown.
type input struct {
	Command     string `json:"command"`
	Description string `json:"description"`
	FilePath    string `json:"file_path"`
	Notebook    string `json:"notebook_path"`
	Path        string `json:"path"`
	Pattern     string `json:"pattern"`
	Output      string `json:"output_mode"`
	URL         string `json:"url"`
	Query       string `json:"query"`
	Isolation   string `json:"isolation"`
	To          string `json:"to"`
}

func parseInput(raw json.RawMessage) input {
	var in input
	_ = json.Unmarshal(raw, &in) // what does not fit stays empty, which is classified as the strictest
	return in
}

// workspace is what the classification needs to know. Nothing here runs in a sandbox.
func (c *conn) workspace() policy.Workspace {
	s := c.session
	return policy.Workspace{Root: s.options.Folder, Home: s.runtime.home(), PublishIsOrdinary: s.options.PublishIsOrdinary}
}

// classify says what a call does.
func (c *conn) classify(name string, raw json.RawMessage) []policy.Category {
	in, w := parseInput(raw), c.workspace()
	switch name {
	case "Bash", "Monitor":
		if in.Command == "" {
			return []policy.Category{policy.Terminal, policy.Unknown}
		}
		return policy.Classify(in.Command, w)
	case "Read", "NotebookRead", "LS":
		path := cmp.Or(in.FilePath, in.Notebook, in.Path)
		if c.session.ownOutput(path) {
			return []policy.Category{policy.Read}
		}
		return policy.ClassifyPath(policy.OpRead, path, w)
	case "Glob":
		return policy.ClassifyPath(policy.OpRead, globbed(in), w)
	case "Grep":
		found := policy.ClassifyPath(policy.OpRead, cmp.Or(in.Path, w.Root), w)
		if in.Output == "content" && !slices.Contains(found, policy.Secret) {
			found = append(found, policy.Secret) // it shows lines of any file below
		}
		return found
	case "Edit", "Write", "MultiEdit", "NotebookEdit":
		return policy.ClassifyPath(policy.OpWrite, cmp.Or(in.FilePath, in.Notebook), w)
	case "Task", "Agent":
		if in.Isolation != "" {
			return []policy.Category{policy.Terminal} // makes a work tree, which runs hooks of git
		}
		return []policy.Category{policy.Read} // what it does is asked for by itself
	case "SendMessage":
		if c.knows(in.To) {
			return []policy.Category{policy.Read} // a sub-agent of its own
		}
		return []policy.Category{policy.Unknown}
	case "TodoWrite", "TaskCreate", "TaskUpdate", "TaskGet", "TaskList", "TaskOutput", "BashOutput", "TaskStop", "KillShell", "KillBash",
		"ListAgents", "ToolSearch", "ReportFindings":
		return []policy.Category{policy.Read} // the agent's own lists and processes
	}
	owner := c.session.runtime.config.Tools
	found := policy.ClassifyTool(name, policy.Hints{}, owner)
	_, told := owner[name]
	if name != "WebFetch" && name != "WebSearch" && !told && !strings.HasPrefix(name, "mcp__") {
		// A tool of the program that is not known here may do more than its name says.
		found = append(slices.DeleteFunc(found, func(one policy.Category) bool { return one == policy.Unknown }), policy.Unknown)
	}
	return found
}

// wholeCommand reports whether a command's text says all that its call does, but for how long and where it is waited for.
func wholeCommand(raw json.RawMessage) bool {
	fields := map[string]json.RawMessage{}
	if json.Unmarshal(raw, &fields) != nil {
		return false
	}
	for name := range fields {
		switch name {
		case "command", "description", "timeout", "run_in_background", "dangerouslyDisableSandbox": // there is no sandbox here
		default:
			return false
		}
	}
	return true
}

// globbed is the folder in which a pattern looks, as far as its words say.
func globbed(in input) string {
	base, pattern := cmp.Or(in.Path, "."), in.Pattern
	if filepath.IsAbs(pattern) || strings.HasPrefix(pattern, "~") {
		base = ""
	}
	if i := strings.IndexAny(pattern, "*?[{"); i >= 0 {
		if strings.Contains(pattern[i:], "..") {
			return "" // leads anywhere
		}
		pattern = pattern[:strings.LastIndexByte(pattern[:i], '/')+1]
	}
	if base == "" {
		return pattern
	}
	return base + "/" + pattern // not cleaned: what stands before a ".." may be a link
}

// describe is how a call is shown while it runs, before it is known what it will do.
func (c *conn) describe(id, name string, raw json.RawMessage) runner.Item {
	in := parseInput(raw)
	item := runner.Item{ID: id, Kind: runner.ItemToolCall, Title: c.title(name, in)}
	switch name {
	case "Bash", "Monitor":
		item.Kind, item.Command = runner.ItemCommand, in.Command
	case "Edit", "Write", "MultiEdit", "NotebookEdit":
		item.Kind = runner.ItemFileChange
	case askTool:
		item.Kind = runner.ItemQuestion
	case planTool:
		item.Kind = runner.ItemPlan
	}
	return item
}

// title is a line for people.
func (c *conn) title(name string, in input) string {
	path := c.session.shown(cmp.Or(in.FilePath, in.Notebook, in.Path))
	var s string
	switch name {
	case "Bash", "Monitor":
		s = cmp.Or(in.Description, "Run a command")
	case "Read", "NotebookRead":
		s = "Read " + path
	case "LS":
		s = "List " + path
	case "Write":
		s = "Write " + path
	case "Edit", "MultiEdit", "NotebookEdit":
		s = "Edit " + path
	case "Glob", "Grep":
		s = "Search for " + in.Pattern
	case "WebFetch":
		s = "Fetch " + in.URL
		if u, err := url.Parse(in.URL); err == nil && u.Host != "" {
			s = "Fetch from " + u.Host
		}
	case "WebSearch":
		s = "Search the web for " + in.Query
	case "Task", "Agent":
		s = "Sub-agent: " + cmp.Or(in.Description, "a task")
	case askTool:
		s = "A question"
	case planTool:
		s = "A plan"
	default:
		s = strings.Replace(strings.TrimPrefix(name, "mcp__"), "__", "/", 1)
	}
	return line(s)
}

// line makes a text one line of bounded length.
func line(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > 200 {
		s = string(r[:200]) + "…"
	}
	return s
}

// question is what is asked of a call: everything that would be run or written.
func (c *conn) question(name string, raw json.RawMessage) (runner.Question, *expectation) {
	in := parseInput(raw)
	q := runner.Question{
		Kind: runner.KindTool, Title: c.title(name, in), Folder: c.session.options.Folder, Tool: name, Arguments: raw, Categories: c.classify(name, raw),
	}
	switch name {
	case "Bash":
		if in.Command != "" && !wholeCommand(raw) {
			q.Categories = append(q.Categories, policy.Unknown)
			return q, nil // shown with all that it holds
		}
		if in.Command != "" {
			q.Kind, q.Command, q.Tool, q.Arguments = runner.KindCommand, in.Command, "", nil
		}
	case "Edit", "Write":
		change, expected, err := c.session.change(name, raw)
		if err != nil {
			q.Title = line(q.Title + " (" + err.Error() + ")")
			q.Check = c.session.unchanged(in.FilePath)
			return q, nil
		}
		q.Kind, q.Files, q.Tool, q.Arguments = runner.KindFileChange, []runner.FileChange{change}, "", nil
		q.Check = c.session.unchanged(in.FilePath)
		return q, expected
	case "MultiEdit", "NotebookEdit":
		q.Title = line(q.Title + " (what it will hold cannot be shown beforehand)")
		q.Check = c.session.unchanged(cmp.Or(in.FilePath, in.Notebook))
	}
	return q, nil
}

// knows reports whether a name is that of a sub-agent of this session.
func (c *conn) knows(name string) bool {
	c.session.mu.Lock()
	defer c.session.mu.Unlock()
	return name == "main" || c.tasks[name] != nil || c.past[name]
}
