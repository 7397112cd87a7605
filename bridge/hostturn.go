package bridge

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"drawbridge/approvals"
	"drawbridge/internal/store"
	"drawbridge/runner"
)

// Why a turn was interrupted. The texts are shown to people.
var (
	errStopped   = errors.New("stopped")
	errHostStops = errors.New("Drawbridge was stopped") //nolint:staticcheck // a name
	errHostDied  = errors.New("the host stopped in the middle of it")
	errDisowned  = errors.New("the host was taken for dead")
	errTightened = errors.New("the mode became stricter, and this agent takes that only between turns")
)

// maxHint bounds what the log says of a plan that it does not hold.
const maxHint = 200

// hostTurn is a turn that runs on this host.
type hostTurn struct {
	h      *Host
	order  Order
	cancel context.CancelCauseFunc
	done   chan struct{} // closed when its end is written
	rec    *recorder
	// under is the policy that the running turn was last told; guarded by Host.mu.
	under runner.Policy
}

// run carries the turn out, from the claim to its end in the log. It takes no part in deciding whether it may: an order
// is run once, by whoever writes the turn's record first. It reports true once there is nothing more to be done about it.
func (t *hostTurn) run(ctx context.Context) (past bool) {
	logger := t.rec.logger
	persist := t.h.persist // what happened is written down also when the turn is interrupted
	rec, mine, err := t.claim(persist)
	if err != nil {
		logger.Warn("cannot take the order; trying again", "err", err)
		return false // the next look finds it again
	}
	if !mine {
		return true
	}
	var background sync.WaitGroup
	background.Go(func() { t.rec.write(persist) })
	stream, streamed := context.WithCancel(persist)
	background.Go(func() { t.stream(stream) })

	result := t.work(ctx)
	if ctx.Err() != nil && result.Outcome != runner.Completed {
		result.Outcome = runner.Interrupted
		if cause := context.Cause(ctx); result.Reason == "" && cause != nil {
			result.Reason = cause.Error()
		}
	}
	if result.Deferred != "" && result.Reason == "" {
		result.Reason = errKept.Error()
	}
	streamed()
	t.rec.close()
	background.Wait()
	result.Usage = t.rec.total(result.Usage)
	for {
		err := store.Update(persist, t.h.cfg.DB, func(tx *store.Txn) error {
			told := result
			told.Plan = front(told.Plan, maxHint) // the approval holds it whole
			if err := t.h.endIn(tx, rec, told, t.rec.summary()); err != nil {
				return err
			}
			if err := t.endKeptIn(tx, result); err != nil {
				return err
			}
			return t.submitPlan(tx, result) // below the turn's last words
		})
		if err == nil {
			break
		}
		if errors.Is(err, store.ErrClosed) || persist.Err() != nil {
			return true // the next run of the host buries it
		}
		logger.Warn("cannot write the end of the turn; trying again", "err", err)
		select {
		case <-persist.Done():
		case <-time.After(t.h.cfg.Reread):
		}
	}
	logger.Info("turn ended", "outcome", string(result.Outcome))
	return true
}

// claim writes the turn's record and reports whether the turn is this run's to carry out.
func (t *hostTurn) claim(ctx context.Context) (rec Turn, mine bool, err error) {
	h := t.h
	key := turnKey(h.cfg.Name, t.order.Turn)
	err = store.Update(ctx, h.cfg.DB, func(tx *store.Txn) error {
		mine = false
		var known bool
		if rec, known, err = store.Get[Turn](tx, key); err != nil || known {
			return err
		}
		now, err := tx.Now()
		if err != nil {
			return err
		}
		mine = true
		rec = Turn{V: Version, ID: t.order.Turn, Chat: t.order.Chat, Incarnation: h.cfg.Incarnation, State: TurnRunning, Started: now}
		if err := store.Put(tx, key, rec); err != nil {
			return err
		}
		return h.cfg.Log.AppendIn(tx, Entry{
			Chat: rec.Chat, Turn: rec.ID, Session: t.order.Session, Event: runner.Event{Kind: runner.TurnStarted, Turn: rec.ID},
		})
	})
	return rec, mine, err
}

// work runs the agent. A panic of a runtime fails its turn and nothing else.
func (t *hostTurn) work(ctx context.Context) (result runner.Result) {
	defer func() {
		if p := recover(); p != nil {
			t.rec.logger.Error("a runtime panicked", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			result = runner.Result{Outcome: runner.Broken, Reason: "the runtime crashed; see the host's log"}
		}
	}()
	// The record is written: a stop that came before it may have deleted the order without looking for a claim.
	_, docs, err := t.h.cfg.DB.Read(ctx, orderKey(t.h.cfg.Name, t.order.Turn))
	if err != nil {
		return runner.Result{Outcome: runner.Broken, Reason: "the store could not be read"}
	}
	if o, err := decode[Order](docs[0].Value); docs[0].Rev == "" || err != nil || o.Stop {
		return runner.Result{Outcome: runner.Interrupted, Reason: errStopped.Error()}
	}
	s, err := t.h.session(ctx, t)
	if err != nil {
		return runner.Result{Outcome: runner.Broken, Reason: err.Error()}
	}
	defer t.h.release(s)
	if p, err := t.h.policy(ctx, t.order); err == nil {
		t.h.mu.Lock()
		t.under = p
		t.h.mu.Unlock()
	}
	in := runner.Input{Turn: t.order.Turn, Text: t.order.Prompt.Text}
	if in.Files, err = t.h.attachments(ctx, t.order); err != nil {
		return runner.Result{Outcome: runner.Broken, Reason: err.Error()}
	}
	if in = t.choose(in); t.order.Prompt.Kept != "" {
		result, err = t.takeUp(ctx, s, in)
	} else {
		result, err = s.session.Turn(ctx, in)
	}
	if err != nil {
		if ctx.Err() == nil {
			t.rec.logger.Warn("turn failed", "err", err)
			t.h.discard(s) // what failed outside of the agent's own words leaves a session in an unknown state
		}
		result.Outcome, result.Reason = runner.Broken, err.Error()
	}
	if errors.Is(context.Cause(ctx), errStopped) && t.h.busy(s) {
		t.h.discard(s) // a stop ends what goes on in the background too, and nothing else is sure to
	}
	if err := t.h.remember(t.h.persist, s); err != nil {
		t.rec.logger.Warn("cannot keep the resume token", "err", err)
	}
	return result
}

// asker describes this turn to approvals. What a task asks is asked of the chat to whose mode it is held.
func (t *hostTurn) asker() approvals.Run {
	o := t.order
	run := approvals.Run{
		ID: o.Turn, Chat: o.held(), Project: o.Project, Session: o.Session, Turn: o.Turn, Runtime: o.Runtime, Prompted: o.Prompt.By,
		Request:   o.Prompt.Text,
		Workspace: t.h.workspace(o),
		Policy:    func(ctx context.Context) (runner.Policy, error) { return t.h.policy(ctx, o) },
	}
	if w := o.Prompt.Work; w != nil {
		run.Background, run.Alone, run.Card, run.Wait = !w.Attended, w.Alone, w.Card, w.wait()
	}
	return run
}

// stream publishes what the turn says while it says it. These messages may be lost; the next one heals it.
func (t *hostTurn) stream(ctx context.Context) {
	tick := time.NewTicker(t.h.cfg.LivePace)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if live, changed := t.rec.snapshot(); changed {
				if err := publishLive(ctx, t.h.cfg.DB, t.h.cfg.Name, live); err != nil && ctx.Err() == nil {
					t.rec.logger.Debug("streaming text lost", "err", err)
				}
			}
		}
	}
}
