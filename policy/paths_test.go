package policy

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestClassifyPathSeesWhereAPathLeads(t *testing.T) {
	t.Parallel()
	in := workspace(t)
	table := []struct {
		op   Op
		path string
		want string
	}{
		{OpRead, "main.go", "read"},
		{OpRead, "./src/../main.go", "read"},
		{OpRead, "not/yet/there", "read"},
		{OpRead, ".git/config", "read"},
		{OpRead, ".github/workflows/ci.yml", "read"},
		{OpRead, "id_rsa.pub", "read"},
		{OpRead, "environment.go", "read"},
		{OpRead, "src/secrets.go", "read"},
		{OpRead, ".", "read"},
		{OpRead, in.Root, "read"},
		{OpRead, in.Root + "/main.go", "read"},
		{OpRead, in.Root + "/../project/main.go", "read"},
		{OpRead, "/dev/null", "read"},
		{OpRead, "/dev/zero", "read-outside"},
		{OpRead, "/dev/stdin", "read-outside"},
		{OpRead, "/dev/tty", "read-outside"},
		{OpRead, "/dev/fd/3", "read-outside"},
		{OpRead, "/dev//fd/0", "read-outside secret"},
		{OpRead, "/proc/self/cwd/main.go", "read-outside secret"},
		{OpRead, "/proc/thread-self/root/etc/hosts", "read-outside secret"},
		{OpRead, "/proc/self/fd/0", "read-outside secret"},
		{OpRead, "/proc/self/environ", "read-outside secret"},
		{OpRead, "/proc/self/status", "read-outside"},
		{OpRead, "/proc/mounts", "read-outside"},
		{OpRead, "..", "read-outside"},
		{OpRead, "../project2/main.go", "read-outside"},
		{OpRead, in.Root + "2/main.go", "read-outside"},
		{OpRead, "/etc/hosts", "read-outside"},
		{OpRead, "~", "read-outside"},
		{OpRead, "~/notes", "read-outside"},
		{OpRead, "~bob/notes", "read-outside"},
		{OpRead, "link-out/hosts", "read-outside"},
		{OpRead, "link-out/../etc/hosts", "read-outside"},
		{OpRead, "src/link-up/x", "read-outside"},
		{OpRead, "link-dangling", "read-outside"},
		{OpRead, "not/there/../../../x", "read-outside"},
		{OpRead, ".env", "read secret"},
		{OpRead, ".ENV", "read secret"},
		{OpRead, ".env.production", "read secret"},
		{OpRead, ".envrc", "read secret"},
		{OpRead, "prod.env", "read secret"},
		{OpRead, "sub/.Env", "read secret"},
		{OpRead, ".e\u200cnv", "read secret"},
		{OpRead, ".env.", "read secret"},
		{OpRead, "．ｅｎｖ", "read secret"},
		{OpRead, "link-env", "read secret"},
		{OpRead, "src/../link-env", "read secret"},
		{OpRead, "tls/server.pem", "read secret"},
		{OpRead, "id_rsa", "read secret"},
		{OpRead, "id_ed25519", "read secret"},
		{OpRead, ".npmrc", "read secret"},
		{OpRead, ".ſsh/config", "read secret"},
		{OpRead, ".\u212Aube/config", "read secret"},
		{OpRead, "config/master.key", "read secret"},
		{OpRead, "~/.ssh/id_ed25519", "read-outside secret"},
		{OpRead, "~/.ssh/id_rsa.pub", "read-outside secret"},
		{OpRead, "~/.aws/config", "read-outside secret"},
		{OpRead, "~/.config/gh/hosts.yml", "read-outside secret"},
		{OpRead, "~/.netrc", "read-outside secret"},
		{OpRead, "~/.docker/config.json", "read-outside secret"},
		{OpRead, "~/.codex/auth.json", "read-outside secret"},
		{OpRead, "~/Library/Keychains/login.keychain-db", "read-outside secret"},
		{OpRead, "/etc/shadow", "read-outside secret"},
		{OpRead, "/proc/1/environ", "read-outside secret"},
		{OpRead, "", "read-outside secret"},
		{OpRead, "a\x00b", "read-outside secret"},
		{OpRead, "loop-a", "read-outside secret"},
		{OpRead, strings.Repeat("x", 5000), "read-outside secret"},

		{OpWrite, "main.go", "write"},
		{OpWrite, "src/new/file.go", "write"},
		{OpWrite, "docs/github/workflows.md", "write"},
		{OpWrite, "agents.go", "write"},
		{OpWrite, ".gitignore", "write"},
		{OpWrite, "/dev/null", "protected"},
		{OpWrite, "/dev/stdin", "protected"},
		{OpWrite, "/dev/stdout", "protected"},
		{OpWrite, "/dev/fd/1", "protected"},
		{OpWrite, "/dev/../dev/stdin", "protected secret"},
		{OpWrite, "/proc/self/cwd/main.go", "protected secret"},
		{OpWrite, "/proc/self/fd/1", "protected secret"},
		{OpWrite, "/proc/self/environ", "protected secret"},
		{OpWrite, ".git/hooks/pre-commit", "protected"},
		{OpWrite, ".git/config", "protected"},
		{OpWrite, ".GiT/config", "protected"},
		{OpWrite, "git~1/config", "protected"},
		{OpWrite, ".g\u200dit/config", "protected"},
		{OpWrite, ".git ./config", "protected"},
		{OpWrite, ".git", "protected"},
		{OpWrite, "vendor/x/.git/hooks/pre-push", "protected"},
		{OpWrite, "link-git/hooks/pre-commit", "protected"},
		{OpWrite, "src/../.git/config", "protected"},
		{OpWrite, "link-out/hosts", "protected"},
		{OpWrite, "link-dangling", "protected"},
		{OpWrite, "src/link-up/x", "protected"},
		{OpWrite, "../x", "protected"},
		{OpWrite, "/tmp/x", "protected"},
		{OpWrite, "~/x", "protected"},
		{OpWrite, ".github/workflows/ci.yml", "protected"},
		{OpWrite, ".github/actions/x/action.yml", "protected"},
		{OpWrite, ".gitlab-ci.yml", "protected"},
		{OpWrite, ".circleci/config.yml", "protected"},
		{OpWrite, "Jenkinsfile", "protected"},
		{OpWrite, "azure-pipelines.yml", "protected"},
		{OpWrite, ".claude/settings.local.json", "protected"},
		{OpWrite, "sub/.claude/hooks/x.sh", "protected"},
		{OpWrite, ".mcp.json", "protected"},
		{OpWrite, "CLAUDE.md", "protected"},
		{OpWrite, "sub/agents.MD", "protected"},
		{OpWrite, "GEMINI.md", "protected"},
		{OpWrite, ".codex/config.toml", "protected"},
		{OpWrite, ".gemini/settings.json", "protected"},
		{OpWrite, ".opencode/plugin/x.js", "protected"},
		{OpWrite, "opencode.json", "protected"},
		{OpWrite, ".agents/hooks.json", "protected"},
		{OpWrite, ".cursor/mcp.json", "protected"},
		{OpWrite, ".vscode/tasks.json", "protected"},
		{OpWrite, ".husky/pre-commit", "protected"},
		{OpWrite, ".pre-commit-config.yaml", "protected"},
		{OpWrite, ".gitmodules", "protected"},
		{OpWrite, "drawbridge.toml", "protected"},
		{OpWrite, ".env", "protected secret"},
		{OpWrite, "link-env", "protected secret"},
		{OpWrite, "~/.ssh/authorized_keys", "protected secret"},
		{OpWrite, "loop-a/x", "protected secret"},

		{OpDelete, "main.go", "delete"},
		{OpDelete, ".git/index.lock", "delete protected"},
		{OpDelete, ".", "delete protected"},
		{OpDelete, in.Root, "delete protected"},
		{OpDelete, "..", "delete protected"},
		{OpDelete, ".github", "delete protected"},
		{OpDelete, "~", "delete protected"},
		{OpDelete, "/dev/null", "delete protected"},
		{OpDelete, ".env", "delete protected secret"},
		{OpDelete, "", "delete protected secret"},
		{"chmod", "main.go", "delete protected secret unknown"},
		{"", "main.go", "delete protected secret unknown"},
	}
	for _, e := range table {
		var want []Category
		for c := range strings.FieldsSeq(e.want) {
			want = append(want, Category(c))
		}
		if got := ClassifyPath(e.op, e.path, in); !slices.Equal(got, want) {
			t.Errorf("ClassifyPath(%s, %q) = %v, want %v", e.op, e.path, got, want)
		}
	}
}

func TestAWorkspaceWithoutAnAbsoluteRootIsTheStrictest(t *testing.T) {
	t.Parallel()
	for _, in := range []Workspace{{}, {Root: "."}, {Root: "src", Home: "/root"}} {
		if got := ClassifyPath(OpRead, "main.go", in); !slices.Equal(got, []Category{ReadOutside, Secret}) {
			t.Errorf("ClassifyPath in %q = %v", in.Root, got)
		}
	}
	if got := ClassifyPath(OpWrite, "~/x", Workspace{Root: "/work"}); !slices.Equal(got, []Category{Protected, Secret}) {
		t.Errorf("a home that is not known: %v", got)
	}
}

func TestAWorkspaceBelowAnAgentsFolderIsNotProtectedForThat(t *testing.T) {
	t.Parallel()
	root := filepath.Join(t.TempDir(), ".codex", "worktrees", "x")
	must(t, os.MkdirAll(root, 0o700))
	in := Workspace{Root: root, Home: "/home/u"}
	if got := ClassifyPath(OpWrite, "main.go", in); !slices.Equal(got, []Category{Write}) {
		t.Errorf("main.go = %v", got)
	}
	if got := ClassifyPath(OpWrite, ".codex/config.toml", in); !slices.Equal(got, []Category{Protected}) {
		t.Errorf(".codex/config.toml = %v", got)
	}
}

func TestAWorkspaceBehindALinkIsTheFolderItself(t *testing.T) {
	t.Parallel()
	in := workspace(t)
	link := filepath.Join(filepath.Dir(in.Root), "link")
	must(t, os.Symlink(in.Root, link))
	behind := Workspace{Root: link, Home: in.Home}
	for path, want := range map[string]Category{"main.go": Write, in.Root + "/main.go": Write, link + "/main.go": Write, "../x": Protected} {
		if got := ClassifyPath(OpWrite, path, behind); !slices.Equal(got, []Category{want}) {
			t.Errorf("%s = %v, want %s", path, got, want)
		}
	}
}
