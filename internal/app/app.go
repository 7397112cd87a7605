// Package app wires the rooms together and stops them in order. A test can run the whole program in process.
//
// It guarantees that what it has started has ended when its functions return, and that a stop has two phases: first
// nothing more is taken in, then what runs is given its time, and only then is the store closed. It holds no rules of
// its own.
package app

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"drawbridge/bot"
	"drawbridge/bridge"
	"drawbridge/internal/config"
	"drawbridge/internal/process"
	"drawbridge/internal/store"
	"drawbridge/internal/store/bolt"
	"drawbridge/internal/store/redis"
	"drawbridge/policy"
	"drawbridge/runner"
)

// Options is what a process of Drawbridge is made of.
type Options struct {
	Config config.Config // checked for Role
	Role   config.Role
	Logger *slog.Logger
	// Console is where the pairing code of the first owner is written; nil writes it nowhere.
	Console io.Writer
	// Pace is how fast messages go out; zero is Telegram's.
	Pace bot.Pace
	// AgentEnv is added to the environment of the commands that agents run.
	AgentEnv map[string]string
	// Runtimes are added to those of the configuration.
	Runtimes []runner.Runtime
	// Ready is called once everything has begun; nil is fine.
	Ready func()
}

// grace is how long running turns may still take when the process is asked to stop.
const grace = 2 * time.Second

// Run runs a gateway, a host, or both, until ctx ends or something that cannot be mended happens.
func Run(ctx context.Context, o Options) error {
	if err := process.SetUndumpable(); err != nil {
		return fmt.Errorf("app: protect the process from being read: %w", err)
	}
	if err := os.MkdirAll(o.Config.DataDir, 0o700); err != nil {
		return fmt.Errorf("app: data folder: %w", err)
	}
	db, err := openStore(ctx, o)
	if err != nil {
		return err
	}
	defer db.Close() //nolint:errcheck // nothing is left to be written
	return serve(ctx, o, db)
}

// serve runs the halves of the role over an open store.
func serve(ctx context.Context, o Options, db store.DB) error {
	var gw *gateway
	var h *host
	var err error
	offered := make(chan struct{})
	if o.Role != config.RoleHost {
		if gw, err = newGateway(o, db); err != nil {
			return err
		}
	}
	if o.Role != config.RoleGateway {
		if h, err = newHost(o, db, func() { close(offered) }); err != nil {
			return err
		}
	}
	g := newGroup(ctx)
	g.start("control", func(ctx context.Context) error { return serveControl(ctx, o, db, h) })
	if h != nil {
		g.start("host", h.run)
		// A prompt that waits at Telegram must not be told that no host has a project.
		select {
		case <-offered:
			o.Logger.Info("host is ready", "host", o.Config.HostName)
		case <-g.ctx.Done():
		}
	}
	if gw != nil {
		g.start("gateway", gw.run)
	}
	if o.Ready != nil {
		o.Ready()
	}
	return g.wait()
}

func openStore(ctx context.Context, o Options) (store.DB, error) {
	c := o.Config
	if !c.RedisURL.Set() {
		db, err := bolt.Open(filepath.Join(c.DataDir, "drawbridge.db"), bolt.Options{})
		if err != nil {
			return nil, fmt.Errorf("app: open the embedded store: %w", err)
		}
		return db, nil
	}
	db, err := redis.Open(ctx, c.RedisURL.Reveal(), redis.Options{Prefix: "drawbridge:{" + c.Namespace + "}:", Logger: o.Logger})
	if err != nil {
		return nil, fmt.Errorf("app: open the store: %w", err)
	}
	return db, nil
}

// group runs long-lived things together: when one ends with an error, all are asked to stop.
type group struct {
	ctx    context.Context //nolint:containedctx // the life of what was started
	cancel context.CancelCauseFunc
	wg     sync.WaitGroup
}

func newGroup(ctx context.Context) *group {
	ctx, cancel := context.WithCancelCause(ctx)
	return &group{ctx: ctx, cancel: cancel}
}

// errEnded is the cause when something long-lived ended by itself.
var errEnded = errors.New("ended unexpectedly")

func (g *group) start(name string, run func(context.Context) error) {
	g.wg.Go(func() {
		err := run(g.ctx)
		if err == nil && g.ctx.Err() == nil {
			err = errEnded
		}
		if err != nil && g.ctx.Err() == nil {
			g.cancel(fmt.Errorf("app: %s: %w", name, err))
		}
	})
}

// wait returns nil when the stop was asked for from outside, and otherwise what ended first.
func (g *group) wait() error {
	g.wg.Wait()
	err := context.Cause(g.ctx)
	g.cancel(nil)
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

func projects(c config.Config) []bridge.Project {
	var out []bridge.Project
	for _, p := range c.Projects {
		out = append(out, bridge.Project{Name: p.Name, Folder: p.Path, Runtime: p.Runtime, PublishIsOrdinary: p.PublishIsOrdinary})
	}
	return out
}

func incarnation() string { return rand.Text() }

// leaseOwner is who holds the gateways' lease. Whoever has the embedded store open is the only one, so a gateway that was
// killed is known to be gone: the next one goes by the same name and need not wait until the lease lapses.
func leaseOwner(c config.Config) string {
	if !c.RedisURL.Set() {
		return "embedded"
	}
	return incarnation()
}

func defaultProject(c config.Config) string {
	if len(c.Projects) > 0 {
		return c.Projects[0].Name
	}
	return ""
}

func defaultMode(c config.Config) policy.Mode { return c.DefaultMode.AtMost(policy.FullAccess) }
