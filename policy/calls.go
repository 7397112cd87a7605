package policy

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

// call looks at one command: the words a program would be started with, and the text on its standard input where the
// line holds it.
func (l *line) call(args []string, input string) {
	if l.calls += 1 + len(args)/16; l.calls > maxCalls {
		l.hide()
		return
	}
	if len(args) == 0 {
		return
	}
	word, rest := args[0], args[1:]
	if strings.ContainsAny(word, unsure) || strings.HasPrefix(word, "=") {
		l.hide()
		for _, a := range rest {
			l.touch(a, false)
		}
		// An empty value would make the next word the command.
		l.call(rest, input)
		return
	}
	if bodies := l.aliases[word]; bodies != nil && l.depth < maxNesting {
		l.depth++
		for _, body := range bodies {
			l.call(append(strings.Fields(body), rest...), input)
		}
		l.depth--
	}
	name := program(word)
	if l.caught && !notable(name) {
		return
	}
	l.found.add(programs[name]...)
	l.verb(name, rest)
	l.files(name, rest)
	if l.depth >= maxNesting {
		l.hide()
		return
	}
	l.depth++
	l.special(name, rest, input)
	l.depth--
}

// program is the name that the tables know a command's first word by. Letter case does not count, because some file
// systems ignore it, and a version behind the name neither.
func program(word string) string {
	name := strings.TrimSuffix(strings.ToLower(path.Base(word)), ".exe")
	if short := strings.TrimRight(name, "0123456789."); slices.Contains([]string{"python", "ruby", "perl", "node", "lua", "php", "pip"}, short) {
		return short
	}
	switch name {
	case "nodejs", "iojs", "tsx", "ts-node":
		return "node"
	case "pypy", "pypy3", "ipython", "ipython3":
		return "python"
	case "gmake":
		return "make"
	case "gawk", "mawk", "nawk":
		return "awk"
	case "gfind":
		return "find"
	case "gsed":
		return "sed"
	case "grm":
		return "rm"
	case "gtimeout":
		return "timeout"
	case "pnpx":
		return "npx"
	}
	return name
}

// notable reports whether a program is worth finding in text that is not a command.
func notable(name string) bool {
	return programs[name] != nil && name != "write" && name != "at" && name != "security" && name != "pass" &&
		name != "host" && name != "service" && name != "install" && name != "route" && name != "passwd" && name != "open" && name != "port" || verbs[name] != nil && name != "make" && name != "go" && name != "task" && name != "just" || name == "git"
}

// verb applies the table of verbs. A word that is not known may be any of them, unless a known one stands before it.
func (l *line) verb(name string, args []string) {
	table := verbs[name]
	if table == nil {
		return
	}
	seen := false
	for _, a := range args {
		l.found.add(table[strings.ToLower(a)]...)
		if strings.ContainsAny(a, unsure) && !seen {
			l.hide()
		}
		seen = seen || !strings.HasPrefix(a, "-")
	}
}

var outputOption = regexp.MustCompile(`^--?(o|O|out|output|outfile|out-file|output-file|output-document|output-dir|dest|destination|target-directory|log-file|report|install-dir)$`)

// files classifies the words of a program as the paths that they may be, by what the program does with files.
func (l *line) files(name string, args []string) {
	var op Op
	switch {
	case deleters[name]:
		op = OpDelete
	case writers[name]:
		op = OpWrite
	}
	for i, a := range args {
		switch {
		case name == "cp" || name == "rsync" || name == "scp" || name == "install":
			if i == len(args)-1 || i > 0 && outputOption.MatchString(args[i-1]) {
				l.mention(OpWrite, a)
			} else {
				l.touch(a, true)
			}
		case op != "":
			l.mention(op, a)
		case !readers[name]:
			l.touch(a, false)
		case i > 0 && outputOption.MatchString(args[i-1]), outputOption.MatchString(before(a)):
			l.touch(a, false)
		case !talkers[name]:
			l.mention(OpRead, a)
		}
	}
}

func before(option string) string {
	name, _, _ := strings.Cut(option, "=")
	return name
}

// touch classifies a word of a program that may write it or may only read it: it counts as written where that is
// forbidden, but does not make the line a writing one.
func (l *line) touch(word string, readOnly bool) {
	op := OpWrite
	if readOnly {
		op = OpRead
	}
	had := l.found[Write]
	l.mention(op, word)
	if !had {
		delete(l.found, Write)
	}
}

// mention classifies every part of a word that may be a path: the word, what stands behind an option, and what stands
// between the characters that programs part paths with.
func (l *line) mention(op Op, word string) {
	if word == "" || len(word) > 4096 {
		return
	}
	if strings.Contains(word, "://") {
		if i := strings.Index(strings.ToLower(word), "file://"); i >= 0 {
			l.path(op, word[i+len("file://"):])
		}
		if strings.ContainsRune(word, anyText) {
			l.runtime = true
		}
		return
	}
	if strings.Contains(word, "\n") && !strings.ContainsAny(word[:1], "/~.") {
		return
	}
	if !strings.HasPrefix(word, "-") {
		l.path(op, word)
	} else if len(word) > 2 && strings.ContainsAny(word[2:3], "/~.") {
		l.path(op, word[2:])
	}
	if strings.ContainsRune(word, anyText) {
		l.runtime = true
	}
	if !strings.ContainsAny(word, "=:,@") {
		return
	}
	for part := range strings.FieldsFuncSeq(word, func(r rune) bool { return strings.ContainsRune("=:,@", r) }) {
		if part != word && !strings.HasPrefix(part, "-") {
			l.path(op, part)
		}
	}
}

// environment looks at an assignment to a variable that changes what programs run.
func (l *line) environment(name string, values []string) {
	switch {
	case name == "PATH":
		for _, v := range values {
			l.searchPath(v)
		}
	case commandVariable(name):
		for _, v := range values {
			l.shell(v)
		}
	case strings.HasPrefix(name, "LD_"), strings.HasPrefix(name, "DYLD_"), strings.HasPrefix(name, "GIT_CONFIG"),
		strings.HasPrefix(name, "BASH_FUNC"), strings.HasPrefix(name, "npm_config_"):
		if slices.ContainsFunc(values, func(v string) bool { return v != "/dev/null" && v != "" && v != "1" }) {
			l.hide()
		}
	case slices.Contains([]string{
		"BASH_ENV", "ENV", "PROMPT_COMMAND", "PS0", "PS1", "PS4", "SHELLOPTS", "BASHOPTS", "CDPATH",
		"PYTHONSTARTUP", "PYTHONPATH", "PYTHONHOME", "PYTHONINSPECT", "NODE_OPTIONS", "NODE_PATH", "PERL5OPT", "PERL5LIB",
		"RUBYOPT", "RUBYLIB", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "MAKEFLAGS", "MFLAGS", "GOFLAGS", "GOTOOLDIR", "RUSTC_WRAPPER", "RUSTC",
		"GIT_EXEC_PATH", "GIT_DIR", "GIT_TEMPLATE_DIR", "GIT_OBJECT_DIRECTORY", "HOME", "XDG_CONFIG_HOME", "SHELL", "ZDOTDIR",
		"CARGO_HOME", "CARGO_BUILD_RUSTC_WRAPPER", "FPATH", "LESSOPEN", "LESSCLOSE", "DOCKER_HOST", "BASH_LOADABLES_PATH",
	}, name):
		if slices.ContainsFunc(values, func(v string) bool { return v != "" && v != "/dev/null" }) {
			l.hide()
		}
	}
}

// commandVariable reports whether the value of a variable is a command that programs run.
func commandVariable(name string) bool {
	switch name {
	case "PAGER", "GIT_PAGER", "MANPAGER", "GH_PAGER", "AWS_PAGER", "EDITOR", "VISUAL", "GIT_EDITOR", "GIT_SEQUENCE_EDITOR", "FCEDIT",
		"GIT_SSH_COMMAND", "GIT_SSH", "GIT_PROXY_COMMAND", "GIT_EXTERNAL_DIFF", "GIT_ASKPASS", "SSH_ASKPASS",
		"SUDO_ASKPASS", "BROWSER", "RSYNC_RSH", "CVS_RSH", "SVN_SSH", "TAR_OPTIONS", "CC", "CXX", "LD", "AR":
		return true
	}
	return false
}

// searchPath looks at a value of PATH: with a folder in it that the agent can write to, no program's name means what it
// says.
func (l *line) searchPath(value string) {
	for dir := range strings.SplitSeq(value, ":") {
		if dir == string(anyText) {
			continue // what PATH was before
		}
		if !path.IsAbs(dir) || strings.ContainsAny(dir, unsure) || slices.Contains(classifyPattern(OpRead, dir, l.in.Root, l.in), Read) || strings.HasPrefix(dir, "/tmp") || strings.HasPrefix(dir, "/var/tmp") || strings.HasPrefix(dir, "/dev/shm") {
			l.hide()
		}
	}
}
