package native

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"drawbridge/internal/chatapi"
	"drawbridge/policy"
	"drawbridge/runner"
)

// tool is one that the model can call.
type tool struct {
	chatapi.Tool
	// plan reads the arguments and says what would be done, without doing anything of it.
	plan func(t *turn, arguments json.RawMessage) (*action, error)
	when offer
}

// offer says while what the model is offered a tool. A tool that it calls all the same is no other one for that: the gate
// answers, or the tool itself.
type offer int

const (
	always      offer = iota
	whileActing       // only while it may change something
	whilePlanning
)

// action is a planned call: what is asked, how it is shown, and what is done once it is allowed.
type action struct {
	item       runner.Item
	question   runner.Question
	categories []policy.Category
	// ungated says that the call changes nothing but what people see of the turn, so that there is nothing to ask the gate
	// for and no item to show. Only do is used then.
	ungated bool
	// heard makes of any answer what the model is told, for a question to a person, which has nothing to carry out. It may
	// fill in the item. Nil for everything else.
	heard func(a runner.Answer, item *runner.Item) string
	// do carries it out and returns what the model is told. It may fill in the item. An error is a result too.
	do func(ctx context.Context, item *runner.Item) (string, error)
	// drop lets go of what the plan holds open. May be nil.
	drop func()
}

// nonsense is an error that says that the call itself cannot be understood: three of them in a row end the turn.
type nonsense struct{ error }

func (n nonsense) Unwrap() error { return n.error }

// tools are all there are, in the order in which the model sees them.
func tools() []tool {
	return []tool{
		{chatapi.Tool{
			Name: "read_file", Description: "Read a text file of the workspace. Lines are numbered; the numbers are not part of the file.",
			Parameters: schema(`"path":`+str("Path relative to the workspace.")+`,"offset":`+num("First line to read, from 1.")+`,"limit":`+num("How many lines; 2000 unless given."), "path"),
		}, planReadFile, always},
		{chatapi.Tool{
			Name: "list_dir", Description: "List a folder of the workspace. Folders end with a slash.",
			Parameters: schema(`"path":` + str("Path relative to the workspace; the workspace itself unless given.")),
		}, planListDir, always},
		{chatapi.Tool{
			Name: "glob", Description: "Find files of the workspace by name. ** stands for any folders, as in **/*.go.",
			Parameters: schema(`"pattern":`+str("The pattern, relative to the workspace."), "pattern"),
		}, planGlob, always},
		{chatapi.Tool{
			Name: "grep", Description: "Search the text files of the workspace for a regular expression (RE2). Files with secrets are left out unless named by path.",
			Parameters: schema(`"pattern":`+str("The regular expression.")+`,"path":`+str("File or folder to search; the workspace unless given.")+
				`,"glob":`+str("Only files whose path matches, as in **/*.go.")+`,"ignore_case":{"type":"boolean"}`, "pattern"),
		}, planGrep, always},
		{chatapi.Tool{
			Name: "edit", Description: "Replace text in a file of the workspace. old must be in the file exactly once, with all its blanks and line breaks, unless replace_all is set.",
			Parameters: schema(`"path":`+str("Path relative to the workspace.")+`,"old":`+str("The text to replace.")+`,"new":`+str("The text to put in its place.")+
				`,"replace_all":{"type":"boolean"}`, "path", "old", "new"),
		}, planEdit, whileActing},
		{chatapi.Tool{
			Name: "write_file", Description: "Write a whole file of the workspace. An existing file is replaced; use edit to change a part of one.",
			Parameters: schema(`"path":`+str("Path relative to the workspace.")+`,"content":`+str("All that the file shall hold."), "path", "content"),
		}, planWriteFile, whileActing},
		{chatapi.Tool{
			Name: "shell", Description: "Run a command line with a shell in the workspace. It has no terminal and no input; what it leaves running is ended with it. Long output is cut in the middle.",
			Parameters: schema(`"command":`+str("The command line.")+`,"timeout":`+num("Seconds after which it is ended; at most 3600."), "command"),
		}, planShell, whileActing},
		{chatapi.Tool{
			Name: "ask_user", Description: "Ask a person and wait for the answer. Only for what cannot be found out otherwise and matters.",
			Parameters: schema(`"questions":{"type":"array","description":"Asked one after the other; at most 10.","items":`+schemaOf(
				`"id":`+str("Names the answer.")+`,"question":`+str("The question, briefly.")+
					`,"options":{"type":"array","description":"Answers to choose from; none for an answer in words.","items":`+
					schemaOf(`"label":`+str("The answer, in a few words.")+`,"description":`+str("What choosing it means."), "label")+`}`+
					`,"multiple":{"type":"boolean","description":"Several options may be chosen."}`+
					`,"free":{"type":"boolean","description":"Also an answer in the person's own words is taken; true unless given."}`+
					`,"secret":{"type":"boolean","description":"The answer is a secret and is taken out of the chat."}`, "question")+`}`, "questions"),
		}, planAskUser, always},
		{chatapi.Tool{
			Name: "update_plan", Description: "Show people the checklist of what you are doing, whole, each time a step begins or is done.",
			Parameters: schema(`"steps":{"type":"array","items":`+schemaOf(`"text":`+str("The step, in a few words.")+
				`,"state":{"type":"string","enum":["pending","in_progress","done"]}`, "text", "state")+`}`, "steps"),
		}, planUpdatePlan, always},
		proposeTool(),
		{chatapi.Tool{
			Name: "submit_plan", Description: "Hand the finished plan over to a person, who decides about it. Ends your turn.",
			Parameters: schema(`"plan":`+str("The whole plan, in Markdown."), "plan"),
		}, planSubmitPlan, whilePlanning},
	}
}

// offered are the tools that the model is told of.
func offered(planning bool) []tool {
	return slices.DeleteFunc(tools(), func(t tool) bool { return t.when == whileActing && planning || t.when == whilePlanning && !planning })
}

func schema(properties string, required ...string) json.RawMessage {
	return json.RawMessage(schemaOf(properties, required...))
}

func schemaOf(properties string, required ...string) string {
	s := `{"type":"object","properties":{` + properties + `}`
	if len(required) > 0 {
		s += `,"required":["` + strings.Join(required, `","`) + `"]`
	}
	return s + "}"
}

func str(description string) string {
	return `{"type":"string","description":` + strconv.Quote(description) + `}`
}

func num(description string) string {
	return `{"type":"integer","description":` + strconv.Quote(description) + `}`
}

// definitions are the tools as the endpoint wants them.
func definitions(planning bool) []chatapi.Tool {
	var list []chatapi.Tool
	for _, t := range offered(planning) {
		list = append(list, t.Tool)
	}
	return list
}

// call carries out one call of the model: plan, ask, do. It returns what the model is told, and whether the call itself
// was nonsense. It never fails: whatever goes wrong is a result.
func (t *turn) call(ctx context.Context, c chatapi.ToolCall) (result string, bad bool) {
	a, err := t.plan(c)
	if err != nil {
		item := runner.Item{ID: t.item(), Kind: runner.ItemToolCall, Title: title(c.Name), Status: runner.ItemRunning}
		t.started(item)
		item.Status, item.Text = runner.ItemFailed, err.Error()
		t.completed(item)
		var n nonsense
		return "Error: " + err.Error(), errors.As(err, &n)
	}
	if a.drop != nil {
		defer a.drop()
	}
	if a.ungated {
		return t.plainly(ctx, a), false
	}
	item := a.item
	item.ID, item.Status = t.item(), runner.ItemRunning
	t.started(item)
	defer func() { t.completed(item) }()

	q := a.question
	q.Turn, q.Item, q.Folder, q.Categories = t.id, item.ID, t.session.options.Folder, a.categories
	if q.Title == "" {
		q.Title = item.Title
	}
	answer, err := t.session.options.Gate.Ask(ctx, q)
	if err != nil {
		t.session.logger.Warn("gate failed", "runtime", t.session.runtime.config.Name, "err", err)
		answer = runner.Answer{Decision: runner.Denied, Source: runner.SourceRuntime}
	}
	if ctx.Err() != nil {
		// Also an allowance that came with the interrupt: nothing begins in a turn that is over.
		answer = runner.Answer{Decision: runner.Withdrawn}
	}
	if a.heard != nil {
		item.Status = runner.ItemDone
		return a.heard(answer, &item), false
	}
	if !answer.Allows() {
		item.Status, item.Text = runner.ItemRefused, answer.Describe()
		return "Not done. " + answer.Describe(), false
	}
	item.Status = runner.ItemDone
	result, err = a.do(ctx, &item)
	if err != nil {
		item.Status, item.Text = runner.ItemFailed, err.Error()
		return "Error: " + err.Error(), false
	}
	if item.Kind == runner.ItemToolCall {
		item.Text = result
	}
	return result, false
}

// plainly carries out a call that nobody has to be asked for.
func (t *turn) plainly(ctx context.Context, a *action) string {
	if ctx.Err() != nil {
		return "Not done. The turn was interrupted."
	}
	result, err := a.do(ctx, nil)
	if err != nil {
		return "Error: " + err.Error()
	}
	return result
}

// plan finds the tool and lets it read the arguments.
func (t *turn) plan(c chatapi.ToolCall) (*action, error) {
	arguments, err := object(c.Arguments)
	if err != nil {
		return nil, nonsense{fmt.Errorf("the arguments of %s are not a JSON object (%w); they were: %s", title(c.Name), err, cut(c.Arguments, 200))}
	}
	for _, one := range tools() {
		if one.Name == c.Name {
			a, err := one.plan(t, arguments)
			if err != nil {
				return nil, err
			}
			if a.question.Kind == runner.KindTool {
				a.question.Tool, a.question.Arguments = one.Name, arguments
			}
			return a, nil
		}
	}
	var names []string
	for _, one := range offered(t.session.planning()) {
		names = append(names, one.Name)
	}
	return nil, nonsense{fmt.Errorf("there is no tool %s; there are %s", title(c.Name), strings.Join(names, ", "))}
}

// title is a tool's name as the model wrote it, bounded.
func title(name string) string { return cut(strconv.Quote(name), 80) }

func (t *turn) started(i runner.Item) {
	t.emit(runner.Event{Kind: runner.ItemStarted, Item: &i})
}

func (t *turn) completed(i runner.Item) {
	t.emit(runner.Event{Kind: runner.ItemCompleted, Item: &i})
}

// object reads a call's arguments as an object. Nothing at all counts as an empty one, which is what models write for a
// tool without required arguments.
func object(s string) (json.RawMessage, error) {
	if strings.TrimSpace(s) == "" {
		return json.RawMessage("{}"), nil
	}
	var m map[string]json.RawMessage
	if err := json.Unmarshal([]byte(s), &m); err != nil {
		return nil, err
	}
	if m == nil {
		return nil, errors.New("it is null")
	}
	return json.RawMessage(s), nil
}

// decode reads arguments into a struct. What the tool does not know is left aside.
func decode(arguments json.RawMessage, into any) error {
	if err := json.Unmarshal(arguments, into); err != nil {
		return nonsense{fmt.Errorf("the arguments do not fit: %w", err)}
	}
	return nil
}

// whole is a number that some models write as a string or with a fraction of zero.
type whole int64

// UnmarshalJSON takes each of the forms.
func (w *whole) UnmarshalJSON(b []byte) error {
	s := string(bytes.Trim(b, `"`))
	if s == "null" || s == "" {
		return nil
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || f != float64(int64(f)) {
		return fmt.Errorf("%s is not a whole number", cut(string(b), 40))
	}
	*w = whole(f)
	return nil
}

func missing(name string) error { return nonsense{fmt.Errorf("the argument %q is missing", name)} }

// cut bounds a text by bytes, between characters.
func cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit] + "…"
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return cut(line, 300)
}
