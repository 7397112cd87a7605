package config

import (
	"bytes"
	"strings"
	"testing"
)

// Whatever the file holds: no panic, no secret of the environment in what is printed, one line for each mistake, and
// what was accepted is whole.
func FuzzFile(f *testing.F) {
	for _, seed := range []string{
		"", wholeFile, "token = unquoted", "[[project]]\n[[runtime]]\n", "project = [1]\nruntime = 1979-05-27\n", "[project.x]\n", "owners = [1, [2], {a = 3}]",
		"pace = inf\nbeat = -1\n", "\"\\u0000\\n\" = 1", "[[runtime]]\nname = 1\nkey_env = \"DRAWBRIDGE_TOKEN\"\nbase_url = \"http://[::1\"\nmodel=\"m\"", "default_runtime = \"native\"",
		eventsFile, "[[hook]]\nsecret_env=\"DRAWBRIDGE_TOKEN\"\nsteps=[\"\"]\nby=1.5\n[[on]]\ncommand=[]\n[hooks]\nlisten=1", serversFile, "[[mcp]]\nname=\"a\"\nenv_from={A=\"DRAWBRIDGE_TOKEN\"}\ncommand=\"x\"\n[tools]\n\"a/*\" = \"read\"", "[[project]]\nname=\"a\"\npath=\"/\"\n", "a.b.c = 1\n\xff\xfe",
	} {
		f.Add([]byte(seed))
	}
	const token, key = "4711:fuzz-token-secret", "fuzz-key-secret"
	f.Fuzz(func(t *testing.T, body []byte) {
		l := newLoader([]string{"HOME=/home/ada", "DRAWBRIDGE_HOST_NAME=box", "DRAWBRIDGE_TOKEN=" + token, "GLM_KEY=" + key})
		l.file = "/etc/drawbridge.toml"
		l.decode(body)
		c, err := l.finish()
		var out bytes.Buffer
		if err != nil {
			for line := range strings.SplitSeq(err.Error(), "\n") {
				if !strings.HasPrefix(line, "config: ") {
					t.Errorf("a line that is none of ours: %q", line)
				}
			}
			out.WriteString(err.Error())
		} else {
			if err := c.Explain(&out); err != nil {
				t.Fatal(err)
			}
			if lines := bytes.Count(out.Bytes(), []byte("\n")); lines != len(c.Values()) {
				t.Errorf("%d values on %d lines", len(c.Values()), lines)
			}
			if c.HostName == "" || c.DataDir == "" || !c.DefaultMode.Valid() || c.Timing.Beat <= 0 || c.Timing.DeadAfter < 2*c.Timing.Beat {
				t.Errorf("accepted, and not whole: %+v", c)
			}
			if c.DefaultRuntime == "" && len(c.Runtimes) > 0 {
				t.Error("runtimes without a default")
			}
		}
		if s := out.String(); strings.Contains(s, "fuzz-token-secret") || strings.Contains(s, key) {
			t.Errorf("a secret is printed: %s", s)
		}
	})
}
