package bridge

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"drawbridge/internal/store"
)

// pruneMost bounds one look at what is old: entries of the log are up to some 32 KiB each.
const pruneMost = 200

// prune forgets what is older than Keep: entries of the log, turns that ended, results of errands, sessions to which no
// chat can come back, and the files that came with prompts.
func (h *Host) prune(ctx context.Context) error {
	now, _, err := h.cfg.DB.Read(ctx)
	if err != nil {
		return err
	}
	old, err := h.cfg.DB.Range(ctx, forgetIndex(h.cfg.Name), 0, store.Micros(now.Add(-h.cfg.Keep)), pruneMost)
	if err != nil {
		return err
	}
	if len(old) > 0 {
		err = store.Update(ctx, h.cfg.DB, func(t *store.Txn) error {
			keys := make([]string, len(old))
			for i, it := range old {
				keys[i] = it.Member
			}
			if err := t.Preload(keys...); err != nil {
				return err
			}
			for _, key := range keys {
				h.forget(t, key, now)
			}
			return nil
		})
	}
	return errors.Join(err, h.pruneAttachments(now))
}

// forget removes an old document and what points to it. A document that can't be decoded goes as well.
func (h *Host) forget(t *store.Txn, key string, now time.Time) {
	switch {
	case strings.HasPrefix(key, entryPrefix(h.cfg.Name)):
		e, ok, err := store.Peek[Entry](t, key)
		if err == nil && ok {
			t.Drop(timelineIndex(h.cfg.Name, e.Chat), strconv.FormatInt(e.Seq, 10))
		}
	case strings.HasPrefix(key, sessionKey(h.cfg.Name, "")):
		rec, ok, err := store.Get[SessionRecord](t, key)
		if err != nil || !ok {
			break
		}
		m, _, err := store.Peek[Mirror](t, mirrorKey(h.cfg.Name, rec.Chat))
		if err != nil || m.Session == rec.ID { // still the chat's, however long ago it was used
			t.Add(forgetIndex(h.cfg.Name), key, store.Micros(now))
			return
		}
	}
	t.Delete(key)
	t.Drop(forgetIndex(h.cfg.Name), key)
}

// pruneAttachments removes the folders of the files that came with prompts. The agent may read them for as long as the
// session remembers them, so they stay as long as the log does.
func (h *Host) pruneAttachments(now time.Time) error {
	root := filepath.Join(h.cfg.Data, "attachments")
	dirs, err := os.ReadDir(root)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	for _, d := range dirs {
		info, statErr := d.Info()
		if statErr == nil && info.ModTime().Before(now.Add(-h.cfg.Keep)) {
			err = errors.Join(err, os.RemoveAll(filepath.Join(root, d.Name())))
		}
	}
	return err
}
