//go:build runtimes

package codex_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"drawbridge/internal/modeltest"
	"drawbridge/runner"
	"drawbridge/runner/codex"
)

// desk is a user's own codex: everything is allowed in it.
type desk struct {
	home, folder, provider string
	srv                    *modeltest.Server
}

func (d desk) command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), realProgram(t), append(args,
		"-c", "model="+`"`+realModel+`"`, "-c", `approval_policy="never"`, "-c", `sandbox_mode="danger-full-access"`,
		"-c", "model_providers."+d.provider+`={name="desk",base_url="`+d.srv.URL()+`",wire_api="responses",env_key="K",supports_websockets=false}`,
		"-c", `model_provider="`+d.provider+`"`)...)
	cmd.Dir, cmd.Env = d.folder, append(os.Environ(), "CODEX_HOME="+d.home, "K=sk-invented")
	return cmd
}

// runtime is ours, with the desk's login.
func (d desk) runtime(t *testing.T) *codex.Runtime {
	t.Helper()
	put(t, d.home, map[string]string{"auth.json": "{}"})
	c := realConfig(t, data(t), d.srv)
	c.Login = filepath.Join(d.home, "auth.json")
	return installed(t, c)
}

// begin runs a prompt and returns the session as it is listed.
func (d desk) begin(t *testing.T, r *codex.Runtime, prompt string) runner.SessionInfo {
	t.Helper()
	if out, err := d.command(t, "exec", "--skip-git-repo-check", prompt).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	list, err := r.Sessions(t.Context(), d.folder, 10)
	if err != nil || len(list) != 1 || list[0].Title != prompt || list[0].Busy {
		t.Fatalf("it is listed as %+v, %v", list, err)
	}
	return list[0]
}

// TestRealDeskSessionGoesOn: what was begun at a desk where everything is allowed goes on under the chat's mode, on an
// app-server that runs already, and the desk's files stay as they are.
func TestRealDeskSessionGoesOn(t *testing.T) {
	t.Parallel()
	d := desk{data(t), data(t), "drawbridge", scripted(t)}
	r := d.runtime(t)
	open(t, r, opening{folder: data(t)}).turn("say something else")
	info := d.begin(t, r, "say begun at the desk")
	before := content(t, filepath.Join(d.home, "sessions"))
	c := open(t, r, opening{folder: d.folder, resume: info.Token})
	c.turn("turns")
	c.turn("run touch made")
	if _, asked := c.seen(); !strings.Contains(c.said(), "turn 2") || len(asked) != 1 || exists(filepath.Join(d.folder, "made")) {
		t.Errorf("it said %q and asked %+v", c.said(), asked)
	}
	after := content(t, filepath.Join(d.home, "sessions"))
	for file, text := range after {
		if before[file] != text || len(before) != len(after) {
			t.Errorf("%s was changed", file)
		}
	}
}

// TestRealSessionOfAnotherProvider: codex would go on with the provider that a session was begun with, so it does not go
// on: not the desk's, and not one that was begun here before the provider was changed.
func TestRealSessionOfAnotherProvider(t *testing.T) {
	t.Parallel()
	d := desk{data(t), data(t), "desk", scripted(t)}
	r := d.runtime(t)
	info := d.begin(t, r, "say begun at the desk")
	refused := func(what string) {
		t.Helper()
		s, err := r.Open(t.Context(), runner.Options{
			Folder: d.folder, Resume: info.Token, Gate: runner.GateFunc(no), Sink: func(runner.Event) {}, Policy: approvalRequired,
		})
		if err == nil {
			_ = s.Close()
		}
		if !errors.Is(err, runner.ErrNoSession) {
			t.Errorf("%s: error %v, want ErrNoSession", what, err)
		}
	}
	refused("the desk's")
	ours := filepath.Join(r.Data(), "codex")
	if exists(filepath.Join(ours, "sessions")) {
		t.Error("it was copied")
	}
	for file, text := range content(t, filepath.Join(d.home, "sessions")) {
		path, err := filepath.Rel(d.home, file)
		if err != nil {
			t.Fatal(err)
		}
		for _, member := range []string{"model_provider", "model_provider_id"} {
			text = strings.ReplaceAll(text, `"`+member+`":"desk"`, `"`+member+`":"openai"`)
		}
		put(t, ours, map[string]string{path: text})
	}
	refused("ours")
}

// TestRealForkGoesOn: codex keeps of a fork only what was said after it.
func TestRealForkGoesOn(t *testing.T) {
	t.Parallel()
	d := desk{data(t), data(t), "drawbridge", scripted(t)}
	r := d.runtime(t)
	info := d.begin(t, r, "say one")
	token := d.fork(t, info.Token, "say two")
	list, err := r.Sessions(t.Context(), d.folder, 10)
	if err != nil || len(list) != 2 || list[0].Token != token || list[0].Title != "say two" {
		t.Fatalf("they are listed as %+v, %v", list, err)
	}
	c := open(t, r, opening{folder: d.folder, resume: token})
	if res := c.turn("turns"); res.Outcome != runner.Completed || !strings.Contains(c.said(), "turn 3") {
		t.Errorf("it ended as %+v and said %q", res, c.said())
	}
}

// fork goes on with a fork of a session, and returns the fork's.
func (d desk) fork(t *testing.T, token, prompt string) string {
	t.Helper()
	cmd := d.command(t, "app-server")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	until := func(is func(frame) bool) frame {
		for {
			line, err := lines.ReadBytes('\n')
			if err != nil {
				t.Fatal(err)
			}
			f := frame{}
			if json.Unmarshal(line, &f) == nil && is(f) {
				return f
			}
		}
	}
	call := func(id int, method string, params frame) frame {
		b, err := json.Marshal(frame{"id": id, "method": method, "params": params})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := in.Write(append(b, '\n')); err != nil {
			t.Fatal(err)
		}
		return until(func(f frame) bool { return f["id"] == float64(id) })
	}
	call(1, "initialize", frame{"clientInfo": frame{"name": "desk", "version": "1"}})
	fork := call(2, "thread/fork", frame{"threadId": token, "excludeTurns": true}).text("result", "thread", "id")
	call(3, "turn/start", frame{"threadId": fork, "input": []any{frame{"type": "text", "text": prompt}}})
	until(func(f frame) bool { return f["method"] == "turn/completed" })
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, lines); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // how it ends is its own matter
	return fork
}
