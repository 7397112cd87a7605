package desk

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"drawbridge/approvals"
	"drawbridge/policy"
	"drawbridge/runner"
)

const session = "68c01727-aaf3-4bdf-bc84-1de2593fc1c8"

// patience is how long anything may take before a test gives up.
const patience = 30 * time.Second

// asked is a question that reached a person.
type asked struct {
	run    approvals.Run
	q      runner.Question
	answer chan runner.Answer
	gone   <-chan struct{}
	cause  func() error
}

// people are an Asker that lets the test answer.
type people chan asked

func (p people) Ask(ctx context.Context, run approvals.Run, q runner.Question) (runner.Answer, error) {
	a := asked{run: run, q: q, answer: make(chan runner.Answer, 1), gone: ctx.Done(), cause: func() error { return context.Cause(ctx) }}
	select {
	case p <- a:
	case <-ctx.Done():
		return runner.Answer{Decision: runner.Withdrawn}, nil
	}
	select {
	case answer := <-a.answer:
		return answer, nil
	case <-ctx.Done():
		return runner.Answer{Decision: runner.Withdrawn}, nil
	}
}

// house is a host with a desk.
type house struct {
	t      *testing.T
	people people
	socket string
	chat   string
	stop   context.CancelFunc // of the host's life
	server *httptest.Server
}

func newHouse(t *testing.T) *house {
	t.Helper()
	dir, err := os.MkdirTemp("", "desk") //nolint:usetesting // its path has to be short: it holds a socket
	if err != nil {
		t.Fatal(err)
	}
	h := &house{t: t, people: make(people), socket: filepath.Join(dir, "control.sock"), chat: "1001"}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	h.serve()
	return h
}

// serve starts the host, or starts it again.
func (h *house) serve() {
	h.t.Helper()
	_ = os.Remove(h.socket) // there may be none
	var lc net.ListenConfig
	l, err := lc.Listen(h.t.Context(), "unix", h.socket)
	if err != nil {
		h.t.Fatal(err)
	}
	life, stop := context.WithCancel(context.WithoutCancel(h.t.Context()))
	h.stop = stop
	h.server = httptest.NewUnstartedServer(NewServer(life, ServerConfig{
		Asker: h.people, Home: "/home/ada", Within: time.Minute, Logger: quiet(h.t),
		Chat: func(context.Context) (string, error) { return h.chat, nil },
	}))
	_ = h.server.Listener.Close()
	h.server.Listener = l
	h.server.Start()
	server := h.server
	h.t.Cleanup(func() { stop(); server.CloseClientConnections(); server.Close() })
}

// hooked is a hook that runs.
type hooked struct {
	out  bytes.Buffer
	err  error
	done chan struct{}
	end  context.CancelFunc
}

func (h *house) hook(a Agent, raw string, env map[string]string, within time.Duration) *hooked {
	h.t.Helper()
	ctx, end := context.WithCancel(context.WithoutCancel(h.t.Context()))
	c := NewClient(ClientConfig{Agent: a, Sockets: []string{h.socket + ".none", h.socket}, Within: within, Getenv: func(k string) string { return env[k] }})
	c.look = 5 * time.Millisecond
	x := &hooked{done: make(chan struct{}), end: end}
	go func() {
		defer close(x.done)
		x.err = c.Run(ctx, strings.NewReader(raw), &x.out)
	}()
	h.t.Cleanup(func() { end(); <-x.done })
	return x
}

// prints waits until the hook has ended and returns what it wrote.
func (h *house) prints(x *hooked) string {
	h.t.Helper()
	select {
	case <-x.done:
	case <-time.After(patience):
		h.t.Fatal("the hook does not end")
	}
	return x.out.String()
}

// person waits for a question.
func (h *house) person() asked {
	h.t.Helper()
	select {
	case a := <-h.people:
		return a
	case <-time.After(patience):
		h.t.Fatal("nobody was asked")
	}
	return asked{}
}

// withdrawn waits until a question was taken back, and says why.
func (h *house) withdrawn(a asked) error {
	h.t.Helper()
	select {
	case <-a.gone:
	case <-time.After(patience):
		h.t.Fatal("the question stays open")
	}
	return a.cause()
}

func bash(command string) string {
	b, err := json.Marshal(map[string]any{
		"hook_event_name": "PermissionRequest", "session_id": session, "cwd": "/home/ada/shop", "transcript_path": "", "tool_name": "Bash",
		"tool_input": map[string]string{"command": command},
	})
	if err != nil {
		panic(err)
	}
	return string(b)
}

var (
	yes = runner.Answer{Decision: runner.Allowed, Source: runner.SourceUser}
	no  = runner.Answer{Decision: runner.Denied, Source: runner.SourceUser}
)

func TestATerminalsQuestionIsAskedInTheChat(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	x := h.hook(Claude, bash("make all"), nil, 0)
	a := h.person()
	q, run := a.q, a.run
	if q.Kind != runner.KindCommand || q.Command != "make all" || q.Folder != "/home/ada/shop" || q.Terminal != "claude · shop" {
		t.Errorf("the question is %+v", q)
	}
	if run.Chat != "1001" || run.ID != "desk:"+session || run.Within != time.Minute || run.Workspace.Root != "/home/ada/shop" || run.Turn != "" {
		t.Errorf("the run is %+v", run)
	}
	if p, err := run.Policy(t.Context()); err != nil || p != (runner.Policy{Mode: policy.ApprovalRequired, Interaction: policy.Default}) {
		t.Errorf("its policy is %+v (%v)", p, err)
	}
	a.answer <- yes
	if got := h.prints(x); !strings.Contains(got, `"behavior":"allow"`) || x.err != nil {
		t.Errorf("the hook prints %q (%v)", got, x.err)
	}
	x = h.hook(Codex, strings.Replace(bash("make all"), session, "01a231b7-494b-77b0-b538-810c97779960", 1), nil, 20*time.Second)
	if a = h.person(); a.run.Within != 20*time.Second {
		t.Errorf("a terminal that waits has %s", a.run.Within)
	}
	a.answer <- no
	if got := h.prints(x); !strings.Contains(got, `"behavior":"deny"`) {
		t.Errorf("the hook prints %q", got)
	}
}

// TestWhateverFailsIsSilence: then the terminal asks as always.
func TestWhateverFailsIsSilence(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	for name, raw := range map[string]string{
		"nothing":   "",
		"no JSON":   `{"hook_event_name":"PermissionRequest"`,
		"a list":    `[1]`,
		"too large": bash(strings.Repeat("x", maxRequest)),
		"no plan":   strings.Replace(bash("x"), `"Bash"`, `"ExitPlanMode"`, 1),
		"no agent":  bash("x"),
	} {
		agent := Claude
		if name == "no agent" {
			agent = "vi"
		}
		x := h.hook(agent, raw, nil, 0)
		if got := h.prints(x); got != "" || x.err == nil {
			t.Errorf("%s: the hook prints %q (%v)", name, got, x.err)
		}
	}
	for name, answer := range map[string]runner.Answer{
		"nobody in time": {Decision: runner.Denied, Source: runner.SourceTimeout},
		"a store away":   {Decision: runner.Denied, Source: runner.SourceShutdown},
		"a rule":         {Decision: runner.Allowed, Source: runner.SourceRule},
	} {
		x := h.hook(Claude, bash("make"), nil, 0)
		a := h.person()
		a.answer <- answer
		if got := h.prints(x); got != "" {
			t.Errorf("%s: the hook prints %q", name, got)
		}
	}
	h.chat = ""
	if got := h.prints(h.hook(Claude, bash("make"), nil, 0)); got != "" {
		t.Errorf("without a chat the hook prints %q", got)
	}
	h.stop()
	h.server.Close()
	if x := h.hook(Claude, bash("make"), nil, 0); h.prints(x) != "" || !errors.Is(x.err, errNobody) {
		t.Errorf("without a host the hook prints %q (%v)", x.out.String(), x.err)
	}
}

// TestAHostThatIsStoppedHasNotAnswered: its card says so, and the next host is asked again.
func TestAHostThatIsStoppedHasNotAnswered(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	x := h.hook(Claude, bash("make"), nil, 0)
	a := h.person()
	h.stop()
	if err := h.withdrawn(a); !errors.Is(err, approvals.ErrGone) {
		t.Errorf("it was withdrawn because of %v", err)
	}
	if got := h.prints(x); got != "" {
		t.Errorf("the hook prints %q", got)
	}
	h.server.Close()
	h.serve()
	x = h.hook(Claude, bash("make"), nil, 0)
	a = h.person()
	a.answer <- yes
	if got := h.prints(x); got == "" {
		t.Error("the host that was started again is not asked")
	}
	// One that is killed in the middle of a question says nothing at all.
	x = h.hook(Claude, bash("make"), nil, 0)
	h.person()
	h.server.CloseClientConnections()
	if got := h.prints(x); got != "" {
		t.Errorf("the hook prints %q", got)
	}
}

// TestAFrozenHostHoldsUpATerminalForItsTimeOnly: where the terminal asks only when its hook has ended.
func TestAFrozenHostHoldsUpATerminalForItsTimeOnly(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "desk") //nolint:usetesting // its path has to be short: it holds a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	h := &house{t: t, socket: filepath.Join(dir, "control.sock")}
	var lc net.ListenConfig
	l, err := lc.Listen(t.Context(), "unix", h.socket) // takes connections and never answers
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	x := h.hook(Codex, bash("make"), nil, time.Millisecond)
	if got := h.prints(x); got != "" || !errors.Is(x.err, errNobody) {
		t.Errorf("the hook prints %q (%v)", got, x.err)
	}
}

// TestAHookThatEndsTakesItsQuestionBack: the agent ended it, or has died itself.
func TestAHookThatEndsTakesItsQuestionBack(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	x := h.hook(Codex, strings.Replace(bash("make"), session, "01a231b7-494b-77b0-b538-810c97779960", 1), nil, time.Minute)
	a := h.person()
	x.end()
	if err := h.withdrawn(a); errors.Is(err, approvals.ErrGone) {
		t.Errorf("it was withdrawn because of %v", err)
	}
}

// claudes is what Claude Code writes about itself, as it was seen.
type claudes struct {
	t          *testing.T
	home       string
	transcript string
}

func newClaude(t *testing.T) claudes {
	t.Helper()
	c := claudes{t: t, home: t.TempDir()}
	c.transcript = filepath.Join(c.home, "t.jsonl")
	c.says(`{"type":"user","message":{"role":"user","content":"hello"}}`)
	return c
}

func (c claudes) says(line string) {
	c.t.Helper()
	f, err := os.OpenFile(c.transcript, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		c.t.Fatal(err)
	}
	if _, err := f.WriteString(line + "\n"); err != nil {
		c.t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		c.t.Fatal(err)
	}
}

func (c claudes) calls(id, command string) {
	c.t.Helper()
	c.says(`{"type":"assistant","message":{"content":[{"id":"` + id + `","input":{"command":` + strconv.Quote(command) + `},"name":"Bash","type":"tool_use"}]}}`)
}

func (c claudes) ends(id string) {
	c.t.Helper()
	c.says(`{"type":"user","message":{"role":"user","content":[{"type":"tool_result","content":"no","is_error":true,"tool_use_id":"` + id + `"}]}}`)
}

func (c claudes) status(word string) {
	c.t.Helper()
	text := `{"pid":77,"sessionId":"` + session + `","cwd":"/home/ada/shop","name":"shop-57","status":"` + word + `"}`
	if err := replaceIn(filepath.Join(c.home, ".claude", "sessions", "77.json"), text); err != nil {
		c.t.Fatal(err)
	}
}

func replaceIn(path, text string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return replace(path, []byte(text), 0o600)
}

func (c claudes) asks(command string) string {
	return strings.Replace(bash(command), `"transcript_path":""`, `"transcript_path":`+strconv.Quote(c.transcript), 1)
}

func (c claudes) env() map[string]string {
	return map[string]string{"HOME": c.home, "CLAUDE_PID": "77"}
}

// TestAnAnswerInTheTerminalTakesTheQuestionBack, though the agent lets its hook run on: seen by what it waits for, or by
// the result of the call.
func TestAnAnswerInTheTerminalTakesTheQuestionBack(t *testing.T) {
	t.Parallel()
	for name, do := range map[string]func(c claudes){
		"it works again":          func(c claudes) { c.status("busy") },
		"it is done":              func(c claudes) { c.status("idle") },
		"the call has its result": func(c claudes) { c.ends("toolu_2") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, c := newHouse(t), newClaude(t)
			c.calls("toolu_1", "make") // the same call as before, and another one
			c.ends("toolu_1")
			c.calls("toolu_2", "make")
			c.status("waiting")
			x := h.hook(Claude, c.asks("make"), c.env(), 0)
			a := h.person()
			if a.q.Terminal != "claude · shop-57" {
				t.Errorf("the terminal is called %q", a.q.Terminal)
			}
			do(c)
			if err := h.withdrawn(a); errors.Is(err, approvals.ErrGone) {
				t.Errorf("it was withdrawn because of %v", err)
			}
			if got := h.prints(x); got != "" || !errors.Is(x.err, errThere) {
				t.Errorf("the hook prints %q (%v)", got, x.err)
			}
		})
	}
}

// TestWhatIsNoAnswerInTheTerminal: the agent's own pauses, other calls, the same call before, another session.
func TestWhatIsNoAnswerInTheTerminal(t *testing.T) {
	t.Parallel()
	c := newClaude(t)
	c.calls("toolu_1", "make")
	c.ends("toolu_1")
	c.calls("toolu_2", "make")
	c.status("busy") // it does not ask yet
	env := c.env()
	look := NewClient(ClientConfig{Agent: Claude, Getenv: func(k string) string { return env[k] }}).terminal([]byte(c.asks("make")))
	still := func(what string) {
		t.Helper()
		if look.moved() || look.concluded() {
			t.Errorf("%s counts as an answer", what)
		}
	}
	still("that it does not ask yet")
	still("that it does not ask yet, seen twice")
	c.status("waiting")
	still("that it waits")
	c.status("busy")
	still("a moment between two questions")
	c.status("waiting")
	c.calls("toolu_3", "ls")
	c.ends("toolu_3")
	still("another call's result")
	c.says(`{"type":"user","message":{`)
	still("a line that is not whole")
	if err := replaceIn(filepath.Join(c.home, ".claude", "sessions", "77.json"), `{"sessionId":"another","status":"busy"}`); err != nil {
		t.Fatal(err)
	}
	still("another session")
	still("another session, seen twice")
	c.ends("toolu_2")
	if !look.concluded() {
		t.Error("the call's own result is not seen")
	}
}

// TestTheFirstAnswerWins: the hook prints an answer or nothing, whichever side is first.
func TestTheFirstAnswerWins(t *testing.T) {
	t.Parallel()
	h, c := newHouse(t), newClaude(t)
	for range 20 {
		c.status("waiting")
		x := h.hook(Claude, c.asks("make"), c.env(), 0)
		a := h.person()
		moving := make(chan struct{})
		go func() { defer close(moving); a.answer <- yes }()
		c.status("busy")
		<-moving
		got := h.prints(x)
		if answered := strings.Contains(got, `"behavior":"allow"`) && x.err == nil; !answered && (got != "" || !errors.Is(x.err, errThere)) {
			t.Errorf("the hook prints %q (%v)", got, x.err)
		}
	}
}

func TestTheDeskSaysHowItStands(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	if s, alive := Stand(t.Context(), []string{h.socket + ".none", h.socket}); !alive || !s.Chat {
		t.Errorf("it stands as %+v, %t", s, alive)
	}
	h.chat = ""
	if s, alive := Stand(t.Context(), []string{h.socket}); !alive || s.Chat {
		t.Errorf("without a chat it stands as %+v, %t", s, alive)
	}
	if _, alive := Stand(t.Context(), []string{h.socket + ".none"}); alive {
		t.Error("nobody listens there")
	}
}

// TestNothingOfTheEnvironmentIsSent: what reaches the host is the agent's own request and the session's name.
func TestNothingOfTheEnvironmentIsSent(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.server.Close()
	_ = os.Remove(h.socket) // closing removes it as well
	var lc net.ListenConfig
	l, err := lc.Listen(t.Context(), "unix", h.socket)
	if err != nil {
		t.Fatal(err)
	}
	sent := make(chan string, 1)
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		sent <- string(b)
		w.WriteHeader(http.StatusNoContent)
	}))
	_ = srv.Listener.Close()
	srv.Listener = l
	srv.Start()
	t.Cleanup(srv.Close)
	x := h.hook(Claude, bash("make"), map[string]string{"ANTHROPIC_API_KEY": "sk-secret", "HOME": t.TempDir(), "CLAUDE_PID": "77"}, 0)
	h.prints(x)
	if got, want := <-sent, `{"v":1,"agent":"claude","request":`+bash("make")+`}`; got != want {
		t.Errorf("sent was\n%s\nwant\n%s", got, want)
	}
}
