package approvals

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"drawbridge/internal/store"
	"drawbridge/policy"
	"drawbridge/runner"
)

const (
	handTime   = 10 * time.Second    // how long a host tries to commit what it is about to tell the runtime
	closeTime  = 5 * time.Second     // how long it tries to close an approval whose agent is gone
	askedAgain = 3                   // how often a question is asked again because its files changed
	keep       = 30 * 24 * time.Hour // how long resolved approvals and decisions are kept
	keepAudit  = 90 * 24 * time.Hour // how long audit lines are kept
	pruneEvery = time.Hour
	pruneMost  = 500 // in one commit
)

// Config is what a Service is made of. Zero durations and limits take the value in parentheses.
type Config struct {
	DB store.DB
	// Host and Incarnation name this host and this start of it. Both are empty on a process that is only a gateway.
	Host, Incarnation string
	Logger            *slog.Logger
	Reviewer          Reviewer // may be nil

	Deadline     time.Duration // how long a person has (10 minutes)
	PlanDeadline time.Duration // the same for plans, for which nobody waits (7 days)
	KeptDeadline time.Duration // the same for calls that are kept over a stop, from then on (24 hours)
	Beat         time.Duration // how often a host says that it lives (2 s)
	DeadAfter    time.Duration // how old a beat is of a host that is dead (6 s)
	Reread       time.Duration // how often a waiter reads by itself, in case a hint was lost (2 s)
	SweepEvery   time.Duration // the pace of RunSweep (2 s)
	ReviewTime   time.Duration // how long a review may take, waiting for its place included (20 s)
	MaxReviews   int           // reviews of one session that run at the same time (2)
	MaxPerRun    int           // open approvals of one run (20)
	MaxPerChat   int           // open approvals of one chat on this host (100)

	// Opened, Resolved and Decided join the commit in which the thing happens. An error from them prevents the commit;
	// they may run several times for one commit and must have no effect but through the Txn. Each may be nil.
	//
	// Opened runs on the host when a record is published.
	// It runs again, for the same record, when the record is kept over a stop, and when it is waited for again.
	Opened func(t *store.Txn, r Record) error
	// Resolved runs on the host when a record has reached a final state.
	Resolved func(t *store.Txn, r Record) error
	// Decided runs on the gateway that made the decision by Decide or Sweep. It runs a second time, with d.Gone set, when
	// it is found that the host died before it took an allowing decision.
	Decided func(t *store.Txn, r Record, d Decision) error
	// Make makes on the gateway, in the commit of the decision, what a person has decided to have made of a proposal. Where
	// that is impossible by now it says why, in a sentence for the agent, and the decision is a denial. Without it nothing is made.
	Make func(t *store.Txn, r Record, d Decision) (problem string, err error)
	// Reviewed runs on the host at each step of a review, in a commit of its own. An error from it makes a reviewer's yes
	// count for nothing.
	Reviewed func(t *store.Txn, run Run, r runner.Review) error
	// ReviewCost is told once what a review has taken, also one that led to nothing. It is no part of a commit, and it
	// must not block. It may be nil.
	ReviewCost func(run Run, u runner.Usage)
}

// Service asks on a host and decides on a gateway; one process may use it for both. It is safe for concurrent use.
type Service struct {
	c       Config
	db      store.DB // counts into witness
	log     *slog.Logger
	witness *witness

	recovery sync.Mutex // held while what an earlier incarnation left open is closed
	ready    bool       // guarded by recovery

	fenced chan struct{} // closed when another incarnation of this host has taken over
	fence  func()

	mu      sync.Mutex
	waiters map[ID]chan struct{} // each with a buffer of one
	keeping map[ID]bool          // waiters that are asked to keep their record
	asks    map[ask]ID           // what waits here, by what asks
	kept    map[ID]ask           // what an earlier run of this host has kept, until it is taken up
	keeps   map[string][]held    // what this one has kept, by run
	perRun  map[string]int
	perChat map[string]int
	left    map[ID]State // what could not be closed when its agent left, and how it shall be

	sweeping sync.Mutex
	swept    map[string]map[ID]*sweptAsk // by host; guarded by sweeping

	reviews places
}

// New returns a Service. Nothing runs until Run or RunSweep is called.
func New(c Config) *Service {
	c.Deadline = cmp.Or(c.Deadline, 10*time.Minute)
	c.PlanDeadline = cmp.Or(c.PlanDeadline, 7*24*time.Hour)
	c.KeptDeadline = cmp.Or(c.KeptDeadline, 24*time.Hour)
	c.Beat = cmp.Or(c.Beat, 2*time.Second)
	c.DeadAfter = cmp.Or(c.DeadAfter, 6*time.Second)
	c.Reread = cmp.Or(c.Reread, 2*time.Second)
	c.SweepEvery = cmp.Or(c.SweepEvery, 2*time.Second)
	c.ReviewTime = cmp.Or(c.ReviewTime, reviewTime)
	c.MaxReviews = cmp.Or(c.MaxReviews, 2)
	c.MaxPerRun = cmp.Or(c.MaxPerRun, 20)
	c.MaxPerChat = cmp.Or(c.MaxPerChat, 100)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	w := &witness{deadAfter: c.DeadAfter}
	fenced := make(chan struct{})
	return &Service{
		fenced: fenced, fence: sync.OnceFunc(func() { close(fenced) }),
		c: c, db: watched{DB: c.DB, witness: w}, log: c.Logger, witness: w,
		keeping: map[ID]bool{}, asks: map[ask]ID{}, kept: map[ID]ask{}, keeps: map[string][]held{},
		waiters: map[ID]chan struct{}{}, perRun: map[string]int{}, perChat: map[string]int{}, left: map[ID]State{},
		swept: map[string]map[ID]*sweptAsk{}, reviews: places{limit: c.MaxReviews, all: map[string]*place{}},
	}
}

// ErrGone is the cause of a context that ends because the asker can't be reached any more: the question was not taken
// back, and its card says so.
var ErrGone = errors.New("approvals: the asker is gone")

// Run is what asks: a turn, or work in the background. The caller fills it in afresh for each question.
type Run struct {
	ID       string // of the turn or of the background work; MaxPerRun counts by it
	Chat     string
	Project  string
	Session  string // ours, not the runtime's token
	Turn     string
	Runtime  string
	Prompted string // who wrote the prompt: a Telegram user id, or a task's id
	Request  string // the prompt's text; only a reviewer sees it
	// Background says that nobody sits in front of it.
	Background bool
	// Alone says that nobody is asked: what a person or a reviewer would have to decide is refused at once, also where a
	// grant would serve it.
	Alone bool
	// Within is how long a person has, in place of the configured deadlines where it is shorter; zero for those.
	Within time.Duration
	// Wait says, on the store's clock, when a person's time for something that is asked at now ends, and whether its card
	// waits silently; usual is what the configuration gives. It may be later than that, but not later than a plan's
	// deadline. Nil is for what is asked in the foreground.
	Wait func(now time.Time, usual time.Duration) (until time.Time, silent bool)
	// Card is the chat whose people are asked, where that is not Chat. Nothing is granted there: a grant belongs to the
	// chat whose mode it was given under.
	Card      string
	Workspace policy.Workspace
	// Policy reads from the store what the chat allows at this moment. An error, or a nil Policy, is a denial.
	Policy func(ctx context.Context) (runner.Policy, error)
}

// Gate returns the gate for a runtime's session; run says who asks, at each question.
func (s *Service) Gate(run func() Run) runner.Gate {
	return runner.GateFunc(func(ctx context.Context, q runner.Question) (runner.Answer, error) {
		return s.Ask(ctx, run(), q)
	})
}

// watched tells the witness of every answer and every silence of the store.
type watched struct {
	store.DB
	witness *witness
}

func (w watched) Read(ctx context.Context, keys ...string) (time.Time, []store.Doc, error) {
	now, docs, err := w.DB.Read(ctx, keys...)
	if err != nil {
		w.witness.gap()
	} else {
		w.witness.saw(time.Now(), now)
	}
	return now, docs, err
}

func (w watched) Range(ctx context.Context, index string, min, max int64, limit int) ([]store.Item, error) {
	items, err := w.DB.Range(ctx, index, min, max, limit)
	if err != nil {
		w.witness.gap()
	}
	return items, err
}

func (w watched) Commit(ctx context.Context, b store.Batch) error {
	err := w.DB.Commit(ctx, b)
	if err != nil && !errors.Is(err, store.ErrConflict) {
		w.witness.gap()
	}
	return err
}

// witness knows for how long this process has seen the store answer without a gap. Who has not seen it for as long as
// a host may be silent can't tell a dead host from a store that was away.
type witness struct {
	deadAfter time.Duration

	mu           sync.Mutex
	first, last  time.Time // by this process's clock, monotonic; zero: nothing seen since the last gap
	sFirst, sNow time.Time // by the store's clock
}

// saw notes an answer of the store. Both clocks are looked at: the monotonic one of this process stands still while the
// machine sleeps, the store's may jump.
func (w *witness) saw(at, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.first.IsZero() || at.Sub(w.last) >= w.deadAfter || now.Sub(w.sNow) >= w.deadAfter || now.Before(w.sFirst) {
		w.first, w.sFirst = at, now
	}
	w.last = at
	if now.After(w.sNow) || w.first.Equal(at) {
		w.sNow = now
	}
}

func (w *witness) gap() {
	w.mu.Lock()
	w.first = time.Time{}
	w.mu.Unlock()
}

// trusted reports whether the store was seen answering, without a gap, for as long as a host may be silent.
func (w *witness) trusted() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.first.IsZero() && w.last.Sub(w.first) >= w.deadAfter && w.sNow.Sub(w.sFirst) >= w.deadAfter
}

// presence is what the store says of the asker of an approval.
type presence int

const (
	alive   presence = iota // or not known to be dead
	dead                    // silent for too long, seen by this process
	another                 // the host has started again since
)

// present judges a host by its beat. A host without a beat is judged as one that is silent.
func (s *Service) present(b Beat, now time.Time, incarnation string) presence {
	switch {
	case incarnation == nobody: // deferred: nobody waits, so nobody can be gone
		return alive
	case b.Incarnation != "" && b.Incarnation != incarnation:
		return another
	case now.Sub(b.At) >= s.c.DeadAfter && s.witness.trusted():
		return dead
	}
	return alive
}

// HostAlive reports whether the host has beaten lately. Without a beat, or with one that is older than DeadAfter, it is
// false, whatever this process has seen of the store.
func (s *Service) HostAlive(ctx context.Context, host string) (bool, error) {
	var living bool
	err := s.read(ctx, func(t *store.Txn) error {
		b, ok, err := store.Peek[Beat](t, BeatKey(host))
		if err != nil {
			return err
		}
		now, err := t.Now()
		living = ok && now.Sub(b.At) < s.c.DeadAfter
		return err
	})
	return living, err
}

// HostDead reports whether the host is known to be dead: it has beaten once, then not for DeadAfter, and this process has
// seen the store answer without a gap for as long. incarnation is the run that beat last; another may have begun since. It is
// not the opposite of HostAlive: in between nothing is known.
func (s *Service) HostDead(ctx context.Context, host string) (incarnation string, gone bool, err error) {
	err = s.read(ctx, func(t *store.Txn) error {
		b, ok, err := store.Peek[Beat](t, BeatKey(host))
		if err != nil {
			return err
		}
		now, err := t.Now()
		incarnation, gone = b.Incarnation, ok && s.present(b, now, b.Incarnation) == dead
		return err
	})
	return incarnation, gone, err
}

// DeadAfter is how long a host may show no sign of life before it counts as dead.
func (s *Service) DeadAfter() time.Duration { return s.c.DeadAfter }

// read is an Update that changes nothing.
func (s *Service) read(ctx context.Context, fn func(t *store.Txn) error) error {
	return store.Update(ctx, s.db, fn)
}
