package native

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"drawbridge/policy"
)

// workspace is what the classification needs to know.
func (s *session) workspace() policy.Workspace {
	return policy.Workspace{Root: s.options.Folder, Home: s.runtime.home(), PublishIsOrdinary: s.options.PublishIsOrdinary}
}

// local makes a path that the model wrote one relative to the workspace. Only the form is looked at; os.Root holds the
// path to the workspace when it is opened.
func (t *turn) local(path string) (string, error) {
	if path == "" {
		return "", missing("path")
	}
	p := filepath.Clean(path)
	if filepath.IsAbs(p) {
		rel, err := filepath.Rel(t.session.options.Folder, p)
		if err != nil {
			return "", outside(path)
		}
		p = rel
	}
	if !filepath.IsLocal(p) {
		return "", outside(path)
	}
	return p, nil
}

func outside(path string) error {
	return fmt.Errorf("%s is outside the workspace, and this tool works only inside it; the shell tool can reach it if that is allowed", path)
}

// explain makes an error of the file system one that helps a model.
func explain(path string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s does not exist", path)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%s: permission denied", path)
	case strings.Contains(err.Error(), "escapes"): // os.Root has no error value for it
		return fmt.Errorf("%s leads outside the workspace by a symbolic link; the shell tool can reach it if that is allowed", path)
	}
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		err = p.Err
	}
	return fmt.Errorf("%s: %w", path, err)
}

// open opens a file for reading before anybody is asked, so that what is classified, asked and read is the same file.
// Nothing of it is read yet. A file that a person attached may lie outside the workspace.
func (t *turn) open(path string) (f *os.File, shown string, c []policy.Category, err error) {
	if t.conversation.attached[path] {
		if f, err = openPlain(func() (*os.File, error) { return os.OpenFile(path, os.O_RDONLY|nonblock, 0) }); err != nil {
			return nil, "", nil, explain(path, err)
		}
		return f, path, []policy.Category{policy.Read}, nil
	}
	p, err := t.local(path)
	if err != nil {
		return nil, "", nil, err
	}
	f, err = openPlain(func() (*os.File, error) { return t.session.root.OpenFile(p, os.O_RDONLY|nonblock, 0) })
	if err != nil {
		return nil, "", nil, explain(path, err)
	}
	return f, p, policy.ClassifyPath(policy.OpRead, p, t.session.workspace()), nil
}

// openPlain opens and refuses what is no plain file: reading a pipe or a device could wait for ever.
func openPlain(open func() (*os.File, error)) (*os.File, error) {
	f, err := open()
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	switch {
	case err != nil:
	case info.IsDir():
		err = errors.New("it is a folder")
	case !info.Mode().IsRegular():
		err = errors.New("it is not a plain file")
	default:
		return f, nil
	}
	_ = f.Close()
	return nil, err
}
