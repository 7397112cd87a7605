package bot

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"drawbridge/internal/store"
)

const (
	pollMost = 30 * time.Second
	// conflictMost bounds the pause after a 409: the long poll of a program that was killed holds for about 30 s, and
	// whoever comes back last should not stay deaf for longer than that.
	conflictMost = 15 * time.Second
	pollLimit    = 100
)

// Poller fetches updates into the inbox. API, Inbox and Logger are required.
type Poller struct {
	API    *API
	Inbox  *Inbox
	Logger *slog.Logger
	// Lease is the name of the lease under which Run is called; its fence is looked at in each commit. Empty: no lease.
	Lease string
	// Wait is how long Telegram holds a request without updates (50 s).
	Wait time.Duration
	// Retry is the first pause after a failure (500 ms); it doubles up to 30 s, with jitter.
	Retry time.Duration
}

// Run polls until ctx ends. Updates are confirmed to Telegram only after their commit. A failure is repeated with pauses
// for as long as it takes; only a refused token (an *Error with FaultUnauthorized) and a lost fence (ErrFenced) end it.
//
// The offset is sent only to confirm what was just committed, and is not kept: Telegram remembers by itself what was
// confirmed, and after a week without updates its ids start anywhere, so that an old offset could confirm what nobody
// has seen. What comes twice is recognised by its id.
func (p *Poller) Run(ctx context.Context, fence int64) error {
	var check func(*store.Txn) error
	if p.Lease != "" {
		check = func(t *store.Txn) error { return CheckFence(t, p.Lease, fence) }
	}
	wait, retry := cmp.Or(p.Wait, 50*time.Second), cmp.Or(p.Retry, 500*time.Millisecond)
	clear := true // whether a webhook may be set, which forbids polling
	var offset int64
	fails := 0
	for ctx.Err() == nil {
		err := p.once(ctx, check, &clear, &offset, wait)
		if err == nil {
			if fails > 0 {
				p.Logger.Info("polling goes on", "after_failures", fails)
			}
			fails = 0
			continue
		}
		if ctx.Err() != nil {
			return nil //nolint:nilerr // the request failed because we stop
		}
		fails++
		pause := backoff(fails, retry, pollMost)
		switch fault := FaultOf(err); {
		case errors.Is(err, ErrFenced):
			return err
		case fault == FaultUnauthorized:
			return fmt.Errorf("bot: telegram refuses the token: %w", err)
		case fault == FaultConflict:
			clear = true
			pause = backoff(fails, retry, conflictMost)
			if fails == 1 {
				p.Logger.Warn("another program uses the bot's token, or a webhook is set; polling is tried again", "err", err)
			}
		case fault == FaultRetryAfter:
			if e, ok := errors.AsType[*Error](err); ok {
				pause = e.RetryAfter
			}
			sleep(ctx, pause)
			continue
		case fails == 1:
			p.Logger.Warn("updates can't be fetched; polling is tried again", "err", err)
		default:
			p.Logger.Debug("updates can't be fetched yet", "try", fails, "err", err)
		}
		sleep(ctx, jitter(pause))
	}
	return nil
}

// once makes one request and commits what it brought.
func (p *Poller) once(ctx context.Context, check func(*store.Txn) error, clear *bool, offset *int64, wait time.Duration) error {
	if *clear {
		if err := p.API.DeleteWebhook(ctx); err != nil {
			return err
		}
		*clear = false
	}
	if *offset > 0 {
		wait = 0 // it only confirms; what it brings is taken all the same
	}
	raws, err := p.API.Updates(ctx, *offset, wait, pollLimit)
	if err != nil {
		return err
	}
	*offset = 0
	if err := p.Inbox.Accept(ctx, check, raws...); err != nil {
		return err
	}
	for _, raw := range raws {
		if _, id, ok := updateID(raw); ok {
			*offset = id + 1 // of the last one: the order is Telegram's, not that of the numbers
		}
	}
	return nil
}
