package codex

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// terminal is a user's CODEX_HOME, and a runtime that knows it.
type terminal struct {
	t       *testing.T
	home    string
	folder  string
	runtime *Runtime
}

func newTerminal(t *testing.T, p *Provider) terminal {
	t.Helper()
	home := t.TempDir()
	r, err := New(Config{
		Program: "codex", Data: t.TempDir(), Login: filepath.Join(home, "auth.json"), Provider: p, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	return terminal{t, home, t.TempDir(), r}
}

func thread(n int) string { return fmt.Sprintf("01a22f41-4c0c-76d0-909d-%012d", n) }

func rollout(n int) string {
	return filepath.Join("sessions", "2026", "12", "01", "rollout-2026-12-01T00-00-00-"+thread(n)+".jsonl")
}

// begin writes a session. more are further members of its header.
func (s terminal) begin(n int, more string) string {
	s.t.Helper()
	file := filepath.Join(s.home, rollout(n))
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		s.t.Fatal(err)
	}
	text := fmt.Sprintf(`{"type":"session_meta","payload":{"id":%q,"cwd":%q%s}}`+"\n", thread(n), s.folder, more)
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		s.t.Fatal(err)
	}
	return file
}

// adopted are the files that stand in our home.
func (s terminal) adopted() []string {
	s.t.Helper()
	found, err := filepath.Glob(filepath.Join(s.runtime.codexHome(), "sessions", "*", "*", "*", "*"))
	if err != nil {
		s.t.Fatal(err)
	}
	for i, f := range found {
		info, err := os.Lstat(f)
		if err != nil || !info.Mode().IsRegular() || info.Mode().Perm() != 0o600 {
			s.t.Errorf("%s is %v, %v", f, info, err)
		}
		if found[i], err = filepath.Rel(s.runtime.codexHome(), f); err != nil {
			s.t.Fatal(err)
		}
	}
	return found
}

func base(n int) string { return fmt.Sprintf(`,"history_base":{"thread_id":%q}`, thread(n)) }

// TestForkIsAdoptedWithItsBeginning: of the sessions of a terminal, what a fork stands on is copied and nothing else is.
func TestForkIsAdoptedWithItsBeginning(t *testing.T) {
	t.Parallel()
	s := newTerminal(t, nil)
	s.begin(1, "")
	s.begin(2, base(1))
	file := s.begin(3, base(2))
	s.begin(4, base(3))
	if err := os.WriteFile(filepath.Join(s.home, "config.toml"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if found, err := s.runtime.adoptWhole(thread(3), s.folder); !found || err != nil {
		t.Fatalf("%v, %v", found, err)
	}
	if got := s.adopted(); !slices.Equal(got, []string{rollout(1), rollout(2), rollout(3)}) {
		t.Errorf("adopted %v", got)
	}
	for _, path := range []string{file, filepath.Join(s.runtime.codexHome(), rollout(3))} {
		if after, err := os.ReadFile(path); err != nil || !bytes.Equal(after, before) {
			t.Errorf("%s holds %q, %v", path, after, err)
		}
	}
	if found, err := s.runtime.adoptWhole(thread(3), s.folder); found || err != nil {
		t.Errorf("a second time: %v, %v", found, err)
	}
}

// TestNothingElseIsAdopted: not what another folder's is, what codex would ask another provider for, what no token can
// name, or what is no session.
func TestNothingElseIsAdopted(t *testing.T) {
	t.Parallel()
	s := newTerminal(t, &Provider{Name: "scripted", URL: "http://127.0.0.1:1"})
	ours := `,"model_provider":"drawbridge"`
	s.begin(1, `,"model_provider":"openai"`)
	s.begin(2, "")
	s.begin(3, ours+`,"parent_thread_id":"`+thread(1)+`"`)
	s.begin(4, ours+base(4)) // on itself
	damaged := s.begin(5, ours)
	if err := os.WriteFile(damaged, []byte("\xff{\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	secret := filepath.Join(s.home, "secret.jsonl")
	if err := os.Rename(s.begin(6, ours), secret); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(secret, filepath.Join(s.home, rollout(6))); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(filepath.Join(s.home, rollout(7)), 0o600); err != nil {
		t.Fatal(err)
	}
	s.begin(8, ours)
	for _, token := range []string{thread(1), thread(2), thread(3), thread(5), thread(6), thread(7), thread(9)} {
		if found, err := s.runtime.adoptWhole(token, s.folder); found || err != nil {
			t.Errorf("%s: %v, %v", token, found, err)
		}
	}
	if found, err := s.runtime.adoptWhole(thread(8), t.TempDir()); found || err != nil {
		t.Errorf("of another folder: %v, %v", found, err)
	}
	if got := s.adopted(); len(got) != 0 {
		t.Errorf("adopted %v", got)
	}
	if found, err := s.runtime.adoptWhole(thread(4), s.folder); err != nil { // ends, whatever comes of it
		t.Errorf("a fork of itself: %v, %v", found, err)
	}
	if found, err := s.runtime.adoptWhole(thread(8), s.folder); !found || err != nil {
		t.Errorf("of our provider: %v, %v", found, err)
	}
	for _, token := range []string{"*", strings.Repeat("?", 36), "../" + thread(8)[3:], thread(8) + "\n", strings.ToUpper(thread(8)), ""} {
		if threadID(token) {
			t.Errorf("%q counts as a thread's id", token)
		}
	}
}

// TestOpenSessionIsNotAdopted: a session that a terminal has open is left alone until it is closed there.
func TestOpenSessionIsNotAdopted(t *testing.T) {
	t.Parallel()
	s := newTerminal(t, nil)
	s.begin(1, "")
	locks := filepath.Join(s.home, "thread-writer-locks")
	if err := os.MkdirAll(locks, 0o755); err != nil {
		t.Fatal(err)
	}
	held, err := os.Create(filepath.Join(locks, thread(1)+".lock"))
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Flock(int(held.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	if found, err := s.runtime.adoptWhole(thread(1), s.folder); found || !errors.Is(err, errElsewhere) {
		t.Errorf("while it is open: %v, %v", found, err)
	}
	if got := s.adopted(); len(got) != 0 {
		t.Errorf("adopted %v", got)
	}
	if err := held.Close(); err != nil { // the file stays, as behind a codex that was killed
		t.Fatal(err)
	}
	if found, err := s.runtime.adoptWhole(thread(1), s.folder); !found || err != nil {
		t.Errorf("after it was closed: %v, %v", found, err)
	}
}
