package process

import (
	"errors"
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"
)

func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
}

// waitUnreaped returns when the child has ended, and leaves it to be reaped. It reports false where it could not wait.
func waitUnreaped(pid int) bool {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return err == nil
		}
	}
}

// SetUndumpable makes this process unreadable for others of the same user: no ptrace, no /proc/pid/mem, no
// /proc/pid/environ, no core dump (prctl(2), PR_SET_DUMPABLE). It does not bind root.
func SetUndumpable() error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("process: set undumpable: %w", err)
	}
	return nil
}
