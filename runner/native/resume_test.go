package native_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"drawbridge/internal/modeltest"
	"drawbridge/internal/process"
	"drawbridge/runner"
	"drawbridge/runner/native"
)

// childEnv makes the test binary a host that runs one turn and never ends it.
const childEnv = "NATIVE_TEST_CHILD"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == process.SuperviseCommand {
		syscall.Exit(process.Supervise(os.Args[2:])) // os.Exit waits for a second under the race detector
	}
	if job := os.Getenv(childEnv); job != "" {
		child(strings.Split(job, "|"))
		return
	}
	goleak.VerifyTestMain(m)
}

// child runs a turn whose command writes a line and then waits. It tells its token and when the gate is asked.
func child(job []string) {
	base, data, folder, wait := job[0], job[1], job[2], job[3]
	r, err := native.New(native.Config{Name: "native", BaseURL: base, Model: "m", Data: data, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		panic(err)
	}
	ask := func(context.Context, runner.Question) (runner.Answer, error) {
		fmt.Println("asked")
		if wait == "gate" {
			select {}
		}
		return runner.Answer{Decision: runner.Allowed}, nil
	}
	s, err := r.Open(context.Background(), runner.Options{Folder: folder, Gate: runner.GateFunc(ask), Sink: func(e runner.Event) {
		if e.Kind == runner.SessionStarted {
			fmt.Println(e.Text)
		}
	}})
	if err != nil {
		panic(err)
	}
	_, _ = s.Turn(context.Background(), runner.Input{Turn: "t", Text: "run echo once >> ran; " +
		"(setsid sh -c 'trap \"\" TERM HUP; while :; do date +%N > beat; sleep 0.02; done' >/dev/null 2>&1 &); " +
		"while ! test -s beat; do sleep 0.01; done; echo ready > ready; sleep 600"})
}

func TestSessionSurvivesKill9AndRepeatsNothing(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"gate", "command"} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			srv := serve(t, modeltest.Config{Script: modeltest.Follow(hands())})
			data, dir := t.TempDir(), t.TempDir()
			cmd := exec.CommandContext(t.Context(), os.Args[0])
			cmd.Env = append(os.Environ(), childEnv+"="+strings.Join([]string{srv.URL(), data, dir, at}, "|"))
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			lines := bufio.NewScanner(out)
			lines.Scan()
			token := lines.Text()
			lines.Scan()
			if lines.Text() != "asked" {
				t.Fatalf("the host said %q, %q", token, lines.Text())
			}
			if at == "command" {
				for !exists(filepath.Join(dir, "ready")) && t.Context().Err() == nil {
					time.Sleep(2 * time.Millisecond) //nolint:forbidigo // another process; nothing tells
				}
			}
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait() // it was killed
			awaitStill(t, filepath.Join(dir, "beat"))

			s := open(t, runtime(t, native.Config{BaseURL: srv.URL(), Data: data}), runner.Options{Folder: dir, Resume: token}, nil)
			if s.ResumeToken() != token {
				t.Errorf("the token is %q, was %q", s.ResumeToken(), token)
			}
			s.turn(t, "turns", runner.Completed)
			if said := s.said(t); said != "This is turn 2." {
				t.Errorf("said %q", said)
			}
			r := srv.Requests()
			m := r[len(r)-1].Messages
			if len(m) != 6 || m[3].Role != "tool" || !strings.Contains(m[3].Content, "not run again") || m[4].Role != "assistant" {
				t.Errorf("the model is sent %+v", m)
			}
			ran, _ := os.ReadFile(filepath.Join(dir, "ran"))
			if want := map[string]string{"gate": "", "command": "once\n"}[at]; string(ran) != want {
				t.Errorf("ran holds %q, want %q", ran, want)
			}
		})
	}
}

// awaitStill waits until a daemon that writes the file every 20 ms is gone: until the file stays as it is for half a second.
func awaitStill(t *testing.T, file string) {
	t.Helper()
	last, since := "", time.Now()
	for deadline := time.Now().Add(10 * time.Second); time.Since(since) < 500*time.Millisecond; {
		b, _ := os.ReadFile(file)
		if now := string(b); now != last {
			last, since = now, time.Now()
		}
		if time.Now().After(deadline) {
			t.Fatal("what the command started still runs")
		}
		time.Sleep(5 * time.Millisecond) //nolint:forbidigo // another process; nothing tells
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// TestResumeFromEveryPrefix cuts a conversation's file at every byte: each prefix is what a kill may leave.
func TestResumeFromEveryPrefix(t *testing.T) {
	t.Parallel()
	srv := serve(t, modeltest.Config{Script: modeltest.Follow(hands())})
	data, dir := t.TempDir(), t.TempDir()
	r := runtime(t, native.Config{BaseURL: srv.URL(), Data: data})
	s := open(t, r, runner.Options{Folder: dir}, nil)
	s.turn(t, "together true || true\nsay ü", runner.Completed)
	token := s.ResumeToken()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(data, "sessions", token+".jsonl")
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("the file: %v, %v", info, err)
	}
	whole := read(t, filepath.Dir(file), filepath.Base(file))
	header := strings.IndexByte(whole, '\n') + 1
	for n := 0; n <= len(whole); n++ {
		if err := os.WriteFile(file, []byte(whole[:n]), 0o600); err != nil {
			t.Fatal(err)
		}
		again, err := r.Open(t.Context(), runner.Options{Folder: dir, Resume: token, Gate: runner.GateFunc(nil), Sink: func(runner.Event) {}})
		if n < header {
			if !errors.Is(err, runner.ErrNoSession) {
				t.Fatalf("%d bytes of the header: %v", n, err)
			}
			continue
		}
		if err != nil {
			t.Fatalf("%d bytes: %v", n, err)
		}
		if n%37 == 0 || n == len(whole) {
			if res, err := again.Turn(t.Context(), runner.Input{Turn: "t", Text: "say on"}); err != nil || res.Outcome != runner.Completed {
				t.Fatalf("%d bytes: %+v, %v", n, res, err)
			}
		}
		if err := again.Close(); err != nil {
			t.Fatal(err)
		}
		if left := read(t, filepath.Dir(file), filepath.Base(file)); !strings.HasSuffix(left, "\n") {
			t.Fatalf("%d bytes: the file ends in the middle of a line", n)
		}
	}
}

func TestResumeRefusesWhatItCannotRead(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	r := runtime(t, native.Config{BaseURL: "http://127.0.0.1:1", Data: data})
	token := strings.Repeat("A", 26)
	for name, text := range map[string]string{
		"another version": `{"v":2}` + "\n",
		"no JSON":         "hello\n",
		"a broken line":   `{"v":1}` + "\n{\n" + `{"message":{"role":"user","content":"x"}}` + "\n",
		"a wrong index":   `{"v":1}` + "\n" + `{"drop":7}` + "\n",
	} {
		write(t, data, "sessions/"+token+".jsonl", text)
		if _, err := r.Open(t.Context(), runner.Options{Folder: data, Resume: token}); !errors.Is(err, runner.ErrNoSession) {
			t.Errorf("%s: %v, want ErrNoSession", name, err)
		}
	}
	write(t, data, "sessions/"+token+".jsonl", `{"v":1}`+"\n")
	s, err := r.Open(t.Context(), runner.Options{Folder: data, Resume: token})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Open(t.Context(), runner.Options{Folder: data, Resume: token}); err == nil || errors.Is(err, runner.ErrNoSession) {
		t.Errorf("a session that is open elsewhere was opened: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func TestCompactionKeepsWithinTheWindow(t *testing.T) {
	t.Parallel()
	const window = 4000
	srv := serve(t, modeltest.Config{Script: modeltest.Follow(hands()), Window: window})
	data, dir := t.TempDir(), t.TempDir()
	write(t, dir, "big.txt", strings.Repeat("0123456789 0123456789 0123456789\n", 100))
	r := runtime(t, native.Config{BaseURL: srv.URL(), Data: data, Window: window})
	s := open(t, r, runner.Options{Folder: dir}, nil)
	for range 12 {
		s.turn(t, "run cat big.txt\nrun cat big.txt\nrun echo $(( 1 + 1 ))", runner.Completed)
	}
	requests := srv.Requests()
	last := requests[len(requests)-1].Messages
	if len(requests) != 12*4 {
		t.Errorf("%d requests of 48: the endpoint was asked for too much", len(requests))
	}
	if !strings.HasPrefix(last[1].Content, "[Earlier turns") || last[1].Role != "user" {
		t.Errorf("the conversation begins with %+v", last[1])
	}
	if got := last[len(last)-1]; got.Content != "2\n[Exit status 0.]" {
		t.Errorf("the last result is %+v", got)
	}
	if !strings.Contains(s.notices(), "older parts of it are left out") {
		t.Errorf("notices %q", s.notices())
	}
	token := s.ResumeToken()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, r, runner.Options{Folder: dir, Resume: token}, nil)
	s.turn(t, "say on", runner.Completed)
	requests = srv.Requests()
	if again := requests[len(requests)-1].Messages; again[1].Content != last[1].Content {
		t.Errorf("after a restart the conversation begins with %+v", again[1])
	}

	// One turn alone fills the window several times.
	s.turn(t, strings.Repeat("run cat big.txt big.txt\n", 12)+"say on", runner.Completed)

	// The endpoint's window is smaller than the runtime was told.
	wrong := runtime(t, native.Config{BaseURL: srv.URL(), Data: t.TempDir(), Window: 1_000_000})
	s = open(t, wrong, runner.Options{Folder: dir}, nil)
	for range 6 {
		s.turn(t, "run cat big.txt\nrun cat big.txt\nsay on", runner.Completed)
	}
	if !strings.Contains(s.notices(), "too long for the model") {
		t.Errorf("notices %q", s.notices())
	}
	if res := s.turn(t, strings.Repeat("much to say ", 5000), runner.Broken); !strings.Contains(res.Reason, "too long for the model") {
		t.Errorf("reason %q", res.Reason)
	}
}
