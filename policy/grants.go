package policy

import (
	"slices"
	"strings"
	"unicode"

	"mvdan.cc/sh/v3/syntax"
)

// Grantable reports whether the exact whole command may be granted: it can be parsed, every word of it is known
// before it runs, and it deletes nothing, touches no secret, is not human-only and not unknown. It says nothing of what
// else the command does; a grant is for that.
func Grantable(command string, in Workspace) bool {
	stmts, err := parse(command, syntax.LangBash)
	if err != nil || len(stmts) == 0 {
		return false
	}
	l := analyse(command, in)
	if l.runtime || l.opaque {
		return false
	}
	c := l.result()
	return !HumanOnly(c...) && !slices.ContainsFunc(c, func(c Category) bool {
		return c == Delete || c == Secret || c == Unknown
	})
}

// Prefix returns the program and subcommand that may be granted in place of the whole command, exactly as people are
// shown it: "go test". It exists only where the command is one plain call of a program on a fixed list, without
// redirects, substitutions, assignments, patterns or a second command, with no options but those of the list, and with no
// operand outside the folder or named like a secret.
//
// The options of the list neither run another program, nor write where they are told to, nor read configuration from
// elsewhere. What the program does by itself (the tests of the workspace run, its git configuration counts) is what is
// granted. Prefix looks at text alone; a symbolic link in the workspace can lead elsewhere, so who uses a grant asks
// Grantable of the command as well.
func Prefix(command string) (prefix string, ok bool) {
	words, ok := plainWords(command)
	if !ok {
		return "", false
	}
	for _, g := range grantable {
		if len(words) >= len(g.words) && slices.Equal(words[:len(g.words)], g.words) && g.allows(words[len(g.words):]) {
			return strings.Join(g.words, " "), true
		}
	}
	return "", false
}

// Covers reports whether a grant of prefix, as Prefix returned it, is for this command too.
func Covers(prefix, command string) bool {
	p, ok := Prefix(command)
	return ok && p == prefix
}

// plainWords returns the words of a command that is a single call, if each is the same whatever the shell knows.
func plainWords(command string) ([]string, bool) {
	if strings.ContainsFunc(command, func(r rune) bool { return r == unicode.ReplacementChar || !unicode.IsPrint(r) }) {
		return nil, false
	}
	stmts, err := parse(command, syntax.LangBash)
	if err != nil || len(stmts) != 1 {
		return nil, false
	}
	s := stmts[0]
	call, ok := s.Cmd.(*syntax.CallExpr)
	if !ok || len(s.Redirs) > 0 || s.Background || s.Negated || s.Coprocess || s.Disown || s.Semicolon.IsValid() || len(call.Assigns) > 0 {
		return nil, false
	}
	var out []string
	for _, w := range call.Args {
		v, ok := plainWord(w)
		if !ok {
			return nil, false
		}
		out = append(out, v)
	}
	return out, true
}

// plainWord returns the value of a word without anything that a shell expands.
func plainWord(w *syntax.Word) (string, bool) {
	var b strings.Builder
	for _, p := range w.Parts {
		switch p := p.(type) {
		case *syntax.Lit:
			if strings.ContainsAny(p.Value, `\*?[]{}~=!^#`) && !plainLiteral(p.Value) {
				return "", false
			}
			b.WriteString(p.Value)
		case *syntax.SglQuoted:
			if p.Dollar {
				return "", false
			}
			b.WriteString(p.Value)
		case *syntax.DblQuoted:
			for _, q := range p.Parts {
				lit, ok := q.(*syntax.Lit)
				if !ok || p.Dollar || strings.ContainsAny(lit.Value, "\\!") {
					return "", false
				}
				b.WriteString(lit.Value)
			}
		default:
			return "", false
		}
	}
	return b.String(), true
}

// plainLiteral allows the two characters of the set that are common and safe where they stand: = within an option, and
// ~ or ^ behind the name of a revision.
func plainLiteral(s string) bool {
	return !strings.ContainsAny(s, `\*?[]{}!#`) && strings.IndexAny(s, "=~^") > 0 && !strings.Contains(s, "=~") && !strings.Contains(s, ":~")
}

// grant is one line of the list: the words of the prefix, the options without a value, those with one, and what kind
// of operands may follow.
type grant struct {
	words         []string
	plain, valued map[string]bool
	letters       string // short options that may be joined in one word
	operands      string // "none", "words" or "paths"
	numbers       bool   // -5 is an option
}

func (g grant) allows(args []string) bool {
	operands := false
	for i := 0; i < len(args); i++ {
		a := args[i]
		if a == "" {
			return false
		}
		if operands || a[0] != '-' {
			if g.operands == "none" || !plainOperand(a) {
				return false
			}
			continue
		}
		name, value, joined := strings.Cut(a, "=")
		switch {
		case a == "--" && g.operands == "paths":
			operands = true
		case g.plain[a]:
		case joined && g.valued[name]:
			if !plainValue(value) {
				return false
			}
		case g.valued[a]:
			if i++; i >= len(args) || !plainValue(args[i]) || strings.HasPrefix(args[i], "-") {
				return false
			}
		case g.numbers && len(a) > 1 && strings.Trim(a[1:], "0123456789") == "":
		case len(a) > 1 && a[1] != '-' && g.letters != "" && strings.Trim(a[1:], g.letters) == "":
		default:
			return false
		}
	}
	return true
}

// plainOperand reports whether a word names something in the folder: a path, a package, a revision, a test.
func plainOperand(a string) bool {
	return !strings.ContainsAny(a[:1], "/~=+-@%:") && !strings.ContainsAny(a, `\@`) && plainValue(a)
}

// plainValue reports whether no part of a value leads outside or is named like a secret.
func plainValue(v string) bool {
	if strings.Contains(v, "://") || strings.HasPrefix(v, "/") || strings.HasPrefix(v, "~") {
		return false
	}
	for part := range strings.FieldsFuncSeq(v, func(r rune) bool { return strings.ContainsRune("=:,", r) }) {
		if strings.HasPrefix(part, "/") || slices.Contains(strings.Split(part, "/"), "..") || secretPath(part) {
			return false
		}
	}
	return true
}

// grantable is the list. Whatever is not on it can be granted as the exact whole command only.
var grantable = grants(`
go test     | paths | -v -race -short -cover -benchmem -failfast -json -fullpath -x | -count -run -bench -benchtime -timeout -parallel -p -cpu -shuffle -skip -list -tags -covermode --count --run --timeout
go vet      | paths | -v -json -x | -tags
go build    | paths | -v -race -x -trimpath | -tags -p
go version  | none  | |
gofmt       | paths | -l -d -s -e |
npm test    | none  | -s --silent |
npm run test | none | -s --silent |
npm run lint | none | -s --silent |
npm run build | none | -s --silent |
npm run typecheck | none | -s --silent |
pnpm test   | none  | |
yarn test   | none  | |
bun test    | paths | --bail | --timeout -t --test-name-pattern
cargo test  | words | --release --all --workspace --lib --bins --tests --examples --doc -v -q --verbose --quiet --no-run --no-fail-fast --all-features --no-default-features --locked --offline | -F --features -p --package --test --bin --example -j --jobs --exclude
cargo build | none  | --release --all --workspace --lib --bins --tests --examples -v -q --verbose --quiet --all-features --no-default-features --locked --offline | -F --features -p --package --test --bin --example -j --jobs --exclude
cargo check | none  | --release --all --workspace --lib --bins --tests --examples --all-targets -v -q --verbose --quiet --all-features --no-default-features --locked --offline | -F --features -p --package --test --bin --example -j --jobs --exclude
cargo clippy | none | --release --all --workspace --lib --bins --tests --examples --all-targets -v -q --verbose --quiet --all-features --no-default-features --locked --offline | -F --features -p --package -j --jobs --exclude
pytest      | paths | -v -vv -q -x -s -l --lf --ff --last-failed --failed-first --exitfirst --collect-only --disable-warnings --no-header --no-summary -ra -rA -rf | -k -m --maxfail --tb --durations -n
python -m pytest | paths | -v -vv -q -x -s -l --lf --ff --last-failed --failed-first --exitfirst --collect-only --disable-warnings --no-header -ra -rA -rf | -k -m --maxfail --tb --durations -n
python3 -m pytest | paths | -v -vv -q -x -s -l --lf --ff --last-failed --failed-first --exitfirst --collect-only --disable-warnings --no-header -ra -rA -rf | -k -m --maxfail --tb --durations -n
make test   | none  | -s -k |
make check  | none  | -s -k |
make lint   | none  | -s -k |
make build  | none  | -s -k |
dotnet test | none  | --no-build --no-restore --nologo |
mvn test    | none  | -q -o |
gradle test | none  | -q --offline |
mix test    | paths | --trace --failed --stale | --seed --max-failures
git status  | paths | -s -b -v -z --short --branch --porcelain --long --show-stash --ignored -uno -unormal -uall | --porcelain --untracked-files
git diff    | paths | -p -w -b -z -M -C --stat --name-only --name-status --cached --staged --numstat --shortstat --summary --check --raw --no-color --word-diff --compact-summary --exit-code --quiet --minimal --patience --histogram --no-ext-diff | --unified --diff-filter --stat --color --word-diff | numbers
git log     | paths | -p -i --oneline --graph --all --decorate --stat --name-only --name-status --follow --no-merges --merges --reverse --abbrev-commit --first-parent --no-color --shortstat --numstat --patch --branches --tags --no-pager | -n --max-count --skip --format --pretty --author --since --until --after --before --grep --date -S -G --decorate --color | numbers
git show    | paths | -p --oneline --stat --name-only --name-status --no-color --shortstat --numstat --no-patch -s | --format --pretty --date --color
git branch  | none  | -a -r -v -vv --all --list --show-current --no-color |
git rev-parse | paths | --show-toplevel --abbrev-ref --short --verify --is-inside-work-tree --git-dir HEAD |
git ls-files | paths | -m -d -o -s -z --modified --deleted --others --exclude-standard --cached --stage |
git blame   | paths | -w -s -e -l --porcelain | -L
ls          | paths | --all --almost-all --human-readable --recursive --reverse --directory --color | --color --sort --time | letters=lahARtrS1dFpGisn
pwd         | none  | -P -L |
`)

func grants(s string) []grant {
	var out []grant
	for rule := range strings.Lines(strings.TrimSpace(s)) {
		f := strings.Split(rule, "|")
		g := grant{words: strings.Fields(f[0]), operands: strings.TrimSpace(f[1]), plain: names(f[2]), valued: map[string]bool{}}
		if len(f) > 3 {
			g.valued = names(f[3])
		}
		if len(f) > 4 {
			extra := strings.TrimSpace(f[4])
			g.numbers = extra == "numbers"
			if letters, ok := strings.CutPrefix(extra, "letters="); ok {
				g.letters = letters
			}
		}
		out = append(out, g)
	}
	return out
}
