package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func TestExplain(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		file string
		env  []string
	}{
		"defaults": {},
		"file":     {file: wholeFile, env: []string{"GLM_KEY=glm-key-of-env", "DRAWBRIDGE_HOST_NAME="}},
		"servers":  {file: serversFile, env: append([]string{"DRAWBRIDGE_HOST_NAME=box"}, serversEnv...)},
		"events":   {file: eventsFile, env: append([]string{"DRAWBRIDGE_HOST_NAME=box"}, eventsEnv...)},
		"mixed": {file: wholeFile, env: []string{
			"GLM_KEY=glm-key-of-env", "DRAWBRIDGE_TOKEN=9:env-token", "REDIS_URL=rediss://h:1", "DRAWBRIDGE_OWNERS=1,2", "DRAWBRIDGE_PROJECTS=one=/srv/a\u202eb",
			"DRAWBRIDGE_MODEL_URL=http://127.0.0.1:2/v1", "DRAWBRIDGE_MODEL=m", "DRAWBRIDGE_MODEL_KEY=model-key",
		}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, file, err := load(t, tt.file, tt.env...)
			if err != nil {
				t.Fatal(err)
			}
			var b bytes.Buffer
			if err := c.Explain(&b); err != nil {
				t.Fatal(err)
			}
			got := strings.ReplaceAll(b.String(), oneLine(file), FileName)
			golden := filepath.Join("testdata", name+".golden")
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

func TestExplainTellsAboutWriting(t *testing.T) {
	t.Parallel()
	c, _, err := load(t, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Explain(brokenPipe{}); err == nil {
		t.Error("the error of the writer is lost")
	}
}

// No way to print a Config, or something with a Secret in it, shows what is secret.
func TestSecretsNeverShow(t *testing.T) {
	t.Parallel()
	c, _, err := load(t, wholeFile, "GLM_KEY=glm-key-of-env", "DRAWBRIDGE_MODEL_URL=http://h", "DRAWBRIDGE_MODEL=m", "DRAWBRIDGE_MODEL_KEY=model-key-of-env")
	if err != nil {
		t.Fatal(err)
	}
	secrets := []string{"file-token_A", "hunter2pass", "hook-secret_1", "glm-key-of-env", "local-key-of-file", "model-key-of-env"}
	held := []string{c.Telegram.Token.Reveal(), c.RedisURL.Reveal(), c.Telegram.Webhook.Secret.Reveal()}
	for _, r := range c.Runtimes {
		held = append(held, r.Key.Reveal())
	}
	for _, s := range secrets {
		if !strings.Contains(strings.Join(held, " "), s) {
			t.Fatalf("%s is not in what was loaded", s)
		}
	}

	var out bytes.Buffer
	type holder struct {
		hidden Secret // a field on which fmt may call no method
		Shown  Secret
		Ptr    *Secret
	}
	h := holder{hidden: c.Telegram.Token, Shown: c.Telegram.Token, Ptr: &c.Telegram.Token}
	for _, v := range []any{c, &c, c.Telegram, c.RedisURL, c.Runtimes, c.Telegram.Token, *c.Telegram.Webhook, h, &h, map[string]any{"k": c.Telegram.Token}} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "% X", "%d", "%t", "%c", "%e", "%w", "%10.3s", "%z"} {
			fmt.Fprintf(&out, verb+"\n", v)
		}
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		out.Write(b)
		slog.New(slog.NewTextHandler(&out, nil)).Info("a line", "v", v)
		slog.New(slog.NewJSONHandler(&out, nil)).Info("a line", "v", v)
	}
	if err := toml.NewEncoder(&out).Encode(map[string]any{"k": c.Telegram.Token, "r": c.Runtimes}); err != nil {
		t.Fatal(err)
	}
	if err := c.Explain(&out); err != nil {
		t.Fatal(err)
	}
	for _, v := range c.Values() {
		fmt.Fprintln(&out, v)
	}
	for _, s := range secrets {
		for form, text := range map[string]string{"text": s, "hex": fmt.Sprintf("%x", s), "spaced hex": fmt.Sprintf("% X", s)} {
			if i := strings.Index(out.String(), text); i >= 0 {
				t.Errorf("%s appears as %s: …%s", s, form, out.String()[max(0, i-60):i])
			}
		}
	}
	if !strings.Contains(out.String(), Mask) {
		t.Error("nothing is masked, so nothing was printed")
	}
}

func TestSecret(t *testing.T) {
	t.Parallel()
	var unset Secret
	if unset.Set() || unset.Reveal() != "" || unset.String() != "" || fmt.Sprintf("%d%#v", unset, unset) != "" || NewSecret("").Set() {
		t.Error("a secret that is not set is not empty")
	}
	s := NewSecret("x")
	if !s.Set() || s.Reveal() != "x" || s.String() != Mask || s.GoString() != Mask || fmt.Sprintf("%x", s) != Mask {
		t.Error("a secret that is set is not masked")
	}
}
