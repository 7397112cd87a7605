package app

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"drawbridge/internal/config"
	"drawbridge/internal/desk"
)

const hookUsage = `What an agent in your own terminal asks is asked in a chat as well; whoever answers first decides. See docs/desk.md.

  drawbridge hook install claude|codex     connect the terminals of this user
  drawbridge hook uninstall claude|codex   take that out again
  drawbridge hook status                   what is connected, and whether a chat is chosen

  --project  for the terminals in this folder only, in place of --user
`

// terminalWait is how long a terminal waits that does not ask while its hook runs.
const terminalWait = time.Minute

// hookMost is how long the hook of a terminal that asks meanwhile may run: longer than any deadline of an approval.
const hookMost = 25 * time.Hour

// hookTerms is how a kind of terminal is told about.
type hookTerms struct {
	name string
	// waits says that the terminal asks only when its hook has ended.
	waits    bool
	settings func(p Process, project bool) (string, error)
	after    string // what the person has to do yet
}

func termsOf(a desk.Agent) hookTerms {
	if a == desk.Codex {
		return hookTerms{
			name: "Codex", waits: true, after: "Codex runs a hook only once you trust it: type /hooks in a terminal with Codex.",
			settings: func(p Process, project bool) (string, error) {
				return settingsPath(p, project, "CODEX_HOME", ".codex", "hooks.json", "hooks.json")
			},
		}
	}
	return hookTerms{
		name: "Claude Code", after: "Terminals that are open already take it up when they are started again.",
		settings: func(p Process, project bool) (string, error) {
			// What is in the project's own settings is shared with others, who may not have this program.
			return settingsPath(p, project, "CLAUDE_CONFIG_DIR", ".claude", "settings.json", "settings.local.json")
		},
	}
}

// settingsPath is where an agent keeps its hooks, for its user or for the folder in which the command was given.
func settingsPath(p Process, project bool, variable, folder, user, own string) (string, error) {
	if project {
		here, err := os.Getwd()
		if err != nil {
			return "", fmt.Errorf("app: hook: %w", err)
		}
		return filepath.Join(here, folder, own), nil
	}
	if dir := p.getenv(variable); dir != "" {
		return filepath.Join(dir, user), nil
	}
	home := p.getenv("HOME")
	if home == "" {
		return "", errors.New("app: HOME is not set")
	}
	return filepath.Join(home, folder, user), nil
}

// getenv is a variable of the environment that the program was started with.
func (p Process) getenv(name string) string {
	value := ""
	for _, e := range p.Env {
		if v, ok := strings.CutPrefix(e, name+"="); ok {
			value = v
		}
	}
	return value
}

func hookCommand(ctx context.Context, p Process, args []string) error {
	verb := ""
	if len(args) > 0 {
		verb, args = args[0], args[1:]
	}
	switch verb {
	case "run":
		hookRun(ctx, p, args)
		return nil
	case "install", "uninstall":
		return hookChange(p, verb == "install", args)
	case "status":
		return hookStatus(ctx, p, args)
	case "help", "-h", "--help", "-help":
		_, err := fmt.Fprint(p.Out, hookUsage)
		return err
	}
	fmt.Fprint(p.Err, hookUsage) //nolint:errcheck // nothing else can be said
	return errFlags
}

// agentOf takes the agent's name from the front of a command line.
func agentOf(p Process, args []string) (desk.Agent, []string, error) {
	if len(args) > 0 {
		if a, err := desk.ParseAgent(args[0]); err == nil {
			return a, args[1:], nil
		}
	}
	fmt.Fprint(p.Err, hookUsage) //nolint:errcheck // nothing else can be said
	return "", nil, errFlags
}

// hookRun is what an agent runs. It says nothing and does not fail, whatever happens: then the terminal asks as always.
func hookRun(ctx context.Context, p Process, args []string) {
	if len(args) == 0 {
		return
	}
	f := flag.NewFlagSet("hook run", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	data := f.String("data", "", "the data `folder` of the host")
	wait := f.Duration("wait", 0, "how long the terminal waits")
	a, err := desk.ParseAgent(args[0])
	if err != nil || f.Parse(args[1:]) != nil {
		return
	}
	c := desk.NewClient(desk.ClientConfig{Agent: a, Sockets: hostSockets(*data), Within: *wait, Getenv: p.getenv})
	_ = c.Run(ctx, p.In, p.Out) // an agent must not hear of it
}

// hostSockets are those on which a host may listen that keeps its data in a folder.
func hostSockets(data string) []string {
	return []string{filepath.Join(data, "control.sock"), filepath.Join(data, "control-"+string(config.RoleHost)+".sock")}
}

func hookChange(p Process, install bool, args []string) error {
	a, args, err := agentOf(p, args)
	if err != nil {
		return err
	}
	terms := termsOf(a)
	f := flag.NewFlagSet("hook", flag.ContinueOnError)
	project := f.Bool("project", false, "for terminals in this folder only")
	user := f.Bool("user", false, "for all terminals of this user (what is done without either)")
	file := f.String("config", "", "the configuration `file` of the host")
	wait := f.Duration("wait", terminalWait, "how long "+terms.name+" waits for the chat before it asks in the terminal")
	if err := parse(f, p, args); err != nil {
		return err
	}
	if *project && *user {
		return errors.New("app: choose --project or --user")
	}
	path, err := terms.settings(p, *project)
	if err != nil {
		return err
	}
	if !install {
		gone, err := desk.Uninstall(path, a)
		if err != nil {
			return err
		}
		return tell(p.Out, gone, terms.name+" is not connected any more: "+path, terms.name+" was not connected there: "+path)
	}
	c, err := config.Load(p.Env, *file)
	if err != nil {
		return err
	}
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("app: hook: %w", err)
	}
	data, err := filepath.Abs(c.DataDir)
	if err != nil {
		return fmt.Errorf("app: hook: %w", err)
	}
	flags := []string{"--data", desk.Quote(data)}
	h := desk.Hook{Timeout: int(hookMost / time.Second), Status: "Drawbridge asks in the chat, too"}
	if terms.waits {
		if *wait < time.Second || *wait > time.Hour {
			return errors.New("app: --wait is between 1s and 1h")
		}
		flags = append(flags, "--wait", wait.String())
		h.Timeout, h.Status = int((*wait+15*time.Second)/time.Second), "Drawbridge asks in the chat; the terminal asks after "+wait.String()
	}
	h.Command = desk.Command(program, a, flags...)
	changed, err := desk.Install(path, a, h)
	if err != nil {
		return err
	}
	return tell(p.Out, changed,
		terms.name+" is connected: "+path+"\n"+terms.after+"\nIn the chat where it shall ask, send /desk to the bot.", terms.name+" is connected already: "+path)
}

func tell(w io.Writer, changed bool, yes, no string) error {
	if !changed {
		yes = no
	}
	_, err := fmt.Fprintln(w, yes)
	return err
}

func hookStatus(ctx context.Context, p Process, args []string) error {
	f := flag.NewFlagSet("hook status", flag.ContinueOnError)
	file := f.String("config", "", "the configuration `file` of the host")
	if err := parse(f, p, args); err != nil {
		return err
	}
	c, err := config.Load(p.Env, *file)
	if err != nil {
		return err
	}
	var out strings.Builder
	for _, a := range []desk.Agent{desk.Claude, desk.Codex} {
		terms := termsOf(a)
		var by []string
		for _, project := range []bool{false, true} {
			path, err := terms.settings(p, project)
			if err != nil {
				return err
			}
			command, err := desk.Installed(path, a)
			if err != nil {
				return err
			}
			if command != "" && !slices.Contains(by, path) {
				by = append(by, path)
			}
		}
		if len(by) == 0 {
			fmt.Fprintln(&out, terms.name+": not connected")
			continue
		}
		fmt.Fprintln(&out, terms.name+": connected by "+strings.Join(by, " and "))
	}
	switch s, alive := desk.Stand(ctx, hostSockets(c.DataDir)); {
	case !alive:
		fmt.Fprintln(&out, "Drawbridge does not run here: the terminals alone ask.")
	case !s.Chat:
		fmt.Fprintln(&out, "Drawbridge runs, but no chat is chosen: send /desk to the bot where the terminals shall ask.")
	default:
		fmt.Fprintln(&out, "Drawbridge runs, and a chat is chosen.")
	}
	_, err = io.WriteString(p.Out, out.String())
	return err
}
