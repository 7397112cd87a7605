package runnertest

import (
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
)

// outsidePid finds the id that a process of a command has for us, by the one that it has for itself and the folder that
// it works in: a runtime may run its commands in a PID namespace (proc_pid_status(5), NSpid). It reports false if there
// is no such process. Where there is no /proc there are no namespaces either, and both ids are one.
func outsidePid(inside int, folder string) (int, bool) {
	if runtime.GOOS != "linux" {
		return inside, true
	}
	if real, err := filepath.EvalSymlinks(folder); err == nil {
		folder = real
	}
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		if cwd, err := os.Readlink(filepath.Join(dir, "cwd")); err != nil || cwd != folder {
			continue
		}
		status, _ := os.ReadFile(filepath.Join(dir, "status"))
		_, ids, _ := strings.Cut(string(status), "\nNSpid:")
		ids, _, _ = strings.Cut(ids, "\n")
		if f := strings.Fields(ids); len(f) > 0 && f[len(f)-1] == strconv.Itoa(inside) {
			pid, err := strconv.Atoi(filepath.Base(dir))
			return pid, err == nil
		}
	}
	return 0, false
}
