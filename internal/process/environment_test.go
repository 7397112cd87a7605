package process_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"drawbridge/internal/process"
)

func TestEnvironmentHoldsNothingOfOurs(t *testing.T) {
	t.Parallel()
	ours := map[string]string{
		"PATH": "/usr/bin::bin:.:/bin", "HOME": "/home/ada", "LANG": "C.UTF-8", "TERM": "xterm",
		"TELEGRAM_TOKEN": "1:secret", "REDIS_URL": "redis://secret", "OPENAI_API_KEY": "secret", "ANTHROPIC_API_KEY": "secret",
		"SSH_AUTH_SOCK": "/secret", "LD_PRELOAD": "/secret", "DRAWBRIDGE_TOKEN": "secret", "GOFLAGS": "-secret", "BASH_ENV": "/secret",
	}
	lookup := func(name string) (string, bool) { v, ok := ours[name]; return v, ok }
	got := process.Environment(process.Spec{Home: "/data/home", Lookup: lookup, Set: map[string]string{"OWN_KEY": "own", "TERM": "x"}})
	want := []string{"HOME=/data/home", "LANG=C.UTF-8", "OWN_KEY=own", "PATH=/usr/bin:/bin", "TERM=x"}
	if !slices.Equal(got, want) {
		t.Errorf("environment is %q, want %q", got, want)
	}
}

func TestEnvironmentInheritsNoOtherName(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching(`[A-Z_]{1,12}`).Draw(t, "name")
		got := process.Environment(process.Spec{Home: "/h", Lookup: func(n string) (string, bool) {
			return "/value-of-" + n, n == name
		}})
		inherited := slices.Contains(got, name+"=/value-of-"+name)
		if inherited != slices.Contains(process.Inherited(), name) {
			t.Fatalf("%s: inherited is %v", name, inherited)
		}
	})
}

func TestRunSeesNothingOfOurEnvironment(t *testing.T) {
	t.Setenv("TELEGRAM_TOKEN", "123:very-secret")
	t.Setenv("REDIS_URL", "redis://very-secret")
	out := process.NewCapture(100_000)
	c := shell(t, "env", out)
	if _, err := process.Run(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	allowed := map[string]bool{"HOME": true, "TERM": true, "PWD": true, "SHLVL": true, "_": true, "OLDPWD": true}
	for _, n := range process.Inherited() {
		allowed[n] = true
	}
	for line := range strings.Lines(out.String()) {
		name, _, _ := strings.Cut(line, "=")
		if !allowed[name] {
			t.Errorf("the program sees %q; allowed are %q", line, slices.Sorted(maps.Keys(allowed)))
		}
	}
	c = process.Command{Args: []string{"/usr/bin/env"}, Dir: t.TempDir(), Output: process.NewCapture(100)}
	if _, err := process.Run(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if got := c.Output.(*process.Capture).String(); got != "" {
		t.Errorf("without an environment the program sees %q", got)
	}
}

func TestCaptureKeepsHeadAndTail(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(2, 40).Draw(t, "limit")
		c := process.NewCapture(limit)
		var all strings.Builder
		for _, s := range rapid.SliceOf(rapid.StringMatching(`[aé…𝄞]{0,30}`)).Draw(t, "writes") {
			all.WriteString(s)
			if n, err := c.Write([]byte(s)); n != len(s) || err != nil {
				t.Fatal(n, err)
			}
		}
		got := c.String()
		if all.Len() <= limit/2*2 {
			if got != all.String() {
				t.Fatalf("kept %q of %q", got, all.String())
			}
			return
		}
		head, tail, ok := strings.Cut(got, "\n[…")
		_, tail, ok2 := strings.Cut(tail, "…]\n")
		if !ok || !ok2 || !strings.HasPrefix(all.String(), head) || !strings.HasSuffix(all.String(), tail) ||
			len(head)+len(tail) > limit || len(head) < limit/2-3 || len(tail) < limit/2-3 || !utf8.ValidString(got) {
			t.Fatalf("limit %d kept %q of %q", limit, got, all.String())
		}
	})
}
