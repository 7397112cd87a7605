package native

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"drawbridge/policy"
	"drawbridge/runner"
)

// searchLimit is the size up to which grep reads a file that was not named.
const searchLimit = 4 << 20

func toSlash(path string) string { return filepath.ToSlash(path) }

// skipped are folders that no search enters unless it is told to begin in one.
func skipped(name string) bool { return name == ".git" || name == "node_modules" }

func planGlob(t *turn, arguments json.RawMessage) (*action, error) {
	var in struct {
		Pattern string `json:"pattern"`
	}
	if err := decode(arguments, &in); err != nil {
		return nil, err
	}
	match, err := pattern(in.Pattern)
	if err != nil {
		return nil, err
	}
	return &action{
		item:       runner.Item{Kind: runner.ItemToolCall, Title: "Find " + in.Pattern},
		question:   runner.Question{Kind: runner.KindTool},
		categories: policy.ClassifyPath(policy.OpRead, ".", t.session.workspace()),
		do: func(ctx context.Context, _ *runner.Item) (string, error) {
			var names []string
			err := t.walk(ctx, ".", func(path string, _ fs.DirEntry) error {
				if match.MatchString(path) {
					names = append(names, path)
				}
				return nil
			})
			return listing(names, "No file matches."), err
		},
	}, nil
}

// walk visits the plain files below a path, in order. Symbolic links are not followed.
func (t *turn) walk(ctx context.Context, from string, visit func(path string, e fs.DirEntry) error) error {
	return fs.WalkDir(t.session.root.FS(), toSlash(from), func(path string, e fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil && path == from:
			return explain(from, err)
		case err != nil:
			return nil //nolint:nilerr // what cannot be listed is not found
		case e.IsDir() && path != from && skipped(e.Name()):
			return fs.SkipDir
		case e.Type().IsRegular():
			return visit(path, e)
		}
		return nil
	})
}

func planGrep(t *turn, arguments json.RawMessage) (*action, error) {
	var in struct {
		Pattern    string `json:"pattern"`
		Path       string `json:"path"`
		Glob       string `json:"glob"`
		IgnoreCase bool   `json:"ignore_case"`
	}
	if err := decode(arguments, &in); err != nil {
		return nil, err
	}
	if in.Pattern == "" {
		return nil, missing("pattern")
	}
	source := in.Pattern
	if in.IgnoreCase {
		source = "(?i)" + source
	}
	re, err := regexp.Compile(source)
	if err != nil {
		return nil, fmt.Errorf("the pattern is no regular expression: %w", err)
	}
	var only *regexp.Regexp
	if in.Glob != "" {
		if !strings.Contains(in.Glob, "/") {
			in.Glob = "**/" + in.Glob
		}
		if only, err = pattern(in.Glob); err != nil {
			return nil, err
		}
	}
	if in.Path == "" {
		in.Path = "."
	}
	path, err := t.local(in.Path)
	if err != nil {
		return nil, err
	}
	g := &search{turn: t, re: re, only: only, from: path}
	return &action{
		item:       runner.Item{Kind: runner.ItemToolCall, Title: "Search for " + cut(in.Pattern, 100)},
		question:   runner.Question{Kind: runner.KindTool},
		categories: policy.ClassifyPath(policy.OpRead, path, t.session.workspace()),
		do: func(ctx context.Context, _ *runner.Item) (string, error) {
			if err := g.run(ctx); err != nil {
				return "", err
			}
			return g.result(), nil
		},
	}, nil
}

// search is one grep.
type search struct {
	turn    *turn
	re      *regexp.Regexp
	only    *regexp.Regexp
	from    string
	found   strings.Builder
	matches int
	full    bool
	secrets int // files that were left out
}

var errFull = errors.New("enough")

func (g *search) run(ctx context.Context) error {
	info, err := g.turn.session.root.Stat(g.from)
	if err != nil {
		return explain(g.from, err)
	}
	if !info.IsDir() {
		// It was named, so the gate was asked for it as what it is.
		err = g.file(g.from)
	} else {
		err = g.turn.walk(ctx, g.from, g.visit)
	}
	if errors.Is(err, errFull) {
		return nil
	}
	return err
}

// visit searches a file that was not named: neither a secret, nor a large one.
func (g *search) visit(path string, e fs.DirEntry) error {
	if g.only != nil && !g.only.MatchString(path) {
		return nil
	}
	if c := policy.ClassifyPath(policy.OpRead, path, g.turn.session.workspace()); !slices.Equal(c, []policy.Category{policy.Read}) {
		g.secrets++
		return nil
	}
	if info, err := e.Info(); err != nil || info.Size() > searchLimit {
		return nil //nolint:nilerr // what is gone is not found
	}
	if err := g.file(path); errors.Is(err, errFull) {
		return err
	}
	return nil // what cannot be read is not found
}

func (g *search) file(path string) error {
	f, err := openPlain(func() (*os.File, error) { return g.turn.session.root.OpenFile(path, os.O_RDONLY|nonblock, 0) })
	if err != nil {
		return explain(path, err)
	}
	defer func() { _ = f.Close() }()
	br := bufio.NewReaderSize(f, 64<<10)
	if head, _ := br.Peek(8 << 10); bytes.IndexByte(head, 0) >= 0 {
		return nil
	}
	for n := 1; ; n++ {
		line, _, err := boundedLine(br)
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return explain(path, err)
		}
		if !g.re.MatchString(line) {
			continue
		}
		hit := fmt.Sprintf("%s:%d:%s\n", path, n, cut(line, 300))
		if g.found.Len()+len(hit) > resultLimit {
			g.full = true
			return errFull
		}
		g.found.WriteString(hit)
		g.matches++
	}
}

func (g *search) result() string {
	s := g.found.String()
	if g.matches == 0 {
		s = "[Nothing matches.]\n"
	}
	if g.full {
		s += "[There are more matches; search for something narrower.]\n"
	}
	if g.secrets > 0 {
		s += fmt.Sprintf("[%d files that may hold secrets were not searched.]\n", g.secrets)
	}
	return s
}

// pattern makes a file pattern a regular expression over slashed paths: ** is any folders, * and ? stay in one name,
// {a,b} is either, [abc] is one of them.
func pattern(p string) (*regexp.Regexp, error) {
	if p == "" {
		return nil, missing("pattern")
	}
	var b strings.Builder
	b.WriteString("^")
	depth := 0
	for i := 0; i < len(p); i++ {
		switch c := p[i]; {
		case strings.HasPrefix(p[i:], "**/"):
			b.WriteString("(?:.*/)?")
			i += 2
		case strings.HasPrefix(p[i:], "**"):
			b.WriteString(".*")
			i++
		case c == '*':
			b.WriteString("[^/]*")
		case c == '?':
			b.WriteString("[^/]")
		case c == '{':
			depth++
			b.WriteString("(?:")
		case c == '}' && depth > 0:
			depth--
			b.WriteString(")")
		case c == ',' && depth > 0:
			b.WriteString("|")
		case c == '[':
			end := strings.IndexByte(p[i:], ']')
			if end < 2 {
				b.WriteString(`\[`)
				continue
			}
			class := p[i+1 : i+end]
			class = strings.ReplaceAll(strings.Replace(class, "!", "^", 1), `\`, `\\`)
			b.WriteString("[" + class + "]")
			i += end
		default:
			b.WriteString(regexp.QuoteMeta(p[i : i+1]))
		}
	}
	b.WriteString(strings.Repeat(")", depth) + "$")
	re, err := regexp.Compile(b.String())
	if err != nil {
		return nil, nonsense{fmt.Errorf("the pattern %s cannot be understood", cut(p, 100))}
	}
	return re, nil
}
