package codex

// Data is where the runtime keeps its files.
func (r *Runtime) Data() string { return r.config.Data }

// Arguments are what a program that is at path is started with.
func (r *Runtime) Arguments(path string) []string { return r.arguments(program{path: path}) }

// Guarded are the paths that profiles name.
func Guarded(folder string) (protected, secret []string) {
	g := guarded(folder)
	return g.protected, g.secret
}

// Script is what a command line hands to a shell.
func Script(command string) string { return script(command) }

// Outer is what codex is wrapped in.
var Outer = (*Runtime).outer

// NeverSent are the words that must not be in any frame of ours.
func NeverSent() []string { return neverSent() }

// Less orders two versions as they are written.
func Less(a, b string) (bool, error) {
	v, err := versionIn(a)
	if err != nil {
		return false, err
	}
	w, err := versionIn(b)
	return v.Before(w), err
}

// Servers are the MCP servers as a thread is told of them.
func Servers(r *Runtime) any { return r.servers() }
