package policy

import (
	"slices"
	"strings"
)

// values returns what options of these names are given, as "-o v", "-ov", "--long v" and "--long=v".
func values(args []string, options ...string) []string {
	var out []string
	for i, a := range args {
		for _, o := range options {
			switch {
			case a == o && i+1 < len(args):
				out = append(out, args[i+1])
			case strings.HasPrefix(o, "--") && strings.HasPrefix(a, o+"="):
				out = append(out, a[len(o)+1:])
			case len(o) == 2 && o[1] != '-' && strings.HasPrefix(a, o) && len(a) > 2:
				out = append(out, strings.TrimPrefix(a[2:], "="))
			}
		}
	}
	return out
}

// hasOption reports whether one of the options is given, also among several short ones in one word.
func hasOption(args []string, options ...string) bool {
	return slices.ContainsFunc(args, func(a string) bool {
		return slices.ContainsFunc(options, func(o string) bool {
			if a == o || strings.HasPrefix(a, o+"=") && strings.HasPrefix(o, "--") {
				return true
			}
			return len(o) == 2 && len(a) > 2 && a[0] == '-' && a[1] != '-' && strings.Contains(a[1:], o[1:])
		})
	})
}

// withCommand looks at the programs that run another one because of an option, and at those whose targets and addresses
// say what they do.
func (l *line) withCommand(name string, args []string, input string) {
	shells := func(options ...string) {
		for _, v := range values(args, options...) {
			l.shell(v)
		}
	}
	switch name {
	case "rsync":
		shells("-e", "--rsh", "--rsync-path")
		if slices.ContainsFunc(args, func(a string) bool { return strings.ContainsRune(a, ':') }) {
			l.found.add(Network)
		}
	case "tar", "gtar", "bsdtar":
		l.tar(args)
	case "zip":
		shells("-TT", "--unzip-command")
	case "rg":
		shells("--pre", "--hostname-bin")
	case "sort":
		shells("--compress-program")
	case "man":
		shells("-P", "--pager", "-H", "--html")
	case "scp", "sftp":
		shells("-S")
		for _, v := range values(args, "-o") {
			l.sshOption(v)
		}
	case "less":
		if slices.ContainsFunc(args, func(a string) bool { return strings.HasPrefix(a, "+") && strings.ContainsAny(a, "!|") }) {
			l.hide()
		}
	case "split":
		shells("--filter")
	case "nc", "ncat":
		shells("-e", "-c", "--exec", "--sh-exec")
	case "socat":
		for _, a := range args {
			for _, kind := range []string{"exec:", "system:", "shell:"} {
				if i := strings.Index(strings.ToLower(a), kind); i >= 0 {
					l.shell(a[i+len(kind):])
				}
			}
		}
	case "tmux":
		for i, a := range args {
			if strings.ContainsRune(a, ' ') {
				l.shell(a)
			} else if i > 0 && !strings.HasPrefix(a, "-") {
				l.call(args[i:], input)
			}
		}
	case "crontab", "at", "batch":
		if name != "crontab" && !hasOption(args, "-f", "-l", "-r", "-d", "-c") || slices.Contains(args, "-") {
			l.stdin(input)
		}
	case "gh":
		if slices.Contains(args, "api") && (slices.Contains(args, "graphql") || hasOption(args, "-X", "--method", "-f", "-F", "--field", "--raw-field", "--input")) {
			l.found.add(Publish)
		}
	case "make", "ninja", "just", "task", "rake", "gradle", "gradlew", "mvn", "mvnw", "cmake":
		l.targets(name, args)
	case "npm", "pnpm", "yarn", "bun", "cargo", "uv", "poetry", "pipenv", "bundle", "docker", "podman", "nix", "nix-shell", "kubectl", "pipx", "conda":
		l.targets(name, args)
		l.runThrough(name, args, input)
	case "curl", "wget", "http", "https", "xh":
		l.fetch(name, args)
	case "go":
		l.goTool(args, input)
	case "sed":
		l.sed(args)
	case "dd":
		if len(args) > 0 {
			l.found.add(Write)
		}
	case "kill":
		if slices.Contains(args, "-1") && slices.Index(args, "-1") > 0 || slices.Contains(args, "1") {
			l.found.add(System)
		}
	case "openssl":
		if slices.Contains(args, "engine") || slices.Contains(args, "-engine") {
			l.hide()
		}
	case "ldd":
		// ldd may run what it looks at.
		l.runtime = true
	}
}

func (l *line) tar(args []string) {
	for _, v := range values(args, "-I", "--use-compress-program", "--to-command", "--checkpoint-action", "-F", "--info-script", "--new-volume-script", "--rsh-command") {
		l.shell(strings.TrimPrefix(v, "exec="))
	}
	if slices.ContainsFunc(args, func(a string) bool {
		return strings.HasPrefix(a, "--checkpoint-action") || strings.HasPrefix(a, "--to-command")
	}) {
		l.runtime = true
	}
	letters := strings.TrimPrefix(first(args), "-")
	switch {
	case strings.ContainsRune(letters, 'x') || hasOption(args, "--extract", "--get", "-x"):
		l.found.add(Write)
		for _, v := range values(args, "-C", "--directory") {
			l.mention(OpWrite, v)
		}
		if hasOption(args, "-P", "--absolute-names") {
			l.found.add(Protected)
		}
	case len(args) > 1 && (strings.ContainsRune(letters, 'c') || strings.ContainsRune(letters, 'r') || strings.ContainsRune(letters, 'u')):
		if strings.ContainsRune(letters, 'f') && !strings.HasPrefix(letters, "-") {
			l.mention(OpWrite, args[1])
		}
		for _, v := range values(args, "-f", "--file") {
			l.mention(OpWrite, v)
		}
	}
}

func first(args []string) string {
	if len(args) == 0 {
		return ""
	}
	return args[0]
}

// targets looks at the names of targets and scripts of a project: what they do stands in its files, but one that is
// named for publishing is taken at its word.
func (l *line) targets(name string, args []string) {
	for i, a := range args {
		if i > 0 && slices.Contains([]string{"-C", "-f", "-p", "--prefix", "--cwd", "--manifest-path", "--filter", "-w", "--directory"}, args[i-1]) {
			continue
		}
		if !strings.HasPrefix(a, "-") && !strings.ContainsAny(a, "=") {
			if releaseTarget.MatchString(a) && (name != "cargo" && name != "go" || a == "publish") {
				l.found.add(Publish)
			}
			if deleteTarget.MatchString(a) {
				l.found.add(Delete)
			}
			if (name == "make" || name == "ninja" || name == "just" || name == "task" || name == "rake") && installTarget.MatchString(a) {
				l.found.add(System)
			}
			if strings.ContainsAny(a, unsure) {
				l.hide()
			}
		}
		if k, v, ok := strings.Cut(a, "="); ok && (k == "SHELL" || k == ".SHELLFLAGS" || k == "MAKEFLAGS" || k == "--eval" || k == "-E") {
			l.hide()
		} else if ok && name == "make" {
			l.environment(k, []string{v})
		}
		if a == "--eval" || a == "-E" || name == "cmake" && (a == "-P" || a == "-E") && i+1 < len(args) {
			if name == "cmake" && a == "-E" {
				l.cmake(args[i+1:])
				continue
			}
			l.hide()
		}
	}
}

// cmake looks at the small commands of "cmake -E".
func (l *line) cmake(args []string) {
	switch first(args) {
	case "rm", "remove", "remove_directory":
		l.call(append([]string{"rm"}, args[1:]...), "")
	case "env", "time":
		l.call(append([]string{"env"}, args[1:]...), "")
	case "copy", "copy_directory", "rename", "touch", "make_directory", "create_symlink", "create_hardlink", "copy_if_different":
		l.call(append([]string{"mv"}, args[1:]...), "")
	case "chdir":
		if len(args) > 2 {
			l.enter(args[1])
			l.call(args[2:], "")
		}
	}
}

// runThrough looks at package managers and containers that run the program their words name. Which word that is depends
// on options that are theirs to know, so each word behind the verb may be it.
func (l *line) runThrough(name string, args []string, input string) {
	verbs := []string{"exec", "x", "run", "dlx", "run-script", "rum", "tool", "-c", "--call", "--run", "--command", "develop", "shell", "create", "init", "start"}
	i := slices.IndexFunc(args, func(a string) bool {
		return slices.Contains(verbs, a) || strings.HasPrefix(a, "--run=") || strings.HasPrefix(a, "--call=")
	})
	if i < 0 {
		if name == "yarn" || name == "bun" || name == "pnpm" {
			l.anyOf(args, input)
		}
		return
	}
	for _, v := range values(args, "-c", "--call", "--run", "--command") {
		l.shell(v)
	}
	l.anyOf(args[i+1:], input)
	if (name == "docker" || name == "podman") && hasOption(args, "--privileged", "-v", "--volume", "--mount") {
		l.found.add(System)
	}
}

// anyOf looks at every word as if it were a command.
func (l *line) anyOf(args []string, input string) {
	for i, a := range args {
		if a == "." || strings.HasPrefix(a, "-") || strings.ContainsAny(a, unsure) && i > 0 {
			continue
		}
		l.call(args[i:], input)
	}
}

// fetch looks at where a program for addresses sends what.
func (l *line) fetch(name string, args []string) {
	all := strings.Join(args, " ")
	if messageHost.MatchString(all) {
		l.found.add(Publish)
	}
	if paymentHost.MatchString(all) {
		l.found.add(Payment)
	}
	if hasOption(args, "-d", "--data", "--data-raw", "--data-binary", "--json", "-F", "--form", "-T", "--upload-file", "--post-data", "--post-file", "-X", "--request", "--method") && writingHost.MatchString(all) {
		l.found.add(Publish)
	}
	if name == "curl" && hasOption(args, "-u", "--user", "-n", "--netrc", "--netrc-file", "--oauth2-bearer", "-E", "--cert", "--key", "--delegation") || name == "wget" && hasOption(args, "--password", "--http-password", "--ask-password", "--user") {
		l.found.add(Credential)
	}
	if slices.ContainsFunc(args, func(a string) bool { return credentialHeader.MatchString(a) }) {
		l.found.add(Credential)
	}
	for _, v := range values(args, "-o", "--output", "-O", "--output-document", "-P", "--directory-prefix", "--output-dir", "-D", "--dump-header", "-c", "--cookie-jar", "--trace", "--trace-ascii", "--stderr", "--hsts", "--etag-save", "-a", "--append-output") {
		if name == "curl" && (v == "" || strings.Contains(v, "://")) {
			continue
		}
		if name == "wget" && v == "-" {
			continue
		}
		l.mention(OpWrite, v)
	}
	if name == "curl" && hasOption(args, "-K", "--config") || name == "wget" && hasOption(args, "--use-askpass", "-e", "--execute") {
		l.hide()
	}
}

func (l *line) goTool(args []string, input string) {
	switch first(args) {
	case "run", "tool", "generate":
		if first(args) == "run" && slices.ContainsFunc(args, func(a string) bool { return strings.ContainsRune(a, '@') }) {
			l.found.add(Network)
		}
		l.anyOf(args[1:], input)
	}
	for _, v := range values(args, "-exec", "-toolexec", "--exec", "--toolexec", "-vettool") {
		l.shell(v)
	}
	for _, a := range args {
		for _, o := range []string{"exec=", "toolexec=", "vettool="} {
			if v, ok := strings.CutPrefix(strings.TrimLeft(a, "-"), o); ok && a[0] == '-' {
				l.shell(v)
			}
		}
	}
	if slices.ContainsFunc(args, func(a string) bool {
		return strings.HasPrefix(strings.TrimLeft(a, "-"), "overlay") || strings.HasPrefix(strings.TrimLeft(a, "-"), "modfile")
	}) {
		l.runtime = true
	}
}

// sed looks for the options and commands of sed that write files or run programs.
func (l *line) sed(args []string) {
	inPlace := hasOption(args, "-i", "--in-place") || slices.ContainsFunc(args, func(a string) bool { return strings.HasPrefix(a, "-i") })
	script := len(values(args, "-e", "--expression", "-f", "--file")) == 0
	for i, a := range args {
		if strings.HasPrefix(a, "-") {
			continue
		}
		code := script || i > 0 && (args[i-1] == "-e" || args[i-1] == "--expression")
		script = false
		if inPlace && !code {
			l.mention(OpWrite, a)
		}
		if code {
			l.sedScript(a)
		}
	}
	for _, v := range values(args, "-e", "--expression") {
		l.sedScript(v)
	}
	if hasOption(args, "-f", "--file") {
		l.runtime = true
	}
}

func (l *line) sedScript(s string) {
	if sedRuns.MatchString(s) || strings.ContainsRune(s, anyText) {
		l.hide()
		l.search(s)
	}
	for _, m := range sedWrites.FindAllStringSubmatch(s, -1) {
		l.mention(OpWrite, strings.TrimSpace(m[1]))
	}
}
