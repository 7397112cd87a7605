package runnertest

import (
	"context"
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"drawbridge/policy"
	"drawbridge/runner"
)

// TB is what a behaviour needs of a test.
type TB interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	TempDir() string
	Context() context.Context
	Cleanup(f func())
	Setenv(key, value string)
}

// T is a test that has tests in it; *testing.T is one.
type T[Self any] interface {
	TB
	Run(name string, f func(Self)) bool
	Parallel()
}

// Harness says how a runtime is tried. The agent behind it follows its prompt line by line, in the words of Follow: say,
// long, run, write, read, turns; together, nonsense and ask where it can. A refused action is said, with the reason, and
// the agent goes on. modeltest.Follow does that for runtimes with a model.
type Harness[S T[S]] struct {
	// New makes the runtime. Made a second time on the same data folder, it is the runtime after a restart of the process.
	New func(t S, data string) runner.Runtime
	// Parallel says that "together" has its questions open at the same time.
	Parallel bool
	// Nonsense says that "nonsense" makes the model answer nonsense until the runtime gives up.
	Nonsense bool
}

// leak stands in our environment for what no agent may see.
const leak = "never-to-be-seen-by-an-agent"

// patience is how long anything may take; it is far more than anything takes.
const patience = 60 * time.Second

// Exercise tries a runtime on the contract of package runner. It sets environment variables, so the test that calls it
// is not parallel itself.
func Exercise[S T[S]](t S, h Harness[S]) {
	t.Helper()
	for _, name := range []string{
		"TELEGRAM_TOKEN", "TELEGRAM_BOT_TOKEN", "DRAWBRIDGE_TELEGRAM_TOKEN", "DRAWBRIDGE_REDIS_URL", "REDIS_URL",
		"OPENAI_API_KEY", "ANTHROPIC_API_KEY", "SSH_AUTH_SOCK", "GITHUB_TOKEN", "AWS_SECRET_ACCESS_KEY", "BASH_ENV", "ENV",
	} {
		t.Setenv(name, leak)
	}
	list := behaviours()
	if h.Parallel {
		list["several questions are open at the same time"] = (*exam).parallel
	}
	if h.Nonsense {
		list["nonsense of the model ends the turn and not the session"] = (*exam).nonsense
	}
	for _, name := range slices.Sorted(maps.Keys(list)) {
		t.Run(name, func(t S) {
			t.Parallel()
			data := t.TempDir()
			list[name](&exam{
				TB: t, data: data, folder: folder(t),
				restart: func() runner.Runtime { return h.New(t, data) },
			})
		})
	}
}

// folder is a workspace. Its path has no symbolic link in it, so that it is what a command's pwd says.
func folder(t TB) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatalf("%v", err)
	}
	return dir
}

// behaviours are what every runtime is tried on, by what they say of it.
func behaviours() map[string]func(*exam) {
	return map[string]func(*exam){
		"probe tells the truth":                             (*exam).probe,
		"a text is streamed and completed":                  (*exam).text,
		"a long text arrives whole":                         (*exam).long,
		"items come in order and belong to the turn":        (*exam).order,
		"an allowed command is run in the folder":           (*exam).commandAllowed,
		"a refused command is not run and the turn goes on": (*exam).commandRefused,
		"a gate that fails means no":                        (*exam).gateFails,
		"a file change is shown whole":                      (*exam).fileChange,
		"a refused file change changes nothing":             (*exam).fileChangeRefused,
		"a question is withdrawn with its turn":             (*exam).withdrawn,
		"stopping ends a running command":                   (*exam).stopsCommand,
		"a command sees nothing of our environment":         (*exam).environment,
		"huge output is bounded":                            (*exam).hugeOutput,
		"a slow sink loses nothing":                         (*exam).slowSink,
		"a session resumes after a restart":                 (*exam).resumes,
		"an unknown token is no session":                    (*exam).unknownToken,
		"closing ends all of it":                            (*exam).closes,
		"one turn at a time":                                (*exam).oneTurn,
		"each mode and interaction is kept":                 (*exam).table,
		"questions reach a person":                          (*exam).asks,
	}
}

// exam is one behaviour being tried.
type exam struct {
	TB
	data    string
	folder  string
	restart func() runner.Runtime
}

// log is an open session, with all that it told and asked.
type log struct {
	runner.Session
	exam   *exam
	answer func(ctx context.Context, q runner.Question) (runner.Answer, error)
	slow   time.Duration

	mu        sync.Mutex
	events    []runner.Event
	questions []runner.Question
	closed    bool
	policy    runner.Policy
	turns     map[string]bool // the ids of those that were begun
}

func allow(context.Context, runner.Question) (runner.Answer, error) {
	return runner.Answer{Decision: runner.Allowed, Action: runner.ActionAllow, Source: runner.SourceUser, By: "Ada"}, nil
}

const refusal = "Ada would rather not"

func refuse(context.Context, runner.Question) (runner.Answer, error) {
	return runner.Answer{Decision: runner.Denied, Action: runner.ActionDeny, Source: runner.SourceUser, By: "Ada", Reason: refusal}, nil
}

// open begins a session on a fresh runtime; answer is asked for whatever is not just read in the workspace.
func (e *exam) open(answer func(context.Context, runner.Question) (runner.Answer, error)) *log {
	e.Helper()
	return e.resume(e.restart(), "", answer)
}

func (e *exam) resume(r runner.Runtime, token string, answer func(context.Context, runner.Question) (runner.Answer, error)) *log {
	e.Helper()
	l := &log{exam: e, answer: answer, turns: map[string]bool{}, policy: runner.Policy{Mode: policy.ApprovalRequired, Interaction: policy.Default}}
	s, err := r.Open(e.Context(), runner.Options{
		Folder: e.folder, Resume: token, Gate: runner.GateFunc(l.ask), Sink: l.sink,
		Policy: func() runner.Policy {
			l.mu.Lock()
			defer l.mu.Unlock()
			return l.policy
		},
	})
	if err != nil {
		e.Fatalf("open: %v", err)
	}
	l.Session = s
	e.Cleanup(func() { l.close() })
	return l
}

func (l *log) close() {
	l.exam.Helper()
	if err := l.Close(); err != nil {
		l.exam.Errorf("close: %v", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
}

// ask is the session's gate: the table, and behind it the person.
func (l *log) ask(ctx context.Context, q runner.Question) (runner.Answer, error) {
	l.mu.Lock()
	verdict := policy.Decide(l.policy.Mode, l.policy.Interaction, q.Categories...)
	if verdict == policy.Ask || verdict == policy.Review {
		l.questions = append(l.questions, q)
	}
	l.mu.Unlock()
	switch verdict {
	case policy.Allow:
		return runner.Answer{Decision: runner.Allowed, Source: runner.SourceRule}, nil
	case policy.Ask, policy.Review:
		return l.answer(ctx, q)
	case policy.Deny:
	}
	return runner.Answer{Decision: runner.Denied, Source: runner.SourceRule}, nil
}

// set changes what the chat allows, and forgets what was told and asked so far.
func (l *log) set(p runner.Policy) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.policy, l.events, l.questions = p, nil, nil
}

func (l *log) sink(e runner.Event) {
	if l.slow > 0 {
		time.Sleep(l.slow)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		l.exam.Errorf("an event after Close: %s", e.Kind)
	}
	l.events = append(l.events, e)
}

// begin starts a turn and returns its end.
func (l *log) begin(ctx context.Context, lines ...string) <-chan ended {
	l.mu.Lock()
	id := "turn" + strconv.Itoa(len(l.turns)+1)
	l.turns[id] = true
	l.mu.Unlock()
	done := make(chan ended, 1)
	go func() {
		res, err := l.Turn(ctx, runner.Input{Turn: id, Text: strings.Join(lines, "\n")})
		done <- ended{res, err}
	}()
	return done
}

type ended struct {
	runner.Result
	err error
}

// turn runs a turn that has to be completed.
func (l *log) turn(lines ...string) {
	l.exam.Helper()
	l.ends(l.begin(l.exam.Context(), lines...), runner.Completed)
}

// ends waits for a turn that has to end so.
func (l *log) ends(done <-chan ended, want runner.Outcome) ended {
	l.exam.Helper()
	end := await(l.exam, done, "the end of the turn")
	if end.err != nil || end.Outcome != want {
		l.exam.Fatalf("the turn ended as %q (%s), error %v; want %q", end.Outcome, end.Reason, end.err, want)
	}
	return end
}

func await[V any](e *exam, c <-chan V, what string) V {
	e.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(patience):
		e.Fatalf("%s did not come within %s", what, patience)
		panic("Fatalf returned")
	}
}

// seen are the events so far, and the questions that were for a person.
func (l *log) seen() ([]runner.Event, []runner.Question) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.events), slices.Clone(l.questions)
}

// completed are the completed items of a kind.
func (l *log) completed(kind runner.ItemKind) []runner.Item {
	events, _ := l.seen()
	var list []runner.Item
	for _, e := range events {
		if e.Kind == runner.ItemCompleted && e.Item != nil && e.Item.Kind == kind {
			list = append(list, *e.Item)
		}
	}
	return list
}

// said is all that the completed messages say.
func (l *log) said() string {
	var parts []string
	for _, i := range l.completed(runner.ItemMessage) {
		parts = append(parts, i.Text)
	}
	return strings.Join(parts, "\n")
}

// ordered checks the life of every item: begun once, then deltas, then completed once with the text of its deltas.
func (l *log) ordered() {
	l.exam.Helper()
	events, _ := l.seen()
	open, ended := map[string]string{}, map[string]bool{}
	for n, e := range events {
		switch e.Kind {
		case runner.ItemStarted, runner.ContentDelta, runner.ItemCompleted:
			if e.Item == nil || e.Item.ID == "" || !l.turns[e.Turn] {
				l.exam.Fatalf("event %d has no item, or belongs to no turn: %+v", n, e)
			}
		case runner.RequestOpened, runner.RequestResolved, runner.TurnStarted, runner.TurnEnded:
			l.exam.Errorf("event %d is %s, which is not a runtime's to tell", n, e.Kind)
			continue
		default:
			continue
		}
		id := e.Item.ID
		text, begun := open[id]
		if begun == (e.Kind == runner.ItemStarted) || ended[id] {
			l.exam.Errorf("event %d, %s of %s: out of order", n, e.Kind, id)
		}
		switch e.Kind {
		case runner.ContentDelta:
			open[id] = text + e.Item.Text
		case runner.ItemCompleted:
			if ended[id] = true; text != "" && e.Item.Text != text {
				l.exam.Errorf("item %s was completed as %.200q, but its deltas say %.200q", id, e.Item.Text, text)
			}
			if e.Item.Status != runner.ItemDone && e.Item.Status != runner.ItemFailed && e.Item.Status != runner.ItemRefused {
				l.exam.Errorf("item %s was completed in state %q", id, e.Item.Status)
			}
		default:
			open[id] = ""
		}
	}
	for id := range open {
		if !ended[id] {
			l.exam.Errorf("item %s was never completed", id)
		}
	}
}

// errNoGate is a gate's failure.
var errNoGate = errors.New("the gate is out of order")
