package policy

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

const (
	maxCommand = 64 << 10 // bytes; a longer command is not parsed
	maxNesting = 24       // commands within commands within …; a program that runs another takes two or three
	maxCalls   = 4096     // calls looked at, over all nesting and all values of variables
	maxDirs    = 16       // folders that are followed
	maxUnended = 4        // here-documents without an end that are followed
	maxRounds  = 4        // rounds until variables, folders and aliases stand still
)

// errCommand says that a command is not one that can be looked through.
var errCommand = errors.New("policy: command can't be parsed")

// Classify says what a command line can do, as far as its text shows. Every word of every command in it is looked at,
// also in substitutions, here-documents, functions, traps and in arguments that are commands themselves (sh -c, env,
// xargs, find -exec, …). The line is read as bash and as POSIX sh, and both readings count.
//
// Without a sandbox the result always holds Terminal. In a sandbox Read or Write stands in its place, by the profile,
// and whatever else the line does counts still.
//
// What is built at run time can't be looked at. Where a value is missing among the arguments of a known program, the
// path it may be lies outside the workspace, and the line is Terminal even in a sandbox. Where it may be the program
// itself, its subcommand or code (a variable as a command, eval, a pipe into sh, a line that can't be parsed, an alias of
// git), the line is Terminal and Unknown: Unknown is never allowed in any mode and never granted, which is what a hidden
// push deserves, while an ordinary "for" loop stays ordinary. The words that can be seen are still looked through then.
//
// It recognises, it does not contain: a program of the workspace or a script can do anything, and only a sandbox holds
// it. The result is sorted and never empty; Classify does not panic on any bytes.
func Classify(command string, in Workspace) []Category {
	return analyse(command, in).result()
}

// line is the analysis of one command line.
type line struct {
	in      Workspace
	found   set
	runtime bool // something is known at run time only
	opaque  bool // and it may be a program or code

	// What the line says of names, over all of it: an assignment counts for what stands before it as well.
	vars    map[string][]string
	aliases map[string][]string
	dirs    []string // folders that a relative path may be relative to
	entered map[string]bool
	changed bool

	seen  map[string]bool       // code that was looked at in this round: nested code is the same text many times over
	paths map[string][]Category // what paths were found to be

	round  int
	depth  int
	calls  int
	caught bool // within the search for words in text, which must not start another one
}

func analyse(command string, in Workspace) *line {
	l := &line{in: in, vars: map[string][]string{}, aliases: map[string][]string{}, dirs: []string{in.Root}, entered: map[string]bool{}, paths: map[string][]Category{}}
	for l.round = range maxRounds {
		l.found, l.runtime, l.opaque, l.changed, l.calls = set{}, false, false, false, 0
		l.seen = map[string]bool{}
		l.shell(command)
		if !l.changed {
			break
		}
	}
	if l.changed {
		l.hide()
	}
	if l.opaque {
		l.search(command)
	}
	return l
}

func (l *line) result() []Category {
	switch {
	case l.in.Sandbox == SandboxReadOnly:
		l.found.add(Read)
		delete(l.found, Write)
	case l.in.Sandbox == SandboxWorkspace:
		l.found.add(Write)
	default:
		l.found.add(Terminal)
	}
	if l.runtime {
		l.found.add(Terminal)
	}
	if l.in.PublishIsOrdinary && l.found[Publish] {
		delete(l.found, Publish)
		l.found.add(Network, Terminal)
	}
	if l.found[Terminal] || l.found[Write] {
		delete(l.found, Read)
	}
	return l.found.sorted()
}

// hide notes that something which may be a program or code can't be seen.
func (l *line) hide() {
	l.runtime, l.opaque = true, true
	l.found.add(Unknown)
}

// parse reads the statements of a command, up to the first mistake. A here-document that nothing ends is a mistake, and
// yet what a shell feeds to its command, up to the end of the text: it is read so.
func parse(command string, lang syntax.LangVariant) ([]*syntax.Stmt, error) {
	stmts, mistake := statements(command, lang)
	err := mistake
	for range maxUnended {
		word, ok := unended(err)
		if !ok {
			break
		}
		command += "\n" + word
		stmts, err = statements(command, lang)
	}
	return stmts, mistake
}

// unended is the word that would end the here-document whose end is missing.
func unended(err error) (word string, ok bool) {
	var p syntax.ParseError
	if !errors.As(err, &p) {
		return "", false
	}
	quoted, ok := strings.CutPrefix(p.Text, "unclosed here-document ")
	if !ok {
		return "", false
	}
	word, err = strconv.Unquote(quoted)
	return word, err == nil && word != ""
}

// statements is parse for a text as it stands. A panic of the parser, which reads foreign bytes, is a mistake like any
// other.
func statements(command string, lang syntax.LangVariant) (stmts []*syntax.Stmt, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v", errCommand, p)
		}
	}()
	if len(command) > maxCommand || strings.ContainsAny(command, unsure) {
		return nil, errCommand
	}
	for s, err := range syntax.NewParser(syntax.Variant(lang)).StmtsSeq(strings.NewReader(command)) {
		if err != nil {
			return stmts, fmt.Errorf("%w: %w", errCommand, err)
		}
		stmts = append(stmts, s)
	}
	return stmts, nil
}

// shell looks through code of a shell.
func (l *line) shell(code string) {
	if strings.ContainsAny(code, unsure) || l.depth >= maxNesting {
		l.hide()
		code = strings.Map(func(r rune) rune {
			if r == anyText || r == globText {
				return '_'
			}
			return r
		}, code)
		if l.depth >= maxNesting {
			return
		}
	}
	if l.seen[code] {
		return
	}
	l.seen[code] = true
	l.depth++
	defer func() { l.depth-- }()
	stmts, err := parse(code, syntax.LangBash)
	if err != nil {
		l.hide()
		l.search(code)
	}
	// A shell runs what stands above a mistake before it sees it, and dash ends a quote where bash does not.
	posix, posixErr := parse(code, syntax.LangPOSIX)
	if posixErr != nil && err == nil && strings.Contains(code, "$'") && strings.Contains(code, `\'`) {
		// What is bash alone (&>, say) hides what follows it from the other reading, which may be another one here.
		l.hide()
		l.search(code)
	}
	for _, s := range append(stmts, posix...) {
		l.walk(s)
	}
}

func (l *line) walk(node syntax.Node) {
	syntax.Walk(node, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Stmt:
			l.statement(n)
		case *syntax.Redirect:
			l.redirect(n)
			return false
		case *syntax.Assign:
			l.assign(n)
		case *syntax.DeclClause:
			l.declaration(n)
		case *syntax.WhileClause, *syntax.FuncDecl:
			l.wander(n)
		case *syntax.ForClause:
			l.wander(n)
			if w, ok := n.Loop.(*syntax.WordIter); ok {
				l.iterate(w)
			}
		case *syntax.ParamExp:
			l.expansion(n)
		case *syntax.Word:
			for _, words := range l.expand(n) {
				for _, w := range words {
					l.mention(opSecret, w)
				}
			}
		}
		return true
	})
}

// statement looks at one simple command with what it is fed.
func (l *line) statement(s *syntax.Stmt) {
	call, ok := s.Cmd.(*syntax.CallExpr)
	if !ok || len(call.Args) == 0 {
		return
	}
	input := ""
	for _, r := range s.Redirs {
		switch {
		case r.Hdoc != nil:
			input = l.text(r.Hdoc)
		case r.Op == syntax.WordHdoc:
			input = l.text(r.Word)
		}
	}
	for _, args := range l.combine(call.Args) {
		l.call(args, input)
	}
}

func (l *line) redirect(r *syntax.Redirect) {
	op := OpWrite
	for _, w := range []*syntax.Word{r.Word, r.Hdoc} {
		// The body of a here-document is text, not a path; only what is expanded in it counts.
		for i := 0; w != nil && i < len(w.Parts); i++ {
			l.walk(w.Parts[i])
		}
	}
	switch r.Op {
	case syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc:
		return
	case syntax.RdrIn:
		op = OpRead
	case syntax.DplIn, syntax.DplOut:
		if w := r.Word.Lit(); w == "-" || w != "" && strings.Trim(w, "0123456789-") == "" {
			return
		}
	}
	for _, words := range l.expand(r.Word) {
		for _, w := range words {
			if strings.HasPrefix(w, "/dev/tcp/") || strings.HasPrefix(w, "/dev/udp/") {
				l.found.add(Network)
				continue
			}
			l.path(op, w)
		}
	}
}

// path classifies a word that is a path, against every folder it may be relative to.
func (l *line) path(op Op, word string) {
	if strings.ContainsRune(word, anyText) {
		l.runtime = true
	}
	if l.caught && !strings.ContainsAny(word, "/~.") {
		return
	}
	for _, dir := range l.dirs {
		key := string(op) + " " + dir + " " + word
		c, ok := l.paths[key]
		if !ok {
			if op == opSecret {
				c = slices.DeleteFunc(classifyPattern(OpRead, word, dir, l.in), func(c Category) bool { return c != Secret })
			} else {
				c = classifyPattern(op, word, dir, l.in)
			}
			l.paths[key] = c
		}
		l.found.add(c...)
	}
}

// wander notes that what is run more than once may change the folder each time.
func (l *line) wander(node syntax.Node) {
	syntax.Walk(node, func(n syntax.Node) bool {
		if c, ok := n.(*syntax.CallExpr); ok && len(c.Args) > 0 {
			if w := c.Args[0].Lit(); w == "cd" || w == "pushd" || w == "" {
				l.addDir("/" + string(anyText))
			}
		}
		return true
	})
}

// enter adds the folder that a cd leads to, from wherever the line may be. Later rounds add only what they see first:
// a cd that is read again is the same one.
func (l *line) enter(to string) {
	l.path(OpRead, to)
	if l.round > 0 && l.entered[to] {
		return
	}
	l.entered[to] = true
	for _, from := range slices.Clone(l.dirs) {
		dir, ok := absolute(to, from, l.in.Home)
		if !ok {
			dir = "/" + string(anyText)
		}
		l.addDir(dir)
	}
}

func (l *line) addDir(dir string) {
	dir = strings.TrimSuffix(dir, "/")
	for strings.HasSuffix(dir, "/.") {
		dir = strings.TrimSuffix(dir, "/.")
	}
	if dir == "" {
		dir = "/"
	}
	if slices.Contains(l.dirs, dir) {
		return
	}
	if len(l.dirs) >= maxDirs {
		dir = "/" + string(anyText)
		if slices.Contains(l.dirs, dir) {
			return
		}
	}
	l.changed = true
	l.dirs = append(l.dirs, dir)
}
