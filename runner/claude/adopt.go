package claude

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"drawbridge/runner"
)

// adopt copies a conversation of folder that is only in the person's configuration into ours, where the program finds it
// when it resumes. Theirs is not changed, and the two go their own ways from here. It does nothing where the conversation
// is ours, and the error is runner.ErrNoSession if it cannot be read; what is in neither is for the program to tell.
func (r *Runtime) adopt(folder, token string) error {
	if r.config.Login == "" || !validID(token) {
		return nil
	}
	r.making.Lock()
	defer r.making.Unlock()
	if known, err := r.has(token); err != nil || known {
		return err
	}
	found, err := conversations(r.config.Login, folder)
	if err != nil {
		return fmt.Errorf("look for the session: %w", err)
	}
	i := slices.IndexFunc(found, func(s stored) bool { return s.token == token })
	if i < 0 {
		return nil
	}
	if t, err := found[i].read(folder); err != nil || !t.here {
		return runner.ErrNoSession
	}
	if err := found[i].copy(filepath.Join(r.configuration(), "projects", found[i].project)); err != nil {
		return fmt.Errorf("take over the session: %w", err)
	}
	return nil
}

// has reports whether our configuration has a conversation, in whatever folder it was held.
func (r *Runtime) has(token string) (bool, error) {
	projects := filepath.Join(r.configuration(), "projects")
	names, err := os.ReadDir(projects)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	} else if err != nil {
		return false, fmt.Errorf("look for the session: %w", err)
	}
	return slices.ContainsFunc(names, func(name os.DirEntry) bool {
		_, err := os.Lstat(filepath.Join(projects, name.Name(), token+".jsonl"))
		return err == nil
	}), nil
}

// copy copies the file into a folder, wholly or not at all.
func (s stored) copy(folder string) error {
	from, err := s.open()
	if err != nil {
		return err
	}
	defer from.Close() //nolint:errcheck // only read
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	to, err := os.CreateTemp(folder, "adopted-") // with mode 0600
	if err != nil {
		return err
	}
	_, err = io.Copy(to, from)
	if err = errors.Join(err, to.Close()); err == nil {
		err = os.Rename(to.Name(), filepath.Join(folder, s.token+".jsonl"))
	}
	if err != nil {
		return errors.Join(err, os.Remove(to.Name()))
	}
	return nil
}
