package native_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"drawbridge/internal/modeltest"
	"drawbridge/policy"
	"drawbridge/runner"
	"drawbridge/runner/native"
)

// one makes a single call in a folder and returns its result and the session.
func one(t *testing.T, dir string, c modeltest.Call, answer func(runner.Question) runner.Answer) (string, *session) {
	t.Helper()
	srv := serve(t, modeltest.Config{Script: calling(c), Piece: 4096})
	s := open(t, runtime(t, native.Config{BaseURL: srv.URL()}), runner.Options{Folder: dir}, answer)
	s.turn(t, "go", runner.Completed)
	requests := srv.Requests()
	got := results(requests[len(requests)-1])
	if len(got) != 1 {
		t.Fatalf("%d results of one call", len(got))
	}
	return got[0], s
}

// project is a workspace with all that is hard about one.
func project(t *testing.T) string {
	t.Helper()
	outside := t.TempDir()
	write(t, outside, "secret.txt", "outside\n")
	dir := t.TempDir()
	write(t, dir, "twice.txt", "one\ntwo\none\n")
	write(t, dir, "dos.txt", "one\r\ntwo\r\n")
	write(t, dir, "tab.go", "func x() {\n\treturn\n}\n")
	write(t, dir, "bin", "a\x00b")
	write(t, dir, "latin1.txt", "caf\xe9\n")
	write(t, dir, "long.txt", strings.Repeat("x", 5000)+"\nend\n")
	write(t, dir, "many.txt", strings.Repeat("line\n", 3000))
	write(t, dir, "big.txt", strings.Repeat(strings.Repeat("0123456789", 20)+"\n", 6000))
	write(t, dir, ".env", "TOKEN=one\n")
	write(t, dir, ".git/config", "one\n")
	write(t, dir, "node_modules/x/i.js", "one\n")
	write(t, dir, "sub/deep/a.go", "one\n")
	for link, target := range map[string]string{
		"out": outside, "out.txt": filepath.Join(outside, "secret.txt"), "in.txt": "twice.txt", "loop": "loop",
	} {
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestFileToolsSayWhatIsWrong(t *testing.T) {
	t.Parallel()
	dir := project(t)
	edit := func(path, old, with string) args { return args{"path": path, "old": old, "new": with} }
	for name, c := range map[string]struct {
		tool string
		args args
		want string
	}{
		"missing file":         {"read_file", args{"path": "no.txt"}, "Error: no.txt does not exist"},
		"no path":              {"read_file", args{}, `the argument "path" is missing`},
		"parent":               {"read_file", args{"path": "../x"}, "outside the workspace"},
		"parent, hidden":       {"read_file", args{"path": "sub/../../x"}, "outside the workspace"},
		"absolute":             {"read_file", args{"path": "/etc/passwd"}, "outside the workspace"},
		"link to a file":       {"read_file", args{"path": "out.txt"}, "leads outside the workspace"},
		"link to a folder":     {"read_file", args{"path": "out/secret.txt"}, "leads outside the workspace"},
		"link, listed":         {"list_dir", args{"path": "out"}, "leads outside the workspace"},
		"link, searched":       {"grep", args{"pattern": "x", "path": "out"}, "leads outside the workspace"},
		"link, written":        {"write_file", args{"path": "out/new.txt", "content": "x"}, "leads outside the workspace"},
		"link, replaced":       {"write_file", args{"path": "out.txt", "content": "x"}, "is a symbolic link"},
		"link in a circle":     {"read_file", args{"path": "loop"}, "Error: loop: "},
		"absolute, inside":     {"read_file", args{"path": filepath.Join(dir, "tab.go"), "limit": 1}, "     1\tfunc x() {"},
		"link inside":          {"read_file", args{"path": "in.txt", "limit": 1}, "     1\tone"},
		"a folder":             {"read_file", args{"path": "sub"}, "it is a folder"},
		"a binary":             {"read_file", args{"path": "bin"}, "not a text file"},
		"another encoding":     {"read_file", args{"path": "latin1.txt"}, "     1\tcaf\ufffd\n"},
		"a long line":          {"read_file", args{"path": "long.txt"}, "x… [line cut]\n     2\tend\n"},
		"many lines":           {"read_file", args{"path": "many.txt"}, "  2000\tline\n[The file goes on; read from offset 2001.]\n"},
		"a big file":           {"read_file", args{"path": "big.txt", "limit": 100000}, "[The file goes on; read from offset "},
		"past the end":         {"read_file", args{"path": "twice.txt", "offset": 9}, "[The file has 3 lines; there is nothing from line 9 on.]"},
		"a fraction":           {"read_file", args{"path": "twice.txt", "offset": 1.5}, "not a whole number"},
		"a wrong type":         {"read_file", args{"path": 3}, "the arguments do not fit"},
		"a listing":            {"list_dir", args{"path": "sub"}, "deep/\n"},
		"an empty pattern":     {"glob", args{}, `the argument "pattern" is missing`},
		"find":                 {"glob", args{"pattern": "**/*.{go,js}"}, "sub/deep/a.go\ntab.go\n"},
		"find nothing":         {"glob", args{"pattern": "*.py"}, "[No file matches.]"},
		"find by class":        {"glob", args{"pattern": "[!b-z]*/*"}, "[No file matches.]"},
		"a broken expression":  {"grep", args{"pattern": "("}, "no regular expression"},
		"search":               {"grep", args{"pattern": "^one$"}, "sub/deep/a.go:1:one\ntwice.txt:1:one\ntwice.txt:3:one\n"},
		"search, dos":          {"grep", args{"pattern": "ONE$", "ignore_case": true, "glob": "*.txt"}, "dos.txt:1:one\n"},
		"search says of what":  {"grep", args{"pattern": "TOKEN"}, "[Nothing matches.]\n[1 files that may hold secrets were not searched.]\n"},
		"search by name":       {"grep", args{"pattern": "TOKEN", "path": ".env"}, ".env:1:TOKEN=one\n"},
		"edit nothing":         {"edit", edit("twice.txt", "", "x"), `the argument "old" is missing`},
		"edit to the same":     {"edit", edit("twice.txt", "two", "two"), "are the same"},
		"edit what is not":     {"edit", edit("twice.txt", "three", "x"), "was not found in twice.txt; read the file again"},
		"edit with blanks":     {"edit", edit("tab.go", "{\n    return\n}", "x"), "with other blanks"},
		"edit with line ends":  {"edit", edit("dos.txt", "one\ntwo", "x"), `end with \r\n`},
		"edit twice":           {"edit", edit("twice.txt", "one", "x"), "is 2 times in twice.txt"},
		"edit a missing file":  {"edit", edit("no.txt", "a", "b"), "no.txt does not exist; write_file makes files"},
		"edit a binary":        {"edit", edit("latin1.txt", "caf", "b"), "not a text file"},
		"edit a big file":      {"edit", edit("big.txt", "9", "b"), "too large"},
		"write the same":       {"write_file", args{"path": "twice.txt", "content": "one\ntwo\none\n"}, "holds exactly that already"},
		"write nothing":        {"write_file", args{"path": "new.txt"}, `the argument "content" is missing`},
		"write too much":       {"write_file", args{"path": "new.txt", "content": strings.Repeat("x", 2<<20)}, "too large"},
		"write below a file":   {"write_file", args{"path": "twice.txt/new.txt", "content": "x"}, "Error: twice.txt/new.txt: "},
		"run nothing":          {"shell", args{}, `the argument "command" is missing`},
		"a command in no time": {"shell", args{"command": "echo begun; sleep 600", "timeout": "1"}, "begun\n[The command took longer than 1s"},
		"a command's signal":   {"shell", args{"command": "kill -KILL $$"}, "[Exit status 137.]"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, _ := one(t, dir, modeltest.CallOf(c.tool, c.args), nil)
			if !strings.Contains(got, c.want) || len(got) > 32_000 {
				t.Errorf("%d bytes of result: %.500s\nwant %q", len(got), got, c.want)
			}
			if strings.Contains(got, "node_modules") || strings.Contains(got, ".git/") {
				t.Errorf("the search went where it must not: %.500s", got)
			}
		})
	}
	t.Cleanup(func() { // after all of them
		if got := read(t, dir, "twice.txt"); got != "one\ntwo\none\n" {
			t.Errorf("twice.txt was changed: %q", got)
		}
		for _, path := range []string{"out/new.txt", "new.txt"} {
			if _, err := os.Stat(filepath.Join(dir, path)); err == nil {
				t.Errorf("%s was written", path)
			}
		}
		if got := read(t, dir, "out/secret.txt"); got != "outside\n" {
			t.Errorf("a file outside was changed: %q", got)
		}
	})
}

func TestEveryCallIsAskedAsWhatItIs(t *testing.T) {
	t.Parallel()
	dir := project(t)
	for name, c := range map[string]struct {
		call modeltest.Call
		kind runner.QuestionKind
		want []policy.Category
	}{
		"read":          {modeltest.CallOf("read_file", args{"path": "tab.go"}), runner.KindTool, []policy.Category{policy.Read}},
		"read a secret": {modeltest.CallOf("read_file", args{"path": ".env"}), runner.KindTool, []policy.Category{policy.Secret}},
		"search a file": {modeltest.CallOf("grep", args{"pattern": "x", "path": ".env"}), runner.KindTool, []policy.Category{policy.Secret}},
		"search":        {modeltest.CallOf("grep", args{"pattern": "x"}), runner.KindTool, []policy.Category{policy.Read}},
		"find":          {modeltest.CallOf("glob", args{"pattern": "*"}), runner.KindTool, []policy.Category{policy.Read}},
		"list":          {modeltest.CallOf("list_dir", args{}), runner.KindTool, []policy.Category{policy.Read}},
		"write":         {modeltest.CallOf("write_file", args{"path": "n.txt", "content": "x"}), runner.KindFileChange, []policy.Category{policy.Write}},
		"write a hook":  {modeltest.CallOf("write_file", args{"path": ".git/hooks/x", "content": "x"}), runner.KindFileChange, []policy.Category{policy.Protected}},
		"run":           {modeltest.CallOf("shell", args{"command": "true"}), runner.KindCommand, []policy.Category{policy.Terminal}},
		"push":          {modeltest.CallOf("shell", args{"command": "true; git push"}), runner.KindCommand, []policy.Category{policy.Terminal, policy.Publish}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			refused := func(runner.Question) runner.Answer { return runner.Answer{} }
			got, s := one(t, dir, c.call, refused)
			if !strings.HasPrefix(got, "Not done. This is refused.") {
				t.Errorf("result %q", got)
			}
			if len(s.questions) != 1 {
				t.Fatalf("%d questions", len(s.questions))
			}
			q := s.questions[0]
			if q.Kind != c.kind || q.Folder != dir || q.Item == "" || q.Title == "" {
				t.Errorf("asked as %+v", q)
			}
			for _, want := range c.want {
				if !q.Has(want) {
					t.Errorf("asked as %v, want %v", q.Categories, want)
				}
			}
			if c.kind == runner.KindTool && (q.Tool != c.call.Name || string(q.Arguments) != c.call.Arguments) {
				t.Errorf("asked as the tool %s %s", q.Tool, q.Arguments)
			}
		})
	}
}

func TestWhatWasShownIsWhatIsWritten(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "a.sh", "one\n")
	if err := os.Chmod(filepath.Join(dir, "a.sh"), 0o750); err != nil {
		t.Fatal(err)
	}
	change := modeltest.CallOf("edit", args{"path": "a.sh", "old": "one", "new": "two"})

	got, _ := one(t, dir, change, func(q runner.Question) runner.Answer {
		before, err := q.Check()
		if err != nil {
			t.Error(err)
		}
		write(t, dir, "a.sh", "one\nand more\n")
		if after, err := q.Check(); err != nil || after == before {
			t.Errorf("the digest does not show the change: %q, %q, %v", before, after, err)
		}
		return runner.Answer{Decision: runner.Allowed}
	})
	if !strings.Contains(got, "changed by somebody else") {
		t.Errorf("result %q", got)
	}
	if text := read(t, dir, "a.sh"); text != "one\nand more\n" {
		t.Errorf("the file holds %q", text)
	}

	got, s := one(t, dir, change, nil)
	if !strings.HasPrefix(got, "Done") || read(t, dir, "a.sh") != "two\nand more\n" {
		t.Errorf("result %q, the file holds %q", got, read(t, dir, "a.sh"))
	}
	if info, err := os.Stat(filepath.Join(dir, "a.sh")); err != nil || info.Mode().Perm() != 0o750 {
		t.Errorf("the file's mode is %v, %v", info.Mode(), err)
	}
	if i := s.completed(runner.ItemFileChange); len(i) != 1 || i[0].Files[0].Added != 1 || i[0].Files[0].Removed != 1 || i[0].Files[0].Path != "a.sh" {
		t.Errorf("the items are %+v", i)
	}

	got, _ = one(t, dir, modeltest.CallOf("write_file", args{"path": "new.txt", "content": "x"}), func(runner.Question) runner.Answer {
		write(t, dir, "new.txt", "somebody was faster")
		return runner.Answer{Decision: runner.Allowed}
	})
	if !strings.Contains(got, "changed by somebody else") || read(t, dir, "new.txt") != "somebody was faster" {
		t.Errorf("result %q, the file holds %q", got, read(t, dir, "new.txt"))
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 2 {
		t.Errorf("left over: %v, %v", entries, err)
	}
}
