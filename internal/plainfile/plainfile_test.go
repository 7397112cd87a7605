package plainfile_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"drawbridge/internal/plainfile"
)

// TestNothingIsWaitedFor reads what is no plain file: each of it would block, or never end.
func TestNothingIsWaitedFor(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	pipe, link, dangling, long := filepath.Join(dir, "pipe"), filepath.Join(dir, "link"), filepath.Join(dir, "dangling"), filepath.Join(dir, "long")
	if err := errors.Join(
		syscall.Mkfifo(pipe, 0o600), os.Symlink("pipe", link), os.Symlink("nothing", dangling),
		os.WriteFile(filepath.Join(dir, "plain"), []byte("text"), 0o600), os.WriteFile(long, []byte(strings.Repeat("x", 101)), 0o600),
		os.Symlink("plain", filepath.Join(dir, "good")),
	); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]error{
		pipe: plainfile.ErrNotPlain, link: plainfile.ErrNotPlain, "/dev/zero": plainfile.ErrNotPlain, "/dev/tty": plainfile.ErrNotPlain,
		"/proc/self/environ": plainfile.ErrNotPlain, "/proc/kmsg": plainfile.ErrNotPlain, dir: plainfile.ErrNotPlain,
		dangling: fs.ErrNotExist, filepath.Join(dir, "missing"): fs.ErrNotExist, long: plainfile.ErrTooLarge,
	} {
		if _, err := os.Lstat(path); err != nil && !errors.Is(want, fs.ErrNotExist) {
			continue // this machine has none
		}
		if b, err := plainfile.Read(path, 100); !errors.Is(err, want) {
			t.Errorf("%s: %q, %v, want %v", path, b, err, want)
		}
	}
	for _, path := range []string{"plain", "good"} {
		if b, err := plainfile.Read(filepath.Join(dir, path), 100); err != nil || string(b) != "text" {
			t.Errorf("%s: %q, %v", path, b, err)
		}
	}
}
