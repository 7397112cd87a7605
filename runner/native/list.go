package native

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"drawbridge/internal/chatapi"
	"drawbridge/runner"
)

const (
	shownLines = 4   // the last messages of a session that are shown
	shownText  = 400 // bytes of each
)

var _ runner.Lister = (*Runtime)(nil)

// Sessions returns the sessions that were begun in folder, the one used last first. It changes no file. What cannot be
// read is left out.
func (r *Runtime) Sessions(ctx context.Context, folder string, limit int) ([]runner.SessionInfo, error) {
	files, err := os.ReadDir(r.sessions())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("native: list sessions: %w", err)
	}
	type candidate struct {
		token string
		used  time.Time
	}
	var all []candidate
	for _, f := range files {
		token, is := strings.CutSuffix(f.Name(), ".jsonl")
		if info, err := f.Info(); err == nil && is && ours.MatchString(token) {
			all = append(all, candidate{token, info.ModTime()})
		}
	}
	slices.SortFunc(all, func(a, b candidate) int { return cmp.Or(b.used.Compare(a.used), cmp.Compare(a.token, b.token)) })
	var out []runner.SessionInfo
	for _, c := range all {
		if len(out) == limit || ctx.Err() != nil {
			break
		}
		s, in, err := look(filepath.Join(r.sessions(), c.token+".jsonl"))
		if err != nil {
			r.config.Logger.WarnContext(ctx, "a session cannot be read and is left out", "err", err)
			continue
		}
		if in == folder && s.Title != "" { // one without a prompt has nothing to go on with
			s.Token, s.Used = c.token, c.used
			out = append(out, s)
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("native: list sessions: %w", err)
	}
	return out, nil
}

// look reads what a session's file says, and in which folder it was begun, without repairing anything.
func look(path string) (s runner.SessionInfo, folder string, err error) {
	f, err := os.Open(path)
	if err != nil {
		return s, "", err
	}
	defer f.Close() //nolint:errcheck // only read
	// Whoever has the session open holds the lock. It is given back at once; see lock.
	if s.Busy = unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB) != nil; !s.Busy {
		if err := unix.Flock(int(f.Fd()), unix.LOCK_UN); err != nil {
			return s, "", err
		}
	}
	c := &conversation{file: f, attached: map[string]bool{}}
	folder, err = c.scan()
	if err != nil {
		return s, "", err
	}
	for _, m := range c.messages {
		text := strings.TrimSpace(m.Content)
		if text == "" || m.Role != chatapi.User && m.Role != chatapi.Assistant {
			continue
		}
		if s.Title == "" && m.Role == chatapi.User {
			s.Title, _, _ = strings.Cut(text, "\n")
			s.Title = cut(s.Title, shownText)
		}
		s.Last = append(s.Last, runner.SessionLine{Agent: m.Role == chatapi.Assistant, Text: cut(text, shownText)})
	}
	s.Last = s.Last[max(0, len(s.Last)-shownLines):]
	return s, folder, nil
}
