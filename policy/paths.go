package policy

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// Sandbox is what a command is confined to. Only a sandbox that was seen to work on this machine may be named: the
// classification believes it.
type Sandbox string

// The sandboxes. Any other value counts as NoSandbox.
const (
	NoSandbox        Sandbox = ""          // the command can do what the user can do
	SandboxReadOnly  Sandbox = "read-only" // nothing can be written
	SandboxWorkspace Sandbox = "workspace" // only the workspace can be written
)

// Workspace is where an action happens and what confines it.
type Workspace struct {
	Root    string  // the project's folder, absolute; with any other value every path counts as the strictest
	Home    string  // the user's home folder, absolute; empty means that paths under ~ can't be resolved
	Sandbox Sandbox // what confines commands
	// PublishIsOrdinary says that an owner moved publishing out of human-only for this project. It then counts as
	// Network and Terminal. Nothing else of human-only can be moved.
	PublishIsOrdinary bool
}

// Op is what is done to a path.
type Op string

// The three operations. Any other value counts as the strictest.
const (
	OpRead   Op = "read"
	OpWrite  Op = "write" // creating, changing, renaming, linking, changing permissions
	OpDelete Op = "delete"

	// opSecret stands for a word of a command that is not known to be a path: it counts only if it is named like a secret.
	opSecret Op = "secret"
)

// ClassifyPath says what op on path is. A relative path is relative to in.Root and a leading ~ is the home folder, also
// where a shell would not expand it. Both names count, the one that was written and the one behind all symbolic links;
// what does not exist yet counts as its longest existing prefix and the rest. Names of secrets and of protected files
// are recognised in any letter case and with invisible characters, because some file systems ignore both.
//
// What can't be resolved (an empty path, a NUL byte, a loop, a folder that may not be searched, a Root that is not
// absolute, a link of /proc, which leads each process elsewhere) is outside, secret and protected at once. A device is
// outside: for a tool it is no file, and a standard input may be the one by which its program is told what it may do. It
// can't see hard links, and what it says is true at the moment
// of the call only: a link can be replaced afterwards, so files must be opened in a way that holds them to the
// workspace, too. The result is sorted and never empty.
func ClassifyPath(op Op, path string, in Workspace) []Category {
	found := set{}
	switch {
	case strings.ContainsRune(path, 0):
		found.add(strictestPath(op)...)
	case device(path) && path != "/dev/null" && op == OpRead:
		found.add(ReadOutside)
	case device(path) && op == OpWrite:
		found.add(Protected)
	default:
		found.add(classifyPattern(op, path, in.Root, in)...)
	}
	return found.sorted()
}

// set collects categories.
type set map[Category]bool

func (s set) add(c ...Category) {
	for _, one := range c {
		s[one] = true
	}
}

func (s set) sorted() []Category { return slices.Sorted(maps.Keys(s)) }

// Two bytes stand in words of commands for what is not known before the command runs. Neither can be part of an
// argument that a program receives and that matters here.
const (
	anyText  = '\x00' // any text at all, slashes and dots too: a variable, a substitution
	globText = '\x01' // a shell's pattern: any text without a slash, not starting with a dot
)

const unsure = string(anyText) + string(globText)

// strictestPath is what a path counts as that can't be resolved.
func strictestPath(op Op) []Category {
	switch op {
	case OpRead:
		return []Category{ReadOutside, Secret}
	case OpWrite:
		return []Category{Protected, Secret}
	case OpDelete:
		return []Category{Delete, Protected, Secret}
	case opSecret:
	}
	return []Category{Delete, Protected, Secret, Unknown}
}

// classifyPattern is ClassifyPath for a path that may hold anyText and globText, relative to dir.
func classifyPattern(op Op, path, dir string, in Workspace) []Category {
	if op != OpRead && op != OpWrite && op != OpDelete || path == "" || !filepath.IsAbs(in.Root) || !filepath.IsAbs(dir) {
		return strictestPath(op)
	}
	written, ok := absolute(path, dir, in.Home)
	if !ok {
		return strictestPath(op)
	}
	if device(written) && op != OpDelete {
		return []Category{Read}
	}
	head, tail := written, ""
	if i := strings.IndexAny(written, unsure); i >= 0 {
		cut := strings.LastIndexByte(written[:i], '/') + 1
		head, tail = written[:cut], written[cut:]
	}
	real, err := resolve(head)
	if err != nil {
		return strictestPath(op)
	}
	if tail != "" {
		real = strings.TrimSuffix(real, "/") + "/" + tail
	}
	root, err := resolve(filepath.Clean(in.Root))
	if err != nil {
		return strictestPath(op)
	}
	inside := real == root || strings.HasPrefix(real, strings.TrimSuffix(root, "/")+"/")
	if strings.ContainsRune(tail, anyText) || strings.Contains(tail, "..") {
		inside = false
	}
	// The names above the workspace are the owner's choice: a project below ~/.codex/worktrees is not protected for that.
	names := []string{written, real}
	if inside {
		names = []string{strings.TrimPrefix(written, in.Root), strings.TrimPrefix(real, root)}
	}
	var out []Category
	secret := slices.ContainsFunc(names, secretPath)
	if secret {
		out = append(out, Secret)
	}
	if op == OpRead {
		if inside {
			return append(out, Read)
		}
		return append(out, ReadOutside)
	}
	if op == OpDelete {
		out = append(out, Delete)
	}
	switch {
	case secret || !inside || slices.ContainsFunc(names, protectedPath), real == root && op == OpDelete:
		out = append(out, Protected)
	case op == OpWrite:
		out = append(out, Write)
	}
	return out
}

// absolute makes path absolute without cleaning it: what stands before a ".." may be a link.
func absolute(path, dir, home string) (string, bool) {
	if strings.HasPrefix(path, "~") {
		name, rest, _ := strings.Cut(path, "/")
		if name != "~" {
			// Another user's home, or the shell's own ~+ and ~-: somewhere outside.
			return "/" + string(anyText) + "/" + rest, true
		}
		if !filepath.IsAbs(home) {
			return "", false
		}
		return home + "/" + rest, true
	}
	if strings.HasPrefix(path, "/") {
		return path, true
	}
	return dir + "/" + path, true
}

var (
	// errLoop says that a path has more links than any honest one.
	errLoop = errors.New("policy: too many symbolic links")
	// errOwn says that a path leads somewhere else in each process: it can't be followed here for another one.
	errOwn = errors.New("policy: a link of a process")
)

// resolve follows every link of an absolute path, component by component, and lets what does not exist stand as it is
// written. Unlike filepath.EvalSymlinks it resolves a path whose end does not exist, and unlike filepath.Clean it
// follows a link before the ".." behind it.
func resolve(path string) (string, error) {
	rest := strings.Split(path, "/")
	done := "/"
	for links := 0; len(rest) > 0; {
		name := rest[0]
		rest = rest[1:]
		switch name {
		case "", ".":
			continue
		case "..":
			done = filepath.Dir(done)
			continue
		}
		next := filepath.Join(done, name)
		if next == "/proc/self" || next == "/proc/thread-self" {
			done = next
			continue
		}
		info, err := os.Lstat(next)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
			done = next
			continue
		}
		if err != nil {
			return "", err
		}
		if info.Mode()&fs.ModeSymlink == 0 {
			done = next
			continue
		}
		if strings.HasPrefix(done, "/proc/") {
			return "", errOwn
		}
		if links++; links > 40 {
			return "", errLoop
		}
		target, err := os.Readlink(next)
		if err != nil {
			return "", err
		}
		if strings.HasPrefix(target, "/") {
			done = "/"
		}
		rest = append(strings.Split(target, "/"), rest...)
	}
	return done, nil
}

// device reports whether path is one of the devices that can be read and written without any effect.
func device(path string) bool {
	switch path {
	case "/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/tty":
		return true
	}
	n, ok := strings.CutPrefix(path, "/dev/fd/")
	return ok && n != "" && strings.Trim(n, "0123456789") == ""
}
