package bridge

import (
	"context"
	"errors"
	"time"

	"drawbridge/internal/store"
	"drawbridge/runner"
)

const (
	// healed is how many entries are looked at for turns that ended while nobody knows what was shown.
	healed = 200
	// healedTime is how long ago an entry may be for its chat to be told that some may not have been shown.
	healedTime = time.Hour
)

// heal goes on at the end of a host's log where it can't be read any more up to which entry it was shown. To show it all
// again would flood every chat; so what may be missing is said in the chats that had entries lately, and turns that ended
// end for their chats, too. It reports whether there was anything to heal.
func (f *Follower) heal(ctx context.Context, host string) (bool, error) {
	done := false
	err := store.Update(ctx, f.cfg.DB, func(t *store.Txn) error {
		done = false
		if _, _, err := store.Get[cursor](t, cursorKey(host)); !errors.Is(err, store.ErrDamaged) {
			return err
		}
		end, _, err := store.Peek[head](t, headKey(host))
		if err != nil {
			return err
		}
		now, err := t.Now()
		if err != nil {
			return err
		}
		if err := f.close(t, host, end.Seq, now); err != nil {
			return err
		}
		done = true
		return store.Put(t, cursorKey(host), cursor{V: Version, Seq: end.Seq})
	})
	if err != nil || !done {
		return false, err
	}
	f.cfg.Logger.Error("up to where a host's log was shown can't be read; going on at its end", "host", host)
	return true, nil
}

// close does what the last entries of a log mean for their chats, and tells these.
func (f *Follower) close(t *store.Txn, host string, end int64, now time.Time) error {
	first := max(1, end-healed+1)
	var keys []string
	for seq := first; seq <= end; seq++ {
		keys = append(keys, entryKey(host, seq))
	}
	if err := t.Preload(keys...); err != nil {
		return err
	}
	last := map[string]Entry{} // by chat: what it is told about
	for seq := first; seq <= end; seq++ {
		e, ok, err := store.Peek[Entry](t, entryKey(host, seq))
		if errors.Is(err, store.ErrDamaged) || err == nil && !ok {
			continue
		}
		if err != nil {
			return err
		}
		e.Host = host
		ended := false
		if k := e.Event.Kind; k == runner.TurnEnded || k == runner.TurnStarted {
			mine, err := f.settle(t, host, &e)
			if err != nil {
				return err
			}
			ended = mine && k == runner.TurnEnded
		}
		if e.Chat == "" || !ended && (now.Sub(e.At) > healedTime || last[e.Chat].Event.Kind == runner.TurnEnded) {
			continue
		}
		if !ended {
			e.Event = runner.Event{Kind: runner.Notice} // its turn, if it is of one, is not what ends
		}
		last[e.Chat] = e
	}
	o, can := f.cfg.Projection.(Omitter)
	if !can {
		return nil
	}
	for _, e := range last {
		if err := o.Omitted(t, e); err != nil {
			return err
		}
	}
	return nil
}
