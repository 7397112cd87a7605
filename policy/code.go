package policy

import (
	"regexp"
	"slices"
	"strings"
)

var (
	writingHost      = regexp.MustCompile(`(?i)(api\.github\.com|gitlab[^ ]*/api|uploads\.github\.com|registry\.npmjs\.org|upload\.pypi\.org|crates\.io/api|rubygems\.org/api|hub\.docker\.com)`)
	credentialHeader = regexp.MustCompile(`(?i)(authorization|x-api-key|private-token|x-auth-token|cookie)\s*:`)
	sedRuns          = regexp.MustCompile(`(^|[;{}\n0-9$/!]|\s)e(\s|$)|[|/,#@!][a-zA-Z0-9]*e[a-zA-Z0-9]*\s*($|[;}\n])`)
	sedWrites        = regexp.MustCompile(`(?:^|[;{}\n0-9$/,#|@!]|\s|[gpiI])[wW]\s+([^\n;}]+)`)

	codeRuns    = regexp.MustCompile(`(?i)(system|popen|subprocess|\bexec|execv|spawn|child_process|\beval\b|\bcompile\s*\(|__import__|importlib|getattr|base64|b64decode|atob|frombase64|fromcharcode|marshal|pickle|ctypes|\bffi\b|` + "`" + `|%x[({\[]|\bqx\b|open3|\bpty\b|shell_exec|passthru|proc_open|deno\.run|deno\.command|bun\.spawn|execa|\| ?getline|print ?\||\|&|io\.popen|os\.execute|runtime\.getruntime|processbuilder|unhexlify|bytes\.fromhex|rot13|codecs|instance_eval|class_eval|send\s*\(|globalthis\[|process\.binding|vm\.run)`)
	codeReaches = regexp.MustCompile(`(?i)(https?:|urllib|requests|socket|http\.|httpx|aiohttp|fetch\s*\(|\bnet\.|ftplib|paramiko|axios|net::|open-uri|lwp|curl|dgram|tls\.|websocket|/inet/|telnetlib|xmlhttp)`)
	codeDeletes = regexp.MustCompile(`(?i)(os\.remove|unlink|rmtree|rmdir|rmsync|\brm\s*\(|fileutils\.rm|remove_tree|removedirs|\.delete\s*\(|file\.delete|truncate|fs\.rm|deno\.remove)`)
	codeMails   = regexp.MustCompile(`(?i)(smtplib|nodemailer|net::smtp|sendmail|mail\s*\()`)
	codeToken   = regexp.MustCompile(`[A-Za-z0-9_./~@+:-]+`)
	codeSecret  = regexp.MustCompile(`(?i)(environ|getenv|process\.env|\benv\[)`)
)

// interpreter looks at a call of a language: the code in its words or input, or the module or script it runs.
func (l *line) interpreter(name string, args []string, input string) {
	code, script := false, false
	for i := 0; i < len(args) && !script; i++ {
		a := args[i]
		switch {
		case name == "python" && a == "-m" && i+1 < len(args):
			l.module(args[i+1:], input)
			return
		case name == "python" && strings.HasPrefix(a, "-m") && len(a) > 2:
			l.module(append([]string{a[2:]}, args[i+1:]...), input)
			return
		case name == "node" && (a == "-r" || a == "--require" || a == "--import" || a == "--loader" || strings.HasPrefix(a, "--require=") || strings.HasPrefix(a, "--import=")):
			l.runtime = true
			i++
		case codeOption(name, a):
			code = true
			if _, v, ok := strings.Cut(a, "="); ok && strings.HasPrefix(a, "--") {
				l.foreign(v)
			} else if i+1 < len(args) {
				i++
				l.foreign(args[i])
			}
		case name == "python" && len(a) > 2 && strings.HasPrefix(a, "-c"), name == "ruby" && len(a) > 2 && strings.HasPrefix(a, "-e"), name == "php" && len(a) > 2 && strings.HasPrefix(a, "-r"), name == "perl" && len(a) > 2 && (strings.HasPrefix(a, "-e") || strings.HasPrefix(a, "-E")):
			code = true
			l.foreign(a[2:])
		case name == "deno" && a == "eval":
			code = true
			l.foreign(strings.Join(args[i+1:], " "))
		case a == "-" || device(a):
			l.foreignInput(input)
			return
		case a == "-f" && name == "awk", a == "-W", a == "-X":
			script = name == "awk"
			i++
		case name == "awk" && (a == "-v" || a == "-F"):
			i++
		case strings.HasPrefix(a, "-"):
		case name == "awk" && !code:
			code = true
			l.foreign(a)
			script = true
		case name == "deno" && slices.Contains([]string{"run", "install", "task", "publish", "test", "add"}, a):
			if a == "publish" {
				l.found.add(Publish)
			}
			if strings.Contains(strings.Join(args, " "), "://") || a == "install" || a == "add" {
				l.found.add(Network)
			}
		default:
			script = true
			if strings.ContainsAny(a, unsure) && !code {
				l.hide()
			}
			if hasOption(args[:i], "-i") {
				for _, f := range args[i:] {
					l.mention(OpWrite, f)
				}
			}
			for _, f := range args[i:] {
				l.touch(f, code && !hasOption(args[:i], "-i"))
			}
		}
	}
	if !code && !script && !(len(args) == 1 && slices.Contains([]string{"--version", "-V", "-v", "--help", "-h"}, args[0])) {
		l.foreignInput(input)
	}
}

// codeOption reports whether the next word is code.
func codeOption(name, a string) bool {
	switch name {
	case "python":
		return len(a) > 1 && a[0] == '-' && a[1] != '-' && strings.HasSuffix(a, "c") && len(a) < 6
	case "node", "elixir", "groovy", "scala", "swift", "julia", "rscript", "deno":
		name, _, _ := strings.Cut(a, "=")
		return slices.Contains([]string{"-e", "--eval", "-p", "--print", "-pe", "-E", "--expr", "-r"}, name)
	case "php":
		return slices.Contains([]string{"-r", "-B", "-R", "-E", "--run"}, a)
	case "perl", "ruby":
		return len(a) > 1 && a[0] == '-' && a[1] != '-' && strings.ContainsAny(a[len(a)-1:], "eE")
	case "lua", "luajit", "ghci", "guile", "racket", "sbcl":
		return a == "-e" || a == "-c" || a == "--eval"
	case "erl":
		return a == "-eval"
	}
	return false
}

// module looks at "python -m": a module is a program of the same name.
func (l *line) module(args []string, input string) {
	if strings.HasPrefix(args[0], "http") || args[0] == "smtpd" || args[0] == "ftplib" || args[0] == "telnetlib" {
		l.found.add(Network)
	}
	l.call(args, input)
}

func (l *line) foreignInput(input string) {
	if input == "" {
		l.hide()
		return
	}
	l.foreign(input)
}

// foreign looks through code of another language for the words that say what it does. That finds what is honest; what
// can run a program or put one together makes the line unknown.
func (l *line) foreign(code string) {
	if strings.ContainsRune(code, anyText) {
		l.hide()
	}
	if codeRuns.MatchString(code) {
		l.hide()
	}
	if codeReaches.MatchString(code) {
		l.found.add(Network)
	}
	if codeDeletes.MatchString(code) {
		l.found.add(Delete)
	}
	if codeMails.MatchString(code) {
		l.found.add(Publish)
	}
	if codeSecret.MatchString(code) && secretWord.MatchString(code) {
		l.found.add(Secret)
	}
	for _, t := range codeToken.FindAllString(code, 256) {
		if strings.HasPrefix(t, "//") || t == "/" || t == "." || t == "~" {
			continue
		}
		l.touch(t, !strings.HasPrefix(t, "/") && !strings.HasPrefix(t, "~") && !strings.HasPrefix(t, ".") && !strings.Contains(t, "/"))
	}
	l.search(code)
}

var secretWord = regexp.MustCompile(`(?i)(key|token|secret|passw|credential)`)

// search looks for commands in text that is not one, or not one that can be read: at every word as the beginning of
// a command. It only ever adds.
func (l *line) search(text string) {
	if l.caught {
		return
	}
	l.caught = true
	defer func() { l.caught = false }()
	if len(text) > maxCommand {
		text = text[:maxCommand]
	}
	words := codeToken.FindAllString(text, 4096)
	for i := range words {
		if l.calls > maxCalls {
			return
		}
		l.call(words[i:min(len(words), i+8)], "-")
	}
	for _, w := range words {
		l.mention(opSecret, w)
	}
}
