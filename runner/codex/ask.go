package codex

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"drawbridge/internal/jsonl"
	"drawbridge/internal/process"
	"drawbridge/policy"
	"drawbridge/runner"
)

// errRefused is the answer to a request that is not understood. Codex fails what it asked for and goes on.
var errRefused = errors.New("refused")

// request is one of codex's, made into a question.
type request struct {
	question runner.Question
	// answer is what codex gets. It is called with an answer that allows, or with one that says nothing but by whom it is
	// denied.
	answer func(a runner.Answer) any
	// own says that the question has an item of its own, because codex has none for it.
	own bool
	// tells says that the answer has room for the reason of a refusal, so that answer is called with all of it.
	tells bool
	// ready is the answer where nothing is to be asked.
	ready any
}

// asked answers a request of codex. Whatever is not clearly allowed is refused.
func (s *session) asked(ctx context.Context, srv *server, m jsonl.Message, r route) (any, error) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil, errRefused
	}
	s.asks.Add(1)
	defer s.asks.Done()
	req, err := s.understand(m, r)
	owner := s.owner(r.TurnID)
	until := s.context
	running := s.turn != nil && s.turn.input.Turn == owner
	switch {
	case running && r.ThreadID == s.thread:
		until = s.turn.context
	case running:
		until = s.turn.agents // a sub-agent's work goes on behind the turn's end
	}
	s.mu.Unlock()
	if err != nil {
		s.runtime.config.Logger.Warn("a request of codex was refused", "method", m.Method, "err", err)
		return nil, errRefused
	}
	if req.ready != nil {
		return req.ready, nil
	}

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(until, cancel)()
	q := &req.question
	q.Turn, q.Background = owner, !running
	if req.own {
		s.queue.emit(runner.Event{Kind: runner.ItemStarted, Turn: owner, Item: &runner.Item{
			ID: q.Item, Kind: runner.ItemQuestion, Status: runner.ItemRunning, Title: q.Title,
		}})
	}
	select {
	case <-s.queue.mark(): // the card comes after what led to it
	case <-ctx.Done():
	}
	a, err := s.options.Gate.Ask(ctx, *q)
	if err == nil && q.Kind == runner.KindCommand && a.Allows() {
		// The command's shell reads them first, and the card does not show them.
		err = process.RemoveStartup(s.runtime.home())
	}
	gone := ctx.Err() != nil
	if err != nil || gone {
		a = runner.Answer{Decision: runner.Denied, Source: runner.SourceRuntime, Reason: "nobody could be asked"}
	}
	if req.own {
		status := runner.ItemDone
		if !a.Allows() {
			status = runner.ItemRefused
		}
		s.queue.emit(runner.Event{Kind: runner.ItemCompleted, Turn: owner, Item: &runner.Item{
			ID: q.Item, Kind: runner.ItemQuestion, Status: status, Title: q.Title,
		}})
	}
	if !a.Allows() && !req.tells {
		if !gone {
			s.tell(ctx, srv, r.ThreadID, *q, a)
		}
		a = runner.Answer{Source: a.Source}
	}
	return req.answer(a), nil
}

// tell gives the agent the reason of a refusal, for which codex's answers have no room. It stands in the conversation
// behind the failed call.
func (s *session) tell(ctx context.Context, srv *server, thread string, q runner.Question, a runner.Answer) {
	what := q.Command
	if what == "" {
		what = q.Title
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	err := srv.call(ctx, "thread/inject_items", injectParams{thread, []injectedItem{{
		Type: "message", Role: "developer", Content: []injectedInput{{
			Type: "input_text",
			Text: refusedTag + "\n" + a.Describe() + " This was about: " + clipped(what) + "\n</refused_action>",
		}},
	}}}, nil)
	s.expect(srv, err, "thread/inject_items")
}

// refusedTag begins what the agent is told of a refusal.
const refusedTag = "<refused_action>"

func clipped(s string) string {
	const limit = 200
	if r := []rune(s); len(r) > limit {
		return string(r[:limit]) + "…"
	}
	return s
}

// understand makes a question of a request. An error means that it is refused without asking.
func (s *session) understand(m jsonl.Message, r route) (*request, error) {
	switch m.Method {
	case "item/commandExecution/requestApproval":
		return decoded(m.Params, s.command)
	case "item/fileChange/requestApproval":
		return decoded(m.Params, s.patch)
	case "item/permissions/requestApproval":
		return decoded(m.Params, s.permissions)
	case "item/tool/call":
		return decoded(m.Params, s.proposal)
	case "item/tool/requestUserInput":
		return decoded(m.Params, s.userInput)
	case "mcpServer/elicitation/request":
		return decoded(m.Params, func(f elicitationRequest) (*request, error) {
			if f.Meta != nil && f.Meta.ApprovalKind != "" {
				return s.tool(f, string(m.ID))
			}
			return s.elicitation(f, s.id(r.ThreadID, "elicitation-"+string(m.ID)))
		})
	}
	return nil, fmt.Errorf("the method is unknown")
}

func decoded[F any](params json.RawMessage, build func(F) (*request, error)) (*request, error) {
	var f F
	if err := json.Unmarshal(params, &f); err != nil {
		return nil, err
	}
	return build(f)
}

// accepted is the answer to most approvals. Of codex's words for a yes it is the one that it forgets at once.
func accepted(a runner.Answer) any {
	if a.Allows() {
		return decision{"accept"}
	}
	return decision{"decline"}
}

// workspace is what a classification knows. An accept may leave the sandbox, and a request that will can't be told from
// one that will not, so it is never said that there is one.
func (s *session) workspace() policy.Workspace {
	return policy.Workspace{
		Root: s.options.Folder, Home: s.runtime.home(), Sandbox: policy.NoSandbox, PublishIsOrdinary: s.options.PublishIsOrdinary,
	}
}

func (s *session) command(f approvalRequest) (*request, error) {
	switch {
	case f.Kind != "" && f.Kind != "command":
		return nil, fmt.Errorf("the kind %q is unknown", f.Kind)
	case f.Command == "":
		return nil, errors.New("it does not say what would be run")
	case present(f.NetworkContext), present(f.AdditionalPermissions):
		return nil, errors.New("it asks for more than a command")
	}
	command, folder := script(f.Command), f.Cwd
	if folder == "" {
		folder = s.options.Folder
	}
	line := command
	if folder != s.options.Folder {
		line = "cd " + word(folder) + "\n" + command
	}
	title := "Run a command"
	if f.Reason != "" {
		title = f.Reason
	}
	return &request{answer: accepted, question: runner.Question{
		Kind: runner.KindCommand, Item: s.id(f.ThreadID, f.ItemID), Title: title, Command: command, Folder: folder,
		Categories: policy.Classify(line, s.workspace()),
	}}, nil
}

func (s *session) patch(f approvalRequest) (*request, error) {
	i := s.items[itemKey(f.ThreadID, f.ItemID)]
	switch {
	case i == nil || len(i.wire.Changes) == 0:
		return nil, errors.New("it does not say what would be changed")
	case f.GrantRoot != nil && *f.GrantRoot != "":
		return nil, errors.New("it asks for a folder, not for a change")
	}
	if err := understood(i.wire.Changes); err != nil {
		return nil, err
	}
	list, err := s.overwriting(i.wire.Changes)
	if err != nil {
		return nil, err
	}
	title := "Change files"
	if f.Reason != "" {
		title = f.Reason
	}
	answer := func(a runner.Answer) any {
		if a.Allows() {
			s.makeRoom(list)
		}
		return accepted(a)
	}
	return &request{answer: answer, question: runner.Question{
		Kind: runner.KindFileChange, Item: i.event.ID, Title: title, Folder: s.options.Folder, Files: s.changes(list),
		Categories: patchCategories(list, s.workspace()), Check: func() (string, error) { return digest(paths(list)) },
	}}, nil
}

// permissions is a request to loosen the sandbox. What is granted is what was asked and shown, for the turn.
func (s *session) permissions(f permissionsRequest) (*request, error) {
	var p askedPermissions
	d := json.NewDecoder(bytes.NewReader(f.Permissions))
	d.DisallowUnknownFields()
	if err := d.Decode(&p); err != nil {
		return nil, fmt.Errorf("it asks for what is not understood: %w", err)
	}
	in := s.workspace()
	var c []policy.Category
	if p.Network != nil && p.Network.Enabled != nil && *p.Network.Enabled {
		c = append(c, policy.Network)
	}
	if fs := p.FileSystem; fs != nil {
		read, write := fs.Read, fs.Write
		for _, e := range fs.Entries {
			switch {
			case e.Path.Type != "path":
				return nil, fmt.Errorf("it asks for a path of the type %q", e.Path.Type)
			case e.Access == accessRead:
				read = append(read, e.Path.Path)
			default:
				write = append(write, e.Path.Path)
			}
		}
		for _, path := range read {
			c = append(c, policy.ClassifyPath(policy.OpRead, path, in)...)
		}
		for _, path := range write {
			// Whoever may write a folder may write and delete all that is in it.
			c = append(c, policy.ClassifyPath(policy.OpDelete, path, in)...)
		}
	}
	title := "Loosen the sandbox until the turn ends"
	if f.Reason != "" {
		title += ": " + f.Reason
	}
	return &request{own: true, question: runner.Question{
		Kind: runner.KindTool, Item: s.id(f.ThreadID, f.ItemID) + "-permissions", Title: title, Tool: "request_permissions", Folder: f.Cwd,
		Arguments: f.Permissions, Categories: distinct(c),
	}, answer: func(a runner.Answer) any {
		if a.Allows() {
			return permissionsAnswer{f.Permissions, "turn"}
		}
		return permissionsAnswer{struct{}{}, "turn"}
	}}, nil
}

func (s *session) userInput(f userInputRequest) (*request, error) {
	if len(f.Questions) == 0 {
		return nil, errors.New("it asks nothing")
	}
	q := runner.Question{
		Kind: runner.KindQuestion, Item: s.id(f.ThreadID, f.ItemID), Title: f.Questions[0].Question, Folder: s.options.Folder,
		Categories: []policy.Category{policy.Question},
	}
	for _, w := range f.Questions {
		one := runner.Query{ID: w.ID, Text: w.Question, Secret: w.IsSecret, Free: w.IsOther || len(w.Options) == 0}
		for _, o := range w.Options {
			one.Options = append(one.Options, runner.Option{Label: o.Label, Description: o.Description})
		}
		q.Queries = append(q.Queries, one)
	}
	return &request{own: true, question: q, answer: func(a runner.Answer) any {
		out := userInputAnswer{Answers: map[string]givenAnswers{}}
		if a.Allows() {
			for id, given := range a.Answers {
				out.Answers[id] = givenAnswers{given}
			}
		}
		return out
	}}, nil
}

// present reports whether a member is there and says something.
func present(raw json.RawMessage) bool {
	t := string(bytes.TrimSpace(raw))
	return t != "" && t != "null" && t != "{}" && t != "[]"
}
