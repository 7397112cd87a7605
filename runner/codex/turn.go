package codex

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"drawbridge/internal/jsonl"
	"drawbridge/policy"
	"drawbridge/runner"
)

// Turn sends one prompt; see runner.Session.
func (s *session) Turn(ctx context.Context, in runner.Input) (runner.Result, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.context, cancel)()
	t, err := s.begin(in)
	if err != nil {
		return runner.Result{}, err
	}
	defer s.finish(t)
	s.mu.Lock()
	t.abort = cancel
	s.mu.Unlock()

	if err := s.attach(ctx); err != nil {
		return s.failed(ctx, "", err)
	}
	s.mu.Lock()
	srv := s.server
	s.mu.Unlock()
	asked := runner.Policy{} // the strictest
	if s.options.Policy != nil {
		asked = s.options.Policy()
	}
	if err := s.hold(ctx, srv, t, asked); err != nil {
		return s.failed(ctx, "hold: ", err)
	}
	if err := s.send(ctx, srv, t); err != nil {
		return s.failed(ctx, "start the turn: ", err)
	}

	select {
	case f := <-t.ended:
		s.settle(ctx, srv, t)
		return s.result(t, f), nil
	case <-ctx.Done():
		r, err := s.interrupt(srv, t)
		s.mu.Lock()
		defer s.mu.Unlock()
		if err == nil && t.hopeless != "" {
			r.Outcome, r.Reason = runner.Broken, t.hopeless
		}
		return r, err
	case <-srv.over:
		return s.crashed(srv, t)
	}
}

func (s *session) begin(in runner.Input) (*turn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return nil, fmt.Errorf("codex: turn: %w", runner.ErrClosed)
	case s.turn != nil:
		return nil, errors.New("codex: turn: another one is running")
	}
	t := &turn{input: in, missing: missing(s.options.Folder), ended: make(chan turnFrame, 1), finished: make(chan struct{})}
	t.context, t.cancel = context.WithCancel(s.context)
	t.agents, t.withdraw = context.WithCancel(s.context)
	s.turn = t
	return t, nil
}

// finish closes what the turn leaves open, and returns when all of the turn was told.
func (s *session) finish(t *turn) {
	t.cancel()
	s.mu.Lock()
	if len(s.items) == 0 && t.held.profile == profileEdit {
		tidy(s.options.Folder, t.missing)
	}
	// A sub-agent's work goes on behind the turn's end, and ends by itself or with what it does.
	s.closeItems(func(i *item) bool { return i.turn == t.input.Turn && !i.background && i.thread == s.thread })
	s.mu.Unlock()
	<-s.queue.mark()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turn = nil
	close(t.finished)
}

// settle waits for the commands that have ended with the turn, whose last frames may come behind it. One that goes on is
// told as background work: it keeps its item and its gate until it ends, or the session does.
func (s *session) settle(ctx context.Context, srv *server, t *turn) {
	s.mu.Lock()
	thread := s.thread
	s.mu.Unlock()
	s.settleItems(ctx, srv, thread, func(i *item) bool { return i.thread == thread && i.turn == t.input.Turn })
}

// settleItems does so for the commands of one thread.
func (s *session) settleItems(ctx context.Context, srv *server, thread string, of func(*item) bool) {
	ctx, cancel := context.WithTimeout(ctx, s.runtime.config.Pace.Settle)
	defer cancel()
	for {
		s.mu.Lock()
		open := map[string]*item{}
		for _, i := range s.items {
			if of(i) && i.event.Kind == runner.ItemCommand && !i.background {
				open[i.wire.ID] = i
			}
		}
		changed := s.changed
		s.mu.Unlock()
		if len(open) == 0 {
			return
		}
		var running struct {
			Data []struct {
				ItemID string `json:"itemId"`
			} `json:"data"`
		}
		if err := srv.call(ctx, "thread/backgroundTerminals/list", threadOnly{thread}, &running); err != nil {
			s.expect(srv, err, "thread/backgroundTerminals/list")
			return
		}
		s.mu.Lock()
		for _, r := range running.Data {
			if i := open[r.ItemID]; i != nil && s.items[itemKey(i.thread, i.wire.ID)] == i {
				i.background = true
				delete(open, r.ItemID)
				s.queue.emit(runner.Event{Kind: runner.BackgroundEvent, Turn: i.turn, Background: &runner.Background{
					ID: i.event.ID, Title: i.event.Command, Started: i.started,
				}})
			}
		}
		s.mu.Unlock()
		if len(open) == 0 {
			return
		}
		select {
		case <-changed: // an item has ended
		case <-ctx.Done():
			return
		case <-srv.over:
			return
		}
	}
}

// failed is the end of a turn that codex did not take.
func (s *session) failed(ctx context.Context, doing string, err error) (runner.Result, error) {
	if ctx.Err() != nil {
		return runner.Result{Outcome: runner.Interrupted}, nil //nolint:nilerr // being stopped is what made it fail
	}
	return runner.Result{}, fmt.Errorf("codex: %s%w", doing, err)
}

// What keeps a turn from being started.
var (
	errNoEcho = errors.New("codex does not say what it is held to, so the turn is not started")
	errLooser = errors.New("codex is not held to the chat's mode, so the turn is not started")
	errStray  = errors.New("codex had begun a turn by itself, under what it was held to before; both were stopped, send the prompt again")
)

// hold tells codex the policy and waits until it says that it is held to it, or to a stricter one.
func (s *session) hold(ctx context.Context, srv *server, t *turn, asked runner.Policy) error {
	to := heldTo(asked, s.reviewable())
	s.mu.Lock()
	t.asked, t.held = asked, to
	planned := s.echo.mode == "plan"
	s.mu.Unlock()
	fresh, err := s.refresh(ctx, srv, t.held)
	if err != nil {
		return err
	}
	if !fresh && t.held.profile == profileEdit {
		s.mu.Lock()
		t.held.profile = profileRead
		s.mu.Unlock()
		s.queue.emit(runner.Event{Kind: runner.PolicyChanged, Turn: t.input.Turn, Policy: &runner.Effective{
			Asked: asked, Effective: runner.Policy{Mode: policy.ApprovalRequired.AtMost(asked.Mode), Interaction: asked.Interaction},
			Why: "The project's protected files have changed while work goes on in the background; until that ends, every change is asked.",
		}})
	}
	s.mu.Lock()
	thread, model, now, echoed := s.thread, cmp.Or(t.input.Model, s.model), s.echo, s.echoed
	t.leaves = !t.held.plan && (planned || now.mode == "plan")
	s.mu.Unlock()
	if t.held.compare(now, s.options.Folder) != same {
		if err := srv.call(ctx, "thread/settings/update", settingsParams{thread, t.held.params(model, s.effort(t))}, nil); err != nil {
			return err
		}
		// An echo comes only when something changes.
		limit := time.NewTimer(s.runtime.config.Pace.Echo)
		defer limit.Stop()
		select {
		case <-echoed:
		case <-limit.C:
			return errNoEcho
		case <-srv.over:
			return explained(srv.cause)
		case <-ctx.Done():
			return ctx.Err()
		}
		s.mu.Lock()
		now = s.echo
		s.mu.Unlock()
	}
	s.mu.Lock()
	s.denies = s.denies || t.held.profile == profilePlan
	s.mu.Unlock()
	switch t.held.compare(now, s.options.Folder) {
	case same:
		return nil
	case stricter:
		if t.held.reviewer != now.reviewer {
			s.unreview(t, asked, "Codex does not take it")
			s.mu.Lock()
			t.held.reviewer = reviewerUser
			s.mu.Unlock()
			if t.held.compare(now, s.options.Folder) == same {
				return nil
			}
		}
		s.queue.emit(runner.Event{Kind: runner.PolicyChanged, Turn: t.input.Turn, Policy: &runner.Effective{
			Asked: asked, Effective: now.effective(asked), Why: "Codex holds this session to something stricter: " + now.describe() + ".",
		}})
		return nil
	case looser:
	}
	return fmt.Errorf("%w: it says %s", errLooser, now.describe())
}

// effort is the turn's, or the configured one; empty for the model's own.
func (s *session) effort(t *turn) string { return cmp.Or(t.input.Effort, s.runtime.config.Effort) }

// send starts the turn. It is not given up on when ctx ends: a turn that codex has may then be interrupted.
func (s *session) send(ctx context.Context, srv *server, t *turn) error {
	given, err := s.inputs(t.input)
	if err != nil {
		return err
	}
	s.mu.Lock()
	if t.held.compare(s.echo, s.options.Folder) == looser { // it has changed meanwhile
		defer s.mu.Unlock()
		return fmt.Errorf("%w: it says %s", errLooser, s.echo.describe())
	}
	t.sent = true
	p := turnParams{
		ThreadID: s.thread, policyParams: t.held.params(cmp.Or(t.input.Model, s.model), s.effort(t)), Input: given, ClientMessageID: t.input.Turn,
		Model: t.input.Model, Effort: s.effort(t),
	}
	if t.leaves && fast(s.tier) {
		p.Tier = tierStandard
		s.tellFastIsOff(t)
	}
	s.mu.Unlock()
	var got turnFrame
	err = srv.call(context.WithoutCancel(ctx), "turn/start", p, &got)
	if errors.Is(err, jsonl.ErrNoAnswer) {
		// It may run all the same, and nothing else is sure to end it.
		srv.stop()
	}
	if err != nil {
		return err
	}
	s.mu.Lock()
	thread, stray := s.thread, s.strays[got.Turn.ID]
	if !stray {
		s.started(t, got.Turn.ID)
	}
	s.mu.Unlock()
	if stray { // the prompt went into it
		s.cut(srv, threadTurn{thread, got.Turn.ID})
		return errStray
	}
	return nil
}

// cut ends a turn that nobody waits for, and the commands that it leaves behind.
func (s *session) cut(srv *server, t threadTurn) {
	if !srv.alive() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.context), s.runtime.config.Pace.Stop)
	defer cancel()
	s.expect(srv, srv.call(ctx, "turn/interrupt", t, nil), "turn/interrupt")
	s.quiet(ctx, srv)
	s.expect(srv, srv.call(ctx, "thread/backgroundTerminals/clean", threadOnly{t.ThreadID}, nil), "thread/backgroundTerminals/clean")
}

// started notes codex's id of a turn, from whichever frame tells it first. The lock is held.
func (s *session) started(t *turn, id string) {
	if t.id != "" || id == "" {
		return
	}
	t.id = id
	s.turns[id] = t.input.Turn
	if !s.persisted {
		s.persisted = true
		s.queue.emit(runner.Event{Kind: runner.SessionStarted, Text: s.thread})
	}
}

// interrupt ends a turn. Codex's own interrupt leaves commands and sub-agents running and items open.
func (s *session) interrupt(srv *server, t *turn) (runner.Result, error) {
	ctx, cancel := context.WithTimeout(context.Background(), s.runtime.config.Pace.Stop)
	defer cancel()
	s.mu.Lock()
	thread := s.thread
	s.stopped[t.id] = true
	s.mu.Unlock()
	// First the turn, then its questions: a refusal before that would let the agent go on.
	s.expect(srv, srv.call(ctx, "turn/interrupt", threadTurn{thread, t.id}, nil), "turn/interrupt")
	t.cancel()
	t.withdraw()
	s.quiet(ctx, srv)
	select {
	case f := <-t.ended:
		// What was begun between the interrupt and its effect.
		s.quiet(ctx, srv)
		r := s.result(t, f)
		if r.Outcome != runner.Interrupted || t.loose == "" {
			r.Outcome, r.Reason = runner.Interrupted, ""
		}
		return r, nil
	case <-srv.over:
		return runner.Result{Outcome: runner.Interrupted}, nil
	case <-ctx.Done():
	}
	s.runtime.config.Logger.Warn("codex did not stop a turn and was ended", "thread", thread)
	srv.stop()
	return runner.Result{Outcome: runner.Interrupted, Reason: "Codex did not stop and was ended."}, nil
}

// crashed is the end of a turn whose codex ended.
func (s *session) crashed(srv *server, t *turn) (runner.Result, error) {
	select {
	case f := <-t.ended: // the turn was over before
		return s.result(t, f), nil
	default:
	}
	words := "without a word"
	if e, ok := errors.AsType[*jsonl.ClosedError](srv.cause); ok && e.Stderr != "" {
		words = "its last words: " + lastLine(e.Stderr)
	}
	return runner.Result{}, fmt.Errorf("codex: it ended in the middle of the turn, %s; the session can go on with the next prompt", words)
}

func (s *session) result(t *turn, f turnFrame) runner.Result {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := runner.Result{Outcome: runner.Completed, Usage: t.usage}
	switch {
	case t.loose != "":
		r.Outcome, r.Reason = runner.Interrupted, "Codex loosened what it is held to ("+t.loose+"), so the turn was stopped."
	case f.Turn.Status == "completed":
		r.Plan = t.plan
	case f.Turn.Status == "interrupted":
		r.Outcome, r.Reason = runner.Interrupted, "Codex ended the turn."
	default:
		r.Outcome = runner.Broken
		e := f.Turn.Error
		if e == nil {
			e = t.last
		}
		r.Reason = "Codex failed without saying why."
		if e != nil {
			r.Reason = e.words()
		}
	}
	return r
}

// hopeless reports whether trying again does not help: the model's server answers, and refuses the login, the account or the
// model.
func (e *turnError) hopeless() bool {
	_, status := e.kind()
	return status == 401 || status == 402 || status == 403 || status == 404
}

// message is what codex says of an error. Addresses are left out, as they may hold a key.
func (e *turnError) message() string {
	return strings.TrimSpace(addresses.ReplaceAllString(e.Message, "the model's address"))
}

var addresses = regexp.MustCompile(`\b[a-z]+://[^\s"'<>)]+`)

// words are an error for a person: which one it is, and what to do about it.
func (e *turnError) words() string {
	message := e.message()
	kind, status := e.kind()
	switch {
	case kind == "unauthorized" || status == 401:
		return "The model refused the login. Run `codex login` on the host, or check the key. (" + message + ")"
	case status == 403:
		return "The model refused access for this account. (" + message + ")"
	case kind == "usageLimitExceeded":
		return "The account's usage limit is reached. (" + message + ")"
	case status == 429:
		return "The model's limit on requests is reached; try again later. (" + message + ")"
	case kind == "contextWindowExceeded":
		return "The conversation is too long for the model; begin a new session. (" + message + ")"
	case kind == "internalServerError" || kind == "serverOverloaded" || status >= 500:
		return "The model's server failed; try again later. (" + message + ")"
	case strings.HasPrefix(kind, "http"), strings.HasPrefix(kind, "responseStream"):
		return "The model can't be reached. (" + message + ")"
	case status == 404 || message == "Not Found":
		return "The model is not known where it was looked for. Check its name and the provider's address. (" + message + ")"
	case message == "":
		return "Codex failed without saying why."
	}
	return "Codex failed: " + message
}

// kind is a word, or the one key of an object that may hold an HTTP status.
func (e *turnError) kind() (kind string, status int) {
	if json.Unmarshal(e.CodexErrorInfo, &kind) == nil {
		return kind, 0
	}
	var object map[string]struct {
		Status int `json:"httpStatusCode"`
	}
	if json.Unmarshal(e.CodexErrorInfo, &object) != nil {
		return "", 0
	}
	for k, v := range object {
		kind, status = k, v.Status
	}
	return kind, status
}

func lastLine(s string) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}
