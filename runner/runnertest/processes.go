package runnertest

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// KillPrograms kills each process of a program, by the name of its file, that has a folder in its environment or in its
// arguments, and returns how many there were. It works where there is /proc.
func KillPrograms(program, folder string) int {
	killed := 0
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil || pid == os.Getpid() {
			continue
		}
		exe, _ := os.Readlink(filepath.Join(dir, "exe"))
		environ, _ := os.ReadFile(filepath.Join(dir, "environ"))
		line, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
		if filepath.Base(exe) != program || !bytes.Contains(append(environ, line...), []byte(folder)) {
			continue
		}
		if syscall.Kill(pid, syscall.SIGKILL) == nil {
			killed++
		}
	}
	return killed
}

// rest is a command that sleeps for long and is known by how long: process ids say nothing, because a command may run in
// a namespace of its own.
type rest string

func newRest() rest { return rest(fmt.Sprintf("sleep 600.%012d", rand.Int64N(1e12))) }

// processes are the command lines in which the rest stands: its own, and those of the shells that run it.
func (r rest) processes(e *exam) []string {
	e.Helper()
	var all []string
	if dirs, _ := filepath.Glob("/proc/[0-9]*"); len(dirs) > 0 {
		for _, dir := range dirs {
			line, _ := os.ReadFile(filepath.Join(dir, "cmdline")) // empty for one that is gone, and for a zombie
			all = append(all, strings.TrimSpace(string(bytes.ReplaceAll(line, []byte{0}, []byte{' '}))))
		}
	} else {
		out, err := exec.CommandContext(e.Context(), "ps", "-axww", "-o", "args=").Output()
		if err != nil {
			e.Fatalf("ps: %v", err)
		}
		all = strings.Split(string(out), "\n")
	}
	var list []string
	for _, line := range all {
		if strings.Contains(line, string(r)) {
			list = append(list, line)
		}
	}
	return list
}

// awaitRest waits until the rest itself runs.
func (e *exam) awaitRest(r rest) {
	e.Helper()
	for deadline := time.Now().Add(e.patience); ; time.Sleep(5 * time.Millisecond) {
		for _, line := range r.processes(e) {
			if strings.HasPrefix(line, string(r)) {
				return
			}
		}
		if time.Now().After(deadline) {
			e.Fatalf("%s was not begun within %s", r, e.patience)
		}
	}
}

// awaitGone waits until nothing of the rest is left: what was killed and is not our child is reaped by somebody else.
func (e *exam) awaitGone(r rest) {
	e.Helper()
	for deadline := time.Now().Add(e.patience); ; time.Sleep(5 * time.Millisecond) {
		left := r.processes(e)
		if len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			e.Fatalf("still runs: %q", left)
		}
	}
}
