package e2e_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"drawbridge/internal/modeltest"
	"drawbridge/internal/store/storetest"
	"drawbridge/internal/telegramtest"
)

// fast is how many times faster than in real life the durations of most tests pass.
const fast = "5"

// apart is the pace of tests with several processes.
const apart = "3"

// world is what one test runs in: a Telegram, a model, a project, and perhaps a Redis. Everything of it ends with the test.
type world struct {
	sim
	telegram *telegramtest.Server
	model    *modeltest.Server
	redis    *storetest.RedisServer // nil on bbolt
	dir      string                 // of everything that is written
	project  string                 // the folder of the project shop, in which chats begin
	web      string                 // that of the project web
	env      map[string]string      // of each process
}

// on chooses what a world is made of. The zero value is bbolt at a fast pace, with an agent that follows its prompt.
type on struct {
	redis bool
	real  bool             // durations and Telegram's rates as in real life
	model modeltest.Script // hands() and Follow if nil
	env   map[string]string
}

// modelKey is the key that the model wants. No agent's process may see it.
const modelKey = "key-of-the-model-7f3a"

func newWorld(t *testing.T, o on) *world {
	t.Helper()
	w := &world{sim: sim{t: t}}
	w.dir = folder(t)
	w.project, w.web = filepath.Join(w.dir, "shop"), filepath.Join(w.dir, "web")
	for _, folder := range []string{w.project, w.web} {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			t.Fatal(err)
		}
	}

	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var servers sync.WaitGroup
	t.Cleanup(func() { cancel(); servers.Wait() })
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w.url = "http://" + l.Addr().String()
	w.telegram = telegramtest.New(telegramtest.Config{Rates: telegramtest.Rates{Off: !o.real}})
	servers.Go(func() {
		if err := w.telegram.Serve(ctx, l); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(w.chats)
	t.Cleanup(w.telegramIsContent)
	script := o.model
	if script == nil {
		script = modeltest.Follow(hands())
	}
	if w.model, err = modeltest.New(modeltest.Config{Script: script, Piece: 200, Key: modelKey}); err != nil {
		t.Fatal(err)
	}
	servers.Go(func() {
		if err := w.model.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	w.env = map[string]string{
		"PATH": os.Getenv("PATH"), "HOME": filepath.Join(w.dir, "home"),
		"DRAWBRIDGE_TOKEN": w.telegram.Token(), "DRAWBRIDGE_BOT_API_URL": w.url,
		"DRAWBRIDGE_OWNERS": fmt.Sprint(ada), "DRAWBRIDGE_OPERATORS": fmt.Sprint(grace), "DRAWBRIDGE_VIEWERS": fmt.Sprint(linus),
		"DRAWBRIDGE_HOST_NAME": "bench", "DRAWBRIDGE_PROJECTS": "shop=" + w.project + ",web=" + w.web,
		"DRAWBRIDGE_MODEL_URL": w.model.URL(), "DRAWBRIDGE_MODEL": "scripted", "DRAWBRIDGE_MODEL_KEY": modelKey,
		"DRAWBRIDGE_PACE": fast,
		// The pace would shorten these too: tests that do not try them keep about their real lengths.
		"DRAWBRIDGE_APPROVAL_DEADLINE": "50m", "DRAWBRIDGE_SESSION_IDLE": "75m",
	}
	if o.real {
		w.env["DRAWBRIDGE_PACE"] = "1"
	}
	if o.redis {
		w.redis = storetest.StartRedis(t, storetest.RedisOptions{SyncAlways: true})
		w.env["REDIS_URL"] = w.redis.URL()
		if !o.real { // a busy machine must not make a host look dead to a gateway of another process
			w.env["DRAWBRIDGE_PACE"] = apart
		}
	}
	maps.Copy(w.env, o.env)
	return w
}

// chats prints what was said, if the test failed.
func (w *world) chats() {
	if !w.t.Failed() {
		return
	}
	for _, chat := range []int64{ada, grace, linus, mallory, group, forum} {
		var all []message
		w.late(fmt.Sprintf("/sim/chats/%d/messages", chat), &all)
		if len(all) > 0 {
			w.t.Logf("chat %d:\n%s", chat, transcript(all))
		}
	}
}

// late reads from /sim when the test is over and its requests are cancelled.
func (w *world) late(path string, v any) {
	w.t.Helper()
	req := httptest.NewRequest(http.MethodGet, "http://127.0.0.1"+path, nil)
	req.RemoteAddr = "127.0.0.1:1"
	rec := httptest.NewRecorder()
	w.telegram.ServeHTTP(rec, req)
	if err := json.Unmarshal(rec.Body.Bytes(), v); err != nil {
		w.t.Errorf("%s: %v", path, err)
	}
}

// folder is a folder for one test. It is gone with it, and no process may be left in it. Its path is short: the control
// socket is in there, and kernels allow about a hundred bytes, of which the test's name would take many.
func folder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "e2e") //nolint:usetesting // see above
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if left := under(dir); len(left) > 0 {
			t.Errorf("processes are left: %q", left)
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// telegramIsContent demands that the bot did nothing that Telegram refuses, apart from what cannot be known before, and
// that no message of it opens a link by itself.
func (w *world) telegramIsContent() {
	w.t.Helper()
	var calls []call
	w.late("/sim/calls", &calls)
	for _, c := range calls {
		if c.ErrorCode == http.StatusBadRequest && !strings.Contains(c.Description, "not modified") && !strings.Contains(c.Description, "query is too old") {
			w.t.Errorf("Telegram refused %s %v: %s", c.Method, c.Parameters, c.Description)
		}
		if c.Method != "sendMessage" && c.Method != "editMessageText" {
			continue
		}
		if options, _ := c.Parameters["link_preview_options"].(map[string]any); options["is_disabled"] != true {
			w.t.Errorf("%s without is_disabled in link_preview_options: %v", c.Method, c.Parameters)
		}
	}
}

// hands are the tool calls of the native runtime.
func hands() modeltest.Hands {
	return modeltest.Hands{
		Run: func(command string) modeltest.Call {
			return modeltest.CallOf("shell", map[string]any{"command": command})
		},
		Write: func(path, text string) modeltest.Call {
			return modeltest.CallOf("write_file", map[string]any{"path": path, "content": text})
		},
		Read: func(path string) modeltest.Call { return modeltest.CallOf("read_file", map[string]any{"path": path}) },
		Propose: func(arguments string) modeltest.Call {
			return modeltest.Call{Name: "propose_task", Arguments: arguments}
		},
		Refused: "Not done.",
	}
}

// start starts a process of the program in this world: serve, gateway or host. Each name has a data folder of its own,
// so that one that is started again finds its own.
func (w *world) start(role string, name ...string) *program {
	w.t.Helper()
	full := strings.Join(append([]string{role}, name...), "-")
	p := start(w.t, full, w.environ(full), role)
	if role == "host" { // a gateway that knows of no host tells people so
		p.logs("host is ready")
	}
	return p
}

// audit is what `drawbridge audit` prints beside a running process.
func (w *world) audit(name string) string {
	w.t.Helper()
	cmd := exec.CommandContext(w.t.Context(), binary, "audit")
	cmd.Env = w.environ(name)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		w.t.Fatalf("drawbridge audit: %v\n%s", err, stderr.String())
	}
	return string(out)
}

// environ is the environment of a process, made from nothing.
func (w *world) environ(name string) []string {
	env := []string{"DRAWBRIDGE_DATA_DIR=" + filepath.Join(w.dir, name)}
	for k, v := range w.env {
		env = append(env, k+"="+v)
	}
	return env
}

// path is a file of the project.
func (w *world) path(name string) string { return filepath.Join(w.project, name) }

// holds demands that a file of the project holds a text and nothing else. An empty text also means that there is no file.
func (w *world) holds(name, text string) {
	w.t.Helper()
	b, err := os.ReadFile(w.path(name))
	if err != nil && !errors.Is(err, fs.ErrNotExist) || string(b) != text {
		w.t.Errorf("%s holds %q (%v), want %q", name, b, err, text)
	}
}

// comes waits until a file of the project holds a text.
func (w *world) comes(name, text string) {
	w.t.Helper()
	w.eventually(fmt.Sprintf("%s holds %q", name, text), func() bool {
		b, err := os.ReadFile(w.path(name))
		return err == nil && string(b) == text
	})
}

// soon waits for something that shows nowhere in the simulated Telegram.
func soon(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(patience); !ok(); <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("did not come to pass: %s", what)
		}
	}
}
