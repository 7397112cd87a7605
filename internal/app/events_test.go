package app

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"drawbridge/bridge/task"
	"drawbridge/internal/config"
	"drawbridge/internal/store/storetest"
)

// loaded is the configuration of a file, for a gateway and host in one.
func loaded(t *testing.T, text string) config.Config {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "drawbridge.toml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := config.Load([]string{"HOME=" + dir, "DRAWBRIDGE_TOKEN=1:a", "DRAWBRIDGE_DATA_DIR=" + filepath.Join(dir, "data")}, file)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestWhatTheConfigurationAllowsCanBeAHook: its bounds are those of the hooks and of tasks, its words those of tasks and chats.
func TestWhatTheConfigurationAllowsCanBeAHook(t *testing.T) {
	t.Parallel()
	steps := "steps = [\"" + strings.Repeat("x", 1536) + "\"" + strings.Repeat(", \""+strings.Repeat("y", task.MaxText)+"\"", task.MaxSteps-1) + "]\n"
	text := ""
	for i, chat := range []string{"1001", "-100123", "-100123/5"} {
		n := string(rune('a' + i))
		text += "[[hook]]\nname = \"" + n + "\"\nsecret = \"0123456789abcdef" + n + "\"\nchat = \"" + chat + "\"\nby = 1\n" + steps
	}
	o := Options{Config: loaded(t, text), Logger: slog.New(slog.DiscardHandler)}
	db := storetest.NewMemory(nil)
	defer db.Close() //nolint:errcheck // in memory
	g, err := newGateway(o, db)
	if err != nil || g.hooks == nil {
		t.Fatalf("a gateway with hooks: %v, %v", g, err)
	}
	o.Config.Hooks = nil
	if g, err = newGateway(o, db); err != nil || g.hooks != nil {
		t.Errorf("a gateway without hooks: %v, %v", g.hooks, err)
	}
	var events []string
	for _, e := range task.HookEvents() {
		events = append(events, string(e))
	}
	known := config.TaskEvents()
	slices.Sort(events)
	slices.Sort(known)
	if !slices.Equal(events, known) {
		t.Errorf("the configuration knows %q, tasks have %q", known, events)
	}
}

func TestTaskHooks(t *testing.T) {
	t.Parallel()
	c := loaded(t, `
[[on]]
event = "task_auto_approved"
command = ["/opt/tell", "a b"]
folder = "/srv"
env = { KEY = "value" }
limit = "2s"
project = "shop"

[[on]]
event = "pipeline_completed"
message = "{title} is {state}"
`)
	want := []task.Hook{
		{Event: task.AutoApproved, Command: []string{"/opt/tell", "a b"}, Folder: "/srv", Env: map[string]string{"KEY": "value"}, Limit: 2 * time.Second, Project: "shop"},
		{Event: task.PipelineCompleted, Message: "{title} is {state}", Env: map[string]string{}, Limit: 30 * time.Second},
	}
	if got := taskHooks(c); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// TestDoctorSaysWhoReachesTheHooks, and which commands on tasks are not there.
func TestDoctorSaysWhoReachesTheHooks(t *testing.T) {
	t.Parallel()
	const hook = "[[hook]]\nname = \"build\"\nsecret = \"0123456789abcdef\"\nchat = \"1001\"\nby = 1\nsteps = [\"x\"]\n"
	for name, tt := range map[string]struct {
		file   string
		unwell bool
		want   string
	}{
		"nothing":  {file: ""},
		"loopback": {file: hook, want: "hooks: deliveries are taken at 127.0.0.1:8765, only from this machine\n  /hooks/build starts a task in chat 1001\n"},
		"open": {
			file: "[hooks]\nlisten = \":8765\"\n" + hook,
			want: "hooks: deliveries are taken at :8765, open to the network, unencrypted: put something before it that ends TLS\n  /hooks/build starts a task in chat 1001\n",
		},
		"a message": {file: "[[on]]\nevent = \"pipeline_completed\"\nmessage = \"x\"\n"},
		"commands": {
			file:   "[[on]]\nevent = \"pipeline_completed\"\ncommand = [\"sh\", \"-c\", \"true\"]\n[[on]]\nevent = \"task_auto_approved\"\ncommand = [\"/nowhere/tell\"]\n",
			unwell: true,
			want: "on 1: pipeline_completed runs sh -c true, where the gateway is\non 2: task_auto_approved runs /nowhere/tell, where the gateway is\n" +
				"  used: no: /nowhere/tell is no program that is found here. Install it, or write its absolute path as the first of command\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var said strings.Builder
			unwell := sayEvents(func(format string, args ...any) { fmt.Fprintf(&said, format, args...) }, loaded(t, tt.file))
			if unwell != tt.unwell || said.String() != tt.want {
				t.Errorf("it says, unwell %v,\n%s\nwant\n%s", unwell, said.String(), tt.want)
			}
		})
	}
}
