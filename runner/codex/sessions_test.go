package codex_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"drawbridge/runner/codex"
)

// TestSessions lists from files as codex writes them, and from files that are none.
func TestSessions(t *testing.T) {
	t.Parallel()
	home, folder := data(t), data(t)
	login := filepath.Join(home, "auth.json")
	r := imitate(t, imitation{}, func(c *codex.Config) { c.Login = login })
	id := func(n int) string { return fmt.Sprintf("01a22f41-4c0c-76d0-909d-%012d", n) }
	message := func(role, text string) string {
		return fmt.Sprintf(`{"type":"response_item","payload":{"type":"message","role":%q,"content":[{"type":"text","text":%q}]}}`+"\n", role, text)
	}
	write := func(dir string, n int, cwd, more string, lines ...string) string {
		t.Helper()
		file := filepath.Join(dir, "sessions", "2026", "12", "01", "rollout-2026-12-01T00-00-00-"+id(n)+".jsonl")
		meta := fmt.Sprintf(`{"type":"session_meta","payload":{"id":%q,"cwd":%q%s}}`+"\n", id(n), cwd, more)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(meta+strings.Join(lines, "")), 0o600); err != nil {
			t.Fatal(err)
		}
		when := time.Unix(1_800_000_000+int64(n), 0)
		if err := os.Chtimes(file, when, when); err != nil {
			t.Fatal(err)
		}
		return file
	}
	ours := filepath.Join(r.Data(), "codex")
	write(home, 1, folder, "", message("developer", "rules"), message("user", "<environment_context>x"), message("user", "do\nthis"),
		message("assistant", "a"), message("user", "b"), message("assistant", "c"), message("user", "d"), message("assistant", strings.Repeat("long ", 1000)),
		"{\"type\":\"response_item\",\"payload\":{\"type\":\"mess")
	write(home, 2, folder+"/elsewhere", "", message("user", "x"))
	write(home, 3, folder, `,"parent_thread_id":"`+id(1)+`"`, message("user", "x"))
	write(home, 4, folder, `,"source":{"subAgent":"x"}`, message("user", "x"))
	write(home, 5, folder, "", message("user", "<only context>"))
	write(ours, 6, folder, "", message("user", "ours"))
	write(home, 7, folder, "", message("user", "in both"))
	busy, err := os.Open(write(ours, 7, folder, "", message("user", "in both")))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = busy.Close() }()
	for name, text := range map[string]string{"empty": "", "garbage": "\xff\xfe{\n", "no end": "{"} {
		file := filepath.Join(home, "sessions", "2026", "12", "01", "rollout-"+name+".jsonl")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}

	list, err := r.Sessions(t.Context(), folder, 10)
	if err != nil || len(list) != 3 {
		t.Fatalf("%+v, %v", list, err)
	}
	both, own, terminal := list[0], list[1], list[2]
	if both.Token != id(7) || both.Title != "in both" {
		t.Errorf("the last one is %+v", both)
	}
	if own.Token != id(6) || own.Busy || own.Command != "cd '"+folder+"' && CODEX_HOME='"+ours+"' codex resume "+id(6) {
		t.Errorf("ours is %+v", own)
	}
	if terminal.Token != id(1) || terminal.Title != "do this" || terminal.Command != "cd '"+folder+"' && codex resume "+id(1) ||
		!terminal.Used.Equal(time.Unix(1_800_000_001, 0)) {
		t.Errorf("the terminal's is %+v", terminal)
	}
	if n := len(terminal.Last); n != 4 || terminal.Last[2].Text != "d" || terminal.Last[2].Agent || len(terminal.Last[3].Text) > 600 {
		t.Errorf("its last messages are %+v", terminal.Last)
	}
	if list, err := r.Sessions(t.Context(), folder, 1); err != nil || len(list) != 1 {
		t.Errorf("at most one: %+v, %v", list, err)
	}
}
