package telegramtest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// DefaultToken is the bot's token unless Config names another. It has the form of a real one and opens nothing.
const DefaultToken = "123456789:AAdemo-drawbridge-not-a-real-token0"

// DefaultQueryTimeout is how long a callback query can be answered. Telegram publishes no number; clients report
// "query is too old" after about 15 seconds.
const DefaultQueryTimeout = 15 * time.Second

// Config says who exists in the simulated Telegram. The zero value is the world of the demo.
type Config struct {
	// Token is the bot's token; DefaultToken if empty.
	Token string
	// Bot is the bot's own account. Zero fields take those of DefaultBot.
	Bot Bot
	// People are the accounts of human beings; DefaultPeople if nil.
	People []Person
	// Chats are the chats that exist; DefaultChats if nil and People is nil too. The private chat of each person with
	// the bot exists in any case.
	Chats []Chat
	// Rates are the flood limits.
	Rates Rates
	// QueryTimeout is how long a callback query can be answered, on the server's clock; DefaultQueryTimeout if zero.
	QueryTimeout time.Duration
	// Now is the base of the server's clock, to which /sim/clock adds; time.Now if nil.
	Now func() time.Time
	// Logger receives what goes wrong in the server itself; nothing is logged if nil.
	Logger *slog.Logger
}

// Server is the Bot API server and its control interface. It is safe for concurrent use.
type Server struct {
	token        string
	bot          Bot
	queryTimeout time.Duration
	now          func() time.Time
	log          *slog.Logger
	methods      map[string]method
	sim          http.Handler

	mu       sync.Mutex
	changed  chan struct{} // closed and replaced at each change
	advance  time.Duration // what /sim/clock added
	people   []*person
	chats    []*chat
	lastID   int64 // the last message id of private chats and groups, which share one sequence
	queries  map[string]*query
	commands map[string][]Command
	files    map[string]*file
	updates  queue
	webhook  webhook
	limits   limits
	faults   []*fault
	calls    calls
	events   events
}

// New returns a server for the world that cfg describes. It panics if two people or two chats have the same id, or if
// a chat names a member that does not exist: both are mistakes of the program that called it.
func New(cfg Config) *Server {
	s := &Server{
		token:        cmp.Or(cfg.Token, DefaultToken),
		bot:          cfg.Bot.orDefault(),
		queryTimeout: cmp.Or(cfg.QueryTimeout, DefaultQueryTimeout),
		now:          cfg.Now,
		log:          cfg.Logger,
		changed:      make(chan struct{}),
		queries:      map[string]*query{},
		commands:     map[string][]Command{},
		files:        map[string]*file{},
		updates:      newQueue(),
		limits:       newLimits(cfg.Rates),
	}
	if s.now == nil {
		s.now = time.Now
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	people, chats := cfg.People, cfg.Chats
	if people == nil {
		people = DefaultPeople()
		if chats == nil {
			chats = DefaultChats()
		}
	}
	s.populate(people, chats)
	s.methods = s.apiMethods()
	s.sim = s.simHandler()
	return s
}

// Token is the token under which the bot's methods are served.
func (s *Server) Token() string { return s.token }

// ServeHTTP serves the Bot API under /bot<token>/, files under /file/bot<token>/ and the control interface under /sim/.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case strings.HasPrefix(r.URL.Path, "/bot"):
		s.serveAPI(w, r)
	case strings.HasPrefix(r.URL.Path, "/file/bot"):
		s.serveFile(w, r)
	case strings.HasPrefix(r.URL.Path, "/sim/"):
		s.sim.ServeHTTP(w, r)
	default:
		http.NotFound(w, r)
	}
}

// ErrNotLoopback means that the server was to serve others than this machine. Its token is no secret, and whoever
// controls it controls the bot.
var ErrNotLoopback = errors.New("not a loopback address")

// ListenAndServe listens on a loopback address and serves until ctx is done. See Serve.
func (s *Server) ListenAndServe(ctx context.Context, addr string) error {
	if !loopback(addr) {
		return fmt.Errorf("telegramtest: listen on %s: %w", addr, ErrNotLoopback)
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return fmt.Errorf("telegramtest: listen on %s: %w", addr, err)
	}
	return s.Serve(ctx, l)
}

// Serve answers requests on l and runs Run, until ctx is done; then it ends open polls and returns nil. It owns l, which
// has to listen on a loopback address.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	if !loopback(l.Addr().String()) {
		return errors.Join(fmt.Errorf("telegramtest: serve on %s: %w", l.Addr(), ErrNotLoopback), l.Close())
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	srv := &http.Server{
		Handler:           s,
		ReadHeaderTimeout: 10 * time.Second,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	var work sync.WaitGroup
	work.Go(func() { _ = s.Run(ctx) })
	work.Go(func() {
		<-ctx.Done()
		// Open polls see their context end; what remains is cut so that stopping never waits for a client.
		stop, done := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
		defer done()
		if srv.Shutdown(stop) != nil {
			_ = srv.Close()
		}
	})
	err := srv.Serve(l)
	cancel()
	work.Wait()
	if err != nil && !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("telegramtest: serve on %s: %w", l.Addr(), err)
	}
	return nil
}

// Run delivers updates to the webhook, if one is set, until ctx is done; then it returns nil. A program that uses the
// server only as a handler and sets no webhook need not run it.
func (s *Server) Run(ctx context.Context) error {
	s.deliver(ctx)
	return nil
}

// clock is the server's time. The caller holds mu.
func (s *Server) clock() time.Time { return s.now().Add(s.advance) }

// touch wakes everything that waits for a change. The caller holds mu.
func (s *Server) touch() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// await calls ready under the lock, again after each change, until it returns true, d has passed or ctx is done, and
// returns what ready returned last. A negative d is no limit.
func (s *Server) await(ctx context.Context, d time.Duration, ready func() bool) bool {
	var expired <-chan time.Time
	if d >= 0 {
		t := time.NewTimer(d)
		defer t.Stop()
		expired = t.C
	}
	for {
		s.mu.Lock()
		changed := s.changed
		s.mu.Unlock()
		if s.locked(ready) {
			return true
		}
		select {
		case <-changed:
		case <-expired:
			return s.locked(ready)
		case <-ctx.Done():
			return false
		}
	}
}

func (s *Server) locked(ready func() bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return ready()
}

// randomID is a positive number that nobody can guess from another one.
func randomID() int64 { return rand.Int64N(1<<53-1<<40) + 1<<40 }
