package config

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"drawbridge/policy"
)

const eventsFile = `
owners = [1001]
viewers = [1003]

[hooks]
listen = "127.0.0.1:9000"

[[hook]]
name = "deploy"
secret = "deploy-secret-of-file"
chat = "-100123/5"
by = 1001
title = "Look at the deployment"
steps = ["Say what failed.\nBe short.", "Write it down."]
host = "box"
project = "api"
runtime = "native:glm"
mode = "auto-accept-edits"
execution = "auto"

[[hook]]
name = "alert"
secret_env = "ALERT_SECRET"
chat = "1001"
by = 1001
steps = ["Look at this alert."]

[[on]]
event = "pipeline_completed"
command = ["notify", "--title", "a task; is done"]
folder = "~/tell"
env = { TELL_KEY = "tell-secret-of-file" }
env_from = { TELL_USER = "MY_TELL_USER" }
limit = "1m"
project = "api"

[[on]]
event = "task_permission_retry"
message = "It may write now."
`

var eventsEnv = []string{"ALERT_SECRET=alert-secret-of-env", "MY_TELL_USER=user-secret-of-env"}

func TestEvents(t *testing.T) {
	t.Parallel()
	c, _, err := load(t, eventsFile, append([]string{"DRAWBRIDGE_PACE=2"}, eventsEnv...)...)
	if err != nil {
		t.Fatal(err)
	}
	hooks := []Hook{
		{
			Name: "deploy", Secret: NewSecret("deploy-secret-of-file"), Chat: "-100123/5", By: 1001, Title: "Look at the deployment",
			Steps: []string{"Say what failed.\nBe short.", "Write it down."}, Host: "box", Project: "api", Runtime: "native:glm", Mode: policy.AutoAcceptEdits, Execution: "auto",
		},
		{Name: "alert", Secret: NewSecret("alert-secret-of-env"), Chat: "1001", By: 1001, Steps: []string{"Look at this alert."}},
	}
	on := []On{
		{
			Event: "pipeline_completed", Command: []string{"notify", "--title", "a task; is done"}, Folder: "/home/ada/tell", Limit: 30 * time.Second, Project: "api",
			Env: map[string]Secret{"TELL_KEY": NewSecret("tell-secret-of-file"), "TELL_USER": NewSecret("user-secret-of-env")},
		},
		{Event: "task_permission_retry", Message: "It may write now.", Limit: 15 * time.Second, Env: map[string]Secret{}},
	}
	if !reflect.DeepEqual(c.Hooks, hooks) || c.HooksListen != "127.0.0.1:9000" {
		t.Errorf("hooks at %s:\n got %#v\nwant %#v", c.HooksListen, c.Hooks, hooks)
	}
	if !reflect.DeepEqual(c.On, on) {
		t.Errorf("on:\n got %#v\nwant %#v", c.On, on)
	}
	if len(c.Warnings()) != 0 || c.HooksOpen() {
		t.Errorf("warnings: %q", c.Warnings())
	}
}

// What other programs start and what is done on tasks is the gateway's.
func TestAHostHasNoHooks(t *testing.T) {
	t.Parallel()
	c, _, err := load(t, eventsFile+"[[project]]\nname = \"api\"\npath = \"/srv/api\"\n[[runtime]]\nname = \"codex\"\n",
		append([]string{"REDIS_URL=redis://127.0.0.1:1", "DRAWBRIDGE_TOKEN=1:a"}, eventsEnv...)...)
	if err != nil {
		t.Fatal(err)
	}
	host, err := c.For(RoleHost)
	if err != nil || host.Hooks != nil || host.HooksListen != "" || host.On != nil {
		t.Errorf("a host got %v, %v, %v, %v", host.Hooks, host.HooksListen, host.On, err)
	}
	gateway, err := c.For(RoleGateway)
	if err != nil || len(gateway.Hooks) != 2 || len(gateway.On) != 2 {
		t.Errorf("a gateway got %v, %v, %v", gateway.Hooks, gateway.On, err)
	}
}

// Deliveries are taken on this machine unless somebody wrote another address, and then it is said.
func TestWhereDeliveriesAreTaken(t *testing.T) {
	t.Parallel()
	const hook = "[[hook]]\nname = \"a\"\nsecret = \"0123456789abcdef\"\nchat = \"1\"\nby = 1\nsteps = [\"x\"]\n"
	for name, tt := range map[string]struct {
		file, listen string
		open         bool
		warning      string
	}{
		"nothing":     {file: ""},
		"no hook":     {file: "[hooks]\nlisten = \"0.0.0.0:1\"", warning: "nothing listens there"},
		"unless said": {file: hook, listen: "127.0.0.1:8765"},
		"empty table": {file: "[hooks]\n" + hook, listen: "127.0.0.1:8765"},
		"loopback":    {file: "[hooks]\nlisten = \"[::1]:1\"\n" + hook, listen: "[::1]:1"},
		"localhost":   {file: "[hooks]\nlisten = \"localhost:1\"\n" + hook, listen: "localhost:1"},
		"everywhere":  {file: "[hooks]\nlisten = \":1\"\n" + hook, listen: ":1", open: true, warning: "which others can reach"},
		"an address":  {file: "[hooks]\nlisten = \"192.0.2.1:1\"\n" + hook, listen: "192.0.2.1:1", open: true, warning: "which others can reach"},
		"a name":      {file: "[hooks]\nlisten = \"box:1\"\n" + hook, listen: "box:1", open: true, warning: "which others can reach"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, _, err := load(t, tt.file)
			if err != nil {
				t.Fatal(err)
			}
			w := strings.Join(c.Warnings(), "\n")
			if c.HooksListen != tt.listen || c.HooksOpen() != tt.open || (w == "") != (tt.warning == "") || !strings.Contains(w, tt.warning) {
				t.Errorf("at %q, open %v, with the warnings %q", c.HooksListen, c.HooksOpen(), w)
			}
		})
	}
}

// No way to print what was loaded shows a secret of a hook or of a command.
func TestSecretsOfEventsNeverShow(t *testing.T) {
	t.Parallel()
	c, _, err := load(t, eventsFile, eventsEnv...)
	if err != nil {
		t.Fatal(err)
	}
	shown := printed(t, c, c.Hooks, c.On)
	if i := strings.Index(shown, "secret-of"); i >= 0 {
		t.Errorf("a secret is shown: …%s", shown[max(0, i-60):i+10])
	}
}

func TestEventMistakes(t *testing.T) {
	t.Parallel()
	const (
		name   = "[[hook]]\nname = \"a\"\n"
		secret = "secret = \"hunter2-hunter2-hunter2\"\n"
		chat   = "chat = \"1\"\n"
		by     = "by = 1\n"
		steps  = "steps = [\"x\"]\n"
		hook   = name + secret + chat + by + steps
		on     = "[[on]]\nevent = \"pipeline_completed\"\n"
	)
	long := func(n int) string { return "steps = [\"" + strings.Repeat("x", n) + "\"]\n" }
	for name, tt := range map[string]struct {
		file string
		env  []string
		want string // FILE stands for the file's path
	}{
		"hooks":              {file: "hooks = true", want: "config: FILE: hooks: one table, under the heading [hooks]"},
		"listen":             {file: "[hooks]\nlisten = \"8765\"", want: `config: FILE: hooks, listen = "8765": an address to listen on, such as 127.0.0.1:8765`},
		"no port":            {file: "[hooks]\nlisten = \"127.0.0.1:0\"", want: `config: FILE: hooks, listen = "127.0.0.1:0": an address`},
		"hooks key":          {file: "[hooks]\nport = 1", want: "config: FILE: hooks, port: unknown key; there are listen"},
		"plain table":        {file: "[hook]\nname = \"a\"", want: "config: FILE: hook: a table of its own for each, under the heading [[hook]]"},
		"no name":            {file: "[[hook]]\n" + secret + chat + by + steps, want: "config: FILE: hook 1, name: not set; 1 to 32 of a-z"},
		"name":               {file: "[[hook]]\nname = \"a/b\"\n" + secret + chat + by + steps, want: `config: FILE: hook 1, name = "a/b": 1 to 32 of`},
		"twice":              {file: hook + hook, want: `config: FILE: hook = "a": a name that stands once`},
		"the same secret":    {file: hook + "[[hook]]\nname = \"b\"\n" + secret + chat + by + steps, want: "config: FILE: hook b, secret = ***: a secret of its own"},
		"no secret":          {file: name + chat + by + steps, want: "config: FILE: hook a, secret: not set; 16 to 256 printable characters without blanks, or secret_env"},
		"empty secret":       {file: name + "secret = \"\"\n" + chat + by + steps, want: "config: FILE: hook a, secret: not set; 16 to 256"},
		"short secret":       {file: name + "secret = \"hunter2\"\n" + chat + by + steps, want: "config: FILE: hook a, secret = ***: 16 to 256"},
		"secret of nothing":  {file: name + "secret_env = \"NOT_SET\"\n" + chat + by + steps, want: `config: FILE: hook a, secret_env = "NOT_SET": the name of an environment variable that is set`},
		"short variable":     {file: name + "secret_env = \"S\"\n" + chat + by + steps, env: []string{"S=hunter2"}, want: `config: FILE: hook a, secret_env = "S": the name of an environment variable that holds 16 to 256`},
		"two secrets":        {file: hook + "secret_env = \"HOME\"\n", want: `config: FILE: hook a, secret_env = "HOME": either secret or secret_env`},
		"no chat":            {file: name + secret + by + steps, want: "config: FILE: hook a, chat: not set; a chat's id"},
		"chat with a colon":  {file: name + secret + by + steps + "chat = \"-100123:5\"", want: `config: FILE: hook a, chat = "-100123:5": a chat's id`},
		"chat of nobody":     {file: name + secret + by + steps + "chat = \"0\"", want: `config: FILE: hook a, chat = "0": a chat's id`},
		"no by":              {file: name + secret + chat + steps, want: "config: FILE: hook a, by: not set; the id of the owner or operator"},
		"by":                 {file: name + secret + chat + steps + "by = \"ada\"", want: `config: FILE: hook a, by = "ada": the id of the owner or operator`},
		"by a viewer":        {file: "viewers = [1]\n" + hook, want: `config: FILE: hook a, by = "1": the id of an owner or operator; this one is among the viewers`},
		"no steps":           {file: name + secret + chat + by, want: "config: FILE: hook a, steps: a list of 1 to 20 texts"},
		"empty step":         {file: name + secret + chat + by + "steps = [\" \"]", want: "config: FILE: hook a, steps: a list of 1 to 20 texts"},
		"a text":             {file: name + secret + chat + by + "steps = \"x\"", want: "config: FILE: hook a, steps: a list of 1 to 20 texts"},
		"a long first step":  {file: name + secret + chat + by + long(1537), want: "config: FILE: hook a, steps: a list of 1 to 20 texts, the first of at most 1536 bytes"},
		"title":              {file: hook + "title = \"a\\nb\"", want: `config: FILE: hook a, title = "a\nb": one line`},
		"host alone":         {file: hook + "host = \"box\"", want: `config: FILE: hook a, host = "box": only together with project`},
		"project":            {file: hook + "project = \"a b\"", want: `config: FILE: hook a, project = "a b": the name of a project`},
		"runtime":            {file: hook + "runtime = \"A\"", want: `config: FILE: hook a, runtime = "A": the name of a runtime`},
		"mode":               {file: hook + "mode = \"yolo\"", want: `config: FILE: hook a, mode = "yolo": approval-required, auto-accept-edits,`},
		"execution":          {file: hook + "execution = \"yes\"", want: `config: FILE: hook a, execution = "yes": review or auto`},
		"key":                {file: hook + "token = \"hunter2\"", want: "config: FILE: hook a, token: unknown key; there are by, chat, execution, host, mode, name, project, runtime, secret, secret_env, steps, title"},
		"no event":           {file: "[[on]]\nmessage = \"x\"", want: "config: FILE: on 1, event: not set; one of task_auto_approved, task_permission_retry, pipeline_completed"},
		"event":              {file: "[[on]]\nevent = \"done\"\nmessage = \"x\"", want: `config: FILE: on 1, event = "done": one of task_auto_approved,`},
		"nothing done":       {file: on, want: "config: FILE: on 1, command: either command, a list such as"},
		"both":               {file: on + "command = [\"x\"]\nmessage = \"x\"", want: "config: FILE: on 1, command: either command, a list such as"},
		"a shell line":       {file: on + "command = \"rm -rf /\"", want: "config: FILE: on 1, command: a list of texts, the program and its arguments, such as"},
		"no program":         {file: on + "command = []", want: "config: FILE: on 1, command: a list of the program and its arguments"},
		"empty program":      {file: on + "command = [\"\"]", want: "config: FILE: on 1, command: a name that is found in PATH, or an absolute path"},
		"relative program":   {file: on + "command = [\"./x\"]", want: `config: FILE: on 1, command = "./x": a name that is found in PATH, or an absolute path`},
		"empty message":      {file: on + "message = \" \"", want: "config: FILE: on 1, message: a text of at most 1000 bytes"},
		"limit of a message": {file: on + "message = \"x\"\nlimit = \"1s\"", want: "config: FILE: on 1, limit: only together with command"},
		"env of a message":   {file: on + "message = \"x\"\nenv = { A = \"hunter2\" }", want: "config: FILE: on 1, env: only together with command"},
		"long limit":         {file: on + "command = [\"x\"]\nlimit = \"11m\"", want: `config: FILE: on 1, limit = "11m": a duration from 1s to 10m, such as 30s`},
		"short limit":        {file: on + "command = [\"x\"]\nlimit = \"999ms\"", want: `config: FILE: on 1, limit = "999ms": a duration from 1s to 10m`},
		"relative folder":    {file: on + "command = [\"x\"]\nfolder = \"y\"", want: `config: FILE: on 1, folder = "y": a folder: an absolute path`},
		"env name":           {file: on + "command = [\"x\"]\nenv = { \"A=B\" = \"hunter2\" }", want: `config: FILE: on 1, env "A=B": a table of names of environment variables`},
		"on key":             {file: on + "command = [\"x\"]\nargs = [\"y\"]", want: "config: FILE: on 1, args: unknown key; there are command, env, env_from, event, folder, limit, message, project"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			refused(t, tt.file, tt.env, tt.want)
		})
	}
}

func TestEventWarnings(t *testing.T) {
	t.Parallel()
	c, _, err := load(t, "[[project]]\nname = \"shop\"\npath = \"/srv/shop\"\n[[on]]\nevent = \"pipeline_completed\"\ncommand = [\"sh\", \"/srv/shop/tell.sh\"]\n")
	if err != nil {
		t.Fatal(err)
	}
	if w := strings.Join(c.Warnings(), "\n"); !strings.Contains(w, "on 1 runs something in the folder of project shop, whose agent can change it") {
		t.Errorf("warnings: %q", w)
	}
}
