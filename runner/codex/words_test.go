package codex_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"drawbridge/runner/codex"
)

// TestStartFlags holds what codex is started with to a golden file, an argument a line.
func TestStartFlags(t *testing.T) {
	t.Parallel()
	r, err := codex.New(codex.Config{
		Program: "codex", Data: "/data", Model: "gpt-5.5", Logger: logger(t), Readable: []string{"/opt/go"},
		Provider: &codex.Provider{Name: "local", URL: "http://127.0.0.1:1/v1", Key: "LOCAL_KEY"},
		Servers: map[string]codex.Server{
			"notes":    {Command: "/usr/bin/notes", Arguments: []string{"--quiet", `say "hi"`}, Environment: map[string]string{"A": "1"}},
			"odd name": {Command: "odd"},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "flags.txt", []byte(strings.Join(r.Arguments("/opt/codex/bin/codex"), "\n")+"\n"))
}

// TestBypassWordsStandInOneFile reads the package.
func TestBypassWordsStandInOneFile(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) < 10 {
		t.Fatal(files, err)
	}
	words := append(codex.NeverSent(), "dangerFullAccess")
	if len(words) < 6 {
		t.Fatal(words)
	}
	for _, file := range files {
		if file == "bypass.go" || strings.HasSuffix(file, "_test.go") {
			continue
		}
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range words {
			if strings.Contains(string(b), w) {
				t.Errorf("%s holds %s", file, w)
			}
		}
	}
}

// TestLastingAnswersAreNeverSent looks through what was sent in all modes, and what was answered to all recorded requests.
func TestLastingAnswersAreNeverSent(t *testing.T) {
	t.Parallel()
	looked := 0
	for _, pattern := range []string{"testdata/wire/*.txt", "testdata/golden/*.json"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			looked++
			for _, w := range codex.NeverSent() {
				if strings.Contains(string(b), w) {
					t.Errorf("%s holds %s", file, w)
				}
			}
		}
	}
	if looked < 30 {
		t.Errorf("only %d files were looked through", looked)
	}
}

func TestVersionsAreOrdered(t *testing.T) {
	t.Parallel()
	ordered := []string{
		"codex-cli 0.9.0", "codex-cli 0.171.0-alpha", "x/0.171.0-alpha.1 (y)", "v0.171.0-alpha.2", "0.171.0-alpha.10", "0.171.0-alpha.beta",
		"0.171.0-beta", "drawbridge/0.171.0 (Debian 12.0.0; x86_64) unknown", "0.171.1+build.7", "1.0.0",
	}
	for i, a := range ordered {
		for j, b := range ordered {
			if got, err := codex.Less(a, b); err != nil || got != (i < j) {
				t.Errorf("%q before %q: %v, %v", a, b, got, err)
			}
		}
	}
	for _, s := range []string{"", "codex", "codex-cli 1.2", "codex-cli 1.2.3.4", "1.2.x", "codex-cli 1234567890.1.1", "codex-cli 0.171.0garbage"} {
		if _, err := codex.Less(s, s); err == nil {
			t.Errorf("%q has a version", s)
		}
	}
}

func TestScriptOfACommandLine(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		`/bin/bash -lc 'touch x'`:                      "touch x",
		`/bin/bash -c "echo \"a\" \\$HOME"`:            `/bin/bash -c "echo \"a\" \\$HOME"`,
		`/bin/bash -c "echo \"a\""`:                    `echo "a"`,
		`/bin/bash -lc 'echo '"'"'a'"'"' && rm -rf b'`: `echo 'a' && rm -rf b`,
		`/bin/sh -c ls`:                                "ls",
		`/bin/bash -lc ls extra`:                       `/bin/bash -lc ls extra`,
		`/bin/bash -xc ls`:                             `/bin/bash -xc ls`,
		`/tmp/bash -lc ls`:                             `/tmp/bash -lc ls`,
		`/bin/bash -lc 'unclosed`:                      `/bin/bash -lc 'unclosed`,
		`/bin/bash -lc $HIDDEN`:                        `/bin/bash -lc $HIDDEN`,
		`/bin/bash -lc 'a'; rm b`:                      `/bin/bash -lc 'a'; rm b`,
		`/bin/bash -lc ''`:                             ``,
		`touch x`:                                      `touch x`,
		``:                                             ``,
	} {
		if got := codex.Script(line); got != want {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
}

// TestAnyScriptIsUnquoted quotes any text as codex does.
func TestAnyScriptIsUnquoted(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.String().Draw(t, "script")
		line := "/bin/bash -lc '" + strings.ReplaceAll(s, "'", `'"'"'`) + "'"
		if got := codex.Script(line); got != s {
			t.Fatalf("%q became %q", s, got)
		}
	})
}

func FuzzScript(f *testing.F) {
	for _, s := range []string{`/bin/bash -lc 'x'`, `'`, `"`, `a "b\"c" 'd'`, "\x00 \xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) {
		if got := codex.Script(line); len(got) > len(line) {
			t.Errorf("%q became longer: %q", line, got)
		}
	})
}

func TestGuardedPaths(t *testing.T) {
	t.Parallel()
	folder := data(t)
	for _, path := range []string{
		".git/config", ".github/workflows/ci.yml", "AGENTS.md", "main.go", "sub/.env", "sub/deep/deeper/.env", "node_modules/x/.env", "key.pem",
	} {
		file := filepath.Join(folder, path)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("sub/.env", filepath.Join(folder, "CLAUDE.md")); err != nil {
		t.Fatal(err)
	}
	protected, secret := codex.Guarded(folder)
	if got, want := strings.Join(protected, " "), ".git .github AGENTS.md"; got != want {
		t.Errorf("protected are %q, want %q", got, want)
	}
	if got, want := strings.Join(secret, " "), "key.pem sub/.env"; got != want {
		t.Errorf("secret are %q, want %q", got, want)
	}
}
