package codex

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
)

// maxForks is how many forks of forks a session of the user's is adopted with.
const maxForks = 16

// errElsewhere says that a session has to be closed in a terminal before it goes on here.
var errElsewhere = errors.New("the session is open in another Codex; close it there first")

// origin is where a session of the user's comes from.
type origin struct {
	Provider string `json:"model_provider"`
	Base     struct {
		Thread string `json:"thread_id"`
	} `json:"history_base"`
}

// adoptWhole adopts a session that the user began in a terminal with what it was forked from: codex keeps of a fork only
// what was said after it, and does not load it without its beginning. It reports false as adopt does, and where the
// session was begun with another model provider than Config.Provider: codex would go on with that one.
func (r *Runtime) adoptWhole(thread, folder string) (bool, error) {
	o, ok := r.origin(thread)
	if !ok || r.provider() != "" && o.Provider != r.provider() {
		return false, nil
	}
	if r.written(thread) {
		return false, errElsewhere
	}
	line := []string{thread}
	for ok && threadID(o.Base.Thread) && len(line) <= maxForks {
		line = slices.Insert(line, 0, o.Base.Thread)
		o, ok = r.origin(o.Base.Thread)
	}
	found := false
	for _, id := range line { // the beginning first, so that no fork stands without it
		var err error
		if found, err = r.adopt(id, folder); err != nil {
			return false, err
		}
	}
	return found, nil
}

// provider is the model provider that sessions have to go on with; empty where codex has its own.
func (r *Runtime) provider() string {
	if r.config.Provider == nil {
		return ""
	}
	return "drawbridge" // see arguments
}

// origin reads where a session of the user's comes from; false where there is none that can be read.
func (r *Runtime) origin(thread string) (origin, bool) {
	dir := r.userSessions()
	if dir == "" {
		return origin{}, false
	}
	paths, err := filepath.Glob(filepath.Join(dir, "*", "*", "*", "rollout-*"+thread+".jsonl"))
	if err != nil || len(paths) != 1 {
		return origin{}, false
	}
	if info, err := os.Lstat(paths[0]); err != nil || !info.Mode().IsRegular() {
		return origin{}, false
	}
	file, err := os.Open(paths[0])
	if err != nil {
		return origin{}, false
	}
	defer func() { _ = file.Close() }()
	line, err := bufio.NewReader(io.LimitReader(file, 4<<20)).ReadBytes('\n')
	if err != nil {
		return origin{}, false
	}
	var meta struct {
		Payload origin `json:"payload"`
	}
	err = json.Unmarshal(line, &meta)
	return meta.Payload, err == nil
}

// written reports whether a codex of the user's has a session loaded. It holds a lock on a file of the session's name for
// as long; one that was killed leaves the file behind, without the lock. The lock is given back at once.
func (r *Runtime) written(thread string) bool {
	f, err := os.Open(filepath.Join(filepath.Dir(r.config.Login), "thread-writer-locks", thread+".lock"))
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }()
	return errors.Is(unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB), unix.EWOULDBLOCK)
}
