package config

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"drawbridge/policy"
)

const serversFile = `
[[project]]
name = "shop"
path = "/srv/shop"
trusted = true

[[project]]
name = "web"
path = "/srv/web"

[[runtime]]
name = "claude"

[[runtime]]
name = "codex"

[[runtime]]
name = "native"
base_url = "http://127.0.0.1:1/v1"
model = "m"

[[mcp]]
name = "bank"
command = "bank-mcp"
args = ["--stdio", "say \"hi\""]
env = { BANK_KEY = "env-secret-of-file", MODE = "live" }
env_from = { BANK_TOKEN = "MY_BANK_TOKEN" }

[[mcp]]
name = "issue-tracker"
url = "https://mcp.example.org/v1"
headers = { X-Org = "header-secret-of-file" }
headers_from = { Authorization = "TRACKER_AUTH" }
runtimes = ["claude"]

[tools]
"bank/balance" = "read"
"mcp__bank__pay" = "payment"
"issue-tracker/*" = "network"
`

var serversEnv = []string{"MY_BANK_TOKEN=token-secret-of-env", "TRACKER_AUTH=Bearer auth-secret-of-env"}

func TestServers(t *testing.T) {
	t.Parallel()
	c, _, err := load(t, serversFile, serversEnv...)
	if err != nil {
		t.Fatal(err)
	}
	want := []Server{
		{
			Name: "bank", Command: "bank-mcp", Args: []string{"--stdio", `say "hi"`}, Headers: map[string]Secret{},
			Env: map[string]Secret{"BANK_KEY": NewSecret("env-secret-of-file"), "MODE": NewSecret("live"), "BANK_TOKEN": NewSecret("token-secret-of-env")},
		},
		{
			Name: "issue-tracker", URL: "https://mcp.example.org/v1", Runtimes: []string{"claude"}, Env: map[string]Secret{},
			Headers: map[string]Secret{"X-Org": NewSecret("header-secret-of-file"), "Authorization": NewSecret("Bearer auth-secret-of-env")},
		},
	}
	if !reflect.DeepEqual(c.Servers, want) {
		t.Errorf("servers:\n got %#v\nwant %#v", c.Servers, want)
	}
	if want := (map[string]policy.Category{"bank/balance": policy.Read, "bank/pay": policy.Payment, "issue-tracker/*": policy.Network}); !reflect.DeepEqual(c.Tools, want) {
		t.Errorf("tools: got %v, want %v", c.Tools, want)
	}
	if !c.Projects[0].Trusted || c.Projects[1].Trusted {
		t.Errorf("trust: %+v", c.Projects)
	}
	for i, names := range [][]string{{"bank", "issue-tracker"}, {"bank"}, nil} { // claude, codex, native
		var got []string
		for _, s := range c.ServersOf(c.Runtimes[i]) {
			got = append(got, s.Name)
		}
		if !reflect.DeepEqual(got, names) {
			t.Errorf("%s gets %v, want %v", c.Runtimes[i].Name, got, names)
		}
	}
	if len(c.Warnings()) != 0 {
		t.Errorf("warnings: %q", c.Warnings())
	}
	c, err = c.For(RoleHost)
	if err == nil || len(c.Servers) != 0 {
		t.Errorf("a host without a store: %v", err)
	}
}

// A gateway runs no agents, so it has no use for what their servers are given.
func TestAGatewayHasNoServers(t *testing.T) {
	t.Parallel()
	c, _, err := load(t, serversFile, append([]string{"REDIS_URL=redis://127.0.0.1:1", "DRAWBRIDGE_TOKEN=1:a"}, serversEnv...)...)
	if err != nil {
		t.Fatal(err)
	}
	gateway, err := c.For(RoleGateway)
	if err != nil || gateway.Servers != nil {
		t.Errorf("a gateway got %v, %v", gateway.Servers, err)
	}
	host, err := c.For(RoleHost)
	if err != nil || len(host.Servers) != 2 {
		t.Errorf("a host got %v, %v", host.Servers, err)
	}
}

// printed is a configuration, and parts of it, in every way in which they could be printed.
func printed(t *testing.T, c Config, parts ...any) string {
	t.Helper()
	var out bytes.Buffer
	if err := c.Explain(&out); err != nil {
		t.Fatal(err)
	}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x"} {
		fmt.Fprintf(&out, verb+"\n", c)
		for _, part := range parts {
			fmt.Fprintf(&out, verb+"\n", part)
		}
	}
	return out.String()
}

// No way to print what was loaded shows what a server is given.
func TestSecretsOfServersNeverShow(t *testing.T) {
	t.Parallel()
	c, file, err := load(t, serversFile, serversEnv...)
	if err != nil {
		t.Fatal(err)
	}
	shown := printed(t, c, c.Servers)
	for _, secret := range []string{"secret-of", "live"} {
		if i := strings.Index(shown, secret); i >= 0 {
			t.Errorf("%s is shown: …%s", secret, shown[max(0, i-60):i])
		}
	}
	for _, v := range c.Values() {
		switch v.Key {
		case "mcp bank env BANK_KEY", "mcp issue-tracker headers X-Org":
			if v.Text != Mask || v.Source != file {
				t.Errorf("%+v", v)
			}
		case "mcp bank env BANK_TOKEN":
			if v.Text != Mask || v.Source != "MY_BANK_TOKEN" {
				t.Errorf("%+v", v)
			}
		}
	}
}

func TestServerMistakes(t *testing.T) {
	t.Parallel()
	const bank = "[[mcp]]\nname = \"bank\"\n"
	for name, tt := range map[string]struct {
		file string
		env  []string
		want string // FILE stands for the file's path
	}{
		"no name":             {file: "[[mcp]]\ncommand = \"x\"", want: "config: FILE: mcp 1, name: not set; 1 to 32 of a-z, 0-9 and -"},
		"name":                {file: "[[mcp]]\nname = \"a__b\"\ncommand = \"x\"", want: `config: FILE: mcp a__b, name = "a__b": 1 to 32 of`},
		"name with a dash":    {file: "[[mcp]]\nname = \"a-\"\ncommand = \"x\"", want: `config: FILE: mcp a-, name = "a-": 1 to 32 of`},
		"ours":                {file: "[[mcp]]\nname = \"drawbridge\"\ncommand = \"x\"\n", want: `config: FILE: mcp = "drawbridge": any other name: this one is Drawbridge's own`},
		"twice":               {file: bank + "command = \"x\"\n" + bank + "command = \"y\"", want: `config: FILE: mcp = "bank": a name that stands once`},
		"plain table":         {file: "[mcp.bank]\ncommand = \"x\"", want: "config: FILE: mcp: a table of its own for each, under the heading [[mcp]]"},
		"nothing":             {file: bank, want: "config: FILE: mcp bank, command: not set; a name that is found in PATH, or an absolute path, or url"},
		"both":                {file: bank + "command = \"x\"\nurl = \"http://h\"", want: "config: FILE: mcp bank, url: either command or url"},
		"relative command":    {file: bank + "command = \"./bank\"", want: `config: FILE: mcp bank, command = "./bank": a name that is found in PATH`},
		"args":                {file: bank + "command = \"x\"\nargs = \"--stdio\"", want: "config: FILE: mcp bank, args: a list of texts, such as"},
		"arg":                 {file: bank + "command = \"x\"\nargs = [\"a\", 1]", want: "config: FILE: mcp bank, args: a list of texts, such as"},
		"url with a key":      {file: bank + "url = \"https://h/?key=hunter2\"", want: "config: FILE: mcp bank, url = ***: http:// or https://"},
		"headers of command":  {file: bank + "command = \"x\"\nheaders = { A = \"hunter2\" }", want: "config: FILE: mcp bank, headers: only together with url"},
		"env of url":          {file: bank + "url = \"http://h\"\nenv = { A = \"hunter2\" }", want: "config: FILE: mcp bank, url: not together with args and env"},
		"env":                 {file: bank + "command = \"x\"\nenv = \"A=hunter2\"", want: "config: FILE: mcp bank, env: a table of names of environment variables"},
		"env name":            {file: bank + "command = \"x\"\nenv = { \"A=B\" = \"hunter2\" }", want: `config: FILE: mcp bank, env "A=B": a table of names of environment variables`},
		"env value":           {file: bank + "command = \"x\"\nenv = { A = 1 }", want: `config: FILE: mcp bank, env "A": a table of`},
		"env from":            {file: bank + "command = \"x\"\nenv_from = { A = \"NOT_SET\" }", want: `config: FILE: mcp bank, env_from "A": a table of names, each with the name of an environment variable that is set`},
		"env twice":           {file: bank + "command = \"x\"\nenv = { A = \"hunter2\" }\nenv_from = { A = \"HOME\" }", want: `config: FILE: mcp bank, env_from "A": a table of names`},
		"header":              {file: bank + "url = \"http://h\"\nheaders = { \"A B\" = \"hunter2\" }", want: `config: FILE: mcp bank, headers "A B": a table of names of HTTP headers`},
		"header with a line":  {file: bank + "url = \"http://h\"\nheaders = { A = \"hunter2\\nB: c\" }", want: `config: FILE: mcp bank, headers "A": a table of names of HTTP headers`},
		"header of env":       {file: bank + "url = \"http://h\"\nheaders_from = { A = \"TWO\" }", env: []string{"TWO=hunter2\nx"}, want: `config: FILE: mcp bank, headers_from "A": a table of names`},
		"key":                 {file: bank + "command = \"x\"\ntoken = \"hunter2\"", want: "config: FILE: mcp bank, token: unknown key; there are args, command, env, env_from, headers, headers_from, name, runtimes, url"},
		"runtime":             {file: bank + "command = \"x\"\nruntimes = [\"claude\"]", want: `config: FILE: mcp bank, runtimes = "claude": runtimes that are configured`},
		"native":              {file: bank + "command = \"x\"\nruntimes = [\"native\"]\n[[runtime]]\nbase_url = \"http://h\"\nmodel = \"m\"", want: `config: FILE: mcp bank, runtimes = "native": runtimes of codex and claude`},
		"trusted":             {file: "[[project]]\nname = \"a\"\npath = \"/x\"\ntrusted = \"yes\"", want: "config: FILE: project a, trusted: true or false"},
		"tools":               {file: "tools = \"read\"", want: "config: FILE: tools: one table, under the heading [tools]"},
		"an agent's own tool": {file: "[tools]\nAskUserQuestion = \"read\"", want: `config: FILE: tools = "AskUserQuestion": a tool of an MCP server: "server/tool"`},
		"a command":           {file: "[tools]\nBash = \"read\"", want: `config: FILE: tools = "Bash": a tool of an MCP server`},
		"everything":          {file: "[tools]\n\"*\" = \"read\"", want: `config: FILE: tools = "*": a tool of an MCP server`},
		"every server":        {file: "[tools]\n\"*/pay\" = \"read\"", want: `config: FILE: tools = "*/pay": a tool of an MCP server`},
		"parted elsewhere":    {file: "[tools]\n\"a__b/c\" = \"read\"", want: `config: FILE: tools = "a__b/c": a tool of an MCP server`},
		"category":            {file: "[tools]\n\"bank/pay\" = \"harmless\"", want: `config: FILE: tools, bank/pay = "harmless": one of read, secret,`},
		"no category":         {file: "[tools]\n\"bank/pay\" = true", want: `config: FILE: tools, bank/pay: one of read, secret,`},
		"twice said":          {file: "[tools]\n\"bank/pay\" = \"payment\"\nmcp__bank__pay = \"read\"", want: `config: FILE: tools = "mcp__bank__pay": a tool that stands once; it is also there as bank/pay`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			refused(t, tt.file, tt.env, tt.want)
		})
	}
}

func TestServerWarnings(t *testing.T) {
	t.Parallel()
	c, _, err := load(t, "[[project]]\nname = \"shop\"\npath = \"/srv/shop\"\n[[mcp]]\nname = \"bank\"\ncommand = \"node\"\nargs = [\"/srv/shop/bank.js\"]\n[tools]\n\"bnak/pay\" = \"read\"\n")
	if err != nil {
		t.Fatal(err)
	}
	w := strings.Join(c.Warnings(), "\n")
	for _, want := range []string{"mcp bank is a program in the folder of project shop, whose agent can change it", "tools names bnak/pay, and no MCP server bnak is configured"} {
		if !strings.Contains(w, want) {
			t.Errorf("no warning %q in %q", want, w)
		}
	}
	c, file, err := load(t, "[[mcp]]\nname = \"bank\"\ncommand = \"x\"\nenv = { A = \"b\" }\n")
	if err != nil {
		t.Fatal(err)
	}
	if w := c.Warnings(); len(w) != 0 {
		t.Errorf("%s is private, and yet: %q", file, w)
	}
}

// Whatever names a tool in the file, only that tool of that server gets the owner's word, however a runtime spells it.
func TestTheOwnersWordIsForThatToolOnly(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		part := rapid.StringMatching(`[a-c_/-]{1,5}`)
		key := rapid.OneOf(
			rapid.Map(rapid.SliceOfN(part, 2, 2), func(p []string) string { return p[0] + "/" + p[1] }),
			rapid.Map(rapid.SliceOfN(part, 2, 2), func(p []string) string { return "mcp__" + p[0] + "__" + p[1] }),
		).Draw(t, "key")
		tool, ok := parseTool(key)
		if !ok {
			return
		}
		server, name, _ := strings.Cut(tool, "/")
		owner := map[string]policy.Category{tool: policy.Read}
		for _, spelt := range []string{server + "/" + name, server + "__" + name, "mcp__" + server + "__" + name} {
			if got := policy.ClassifyTool(spelt, policy.Hints{}, owner); !reflect.DeepEqual(got, []policy.Category{policy.Read}) {
				t.Fatalf("%q stands for %q, and %q is %v", key, tool, spelt, got)
			}
		}
		other := rapid.StringMatching(`[a-c]{1,3}(-[a-c]{1,3})?`).Draw(t, "other")
		if other == server {
			return
		}
		if got := policy.ClassifyTool("mcp__"+other+"__"+name, policy.Hints{}, owner); !reflect.DeepEqual(got, []policy.Category{policy.Unknown}) {
			t.Fatalf("%q is %v by %q", other+"/"+name, got, tool)
		}
	})
}
