package process

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// Spec says what an agent's environment is made of.
type Spec struct {
	// Home is the program's own home folder, absolute. Never the home of whoever runs us: credentials live there.
	Home string
	// Lookup reads our own environment, such as os.LookupEnv. Only the names of Inherited are ever looked up.
	Lookup func(name string) (string, bool)
	// Set is given to the program as it is and wins over everything else. It is the only way for a key to get in, so
	// each runtime gives here what is its own and nothing more.
	Set map[string]string
}

// defaultPath is used where our own environment has no usable PATH.
const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// Inherited are the names that an agent's environment takes from ours: where programs are, and how text is written. A
// name that is not here is never inherited, whatever it is called.
func Inherited() []string {
	return []string{"PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "USER", "LOGNAME", "SHELL"}
}

// Environment makes the environment of an agent's process: the Inherited names, its own HOME, a TERM that invites no
// colours, and Spec.Set. It is sorted. Relative folders in PATH are left out, because a workspace could put programs there.
func Environment(s Spec) []string {
	env := map[string]string{"PATH": defaultPath, "TERM": "dumb", "HOME": s.Home}
	if s.Lookup != nil {
		for _, name := range Inherited() {
			if v, ok := s.Lookup(name); ok && v != "" {
				env[name] = v
			}
		}
	}
	env["PATH"] = absolute(env["PATH"])
	maps.Copy(env, s.Set)
	list := make([]string, 0, len(env))
	for _, name := range slices.Sorted(maps.Keys(env)) {
		list = append(list, name+"="+env[name])
	}
	return list
}

// absolute keeps the absolute folders of a PATH.
func absolute(path string) string {
	kept := slices.DeleteFunc(filepath.SplitList(path), func(d string) bool { return !filepath.IsAbs(d) })
	if len(kept) == 0 {
		return defaultPath
	}
	return strings.Join(kept, string(filepath.ListSeparator))
}
