package codex

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"drawbridge/runner"
)

const (
	listedFiles = 500       // how many sessions are looked at for those of a folder
	listedHead  = 256 << 10 // bytes of a session's file in which its first prompt is looked for
	listedTail  = 256 << 10 // and its last messages
	listedLines = 4         // messages that are shown
	listedRunes = 500       // of each
)

// kept is the file in which codex keeps a session: a line of JSON for each thing that was said, the first one about the
// session itself.
type kept struct {
	path string
	used time.Time
	user bool // in the user's own CODEX_HOME
}

// keptLine is what is read of a line.
type keptLine struct {
	Type    string `json:"type"`
	Payload struct {
		ID      string          `json:"id"`
		Cwd     string          `json:"cwd"`
		Parent  string          `json:"parent_thread_id"`
		Source  json.RawMessage `json:"source"`
		Type    string          `json:"type"`
		Role    string          `json:"role"`
		Content []struct {
			Text string `json:"text"`
		} `json:"content"`
	} `json:"payload"`
}

// userSessions is where codex keeps the sessions that the user begins in a terminal; empty if that is not known.
func (r *Runtime) userSessions() string {
	if r.config.Login == "" {
		return ""
	}
	return filepath.Join(filepath.Dir(r.config.Login), "sessions")
}

// Sessions lists the sessions of a folder, those that were begun in a terminal too; see runner.Lister.
func (r *Runtime) Sessions(ctx context.Context, folder string, limit int) ([]runner.SessionInfo, error) {
	folder, err := filepath.EvalSymlinks(folder)
	if err != nil {
		return nil, fmt.Errorf("codex: sessions: %w", err)
	}
	files := keptBelow(filepath.Join(r.codexHome(), "sessions"), false)
	if dir := r.userSessions(); dir != "" {
		files = append(files, keptBelow(dir, true)...)
	}
	slices.SortStableFunc(files, func(a, b kept) int { return b.used.Compare(a.used) })
	seen := map[string]bool{} // what stands in both places goes on as ours, whichever was used last
	for _, f := range files {
		if !f.user {
			seen[f.id()] = true
		}
	}
	var out []runner.SessionInfo
	for i, f := range files {
		if len(out) >= limit || i >= listedFiles {
			break
		}
		if ctx.Err() != nil {
			return nil, fmt.Errorf("codex: sessions: %w", context.Cause(ctx))
		}
		meta, err := f.meta()
		if err != nil || meta.Payload.Cwd != folder || f.user && seen[meta.Payload.ID] {
			continue
		}
		info, err := f.info(meta.Payload.ID)
		if err != nil || len(info.Last) == 0 {
			continue // nothing was said in it
		}
		switch {
		case f.user:
			info.Command = "cd " + word(folder) + " && codex resume " + info.Token
		case r.config.Provider == nil: // a terminal's codex does not know ours, and refuses to go on without it
			info.Command = "cd " + word(folder) + " && CODEX_HOME=" + word(r.codexHome()) + " codex resume " + info.Token
		}
		info.Busy = f.user && r.written(info.Token) || !f.user && !r.runs() && openElsewhere(f.path)
		out = append(out, info)
	}
	return out, nil
}

// runs reports whether our codex runs, which may have a session's file open for a while after it was closed.
func (r *Runtime) runs() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.current != nil
}

// id is the session's, by the name of its file.
func (f kept) id() string {
	name := strings.TrimSuffix(filepath.Base(f.path), ".jsonl")
	return name[max(0, len(name)-36):]
}

// keptBelow finds the files of sessions.
func keptBelow(dir string, user bool) []kept {
	paths, err := filepath.Glob(filepath.Join(dir, "*", "*", "*", "rollout-*.jsonl"))
	if err != nil {
		return nil // the pattern is good
	}
	var out []kept
	for _, p := range paths {
		if info, err := os.Lstat(p); err == nil && info.Mode().IsRegular() {
			out = append(out, kept{p, info.ModTime(), user})
		}
	}
	return out
}

// meta is the first line. A sub-agent's session is none of its own.
func (f kept) meta() (keptLine, error) {
	var l keptLine
	file, err := os.Open(f.path)
	if err != nil {
		return l, err
	}
	defer func() { _ = file.Close() }()
	line, err := bufio.NewReader(io.LimitReader(file, 4<<20)).ReadBytes('\n')
	if err != nil {
		return l, err
	}
	if err := json.Unmarshal(line, &l); err != nil {
		return l, err
	}
	if l.Type != "session_meta" || !threadID(l.Payload.ID) || l.Payload.Parent != "" || bytes.HasPrefix(l.Payload.Source, []byte("{")) {
		return l, errors.New("codex: no session of a person")
	}
	return l, nil
}

// info reads what was said first and last.
func (f kept) info(id string) (runner.SessionInfo, error) {
	out := runner.SessionInfo{Token: id, Used: f.used}
	file, err := os.Open(f.path)
	if err != nil {
		return out, err
	}
	defer func() { _ = file.Close() }()
	head := make([]byte, listedHead)
	n, err := io.ReadFull(file, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return out, err
	}
	for _, m := range said(head[:n]) {
		if !m.Agent {
			out.Title = clipped(strings.Join(strings.Fields(m.Text), " "))
			break
		}
	}
	end, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		return out, err
	}
	if _, err := file.Seek(max(0, end-listedTail), io.SeekStart); err != nil {
		return out, err
	}
	tail, err := io.ReadAll(io.LimitReader(file, listedTail))
	if err != nil {
		return out, err
	}
	out.Last = said(tail)
	if n := len(out.Last); n > listedLines {
		out.Last = out.Last[n-listedLines:]
	}
	return out, nil
}

// said are the messages in a piece of a file. What codex itself says to the model, in the person's name, is left out.
func said(piece []byte) []runner.SessionLine {
	var out []runner.SessionLine
	for line := range bytes.Lines(piece) {
		var l keptLine
		if json.Unmarshal(line, &l) != nil || l.Type != "response_item" || l.Payload.Type != "message" {
			continue // another thing, or a line that was cut
		}
		var parts []string
		for _, c := range l.Payload.Content {
			parts = append(parts, c.Text)
		}
		text := strings.TrimSpace(strings.Join(parts, "\n"))
		switch l.Payload.Role {
		case "user":
			if text == "" || strings.HasPrefix(text, "<") || strings.HasPrefix(text, "# AGENTS.md instructions") {
				continue
			}
		case "assistant":
		default:
			continue
		}
		if runes := []rune(text); len(runes) > listedRunes {
			text = string(runes[:listedRunes]) + "…"
		}
		out = append(out, runner.SessionLine{Agent: l.Payload.Role == "assistant", Text: text})
	}
	return out
}

// openElsewhere reports whether a process has a file open, as far as that can be seen.
func openElsewhere(path string) bool {
	links, err := filepath.Glob("/proc/[0-9]*/fd/*")
	if err != nil {
		return false
	}
	return slices.ContainsFunc(links, func(l string) bool {
		to, err := os.Readlink(l)
		return err == nil && to == path
	})
}

// adopt copies a session that the user began in a terminal to where our codex finds it. The user's stays as it is: from
// here on they are two. It reports false where there is none of the folder.
func (r *Runtime) adopt(thread, folder string) (bool, error) {
	dir := r.userSessions()
	if dir == "" {
		return false, nil
	}
	paths, err := filepath.Glob(filepath.Join(dir, "*", "*", "*", "rollout-*"+thread+".jsonl"))
	if err != nil || len(paths) != 1 {
		return false, nil //nolint:nilerr // the pattern is good
	}
	meta, err := kept{path: paths[0]}.meta()
	if err != nil || meta.Payload.ID != thread || meta.Payload.Cwd != folder {
		return false, nil //nolint:nilerr // it is no session that could be meant
	}
	rel, err := filepath.Rel(dir, paths[0])
	if err != nil {
		return false, fmt.Errorf("codex: adopt: %w", err)
	}
	b, err := os.ReadFile(paths[0])
	if err != nil {
		return false, fmt.Errorf("codex: adopt: %w", err)
	}
	to := filepath.Join(r.codexHome(), "sessions", rel)
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return false, fmt.Errorf("codex: adopt: %w", err)
	}
	if _, err := os.Lstat(to); !errors.Is(err, fs.ErrNotExist) {
		return false, nil // it was there already, and codex did not want it
	}
	// Written beside its place and moved there: a kill in between must not leave half a session.
	part := to + ".part"
	if err := errors.Join(os.WriteFile(part, b, 0o600), os.Rename(part, to)); err != nil {
		return false, fmt.Errorf("codex: adopt: %w", errors.Join(err, os.Remove(part)))
	}
	return true, nil
}

// word is a word for a shell.
func word(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
