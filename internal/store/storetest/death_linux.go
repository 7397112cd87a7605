package storetest

import "syscall"

// diesWithParent makes the kernel kill a server whose test was killed, since no cleanup runs then.
func diesWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
