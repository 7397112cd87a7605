package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// refused demands that what is configured is a mistake that is said in one line, with want in it and no secret. FILE in want
// stands for the file's path.
func refused(t *testing.T, text string, env []string, want string) {
	t.Helper()
	c, file, err := load(t, text, env...)
	if err == nil {
		t.Fatalf("accepted as %v", c.Values())
	}
	// The path of a test's folder may be longer than what a line shows of it.
	got := strings.ReplaceAll(err.Error(), oneLine(cut(file)), "FILE")
	if !strings.Contains(got, want) {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if strings.Contains(got, "\n") {
		t.Errorf("more than one line: %q", got)
	}
	for _, secret := range []string{"hunter2", "12:AB", "/../x"} {
		if strings.Contains(got, secret) {
			t.Errorf("the line shows a secret: %s", got)
		}
	}
	if c.Values() != nil || c.HostName != "" {
		t.Error("a half-filled Config came with the error")
	}
}

// Each mistake is one line that names the key, the value and what is allowed.
func TestMistakes(t *testing.T) {
	t.Parallel()
	const runtime = "[[runtime]]\nbase_url = \"http://127.0.0.1:1/v1\"\nmodel = \"m\"\n"
	tests := map[string]struct {
		file string
		env  []string
		want string // FILE stands for the file's path
	}{
		"unknown key":         {file: "tokn = \"12:AB\"", want: "config: FILE: tokn: unknown key; there are host_name, data_dir,"},
		"unknown table":       {file: "[telegram]\ntoken = \"12:AB\"", want: "config: FILE: telegram: unknown key; there are"},
		"syntax":              {file: "owners = [1]\ntoken = unquoted12:AB\n", want: "config: FILE: line 2: not understood as TOML:"},
		"twice":               {file: "beat = \"1s\"\nbeat = \"2s\"\n", want: "config: FILE: line 2: not understood as TOML:"},
		"duration":            {file: "session_idle = \"5\"", want: `config: FILE: session_idle = "5": a duration from 1s to 24h, such as 15m`},
		"duration as number":  {file: "session_idle = 5", want: `config: FILE: session_idle = "5": a duration from 1s to 24h, such as 15m`},
		"too long":            {env: []string{"DRAWBRIDGE_DEAD_AFTER=7s"}, want: `config: DRAWBRIDGE_DEAD_AFTER: dead_after = "7s": a duration from 300ms to 6s, such as 6s`},
		"too short":           {env: []string{"DRAWBRIDGE_BEAT=99ms"}, want: `config: DRAWBRIDGE_BEAT: beat = "99ms": a duration from 100ms to 2s, such as 2s`},
		"beats":               {env: []string{"DRAWBRIDGE_DEAD_AFTER=5s"}, want: `config: DRAWBRIDGE_DEAD_AFTER: dead_after = "5s": at least 3 times beat, which is 2s`},
		"lease":               {file: "renew = \"2s\"", want: `config: default: lease = "4s": at least 3 times renew, which is 2s`},
		"pace":                {env: []string{"DRAWBRIDGE_PACE=NaN"}, want: `config: DRAWBRIDGE_PACE: pace = "NaN": a number from 1 to 100`},
		"mode":                {file: "default_mode = \"yolo\"", want: `config: FILE: default_mode = "yolo": approval-required, auto-accept-edits, auto or full-access`},
		"mode empty":          {file: "default_mode = \"\"", want: "config: FILE: default_mode: approval-required,"},
		"mode table":          {file: "[default_mode]\ntoken = \"12:AB\"", want: `config: FILE: default_mode = "a value of another kind": approval-required,`},
		"owner":               {env: []string{"DRAWBRIDGE_OWNERS=1,@ada"}, want: `config: DRAWBRIDGE_OWNERS: owners = "1, @ada": ids of Telegram users, such as 123456789`},
		"owner negative":      {file: "owners = [-100123]", want: `config: FILE: owners = "-100123": ids of`},
		"owner too large":     {file: "owners = [4503599627370496]", want: `config: FILE: owners = "4503599627370496": ids of`},
		"owner alone":         {file: "owners = 5", want: `config: FILE: owners = "5": ids of`},
		"owners nested":       {file: "owners = [[5]]", want: `config: FILE: owners = "a value of another kind": ids of`},
		"two roles":           {file: "owners = [5]\nviewers = [5]", want: `config: FILE: viewers = "5": an id that stands once; this one is among the owners`},
		"owner twice":         {file: "owners = [5, 5]", want: `config: FILE: owners = "5": an id that stands once; this one is among the owners`},
		"token":               {env: []string{"DRAWBRIDGE_TOKEN=12:AB/../x"}, want: "config: DRAWBRIDGE_TOKEN: token = ***: the bot's token"},
		"redis":               {env: []string{"REDIS_URL=hunter2"}, want: "config: REDIS_URL: redis_url = ***: redis://, rediss:// or unix://"},
		"redis no host":       {env: []string{"REDIS_URL=redis://"}, want: "config: REDIS_URL: redis_url = ***: "},
		"api user":            {file: "bot_api_url = \"https://u:hunter2@h\"", want: "config: FILE: bot_api_url = ***: http:// or https://"},
		"api scheme":          {file: "bot_api_url = \"ftp://h\"", want: `config: FILE: bot_api_url = "ftp://h": http:// or https://`},
		"webhook http":        {env: []string{"DRAWBRIDGE_WEBHOOK_URL=http://h/x"}, want: `config: DRAWBRIDGE_WEBHOOK_URL: webhook_url = "http://h/x": https:// (http:// on this machine) and`},
		"webhook listen":      {env: []string{"DRAWBRIDGE_WEBHOOK_LISTEN=8443"}, want: `webhook_listen = "8443": an address to listen on`},
		"webhook port":        {env: []string{"DRAWBRIDGE_WEBHOOK_LISTEN=:0"}, want: `webhook_listen = ":0": an address to listen on`},
		"webhook secret":      {env: []string{"DRAWBRIDGE_WEBHOOK_SECRET=a b"}, want: "webhook_secret = ***: 1 to 256 of"},
		"webhook long":        {env: []string{"DRAWBRIDGE_WEBHOOK_SECRET=" + strings.Repeat("a", 257)}, want: "webhook_secret = ***: 1 to 256 of"},
		"no webhook secret":   {env: []string{"DRAWBRIDGE_WEBHOOK_URL=https://h/x", "DRAWBRIDGE_WEBHOOK_LISTEN=:1"}, want: "config: webhook_secret: not set; webhook_url,"},
		"no webhook url":      {env: []string{"DRAWBRIDGE_WEBHOOK_SECRET=a", "DRAWBRIDGE_WEBHOOK_LISTEN=:1"}, want: "config: webhook_url: not set; webhook_url,"},
		"host":                {file: "host_name = \"a b\"", env: []string{"DRAWBRIDGE_HOST_NAME="}, want: `host_name = "a b": 1 to 32 of a-z, 0-9 and -`},
		"data relative":       {env: []string{"DRAWBRIDGE_DATA_DIR=data"}, want: `config: DRAWBRIDGE_DATA_DIR: data_dir = "data": a folder: an absolute path, or one that starts with ~/`},
		"data of others":      {env: []string{"DRAWBRIDGE_DATA_DIR=~bob/x"}, want: `data_dir = "~bob/x": a folder`},
		"data in project":     {env: []string{"DRAWBRIDGE_PROJECTS=home=~"}, want: `config: default: data_dir = "/home/ada/.local/state/drawbridge": a folder outside of project home,`},
		"no data":             {env: []string{"HOME="}, want: "config: data_dir: not set, and there is neither XDG_STATE_HOME nor HOME"},
		"log level":           {env: []string{"DRAWBRIDGE_LOG_LEVEL=inf"}, want: `log_level = "inf": debug, info, warn or error`},
		"log format":          {env: []string{"DRAWBRIDGE_LOG_FORMAT=xml"}, want: `log_format = "xml": text or json`},
		"projects env":        {env: []string{"DRAWBRIDGE_PROJECTS=/srv/api"}, want: `config: DRAWBRIDGE_PROJECTS: a list of name=path, separated by commas;`},
		"project twice":       {env: []string{"DRAWBRIDGE_PROJECTS=a=/x,a=/y"}, want: `config: DRAWBRIDGE_PROJECTS: project = "a": a name that stands once`},
		"project plain table": {file: "[project]\nname = \"a\"", want: "config: FILE: project: a table of its own for each, under the heading [[project]]"},
		"project no path":     {file: "[[project]]\nname = \"a\"", want: "config: FILE: project a, path: not set; a folder: an absolute path"},
		"project no name":     {file: "[[project]]\npath = \"/x\"", want: "config: FILE: project 1, name: not set; 1 to 32 letters"},
		"project name":        {file: "[[project]]\npath = \"/x\"\nname = \"a b\"", want: `config: FILE: project 1, name = "a b": 1 to 32 letters`},
		"project relative":    {file: "[[project]]\nname = \"a\"\npath = \"x\"", want: `config: FILE: project a, path = "x": a folder: an absolute path`},
		"project key":         {file: "[[project]]\nname = \"a\"\npath = \"/x\"\nmode = \"auto\"", want: "config: FILE: project a, mode: unknown key; there are name, path, publish_is_ordinary, runtime, trusted"},
		"project flag":        {file: "[[project]]\nname = \"a\"\npath = \"/x\"\npublish_is_ordinary = \"yes\"", want: "config: FILE: project a, publish_is_ordinary: true or false"},
		"project runtime":     {file: "[[project]]\nname = \"a\"\npath = \"/x\"\nruntime = \"native:b\"\n" + runtime, want: `config: FILE: project a, runtime = "native:b": a runtime that is configured: native`},
		"default runtime":     {file: "default_runtime = \"native:b\"\n" + runtime, want: `config: FILE: default_runtime = "native:b": a runtime that is configured: native`},
		"no runtime":          {env: []string{"DRAWBRIDGE_DEFAULT_RUNTIME=native"}, want: `default_runtime = "native": not to be set without a [[runtime]]`},
		"runtime name":        {file: runtime + "name = \"pilot\"", want: `config: FILE: runtime pilot, name = "pilot": native, codex or claude`},
		"runtime kind":        {file: runtime + "kind = \"codex\"", want: `config: FILE: runtime 1, kind = "codex": the kind that the name begins with`},
		"agents":              {env: []string{"DRAWBRIDGE_AGENTS=codex,pilot"}, want: `config: DRAWBRIDGE_AGENTS: "pilot": codex, claude, or both`},
		"agent's program":     {file: "[[runtime]]\nname = \"codex\"\nprogram = \"\"", want: `config: FILE: runtime codex, program: a name that is found in PATH`},
		"native program":      {file: runtime + "program = \"x\"", want: `config: FILE: runtime 1, program: unknown key`},
		"runtime twice":       {file: runtime + runtime, want: `config: FILE: runtime = "native": a name that stands once`},
		"runtime url":         {file: "[[runtime]]\nmodel = \"m\"\nbase_url = \"http://h/v1?key=hunter2\"", want: "config: FILE: runtime 1, base_url = ***: http:// or https://"},
		"runtime no model":    {file: "[[runtime]]\nbase_url = \"http://h/v1\"", want: "config: FILE: runtime 1, model: not set; what the endpoint calls the model"},
		"runtime key":         {file: runtime + "key = \"hunter2 \"", want: "config: FILE: runtime 1, key = ***: the endpoint's key"},
		"runtime two keys":    {file: runtime + "key = \"hunter2\"\nkey_env = \"HOME\"", want: `config: FILE: runtime 1, key_env = "HOME": either key or key_env`},
		"runtime key env":     {file: runtime + "key_env = \"NOT_SET\"", want: `config: FILE: runtime 1, key_env = "NOT_SET": the name of an environment variable that is set`},
		"runtime window":      {file: runtime + "context_window = 100", want: "config: FILE: runtime 1, context_window: a whole number from 4096 to 10000000"},
		"model without url":   {env: []string{"DRAWBRIDGE_MODEL=m"}, want: "config: DRAWBRIDGE_MODEL_URL: not set or not allowed; http:// or https://"},
		"url without model":   {env: []string{"DRAWBRIDGE_MODEL_URL=http://h"}, want: "config: DRAWBRIDGE_MODEL: not set or not allowed; what the endpoint"},
		"model key":           {env: []string{"DRAWBRIDGE_MODEL_URL=http://h", "DRAWBRIDGE_MODEL=m", "DRAWBRIDGE_MODEL_KEY=hunter2 "}, want: "config: DRAWBRIDGE_MODEL_KEY: the endpoint's key"},
		"model context":       {env: []string{"DRAWBRIDGE_MODEL_URL=http://h", "DRAWBRIDGE_MODEL=m", "DRAWBRIDGE_MODEL_CONTEXT=1k"}, want: `config: DRAWBRIDGE_MODEL_CONTEXT: a whole number from 4096 to 10000000, not "1k"`},
		"hostile key":         {file: "\"a\\nb\\u2028c\" = 1", want: "config: FILE: a?b?c: unknown key;"},
		"hostile value":       {env: []string{"DRAWBRIDGE_LOG_LEVEL=a\nerror: b\x1b[0m"}, want: `log_level = "a\nerror: b\x1b[0m": debug,`},
		"long value":          {env: []string{"DRAWBRIDGE_LOG_LEVEL=" + strings.Repeat("ä", 81)}, want: `log_level = "` + strings.Repeat("ä", 80) + `…": debug,`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			refused(t, tt.file, tt.env, tt.want)
		})
	}
}

func TestAllMistakesAreTold(t *testing.T) {
	t.Parallel()
	_, _, err := load(t, "beat = \"x\"\nzzz = 1\n[[project]]\n", "DRAWBRIDGE_PACE=0")
	if err == nil {
		t.Fatal("accepted")
	}
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != 5 {
		t.Errorf("want the five mistakes (beat, pace, name, path, zzz), got:\n%s", err)
	}
	for _, line := range lines {
		if !strings.HasPrefix(line, "config: ") {
			t.Errorf("not a line of its own: %q", line)
		}
	}
}

func TestWarnings(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), FileName)
	if err := os.WriteFile(file, []byte("token = \"12:AB\""), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(file, 0o644); err != nil { // whatever the umask
		t.Fatal(err)
	}
	c, err := Load(append(base[:2:2], "DRAWBRIDGE_PORT=tcp://10.0.0.1:80"), file)
	if err != nil {
		t.Fatal(err)
	}
	w := c.Warnings()
	if len(w) != 2 || !strings.HasPrefix(w[0], "DRAWBRIDGE_PORT is set") || !strings.Contains(w[1], "others can read it") {
		t.Errorf("got %q", w)
	}
	if err := os.Chmod(file, 0o600); err != nil {
		t.Fatal(err)
	}
	if c, err = Load(base, file); err != nil || len(c.Warnings()) != 0 {
		t.Errorf("a private file: %q, %v", c.Warnings(), err)
	}
}

// A link out of a project does not help, and one into it is seen through.
func TestPlacesFollowLinks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	project := filepath.Join(dir, "project")
	link := filepath.Join(dir, "link")
	if err := os.Mkdir(project, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(project, link); err != nil {
		t.Fatal(err)
	}
	for _, data := range []string{project, filepath.Join(project, "new", "data"), filepath.Join(link, "data")} {
		if _, err := Load(append(base[:2:2], "DRAWBRIDGE_PROJECTS=p="+project, "DRAWBRIDGE_DATA_DIR="+data), ""); err == nil {
			t.Errorf("data folder %s within %s was accepted", data, project)
		}
	}
	if _, err := Load(append(base[:2:2], "DRAWBRIDGE_PROJECTS=p="+project, "DRAWBRIDGE_DATA_DIR="+project+"-data"), ""); err != nil {
		t.Errorf("a data folder beside the project: %v", err)
	}
}

func TestRoles(t *testing.T) {
	t.Parallel()
	const redis, token, project, model = "REDIS_URL=redis://127.0.0.1:1", "DRAWBRIDGE_TOKEN=1:a", "DRAWBRIDGE_PROJECTS=p=/srv/p", "DRAWBRIDGE_MODEL=m"
	const url, key = "DRAWBRIDGE_MODEL_URL=http://127.0.0.1:1", "DRAWBRIDGE_MODEL_KEY=k"
	tests := map[string]struct {
		role Role
		env  []string
		want []string // beginnings of the lines
	}{
		"serve":         {role: RoleServe, env: []string{token, project, model, url}},
		"serve, bare":   {role: RoleServe, want: []string{"config: token: not set; set DRAWBRIDGE_TOKEN", "config: project: not set; ", "config: runtime: not set; "}},
		"gateway":       {role: RoleGateway, env: []string{token, redis}},
		"gateway, bare": {role: RoleGateway, want: []string{"config: token: not set; ", "config: redis_url: not set; `drawbridge gateway` shares"}},
		"host":          {role: RoleHost, env: []string{redis, project, model, url}},
		"host, bare":    {role: RoleHost, want: []string{"config: redis_url: not set; `drawbridge host` shares", "config: project: ", "config: runtime: "}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, _, err := load(t, "", tt.env...)
			if err != nil {
				t.Fatal(err)
			}
			_, err = c.For(tt.role)
			var lines []string
			if err != nil {
				lines = strings.Split(err.Error(), "\n")
			}
			if len(lines) != len(tt.want) {
				t.Fatalf("got %q, want %q", lines, tt.want)
			}
			for i, line := range lines {
				if !strings.HasPrefix(line, tt.want[i]) {
					t.Errorf("got %q, want %q", line, tt.want[i])
				}
			}
		})
	}

	c, _, err := load(t, "", redis, token, project, model, url, key)
	if err != nil {
		t.Fatal(err)
	}
	host, err := c.For(RoleHost)
	if err != nil || host.Telegram != (Telegram{}) || host.Runtimes[0].Key.Reveal() != "k" {
		t.Errorf("a host got %+v, %v", host, err)
	}
	gateway, err := c.For(RoleGateway)
	if err != nil || gateway.Runtimes[0].Key.Set() || gateway.Telegram.Token.Reveal() != "1:a" {
		t.Errorf("a gateway got %+v, %v", gateway, err)
	}
	if c.Runtimes[0].Key.Reveal() != "k" {
		t.Error("For changed the Config that it was called on")
	}
}
