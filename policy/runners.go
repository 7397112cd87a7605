package policy

import (
	"regexp"
	"slices"
	"strings"
)

// special looks at what the tables can't say: programs with commands, code or other programs among their words.
func (l *line) special(name string, args []string, input string) {
	if w, ok := wrappers[name]; ok {
		l.wrapped(name, w, args, input)
	}
	switch name {
	case "sh", "bash", "dash", "zsh", "ksh", "mksh", "ash", "fish", "tcsh", "csh", "rbash", "su", "runuser", "pwsh", "powershell", "cmd", "elvish", "nu", "xonsh", "osh", "yash":
		l.shellProgram(name, args, input)
	case "eval":
		l.eval(args)
	case ".", "source":
		l.source(args)
	case "trap":
		if len(args) > 0 && args[0] != "-" && args[0] != "-p" && args[0] != "-l" {
			l.shell(args[0])
		}
	case "alias":
		l.alias(args)
	case "cd", "pushd", "chdir":
		l.chdir(args)
	case "popd", "wait", "true", "false", ":", "echo":
	case "printf":
		if i := slices.Index(args, "-v"); i >= 0 && i+1 < len(args) {
			l.set(args[i+1], string(anyText))
			l.environment(args[i+1], []string{string(anyText)})
		}
	case "read", "mapfile", "readarray", "getopts":
		for _, a := range args {
			if !strings.HasPrefix(a, "-") {
				l.set(a, string(anyText))
				l.environment(a, []string{string(anyText)})
			}
		}
	case "export", "declare", "typeset", "local", "readonly", "setenv":
		// Known to the parser as a clause of its own, unless it stands behind "command" or "builtin".
		for _, a := range args {
			if k, v, ok := strings.Cut(a, "="); ok {
				l.environment(k, []string{v})
				l.set(k, v)
			}
		}
	case "unset":
		for _, a := range args {
			if !strings.HasPrefix(a, "-") {
				l.set(a, "")
			}
		}
	case "set":
		if len(args) == 0 {
			l.found.add(Secret)
		}
	case "printenv":
		if len(args) == 0 || slices.ContainsFunc(args, secretName.MatchString) {
			l.found.add(Secret)
		}
	case "hash", "enable", "bind", "complete", "fc", "zmodload", "autoload", "osascript", "emacs", "vim", "vi", "nvim", "ex", "ed", "m4", "expect", "tclsh", "wish", "gawk-sh", "sqlite3", "dc":
		l.opaqueProgram(name, args, input)
	case "git":
		l.git(args)
	case "find", "fd", "fdfind":
		l.find(args)
	case "rsync", "tar", "gtar", "zip", "rg", "sort", "man", "scp", "sftp", "less", "split", "cpio", "bsdtar", "nc", "ncat", "socat", "mail", "crontab", "at", "batch", "make", "ninja", "just", "task", "curl", "wget", "go", "openssl", "tmux", "docker", "podman", "npm", "pnpm", "yarn", "bun", "cargo", "pip", "uv", "poetry", "pipenv", "bundle", "gradle", "gradlew", "mvn", "mvnw", "rake", "dd", "cmake", "kubectl", "nix", "kill", "test-kitchen", "ldd", "sed", "truncate", "nix-shell", "mv", "pipx", "conda", "gh", "http", "https", "xh", "vercel":
		l.withCommand(name, args, input)
	case "python", "node", "ruby", "perl", "php", "lua", "luajit", "julia", "rscript", "elixir", "erl", "awk", "deno", "groovy", "scala", "ghci", "guile", "racket", "sbcl", "jshell", "swift", "busybox-awk":
		l.interpreter(name, args, input)
	}
}

// shellProgram looks at a call of a shell: its -c line, its script, or what it reads.
func (l *line) shellProgram(name string, args []string, input string) {
	for i := 0; i < len(args); i++ {
		a := args[i]
		low := strings.ToLower(a)
		switch {
		case a == "--rcfile" || a == "--init-file" || a == "-EncodedCommand" || low == "-enc" || low == "-encodedcommand":
			l.hide()
			i++
		case strings.HasPrefix(a, "--command=") || strings.HasPrefix(a, "--session-command="):
			l.shell(a[strings.IndexByte(a, '=')+1:])
			return
		case a == "--command" || a == "--session-command" || low == "-command" || low == "/c" || len(a) > 1 && (a[0] == '-' || a[0] == '+') && a[1] != '-' && strings.ContainsRune(low, 'c') && low != "-norc":
			l.dashC(name, args[i+1:])
			return
		case a == "-o" || a == "+o" || a == "-O" || a == "+O":
			i++
		case a == "-" || a == "-s" || a == "--":
			if a != "--" || i+1 == len(args) {
				l.stdin(input)
				return
			}
		case strings.HasPrefix(a, "-") || strings.HasPrefix(a, "+"):
		case name == "su":
			// The first operand is the user.
		default:
			if device(a) || strings.ContainsAny(a, unsure) {
				l.stdin(input)
			}
			return
		}
	}
	l.stdin(input)
}

// dashC looks at the code behind -c: the first word that is no option. What stands behind it are $0, $1 and so on.
func (l *line) dashC(name string, args []string) {
	for i, a := range args {
		if (strings.HasPrefix(a, "-") || strings.HasPrefix(a, "+")) && len(a) > 1 {
			continue
		}
		if name == "cmd" || name == "powershell" || name == "pwsh" {
			a = strings.Join(args[i:], " ")
		}
		l.shell(a)
		if name == "cmd" || name == "powershell" || name == "pwsh" {
			l.foreign(a)
		}
		return
	}
	l.hide()
}

// stdin looks at code that a shell reads from its input.
func (l *line) stdin(input string) {
	if input == "" {
		l.hide()
		return
	}
	l.shell(input)
}

// eval looks at a line that is put together from words. As text that can be seen it is a line like any other; the shell
// expands it a second time, so that what was quoted the first time counts.
func (l *line) eval(args []string) {
	if len(args) > 0 {
		l.shell(strings.Join(args, " "))
	}
}

func (l *line) source(args []string) {
	if len(args) == 0 || device(args[0]) || strings.ContainsAny(args[0], unsure) {
		l.hide()
	}
}

func (l *line) alias(args []string) {
	for _, a := range args {
		name, body, ok := strings.Cut(a, "=")
		if !ok {
			continue
		}
		l.shell(body)
		if !slices.Contains(l.aliases[name], body) {
			l.aliases[name] = append(l.aliases[name], body)
			l.changed = true
		}
	}
}

func (l *line) chdir(args []string) {
	args = slices.DeleteFunc(slices.Clone(args), func(a string) bool {
		return strings.HasPrefix(a, "-") && len(a) > 1 || strings.HasPrefix(a, "+")
	})
	switch {
	case len(args) == 0:
		l.enter("~")
	case args[0] == "-":
		// Back to a folder that is among them already.
	case args[0] == "":
	default:
		l.enter(args[0])
	}
}

// opaqueProgram is one whose words or input are commands in a language of its own.
func (l *line) opaqueProgram(name string, args []string, input string) {
	for _, a := range append(slices.Clone(args), input) {
		switch {
		case strings.ContainsRune(a, '!'), strings.Contains(a, "system"), strings.Contains(a, "exec"), strings.Contains(a, "shell"),
			strings.Contains(a, ".load"), strings.Contains(a, ".output"), strings.Contains(a, ".once"), strings.ContainsRune(a, anyText) && name != "sqlite3":
			l.hide()
			l.search(a)
		case strings.HasPrefix(a, "+"):
			l.hide()
		}
	}
	switch name {
	case "osascript", "enable", "bind", "expect", "tclsh", "wish", "fc", "m4", "zmodload", "autoload", "complete", "dc":
		l.hide()
		l.search(strings.Join(args, " ") + "\n" + input)
	case "hash":
		if slices.ContainsFunc(args, func(a string) bool { return strings.HasPrefix(a, "-p") }) {
			l.hide()
		}
	case "ed", "ex":
		if input == "" {
			l.hide()
		}
	}
}

// find looks at the expressions of find that do something with what was found.
func (l *line) find(args []string) {
	for i, a := range args {
		if l.calls > maxCalls {
			return
		}
		switch a {
		case "-exec", "-execdir", "-ok", "-okdir", "-x", "--exec", "-X", "--exec-batch":
			end := i + 1
			for end < len(args) && args[end] != ";" && args[end] != "+" {
				end++
			}
			inner := slices.Clone(args[i+1 : end])
			roots := l.roots(args)
			for j, w := range inner {
				if !strings.Contains(w, "{") {
					continue
				}
				// A name that was found is below one of the folders; code that it is put into is code with a hole.
				if w == "{}" {
					inner[j] = roots
				} else {
					inner[j] = strings.ReplaceAll(w, "{}", string(anyText))
				}
			}
			if len(inner) > 0 && a[0] == '-' && strings.HasPrefix(a, "-x") || strings.HasPrefix(a, "--") || a == "-X" {
				inner = append(inner, roots)
			}
			l.call(inner, string(anyText))
		case "-delete":
			for _, r := range args {
				if strings.HasPrefix(r, "-") || r == "(" || r == "!" {
					break
				}
				l.mention(OpDelete, r+"/"+string(globText))
			}
		case "-fprint", "-fprint0", "-fls", "-fprintf":
			if i+1 < len(args) {
				l.mention(OpWrite, args[i+1])
			}
		}
	}
}

// roots is what find puts in place of {}: a name below the folder it starts from, or anything where it starts from
// several.
func (l *line) roots(args []string) string {
	n := 0
	for n < len(args) && !strings.HasPrefix(args[n], "-") && args[n] != "(" && args[n] != "!" {
		n++
	}
	switch n {
	case 0:
		return "./" + string(globText)
	case 1:
		return strings.TrimSuffix(args[0], "/") + "/" + string(globText)
	}
	return string(anyText)
}

var (
	releaseTarget = regexp.MustCompile(`(?i)(^|[-_:./])(publish[a-z]*|release|deploy|push|upload|ship|announce)($|[-_:./])`)
	deleteTarget  = regexp.MustCompile(`(?i)(^|[-_:./])(clean|distclean|purge|nuke|reset|destroy|wipe|drop)($|[-_:./])`)
	installTarget = regexp.MustCompile(`(?i)(^|[-_:./])(install|uninstall)($|[-_:./])`)
	messageHost   = regexp.MustCompile(`(?i)(api\.telegram\.org|hooks\.slack\.com|slack\.com/api|discord(app)?\.com/api|api\.sendgrid|api\.mailgun|api\.twilio|graph\.facebook|smtps?://|api\.x\.com|api\.twitter|upload\.pypi\.org|registry\.npmjs\.org/-|api\.github\.com|uploads\.github\.com)`)
	paymentHost   = regexp.MustCompile(`(?i)(api\.stripe\.com|api(-m)?\.paypal\.com|api\.coinbase\.com|api\.square)`)
)
