package approvals

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf16"

	"drawbridge/policy"
	"drawbridge/runner"
)

// What a reviewer is shown at most, in bytes. What does not fit is not cut and shown: nobody may allow what they have
// seen a part of. Only the person's request may be cut, which is then said in it.
const (
	maxFacts       = 16 << 10
	maxCommand     = 4 << 10
	maxPath        = 1 << 10
	maxArgument    = 1 << 10
	maxFiles       = 50
	maxArguments   = 200 // values of a call, all levels together
	maxNesting     = 8
	maxRequest     = 2 << 10
	maxNamesLength = 200
)

var (
	errTooMuch  = &ReviewError{Why: "This is too large for a reviewer to see whole."}
	errContents = &ReviewError{Why: "This carries a file's contents, which a reviewer does not see."}
	errSecret   = &ReviewError{Why: "This may hold a secret, which a reviewer does not see."}
	errTwofold  = &ReviewError{Why: "Its arguments can be read in two ways."}
)

// reviewFacts is all that a reviewer's model gets to know.
type reviewFacts struct {
	Kind       runner.QuestionKind `json:"kind"`
	Categories []policy.Category   `json:"categories"`
	Background bool                `json:"background"`
	Folder     string              `json:"folder,omitempty"`
	Command    string              `json:"command,omitempty"`
	Files      []fileFact          `json:"files,omitempty"`
	Tool       string              `json:"tool,omitempty"`
	Arguments  any                 `json:"arguments,omitempty"`
	Request    string              `json:"request"`
}

type fileFact struct {
	Path      string `json:"path"`
	Operation string `json:"operation"`
	Added     int    `json:"lines_added"`
	Removed   int    `json:"lines_removed"`
}

// facts writes what a reviewer may know of r, as one line of JSON in which every character shows itself, or says why r
// can't be shown. Contents of files, output of tools and what looks like a secret are never part of it: an action that
// can't be told without them is not shown at all. The title is left out, since it tells nothing that the rest does not.
func facts(r ReviewRequest) (string, error) {
	q, in := r.Question, r.Run.Workspace
	f := reviewFacts{
		Kind: q.Kind, Background: q.Background, Folder: relative(q.Folder, in), Tool: q.Tool, Request: quotation(r.Run.Request),
	}
	for _, c := range r.Categories {
		f.Categories = append(f.Categories, known(c))
	}
	switch {
	case len(q.Folder) > maxPath, len(q.Tool) > maxNamesLength, len(q.Command) > maxCommand, len(q.Files) > maxFiles:
		return "", errTooMuch
	case secretive(q.Folder), secretive(q.Tool), secretive(q.Command):
		return "", errSecret
	}
	switch q.Kind {
	case runner.KindCommand:
		if strings.Contains(strings.ReplaceAll(q.Command, "<<<", ""), "<<") { // a here-document is a file in a command
			return "", errContents
		}
		f.Command = q.Command
	case runner.KindFileChange:
		for _, file := range q.Files {
			if len(file.Path) > maxPath {
				return "", errTooMuch
			}
			if secretive(file.Path) {
				return "", errSecret
			}
			op := string(listed(file.Op, "other", runner.FileCreate, runner.FileEdit, runner.FileDelete, runner.FileMove))
			f.Files = append(f.Files, fileFact{Path: relative(file.Path, in), Operation: op, Added: file.Added, Removed: file.Removed})
		}
	case runner.KindTool:
		var err error
		if f.Arguments, err = arguments(q.Arguments, in); err != nil {
			return "", err
		}
	case runner.KindPlan, runner.KindQuestion, runner.KindProposal:
		return "", errNotForReview
	default:
		return "", errNotForReview
	}
	b, err := json.Marshal(f)
	if err != nil {
		return "", &ReviewError{Why: "This could not be written down for a reviewer.", Err: err}
	}
	if s := visible(string(b)); len(s) <= maxFacts {
		return s, nil
	}
	return "", errTooMuch
}

// relative names a path in the workspace relative to it, and one in the home folder relative to that. It goes by the words
// of the path: where links lead is in the categories.
func relative(path string, in policy.Workspace) string {
	if !filepath.IsAbs(path) {
		return path
	}
	if rel, ok := below(path, in.Root); ok {
		return rel
	}
	if rel, ok := below(path, in.Home); ok {
		return filepath.Join("~", rel)
	}
	return filepath.Clean(path)
}

func below(path, folder string) (string, bool) {
	if !filepath.IsAbs(folder) {
		return "", false
	}
	rel, err := filepath.Rel(folder, path)
	return rel, err == nil && rel != ".." && !strings.HasPrefix(rel, "../")
}

// known keeps a category's name to those that there are.
func known(c policy.Category) policy.Category {
	return listed(c, policy.Unknown, policy.Read, policy.ReadOutside, policy.Write, policy.Protected, policy.System, policy.Delete,
		policy.Terminal, policy.Fetch, policy.Network)
}

// quotation is the person's request as a reviewer sees it: without what looks like a secret, and cut visibly.
func quotation(request string) string {
	s := withoutSecrets(strings.ToValidUTF8(request, "\ufffd"))
	if len(s) <= maxRequest {
		return s
	}
	kept := strings.ToValidUTF8(s[:maxRequest], "")
	return fmt.Sprintf("%s [cut here: %d bytes are left out]", kept, len(s)-len(kept))
}

// arguments reads a tool call's arguments into what can be shown: names sorted, paths relative, nothing left out.
func arguments(raw json.RawMessage, in policy.Workspace) (any, error) {
	if len(bytes.TrimSpace(raw)) == 0 {
		return nil, nil //nolint:nilnil // no arguments are shown as none
	}
	if !json.Valid(raw) {
		return nil, errTwofold
	}
	w := argumentWalk{decoder: json.NewDecoder(bytes.NewReader(raw)), in: in}
	w.decoder.UseNumber()
	return w.value(0, false)
}

// argumentWalk reads JSON token by token, since a name that stands twice would be lost otherwise: the tool may take the
// other one.
type argumentWalk struct {
	decoder *json.Decoder
	in      policy.Workspace
	count   int
}

// value reads one value; contents says that it stands under a name for a file's contents.
func (w *argumentWalk) value(depth int, contents bool) (any, error) {
	if w.count++; w.count > maxArguments || depth > maxNesting {
		return nil, errTooMuch
	}
	t, err := w.decoder.Token()
	if err != nil {
		return nil, errTwofold
	}
	switch t := t.(type) {
	case string:
		return w.text(t, contents)
	case json.Number:
		if len(t) > maxNamesLength {
			return nil, errTooMuch
		}
		return t, nil
	case json.Delim:
		if t == '{' {
			return w.object(depth, contents)
		}
		return w.list(depth, contents)
	}
	return t, nil // true, false and null
}

func (w *argumentWalk) object(depth int, contents bool) (any, error) {
	out := map[string]any{}
	for w.decoder.More() {
		t, err := w.decoder.Token()
		name, ok := t.(string)
		if err != nil || !ok {
			return nil, errTwofold
		}
		if len(name) > maxNamesLength {
			return nil, errTooMuch
		}
		if _, twice := out[name]; twice {
			return nil, errTwofold
		}
		if secretive(name) {
			return nil, errSecret
		}
		v, err := w.value(depth+1, contents || contentsName(name))
		if err != nil {
			return nil, err
		}
		if text, isText := v.(string); isText && text != "" && secretName.MatchString(name) {
			return nil, errSecret
		}
		out[name] = v
	}
	_, err := w.decoder.Token()
	return out, err
}

func (w *argumentWalk) list(depth int, contents bool) (any, error) {
	out := []any{}
	for w.decoder.More() {
		v, err := w.value(depth+1, contents)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	_, err := w.decoder.Token()
	return out, err
}

// text is a value that is shown: one line, not too long, with nothing in it that a reviewer must not see.
func (w *argumentWalk) text(s string, contents bool) (any, error) {
	switch {
	case s != "" && contents, strings.ContainsAny(s, "\n\r\v\f\u0085\u2028\u2029"):
		return nil, errContents
	case len(s) > maxArgument:
		return nil, errTooMuch
	case secretive(s):
		return nil, errSecret
	}
	return relative(s, w.in), nil
}

// contentsName reports whether an argument of this name is, for the tools that there are, what is written into a file or
// what was read from one.
func contentsName(name string) bool {
	switch strings.ToLower(strings.NewReplacer("_", "", "-", "", " ", "").Replace(name)) {
	case "content", "contents", "filecontent", "filecontents", "filetext", "text", "body", "data", "diff", "patch", "edits", "changes",
		"oldstring", "newstring", "oldstr", "newstr", "oldtext", "newtext", "insert", "inserttext", "replacement", "newsource",
		"stdin", "output", "result", "snippet", "code", "script", "payload", "attachment", "attachments", "blob", "base64":
		return true
	}
	return false
}

// What names a secret, and what a value may be that is one: no variable, no option, no command that yields it.
const (
	secretWord  = `(?:passw(?:or)?d|passphrase|pwd|secret|token|api[-_]?key|private[-_]?key|access[-_]?key|credentials?|cookie)` //nolint:gosec // the name of one
	secretValue = `[^\s"'$&|;<>(){},-][^\s"'$&|;<>(){},]{5,}`                                                                    //nolint:gosec // the form of one
)

// secretName matches names of arguments whose value is a secret. Names of counts ("max_tokens") are numbers and are not
// asked about.
var secretName = regexp.MustCompile(`(?i)passw|passphrase|pwd$|secret|token|api[-_]?key|apikey|private[-_]?key|access[-_]?key|credential|authori[sz]ation|bearer|cookie|^auth$|otp$|^pin$`)

// secrets matches what looks like a secret: the forms of the well-known keys, passwords in addresses, values that are
// named as secrets, and long random words. It recognises; a secret that looks like a word is not seen.
var secrets = regexp.MustCompile(strings.Join([]string{
	`-----BEGIN[^-]*-----(?s:.*?)(?:-----END[^-]*-----|$)`,
	`\b(?:sk|pk|rk)[-_][A-Za-z0-9_-]{16,}`,
	`\bgh[pousr]_[A-Za-z0-9]{16,}`, `\bgithub_pat_[A-Za-z0-9_]{16,}`, `\bglpat-[A-Za-z0-9_-]{16,}`, `\bnpm_[A-Za-z0-9]{16,}`,
	`\bxox[a-z]-[A-Za-z0-9-]{10,}`, `\b(?:AKIA|ASIA)[0-9A-Z]{16}\b`, `\bAIza[0-9A-Za-z_-]{30,}`, `\bhf_[A-Za-z0-9]{16,}`,
	`\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?`,
	`\b[0-9]{6,12}:[A-Za-z0-9_-]{30,}`,
	`://[^/\s:@'"]*:[^/\s@'"]+@`,
	`(?i)authori[sz]ation["']?\s*[:=]\s*["']?[^\s"'$&|;<>(){},-][^\s"'$&|;<>(){},]{11,}`,
	`(?i)\b(?:bearer|basic)\s+[A-Za-z0-9._~+/=-]{8,}`,
	`(?i)[a-z0-9_.-]*` + secretWord + `[a-z0-9_-]*["']?(?:\s*[:=]\s*|\s+is\s+)["']?(?:bearer\s+|basic\s+)?` + secretValue,
	`(?i)(?:^|\s)--?[a-z0-9-]*` + secretWord + `[a-z0-9-]*\s+["']?` + secretValue,
	`(?i)(?:^|\s)(?:-u|--user|--proxy-user)[\s=]*[^\s:'"$]+:[^\s'"$]+`,
}, "|"))

// longWord is a run of letters and digits that nobody writes.
var longWord = regexp.MustCompile(`[A-Za-z0-9+_-]{32,}`)

// random reports whether a word looks made by no person: letters of both cases with digits among them.
func random(word string) bool {
	digits := 0
	for _, r := range word {
		if unicode.IsDigit(r) {
			digits++
		}
	}
	return digits >= 3 && strings.ContainsFunc(word, unicode.IsUpper) && strings.ContainsFunc(word, unicode.IsLower)
}

// secretive reports whether s holds what looks like a secret.
func secretive(s string) bool {
	return secrets.MatchString(s) || slices.ContainsFunc(longWord.FindAllString(s, -1), random)
}

// withoutSecrets leaves out of s what looks like a secret, visibly.
func withoutSecrets(s string) string {
	const instead = "[secret left out]"
	s = secrets.ReplaceAllString(s, instead)
	return longWord.ReplaceAllStringFunc(s, func(word string) string {
		if random(word) {
			return instead
		}
		return word
	})
}

// hidden reports whether r shows nothing, or makes what stands beside it look like something else.
func hidden(r rune) bool {
	return r != ' ' && (!unicode.IsPrint(r) || r == '\u2800' ||
		unicode.Is(unicode.Variation_Selector, r) || unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r))
}

// visible writes every hidden character of a JSON document as the escape that JSON has for it. Such characters stand in
// its strings alone, so the document means what it meant.
func visible(document string) string {
	var b strings.Builder
	for _, r := range document {
		switch {
		case !hidden(r):
			b.WriteRune(r)
		case r > 0xffff:
			hi, lo := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, hi, lo)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}
