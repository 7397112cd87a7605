package app

import (
	"os"
	"path/filepath"
	"testing"

	"drawbridge/internal/config"
)

func TestServersAsAgentsTakeThem(t *testing.T) {
	t.Parallel()
	list := []config.Server{
		{Name: "bank", Command: "bank-mcp", Args: []string{"--stdio"}, Env: map[string]config.Secret{"KEY": config.NewSecret("k")}},
		{Name: "tracker", URL: "https://h", Headers: map[string]config.Secret{"Authorization": config.NewSecret("Bearer t")}},
		{Name: "bare", Command: "bare"},
	}
	got, err := claudeServers(list)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"bank": `{"args":["--stdio"],"command":"bank-mcp","env":{"KEY":"k"}}`, "bare": `{"args":[],"command":"bare","env":{}}`,
		"tracker": `{"headers":{"Authorization":"Bearer t"},"type":"http","url":"https://h"}`,
	} {
		if string(got[name]) != want {
			t.Errorf("claude gets %s, want %s", got[name], want)
		}
	}
	servers := codexServers(list)
	if b := servers["bank"]; b.Command != "bank-mcp" || b.Environment["KEY"] != "k" || b.URL != "" {
		t.Errorf("codex gets %+v", b)
	}
	if b := servers["tracker"]; b.URL != "https://h" || b.Headers["Authorization"] != "Bearer t" || b.Command != "" {
		t.Errorf("codex gets %+v", b)
	}
}

// TestTrustIsForAFolder: it holds for the folder that the owner has named, behind links too, and for nothing below it.
func TestTrustIsForAFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"shop/sub", "web"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(filepath.Join(dir, "shop"), link); err != nil {
		t.Fatal(err)
	}
	project := func(name, path string, trusted bool) config.Project {
		return config.Project{Name: name, Path: path, Trusted: trusted}
	}
	shop, web := filepath.Join(dir, "shop"), filepath.Join(dir, "web")
	trusted := trusts(config.Config{Projects: []config.Project{project("shop", link, true), project("web", web, false)}})
	for folder, want := range map[string]bool{shop: true, link: true, filepath.Join(shop, "sub"): false, web: false, dir: false, "": false} {
		if trusted(folder) != want {
			t.Errorf("%q is trusted: %v, want %v", folder, !want, want)
		}
	}
	for _, both := range [][]config.Project{{project("a", shop, true), project("b", link, false)}, {project("a", shop, false), project("b", link, true)}} {
		if trusts(config.Config{Projects: both})(shop) {
			t.Errorf("trusted although one of %+v is not", both)
		}
	}
	if !trusts(config.Config{Projects: []config.Project{project("a", shop, true), project("b", link, true)}})(shop) {
		t.Error("not trusted although both are")
	}
}
