package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"time"

	"drawbridge/bot"
	"drawbridge/internal/config"
	"drawbridge/internal/modeltest"
	"drawbridge/internal/telegramtest"
)

// DemoOptions are the flags of `drawbridge demo`.
type DemoOptions struct {
	Listen   string // loopback address of the simulated Telegram; a free port if empty
	Headless bool   // no chat in the terminal; the first line on Out says where the simulated Telegram is
	Runtime  string // native, codex or claude; native if empty
	Folder   string // for everything that the demo writes; a new temporary one, removed at the end, if empty
	In       io.Reader
	Out      io.Writer
	Logger   *slog.Logger
}

// Demo runs Drawbridge against a simulated Telegram and a scripted model: the same code as with real ones, on the
// embedded store, with a small Go project to work on. Nothing leaves the machine. It ends with ctx, or when the person in
// the terminal leaves.
func Demo(ctx context.Context, o DemoOptions) (err error) {
	o.Runtime = cmp.Or(o.Runtime, config.KindNative)
	folder := o.Folder
	if folder == "" {
		if folder, err = demoFolder(o.Runtime); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, removeAll(folder)) }()
	}
	project := filepath.Join(folder, "shop")
	if _, statErr := os.Stat(project); errors.Is(statErr, os.ErrNotExist) {
		if err := modeltest.Workspace(project); err != nil {
			return fmt.Errorf("app: demo project: %w", err)
		}
	}
	listen := o.Listen
	if listen == "" {
		listen = "127.0.0.1:0"
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", listen)
	if err != nil {
		return fmt.Errorf("app: demo: listen on %s: %w", listen, err)
	}
	addr := "http://" + l.Addr().String()
	script, err := demoScript(o.Runtime, project)
	if err != nil {
		return errors.Join(err, l.Close())
	}
	model, err := modeltest.New(modeltest.Config{Script: script, Pace: 15 * time.Millisecond})
	if err != nil {
		return errors.Join(fmt.Errorf("app: demo model: %w", err), l.Close())
	}
	c, err := demoConfig(folder, project, addr, model.URL(), o.Runtime)
	if err != nil {
		return errors.Join(err, l.Close())
	}

	servers := newGroup(context.WithoutCancel(ctx)) // they outlive the bot, whose last messages they take
	sim := telegramtest.New(telegramtest.Config{
		Token: c.Telegram.Token.Reveal(), Logger: o.Logger, Rates: telegramtest.Rates{Scale: demoPace},
	})
	servers.start("simulated Telegram", func(ctx context.Context) error { return sim.Serve(ctx, l) })
	servers.start("scripted model", model.Run)
	defer func() { servers.cancel(nil); servers.wg.Wait() }()

	all := newGroup(ctx)
	all.start("drawbridge", func(ctx context.Context) error {
		return Run(ctx, Options{
			Config: c, Role: config.RoleServe, Logger: o.Logger, Pace: bot.DefaultPace().Faster(demoPace),
			AgentEnv: map[string]string{"GOCACHE": goCache()},
			Ready: func() {
				if o.Headless {
					fmt.Fprintf(o.Out, "ready %s\n", addr) //nolint:errcheck // nobody is there to be told
				}
			},
		})
	})
	if !o.Headless {
		all.start("terminal", func(ctx context.Context) error {
			err := runTerminal(ctx, &terminal{api: addr, project: project, in: o.In, out: o.Out})
			all.cancel(context.Canceled) // the person has left
			return err
		})
	}
	return all.wait()
}

// demoPace is how much faster than in real life messages go out, and are allowed to by the simulated Telegram.
const demoPace = 8

// goCache is the Go build cache of whoever runs the demo. Its agent tests a Go project, and in a home folder of its own it
// would first have to compile the standard library. Empty, so that Go chooses, if there is none.
func goCache() string {
	if dir := os.Getenv("GOCACHE"); filepath.IsAbs(dir) {
		return dir
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "go-build")
}

// demoConfig is made by the same loader as a real one, from an environment of its own: nothing of the machine's
// configuration is read.
func demoConfig(folder, project, telegram, model, runtime string) (config.Config, error) {
	env := []string{
		"HOME=" + folder,
		"DRAWBRIDGE_DATA_DIR=" + filepath.Join(folder, "data"),
		"DRAWBRIDGE_HOST_NAME=demo",
		"DRAWBRIDGE_TOKEN=" + telegramtest.DefaultToken,
		"DRAWBRIDGE_BOT_API_URL=" + telegram,
		fmt.Sprintf("DRAWBRIDGE_OWNERS=%d", telegramtest.AdaID),
		fmt.Sprintf("DRAWBRIDGE_OPERATORS=%d", telegramtest.GraceID),
		fmt.Sprintf("DRAWBRIDGE_VIEWERS=%d", telegramtest.LinusID),
		"DRAWBRIDGE_PROJECTS=shop=" + project,
		"DRAWBRIDGE_MODEL_URL=" + model,
		"DRAWBRIDGE_MODEL=scripted",
		"DRAWBRIDGE_DEFAULT_RUNTIME=" + runtime,
	}
	path := filepath.Join(folder, "drawbridge.toml")
	if err := os.WriteFile(path, []byte(demoRuntime(runtime, model)), 0o600); err != nil {
		return config.Config{}, fmt.Errorf("app: demo configuration: %w", err)
	}
	c, err := config.Load(env, path)
	if err != nil {
		return config.Config{}, fmt.Errorf("app: demo configuration: %w", err)
	}
	return c.For(config.RoleServe)
}

// removeAll also removes what a Go module cache made read-only.
func removeAll(folder string) error {
	_ = filepath.WalkDir(folder, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			_ = os.Chmod(path, 0o700) //nolint:gosec // a folder has to be entered to be emptied
		}
		return nil
	})
	return os.RemoveAll(folder)
}
