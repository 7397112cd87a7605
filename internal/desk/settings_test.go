package desk

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

var hook = Hook{Command: Command("/opt/it's here/drawbridge", Claude, "--data", Quote("/var/lib/a b")), Timeout: 90, Status: "asks <there> & here"}

// settings are as people have them.
var settings = map[string]string{
	"empty":  "",
	"none":   "{}",
	"others": "{\n  \"model\": \"opus\",\n  \"permissions\": {\n    \"allow\": [\n      \"Bash(ls && echo <x>)\"\n    ]\n  },\n  \"big\": 12345678901234567890,\n  \"hooks\": {\n    \"Stop\": [\n      {\n        \"hooks\": []\n      }\n    ],\n    \"PermissionRequest\": [\n      {\n        \"matcher\": \"Bash\",\n        \"hooks\": [\n          {\n            \"type\": \"command\",\n            \"command\": \"notify-send 'hook run claude'\"\n          }\n        ]\n      }\n    ]\n  },\n  \"theme\": \"dark\"\n}\n",
	"tabs":   "{\n\t\"theme\": \"dark\"\n}",
}

func read(t testing.TB, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o640); err != nil {
		t.Fatal(err)
	}
}

// TestInstallWritesOneEntry and keeps what is there; the second time it changes nothing, another one takes its place, and
// what is taken out leaves the settings as they were.
func TestInstallWritesOneEntry(t *testing.T) {
	t.Parallel()
	for name, before := range settings {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "settings.json")
			write(t, path, before)
			change := func(want bool, what string, changed bool, err error) {
				t.Helper()
				if err != nil || changed != want {
					t.Fatalf("%s: changed %t, want %t (%v)", what, changed, want, err)
				}
			}
			changed, err := Install(path, Claude, hook)
			change(true, "install", changed, err)
			installed := read(t, path)
			golden(t, "settings-"+name, installed)
			if got := read(t, path+backupSuffix); got != before {
				t.Errorf("the backup is %q", got)
			}
			if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o640 {
				t.Errorf("its mode is %v (%v)", info.Mode(), err)
			}
			if command, err := Installed(path, Claude); err != nil || command != hook.Command {
				t.Errorf("installed is %q (%v)", command, err)
			}
			if command, err := Installed(path, Codex); err != nil || command != "" {
				t.Errorf("for another agent %q is installed (%v)", command, err)
			}
			changed, err = Install(path, Claude, hook)
			change(false, "install again", changed, err)
			other := hook
			other.Command = Command("/usr/bin/drawbridge", Claude)
			changed, err = Install(path, Claude, other)
			change(true, "install another", changed, err)
			if got := read(t, path); strings.Count(got, mark+"claude") != strings.Count(installed, mark+"claude") || strings.Contains(got, "it's") {
				t.Errorf("another one did not take its place:\n%s", got)
			}
			changed, err = Uninstall(path, Claude)
			change(true, "uninstall", changed, err)
			want := before
			if name == "empty" {
				want = "{}\n"
			}
			if got := read(t, path); got != want {
				t.Errorf("afterwards it is\n%s\nwant\n%s", got, want)
			}
			changed, err = Uninstall(path, Claude)
			change(false, "uninstall again", changed, err)
		})
	}
}

func TestInstallMakesWhatIsMissingAndKeepsLinks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "a", "settings.json")
	if changed, err := Uninstall(path, Claude); changed || err != nil {
		t.Errorf("uninstall without settings: %t, %v", changed, err)
	}
	if changed, err := Install(path, Claude, hook); !changed || err != nil {
		t.Errorf("install without settings: %t, %v", changed, err)
	}
	if _, err := os.Stat(path + backupSuffix); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("there is a backup of nothing: %v", err)
	}
	real, link := filepath.Join(dir, "dotfiles.json"), filepath.Join(dir, "link.json")
	write(t, real, "{}")
	if err := os.Symlink(real, link); err != nil {
		t.Fatal(err)
	}
	if _, err := Install(link, Claude, hook); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode().Type() != fs.ModeSymlink || !strings.Contains(read(t, real), mark) {
		t.Errorf("the link became %v (%v)", info.Mode(), err)
	}
}

func TestWhatIsNotUnderstoodIsLeftAsItIs(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"[]", "{", "// a comment\n{}", `{"a":1} {}`, `{"hooks":[]}`, `{"hooks":{"PermissionRequest":{}}}`, `{"hooks":{"PermissionRequest":null}}`, "null", "\x00",
	} {
		path := filepath.Join(t.TempDir(), "settings.json")
		write(t, path, text)
		_, installing := Install(path, Claude, hook)
		_, uninstalling := Uninstall(path, Claude)
		if !errors.Is(installing, ErrSettings) || !errors.Is(uninstalling, ErrSettings) {
			t.Errorf("%q: %v, %v", text, installing, uninstalling)
		}
		if got := read(t, path); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}

// TestACommandIsOneWord: whatever a path holds, a shell takes it as it is.
func TestACommandIsOneWord(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.String().Draw(t, "path")
		var b strings.Builder
		for i, part := range strings.Split(Quote(s), `\'`) {
			if i > 0 {
				b.WriteByte('\'')
			}
			b.WriteString(strings.TrimSuffix(strings.TrimPrefix(part, "'"), "'"))
		}
		if !strings.Contains(s, `\`) && b.String() != s {
			t.Errorf("%q is quoted as %s", s, Quote(s))
		}
		if !ours(Command(s, Codex, "--wait", "1m"), Codex) || ours(Command(s, Codex), Claude) {
			t.Errorf("a command of %q is not told from others", s)
		}
	})
}
