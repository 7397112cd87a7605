package claude

import (
	"bytes"
	"cmp"
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
	"time"
	"unicode"
	"unicode/utf16"

	"drawbridge/runner"
)

const (
	shownLines = 4   // the last messages of a session that are shown
	shownText  = 400 // bytes of each, and of a title

	// Of a long conversation only both ends are read, in bytes. A line that does not fit is left out.
	headSize = 256 << 10
	tailSize = 1 << 20
	// plainPath is the length of a folder's name in the program's configuration, above which a hash follows it.
	plainPath = 200
)

var _ runner.Lister = (*Runtime)(nil)

// Sessions returns the sessions of folder, the one used last first: those of this runtime and, where there is a
// Config.Login, those that the person began with the program in a terminal. Of either configuration only the
// conversations of this folder are read, of long ones only both ends, and nothing is changed. What cannot be read, or has no
// prompt, is left out. One that Open has taken over is listed once, as the runtime's.
//
// Busy is seen on Linux only, and is a guess for the person's: a program that runs in the folder without saying which
// session it has is taken to have the one that they used last.
func (r *Runtime) Sessions(ctx context.Context, folder string, limit int) ([]runner.SessionInfo, error) {
	var all []stored
	for _, configuration := range r.configurations() {
		found, err := conversations(configuration, folder)
		if err != nil {
			return nil, fmt.Errorf("claude: list sessions: %w", err)
		}
		for _, s := range found {
			if !slices.ContainsFunc(all, func(known stored) bool { return known.token == s.token }) {
				all = append(all, s)
			}
		}
	}
	slices.SortFunc(all, func(a, b stored) int { return cmp.Or(b.used.Compare(a.used), cmp.Compare(a.token, b.token)) })
	var out []runner.SessionInfo
	open := running(folder)
	for _, s := range all {
		if len(out) >= limit || ctx.Err() != nil {
			break
		}
		t, err := s.read(folder)
		if err != nil {
			r.config.Logger.WarnContext(ctx, "a session cannot be read and is left out", "runtime", r.config.Name, "err", err)
			continue
		}
		if !t.here || t.title() == "" {
			continue
		}
		theirs := s.configuration != r.configuration()
		info := runner.SessionInfo{Token: s.token, Title: t.title(), Used: s.used, Last: t.last, Command: r.continues(folder, s)}
		info.Busy = open.named[s.token] || theirs && open.unnamed
		if theirs {
			open.unnamed = false
		}
		out = append(out, info)
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("claude: list sessions: %w", err)
	}
	return out, nil
}

// configurations are the program's configuration folders whose sessions can be resumed, our own first.
func (r *Runtime) configurations() []string {
	if r.config.Login == "" {
		return []string{r.configuration()}
	}
	return []string{r.configuration(), r.config.Login}
}

// continues is the command that continues a session in a terminal; empty where a path has what cannot be shown, such as a
// line's end, since nobody could see what they paste.
func (r *Runtime) continues(folder string, s stored) string {
	set := ""
	if s.configuration == r.configuration() {
		set = "CLAUDE_CONFIG_DIR=" + quoted(s.configuration) + " "
	}
	command := "cd " + quoted(folder) + " && " + set + quoted(r.config.Program) + " --resume " + s.token
	if strings.ContainsFunc(command, func(c rune) bool { return c == unicode.ReplacementChar || !unicode.IsPrint(c) }) {
		return ""
	}
	return command
}

// bare are the words that mean themselves in every shell.
var bare = regexp.MustCompile(`^[a-zA-Z0-9/._-]+$`)

// quoted is a word as a POSIX shell reads it.
func quoted(word string) string {
	if bare.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// stored is a conversation's file: <configuration>/projects/<folder>/<token>.jsonl.
type stored struct {
	configuration string
	project       string // the folder's name below projects
	token         string
	used          time.Time
}

// conversations are the files of a folder in a configuration, in no order. None where there is no configuration.
func conversations(configuration, folder string) ([]stored, error) {
	projects := filepath.Join(configuration, "projects")
	names, err := os.ReadDir(projects)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	var out []stored
	for _, name := range names {
		if !holds(name.Name(), folder) {
			continue
		}
		files, err := os.ReadDir(filepath.Join(projects, name.Name()))
		if err != nil {
			continue // not a folder, or not ours to read
		}
		for _, f := range files {
			token, is := strings.CutSuffix(f.Name(), ".jsonl")
			if info, err := f.Info(); err == nil && is && validID(token) && info.Mode().IsRegular() {
				out = append(out, stored{configuration, name.Name(), token, info.ModTime()})
			}
		}
	}
	return out, nil
}

// holds reports whether a folder of this name below projects may hold a folder's conversations: all but letters and
// digits is a dash there, so different folders can have the same.
func holds(name, folder string) bool {
	for _, path := range spellings(folder) {
		plain := encoded(path)
		if name == plain || len(plain) > plainPath && strings.HasPrefix(name, plain[:plainPath]+"-") {
			return true
		}
	}
	return false
}

// spellings are a folder's path as given, and behind all links, which is what the program sees.
func spellings(folder string) []string {
	if real, err := filepath.EvalSymlinks(folder); err == nil && real != folder {
		return []string{folder, real}
	}
	return []string{folder}
}

// encoded is a path as the program names its folder. It counts in UTF-16, as JavaScript does.
func encoded(path string) string {
	var b strings.Builder
	for _, unit := range utf16.Encode([]rune(path)) {
		if c := rune(unit); c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' {
			b.WriteRune(c)
		} else {
			b.WriteByte('-')
		}
	}
	return b.String()
}

// open opens the file, and only if it is a plain one: a link could lead anywhere.
func (s stored) open() (*os.File, error) {
	root, err := os.OpenRoot(filepath.Join(s.configuration, "projects", s.project))
	if err != nil {
		return nil, err
	}
	defer root.Close() //nolint:errcheck // only read
	name := s.token + ".jsonl"
	if info, err := root.Lstat(name); err != nil {
		return nil, err
	} else if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a plain file", s.token)
	}
	return root.Open(name)
}

// transcript is what both ends of a conversation's file say.
type transcript struct {
	here   bool // it was held in the folder
	named  string
	guess  string // a title that the program made
	prompt string // the first
	last   []runner.SessionLine
}

func (t *transcript) title() string { return cmp.Or(t.named, t.guess, t.prompt) }

// read reads both ends of the file.
func (s stored) read(folder string) (*transcript, error) {
	f, err := s.open()
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // only read
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	t, here := &transcript{}, spellings(folder)
	if info.Size() <= headSize+tailSize {
		b, err := io.ReadAll(io.LimitReader(f, headSize+tailSize))
		if err != nil {
			return nil, err
		}
		t.add(b, here)
		return t, nil
	}
	b := make([]byte, headSize)
	if _, err := io.ReadFull(f, b); err != nil {
		return nil, err
	}
	t.add(b[:bytes.LastIndexByte(b, '\n')+1], here)
	b = make([]byte, tailSize)
	// It is only ever added to; what is added while it is read is not missed.
	if _, err := f.ReadAt(b, info.Size()-tailSize); err != nil {
		return nil, err
	}
	t.last = nil // those of the beginning are not the last ones
	_, whole, _ := bytes.Cut(b, []byte("\n"))
	t.add(whole, here)
	return t, nil
}

// record is a line of the file, as far as it matters here.
type record struct {
	Type    string `json:"type"`
	Folder  string `json:"cwd"`
	Side    bool   `json:"isSidechain"`      // a sub-agent's
	Meta    bool   `json:"isMeta"`           // the program's own words in a person's name
	Compact bool   `json:"isCompactSummary"` // so is this
	Message struct {
		Model   string          `json:"model"`
		Content json.RawMessage `json:"content"`
	} `json:"message"`
	Custom  string `json:"customTitle"` // the person's title
	Title   string `json:"aiTitle"`
	Summary string `json:"summary"`
}

// synthetic is the model of messages that the program made up, such as errors.
const synthetic = "<synthetic>"

// add reads whole lines. One that is not understood is passed over: the program does so too.
func (t *transcript) add(lines []byte, here []string) {
	for line := range bytes.Lines(lines) {
		var r record
		if json.Unmarshal(line, &r) != nil {
			continue
		}
		t.here = t.here || slices.Contains(here, r.Folder)
		switch r.Type {
		case "custom-title":
			t.named = heading(r.Custom)
		case "ai-title":
			t.guess = cmp.Or(heading(r.Title), t.guess)
		case "summary":
			t.guess = cmp.Or(heading(r.Summary), t.guess)
		case "user", "assistant":
			agent := r.Type == "assistant"
			if r.Side || r.Meta || r.Compact || r.Message.Model == synthetic {
				continue
			}
			text := said(r.Message.Content)
			if text == "" {
				continue
			}
			if !agent {
				t.prompt = cmp.Or(t.prompt, heading(text))
			}
			t.last = append(t.last, runner.SessionLine{Agent: agent, Text: shortened(text)})
			t.last = t.last[max(0, len(t.last)-shownLines):]
		}
	}
}

// said is the text of a message, without calls of tools and their results and without what the program put into it.
func said(content json.RawMessage) string {
	var text string
	if json.Unmarshal(content, &text) != nil {
		var blocks []struct {
			Type string `json:"type"`
			Text string `json:"text"`
		}
		if json.Unmarshal(content, &blocks) != nil {
			return ""
		}
		for _, b := range blocks {
			if b.Type == "text" {
				text += b.Text + "\n"
			}
		}
	}
	for _, tag := range []string{
		"system-reminder", "command-message", "local-command-caveat", "local-command-stdout", "local-command-stderr",
		"bash-stdout", "bash-stderr", "task-notification",
	} {
		text = without(text, "<"+tag+">", "</"+tag+">")
	}
	for _, tag := range []string{"command-name", "command-args", "bash-input"} {
		text = strings.NewReplacer("<"+tag+">", "", "</"+tag+">", "").Replace(text)
	}
	return strings.TrimSpace(strings.ToValidUTF8(text, "\ufffd"))
}

// without takes away all that stands between begin and end, with them; all that follows if the end is missing.
func without(text, begin, end string) string {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(text, begin)
		b.WriteString(before)
		if !found {
			return b.String()
		}
		_, text, _ = strings.Cut(rest, end)
	}
}

// heading is the first line of a text.
func heading(text string) string {
	first, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return shortened(strings.TrimSpace(first))
}

func shortened(text string) string {
	if len(text) <= shownText {
		return text
	}
	return strings.ToValidUTF8(text[:shownText], "") + "…"
}
