package runnertest

import (
	"cmp"
	"context"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

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
// long, run, write, read, turns; together, nonsense, ask, questions, plan, background, sandboxed, agent and tool where it
// can. A refused action is
// said, with the reason, and the agent goes on. modeltest.Follow does that for runtimes with a model.
//
// What is left out, the runtime has to say that it cannot: for each field that names a reason, Probe gives one under that
// name, or the row fails. It fails as well where Probe gives a reason for what is tried.
type Harness[S T[S]] struct {
	// New makes the runtime. Made a second time on the same data folder, it is the runtime after a restart of the process.
	New func(t S, data string) runner.Runtime
	// Parallel says that "together" has its questions open at the same time (runner.WhyParallel).
	Parallel bool
	// Nonsense says that "nonsense" makes the model answer nonsense until the runtime gives up.
	Nonsense bool
	// MCP says that the runtime has the MCP server ServeTools under the name ToolServer, and ToolCategories for its tools,
	// so that "tool NAME PATH" calls one (runner.WhyMCP).
	MCP bool
	// Background says that "background COMMAND" starts a command that outlives its turn (runner.WhyBackground).
	Background bool
	// Daemons says that what a command detached from its group and session ends with the session (runner.WhyDaemons).
	Daemons bool
	// Sandboxed says that "sandboxed COMMAND" runs it in the runtime's own sandbox, and that this works here
	// (runner.WhySandbox).
	Sandboxed bool
	// Agents says that "agent LINE" gives the line to a sub-agent (runner.WhyAgents).
	Agents bool
	// Multiple and Secrets say that "questions" can ask for several options of one question (runner.WhyMultiple), and for a
	// secret (runner.WhySecrets).
	Multiple, Secrets bool
	// Books are what the runtime itself writes in its data folder while the chat plans, as path.Match takes them: its own
	// bookkeeping.
	Books []string
	// Crash kills the agent's program, and only that, as kill -9 does. It is called while a turn runs (runner.WhyCrash).
	// KillPrograms does it for most.
	Crash func(t S, data string)
	// Noisy makes the runtime with a program that says what it should not before it says what it should. Wrap puts the
	// noise around a program: it returns the path of a script that runs it, noisily if one of its arguments is argument
	// (runner.WhyFrames).
	Noisy func(t S, data string, wrap func(program, argument string) string) runner.Runtime
	// Reviews holds each state of the runtime's own reviewer; empty if it has none (runner.WhyReview).
	Reviews []Review[S]
	// Deeds are tried for the table beside those of the suite, such as a fetch.
	Deeds []Deed
	// Table is the path of the file that keeps what was seen in each cell of the table; what is seen has to be equal to it.
	// Empty keeps nothing.
	Table string
	// Record rewrites Table.
	Record bool
	// Patience is how long anything may take; three minutes, which is far more than anything takes, when 0.
	Patience time.Duration
}

// Review is a state of a runtime's own reviewer.
type Review[S T[S]] struct {
	State string // runner.ReviewRequested and so on
	// Frame is what the runtime is told it by, for the report.
	Frame string
	// Impossible says why this state is never told; New is not used then.
	Impossible string
	// New makes a runtime whose reviewer comes to this state when the agent does Line under auto.
	New  func(t S, data string) runner.Runtime
	Line string // "run touch reviewed" when empty
}

// leak stands in our environment for what no agent may see.
const leak = "never-to-be-seen-by-an-agent"

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
	if h.Nonsense {
		list["nonsense of the model ends the turn and not the session"] = (*exam).nonsense
	}
	said := &probed{}
	for _, name := range slices.Sorted(maps.Keys(list)) {
		t.Run(name, func(t S) {
			t.Parallel()
			data := t.TempDir()
			list[name](examine(t, h, data, said))
		})
	}
}

// examine is the exam of a runtime whose data is in a folder.
func examine[S T[S]](t S, h Harness[S], data string, said *probed) *exam {
	e := &exam{
		TB: t, data: data, folder: folder(t), patience: cmp.Or(h.Patience, 3*time.Minute), probed: said,
		restart: func() runner.Runtime { return h.New(t, data) },
		split: func(parts int, do func(n int, part *exam)) {
			t.Helper()
			// The group ends when all of its parts have.
			t.Run("parts", func(t S) {
				for n := range parts {
					t.Run(strconv.Itoa(n+1), func(t S) {
						t.Parallel()
						do(n, examine(t, h, t.TempDir(), said))
					})
				}
			})
		},
		parallel: h.Parallel, mcp: h.MCP, background: h.Background, daemons: h.Daemons, sandboxed: h.Sandboxed,
		agents: h.Agents, multiple: h.Multiple, secrets: h.Secrets, books: h.Books,
		deeds: h.Deeds, file: h.Table, record: h.Record,
	}
	if h.Crash != nil {
		e.crash = func() { h.Crash(t, data) }
	}
	if h.Noisy != nil {
		e.noisy = func(wrap func(program, argument string) string) runner.Runtime { return h.Noisy(t, data, wrap) }
	}
	for _, r := range h.Reviews {
		one := review{state: r.State, frame: r.Frame, impossible: r.Impossible, line: cmp.Or(r.Line, "run touch reviewed")}
		if r.New != nil {
			one.restart = func() runner.Runtime { return r.New(t, t.TempDir()) }
		}
		e.reviews = append(e.reviews, one)
	}
	return e
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

		"planning changes nothing":                          (*exam).planChangesNothing,
		"a plan ends its turn and is handed over once":      (*exam).plans,
		"a plan is rejected, revised and implemented":       (*exam).decided,
		"a plan of a stopped turn is none":                  (*exam).planStopped,
		"a person answers as the question allows":           (*exam).answers,
		"a question that nobody answers does not hold up":   (*exam).unanswered,
		"an open question is withdrawn with its turn":       (*exam).questionWithdrawn,
		"a secret answer reaches the agent and nobody else": (*exam).secretAnswer,

		"several questions are open at the same time":           (*exam).several,
		"interrupting withdraws every open question":            (*exam).withdrawsAll,
		"nothing is remembered of an answer":                    (*exam).remembersNothing,
		"an answer that nobody gave in time is told":            (*exam).overdue,
		"turns follow one another":                              (*exam).queue,
		"a steered turn takes the input":                        (*exam).steers,
		"lowering takes effect at the next question":            (*exam).lowered,
		"nothing is told after Close":                           (*exam).silent,
		"a tool of an MCP server is asked":                      (*exam).tool,
		"a proposed task is a card first":                       (*exam).proposes,
		"background work outlives its turn and ends with Close": (*exam).worksOn,
		"closing ends what a command detached":                  (*exam).daemon,
		"a crash of the agent is told and the session resumes":  (*exam).crashes,
		"noise of the program is skipped":                       (*exam).noise,
		"the runtime's own reviewer is told of":                 (*exam).reviewed,
	}
}

// exam is one behaviour being tried.
type exam struct {
	TB
	data     string
	folder   string
	patience time.Duration
	probed   *probed
	restart  func() runner.Runtime
	// split does a behaviour in parts, each with folders of its own, at the same time, and returns when all of them are done.
	split func(parts int, do func(n int, part *exam))

	parallel, mcp, background, daemons, sandboxed bool
	agents, multiple, secrets                     bool

	books []string

	crash   func()
	noisy   func(wrap func(program, argument string) string) runner.Runtime
	reviews []review
	deeds   []Deed
	file    string
	record  bool
}

// probed is what the runtime said of itself, once for all behaviours: a probe starts real programs.
type probed struct {
	mu   sync.Mutex
	said runner.Capability
}

// capability is what the runtime says of itself.
func (e *exam) capability() runner.Capability {
	e.Helper()
	e.probed.mu.Lock()
	defer e.probed.mu.Unlock()
	if e.probed.said.State == "" {
		r := e.restart()
		c, err := r.Probe(e.Context())
		// On a machine that is busy the look may take longer than people wait for it.
		for end := time.Now().Add(e.patience); err == nil && c.State == runner.Failed && c.Cause == runner.CauseProbe && time.Now().Before(end); {
			c, err = r.Probe(e.Context())
		}
		if err != nil || c.State != runner.Ready {
			e.Fatalf("probe: %+v, %v", c, err)
		}
		e.probed.said = c
	}
	return e.probed.said
}

// can reports whether the harness tries something. If it does not, the runtime has to say why it cannot; if it does, it
// must not say so.
func (e *exam) can(tried bool, why string) bool {
	e.Helper()
	switch reason := e.capability().Why[why]; {
	case tried && reason != "":
		e.Errorf("Probe says under %q that it cannot (%s), and yet it is tried", why, reason)
	case !tried && reason == "":
		e.Errorf("the harness does not try it, and Probe gives no reason under %q", why)
	}
	return tried
}
