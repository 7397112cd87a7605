package claude

import (
	"encoding/json"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"

	"drawbridge/internal/process"
	"drawbridge/runner"
)

// outputLimit is how many bytes of a call's output an item keeps.
const outputLimit = 30_000

// exitLine is how the program tells the status of a command that failed.
var exitLine = regexp.MustCompile(`^(?:Error: )?Exit code (\d+)\n?`)

// heard takes the results of calls. mu is held.
func (c *conn) heard(f frame) {
	var m message
	if json.Unmarshal(f.Message, &m) != nil {
		return
	}
	for _, b := range m.Content {
		if b.Type != "tool_result" {
			continue
		}
		meta := ""
		for _, t := range f.ToolMeta {
			if t.ID == b.Call {
				meta = t.NonExecution
			}
		}
		k := c.calls[b.Call]
		ran := !b.IsError || exitLine.MatchString(b.Content.text())
		if ran && meta == "" && (k == nil || !k.cleared) {
			c.tripped(b.Call, k)
		}
		if k == nil {
			continue
		}
		c.finish(k, b, f.ToolResult)
	}
}

// tripped ends the session's process: something ran that was not asked for, or before it was allowed, or although it was
// refused. mu is held.
func (c *conn) tripped(id string, k *call) {
	name, how := "a tool", "without asking"
	if k != nil {
		name = k.name
		if k.asked {
			how = "although nobody had allowed it"
		}
	}
	c.session.logger.Warn("program did what nobody allowed", "runtime", c.session.runtime.config.Name, "tool", name, "call", id)
	c.fail("The program used " + name + " " + how + ", so its turn was ended.")
	c.running.Go(c.kill)
}

// finish completes a call with its result. mu is held.
func (c *conn) finish(k *call, b block, structured json.RawMessage) {
	status := runner.ItemDone
	if b.IsError {
		status = runner.ItemFailed
	}
	text := forPeople(b.Content.text())
	if c.steps.created(k.name, k.input, structured) {
		c.session.emit(runner.Event{Kind: runner.PlanUpdated, Turn: k.turn, Plan: c.steps.list()})
	}
	switch k.item.Kind {
	case runner.ItemCommand:
		k.item.Output, k.item.Exit = commandOutput(text, b.IsError, structured, c.session.keptOutput)
	case runner.ItemFileChange:
		if b.IsError {
			k.item.Text = bounded(text)
		} else if k.expected != nil && !k.expected.met() {
			c.notice("What " + k.item.Title + " left in the file is not what was shown. Look at the file.")
		}
	case runner.ItemPlan, runner.ItemQuestion:
		if k.item.Text == "" {
			k.item.Text = bounded(text)
		}
	default:
		k.item.Text = bounded(text)
	}
	c.end(k, status)
}

// forPeople is a result without the marks that are for the model, and without what it says is for the model alone.
func forPeople(text string) string {
	if rest, is := strings.CutPrefix(text, "<tool_use_error>"); is {
		return strings.TrimSuffix(rest, "</tool_use_error>")
	}
	if strings.HasPrefix(text, "Async agent launched") {
		return "It works in the background."
	}
	return text
}

func bounded(text string) string {
	out := process.NewCapture(outputLimit)
	_, _ = io.WriteString(out, text) // never fails
	return out.String()
}

// commandOutput is what a command wrote, and its status where the program tells it.
func commandOutput(text string, failed bool, structured json.RawMessage, kept func(string) (string, bool)) (string, *int) {
	var r struct {
		Stdout      string `json:"stdout"`
		Stderr      string `json:"stderr"`
		Interrupted bool   `json:"interrupted"`
		Background  string `json:"backgroundTaskId"`
		Persisted   string `json:"persistedOutputPath"`
	}
	if json.Unmarshal(structured, &r) != nil {
		r.Stdout = "" // an error's structure is a text
	}
	var exit *int
	switch m := exitLine.FindStringSubmatch(text); {
	case failed && m != nil:
		if n, err := strconv.Atoi(m[1]); err == nil {
			exit = &n
		}
		text = text[len(m[0]):]
	case failed:
	case r.Background != "":
	default:
		exit = new(int)
		text = r.Stdout
		if r.Stderr != "" {
			text = strings.TrimSuffix(text, "\n") + "\n" + r.Stderr
		}
		text = strings.TrimPrefix(text, "\n")
	}
	if r.Persisted != "" {
		if whole, ok := kept(r.Persisted); ok {
			text = whole
		}
	}
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n" // the program takes the last line's end away
	}
	return bounded(text), exit
}

// keptOutput is the beginning and the end of an output that the program keeps in a file of its own. mu is held.
func (s *session) keptOutput(path string) (string, bool) {
	if !s.owns(path) {
		return "", false
	}
	f, err := os.Open(path)
	if err != nil {
		return "", false
	}
	defer func() { _ = f.Close() }()
	out := process.NewCapture(outputLimit)
	if _, err := io.Copy(out, f); err != nil {
		return "", false
	}
	return out.String(), true
}
