package bot

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"time"
)

const (
	// ackTimeout bounds one answer to a tap: later than this the button has stopped spinning by itself.
	ackTimeout = 10 * time.Second
	// ackGrace is for what waits when the acker stops.
	ackGrace = 2 * time.Second
	ackQueue = 256
	// ackRetry is the pause before the only second attempt after a lost connection.
	ackRetry = 300 * time.Millisecond
)

// Acker answers taps. It has its own connections, workers and queue and waits for nothing else: an answer that comes late
// leaves the person with a spinning button. It is best effort: an answer may be lost, and nothing depends on it.
type Acker struct {
	api     *API
	log     *slog.Logger
	workers int
	queue   chan ackEntry
}

type ackEntry struct {
	query, text string
	alert       bool
}

// AckerConfig says how taps are answered. API should share no connections with the outbox's.
type AckerConfig struct {
	API     *API
	Logger  *slog.Logger
	Workers int // 4 if 0
}

// NewAcker returns an acker; answers wait until Run.
func NewAcker(cfg AckerConfig) *Acker {
	return &Acker{api: cfg.API, log: cfg.Logger, workers: cmp.Or(cfg.Workers, 4), queue: make(chan ackEntry, ackQueue)}
}

// Answer answers the tap's query with a short notice, or an alert that must be closed; an empty text only stops the
// button from spinning. It never blocks: when hundreds wait already, the answer is dropped.
func (a *Acker) Answer(query, text string, alert bool) {
	select {
	case a.queue <- ackEntry{query, text, alert}:
	default:
		a.log.Debug("tap not answered, too many wait")
	}
}

// Run answers until ctx ends and then, for two seconds at most, what still waits.
func (a *Acker) Run(ctx context.Context) error {
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(ackGrace, cancel) })
	defer stop()
	var g sync.WaitGroup
	for range a.workers {
		g.Go(func() {
			for {
				select {
				case q := <-a.queue:
					a.answer(work, q)
					continue
				default:
				}
				select {
				case q := <-a.queue:
					a.answer(work, q)
				case <-ctx.Done():
					return
				}
			}
		})
	}
	g.Wait()
	return nil
}

func (a *Acker) answer(ctx context.Context, q ackEntry) {
	for attempt := range 2 {
		try, cancel := context.WithTimeout(ctx, ackTimeout)
		err := a.api.AnswerQuery(try, q.query, q.text, q.alert)
		cancel()
		if err == nil {
			return
		}
		a.log.Debug("tap not answered", "try", attempt+1, "err", err)
		if FaultOf(err) != FaultTransient || !sleep(ctx, ackRetry) {
			return
		}
	}
}
