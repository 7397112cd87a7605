package runnertest

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"drawbridge/internal/process"
	"drawbridge/policy"
	"drawbridge/runner"
)

// chunk is how many characters of a text one delta holds.
const chunk = 24

// outputLimit is how many bytes of a command's output an item keeps.
const outputLimit = 30_000

// Scripted is a turn as the script sees it. Run, Edit and Ask may be called at the same time from several goroutines,
// which have to end before the turn does.
type Scripted struct {
	session *session
	context context.Context //nolint:containedctx // the turn's; a script should not have to hand it to every line
	turn    string
	items   atomic.Int64
}

// Folder is the session's workspace.
func (s *Scripted) Folder() string { return s.session.options.Folder }

// Turns counts the turns of the session, this one included, those before a restart too.
func (s *Scripted) Turns() int {
	s.session.mu.Lock()
	defer s.session.mu.Unlock()
	return s.session.turns
}

// Policy is what the chat allows at this moment; the zero value, which is the strictest, when nobody told.
func (s *Scripted) Policy() runner.Policy {
	if s.session.options.Policy == nil {
		return runner.Policy{}
	}
	return s.session.options.Policy()
}

// Emit tells an event of this turn.
func (s *Scripted) Emit(e runner.Event) {
	e.Turn = s.turn
	s.session.emit(e)
}

// Say streams a message and completes it. When the turn is interrupted, the item holds what was said so far.
func (s *Scripted) Say(text string) {
	id := s.id()
	s.Emit(runner.Event{Kind: runner.ItemStarted, Item: &runner.Item{ID: id, Kind: runner.ItemMessage, Status: runner.ItemRunning}})
	said, rest := 0, []rune(text)
	for len(rest) > 0 && s.pause(s.session.runtime.Pace) {
		k := min(chunk, len(rest))
		part := string(rest[:k])
		s.Emit(runner.Event{Kind: runner.ContentDelta, Item: &runner.Item{ID: id, Kind: runner.ItemMessage, Text: part}})
		said, rest = said+len(part), rest[k:]
	}
	s.Emit(runner.Event{Kind: runner.ItemCompleted, Item: &runner.Item{
		ID: id, Kind: runner.ItemMessage, Status: runner.ItemDone, Text: text[:said],
	}})
}

// Run asks whether a command may be run, and runs it in the folder with sh if it may. The answer is the gate's; a
// denial when the gate failed.
func (s *Scripted) Run(command string) runner.Answer {
	item := runner.Item{ID: s.id(), Kind: runner.ItemCommand, Status: runner.ItemRunning, Title: "Run a command", Command: command}
	a := s.act(&item, runner.Question{
		Kind: runner.KindCommand, Title: item.Title, Command: command, Folder: s.Folder(), Categories: policy.Classify(command, s.workspace()),
	}, func() error {
		out := process.NewCapture(outputLimit)
		exit, err := process.Run(s.context, process.Command{
			Args: []string{"sh", "-c", command}, Dir: s.Folder(), Output: out,
			Env: process.Environment(process.Spec{Home: s.home(), Lookup: os.LookupEnv}),
		})
		if err != nil {
			return err
		}
		item.Output, item.Exit = out.String(), &exit.Code
		if exit.Code != 0 {
			item.Status = runner.ItemFailed
		}
		return nil
	})
	return a
}

// Edit asks whether a file may be written, and writes it if it may. path is relative to the folder and stays in it.
func (s *Scripted) Edit(path, content string) runner.Answer {
	old, err := s.read(path)
	change := rewrite(path, old, content, err == nil)
	item := runner.Item{
		ID: s.id(), Kind: runner.ItemFileChange, Status: runner.ItemRunning, Title: "Write " + path, Files: []runner.FileChange{change},
	}
	return s.act(&item, runner.Question{
		Kind: runner.KindFileChange, Title: item.Title, Folder: s.Folder(), Files: item.Files,
		Categories: policy.ClassifyPath(policy.OpWrite, path, s.workspace()),
		Check: func() (string, error) {
			now, err := s.read(path)
			return fmt.Sprintf("%v %s", err == nil, now), nil
		},
	}, func() error { return s.write(path, content) })
}

// Read asks whether a file may be read, and returns it if it may; one outside of the folder by its absolute path.
func (s *Scripted) Read(path string) (string, runner.Answer) {
	item := runner.Item{ID: s.id(), Kind: runner.ItemToolCall, Status: runner.ItemRunning, Title: "Read " + path}
	a := s.act(&item, runner.Question{
		Kind: runner.KindTool, Title: item.Title, Folder: s.Folder(), Tool: "read", Arguments: arguments(path),
		Categories: policy.ClassifyPath(policy.OpRead, path, s.workspace()),
	}, func() (err error) {
		item.Text, err = s.read(path)
		return err
	})
	return item.Text, a
}

// Tool asks whether a tool of the MCP server ToolServer may be called with a file's path, and makes the file if it may.
func (s *Scripted) Tool(name, path string) runner.Answer {
	item := runner.Item{ID: s.id(), Kind: runner.ItemToolCall, Status: runner.ItemRunning, Title: name}
	name = ToolServer + "/" + name
	return s.act(&item, runner.Question{
		Kind: runner.KindTool, Title: item.Title, Folder: s.Folder(), Tool: name, Arguments: arguments(path),
		Categories: policy.ClassifyTool(name, policy.Hints{}, ToolCategories()),
	}, func() error { return os.WriteFile(path, []byte("by a tool\n"), 0o600) })
}

// Background asks whether a command may be run, and starts it if it may. It ends with the session.
func (s *Scripted) Background(command string) runner.Answer {
	item := runner.Item{ID: s.id(), Kind: runner.ItemCommand, Status: runner.ItemRunning, Title: "Start a command", Command: command}
	return s.act(&item, runner.Question{
		Kind: runner.KindCommand, Title: item.Title, Command: command, Folder: s.Folder(), Categories: policy.Classify(command, s.workspace()),
	}, func() error {
		p, err := process.Start(process.Command{
			Args: []string{"sh", "-c", command}, Dir: s.Folder(),
			Env: process.Environment(process.Spec{Home: s.home(), Lookup: os.LookupEnv}),
		})
		if err != nil {
			return err
		}
		s.session.works(work{p, runner.Background{ID: item.ID, Title: command, Started: time.Now()}})
		return nil
	})
}

func arguments(path string) runner.RawArguments {
	b, err := json.Marshal(map[string]string{"path": path})
	if err != nil {
		return nil // a string can be written
	}
	return b
}

// Ask asks a question as it is, apart from its turn and its item.
func (s *Scripted) Ask(q runner.Question) runner.Answer {
	item := runner.Item{ID: s.id(), Kind: runner.ItemQuestion, Status: runner.ItemRunning, Title: q.Title}
	return s.act(&item, q, func() error { return nil })
}

// Propose proposes a task, with the arguments of runner.ProposeTool, and returns what an agent is told of it.
func (s *Scripted) Propose(arguments string) string {
	p, err := runner.ParseProposal(json.RawMessage(arguments))
	if err != nil {
		item := runner.Item{ID: s.id(), Kind: runner.ItemToolCall, Status: runner.ItemRunning, Title: runner.ProposeTool}
		s.Emit(runner.Event{Kind: runner.ItemStarted, Item: clone(&item)})
		item.Status, item.Text = runner.ItemFailed, err.Error()
		s.Emit(runner.Event{Kind: runner.ItemCompleted, Item: clone(&item)})
		return err.Error()
	}
	q := p.Question()
	q.Folder = s.Folder()
	item := runner.Item{ID: s.id(), Kind: runner.ItemToolCall, Status: runner.ItemRunning, Title: runner.ProposeTool}
	return p.Told(s.act(&item, q, func() error { return nil }))
}

// act tells an item's life around a question and what is done when the answer allows it.
func (s *Scripted) act(item *runner.Item, q runner.Question, do func() error) runner.Answer {
	s.Emit(runner.Event{Kind: runner.ItemStarted, Item: clone(item)})
	q.Turn, q.Item = s.turn, item.ID
	a, err := s.session.options.Gate.Ask(s.context, q)
	switch {
	case s.context.Err() != nil:
		// Also an allowance that came with the interrupt: nothing begins in a turn that is over.
		a = runner.Answer{Decision: runner.Withdrawn}
		item.Status, item.Text = runner.ItemRefused, a.Describe()
	case err != nil:
		a = runner.Answer{Decision: runner.Denied, Source: runner.SourceRuntime, Reason: "the gate failed"}
		item.Status, item.Text = runner.ItemRefused, a.Describe()
	case !a.Allows():
		item.Status, item.Text = runner.ItemRefused, a.Describe()
	default:
		item.Status = runner.ItemDone
		if err := do(); err != nil {
			item.Status, item.Text = runner.ItemFailed, err.Error()
		}
	}
	s.Emit(runner.Event{Kind: runner.ItemCompleted, Item: clone(item)})
	return a
}

// clone lets the sink keep an item that is still being worked on.
func clone(i *runner.Item) *runner.Item {
	c := *i
	return &c
}

func (s *Scripted) id() string { return fmt.Sprintf("%s-%d", s.turn, s.items.Add(1)) }

// pause waits and reports false when the turn was interrupted.
func (s *Scripted) pause(d time.Duration) bool {
	if d <= 0 {
		return s.context.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-s.context.Done():
		return false
	}
}

// home is the HOME of commands: never that of whoever runs us.
func (s *Scripted) home() string {
	if s.session.runtime.Data == "" {
		return s.Folder()
	}
	return s.session.runtime.Data
}

// workspace is what the classification needs to know. Nothing here runs in a sandbox.
func (s *Scripted) workspace() policy.Workspace {
	return policy.Workspace{Root: s.Folder(), Home: s.home(), PublishIsOrdinary: s.session.options.PublishIsOrdinary}
}

func (s *Scripted) read(path string) (string, error) {
	if filepath.IsAbs(path) {
		b, err := os.ReadFile(path)
		return string(b), err
	}
	root, err := os.OpenRoot(s.Folder())
	if err != nil {
		return "", err
	}
	defer func() { _ = root.Close() }()
	b, err := root.ReadFile(path)
	return string(b), err
}

func (s *Scripted) write(path, content string) error {
	root, err := os.OpenRoot(s.Folder())
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	if err := root.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return root.WriteFile(path, []byte(content), 0o644)
}

// rewrite is the change of a whole file: every old line removed, every new one added.
func rewrite(path, old, content string, existed bool) runner.FileChange {
	before, after := lines(old), lines(content)
	c := runner.FileChange{Path: path, Op: runner.FileCreate, Added: len(after), Removed: len(before)}
	from := "/dev/null"
	if existed {
		c.Op, from = runner.FileEdit, "a/"+path
	}
	var b strings.Builder
	fmt.Fprintf(&b, "--- %s\n+++ b/%s\n@@ -%s +%s @@\n", from, path, span(len(before)), span(len(after)))
	for _, l := range before {
		b.WriteString(marked("-", l))
	}
	for _, l := range after {
		b.WriteString(marked("+", l))
	}
	c.Diff = b.String()
	return c
}

func lines(s string) []string {
	if s == "" {
		return nil
	}
	return strings.SplitAfter(strings.TrimSuffix(s, "\n"), "\n")
}

func span(n int) string {
	if n == 0 {
		return "0,0"
	}
	return fmt.Sprintf("1,%d", n)
}

// marked is one line of a diff.
func marked(mark, line string) string { return mark + strings.TrimSuffix(line, "\n") + "\n" }
