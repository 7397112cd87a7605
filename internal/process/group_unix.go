//go:build unix

package process

import (
	"os"
	"syscall"
)

// killGroup ends every process of the group. A group that is gone already is fine.
func killGroup(pgid int) { _ = syscall.Kill(-pgid, syscall.SIGKILL) }

// terminateGroup asks every process of the leader's group to end. The leader is not reaped before its supervisor knows,
// and Process.Signal fails once it is, so that the id is never somebody else's.
func terminateGroup(leader *os.Process) {
	if leader.Signal(syscall.Signal(0)) == nil {
		_ = syscall.Kill(-leader.Pid, syscall.SIGTERM)
	}
}

func exitCode(s *os.ProcessState) int {
	if ws, ok := s.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return s.ExitCode()
}
