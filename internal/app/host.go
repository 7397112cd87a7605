package app

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"drawbridge/approvals"
	"drawbridge/bridge"
	"drawbridge/internal/store"
)

// host is the half that runs agents.
type host struct {
	approvals *approvals.Service
	loop      *bridge.Host
}

// newHost also takes what is to be called once gateways know what the host offers.
func newHost(o Options, db store.DB, ready func()) (*host, error) {
	c := o.Config
	home, err := os.UserHomeDir()
	if err != nil {
		return nil, fmt.Errorf("app: home folder: %w", err)
	}
	rs, err := runtimes(o)
	if err != nil {
		return nil, err
	}
	log := bridge.NewLog(db, c.HostName)
	inc := incarnation()
	svc := approvals.New(approvals.Config{
		DB: db, Host: c.HostName, Incarnation: inc, Logger: o.Logger, Deadline: c.Timing.ApprovalDeadline,
		Beat: c.Timing.Beat, DeadAfter: c.Timing.DeadAfter, Reread: c.Timing.Reread, SweepEvery: c.Timing.Sweep,
		Opened: log.Opened, Resolved: log.Resolved,
	})
	loop := bridge.NewHost(bridge.HostConfig{
		DB: db, Name: c.HostName, Incarnation: inc, Projects: projects(c), Runtimes: rs, Approvals: svc, Log: log,
		Data: filepath.Join(c.DataDir, "host"), Home: home, SessionIdle: c.Timing.SessionIdle, Reread: c.Timing.Reread, Grace: grace,
		Ready: ready, Logger: o.Logger,
	})
	return &host{approvals: svc, loop: loop}, nil
}

// run beats for as long as turns may still run: a host that stops is not dead before it has said its last words.
func (h *host) run(ctx context.Context) error {
	beats := newGroup(context.WithoutCancel(ctx))
	beats.start("approvals", h.approvals.Run)
	loop, cancel := context.WithCancel(ctx)
	defer cancel()
	failed := context.AfterFunc(beats.ctx, cancel) // without beats the loop is of no use
	defer failed()
	err := h.loop.Run(loop)
	if err == nil && beats.ctx.Err() != nil && ctx.Err() == nil {
		return beats.wait()
	}
	beats.cancel(nil)
	beats.wg.Wait()
	return err
}
