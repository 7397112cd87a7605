package codex

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"drawbridge/internal/plainfile"
	"drawbridge/policy"
	"drawbridge/runner"
)

// changes are the files of a patch, with whole diffs.
func (s *session) changes(list []wireChange) []runner.FileChange {
	out := make([]runner.FileChange, 0, len(list))
	for _, w := range list {
		path := s.relative(w.Path)
		c := runner.FileChange{Path: path}
		switch {
		case w.Kind.Type == "add":
			c.Op, c.Diff, c.Added = runner.FileCreate, whole(path, w.Diff, '+'), count(w.Diff)
		case w.Kind.Type == "delete":
			c.Op, c.Diff, c.Removed = runner.FileDelete, whole(path, w.Diff, '-'), count(w.Diff)
		default:
			to := path
			c.Op = runner.FileEdit
			if w.Kind.MovePath != "" {
				to = s.relative(w.Kind.MovePath)
				c.Op, c.Path = runner.FileMove, path+" → "+to
			}
			hunks := w.Diff
			if i := strings.LastIndex(hunks, "\nMoved to: "); i >= 0 && c.Op == runner.FileMove {
				hunks = hunks[:i+1]
			}
			c.Diff = "--- " + side("a", path) + "\n+++ " + side("b", to) + "\n" + terminated(hunks)
			for line := range strings.Lines(hunks) {
				switch line[0] {
				case '+':
					c.Added++
				case '-':
					c.Removed++
				}
			}
		}
		out = append(out, c)
	}
	return out
}

// whole is the diff of a file that is added or deleted, of which codex tells the content.
func whole(path, content string, sign byte) string {
	n := count(content)
	var b strings.Builder
	if sign == '+' {
		fmt.Fprintf(&b, "--- /dev/null\n+++ %s\n@@ -0,0 +1,%d @@\n", side("b", path), n)
	} else {
		fmt.Fprintf(&b, "--- %s\n+++ /dev/null\n@@ -1,%d +0,0 @@\n", side("a", path), n)
	}
	b.WriteString(signed(content, sign))
	return b.String()
}

// side is a file's name in the head of a diff.
func side(of, path string) string { return of + "/" + strings.TrimPrefix(path, "/") }

// signed is a content as lines of a diff.
func signed(content string, sign byte) string {
	var b strings.Builder
	for line := range strings.Lines(content) {
		b.WriteByte(sign)
		b.WriteString(terminated(line))
		if !strings.HasSuffix(line, "\n") {
			b.WriteString("\\ No newline at end of file\n")
		}
	}
	return b.String()
}

func terminated(s string) string {
	if s == "" || strings.HasSuffix(s, "\n") {
		return s
	}
	return s + "\n"
}

func count(content string) int {
	n := strings.Count(content, "\n")
	if content != "" && !strings.HasSuffix(content, "\n") {
		n++
	}
	return n
}

// relative is a path as it stands below the workspace, or as it is.
func (s *session) relative(path string) string {
	if rel, err := filepath.Rel(s.options.Folder, path); err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return path
}

// overwritten is the size of the largest file, in bytes, that a patch may add although it is there.
const overwritten = 4 << 20

// overwriting gives files that a patch adds although they are there the content that they lose. What can't be shown is an
// error.
func (s *session) overwriting(list []wireChange) ([]wireChange, error) {
	list = slices.Clone(list)
	for i := range list {
		w := &list[i]
		if to := w.Kind.MovePath; to != "" && to != w.Path {
			if _, err := os.Lstat(to); !errors.Is(err, fs.ErrNotExist) {
				return nil, errors.New("it would move a file over another one")
			}
		}
		if w.Kind.Type != "add" {
			continue
		}
		old, err := plainfile.Read(w.Path, overwritten)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("what it would write over can't be shown: %w", err)
		}
		w.Kind.Type = "update"
		w.Diff = fmt.Sprintf("@@ -1,%d +1,%d @@\n", count(string(old)), count(w.Diff)) + signed(string(old), '-') + signed(w.Diff, '+')
	}
	return list, nil
}

// understood reports what is wrong with a patch of which it can't be shown what becomes of which file.
func understood(list []wireChange) error {
	for _, w := range list {
		moved := w.Kind.MovePath != ""
		switch {
		case !filepath.IsAbs(w.Path), moved && !filepath.IsAbs(w.Kind.MovePath):
			return errors.New("it does not say which file")
		case w.Kind.Type == "update":
		case w.Kind.Type != "add" && w.Kind.Type != "delete", moved:
			return fmt.Errorf("the kind of change %q is unknown", w.Kind.Type)
		}
	}
	return nil
}

// makeRoom makes the folders of files that a patch was allowed to add to the workspace: codex's sandbox opens only what
// is there already. Where it can't, codex fails by itself and says so.
func (s *session) makeRoom(list []wireChange) {
	root, err := os.OpenRoot(s.options.Folder)
	if err != nil {
		return
	}
	defer func() { _ = root.Close() }()
	for _, w := range list {
		path := w.Path
		if w.Kind.MovePath != "" {
			path = w.Kind.MovePath
		}
		if rel, err := filepath.Rel(s.options.Folder, path); err == nil && filepath.IsLocal(rel) && w.Kind.Type != "delete" {
			_ = root.MkdirAll(filepath.Dir(rel), 0o755) // as above
		}
	}
}

// paths are all that a patch touches.
func paths(list []wireChange) []string {
	var out []string
	for _, w := range list {
		out = append(out, w.Path)
		if w.Kind.MovePath != "" {
			out = append(out, w.Kind.MovePath)
		}
	}
	return out
}

// patchCategories says what a patch does.
func patchCategories(list []wireChange, in policy.Workspace) []policy.Category {
	var out []policy.Category
	for _, w := range list {
		switch {
		case w.Kind.Type == "delete":
			out = append(out, policy.ClassifyPath(policy.OpDelete, w.Path, in)...)
		case w.Kind.MovePath != "":
			out = append(out, policy.ClassifyPath(policy.OpDelete, w.Path, in)...)
			out = append(out, policy.ClassifyPath(policy.OpWrite, w.Kind.MovePath, in)...)
		default:
			out = append(out, policy.ClassifyPath(policy.OpWrite, w.Path, in)...)
		}
	}
	return distinct(out)
}

func distinct(c []policy.Category) []policy.Category {
	slices.Sort(c)
	return slices.Compact(c)
}

// maxDigested is how much of a file is looked at to see whether it changed; a longer one counts by its size, too.
const maxDigested = 16 << 20

// digest is over the files as they are.
func digest(files []string) (string, error) {
	h := sha256.New()
	for _, path := range files {
		_, _ = fmt.Fprintf(h, "%q ", path) // a hash takes everything
		if err := add(h, path); err != nil {
			return "", fmt.Errorf("codex: digest: %w", err)
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

func add(w io.Writer, path string) error {
	f, info, err := plainfile.Open(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		_, err = fmt.Fprint(w, "missing ")
		return err
	case errors.Is(err, plainfile.ErrNotPlain):
		_, err = fmt.Fprint(w, "no file ")
		return err
	case err != nil:
		return err
	}
	defer func() { _ = f.Close() }()
	_, _ = fmt.Fprintf(w, "%d ", info.Size())
	_, err = io.Copy(w, io.LimitReader(f, maxDigested))
	return err
}

// script is the code that a command line hands to a shell, where it does nothing else, and else the line as it is.
// Codex runs everything as /bin/bash -lc SCRIPT; the rest of such a line says nothing about what is run.
func script(command string) string {
	words, ok := split(command)
	if !ok || len(words) != 3 || words[1] != "-lc" && words[1] != "-c" {
		return command
	}
	switch words[0] {
	case "/bin/bash", "/bin/sh", "/usr/bin/bash", "/usr/bin/sh", "bash", "sh":
		return words[2]
	}
	return command
}

// split reads a line of quoted words without any expansion. It reports false for anything else.
func split(line string) (words []string, ok bool) {
	var b strings.Builder
	in := false
	for i := 0; i < len(line); i++ {
		c := line[i]
		switch {
		case c == ' ':
			if in {
				words, in = append(words, b.String()), false
				b.Reset()
			}
		case c == '\'':
			end := strings.IndexByte(line[i+1:], '\'')
			if end < 0 {
				return nil, false
			}
			b.WriteString(line[i+1 : i+1+end])
			i, in = i+1+end, true
		case c == '"':
			in = true
			for i++; ; i++ {
				if i >= len(line) || line[i] == '$' || line[i] == '`' {
					return nil, false
				}
				if line[i] == '"' {
					break
				}
				if line[i] == '\\' && i+1 < len(line) && strings.IndexByte("\"\\$`", line[i+1]) >= 0 {
					i++
				}
				b.WriteByte(line[i])
			}
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', strings.IndexByte("/-_.,:=@%+", c) >= 0:
			b.WriteByte(c)
			in = true
		default:
			return nil, false
		}
	}
	if in {
		words = append(words, b.String())
	}
	return words, true
}
