package app

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	"drawbridge/bot"
	"drawbridge/internal/config"
	"drawbridge/internal/process"
)

// Process is what the program was started with.
type Process struct {
	Args []string // without the program's name
	Env  []string
	In   io.Reader
	Out  io.Writer
	Err  io.Writer
}

const usage = `Drawbridge bridges Telegram chats to coding agents and puts their questions on buttons.

  drawbridge demo      try it here: no token, no network, nothing to install
  drawbridge serve     gateway and host in one process; what most people want
  drawbridge gateway   only the part that speaks to Telegram (needs Redis)
  drawbridge host      only the part that runs agents (needs Redis)
  drawbridge config    what is in force, and where each value came from
  drawbridge doctor    whether the projects and agents of this host can be used, and why not
  drawbridge hook      have what agents in your own terminals ask come to a chat, too
  drawbridge audit     who decided what, as lines of JSON
  drawbridge version

  Each command takes -h. Configuration: docs/configuration.md
`

// Main carries a command line out and returns the exit code: 0, 1 for what went wrong, 2 for a command line that is wrong.
func Main(ctx context.Context, p Process) int {
	if len(p.Args) == 0 {
		fmt.Fprint(p.Err, usage) //nolint:errcheck // nothing else can be said
		return 2
	}
	name, args := p.Args[0], p.Args[1:]
	if name == process.SuperviseCommand { // never typed by a person: how the program starts itself over an agent
		return process.Supervise(args)
	}
	commands := map[string]func(context.Context, Process, []string) error{
		"demo":    demoCommand,
		"serve":   roleCommand(config.RoleServe),
		"gateway": roleCommand(config.RoleGateway),
		"host":    roleCommand(config.RoleHost),
		"config":  configCommand,
		"audit":   auditCommand,
		"doctor":  doctorCommand,
		"hook":    hookCommand,
		"version": versionCommand,
		"help":    helpCommand, "-h": helpCommand, "--help": helpCommand, "-help": helpCommand,
	}
	run, ok := commands[name]
	if !ok {
		fmt.Fprintf(p.Err, "drawbridge: unknown command %q; drawbridge help lists them\n", name) //nolint:errcheck // nothing else can be said
		return 2
	}
	err := run(ctx, p, args)
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return 0
	case errors.Is(err, errFlags):
		return 2
	}
	fmt.Fprintln(p.Err, "drawbridge: "+strings.TrimPrefix(err.Error(), "app: ")) //nolint:errcheck // nothing else can be said
	return 1
}

// errFlags says that the flag package has printed what is wrong.
var errFlags = errors.New("wrong flags")

func parse(f *flag.FlagSet, p Process, args []string) error {
	f.SetOutput(p.Err)
	if err := f.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return err
		}
		return errFlags
	}
	if f.NArg() > 0 {
		fmt.Fprintf(p.Err, "drawbridge %s: unexpected %q\n", f.Name(), f.Arg(0)) //nolint:errcheck // nothing else can be said
		return errFlags
	}
	return nil
}

func helpCommand(_ context.Context, p Process, _ []string) error {
	_, err := fmt.Fprint(p.Out, usage)
	return err
}

func versionCommand(_ context.Context, p Process, _ []string) error {
	version := "development"
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		version = info.Main.Version
	}
	_, err := fmt.Fprintln(p.Out, "drawbridge "+version)
	return err
}

func roleCommand(role config.Role) func(context.Context, Process, []string) error {
	return func(ctx context.Context, p Process, args []string) error {
		f := flag.NewFlagSet(string(role), flag.ContinueOnError)
		file := f.String("config", "", "the configuration `file`")
		if err := parse(f, p, args); err != nil {
			return err
		}
		c, err := config.Load(p.Env, *file)
		if err != nil {
			return err
		}
		if c, err = c.For(role); err != nil {
			return err
		}
		log := logger(p.Err, c.Log)
		for _, w := range c.Warnings() {
			log.Warn("configuration", "warning", w)
		}
		log.Info("starting", "role", string(role), "host", c.HostName)
		err = Run(ctx, Options{Config: c, Role: role, Logger: log, Console: p.Err, Pace: pace(c)})
		log.Info("stopped")
		return err
	}
}

// pace is Telegram's, faster by the configured factor (which is 1 outside of tests).
func pace(c config.Config) bot.Pace { return bot.DefaultPace().Faster(c.Timing.Pace) }

func logger(w io.Writer, l config.Log) *slog.Logger {
	opts := &slog.HandlerOptions{Level: l.Level}
	if l.Format == "json" {
		return slog.New(slog.NewJSONHandler(w, opts))
	}
	return slog.New(slog.NewTextHandler(w, opts))
}

func configCommand(_ context.Context, p Process, args []string) error {
	f := flag.NewFlagSet("config", flag.ContinueOnError)
	file := f.String("config", "", "the configuration `file`")
	if err := parse(f, p, args); err != nil {
		return err
	}
	c, err := config.Load(p.Env, *file)
	if err != nil {
		return err
	}
	for _, w := range c.Warnings() {
		fmt.Fprintln(p.Err, "warning: "+w) //nolint:errcheck // the values follow
	}
	return c.Explain(p.Out)
}

func doctorCommand(ctx context.Context, p Process, args []string) error {
	f := flag.NewFlagSet("doctor", flag.ContinueOnError)
	file := f.String("config", "", "the configuration `file`")
	if err := parse(f, p, args); err != nil {
		return err
	}
	c, err := config.Load(p.Env, *file)
	if err != nil {
		return err
	}
	return Doctor(ctx, c, p.Out)
}

func auditCommand(ctx context.Context, p Process, args []string) error {
	f := flag.NewFlagSet("audit", flag.ContinueOnError)
	file := f.String("config", "", "the configuration `file`")
	since := f.Duration("since", 24*time.Hour, "how far to look back")
	limit := f.Int("limit", 10_000, "how many lines at the most")
	if err := parse(f, p, args); err != nil {
		return err
	}
	c, err := config.Load(p.Env, *file)
	if err != nil {
		return err
	}
	return Audit(ctx, c, time.Now().Add(-*since), *limit, p.Out)
}

func demoCommand(ctx context.Context, p Process, args []string) error {
	f := flag.NewFlagSet("demo", flag.ContinueOnError)
	o := DemoOptions{In: p.In, Out: p.Out}
	f.StringVar(&o.Listen, "listen", "", "loopback `address` of the simulated Telegram (a free port)")
	f.StringVar(&o.Runtime, "runtime", "native", "`agent` to work with: native, or codex or claude where the program is installed")
	f.BoolVar(&o.Headless, "headless", false, "no chat in the terminal: for programs; the first line says where to connect")
	f.StringVar(&o.Folder, "folder", "", "`folder` for what the demo writes, kept at the end (a temporary one, removed)")
	verbose := f.Bool("verbose", false, "show the log")
	if err := parse(f, p, args); err != nil {
		return err
	}
	level := slog.LevelError
	if *verbose {
		level = slog.LevelInfo
	}
	if o.Folder != "" {
		path, err := filepath.Abs(o.Folder)
		if err != nil {
			return fmt.Errorf("app: demo folder: %w", err)
		}
		if err := os.MkdirAll(path, 0o700); err != nil {
			return fmt.Errorf("app: demo folder: %w", err)
		}
		o.Folder = path
	}
	o.Logger = logger(p.Err, config.Log{Level: level, Format: "text"})
	return Demo(ctx, o)
}
