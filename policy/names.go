package policy

import (
	"slices"
	"strings"
	"unicode"
)

// A list of names: each is one or more components, and * stands for any text within one component. A name matches
// wherever its components follow one another in a path.
//
// secretDirs are folders of keys and credential stores: everything below them is secret.
var secretDirs = split(`
.ssh .gnupg .aws .azure .kube .password-store .gcloud .oci .config/gh .config/hub .config/gcloud .config/op
.config/rclone .config/doctl .config/sops .config/age .config/git/credentials .local/share/keyrings library/keychains
.mozilla library/cookies .config/google-chrome .config/chromium etc/ssl/private run/secrets etc/sudoers.d .vault
.terraform.d/credentials.tfrc.json .1password .bitwarden .config/bitwarden .docker/config.json .secrets
`)

// secretFiles are names of files that hold secrets. They match only at the end of a path.
var secretFiles = split(`
.env* *.env .netrc _netrc .npmrc .pypirc .pgpass .my.cnf .mylogin.cnf .git-credentials .dockercfg .s3cfg .boto
.vault-token .htpasswd .gem/credentials .cargo/credentials .cargo/credentials.toml .m2/settings.xml
.m2/settings-security.xml .gradle/gradle.properties id_rsa id_dsa id_ecdsa id_ed25519 id_ecdsa_sk id_ed25519_sk
id_rsa.* id_ed25519.* *.pem *.key *.p12 *.pfx *.jks *.keystore *.kdbx *.ppk *.keytab *.agekey *_rsa *_ed25519
credentials.json credentials.yml credentials.yaml credentials.toml client_secret*.json service-account*.json
service_account*.json application_default_credentials.json secrets.yml secrets.yaml secrets.json secrets.toml
secrets.yml.enc master.key .credentials.json oauth_creds.json acp_token.json .codex/auth.json opencode/auth.json
etc/shadow etc/shadow- etc/gshadow etc/sudoers etc/ssh/ssh_host_*_key proc/*/environ proc/*/mem dev/mem dev/kmem
kubeconfig .kubeconfig cookies.sqlite .bash_history .zsh_history .python_history .psql_history .mysql_history
.node_repl_history docker.sock containerd.sock
`)

// protectedDirs are folders whose every file is protected against writing. All of .git is: its configuration, its hooks
// and the files that name other folders run programs, and nobody but git has to write there. Agents' folders and
// instruction files (CLAUDE.md, AGENTS.md, …) are read as orders by sessions to come, in looser modes too, so that a
// write there reaches further than the file.
var protectedDirs = split(`
.git git~1 .githooks .husky .lefthook .claude .codex .gemini .opencode .agents .agent .antigravity .cursor .windsurf
.clinerules .roo .continue .crush .kiro .amp .goose .junie .qwen .copilot .aider* .vscode .devcontainer .drawbridge
.github/workflows .github/actions .github/instructions .github/agents .github/prompts .github/skills .github/hooks
.github/chatmodes .circleci .buildkite .woodpecker .forgejo .gitea .teamcity .semaphore .tekton .gitlab/ci .ci
`)

// protectedFiles are single files, at the end of a path, that are protected against writing.
var protectedFiles = split(`
.gitmodules .gitconfig .pre-commit-config.yaml .pre-commit-config.yml lefthook.yml lefthook.yaml .lefthook.yml
.mcp.json mcp.json mcp_config.json .claude.json claude.md claude.local.md agents.md agents.override.md agent.md gemini.md qwen.md
crush.md crush.json .crush.json opencode.json opencode.jsonc .cursorrules .cursorignore .windsurfrules .goosehints
.roomodes .rules warp.md copilot-instructions.md drawbridge.toml .github .gitlab .gitlab-ci*.yml .gitlab-ci*.yaml
.travis.yml jenkinsfile* azure-pipelines*.yml azure-pipelines*.yaml bitbucket-pipelines.yml .drone.yml .drone.yaml
.woodpecker.yml .woodpecker.yaml appveyor.yml .appveyor.yml cloudbuild.yaml cloudbuild.yml buildspec.yml .cirrus.yml
codemagic.yaml bitrise.yml .semaphore.yml dependabot.yml .bash_profile .bashrc .zshrc .zshenv .zprofile .profile
.inputrc .tmux.conf .vimrc .exrc
`)

func split(s string) [][]string {
	var out [][]string
	for f := range strings.FieldsSeq(s) {
		out = append(out, strings.Split(strings.ReplaceAll(f, "*", string(globText)), "/"))
	}
	return out
}

func secretPath(path string) bool {
	c := components(path)
	if n := len(c); n > 0 && strings.HasSuffix(c[n-1], ".pub") && !strings.ContainsAny(c[n-1], unsure) && !within(c[:n-1], secretDirs) {
		return false
	}
	return within(c, secretDirs) || ends(c, secretFiles)
}

func protectedPath(path string) bool {
	c := components(path)
	return within(c, protectedDirs) || ends(c, protectedFiles)
}

// components are the folded names of a path, without those that mean nothing.
func components(path string) []string {
	c := strings.Split(path, "/")
	for i := range c {
		c[i] = fold(c[i])
	}
	return slices.DeleteFunc(c, func(s string) bool { return s == "" })
}

func within(path []string, names [][]string) bool {
	for i := range path {
		for _, n := range names {
			if i+len(n) <= len(path) && allMatch(n, path[i:]) {
				return true
			}
		}
	}
	return false
}

func ends(path []string, names [][]string) bool {
	return slices.ContainsFunc(names, func(n []string) bool {
		return len(n) <= len(path) && allMatch(n, path[len(path)-len(n):])
	})
}

func allMatch(name, path []string) bool {
	for i, n := range name {
		if !overlap(n, path[i]) {
			return false
		}
	}
	return true
}

// overlap reports whether a name of the lists and a component can be the same text. A component that is nothing but
// what is not known says nothing, and does not count: else every "$x" and every "*" would be a secret.
func overlap(name, component string) bool {
	if strings.IndexByte(component, anyText) < 0 && strings.IndexByte(component, globText) < 0 {
		return name == component || strings.IndexByte(name, globText) >= 0 && matches(name, component)
	}
	if strings.Trim(component, unsure) == "" {
		return false
	}
	if component[0] == globText && name[0] == '.' {
		return false
	}
	if strings.ContainsRune(name, globText) {
		// Two patterns: they overlap if what each has before its first and after its last gap agrees.
		return agree(name, component)
	}
	// One letter with a gap says too little, but for the dot that hidden files start with.
	if lit := strings.Trim(component, unsure); len(lit) < 3 && lit[0] != '.' {
		return false
	}
	return matches(component, name)
}

func agree(a, b string) bool {
	ah, bh := a[:strings.IndexAny(a, unsure)], b[:strings.IndexAny(b, unsure)]
	at, bt := a[strings.LastIndexAny(a, unsure)+1:], b[strings.LastIndexAny(b, unsure)+1:]
	n, m := min(len(ah), len(bh)), min(len(at), len(bt))
	if ah == "" && bt == "" || bh == "" && at == "" {
		return false
	}
	return ah[:n] == bh[:n] && at[len(at)-m:] == bt[len(bt)-m:]
}

// matches reports whether text is what pattern says, where both gaps stand for any text.
func matches(pattern, text string) bool {
	for {
		i := strings.IndexAny(pattern, unsure)
		if i < 0 {
			return pattern == text
		}
		if !strings.HasPrefix(text, pattern[:i]) {
			return false
		}
		pattern, text = strings.TrimLeft(pattern[i:], unsure), text[i:]
		if pattern == "" {
			return true
		}
		next := strings.IndexAny(pattern, unsure)
		if next < 0 {
			return strings.HasSuffix(text, pattern)
		}
		j := strings.Index(text, pattern[:next])
		if j < 0 {
			return false
		}
		text = text[j:]
	}
}

// fold brings a name to the form in which the lists are written: lower case in the widest sense, full-width letters as
// plain ones, without the characters that file systems of macOS and Windows ignore.
func fold(s string) string {
	var b strings.Builder
	for _, r := range s {
		if r >= 0xFF01 && r <= 0xFF5E {
			r -= 0xFEE0
		}
		if unicode.In(r, unicode.Cf, unicode.Variation_Selector) {
			continue
		}
		for f := unicode.SimpleFold(r); r > unicode.MaxASCII && f != r; f = unicode.SimpleFold(f) {
			if f <= unicode.MaxASCII {
				r = f
			}
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return strings.TrimRight(b.String(), ". \t")
}
