package claude_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"drawbridge/runner"
	"drawbridge/runner/claude"
)

// notPlain is what the program puts a dash for in the name of a folder; paths of tests are ASCII.
var notPlain = regexp.MustCompile(`[^a-zA-Z0-9]`)

// tokenOf is a session id that ends in n.
func tokenOf(n int) string { return fmt.Sprintf("22222222-2222-4222-8222-%012d", n) }

// said is a message as the program keeps it.
func said(who, folder, text string) string {
	message := map[string]any{"role": who, "content": text}
	b, err := json.Marshal(map[string]any{"type": who, "isSidechain": false, "cwd": folder, "message": message})
	if err != nil {
		panic(err) // texts can be written
	}
	return string(b) + "\n"
}

// store writes a conversation of a folder into a configuration, as one that was used so many minutes ago.
func store(t *testing.T, configuration, folder, name, lines string, minutes int) string {
	t.Helper()
	dir := filepath.Join(configuration, "projects", notPlain.ReplaceAllString(folder, "-"))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, name+".jsonl")
	if err := os.WriteFile(file, []byte(lines), 0o644); err != nil {
		t.Fatal(err)
	}
	used := time.Now().Add(-time.Duration(minutes) * time.Minute)
	if err := os.Chtimes(file, used, used); err != nil {
		t.Fatal(err)
	}
	return file
}

func sessions(t *testing.T, r *claude.Runtime, folder string, limit int) []runner.SessionInfo {
	t.Helper()
	all, err := r.Sessions(t.Context(), folder, limit)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestSessionsOfAFolder(t *testing.T) {
	t.Parallel()
	base := folder(t)
	login, here, alike := filepath.Join(base, "their login"), filepath.Join(base, "the project"), filepath.Join(base, "the-project")
	for _, dir := range []string{here, alike} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	r, _ := faked(t, ready("default"), claude.Config{Login: login})
	if all := sessions(t, r, here, 10); len(all) != 0 {
		t.Errorf("before anything: %+v", all)
	}
	ours := filepath.Join(r.Data(), "config")
	store(t, ours, here, tokenOf(1), said("user", here, "ours")+said("assistant", here, "done"), 3)
	store(t, login, here, tokenOf(2), said("user", here, "theirs\nand more"), 1)
	store(t, login, here, tokenOf(1), said("user", here, "the one that was taken over"), 2)
	store(t, login, alike, tokenOf(3), said("user", alike, "another folder with the same name"), 1)
	store(t, login, base, tokenOf(4), said("user", base, "another folder"), 1)
	store(t, login, here, tokenOf(5), "no JSON\n{\"type\":\x00\n", 1)
	store(t, login, here, tokenOf(6), "", 1)
	store(t, login, here, "notes", said("user", here, "no session's name"), 1)
	secret := filepath.Join(base, "secret")
	if err := os.WriteFile(secret, []byte(said("user", here, "a secret")), 0o600); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(login, "projects", notPlain.ReplaceAllString(here, "-"), tokenOf(7)+".jsonl")
	if err := os.Symlink(secret, link); err != nil {
		t.Fatal(err)
	}

	all := sessions(t, r, here, 10)
	if len(all) != 2 || all[0].Token != tokenOf(2) || all[1].Token != tokenOf(1) {
		t.Fatalf("sessions %+v", all)
	}
	if s := all[0]; s.Title != "theirs" || s.Busy || time.Since(s.Used).Round(time.Minute) != time.Minute {
		t.Errorf("theirs: %+v", s)
	}
	if s := all[1]; s.Title != "ours" || len(s.Last) != 2 || s.Last[0] != (runner.SessionLine{Text: "ours"}) ||
		s.Last[1] != (runner.SessionLine{Agent: true, Text: "done"}) {
		t.Errorf("ours: %+v", s)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("cd '%s' && %s --resume %s", here, self, tokenOf(2)); all[0].Command != want {
		t.Errorf("their command: %s\nwant %s", all[0].Command, want)
	}
	if want := fmt.Sprintf("cd '%s' && CLAUDE_CONFIG_DIR=%s %s --resume %s", here, ours, self, tokenOf(1)); all[1].Command != want {
		t.Errorf("our command: %s\nwant %s", all[1].Command, want)
	}
	if few := sessions(t, r, here, 1); len(few) != 1 || few[0].Token != tokenOf(2) {
		t.Errorf("one of them: %+v", few)
	}
	through := filepath.Join(base, "link")
	if err := os.Symlink(here, through); err != nil {
		t.Fatal(err)
	}
	if linked := sessions(t, r, through, 10); len(linked) != 2 {
		t.Errorf("through a link: %+v", linked)
	}
	alone, _ := faked(t, ready("default"), claude.Config{Data: r.Data()})
	if own := sessions(t, alone, here, 10); len(own) != 1 || own[0].Title != "ours" {
		t.Errorf("without a login: %+v", own)
	}
}

// TestTheCommandIsWhatAShellReads runs it, in folders whose names mean something to a shell. Names that nobody could see
// have none.
func TestTheCommandIsWhatAShellReads(t *testing.T) {
	t.Parallel()
	program, data := filepath.Join(folder(t), "pro'gram $1"), filepath.Join(folder(t), `"my" data`)
	script := "#!/bin/sh\nprintf '%s|%s|%s' \"$PWD\" \"$CLAUDE_CONFIG_DIR\" \"$*\"\n"
	if err := os.WriteFile(program, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	r, err := claude.New(claude.Config{Name: "claude", Program: program, Data: data, Logger: slog.New(strict{t})})
	if err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(data, "config")
	for name, seen := range map[string]bool{
		"plain": true, "it's": true, "$(touch x)": true, "a b; touch x": true, `back\slash "quoted"`: true, "~": true, "ü": true, "*": true,
		"a\nb": false, "\x1b[1m": false, "\u202e": false, "a\tb": false,
	} {
		here := filepath.Join(folder(t), name)
		if err := os.Mkdir(here, 0o700); err != nil {
			t.Fatal(err)
		}
		store(t, config, here, tokenOf(1), said("user", here, "x"), 0)
		all := sessions(t, r, here, 1)
		if len(all) != 1 || (all[0].Command != "") != seen {
			t.Errorf("%q: sessions %+v", name, all)
			continue
		}
		if !seen {
			continue
		}
		want := here + "|" + config + "|--resume " + tokenOf(1)
		if out, err := exec.CommandContext(t.Context(), "/bin/sh", "-c", all[0].Command).CombinedOutput(); err != nil || string(out) != want {
			t.Errorf("%q: it did %s, error %v\nwant %s", name, out, err, want)
		}
	}
}

// TestWhatASessionIsShownAs has what people and agents said in it, and a title, without what the program adds.
func TestWhatASessionIsShownAs(t *testing.T) {
	t.Parallel()
	here := folder(t)
	prompt, answer := said("user", here, "fix it"), said("assistant", here, "fixed")
	result := fmt.Sprintf(`{"type":"user","cwd":%q,"message":{"content":[{"type":"tool_result","content":"output"}]}}`+"\n", here)
	flagged := func(flag string) string {
		return strings.Replace(said("user", here, "hidden"), "{", `{"`+flag+`":true,`, 1)
	}
	blocks := fmt.Sprintf(`{"type":"assistant","cwd":%q,"message":{"content":[{"type":"thinking","thinking":"hm"},{"type":"text","text":"part"},`+
		`{"type":"tool_use","name":"Bash","input":{"command":"secret"}}]}}`+"\n", here)
	long := strings.Repeat("ü", 1000)
	for name, c := range map[string]struct{ lines, title, last string }{
		"plain":                {prompt + answer, "fix it", "fix it|fixed"},
		"results of tools":     {prompt + blocks + result, "fix it", "fix it|part"},
		"sub-agents, meta":     {prompt + strings.ReplaceAll(flagged("x"), `"isSidechain":false`, `"isSidechain":true`) + flagged("isMeta") + flagged("isCompactSummary"), "fix it", "fix it"},
		"a person's title":     {prompt + `{"type":"ai-title","aiTitle":"guess"}` + "\n" + `{"type":"custom-title","customTitle":"mine"}` + "\n", "mine", "fix it"},
		"the agent's title":    {prompt + `{"type":"ai-title","aiTitle":"guess"}` + "\n", "guess", "fix it"},
		"a summary":            {`{"type":"summary","summary":"short"}` + "\n" + prompt, "short", "fix it"},
		"reminders":            {said("user", here, "<system-reminder>\nhidden\n</system-reminder>fix it<system-reminder>never ended"), "fix it", "fix it"},
		"only a reminder":      {said("user", here, "<system-reminder>hidden</system-reminder>") + prompt, "fix it", "fix it"},
		"a command":            {said("user", here, "<command-name>/review</command-name><command-message>hidden</command-message> <command-args>it</command-args>"), "/review it", "/review it"},
		"made up":              {prompt + strings.Replace(answer, `"role"`, `"model":"<synthetic>","role"`, 1), "fix it", "fix it"},
		"the last of many":     {prompt + strings.Repeat(answer, 5) + said("user", here, "thanks"), "fix it", "fixed|fixed|fixed|thanks"},
		"long":                 {said("user", here, long), strings.Repeat("ü", 200) + "…", strings.Repeat("ü", 200) + "…"},
		"a line being added":   {prompt + answer + `{"type":"user","mess`, "fix it", "fix it|fixed"},
		"a line of megabytes":  {prompt + said("user", here, strings.Repeat("x", 3<<20)) + answer, "fix it", "fixed"},
		"begun with megabytes": {said("user", here, strings.Repeat("x", 3<<20)) + answer + said("user", here, "next"), "next", "fixed|next"},
		"many megabytes":       {prompt + strings.Repeat(result, 60_000) + answer, "fix it", "fixed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, _ := faked(t, ready("default"), claude.Config{})
			store(t, filepath.Join(r.Data(), "config"), here, tokenOf(1), c.lines, 0)
			all := sessions(t, r, here, 10)
			if len(all) != 1 {
				t.Fatalf("sessions %+v", all)
			}
			var last []string
			for _, l := range all[0].Last {
				last = append(last, l.Text)
			}
			if got := strings.Join(last, "|"); all[0].Title != c.title || got != c.last {
				t.Errorf("title %q, last %q; want %q, %q", all[0].Title, got, c.title, c.last)
			}
		})
	}
}

// TestASessionOfThePersonsIsTakenOver resumes one that only the person's configuration has.
func TestASessionOfThePersonsIsTakenOver(t *testing.T) {
	t.Parallel()
	here, login := folder(t), folder(t)
	text := said("user", here, "begun in a terminal") + said("assistant", here, "yes")
	theirs := store(t, login, here, tokenOf(1), text, 5)
	r, transcript := faked(t, ready("default"), claude.Config{Login: login})
	before, err := os.Stat(theirs)
	if err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(r.Data(), "config", "projects", filepath.Base(filepath.Dir(theirs)), tokenOf(1)+".jsonl")
	for _, want := range []string{text, "goes its own way"} { // the second time, it is ours
		o := resume(t, r, here, tokenOf(1), asking, no)
		if err := o.Close(); err != nil {
			t.Fatal(err)
		}
		if b, err := os.ReadFile(copied); err != nil || string(b) != want {
			t.Errorf("copy %q, error %v; want %q", b, err, want)
		}
		if info, err := os.Lstat(copied); err != nil || info.Mode() != 0o600 {
			t.Errorf("copy has mode %v, error %v", info.Mode(), err)
		}
		if err := os.WriteFile(copied, []byte("goes its own way"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if b, err := os.ReadFile(transcript + argumentsFile); err != nil || strings.Count(string(b), `"--resume","`+tokenOf(1)+`"`) != 2 {
		t.Errorf("arguments %s, error %v", b, err)
	}
	after, err := os.Stat(theirs)
	if err != nil || !os.SameFile(before, after) || !after.ModTime().Equal(before.ModTime()) || after.Mode() != before.Mode() {
		t.Errorf("theirs was changed: %v, error %v", after, err)
	}
	if b, err := os.ReadFile(theirs); err != nil || string(b) != text {
		t.Errorf("theirs is %q, error %v", b, err)
	}
}

// TestWhatIsNotTakenOver tries names that lead elsewhere, and conversations that are not the folder's.
func TestWhatIsNotTakenOver(t *testing.T) {
	t.Parallel()
	here, other, login := folder(t), folder(t), folder(t)
	gone := `{"dir":"in","frame":{"type":"result","subtype":"error_during_execution","is_error":true,"errors":["No conversation found with session ID: x"]}}
{"dir":"exit","exit":1,"says":"No conversation found"}
`
	text := said("user", here, "x")
	projects := filepath.Dir(filepath.Dir(store(t, login, here, "x", text, 0)))
	store(t, login, other, tokenOf(1), said("user", other, "x"), 0)
	store(t, login, here, tokenOf(2), said("user", other, "x"), 0)
	if err := os.WriteFile(filepath.Join(projects, "x.jsonl"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("x.jsonl", filepath.Join(projects, notPlain.ReplaceAllString(here, "-"), tokenOf(3)+".jsonl")); err != nil {
		t.Fatal(err)
	}
	for _, token := range []string{
		"../x", "x", "/" + tokenOf(1), "../" + tokenOf(1), tokenOf(1) + "/../x", "*", strings.Replace(tokenOf(1), "2", "?", 1), tokenOf(1) + "\x00",
		tokenOf(1), tokenOf(2), tokenOf(3), tokenOf(4),
	} {
		r, _ := faked(t, gone, claude.Config{Login: login})
		if _, err := r.Open(t.Context(), runner.Options{Folder: here, Resume: token}); !errors.Is(err, runner.ErrNoSession) {
			t.Errorf("%q: error %v, want ErrNoSession", token, err)
		}
		if found, err := filepath.Glob(filepath.Join(r.Data(), "config", "projects", "*", "*")); err != nil || len(found) != 0 {
			t.Errorf("%q: copied %v, error %v", token, found, err)
		}
	}
}
