package claude

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// terminals are the programs that people run in a folder.
type terminals struct {
	named   map[string]bool // sessions that they were told to continue
	unnamed bool            // there is one that was not told which
}

// running looks at the processes of the system, as far as this user may.
func running(folder string) terminals {
	out := terminals{named: map[string]bool{}}
	here := spellings(folder)
	processes, _ := filepath.Glob("/proc/[0-9]*")
	for _, process := range processes {
		name, err := os.ReadFile(filepath.Join(process, "comm"))
		if err != nil || strings.TrimSpace(string(name)) != "claude" {
			continue
		}
		if at, err := os.Readlink(filepath.Join(process, "cwd")); err != nil || !slices.Contains(here, at) {
			continue
		}
		line, err := os.ReadFile(filepath.Join(process, "cmdline"))
		if err != nil {
			continue
		}
		arguments := strings.Split(string(line), "\x00")
		if slices.Contains(arguments, strings.Join(withheld(), ",")) {
			continue // one of ours
		}
		if i := slices.IndexFunc(arguments, validID); i >= 0 {
			out.named[arguments[i]] = true
		} else {
			out.unnamed = true
		}
	}
	return out
}
