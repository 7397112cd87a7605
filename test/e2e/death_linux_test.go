package e2e_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// diesWithParent makes the kernel kill a process whose test was killed, since no cleanup runs then.
func diesWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }

// under lists the processes that work in a folder or were started with its name: their ids and command lines.
func under(dir string) []string {
	var out []string
	all, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil
	}
	for _, p := range all {
		if filepath.Base(p) == strconv.Itoa(os.Getpid()) {
			continue
		}
		cwd, _ := os.Readlink(p + "/cwd")
		line, _ := os.ReadFile(p + "/cmdline")
		command := strings.ReplaceAll(string(line), "\x00", " ")
		if cwd == dir || strings.HasPrefix(cwd, dir+"/") || strings.Contains(command, dir+"/") {
			out = append(out, filepath.Base(p)+" "+command)
		}
	}
	return out
}
