package native

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"drawbridge/formatting"
	"drawbridge/policy"
	"drawbridge/runner"
)

// editLimit is the size of a file that can be edited or written: its whole diff has to be shown to a person.
const editLimit = 1 << 20

func planEdit(t *turn, arguments json.RawMessage) (*action, error) {
	var in struct {
		Path       string  `json:"path"`
		Old        *string `json:"old"`
		New        *string `json:"new"`
		ReplaceAll bool    `json:"replace_all"`
	}
	if err := decode(arguments, &in); err != nil {
		return nil, err
	}
	switch {
	case in.Old == nil || *in.Old == "":
		return nil, missing("old")
	case in.New == nil:
		return nil, missing("new")
	case *in.Old == *in.New:
		return nil, errors.New("old and new are the same")
	}
	path, err := t.local(in.Path)
	if err != nil {
		return nil, err
	}
	before, err := t.current(path)
	if err != nil {
		return nil, err
	}
	if !before.exists {
		return nil, fmt.Errorf("%s does not exist; write_file makes files", in.Path)
	}
	n := strings.Count(before.text, *in.Old)
	switch {
	case n == 0:
		return nil, fmt.Errorf("the text was not found in %s%s", in.Path, nearly(before.text, *in.Old))
	case n > 1 && !in.ReplaceAll:
		return nil, fmt.Errorf("the text is %d times in %s; give more of what is around it, or set replace_all", n, in.Path)
	}
	return t.planWrite(path, before, strings.ReplaceAll(before.text, *in.Old, *in.New))
}

// nearly says how the file differs from the text that was looked for, where only blanks do.
func nearly(text, old string) string {
	squeeze := func(s string) string { return strings.Join(strings.Fields(s), " ") }
	switch {
	case strings.Contains(text, "\r\n") && strings.Contains(strings.ReplaceAll(text, "\r\n", "\n"), old):
		return "; its lines end with \\r\\n, and the text has to have that too"
	case strings.Contains(squeeze(text), squeeze(old)):
		return "; it is there with other blanks or line breaks, so read the file again and copy them exactly"
	}
	return "; read the file again"
}

func planWriteFile(t *turn, arguments json.RawMessage) (*action, error) {
	var in struct {
		Path    string  `json:"path"`
		Content *string `json:"content"`
	}
	if err := decode(arguments, &in); err != nil {
		return nil, err
	}
	if in.Content == nil {
		return nil, missing("content")
	}
	path, err := t.local(in.Path)
	if err != nil {
		return nil, err
	}
	before, err := t.current(path)
	if err != nil {
		return nil, err
	}
	if before.exists && before.text == *in.Content {
		return nil, fmt.Errorf("%s holds exactly that already", in.Path)
	}
	return t.planWrite(path, before, *in.Content)
}

// content is a file as it was when it was looked at.
type content struct {
	exists bool
	text   string
	mode   fs.FileMode
}

func (c content) digest() string {
	if !c.exists {
		return "absent"
	}
	sum := sha256.Sum256([]byte(c.text))
	return hex.EncodeToString(sum[:])
}

// current looks at a file that is to be written. What is no plain text file is an error.
func (t *turn) current(path string) (content, error) {
	info, err := t.session.root.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return content{mode: 0o644}, nil
	case err != nil:
		return content{}, explain(path, err)
	case info.Mode()&fs.ModeSymlink != 0:
		return content{}, fmt.Errorf("%s is a symbolic link; name the file behind it", path)
	case info.Size() > editLimit:
		return content{}, fmt.Errorf("%s is too large to be edited here (%d bytes)", path, info.Size())
	}
	f, err := openPlain(func() (*os.File, error) { return t.session.root.OpenFile(path, os.O_RDONLY|nonblock, 0) })
	if err != nil {
		return content{}, explain(path, err)
	}
	defer func() { _ = f.Close() }()
	b, err := io.ReadAll(io.LimitReader(f, editLimit+1))
	switch {
	case err != nil:
		return content{}, explain(path, err)
	case len(b) > editLimit:
		return content{}, fmt.Errorf("%s is too large to be edited here", path)
	case !utf8.Valid(b):
		return content{}, fmt.Errorf("%s is not a text file", path)
	}
	return content{exists: true, text: string(b), mode: info.Mode().Perm()}, nil
}

// planWrite shows the change from what the file holds to what it shall hold, and writes exactly that if the file still
// holds what was shown.
func (t *turn) planWrite(path string, before content, after string) (*action, error) {
	switch {
	case len(after) > editLimit:
		return nil, fmt.Errorf("the content is too large to be written here (%d bytes)", len(after))
	case !utf8.ValidString(after):
		return nil, errors.New("the content is not valid UTF-8")
	}
	change := runner.FileChange{Path: path, Op: runner.FileEdit}
	verb, from := "Edit ", "a/"+path
	if !before.exists {
		change.Op, verb, from = runner.FileCreate, "Create ", "/dev/null"
	}
	change.Diff = formatting.Diff(before.text, after, formatting.DiffOptions{Old: from, New: "b/" + path})
	for _, s := range formatting.DiffStat(change.Diff) {
		change.Added, change.Removed = change.Added+s.Added, change.Removed+s.Removed
	}
	return &action{
		item: runner.Item{Kind: runner.ItemFileChange, Title: verb + path, Files: []runner.FileChange{change}},
		question: runner.Question{
			Kind: runner.KindFileChange, Files: []runner.FileChange{change},
			Check: func() (string, error) {
				now, err := t.current(path)
				return now.digest(), err
			},
		},
		categories: policy.ClassifyPath(policy.OpWrite, path, t.session.workspace()),
		do: func(context.Context, *runner.Item) (string, error) {
			now, err := t.current(path)
			if err != nil {
				return "", err
			}
			if now != before {
				return "", fmt.Errorf("%s was changed by somebody else in the meantime; nothing was written, read it again", path)
			}
			if err := t.replace(path, after, before.mode); err != nil {
				return "", explain(path, err)
			}
			return fmt.Sprintf("Done: %s now has %d lines (+%d, −%d).", path, strings.Count(after, "\n"), change.Added, change.Removed), nil
		},
	}, nil
}

// replace writes a file so that a kill leaves the old one or the new one, never half of it.
func (t *turn) replace(path, text string, mode fs.FileMode) error {
	root := t.session.root
	if err := root.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	part := filepath.Join(filepath.Dir(path), ".drawbridge-"+rand.Text())
	f, err := root.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	err = errors.Join(err, f.Chmod(mode), f.Close()) // the umask may have taken bits that the file had
	if err == nil {
		err = root.Rename(part, path)
	}
	if err != nil {
		_ = root.Remove(part)
	}
	return err
}
