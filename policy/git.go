package policy

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// gitCommands are the subcommands of git that are known, with what each means. One that is not among them may be an
// alias of the project's configuration, for anything.
var gitCommands = gitTable()

func gitTable() map[string][]Category {
	out := rules(`
publish: push send-email send-pack imap-send svn p4 cvsexportcommit http-push
network: push send-email send-pack svn p4 fetch pull clone ls-remote fetch-pack remote-http remote-https http-fetch daemon instaweb archimport cvsimport
credential: credential credential-store credential-cache credential-osxkeychain credential-manager
delete: clean rm filter-branch filter-repo prune prune-packed gc
system: maintenance
`)
	for c := range names(`add am annotate apply archive bisect blame branch bundle cat-file check-attr check-ignore check-mailmap
		check-ref-format checkout checkout-index cherry cherry-pick citool column commit commit-graph commit-tree config
		count-objects describe diff diff-files diff-index diff-tree difftool fast-export fast-import fmt-merge-msg
		for-each-ref for-each-repo format-patch fsck gitk grep gui hash-object help hook index-pack init interpret-trailers
		lfs log ls-files ls-tree mailinfo mailsplit merge merge-base merge-file merge-index merge-tree mergetool mktag mktree
		multi-pack-index mv name-rev notes pack-objects pack-redundant pack-refs patch-id range-diff read-tree rebase reflog
		remote repack replace request-pull rerere reset restore rev-list rev-parse revert shortlog show show-branch
		show-index show-ref sparse-checkout stage stash status stripspace submodule subtree switch symbolic-ref tag
		unpack-file unpack-objects update-index update-ref update-server-info var verify-commit verify-pack verify-tag version
		whatchanged worktree write-tree`) {
		out[c] = append(out[c], Read)
	}
	return out
}

// harmlessConfig are the keys that "git -c" may set without running anything.
var harmlessConfig = names(`user.name user.email user.signingkey color.ui color.diff color.status core.quotepath core.autocrlf core.filemode
	core.ignorecase core.precomposeunicode commit.gpgsign tag.gpgsign init.defaultbranch advice.detachedhead advice.addignoredfile log.showsignature
	diff.renames diff.algorithm merge.conflictstyle pull.rebase pull.ff push.default rebase.autostash gc.auto core.abbrev core.fileMode
	safe.directory protocol.version http.lowspeedlimit http.lowspeedtime status.showuntrackedfiles submodule.recurse log.date`)

// git looks at a call of git: its own options, its subcommand, and what that runs and writes.
func (l *line) git(args []string) {
	i := 0
options:
	for ; i < len(args); i++ {
		a := args[i]
		flag, value, joined := strings.Cut(a, "=")
		switch {
		case !strings.HasPrefix(a, "-"):
			break options
		case a == "-C" || a == "--git-dir" || a == "--work-tree" || a == "--namespace" || a == "--super-prefix" || a == "--attr-source" || a == "--list-cmds":
			if i++; i < len(args) && a == "-C" {
				l.enter(args[i])
			} else if i < len(args) && a == "--git-dir" {
				l.gitDir(args[i])
			}
		case flag == "--git-dir" && joined:
			l.gitDir(value)
		case a == "-c":
			if i++; i < len(args) {
				l.gitConfig(args[i])
			}
		case strings.HasPrefix(a, "-c") && len(a) > 2:
			l.gitConfig(a[2:])
		case flag == "--exec-path" && joined || flag == "--config-env":
			l.hide()
			if flag == "--config-env" && !joined {
				i++
			}
		}
	}
	if i >= len(args) {
		return
	}
	sub, rest := args[i], args[i+1:]
	known, ok := gitCommands[sub]
	if !ok {
		// A word with a gap, an alias, or a program git-something of the search path.
		l.hide()
		if gitCommands[strings.ToLower(sub)] == nil {
			return
		}
		known = gitCommands[strings.ToLower(sub)]
	}
	for _, c := range known {
		if c != Read {
			l.found.add(c)
		}
	}
	l.gitRuns(sub, rest)
	l.gitChanges(sub, rest)
}

// gitDir is another repository: its configuration runs programs.
func (l *line) gitDir(dir string) {
	if strings.TrimSuffix(dir, "/") != ".git" {
		l.hide()
	}
}

func (l *line) gitConfig(setting string) {
	key, value, _ := strings.Cut(setting, "=")
	key = strings.ToLower(key)
	switch {
	case harmlessConfig[key]:
	case key == "core.pager" || key == "core.editor" || key == "core.sshcommand" || key == "sequence.editor" || strings.HasPrefix(key, "pager."):
		l.shell(value)
	case strings.HasPrefix(key, "credential."):
		l.found.add(Credential)
		l.hide()
	default:
		l.hide()
		l.shell(strings.TrimPrefix(value, "!"))
		l.call(append([]string{"git"}, strings.Fields(value)...), "")
	}
}

// gitRuns looks at what makes git run another program.
func (l *line) gitRuns(sub string, args []string) {
	for _, v := range values(args, "--upload-pack", "--receive-pack", "--exec", "--extcmd", "--open-files-in-pager", "--smtp-server", "--sendmail-cmd", "--to-cmd", "--cc-cmd") {
		l.shell(v)
	}
	for _, a := range args {
		if strings.HasPrefix(a, "ext::") {
			l.shell(a[len("ext::"):])
			l.hide()
		}
		if strings.HasPrefix(a, "--ext-diff") || strings.HasPrefix(a, "--textconv") {
			l.runtime = true
		}
	}
	switch sub {
	case "bisect":
		if first(args) == "run" {
			l.call(args[1:], "")
		}
	case "submodule":
		if j := slices.Index(args, "foreach"); j >= 0 {
			rest := slices.DeleteFunc(slices.Clone(args[j+1:]), func(a string) bool { return a == "--recursive" || a == "--quiet" || a == "-q" })
			l.shell(strings.Join(rest, " "))
		}
		if slices.Contains(args, "add") || slices.Contains(args, "update") || slices.Contains(args, "sync") || slices.Contains(args, "set-url") {
			l.found.add(Network, Protected)
		}
		if slices.Contains(args, "deinit") {
			l.found.add(Delete)
		}
	case "rebase":
		for _, v := range values(args, "-x", "--exec") {
			l.shell(v)
		}
	case "filter-branch":
		for _, a := range args {
			if !strings.HasPrefix(a, "-") {
				l.shell(a)
			}
		}
	case "difftool":
		for _, v := range values(args, "-x", "--extcmd") {
			l.shell(v)
		}
	case "grep":
		for _, v := range values(args, "-O") {
			l.shell(v)
		}
	case "for-each-repo":
		if j := slices.IndexFunc(args, func(a string) bool { return !strings.HasPrefix(a, "-") }); j >= 0 {
			l.git(args[j:])
		}
	case "clone":
		for _, v := range values(args, "-u") {
			l.shell(v)
		}
		for _, v := range values(args, "-c", "--config") {
			l.gitConfig(v)
		}
		if hasOption(args, "--template") {
			l.hide()
		}
		if len(args) > 1 && !strings.HasPrefix(args[len(args)-1], "-") {
			l.mention(OpWrite, args[len(args)-1])
		}
	case "init":
		if hasOption(args, "--template") {
			l.hide()
		}
		for _, a := range args {
			l.touch(a, false)
		}
	case "lfs", "subtree":
		if slices.Contains(args, "push") {
			l.found.add(Publish, Network)
		}
		if slices.Contains(args, "fetch") || slices.Contains(args, "pull") || slices.Contains(args, "add") {
			l.found.add(Network)
		}
	case "hook":
		l.runtime = true
	}
}

// gitChanges looks at what git writes and throws away.
func (l *line) gitChanges(sub string, args []string) {
	has := func(options ...string) bool { return hasOption(args, options...) }
	word := func(w ...string) bool {
		return slices.ContainsFunc(args, func(a string) bool { return slices.Contains(w, a) })
	}
	lost := false
	switch sub {
	case "reset":
		lost = has("--hard", "--merge", "--keep") || abbreviates(args, "--hard", 4)
	case "checkout":
		lost = has("-f", "--force", "--ours", "--theirs", "-p", "--patch", "-B") || word("--", ".") || l.exists(args) || dynamic(args)
	case "restore":
		lost = !has("--staged", "-S") || has("--worktree", "-W")
	case "switch":
		lost = has("-f", "--force", "--discard-changes", "-C")
	case "stash":
		lost = word("drop", "clear", "pop")
	case "branch", "tag":
		lost = has("-d", "-D", "--delete", "-f", "--force", "-M")
	case "worktree":
		lost = word("remove", "prune")
		if word("add", "move") {
			for _, a := range args {
				l.touch(a, false)
			}
		}
	case "reflog":
		lost = word("expire", "delete")
	case "update-ref":
		lost = has("-d", "--stdin")
	case "remote":
		if word("add", "set-url", "rename", "remove", "rm", "set-head", "set-branches") {
			l.found.add(Protected)
		}
		if word("update", "show", "prune") {
			l.found.add(Network)
		}
	case "config":
		l.gitConfigCommand(args)
	case "notes", "replace", "bisect", "rerere", "sparse-checkout", "commit", "merge", "rebase":
	case "mv", "apply", "am", "init", "archive", "bundle", "format-patch", "diff", "log", "show", "fast-export":
		for _, v := range values(args, "-o", "--output", "--output-directory", "--directory") {
			l.mention(OpWrite, v)
		}
		if sub == "mv" {
			for _, a := range args {
				l.mention(OpWrite, a)
			}
		}
		if sub == "bundle" || sub == "apply" && has("--unsafe-paths") {
			for _, a := range args {
				l.touch(a, false)
			}
		}
		if sub == "archive" && has("--remote") {
			l.found.add(Network)
		}
	case "checkout-index", "read-tree":
		lost = has("-f", "--force", "--reset", "-u", "-m")
		for _, v := range values(args, "--prefix") {
			l.touch(v, false)
		}
	}
	if sub == "rm" || sub == "clean" {
		for _, a := range args {
			if !strings.HasPrefix(a, "-") {
				l.mention(OpDelete, a)
			}
		}
	}
	if lost {
		l.found.add(Delete)
	}
}

// gitConfigCommand: reading the configuration is a read; writing it is what ².git/config is protected for.
func (l *line) gitConfigCommand(args []string) {
	joined := strings.ToLower(strings.Join(args, " "))
	if strings.Contains(joined, "credential") {
		l.found.add(Credential)
	}
	if hasOption(args, "--get", "--get-all", "--get-regexp", "--get-urlmatch", "-l", "--list") || first(args) == "list" || first(args) == "get" {
		return
	}
	words := 0
	for _, a := range args {
		if !strings.HasPrefix(a, "-") {
			words++
		}
	}
	if words == 1 && len(args) == 1 {
		return
	}
	l.found.add(Protected)
	if !slices.ContainsFunc(args, func(a string) bool { return harmlessConfig[strings.ToLower(a)] }) {
		// What is set may be a command that the next git runs.
		for _, a := range args {
			l.shell(strings.TrimPrefix(a, "!"))
		}
	}
}

func abbreviates(args []string, option string, least int) bool {
	return slices.ContainsFunc(args, func(a string) bool { return len(a) >= least && strings.HasPrefix(option, a) })
}

func dynamic(args []string) bool {
	return slices.ContainsFunc(args, func(a string) bool { return strings.ContainsAny(a, unsure) })
}

// exists reports whether one of the words is a file: "git checkout" of a file throws its changes away, of a branch not.
func (l *line) exists(args []string) bool {
	return slices.ContainsFunc(args, func(a string) bool {
		if strings.HasPrefix(a, "-") || strings.ContainsAny(a, unsure) {
			return false
		}
		_, err := os.Lstat(filepath.Join(l.in.Root, a))
		return err == nil
	})
}
