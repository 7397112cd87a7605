package codex

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"drawbridge/policy"
)

// access is what a profile says of a path: a word, or a table of paths below it.
type access any

const (
	accessRead  = "read"
	accessWrite = "write"
	accessDeny  = "deny"
)

// profile is a permission profile: the system's folders and the workspace, and nothing else of the machine. The editing
// one can write the workspace, but for what is guarded.
//
// Only the one for plan denies what holds secrets: with an entry that denies, codex keeps in the sandbox, without a
// network, what a person allowed to leave it, and goes on with that in later turns, until the thread is loaded again.
// In plan nothing is allowed to leave it.
func (r *Runtime) profile(name string, p program, found guards) map[string]access {
	workspace := map[string]access{".": accessRead}
	files := map[string]access{":minimal": accessRead, ":project_roots": workspace}
	// Codex starts itself in the sandbox.
	for _, dir := range append([]string{filepath.Dir(p.path), r.attachments()}, r.config.Readable...) {
		files[dir] = accessRead
	}
	switch name {
	case profilePlan:
		for _, path := range found.secret {
			workspace[path] = accessDeny
		}
	case profileEdit:
		workspace["."] = accessWrite
		for _, path := range append(found.protected, found.secret...) {
			workspace[path] = accessRead
		}
		files[r.scratch()] = accessWrite // compilers and tests need room for temporary files
	}
	return map[string]access{"filesystem": files}
}

// toml writes a profile as a table on one line.
func toml(v access) string {
	t, ok := v.(map[string]access)
	if !ok {
		word, _ := v.(string)
		return quote(word)
	}
	var entries []string
	for _, k := range slices.Sorted(maps.Keys(t)) {
		entries = append(entries, key(k)+"="+toml(t[k]))
	}
	return "{" + strings.Join(entries, ",") + "}"
}

const (
	guardDepth   = 3    // folders below the workspace that are searched, the workspace itself included
	guardEntries = 3000 // names that are looked at
	guardLimit   = 200  // paths that a profile names
)

// guards are paths of a workspace that its profiles name, each sorted.
type guards struct {
	protected []string // by the policy; the editing profile keeps them read-only, so that a patch to them is asked
	secret    []string // as those, and hidden from plan
}

func (g guards) equal(h guards) bool {
	return slices.Equal(g.protected, h.protected) && slices.Equal(g.secret, h.secret)
}

// guarded looks for what a workspace has to be guarded. What is not there can't be named: codex would put a placeholder
// in its place while commands run, which other programs see and which is left behind when they are killed.
func guarded(folder string) guards {
	var found guards
	in := policy.Workspace{Root: folder}
	seen := 0
	level := []string{"."}
	for range guardDepth {
		var next []string
		for _, dir := range level {
			list, err := os.ReadDir(filepath.Join(folder, dir))
			if err != nil {
				continue // not ours to read, so not the agent's
			}
			for _, e := range list {
				path := filepath.Join(dir, e.Name())
				if seen++; seen > guardEntries || len(found.protected)+len(found.secret) == guardLimit {
					return found.sorted()
				}
				c := policy.ClassifyPath(policy.OpWrite, path, in)
				switch {
				case e.Type()&os.ModeSymlink != 0:
					// What it leads to outside is not writable, and what it leads to inside is looked at itself.
				case slices.Contains(c, policy.Secret):
					found.secret = append(found.secret, path)
				case slices.Contains(c, policy.Protected):
					found.protected = append(found.protected, path)
				case e.IsDir() && e.Name() != "node_modules":
					next = append(next, path)
				}
			}
		}
		level = next
	}
	return found.sorted()
}

func (g guards) sorted() guards {
	slices.Sort(g.protected)
	slices.Sort(g.secret)
	return g
}

// placeholders are the folders that codex protects in a workspace that it may write. Where one is not there it makes it
// for the time that a command runs, and does not always take it away.
func placeholders() []string { return []string{".git", ".codex", ".agents", ".aws"} }

// missing are the placeholders that are not in the folder.
func missing(folder string) []string {
	return slices.DeleteFunc(placeholders(), func(name string) bool {
		_, err := os.Lstat(filepath.Join(folder, name))
		return err == nil
	})
}

// tidy takes away those of the names that are empty folders.
func tidy(folder string, names []string) {
	for _, name := range names {
		path := filepath.Join(folder, name)
		if info, err := os.Lstat(path); err == nil && info.IsDir() {
			_ = os.Remove(path) // refuses a folder that holds anything
		}
	}
}
