// Package plainfile opens files that an agent named, to show or to compare what is in them.
//
// It guarantees that nothing waits for a file that gives nothing, such as a pipe, and that no device is opened, which may
// do something by that alone or never end. What stands below /proc and /sys looks like a plain file and is none.
package plainfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

var (
	// ErrNotPlain says that there is something else than a plain file.
	ErrNotPlain = errors.New("it is no plain file")
	// ErrTooLarge says that a file is larger than what is to be read of it.
	ErrTooLarge = errors.New("it is too large")
)

// Open opens the file behind path for reading. What is not there is fs.ErrNotExist, what is no plain file ErrNotPlain.
func Open(path string) (*os.File, fs.FileInfo, error) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, nil, fmt.Errorf("plainfile: open: %w", err)
	}
	for _, folder := range []string{"/proc/", "/sys/"} {
		if strings.HasPrefix(real, folder) {
			return nil, nil, ErrNotPlain
		}
	}
	// A device is not even opened.
	if info, err := os.Lstat(real); err != nil {
		return nil, nil, fmt.Errorf("plainfile: open: %w", err)
	} else if !info.Mode().IsRegular() {
		return nil, nil, ErrNotPlain
	}
	f, err := os.OpenFile(real, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("plainfile: open: %w", err)
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = ErrNotPlain // it was replaced meanwhile
	}
	if err != nil {
		_ = f.Close() // nothing was written
		return nil, nil, err
	}
	return f, info, nil
}

// Read is all of a file of at most limit bytes.
func Read(path string, limit int64) ([]byte, error) {
	f, info, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	if info.Size() > limit {
		return nil, ErrTooLarge
	}
	b, err := io.ReadAll(io.LimitReader(f, limit+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("plainfile: read: %w", err)
	case int64(len(b)) > limit:
		return nil, ErrTooLarge
	}
	return b, nil
}
