package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"drawbridge/approvals"
	"drawbridge/bot"
	"drawbridge/bridge"
	"drawbridge/bridge/task"
	"drawbridge/internal/hooks"
	"drawbridge/internal/store"
)

// leaseName is what the gateways of one bot share: who holds it speaks to Telegram.
const leaseName = "telegram"

// gateway is the half that speaks to Telegram and decides.
type gateway struct {
	o         Options
	db        store.DB
	api       *bot.API
	acker     *bot.Acker
	people    *bot.People
	chats     *bridge.Chats
	approvals *approvals.Service
	tasks     *task.Service
	inbox     *bot.Inbox
	outbox    *bot.Outbox
	bot       *bot.Bot
	webhook   *bot.Webhook
	hooks     *hooks.Handler // nil without hooks
}

func newGateway(o Options, db store.DB) (*gateway, error) {
	c := o.Config
	g := &gateway{o: o, db: db}
	var err error
	reach := bot.APIConfig{Token: c.Telegram.Token.Reveal(), URL: c.Telegram.APIURL}
	if g.api, err = bot.NewAPI(reach); err != nil {
		return nil, fmt.Errorf("app: Telegram: %w", err)
	}
	acks, err := bot.NewAPI(reach) // connections of its own: a tap is never answered behind a message that is being sent
	if err != nil {
		return nil, fmt.Errorf("app: Telegram: %w", err)
	}
	g.acker = bot.NewAcker(bot.AckerConfig{API: acks, Logger: o.Logger})
	g.people = bot.NewPeople(bot.PeopleConfig{DB: db, Owners: c.People.Owners, Operators: c.People.Operators, Viewers: c.People.Viewers})
	g.approvals = approvals.New(approvals.Config{
		DB: db, Logger: o.Logger, Deadline: c.Timing.ApprovalDeadline, Beat: c.Timing.Beat, DeadAfter: c.Timing.DeadAfter,
		Reread: c.Timing.Reread, SweepEvery: c.Timing.Sweep,
		Decided: func(t *store.Txn, r approvals.Record, d approvals.Decision) error { return g.bot.Decided(t, r, d) },
		Make: func(t *store.Txn, r approvals.Record, d approvals.Decision) (string, error) {
			return g.bot.Make(t, r, d)
		},
	})
	g.chats = bridge.NewChats(bridge.ChatsConfig{
		DB: db, Logger: o.Logger, Approvals: g.approvals, DefaultMode: defaultMode(c), DefaultProject: defaultProject(c), DefaultRuntime: c.DefaultRuntime,
	})
	g.outbox = bot.NewOutbox(bot.OutboxConfig{
		DB: db, API: g.api, Logger: o.Logger, Pace: o.Pace, Reread: c.Timing.Reread,
		OnMigrated: func(t *store.Txn, from, to int64) error {
			if err := g.bot.Migrated(t, from, to); err != nil {
				return err
			}
			return g.tasks.Migrate(t, bot.ChatRef{ID: from}.Key(), bot.ChatRef{ID: to}.Key())
		},
		OnDropped: func(t *store.Txn, m bot.Outgoing, reason string) error { return g.bot.Dropped(t, m, reason) },
		Blob:      func(ctx context.Context, name string) ([]byte, error) { return g.bot.Blob(ctx, name) },
	})
	g.tasks = task.New(task.Config{
		DB: db, Chats: g.chats, Approvals: g.approvals, Next: screen{g}, Logger: o.Logger,
		Notify: func(t *store.Txn, e task.Event) error { return g.bot.Worked(t, e) },
		May:    func(t *store.Txn, chat, by string) (bool, error) { return g.bot.MayWork(t, chat, by) },
		Hooks:  taskHooks(c), Call: taskCommands{home: hookHome(c), logger: o.Logger}.call,
	})
	g.bot = bot.New(bot.Config{
		DB: db, Chats: g.chats, Approvals: g.approvals, Tasks: g.tasks, Outbox: g.outbox, API: g.api, Acker: g.acker, People: g.people, Logger: o.Logger,
	})
	g.inbox = bot.NewInbox(bot.InboxConfig{DB: db, Handler: g.bot, Lane: g.bot.Lane, Logger: o.Logger, Reread: c.Timing.Reread})
	if w := c.Telegram.Webhook; w != nil {
		if g.webhook, err = bot.NewWebhook(g.inbox, w.Secret.Reveal(), o.Logger); err != nil {
			return nil, fmt.Errorf("app: webhook: %w", err)
		}
	}
	if g.hooks, err = g.deliveries(db); err != nil {
		return nil, err
	}
	return g, nil
}

// screen is the bot behind the tasks, which are made before it.
type screen struct{ g *gateway }

func (s screen) Project(t *store.Txn, e bridge.Entry) error { return s.g.bot.Project(t, e) }
func (s screen) Omitted(t *store.Txn, e bridge.Entry) error { return s.g.bot.Omitted(t, e) }
func (s screen) Live(l bridge.Live)                         { s.g.bot.Live(l) }

// run serves until ctx ends. Whoever holds the lease polls, handles, follows, sweeps and sends; a gateway without it only
// takes webhooks and deliveries to hooks in and runs commands on tasks, and takes over when the lease lapses.
func (g *gateway) run(ctx context.Context) error {
	if err := g.greet(ctx); err != nil || ctx.Err() != nil {
		return err
	}
	lease := bot.Lease{
		DB: g.db, Name: leaseName, Owner: leaseOwner(g.o.Config), TTL: g.o.Config.Timing.Lease, Renew: g.o.Config.Timing.Renew, Logger: g.o.Logger,
	}
	all := newGroup(ctx)
	all.start("outage", g.bot.RunOutages)
	all.start("lease", func(ctx context.Context) error { return lease.Run(ctx, g.lead) })
	if g.webhook != nil {
		all.start("webhook", g.serveWebhook)
	}
	if g.hooks != nil {
		all.start("hooks", g.serveHooks)
	}
	all.start("commands on tasks", g.tasks.RunHooks)
	return all.wait()
}

// greet learns who the bot is, waiting for a Telegram that is away, and shows the pairing code if there is no owner.
func (g *gateway) greet(ctx context.Context) error {
	for wait := 500 * time.Millisecond; ; wait = min(2*wait, 30*time.Second) {
		me, err := g.api.Me(ctx)
		if err == nil {
			g.bot.Named(me.Username)
			break
		}
		if ctx.Err() != nil {
			return nil //nolint:nilerr // the stop is no failure
		}
		if f := bot.FaultOf(err); f == bot.FaultUnauthorized {
			return fmt.Errorf("app: Telegram does not know this token: %w", err)
		}
		g.o.Logger.Warn("cannot reach Telegram; trying again", "err", err)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
	}
	code, err := g.people.Invite(ctx)
	if err != nil {
		return err
	}
	if code != "" && g.o.Console != nil {
		fmt.Fprintf(g.o.Console, "Nobody owns this bot yet, so it serves nobody. Send it in a private chat:  /start %s\n", code) //nolint:errcheck // a console that is gone reads nothing
	}
	return nil
}

// lead is one term of the lease.
func (g *gateway) lead(ctx context.Context, fence int64) error {
	term := newGroup(ctx)
	term.start("inbox", g.inbox.Run)
	term.start("outbox", g.outbox.Run)
	term.start("acker", g.acker.Run)
	term.start("sweep", g.approvals.RunSweep)
	term.start("housekeeping", g.keepHouse)
	follower := bridge.NewFollower(bridge.FollowerConfig{
		DB: g.db, Chats: g.chats, Approvals: g.approvals, Projection: g.tasks, Reread: g.o.Config.Timing.Reread, Logger: g.o.Logger,
	})
	term.start("follower", follower.Run)
	term.start("tasks", g.tasks.Run)
	term.start("live", g.bot.RunLive)
	if g.webhook != nil {
		term.start("register", func(ctx context.Context) error { return g.registerWebhook(ctx) })
	} else {
		poller := bot.Poller{API: g.api, Inbox: g.inbox, Logger: g.o.Logger, Lease: leaseName}
		term.start("poller", func(ctx context.Context) error { return poller.Run(ctx, fence) })
	}
	return term.wait()
}

// keepHouse registers the commands once and forgets what is old, now and then.
func (g *gateway) keepHouse(ctx context.Context) error {
	registered := false
	for {
		if !registered {
			if err := g.bot.Register(ctx); err != nil && ctx.Err() == nil {
				g.o.Logger.Warn("cannot register the commands; trying again", "err", err)
			} else {
				registered = true
			}
		}
		err := errors.Join(g.inbox.Prune(ctx), g.outbox.Prune(ctx), g.bot.Prune(ctx), bridge.PruneBlobs(ctx, g.db))
		if err != nil && ctx.Err() == nil {
			g.o.Logger.Warn("housekeeping failed; trying again", "err", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(10 * time.Minute):
		}
	}
}

func (g *gateway) registerWebhook(ctx context.Context) error {
	for {
		err := g.webhook.Register(ctx, g.api, g.o.Config.Telegram.Webhook.URL)
		if err == nil || ctx.Err() != nil {
			<-ctx.Done()
			return nil //nolint:nilerr // the stop is no failure
		}
		g.o.Logger.Warn("cannot register the webhook; trying again", "err", err)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(10 * time.Second):
		}
	}
}

func (g *gateway) serveWebhook(ctx context.Context) error {
	srv := &http.Server{
		Handler: g.webhook, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second, WriteTimeout: 30 * time.Second, MaxHeaderBytes: 16 << 10,
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", g.o.Config.Telegram.Webhook.Listen)
	if err != nil {
		return fmt.Errorf("app: listen for webhooks: %w", err)
	}
	return serveHTTP(ctx, srv, l)
}

// serveHTTP serves until ctx ends and then lets requests that run end.
func serveHTTP(ctx context.Context, srv *http.Server, l net.Listener) error {
	stopped := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		_ = srv.Shutdown(bounded) // what has not ended by then is cut off
		close(stopped)
	})
	err := srv.Serve(l)
	if !stop() {
		<-stopped
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}
