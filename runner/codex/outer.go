package codex

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// errNoBubblewrap says that there is nothing to make the outer sandbox with.
var errNoBubblewrap = errors.New("bubblewrap is neither installed nor a part of codex")

// outer is what codex is started with so that it can't see what is hidden: nothing where nothing is to be hidden. An
// error says why there is no outer sandbox although there should be one. It is tried each time, by hiding a file that is
// there.
func (r *Runtime) outer(ctx context.Context) ([]string, error) {
	if len(r.config.Hidden) == 0 {
		return nil, nil
	}
	p, err := r.find()
	if err != nil {
		return nil, err
	}
	bwrap := lookPath("bwrap")
	if bwrap == "" {
		bwrap = p.bwrap
	}
	if bwrap == "" {
		return nil, errNoBubblewrap
	}
	if err := r.tryOuter(ctx, bwrap); err != nil {
		return nil, err
	}
	return outerArguments(bwrap, r.config.Hidden)
}

// outerArguments hide the paths that exist. A user namespace is always made, and nobody is root in it: as root, even as
// root of the namespace, one can take away what lies above a hidden folder.
func outerArguments(bwrap string, hidden []string) ([]string, error) {
	args := []string{bwrap, "--die-with-parent", "--unshare-user", "--unshare-pid", "--dev-bind", "/", "/", "--proc", "/proc"}
	if os.Geteuid() == 0 {
		args = append(args, "--uid", "1000", "--gid", "1000")
	}
	for _, path := range hidden {
		path, err := filepath.EvalSymlinks(path)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("hide: %w", err)
		}
		info, err := os.Stat(path)
		switch {
		case err != nil:
			return nil, fmt.Errorf("hide: %w", err)
		case info.IsDir():
			args = append(args, "--tmpfs", path)
		default:
			args = append(args, "--ro-bind", os.DevNull, path)
		}
	}
	return append(args, "--"), nil
}

// tryOuter sees whether a file is hidden by bubblewrap on this machine.
func (r *Runtime) tryOuter(ctx context.Context, bwrap string) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	dir, err := os.MkdirTemp(r.scratch(), "hidden")
	if err != nil {
		return fmt.Errorf("try bubblewrap: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("seen"), 0o600); err != nil {
		return fmt.Errorf("try bubblewrap: %w", err)
	}
	args, err := outerArguments(bwrap, []string{dir})
	if err != nil {
		return fmt.Errorf("try bubblewrap: %w", err)
	}
	args = append(args, "/bin/sh", "-c", `umount "$1" 2>/dev/null; cat "$1/file" 2>/dev/null; echo tried`, "sh", dir)
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Env = []string{"PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"}
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("try bubblewrap: %w: %s", err, bytes.TrimSpace(out))
	}
	if string(out) != "tried\n" {
		return errors.New("try bubblewrap: it does not hide what it should")
	}
	return nil
}
