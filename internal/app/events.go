package app

import (
	"context"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"drawbridge/bot"
	"drawbridge/bridge/task"
	"drawbridge/internal/config"
	"drawbridge/internal/hooks"
	"drawbridge/internal/store"
)

// deliveries is what takes the deliveries of other programs; nil without hooks.
func (g *gateway) deliveries(db store.DB) (*hooks.Handler, error) {
	c := g.o.Config
	if len(c.Hooks) == 0 {
		return nil, nil //nolint:nilnil // none is a choice
	}
	hc := hooks.Config{DB: db, Chats: g.chats, Tasks: g.tasks, Logger: g.o.Logger}
	for _, k := range c.Hooks {
		chat, err := bot.ParseChat(k.Chat)
		if err != nil {
			return nil, fmt.Errorf("app: hook %s: %w", k.Name, err)
		}
		hc.Hooks = append(hc.Hooks, hooks.Hook{Name: k.Name, Secret: k.Secret.Reveal(), Chat: chat.Key(), Work: task.Work{
			Title: k.Title, Steps: k.Steps, Host: k.Host, Project: k.Project, Runtime: k.Runtime, Mode: k.Mode,
			Execution: task.Execution(k.Execution), By: strconv.FormatInt(k.By, 10), Name: "hook " + k.Name,
		}})
	}
	return hooks.New(hc)
}

// serveHooks takes deliveries until ctx ends. Where it can't listen it tries again: another gateway of this machine may do
// so, in whose place this one stands when that has gone.
func (g *gateway) serveHooks(ctx context.Context) error {
	address := g.o.Config.HooksListen
	var lc net.ListenConfig
	for said := false; ; said = true {
		l, err := lc.Listen(ctx, "tcp", address)
		if err == nil {
			g.o.Logger.Info("deliveries to hooks are taken", "address", address)
			return serveHTTP(ctx, g.hooks.Server(), l)
		}
		if ctx.Err() == nil && !said {
			g.o.Logger.Warn("cannot listen for deliveries to hooks; trying again", "address", address, "err", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(2 * time.Second):
		}
	}
}

// taskHooks is what the owner has done when something happens to a task.
func taskHooks(c config.Config) []task.Hook {
	var out []task.Hook
	for _, o := range c.On {
		env := map[string]string{}
		for name, value := range o.Env {
			env[name] = value.Reveal()
		}
		out = append(out, task.Hook{
			Event: task.HookEvent(o.Event), Project: o.Project, Message: o.Message, Command: o.Command, Folder: o.Folder, Env: env, Limit: o.Limit,
		})
	}
	return out
}

// hookHome is the home folder of the commands that are run on tasks.
func hookHome(c config.Config) string { return filepath.Join(c.DataDir, "hooks") }

// sayEvents prints where deliveries to hooks are taken and who can reach that, and what is run on tasks, as far as it is
// there. Both are the gateway's.
func sayEvents(say func(string, ...any), c config.Config) (unwell bool) {
	if len(c.Hooks) > 0 {
		who := "only from this machine"
		if c.HooksOpen() {
			who = "open to the network, unencrypted: put something before it that ends TLS"
		}
		say("hooks: deliveries are taken at %s, %s\n", c.HooksListen, who)
		for _, k := range c.Hooks {
			say("  %s%s starts a task in chat %s\n", hooks.Prefix, k.Name, k.Chat)
		}
	}
	for i, o := range c.On {
		if len(o.Command) == 0 {
			continue
		}
		say("on %d: %s runs %s, where the gateway is\n", i+1, o.Event, strings.Join(o.Command, " "))
		if _, err := exec.LookPath(o.Command[0]); err != nil {
			say("  used: no: %s is no program that is found here. Install it, or write its absolute path as the first of command\n", o.Command[0])
			unwell = true
		}
	}
	return unwell
}
