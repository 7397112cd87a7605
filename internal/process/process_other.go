//go:build unix && !linux

package process

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// waitUnreaped returns when the child has ended, and leaves it to be reaped: kqueue tells of an exit without reaping. It
// reports false where it could not wait.
func waitUnreaped(pid int) bool {
	kq, err := unix.Kqueue()
	if err != nil {
		return false
	}
	defer func() { _ = unix.Close(kq) }()
	change := unix.Kevent_t{Fflags: unix.NOTE_EXIT}
	unix.SetKevent(&change, pid, unix.EVFILT_PROC, unix.EV_ADD|unix.EV_ONESHOT)
	events := make([]unix.Kevent_t, 1)
	for {
		_, err := unix.Kevent(kq, []unix.Kevent_t{change}, events, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.ESRCH): // it has ended already
			return true
		default:
			return err == nil
		}
	}
}

// SetUndumpable does nothing here: only Linux can.
func SetUndumpable() error { return nil }
