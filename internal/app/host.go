package app

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"drawbridge/approvals"
	"drawbridge/bridge"
	"drawbridge/internal/chatapi"
	"drawbridge/internal/config"
	"drawbridge/internal/store"
)

// host is the half that runs agents.
type host struct {
	approvals *approvals.Service
	loop      *bridge.Host
	home      string // of the person who runs it
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
	judge, err := reviewer(c)
	if err != nil {
		return nil, err
	}
	inc := incarnation()
	ac := approvals.Config{
		DB: db, Host: c.HostName, Incarnation: inc, Logger: o.Logger, Deadline: c.Timing.ApprovalDeadline,
		Beat: c.Timing.Beat, DeadAfter: c.Timing.DeadAfter, Reread: c.Timing.Reread, SweepEvery: c.Timing.Sweep,
		Opened: log.Opened, Resolved: log.Resolved, Reviewed: log.Reviewed, ReviewCost: log.ReviewCost,
	}
	model := ""
	if judge != nil {
		ac.Reviewer, ac.ReviewTime, model = judge, c.Reviewer.Timeout, c.Reviewer.Model
	}
	svc := approvals.New(ac)
	loop := bridge.NewHost(bridge.HostConfig{
		DB: db, Name: c.HostName, Incarnation: inc, Projects: projects(c), Runtimes: rs, Reviewer: model, Approvals: svc, Log: log,
		Data: filepath.Join(c.DataDir, "host"), Home: home, SessionIdle: c.Timing.SessionIdle, Reread: c.Timing.Reread, Grace: grace,
		Ready: ready, Logger: o.Logger,
	})
	return &host{approvals: svc, loop: loop, home: home}, nil
}

// reviewer is what the owner has chosen to decide in auto; nil if nothing.
func reviewer(c config.Config) (*approvals.ModelReviewer, error) {
	if c.Reviewer == nil {
		return nil, nil //nolint:nilnil // none is a choice
	}
	// Somebody waits for the answer: it is better to ask a person soon than a model that is not there again and again.
	client, err := chatapi.New(chatapi.Config{
		BaseURL: c.Reviewer.BaseURL, Key: chatapi.Key(c.Reviewer.Key.Reveal()),
		Attempts: 2, Backoff: 500 * time.Millisecond, MaxWait: 2 * time.Second, Idle: c.Reviewer.Timeout, MaxBody: 1 << 20,
	})
	if err != nil {
		return nil, fmt.Errorf("app: reviewer: %w", err)
	}
	return approvals.NewModelReviewer(client, c.Reviewer.Model), nil
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
