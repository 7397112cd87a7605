package config

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"drawbridge/policy"
)

// base is the environment of a user who has set nothing.
var base = []string{"HOME=/home/ada", "DRAWBRIDGE_HOST_NAME=box"}

// load runs Load on a file with that body in a folder of its own.
func load(t *testing.T, body string, env ...string) (c Config, file string, err error) {
	t.Helper()
	file = filepath.Join(t.TempDir(), FileName)
	if err := os.WriteFile(file, []byte(body), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err = Load(append(append([]string{}, base...), env...), file)
	return c, file, err
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	c, _, err := load(t, "")
	if err != nil {
		t.Fatal(err)
	}
	c.values = nil
	want := Config{
		HostName:    "box",
		Namespace:   "drawbridge",
		DataDir:     "/home/ada/.local/state/drawbridge",
		Telegram:    Telegram{APIURL: "https://api.telegram.org"},
		DefaultMode: policy.ApprovalRequired,
		Timing: Timing{
			Pace: 1, ApprovalDeadline: 10 * time.Minute, SessionIdle: 15 * time.Minute, Beat: 2 * time.Second,
			DeadAfter: 6 * time.Second, Sweep: 2 * time.Second, Lease: 4 * time.Second, Renew: time.Second, Reread: 2 * time.Second,
		},
		Log: Log{Format: "text"},
	}
	if !reflect.DeepEqual(c, want) {
		t.Errorf("Load of nothing:\n got %#v\nwant %#v", c, want)
	}
}

const wholeFile = `
host_name = "workshop"
data_dir = "~/drawbridge"
redis_url = "redis://bot:hunter2pass@127.0.0.1:6379/3?max_retries=2"
token = "123:file-token_A"
bot_api_url = "http://127.0.0.1:8081/"
webhook_url = "https://bot.example.org/hook"
webhook_listen = "127.0.0.1:8443"
webhook_secret = "hook-secret_1"
owners = [11, 12]
operators = [13]
viewers = []
default_mode = "auto-accept-edits"
default_runtime = "native:local"
approval_deadline = "5m"
pace = 2.5
log_level = "warn"
log_format = "json"

[[project]]
name = "api"
path = "/srv/api/"
runtime = "native:glm"
publish_is_ordinary = true

[[project]]
name = "Web.2"
path = "~/web"

[[runtime]]
name = "native:glm"
kind = "native"
base_url = "https://models.example.org/v4/"
model = "glm-5"
key_env = "GLM_KEY"
context_window = 200000

[[runtime]]
name = "native:local"
base_url = "http://127.0.0.1:11434/v1"
model = "qwen3:32b"
key = "local-key-of-file"
`

func TestWholeFile(t *testing.T) {
	t.Parallel()
	c, _, err := load(t, wholeFile, "GLM_KEY=glm-key-of-env", "DRAWBRIDGE_HOST_NAME=")
	if err != nil {
		t.Fatal(err)
	}
	c.values = nil
	want := Config{
		HostName: "workshop", Namespace: "drawbridge", DataDir: "/home/ada/drawbridge",
		RedisURL: NewSecret("redis://bot:hunter2pass@127.0.0.1:6379/3?max_retries=2"),
		Telegram: Telegram{
			Token: NewSecret("123:file-token_A"), APIURL: "http://127.0.0.1:8081",
			Webhook: &Webhook{URL: "https://bot.example.org/hook", Listen: "127.0.0.1:8443", Secret: NewSecret("hook-secret_1")},
		},
		People:      People{Owners: []int64{11, 12}, Operators: []int64{13}},
		DefaultMode: policy.AutoAcceptEdits,
		Projects: []Project{
			{Name: "api", Path: "/srv/api", Runtime: "native:glm", PublishIsOrdinary: true},
			{Name: "Web.2", Path: "/home/ada/web"},
		},
		Runtimes: []Runtime{
			{Name: "native:glm", Kind: "native", BaseURL: "https://models.example.org/v4", Model: "glm-5", Key: NewSecret("glm-key-of-env"), ContextWindow: 200_000},
			{Name: "native:local", Kind: "native", BaseURL: "http://127.0.0.1:11434/v1", Model: "qwen3:32b", Key: NewSecret("local-key-of-file"), ContextWindow: 128_000},
		},
		DefaultRuntime: "native:local",
		Timing: Timing{
			Pace: 2.5, ApprovalDeadline: 2 * time.Minute, SessionIdle: 6 * time.Minute, Beat: 800 * time.Millisecond, DeadAfter: 2400 * time.Millisecond,
			Sweep: 800 * time.Millisecond, Lease: 1600 * time.Millisecond, Renew: 400 * time.Millisecond, Reread: 800 * time.Millisecond,
		},
		Log: Log{Level: 4, Format: "json"},
	}
	if !reflect.DeepEqual(c, want) {
		t.Errorf("Load of everything:\n got %#v\nwant %#v", c, want)
	}
}

// Every key of the file can be set in the environment, and the environment wins.
func TestEnvironmentWins(t *testing.T) {
	t.Parallel()
	env := []string{
		"GLM_KEY=k", "DRAWBRIDGE_HOST_NAME=other", "DRAWBRIDGE_DATA_DIR=/var/lib/drawbridge", "REDIS_URL=unix:///run/redis.sock", "DRAWBRIDGE_NAMESPACE=mine",
		"DRAWBRIDGE_TOKEN=9:env-token", "DRAWBRIDGE_BOT_API_URL=http://127.0.0.1:1", "DRAWBRIDGE_WEBHOOK_URL=https://h.example/x",
		"DRAWBRIDGE_WEBHOOK_LISTEN=:80", "DRAWBRIDGE_WEBHOOK_SECRET=env-secret", "DRAWBRIDGE_OWNERS= 1, 2,,", "DRAWBRIDGE_OPERATORS=3",
		"DRAWBRIDGE_VIEWERS=4", "DRAWBRIDGE_DEFAULT_MODE=auto", "DRAWBRIDGE_DEFAULT_RUNTIME=native", "DRAWBRIDGE_APPROVAL_DEADLINE=1m",
		"DRAWBRIDGE_SESSION_IDLE=2m", "DRAWBRIDGE_BEAT=1s", "DRAWBRIDGE_DEAD_AFTER=3s", "DRAWBRIDGE_SWEEP=1s", "DRAWBRIDGE_LEASE=3s",
		"DRAWBRIDGE_RENEW=500ms", "DRAWBRIDGE_REREAD=1s", "DRAWBRIDGE_PACE=1", "DRAWBRIDGE_LOG_LEVEL=error", "DRAWBRIDGE_LOG_FORMAT=text",
		"DRAWBRIDGE_PROJECTS=one=/srv/one, two=~/two", "DRAWBRIDGE_MODEL_URL=http://127.0.0.1:2/v1", "DRAWBRIDGE_MODEL=m",
		"DRAWBRIDGE_MODEL_KEY=model-key", "DRAWBRIDGE_MODEL_CONTEXT=8192",
	}
	c, file, err := load(t, wholeFile, env...)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range c.Values() {
		if v.Source == file && !strings.HasPrefix(v.Key, "runtime native:") {
			t.Errorf("%s = %q comes from the file", v.Key, v.Text)
		}
		if v.Source == fromDefault && v.Key != "runtime native:local context_window" {
			t.Errorf("%s = %q is a default", v.Key, v.Text)
		}
	}
	if want := (People{Owners: []int64{1, 2}, Operators: []int64{3}, Viewers: []int64{4}}); !reflect.DeepEqual(c.People, want) {
		t.Errorf("people: got %v, want %v", c.People, want)
	}
	if want := []Project{{Name: "one", Path: "/srv/one"}, {Name: "two", Path: "/home/ada/two"}}; !reflect.DeepEqual(c.Projects, want) {
		t.Errorf("projects: got %v, want %v", c.Projects, want)
	}
	want := Runtime{Name: "native", Kind: "native", BaseURL: "http://127.0.0.1:2/v1", Model: "m", Key: NewSecret("model-key"), ContextWindow: 8192}
	if !reflect.DeepEqual(c.Runtimes[0], want) {
		t.Errorf("runtime: got %+v, want %+v", c.Runtimes[0], want)
	}
	if got := c.Telegram.Token.Reveal(); got != "9:env-token" {
		t.Errorf("token: got %q", got)
	}
	if len(c.Warnings()) != 0 {
		t.Errorf("warnings: %q", c.Warnings())
	}
}

// The model variables take the place of the file's runtime of the same name and leave the others.
func TestEnvironmentRuntimeReplaces(t *testing.T) {
	t.Parallel()
	c, _, err := load(t, "[[runtime]]\nbase_url = \"http://127.0.0.1:9\"\nmodel = \"file\"\n", "DRAWBRIDGE_MODEL_URL=http://127.0.0.1:2/v1", "DRAWBRIDGE_MODEL=env")
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Runtimes) != 1 || c.Runtimes[0].Model != "env" || c.DefaultRuntime != "native" {
		t.Errorf("got %+v, default %q", c.Runtimes, c.DefaultRuntime)
	}
}

func TestFileIsFound(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	named := filepath.Join(dir, "named.toml")
	xdg := filepath.Join(dir, "drawbridge", FileName)
	if err := os.MkdirAll(filepath.Dir(xdg), 0o700); err != nil {
		t.Fatal(err)
	}
	for path, name := range map[string]string{named: "named", xdg: "xdg"} {
		if err := os.WriteFile(path, []byte("host_name = \""+name+"\""), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tests := map[string]struct {
		env  []string
		file string
		want string
	}{
		"argument":         {env: []string{"XDG_CONFIG_HOME=" + dir}, file: named, want: "named"},
		"variable":         {env: []string{"XDG_CONFIG_HOME=" + dir, "DRAWBRIDGE_CONFIG=" + named}, want: "named"},
		"argument wins":    {env: []string{"DRAWBRIDGE_CONFIG=" + named}, file: xdg, want: "xdg"},
		"configuration":    {env: []string{"XDG_CONFIG_HOME=" + dir}, want: "xdg"},
		"none is no error": {env: []string{"XDG_CONFIG_HOME=" + filepath.Join(dir, "nowhere"), "DRAWBRIDGE_HOST_NAME=none"}, want: "none"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, err := Load(append([]string{"HOME=" + dir}, tt.env...), tt.file)
			if err != nil || c.HostName != tt.want {
				t.Errorf("got %q, %v; want %q", c.HostName, err, tt.want)
			}
		})
	}
	for name, load := range map[string]func() (Config, error){
		"argument":    func() (Config, error) { return Load(base, filepath.Join(dir, "missing")) },
		"variable":    func() (Config, error) { return Load(append(base[:1:1], "DRAWBRIDGE_CONFIG="+dir+"/missing"), "") },
		"not a file":  func() (Config, error) { return Load(base, dir) },
		"device":      func() (Config, error) { return Load(base, "/dev/zero") },
		"file inside": func() (Config, error) { return Load(append(base[:2:2], "DRAWBRIDGE_PROJECTS=p="+dir), named) },
	} {
		if _, err := load(); err == nil {
			t.Errorf("a named file that is wrong (%s) was accepted", name)
		}
	}
}

// A host's name is made from the machine's when nobody chose one, and it always is one that would be allowed.
func TestDefaultHostName(t *testing.T) {
	t.Parallel()
	for machine, want := range map[string]string{
		"":                               "host",
		"Ada's MacBook.local":            "ada-s-macbook",
		"werk_1.example.org":             "werk-1",
		"ü":                              "host",
		strings.Repeat("abcdefgh", 5):    "abcdefghabcdefghabcdefghabcdefgh",
		"10.0.0.1":                       "10",
		"UPPER":                          "upper",
		strings.Repeat("Ä", 40) + "tail": "host",
	} {
		l := newLoader(nil)
		l.hostname = func() string { return machine }
		if got := l.defaultHost(); got != want || !hostName.MatchString(got) {
			t.Errorf("host name of %q: got %q, want %q", machine, got, want)
		}
	}
}
