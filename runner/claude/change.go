package claude

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"drawbridge/formatting"
	"drawbridge/internal/plainfile"
	"drawbridge/runner"
)

// editLimit is the size of the largest file whose change is computed.
const editLimit = 4 << 20

// expectation is what a file has to hold once the call is done.
type expectation struct {
	path string // absolute
	text string
}

// met reports whether the file holds what was shown.
func (e *expectation) met() bool {
	now, err := look(e.path)
	return err == nil && now.exists && now.text == e.text
}

// errUnseen begins the reasons why it cannot be shown what a file will hold.
var errUnseen = errors.New("what it will hold cannot be shown beforehand")

func unseen(format string, args ...any) error {
	return fmt.Errorf("%w: %s", errUnseen, fmt.Sprintf(format, args...))
}

// change computes what Edit and Write will make of a file, as the program does it.
func (s *session) change(name string, raw json.RawMessage) (runner.FileChange, *expectation, error) {
	var in struct {
		Path    string  `json:"file_path"`
		Content *string `json:"content"`
		Old     *string `json:"old_string"`
		New     *string `json:"new_string"`
		All     bool    `json:"replace_all"`
	}
	if err := json.Unmarshal(raw, &in); err != nil || in.Path == "" {
		return runner.FileChange{}, nil, unseen("the call is malformed")
	}
	path := s.absolute(in.Path)
	before, err := look(path)
	if err != nil {
		return runner.FileChange{}, nil, unseen("%v", err)
	}
	var after string
	switch {
	case name == "Write" && in.Content != nil:
		after = *in.Content
	case name == "Edit" && in.Old != nil && in.New != nil:
		if after, err = before.edited(*in.Old, *in.New, in.All); err != nil {
			return runner.FileChange{}, nil, err
		}
	default:
		return runner.FileChange{}, nil, unseen("the call is malformed")
	}
	if !utf8.ValidString(after) || len(after) > editLimit {
		return runner.FileChange{}, nil, unseen("it is no text, or too long")
	}
	shown := s.shown(path)
	f := runner.FileChange{Path: shown, Op: runner.FileEdit}
	from := "a/" + shown
	if !before.exists {
		f.Op, from = runner.FileCreate, "/dev/null"
	}
	f.Diff = formatting.Diff(before.text, after, formatting.DiffOptions{Old: from, New: "b/" + shown})
	for _, st := range formatting.DiffStat(f.Diff) {
		f.Added, f.Removed = f.Added+st.Added, f.Removed+st.Removed
	}
	return f, &expectation{path: path, text: after}, nil
}

func (s *session) absolute(path string) string {
	switch {
	case filepath.IsAbs(path):
		return path
	case path == "~" || strings.HasPrefix(path, "~/"):
		return filepath.Join(s.runtime.home(), path[1:])
	}
	return filepath.Join(s.options.Folder, path)
}

// shown is a path for people: relative where it is in the workspace, as it is written.
func (s *session) shown(path string) string {
	if rest, below := strings.CutPrefix(path, s.options.Folder+"/"); below && filepath.Clean(path) == path {
		return rest
	}
	return path
}

// edited is the text with a replacement, if there is no doubt what the program will do. It looks for the text with line
// ends of one character, keeps those of the file, and takes a line's end away with a text that is removed. Where it finds
// a text only by taking quotation marks for one another, what it will write is not known.
func (b fileContent) edited(old, text string, all bool) (string, error) {
	if !b.exists {
		if old == "" {
			return text, nil
		}
		return "", unseen("the file does not exist")
	}
	now := strings.ReplaceAll(b.text, "\r\n", "\n")
	crlf := now != b.text
	n := strings.Count(now, old)
	switch {
	case old == "":
		return "", unseen("no text to replace is given")
	case strings.Contains(now, "\r") || crlf && strings.Count(now, "\n") != len(b.text)-len(now):
		return "", unseen("its lines end in several ways")
	case n == 0:
		return "", unseen("the text to replace is not in it")
	case n > 1 && !all:
		return "", unseen("the text to replace is in it %d times", n)
	}
	if text == "" && !strings.HasSuffix(old, "\n") {
		switch strings.Count(now, old+"\n") {
		case 0:
		case n:
			old += "\n"
		default:
			return "", unseen("the text to remove ends a line in some places only")
		}
	}
	now = strings.ReplaceAll(now, old, text)
	if crlf {
		now = strings.ReplaceAll(now, "\n", "\r\n")
	}
	return now, nil
}

// fileContent is a file as it was when it was looked at.
type fileContent struct {
	exists bool
	text   string
}

// content0 looks at a file that is to be written. What is no plain text file is an error.
func look(path string) (fileContent, error) {
	b, err := plainfile.Read(path, editLimit)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fileContent{}, nil
	case errors.Is(err, plainfile.ErrNotPlain), errors.Is(err, plainfile.ErrTooLarge):
		return fileContent{}, err
	case err != nil:
		return fileContent{}, errors.New("it cannot be read")
	case !utf8.Valid(b) || strings.HasPrefix(string(b), "\ufeff"):
		return fileContent{}, errors.New("it is no plain UTF-8 text")
	}
	return fileContent{exists: true, text: string(b)}, nil
}

// digested is how much of a file is compared; of what is larger, its size and the time of its last change beside that.
const digested = 64 << 20

// unchanged is a check for a question: the digest of the file as it is at the moment of the call.
func (s *session) unchanged(path string) func() (string, error) {
	path = s.absolute(path)
	return func() (string, error) {
		f, info, err := plainfile.Open(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return "absent", nil
		case errors.Is(err, plainfile.ErrNotPlain):
			return "no file", nil
		case err != nil:
			return "", fmt.Errorf("claude: check a file: %w", err)
		}
		defer func() { _ = f.Close() }()
		h := sha256.New()
		_, _ = fmt.Fprintf(h, "%d %d ", info.Size(), info.ModTime().UnixNano()) // a hash takes everything
		if _, err := io.Copy(h, io.LimitReader(f, digested)); err != nil {
			return "", fmt.Errorf("claude: check a file: %w", err)
		}
		return hex.EncodeToString(h.Sum(nil)), nil
	}
}
