//go:build unix && !linux

package process

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// executablePath is this program's file.
func executablePath() (string, error) { return os.Executable() }

// contain has nothing stronger than a process group here: no namespace, and orphans go to the first process of the
// system. What leaves the program's group on purpose (a daemon, setsid) is not found and outlives it.
func contain([]string) int {
	return supervise(false, "this system has no PID namespaces and no subreapers")
}

// keepDescriptors keeps all but the standard streams from the program, also those that the host itself was started with
// and does not know of.
func keepDescriptors() {
	for fd := controlFD; fd < 1024; fd++ {
		syscall.CloseOnExec(fd)
	}
}

// letGo closes our ends of the program's standard streams, so that their end is seen when the program closes its own.
func letGo() {
	null, err := unix.Open("/dev/null", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		for fd := range 3 {
			_ = unix.Close(fd)
		}
		return
	}
	for fd := range 3 {
		_ = unix.Dup2(null, fd)
	}
	_ = unix.Close(null)
}

// signalAll sends a signal to the program's group. The group's id is not used again while a process is in it; if none is,
// the signal is sent once, right after the program was reaped.
func signalAll(pid int, sig syscall.Signal) { _ = syscall.Kill(-pid, sig) }

// remaining cannot be known.
func remaining(int) int { return 0 }
