package process

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// innerWord makes a supervisor the first process of a PID namespace.
const innerWord = "inner"

// executablePath is this program even if its file was replaced by a newer one since.
func executablePath() (string, error) { return "/proc/self/exe", nil }

// contain finds the strongest hold that there is here. The supervisor that the host starts (the outer one) starts a
// second (the inner one) as the first process of a PID namespace: with that one's end the kernel ends all in it, however
// it has hidden. Two, because the host, being undumpable, cannot make a user namespace, and because the outer one takes
// over where the inner one finds that it cannot work.
func contain(args []string) int {
	if len(args) > 0 && args[0] == innerWord {
		return inner()
	}
	// Orphans become our children, in whatever session they are (prctl(2)).
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return supervise(false, describe("become a subreaper", err))
	}
	if len(args) > 0 && args[0] == plainWord {
		undump()
		return supervise(false, "not wanted")
	}
	pid, why := startInner()
	undump()
	if why != "" {
		return supervise(false, why)
	}
	letGo()
	_ = unix.Close(controlFD)
	_ = unix.Close(statusFD)
	for {
		var s syscall.WaitStatus
		got, err := syscall.Wait4(-1, &s, 0, nil)
		if got == pid && (s.Exited() || s.Signaled()) || errors.Is(err, syscall.ECHILD) {
			return 0 // wait4 returns after the whole namespace is gone
		}
	}
}

// keepDescriptors keeps all but the standard streams from the program, also those that the host itself was started with
// and does not know of.
func keepDescriptors() {
	if unix.CloseRange(controlFD, ^uint(0), unix.CLOSE_RANGE_CLOEXEC) != nil { // before Linux 5.11
		for fd := controlFD; fd < 1024; fd++ {
			syscall.CloseOnExec(fd)
		}
	}
}

// undump hides what the order says, such as another program's environment, from the program.
func undump() { _ = SetUndumpable() } // it can only fail for a wrong argument

// startInner starts the inner supervisor and waits until it knows that it can work, or says why there is none.
func startInner() (pid int, why string) {
	var ready [2]int
	if err := unix.Pipe2(ready[:], unix.O_CLOEXEC); err != nil {
		return 0, describe("make a pipe", err)
	}
	attr := &syscall.SysProcAttr{
		Setsid: true, Pdeathsig: syscall.SIGKILL, Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS,
	}
	if uid, gid := os.Geteuid(), os.Getegid(); uid != 0 {
		// In a user namespace of its own a program has no way to become somebody else: sudo does not work there.
		attr.Cloneflags |= syscall.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}}
		attr.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN} // for the mounts; given up before the program is started
	}
	pid, err := syscall.ForkExec("/proc/self/exe", []string{"drawbridge", SuperviseCommand, innerWord}, &syscall.ProcAttr{
		Dir: "/", Env: []string{}, Files: []uintptr{0, 1, 2, controlFD, statusFD, uintptr(ready[1])}, Sys: attr,
	})
	_ = unix.Close(ready[1])
	answer := os.NewFile(uintptr(ready[0]), "ready")
	defer func() { _ = answer.Close() }()
	if err != nil {
		return 0, describe("make a PID namespace", err)
	}
	said, err := io.ReadAll(answer)
	if err != nil || string(said) != "ok" {
		var s syscall.WaitStatus
		for {
			if _, err := syscall.Wait4(pid, &s, 0, nil); !errors.Is(err, syscall.EINTR) {
				break
			}
		}
		if len(said) == 0 {
			said = []byte("the first process of the PID namespace ended")
		}
		return 0, string(said)
	}
	return pid, ""
}

// inner is the life of the inner supervisor.
func inner() int {
	if os.Getpid() != 1 {
		return 1 // started by hand: this would mount over the machine's /proc
	}
	ready := os.NewFile(readyFD, "ready")
	if err := ownProc(); err != nil {
		_, _ = ready.WriteString(describe("mount the namespace's own /proc", err))
		return 1
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		_, _ = ready.WriteString(describe("give up capabilities", err))
		return 1
	}
	undump()
	_, _ = ready.WriteString("ok")
	_ = ready.Close()
	return supervise(true, "")
}

// ownProc gives the namespace a /proc of its own: in the host's one programs would look for their process ids and find
// somebody else's. Other mounts still come in from outside, and none goes out.
func ownProc() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
		return err
	}
	return unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "")
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
		_ = unix.Dup3(null, fd, 0)
	}
	_ = unix.Close(null)
}

// signalAll sends a signal to every process of the program. The first process of a namespace reaches all in it; else it
// is whoever descends from us, which all do while we collect the orphans.
func signalAll(_ int, sig syscall.Signal) {
	if os.Getpid() == 1 {
		_ = syscall.Kill(-1, sig)
		return
	}
	for _, pid := range descendants() {
		_ = syscall.Kill(pid, sig)
	}
}

// remaining counts what still lives.
func remaining(int) int { return len(descendants()) }

// descendants are the living processes below us.
func descendants() []int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	children := map[int][]int{}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if parent, ok := parentOf(pid); ok {
			children[parent] = append(children[parent], pid)
		}
	}
	var found []int
	for next := children[os.Getpid()]; len(next) > 0; {
		var below []int
		for _, pid := range next {
			found = append(found, pid)
			below = append(below, children[pid]...)
		}
		next = below
	}
	return found
}

// parentOf reads a living process' parent (proc_pid_stat(5)); the name before it may hold anything. A zombie is kept as
// a link to its children, which become ours once it is reaped.
func parentOf(pid int) (int, bool) {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, false
	}
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 2 {
		return 0, false
	}
	parent, err := strconv.Atoi(string(fields[1]))
	return parent, err == nil
}
