package policy

import (
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

const (
	fieldText = '\x02' // where a shell splits a word that came out of a variable
	maxValues = 64     // values that a word or a command is followed through; beyond that it counts as anyText
)

// text is the value of a word where the shell does not split it.
func (l *line) text(w *syntax.Word) string {
	v := l.parts(w.Parts, true)
	if len(v) != 1 {
		return string(anyText)
	}
	return v[0]
}

// expand returns what a word can become: each element is one possibility, a sequence of arguments.
func (l *line) expand(w *syntax.Word) [][]string {
	out := [][]string{nil}
	for _, one := range braces(w) {
		var next [][]string
		for _, value := range l.parts(one.Parts, false) {
			fields := strings.FieldsFunc(value, func(r rune) bool { return r == fieldText })
			if value == "" {
				fields = []string{""}
			}
			for _, before := range out {
				next = append(next, slices.Concat(before, fields))
			}
			if len(next) > maxValues {
				return [][]string{{string(anyText)}}
			}
		}
		out = next
	}
	return out
}

// braces expands the braces of a word. A sequence such as {1..9} and what is beyond the limit stay as they are; their
// letters are no program.
func braces(w *syntax.Word) []*syntax.Word {
	open := 0
	for _, p := range w.Parts {
		if lit, ok := p.(*syntax.Lit); ok {
			open += strings.Count(lit.Value, "{")
		}
	}
	if open > maxValues/2 {
		return []*syntax.Word{unseen()}
	}
	c := &syntax.Word{Parts: slices.Clone(w.Parts)}
	if !syntax.SplitBraces(c) {
		return []*syntax.Word{w}
	}
	var all []*syntax.Word
	for one, err := range expand.BracesSeq(nil, c) {
		if err != nil || len(all) >= maxValues {
			return []*syntax.Word{unseen()}
		}
		all = append(all, one)
	}
	return all
}

func unseen() *syntax.Word {
	return &syntax.Word{Parts: []syntax.WordPart{&syntax.Lit{Value: string(anyText)}}}
}

// parts returns every value that the parts can have together.
func (l *line) parts(parts []syntax.WordPart, quoted bool) []string {
	out := []string{""}
	for _, p := range parts {
		values := l.part(p, quoted)
		if len(values)*len(out) > maxValues {
			return []string{string(anyText)}
		}
		var next []string
		size := 0
		for _, a := range out {
			for _, b := range values {
				if size += len(a) + len(b); size > maxCommand {
					// A variable that is made of two of another one doubles with each assignment.
					return []string{string(anyText)}
				}
				next = append(next, a+b)
			}
		}
		out = next
	}
	return out
}

func (l *line) part(p syntax.WordPart, quoted bool) []string {
	switch p := p.(type) {
	case *syntax.Lit:
		if quoted {
			return []string{unescape(p.Value)}
		}
		return []string{unquote(p.Value)}
	case *syntax.SglQuoted:
		if !p.Dollar {
			return []string{p.Value}
		}
		if v, err := expand.Literal(nil, &syntax.Word{Parts: []syntax.WordPart{p}}); err == nil {
			return []string{v}
		}
	case *syntax.DblQuoted:
		return l.parts(p.Parts, true)
	case *syntax.ParamExp:
		values := l.parameter(p)
		if !quoted {
			values = slices.Clone(values)
			for i := range values {
				values[i] = unquoted(values[i])
			}
			if l.vars["IFS"] != nil {
				// Whoever chooses where words are split chooses the words, or leaves them as they are.
				values = append(values, string(anyText))
			}
		}
		return values
	case *syntax.CmdSubst:
		if len(p.Stmts) == 1 {
			if c, ok := p.Stmts[0].Cmd.(*syntax.CallExpr); ok && len(c.Args) == 1 && c.Args[0].Lit() == "pwd" && len(p.Stmts[0].Redirs) == 0 {
				return l.dirs
			}
		}
	case *syntax.ArithmExp:
		return []string{"0"}
	case *syntax.ProcSubst:
		return []string{"/dev/fd/63"}
	case *syntax.ExtGlob:
		return []string{string(globText)}
	}
	return []string{string(anyText)}
}

// parameter returns the values that a variable can have, by all that the line assigns to it. One that the line does not
// assign comes from the environment and can have any.
func (l *line) parameter(p *syntax.ParamExp) []string {
	unknown := []string{string(anyText)}
	if p.Param == nil || p.Excl || p.Index != nil || p.Slice != nil || p.Repl != nil || p.Names != 0 || len(p.Modifiers) > 0 || p.Flags != nil || p.NestedParam != nil {
		return unknown
	}
	if p.Length || p.Width || p.IsSet {
		return []string{"0"}
	}
	values := l.variable(p.Param.Value)
	if p.Exp == nil {
		return values
	}
	switch p.Exp.Op {
	case syntax.AlternateUnset, syntax.AlternateUnsetOrNull, syntax.DefaultUnset, syntax.DefaultUnsetOrNull, syntax.AssignUnset, syntax.AssignUnsetOrNull:
	default:
		return unknown
	}
	values = append(slices.Clone(values), "")
	if p.Exp.Word != nil {
		values = append(values, l.parts(p.Exp.Word.Parts, true)...)
	}
	return values
}

func (l *line) variable(name string) []string {
	if v := l.vars[name]; len(v) > 0 && name != "PATH" {
		return v
	}
	switch name {
	case "HOME":
		if l.in.Home != "" {
			return []string{l.in.Home}
		}
	case "PWD":
		return l.dirs
	case "#", "?", "$", "!", "RANDOM", "LINENO", "UID", "EUID", "PPID", "SECONDS":
		return []string{"0"}
	}
	return []string{string(anyText)}
}

func (l *line) set(name string, values ...string) {
	for _, v := range values {
		have := l.vars[name]
		if len(have) > maxValues || slices.Contains(have, v) {
			continue
		}
		if len(have) == maxValues {
			v = string(anyText)
		}
		l.vars[name] = append(have, v)
		l.changed = true
	}
}

func (l *line) assign(a *syntax.Assign) {
	if a.Name == nil || a.Naked {
		if a.Name == nil && strings.ContainsAny(strings.Join(l.parts(a.Value.Parts, true), ""), unsure) {
			// "export $x" can set any variable, PATH too.
			l.hide()
		}
		return
	}
	name := a.Name.Value
	if a.Array != nil || a.Index != nil {
		l.set(name, string(anyText))
		return
	}
	values := []string{""}
	if a.Value != nil {
		values = l.parts(a.Value.Parts, true)
	}
	for i, v := range values {
		if strings.HasPrefix(v, "~/") && l.in.Home != "" {
			values[i] = l.in.Home + v[1:]
		}
	}
	if a.Append {
		values = []string{string(anyText)}
	}
	l.environment(name, values)
	l.set(name, values...)
}

// declaration looks for "export -p" and its like, which print what the environment holds, and for attributes that make
// the value of a variable another one than was assigned.
func (l *line) declaration(d *syntax.DeclClause) {
	if !slices.ContainsFunc(d.Args, func(a *syntax.Assign) bool { return a.Name != nil }) {
		l.found.add(Secret)
	}
	for _, a := range d.Args {
		switch {
		case a.Name != nil && a.Naked && d.Variant.Value != "export" && d.Variant.Value != "readonly":
			l.set(a.Name.Value, "")
		case a.Name == nil && strings.HasPrefix(a.Value.Lit(), "-") && strings.ContainsAny(a.Value.Lit(), "nluci"):
			// A variable that stands for another one, or changes what it is given.
			l.hide()
		}
	}
	if d.Variant.Value == "nameref" {
		l.hide()
	}
}

func (l *line) iterate(w *syntax.WordIter) {
	if !w.InPos.IsValid() {
		l.set(w.Name.Value, string(anyText))
		return
	}
	for _, item := range w.Items {
		for _, words := range l.expand(item) {
			l.set(w.Name.Value, words...)
		}
	}
}

var secretName = regexp.MustCompile(`(?i)(^|_)(api_?key|key|token|secret|secrets|passwd|password|passphrase|credential|credentials|pat)($|_)`)

// expansion looks at the name of a variable that is used: what is in it leaves with the command.
func (l *line) expansion(p *syntax.ParamExp) {
	if p.Param == nil {
		return
	}
	if l.vars[p.Param.Value] == nil && secretName.MatchString(p.Param.Value) {
		l.found.add(Secret)
	}
	if p.Exp != nil && p.Exp.Op == syntax.OtherParamOps && p.Exp.Word != nil && strings.HasPrefix(p.Exp.Word.Lit(), "P") {
		// ${x@P} runs the substitutions in the value.
		l.hide()
	}
	if p.Excl {
		l.runtime = true
	}
	if p.Exp != nil && (p.Exp.Op == syntax.AssignUnset || p.Exp.Op == syntax.AssignUnsetOrNull) && p.Exp.Word != nil {
		values := l.parts(p.Exp.Word.Parts, true)
		l.environment(p.Param.Value, values)
		l.set(p.Param.Value, values...)
	}
}

// combine returns every argument list that the words of a command can become.
func (l *line) combine(words []*syntax.Word) [][]string {
	all := make([][][]string, len(words))
	n := 1
	for i, w := range words {
		all[i] = l.expand(w)
		n = min(n*len(all[i]), maxValues+1)
	}
	out := [][]string{nil}
	for _, options := range all {
		if n > maxValues && len(options) > 1 {
			options = [][]string{{string(anyText)}}
		}
		if len(options) == 1 {
			for i := range out {
				out[i] = append(out[i], options[0]...)
			}
			continue
		}
		var next [][]string
		for _, before := range out {
			for _, words := range options {
				next = append(next, slices.Concat(before, words))
			}
		}
		out = next
	}
	return out
}

// unquote takes the backslashes out of unquoted text and marks what the shell takes for a pattern.
func unquote(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case '\\':
			if i++; i < len(s) && s[i] != '\n' {
				b.WriteByte(s[i])
			}
		case '*', '?':
			b.WriteByte(globText)
		case '[':
			if end := strings.IndexByte(s[i:], ']'); end > 1 {
				i += end
				b.WriteByte(globText)
				continue
			}
			b.WriteByte(c)
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

// unescape takes out the backslashes that count within double quotes.
func unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) && strings.IndexByte("$`\"\\\n", s[i+1]) >= 0 {
			if i++; s[i] == '\n' {
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// unquoted marks where the shell splits a value and what it takes for a pattern in it.
func unquoted(s string) string {
	if s == "" {
		return string(fieldText) // no argument at all
	}
	return strings.Map(func(r rune) rune {
		switch r {
		case ' ', '\t', '\n':
			return fieldText
		case '*', '?':
			return globText
		}
		return r
	}, s)
}
