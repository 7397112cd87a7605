package codex

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"drawbridge/runner"
)

// inputs are a prompt as codex takes it. Its images are sent; any other file is copied to where the sandbox shows it.
func (s *session) inputs(in runner.Input) ([]input, error) {
	var list []input
	if in.Text != "" || len(in.Files) == 0 {
		list = append(list, input{Type: "text", Text: in.Text})
	}
	for i, f := range in.Files {
		if image(f.Path) {
			list = append(list, input{Type: "localImage", Path: f.Path})
			continue
		}
		path, err := s.copied(i, f)
		if err != nil {
			return nil, fmt.Errorf("attach %s: %w", f.Name, err)
		}
		list = append(list, input{Type: "text", Text: "Attached file " + strconv.Quote(f.Name) + ": " + path})
	}
	return list, nil
}

func image(name string) bool {
	switch strings.ToLower(filepath.Ext(name)) {
	case ".png", ".jpg", ".jpeg", ".gif", ".webp":
		return true
	}
	return false
}

// copied copies a file, and returns the path of the copy. The copies go with the session.
func (s *session) copied(n int, f runner.File) (_ string, err error) {
	s.mu.Lock()
	if s.attached == "" {
		s.attached, err = os.MkdirTemp(s.runtime.attachments(), "session")
	}
	folder := s.attached
	s.mu.Unlock()
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp(folder, strconv.Itoa(n)+"-")
	if err != nil {
		return "", err
	}
	name := filepath.Base(filepath.Clean("/" + f.Name))
	if name == "/" {
		name = "file"
	}
	from, err := os.Open(f.Path)
	if err != nil {
		return "", err
	}
	defer func() { _ = from.Close() }()
	to, err := os.OpenFile(filepath.Join(dir, name), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return "", err
	}
	if _, err := io.Copy(to, from); err != nil {
		_ = to.Close()
		return "", err
	}
	if err := to.Close(); err != nil {
		return "", err
	}
	return to.Name(), nil
}
